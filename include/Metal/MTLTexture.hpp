// A two-dimensional texture or an array of them: slices of rows of texels, without gaps.
#pragma once

#include "../Foundation/Foundation.hpp"
#include "MTLTypes.hpp"

namespace MTL {

class Device;

class BNNS_MPS_API TextureDescriptor : public NS::Copying<TextureDescriptor> {
 public:
  static TextureDescriptor* alloc();
  TextureDescriptor* init();
  static TextureDescriptor* texture2DDescriptor(PixelFormat format, NS::UInteger width, NS::UInteger height,
                                                bool mipmapped);

  TextureType textureType() const { return type_; }
  PixelFormat pixelFormat() const { return format_; }
  NS::UInteger width() const { return width_; }
  NS::UInteger height() const { return height_; }
  NS::UInteger arrayLength() const { return length_; }
  StorageMode storageMode() const { return storage_; }
  TextureUsage usage() const { return usage_; }
  void setTextureType(TextureType type) { type_ = type; }
  void setPixelFormat(PixelFormat format) { format_ = format; }
  void setWidth(NS::UInteger width) { width_ = width; }
  void setHeight(NS::UInteger height) { height_ = height; }
  void setArrayLength(NS::UInteger length) { length_ = length; }
  void setStorageMode(StorageMode mode) { storage_ = mode; }
  void setUsage(TextureUsage usage) { usage_ = usage; }
  const char* className() const noexcept override;

 protected:
  TextureDescriptor() = default;
  ~TextureDescriptor() override = default;
  NS::Object* copyObject() const override;

 private:
  TextureType type_ = TextureType2D;
  PixelFormat format_ = PixelFormatRGBA8Unorm;
  NS::UInteger width_ = 1, height_ = 1, length_ = 1;
  StorageMode storage_ = StorageModeManaged;
  TextureUsage usage_ = TextureUsageShaderRead;
};

// Made by Device::newTexture; new textures hold zeros. Region and slice must lie inside, level must be 0; a wrong call
// copies nothing and leaves its reason in MTLX::lastError(). Do not copy while a command buffer uses the texture.
class BNNS_MPS_API Texture : public NS::Referencing<Texture> {
 public:
  virtual Device* device() const = 0;
  virtual TextureType textureType() const = 0;
  virtual PixelFormat pixelFormat() const = 0;
  virtual NS::UInteger width() const = 0;
  virtual NS::UInteger height() const = 0;
  virtual NS::UInteger arrayLength() const = 0;
  virtual StorageMode storageMode() const = 0;
  virtual TextureUsage usage() const = 0;
  virtual NS::UInteger allocatedSize() const = 0;  // bytes
  virtual NS::String* label() const = 0;           // null unless set
  virtual void setLabel(NS::String* label) = 0;

  virtual void getBytes(void* bytes, NS::UInteger bytesPerRow, NS::UInteger bytesPerImage, Region region,
                        NS::UInteger level, NS::UInteger slice) const = 0;
  virtual void replaceRegion(Region region, NS::UInteger level, NS::UInteger slice, const void* bytes,
                             NS::UInteger bytesPerRow, NS::UInteger bytesPerImage) = 0;
  void getBytes(void* bytes, NS::UInteger bytesPerRow, Region region, NS::UInteger level) const {
    getBytes(bytes, bytesPerRow, 0, region, level, 0);
  }
  void replaceRegion(Region region, NS::UInteger level, const void* bytes, NS::UInteger bytesPerRow) {
    replaceRegion(region, level, 0, bytes, bytesPerRow, 0);
  }
  const char* className() const noexcept override;

 protected:
  Texture() = default;
  ~Texture() override;
};

}  // namespace MTL

namespace MTLX {

// Where the texture's memory begins, on its device: slices of rows of texels, without gaps, for as long as the texture
// lives. For sharing it with other libraries; wait for command buffers that use the texture. Null for a texture of
// another library.
BNNS_MPS_API void* contents(const MTL::Texture* texture);

}  // namespace MTLX
