#include "src/mps/image/texture.h"

#include <cstdint>

#include "src/mps/foundation/guard.h"

namespace bnns::mps {

PixelLayout layout_of(MTL::PixelFormat format) {
  switch (format) {
    case MTL::PixelFormatR8Unorm:
      return {PixelType::unorm8, 1};
    case MTL::PixelFormatRG8Unorm:
      return {PixelType::unorm8, 2};
    case MTL::PixelFormatRGBA8Unorm:
      return {PixelType::unorm8, 4};
    case MTL::PixelFormatR16Unorm:
      return {PixelType::unorm16, 1};
    case MTL::PixelFormatRG16Unorm:
      return {PixelType::unorm16, 2};
    case MTL::PixelFormatRGBA16Unorm:
      return {PixelType::unorm16, 4};
    case MTL::PixelFormatR16Float:
      return {PixelType::f16, 1};
    case MTL::PixelFormatRG16Float:
      return {PixelType::f16, 2};
    case MTL::PixelFormatRGBA16Float:
      return {PixelType::f16, 4};
    case MTL::PixelFormatR32Float:
      return {PixelType::f32, 1};
    case MTL::PixelFormatRG32Float:
      return {PixelType::f32, 2};
    case MTL::PixelFormatRGBA32Float:
      return {PixelType::f32, 4};
    case MTL::PixelFormatInvalid:
      break;
  }
  return {};
}

size_t TextureShape::texel_bytes() const {
  const PixelLayout layout = layout_of(format);
  return bytes_of(layout.type) * static_cast<size_t>(layout.lanes);
}

void check_shape(const TextureShape& shape) {
  if (layout_of(shape.format).lanes == 0) {
    fail_invalid("pixelFormat is %zu%s, expected R, RG or RGBA of 8Unorm, 16Unorm, 16Float or 32Float",
                 static_cast<size_t>(shape.format), shape.format == MTL::PixelFormatInvalid ? " (Invalid)" : "");
  }
  if (shape.width == 0 || shape.height == 0 || shape.length == 0) {
    fail_invalid("width, height and array length are %zu, %zu, %zu, expected at least 1", shape.width, shape.height,
                 shape.length);
  }
  // Far below what int64 coordinates can express, far above any memory.
  constexpr size_t kMaxBytes = size_t{1} << 46;
  size_t bytes = shape.texel_bytes();
  for (const size_t extent : {shape.width, shape.height, shape.length}) {
    if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > kMaxBytes) {
      fail_invalid("%zu x %zu texels in %zu slices are too many", shape.width, shape.height, shape.length);
    }
  }
}

TextureShape shape_of(const MTL::TextureDescriptor& descriptor) {
  TextureShape shape;
  shape.type = descriptor.textureType();
  shape.format = descriptor.pixelFormat();
  shape.width = descriptor.width();
  shape.height = descriptor.height();
  shape.length = descriptor.arrayLength();
  shape.storage = descriptor.storageMode();
  shape.usage = descriptor.usage();
  if (shape.type != MTL::TextureType2D && shape.type != MTL::TextureType2DArray) {
    fail_unsupported("texture type %zu", static_cast<size_t>(shape.type));
  }
  if (shape.type == MTL::TextureType2D && shape.length != 1) {
    fail_invalid("array length is %zu, expected 1 for a 2D texture", shape.length);
  }
  check_shape(shape);
  return shape;
}

TextureImpl::TextureImpl(DeviceImpl& device, const TextureShape& shape, Block block, std::shared_ptr<Arena> arena)
    : device_(device), shape_(shape), block_(block), arena_(std::move(arena)) {}

TextureImpl::~TextureImpl() {
  if (arena_) {
    arena_->put(block_);
  } else {
    device_.backend().free(block_.data, block_.bytes);
  }
}

namespace {

// Throws unless the call names texels of the texture.
void check_copy(const TextureShape& shape, const void* bytes, size_t bytes_per_row, const MTL::Region& region,
                size_t level, size_t slice) {
  if (!bytes) fail_invalid("bytes is null");
  if (level != 0) fail_invalid("level is %zu, expected 0", level);
  if (slice >= shape.length) fail_invalid("slice is %zu, expected less than %zu", slice, shape.length);
  const MTL::Origin& o = region.origin;
  const MTL::Size& s = region.size;
  if (o.x > shape.width || s.width > shape.width - o.x || o.y > shape.height || s.height > shape.height - o.y ||
      o.z != 0 || s.depth > 1) {
    fail_invalid("region %zu,%zu,%zu %zux%zux%zu is not inside %zux%zu", o.x, o.y, o.z, s.width, s.height, s.depth,
                 shape.width, shape.height);
  }
  if (s.height > 1 && bytes_per_row < s.width * shape.texel_bytes()) {
    fail_invalid("bytesPerRow is %zu, expected at least %zu", bytes_per_row, s.width * shape.texel_bytes());
  }
  if (s.height > 1 && bytes_per_row > PTRDIFF_MAX / s.height) {
    fail_invalid("bytesPerRow is %zu, too large for %zu rows", bytes_per_row, s.height);
  }
}

}  // namespace

void TextureImpl::getBytes(void* bytes, NS::UInteger bytesPerRow, NS::UInteger, MTL::Region region, NS::UInteger level,
                           NS::UInteger slice) const {
  protect("getBytes", 0, [&] {
    check_copy(shape_, bytes, bytesPerRow, region, level, slice);
    for (size_t y = 0; y < region.size.height; ++y) {
      device_.backend().copy_to_host(static_cast<char*>(bytes) + y * bytesPerRow,
                                     row(slice, region.origin.y + y) + region.origin.x * shape_.texel_bytes(),
                                     region.size.width * shape_.texel_bytes());
    }
    return 0;
  });
}

void TextureImpl::replaceRegion(MTL::Region region, NS::UInteger level, NS::UInteger slice, const void* bytes,
                                NS::UInteger bytesPerRow, NS::UInteger) {
  protect("replaceRegion", 0, [&] {
    check_copy(shape_, bytes, bytesPerRow, region, level, slice);
    for (size_t y = 0; y < region.size.height; ++y) {
      device_.backend().copy_to_device(row(slice, region.origin.y + y) + region.origin.x * shape_.texel_bytes(),
                                       static_cast<const char*>(bytes) + y * bytesPerRow,
                                       region.size.width * shape_.texel_bytes());
    }
    return 0;
  });
}

}  // namespace bnns::mps

namespace MTL {

Texture::~Texture() = default;

const char* Texture::className() const noexcept {
  return "MTLTexture";
}

TextureDescriptor* TextureDescriptor::alloc() {
  return new TextureDescriptor;
}

TextureDescriptor* TextureDescriptor::init() {
  return this;
}

TextureDescriptor* TextureDescriptor::texture2DDescriptor(PixelFormat format, NS::UInteger width, NS::UInteger height,
                                                          bool) {
  TextureDescriptor* made = alloc()->init()->autorelease();
  made->format_ = format;
  made->width_ = width;
  made->height_ = height;
  return made;
}

const char* TextureDescriptor::className() const noexcept {
  return "MTLTextureDescriptor";
}

NS::Object* TextureDescriptor::copyObject() const {
  auto* made = alloc()->init();
  made->type_ = type_;
  made->format_ = format_;
  made->width_ = width_;
  made->height_ = height_;
  made->length_ = length_;
  made->storage_ = storage_;
  made->usage_ = usage_;
  return made;
}

}  // namespace MTL

namespace MTLX {

void* contents(const MTL::Texture* texture) {
  const auto* ours = dynamic_cast<const bnns::mps::TextureImpl*>(texture);
  return ours ? ours->data() : nullptr;
}

}  // namespace MTLX
