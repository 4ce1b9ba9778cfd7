// Images and their descriptors.
#include "src/mps/image/image.h"

#include <utility>

#include "src/mps/foundation/guard.h"
#include "src/mps/foundation/names.h"

namespace bnns::mps {

bool pixel_type(MPS::ImageFeatureChannelFormat format, PixelType* type) {
  switch (format) {
    case MPS::ImageFeatureChannelFormatUnorm8:
      *type = PixelType::unorm8;
      return true;
    case MPS::ImageFeatureChannelFormatUnorm16:
      *type = PixelType::unorm16;
      return true;
    case MPS::ImageFeatureChannelFormatFloat16:
      *type = PixelType::f16;
      return true;
    case MPS::ImageFeatureChannelFormatFloat32:
      *type = PixelType::f32;
      return true;
    default:
      return false;
  }
}

namespace {

MTL::PixelFormat pixel_format(MPS::ImageFeatureChannelFormat format, size_t channels) {
  static constexpr MTL::PixelFormat kFormats[4][3] = {
      {MTL::PixelFormatR8Unorm, MTL::PixelFormatRG8Unorm, MTL::PixelFormatRGBA8Unorm},
      {MTL::PixelFormatR16Unorm, MTL::PixelFormatRG16Unorm, MTL::PixelFormatRGBA16Unorm},
      {MTL::PixelFormatR16Float, MTL::PixelFormatRG16Float, MTL::PixelFormatRGBA16Float},
      {MTL::PixelFormatR32Float, MTL::PixelFormatRG32Float, MTL::PixelFormatRGBA32Float},
  };
  PixelType type;
  if (channels == 0 || !pixel_type(format, &type)) return MTL::PixelFormatInvalid;
  return kFormats[format - MPS::ImageFeatureChannelFormatUnorm8][channels >= 3 ? 2 : channels - 1];
}

MPS::ImageFeatureChannelFormat channel_format(PixelType type) {
  switch (type) {
    case PixelType::unorm8:
      return MPS::ImageFeatureChannelFormatUnorm8;
    case PixelType::unorm16:
      return MPS::ImageFeatureChannelFormatUnorm16;
    case PixelType::f16:
      return MPS::ImageFeatureChannelFormatFloat16;
    case PixelType::f32:
      return MPS::ImageFeatureChannelFormatFloat32;
  }
  return MPS::ImageFeatureChannelFormatNone;
}

}  // namespace
}  // namespace bnns::mps

namespace MPS {

using bnns::mps::ImageAccess;

DeviceProvider::~DeviceProvider() = default;

ImageDescriptor* ImageDescriptor::alloc() {
  return new ImageDescriptor;
}

ImageDescriptor* ImageDescriptor::init() {
  return this;
}

ImageDescriptor* ImageDescriptor::imageDescriptor(ImageFeatureChannelFormat format, NS::UInteger width,
                                                  NS::UInteger height, NS::UInteger featureChannels) {
  return imageDescriptor(format, width, height, featureChannels, 1,
                         MTL::TextureUsageShaderRead | MTL::TextureUsageShaderWrite);
}

ImageDescriptor* ImageDescriptor::imageDescriptor(ImageFeatureChannelFormat format, NS::UInteger width,
                                                  NS::UInteger height, NS::UInteger featureChannels,
                                                  NS::UInteger numberOfImages, MTL::TextureUsage usage) {
  ImageDescriptor* made = alloc()->init()->autorelease();
  made->format_ = format;
  made->width_ = width;
  made->height_ = height;
  made->channels_ = featureChannels;
  made->images_ = numberOfImages;
  made->usage_ = usage;
  return made;
}

MTL::PixelFormat ImageDescriptor::pixelFormat() const {
  return bnns::mps::pixel_format(format_, channels_);
}

const char* ImageDescriptor::className() const noexcept {
  return "MPSImageDescriptor";
}

NS::Object* ImageDescriptor::copyObject() const {
  ImageDescriptor* made = imageDescriptor(format_, width_, height_, channels_, images_, usage_);
  made->cache_ = cache_;
  made->storage_ = storage_;
  return made->retain();
}

Image* Image::alloc() {
  return new Image;
}

bool Image::describe(MTL::Device* device, const ImageDescriptor& descriptor) {
  device_ = &bnns::mps::device_impl(device);
  width_ = descriptor.width();
  height_ = descriptor.height();
  channels_ = descriptor.featureChannels();
  images_ = descriptor.numberOfImages();
  format_ = descriptor.channelFormat();
  usage_ = descriptor.usage();
  // Each mistake by its own name: a shape alone would only know that there is no pixel format for it.
  for (const auto& [name, extent] : {std::pair("width", width_), std::pair("height", height_),
                                     std::pair("featureChannels", channels_), std::pair("numberOfImages", images_)}) {
    if (extent == 0) bnns::fail_invalid("%s is 0, expected at least 1", name);
  }
  bnns::mps::PixelType type;
  if (!bnns::mps::pixel_type(format_, &type)) {
    bnns::fail_invalid("channelFormat is %s (%zu), expected Unorm8, Unorm16, Float16 or Float32%s",
                       bnns::mps::name_of(format_), static_cast<size_t>(format_),
                       format_ == ImageFeatureChannelFormatNone ? ": it was not set" : "");
  }
  bnns::mps::check_shape(ImageAccess::shape(*this));
  return true;
}

Image* Image::init(MTL::Device* device, const ImageDescriptor* descriptor) {
  const bool ok = bnns::mps::protect("MPSImage init", false, [&] {
    if (!descriptor) bnns::fail_invalid("descriptor is null");
    return describe(device, *descriptor);
  });
  if (ok) return this;
  release();
  return nullptr;
}

Image* Image::init(MTL::Texture* texture, NS::UInteger featureChannels) {
  const bool ok = bnns::mps::protect("MPSImage init", false, [&] {
    auto* ours = dynamic_cast<bnns::mps::TextureImpl*>(texture);
    if (!ours) bnns::fail_invalid("texture is null or was not made by this library");
    const bnns::mps::TextureShape& shape = ours->shape();
    const bnns::mps::PixelLayout layout = bnns::mps::layout_of(shape.format);
    if (featureChannels == 0 || ImageAccess::lanes(featureChannels) != layout.lanes) {
      bnns::fail_invalid("featureChannels is %zu, but texels have %d lanes", featureChannels, layout.lanes);
    }
    const size_t slices = ImageAccess::slices(featureChannels);
    if (shape.length % slices != 0) {
      bnns::fail_invalid("array length is %zu, expected a multiple of %zu = slices of %zu channels", shape.length,
                         slices, featureChannels);
    }
    device_ = texture->device();
    width_ = shape.width;
    height_ = shape.height;
    channels_ = featureChannels;
    images_ = shape.length / slices;
    format_ = bnns::mps::channel_format(layout.type);
    usage_ = shape.usage;
    texture_.store(texture->retain(), std::memory_order_release);
    return true;
  });
  if (ok) return this;
  release();
  return nullptr;
}

Image::~Image() {
  if (MTL::Texture* texture = texture_.load(std::memory_order_acquire)) texture->release();
}

MTL::PixelFormat Image::pixelFormat() const {
  return bnns::mps::pixel_format(format_, channels_);
}

MTL::TextureType Image::textureType() const {
  return images_ * ImageAccess::slices(channels_) == 1 ? MTL::TextureType2D : MTL::TextureType2DArray;
}

NS::UInteger Image::precision() const {
  switch (format_) {
    case ImageFeatureChannelFormatFloat32:
      return 24;
    case ImageFeatureChannelFormatFloat16:
      return 11;
    case ImageFeatureChannelFormatUnorm16:
      return 16;
    default:
      return 8;
  }
}

NS::UInteger Image::pixelSize() const {
  return ImageAccess::shape(*this).texel_bytes();
}

NS::UInteger Image::resourceSize() const {
  return ImageAccess::bytes(*this);
}

MTL::Texture* Image::texture() {
  return bnns::mps::protect("MPSImage texture", static_cast<MTL::Texture*>(nullptr), [&]() -> MTL::Texture* {
    if (isTemporary() && !ImageAccess::has_memory(*this)) {
      bnns::fail_invalid("the temporary image has no memory yet, or no longer");
    }
    return &ImageAccess::texture(*this);
  });
}

void Image::setLabel(NS::String* label) {
  label_ = NS::RetainPtr(label);
}

void Image::synchronize(MTL::CommandBuffer* commandBuffer) {
  bnns::mps::protect("MPSImage synchronize", 0, [&] {
    ImageAccess::check_usable(*this, "image", bnns::mps::open_buffer(commandBuffer));
    return 0;
  });
}

const char* Image::className() const noexcept {
  return "MPSImage";
}

}  // namespace MPS
