// The one implementation of MTL::Texture: slices of rows of texels without gaps, in one block.
#pragma once

#include <memory>

#include "src/mps/device/device.h"

namespace bnns::mps {

struct TextureShape {
  MTL::TextureType type = MTL::TextureType2D;
  MTL::PixelFormat format = MTL::PixelFormatInvalid;
  size_t width = 0, height = 0, length = 1;
  MTL::StorageMode storage = MTL::StorageModeManaged;
  MTL::TextureUsage usage = MTL::TextureUsageShaderRead | MTL::TextureUsageShaderWrite;

  size_t texel_bytes() const;
  size_t bytes() const { return length * height * width * texel_bytes(); }
};

// A pixel format taken apart; lanes 0: not one of ours.
struct PixelLayout {
  PixelType type = PixelType::f32;
  int lanes = 0;
};
PixelLayout layout_of(MTL::PixelFormat format);

// Throw Error: unknown formats, extents of 0, more bytes than memory has.
void check_shape(const TextureShape& shape);
TextureShape shape_of(const MTL::TextureDescriptor& descriptor);

class TextureImpl final : public MTL::Texture {
 public:
  // Owns the block from here on; arena: where it goes back to, null for the device itself.
  TextureImpl(DeviceImpl& device, const TextureShape& shape, Block block, std::shared_ptr<Arena> arena);
  ~TextureImpl() override;

  MTL::Device* device() const override { return &device_; }
  MTL::TextureType textureType() const override { return shape_.type; }
  MTL::PixelFormat pixelFormat() const override { return shape_.format; }
  NS::UInteger width() const override { return shape_.width; }
  NS::UInteger height() const override { return shape_.height; }
  NS::UInteger arrayLength() const override { return shape_.length; }
  MTL::StorageMode storageMode() const override { return shape_.storage; }
  MTL::TextureUsage usage() const override { return shape_.usage; }
  NS::UInteger allocatedSize() const override { return block_.bytes; }
  NS::String* label() const override { return label_.get(); }
  void setLabel(NS::String* label) override { label_ = NS::RetainPtr(label); }
  using MTL::Texture::getBytes;
  using MTL::Texture::replaceRegion;
  void getBytes(void* bytes, NS::UInteger bytesPerRow, NS::UInteger bytesPerImage, MTL::Region region,
                NS::UInteger level, NS::UInteger slice) const override;
  void replaceRegion(MTL::Region region, NS::UInteger level, NS::UInteger slice, const void* bytes,
                     NS::UInteger bytesPerRow, NS::UInteger bytesPerImage) override;

  DeviceImpl& device_impl() const { return device_; }
  const TextureShape& shape() const { return shape_; }
  void* data() const { return block_.data; }
  // The first byte of a row.
  char* row(size_t slice, size_t y) const {
    return static_cast<char*>(block_.data) + (slice * shape_.height + y) * shape_.width * shape_.texel_bytes();
  }

 private:
  DeviceImpl& device_;
  TextureShape shape_;
  Block block_;
  std::shared_ptr<Arena> arena_;
  NS::SharedPtr<NS::String> label_;
};

}  // namespace bnns::mps
