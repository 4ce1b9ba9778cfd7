// Images of many channels: 4 consecutive channels per texel (1 and 2 channels: 1 and 2), one slice of texels per 4
// channels, the slices of an image together, images one after the other. Lanes beyond the last channel hold 0.
#pragma once

#include <memory>

#include "MPSTypes.hpp"

namespace MPS {

class ImageAllocator;
class ImageBatch;

class BNNS_MPS_API ImageDescriptor : public NS::Copying<ImageDescriptor> {
 public:
  static ImageDescriptor* alloc();
  ImageDescriptor* init();
  static ImageDescriptor* imageDescriptor(ImageFeatureChannelFormat format, NS::UInteger width, NS::UInteger height,
                                          NS::UInteger featureChannels);
  static ImageDescriptor* imageDescriptor(ImageFeatureChannelFormat format, NS::UInteger width, NS::UInteger height,
                                          NS::UInteger featureChannels, NS::UInteger numberOfImages,
                                          MTL::TextureUsage usage);

  NS::UInteger width() const { return width_; }
  NS::UInteger height() const { return height_; }
  NS::UInteger featureChannels() const { return channels_; }
  NS::UInteger numberOfImages() const { return images_; }
  ImageFeatureChannelFormat channelFormat() const { return format_; }
  MTL::CPUCacheMode cpuCacheMode() const { return cache_; }
  MTL::StorageMode storageMode() const { return storage_; }
  MTL::TextureUsage usage() const { return usage_; }
  MTL::PixelFormat pixelFormat() const;  // invalid where format or channels are
  void setWidth(NS::UInteger width) { width_ = width; }
  void setHeight(NS::UInteger height) { height_ = height; }
  void setFeatureChannels(NS::UInteger channels) { channels_ = channels; }
  void setNumberOfImages(NS::UInteger images) { images_ = images; }
  void setChannelFormat(ImageFeatureChannelFormat format) { format_ = format; }
  void setCpuCacheMode(MTL::CPUCacheMode mode) { cache_ = mode; }
  void setStorageMode(MTL::StorageMode mode) { storage_ = mode; }
  void setUsage(MTL::TextureUsage usage) { usage_ = usage; }
  const char* className() const noexcept override;

 protected:
  ImageDescriptor() = default;
  ~ImageDescriptor() override = default;
  NS::Object* copyObject() const override;

 private:
  NS::UInteger width_ = 1, height_ = 1, channels_ = 1, images_ = 1;
  ImageFeatureChannelFormat format_ = ImageFeatureChannelFormatNone;
  MTL::CPUCacheMode cache_ = MTL::CPUCacheModeDefaultCache;
  MTL::StorageMode storage_ = MTL::StorageModeManaged;
  MTL::TextureUsage usage_ = MTL::TextureUsageShaderRead | MTL::TextureUsageShaderWrite;
};

class BNNS_MPS_API Image : public NS::Referencing<Image> {
 public:
  static Image* alloc();
  // Zeros, allocated at first use. Null with a reason in MTLX::lastError() for a descriptor that makes no image.
  Image* init(MTL::Device* device, const ImageDescriptor* descriptor);
  // A view of a texture: 2D for up to 4 channels and one image, else arrayLength = images x slices.
  Image* init(MTL::Texture* texture, NS::UInteger featureChannels);
  Image* initWithDevice(MTL::Device* device, const ImageDescriptor* descriptor) { return init(device, descriptor); }
  Image* initWithTexture(MTL::Texture* texture, NS::UInteger channels) { return init(texture, channels); }

  MTL::Device* device() const { return device_; }
  NS::UInteger width() const { return width_; }
  NS::UInteger height() const { return height_; }
  NS::UInteger featureChannels() const { return channels_; }
  NS::UInteger numberOfImages() const { return images_; }
  ImageFeatureChannelFormat featureChannelFormat() const { return format_; }
  MTL::PixelFormat pixelFormat() const;
  MTL::TextureType textureType() const;
  MTL::TextureUsage usage() const { return usage_; }
  NS::UInteger precision() const;     // bits: float 24, half 11, unorm 8 or 16
  NS::UInteger pixelSize() const;     // bytes of a texel of one slice
  NS::UInteger resourceSize() const;  // bytes of the whole
  MTL::Texture* texture();            // allocates
  Image* parent() const { return nullptr; }
  NS::String* label() const { return label_.get(); }
  void setLabel(NS::String* label);
  virtual bool isTemporary() const { return false; }

  static ImageAllocator* defaultAllocator();
  ImageBatch* batchRepresentation();  // one view per image, sharing the memory
  ImageBatch* batchRepresentation(NS::Range subRange);

  // Between memory and the image, in the image's own type. HWC is [y][x][c], CHW is [c][y][x]; rows are bytesPerRow
  // apart, images bytesPerImage. A wrong call copies nothing and leaves its reason in MTLX::lastError(). Wait for
  // command buffers that use the image first.
  void readBytes(void* data, DataLayout layout, NS::UInteger imageIndex) const;
  void readBytes(void* data, DataLayout layout, NS::UInteger bytesPerRow, MTL::Region region,
                 ImageReadWriteParams channels, NS::UInteger imageIndex) const;
  void readBytes(void* data, DataLayout layout, NS::UInteger bytesPerRow, NS::UInteger bytesPerImage,
                 MTL::Region region, ImageReadWriteParams channels, NS::UInteger imageIndex) const;
  void writeBytes(const void* data, DataLayout layout, NS::UInteger imageIndex);
  void writeBytes(const void* data, DataLayout layout, NS::UInteger bytesPerRow, MTL::Region region,
                  ImageReadWriteParams channels, NS::UInteger imageIndex);
  void writeBytes(const void* data, DataLayout layout, NS::UInteger bytesPerRow, NS::UInteger bytesPerImage,
                  MTL::Region region, ImageReadWriteParams channels, NS::UInteger imageIndex);
  // bytesPerColumn: from pixel to pixel of a row, for data with gaps.
  void writeBytes(const void* data, DataLayout layout, NS::UInteger bytesPerColumn, NS::UInteger bytesPerRow,
                  NS::UInteger bytesPerImage, MTL::Region region, ImageReadWriteParams channels,
                  NS::UInteger imageIndex);
  // Nothing to do here: readBytes fetches from the device once the command buffer is completed.
  void synchronize(MTL::CommandBuffer* commandBuffer);
  void synchronizeOnCommandBuffer(MTL::CommandBuffer* commandBuffer) { synchronize(commandBuffer); }
  const char* className() const noexcept override;

 protected:
  Image() = default;
  ~Image() override;
  friend struct bnns::mps::ImageAccess;

  bool describe(MTL::Device* device, const ImageDescriptor& descriptor);

  MTL::Device* device_ = nullptr;
  NS::UInteger width_ = 0, height_ = 0, channels_ = 0, images_ = 0;
  NS::UInteger first_ = 0;  // the view's first image in the texture
  ImageFeatureChannelFormat format_ = ImageFeatureChannelFormatNone;
  MTL::TextureUsage usage_ = MTL::TextureUsageUnknown;
  std::atomic<MTL::Texture*> texture_{nullptr};
  NS::SharedPtr<NS::String> label_;
};

// An image for one command buffer, whose memory is used again as soon as it was read readCount times.
class BNNS_MPS_API TemporaryImage : public NS::Referencing<TemporaryImage, Image> {
 public:
  // Autoreleased; null with a reason in MTLX::lastError() if the buffer was committed or the descriptor is wrong.
  static TemporaryImage* temporaryImage(MTL::CommandBuffer* commandBuffer, const ImageDescriptor* descriptor);
  static ImageAllocator* defaultAllocator();

  // 1 at first. Each encode that reads the image takes one off; at 0 the memory is gone and every use is refused.
  // Setting 0 frees at once; a count of 0 cannot be raised.
  NS::UInteger readCount() const { return reads_; }
  void setReadCount(NS::UInteger count);
  bool isTemporary() const override { return true; }
  const char* className() const noexcept override;

 protected:
  TemporaryImage() = default;
  ~TemporaryImage() override;
  friend struct bnns::mps::ImageAccess;

 private:
  NS::UInteger reads_ = 1;
  std::shared_ptr<bnns::mps::Arena> arena_;
};

// Images that are worked on together. A class of its own, so that C++ can tell images from states where Objective-C
// has labels.
class BNNS_MPS_API ImageBatch : public NS::Referencing<ImageBatch, NS::Array> {
 public:
  static ImageBatch* batch(Image* const* images, NS::UInteger count);  // null if one is null
  Image* image(NS::UInteger index) const { return static_cast<Image*>(object<NS::Object>(index)); }
  const char* className() const noexcept override;

 protected:
  ImageBatch() = default;
  ~ImageBatch() override = default;
};

// Adds to the read count of each distinct temporary image whose count is not 0; returns how many images are distinct.
BNNS_MPS_API NS::UInteger ImageBatchIncrementReadCount(ImageBatch* batch, NS::Integer amount);
BNNS_MPS_API void ImageBatchSynchronize(ImageBatch* batch, MTL::CommandBuffer* commandBuffer);
BNNS_MPS_API NS::UInteger ImageBatchResourceSize(ImageBatch* batch);  // distinct images
// Calls back for each image until a call does not return 0; returns that.
BNNS_MPS_API NS::Integer ImageBatchIterate(ImageBatch* batch,
                                           const std::function<NS::Integer(Image*, NS::UInteger)>& iterator);

// Makes the destination images of encodes that return one. Subclass it for images of your own.
class BNNS_MPS_API ImageAllocator : public NS::Referencing<ImageAllocator> {
 public:
  // Autoreleased, on the command buffer's device, as described; null or another size fails the encode.
  virtual Image* imageForCommandBuffer(MTL::CommandBuffer* commandBuffer, ImageDescriptor* descriptor,
                                       class Kernel* kernel) = 0;
  virtual ImageBatch* imageBatchForCommandBuffer(MTL::CommandBuffer* commandBuffer, ImageDescriptor* descriptor,
                                                 class Kernel* kernel, NS::UInteger count);
  // The coding hook: a name given to registerArchiveName, or null: kernels that hold this object cannot be archived.
  virtual const char* archiveName() const { return nullptr; }
  virtual void encode(NS::Coder* coder) const;
  // make returns +1.
  static void registerArchiveName(const char* name, ImageAllocator* (*make)(NS::Coder*));

 protected:
  ImageAllocator() = default;
  ~ImageAllocator() override;
};

}  // namespace MPS
