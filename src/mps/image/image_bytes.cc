// readBytes and writeBytes: between a caller's HWC or CHW array and the image's slices of four channels.
//
// Elements keep their bits. Memory of a device is copied through a host buffer, the rows of a region slice by slice;
// writing part of a device's image reads it first.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "src/mps/foundation/guard.h"
#include "src/mps/image/image.h"

namespace MPS {
namespace {

using bnns::fail_invalid;
using bnns::mps::ImageAccess;
using bnns::mps::TextureImpl;

// Where element (y, x, c) of the region lies in the caller's array, in bytes.
struct ArrayLayout {
  size_t row = 0, pixel = 0, channel = 0, image = 0;
};

struct Transfer {
  DataLayout layout;
  size_t row_bytes, image_bytes;  // 0: without gaps
  size_t pixel_bytes;             // 0: without gaps
  MTL::Region region;
  size_t channel, channels, image;  // first channel, number of channels, first image
};

void check(const Image& image, const void* data, const Transfer& t) {
  if (image.isTemporary()) fail_invalid("a temporary image has private storage: the CPU cannot reach it");
  if (!data) fail_invalid("data is null");
  if (t.layout != DataLayoutHeightxWidthxFeatureChannels && t.layout != DataLayoutFeatureChannelsxHeightxWidth) {
    fail_invalid("data layout is %zu, expected 0 or 1", static_cast<size_t>(t.layout));
  }
  const auto inside = [](size_t origin, size_t size, size_t extent) {
    return origin <= extent && size <= extent - origin;
  };
  const MTL::Origin& o = t.region.origin;
  const MTL::Size& s = t.region.size;
  if (!inside(o.x, s.width, image.width()) || !inside(o.y, s.height, image.height()) || o.z != 0) {
    fail_invalid("region %zu,%zu,%zu %zux%zu is not inside %zux%zu", o.x, o.y, o.z, s.width, s.height, image.width(),
                 image.height());
  }
  if (!inside(t.image, s.depth, image.numberOfImages())) {
    fail_invalid("images %zu to %zu + %zu are not inside %zu", t.image, t.image, s.depth, image.numberOfImages());
  }
  if (t.channel % 4 != 0 || t.channels == 0 || (t.channel != 0 && t.channels % 4 != 0) ||
      !inside(t.channel, t.channels, image.featureChannels())) {
    fail_invalid("channels %zu + %zu of %zu: the offset and, unless it is 0, the count are multiples of 4", t.channel,
                 t.channels, image.featureChannels());
  }
}

// Throws where so many steps leave the address space: their product would wrap.
void check_reach(const char* name, size_t bytes, size_t steps) {
  if (steps > 1 && bytes > PTRDIFF_MAX / steps)
    fail_invalid("%s is %zu, too large for %zu of them", name, bytes, steps);
}

ArrayLayout layout_of(const Transfer& t, size_t element) {
  const MTL::Size& s = t.region.size;
  ArrayLayout a;
  const bool hwc = t.layout == DataLayoutHeightxWidthxFeatureChannels;
  const size_t pixel = hwc ? t.channels * element : element;
  a.pixel = t.pixel_bytes ? t.pixel_bytes : pixel;
  if (a.pixel < pixel) fail_invalid("bytesPerColumn is %zu, expected at least %zu", a.pixel, pixel);
  check_reach("bytesPerColumn", a.pixel, s.width);
  const size_t row = s.width == 0 ? 0 : (s.width - 1) * a.pixel + pixel;
  a.row = t.row_bytes ? t.row_bytes : s.width * a.pixel;
  if (s.height > 1 && a.row < row) fail_invalid("bytesPerRow is %zu, expected at least %zu", a.row, row);
  check_reach("bytesPerRow", a.row, s.height * (hwc ? 1 : std::max<size_t>(t.channels, 1)));
  a.channel = hwc ? element : a.row * s.height;
  const size_t all = hwc ? a.row * s.height : a.channel * t.channels;
  a.image = t.image_bytes ? t.image_bytes : all;
  if (s.depth > 1 && a.image < all) fail_invalid("bytesPerImage is %zu, expected at least %zu", a.image, all);
  check_reach("bytesPerImage", a.image, s.depth);
  return a;
}

// One row of one slice: texel x's lane l is the array's element (x, l).
template <size_t kBytes, bool kToArray, class Array>
void copy_row(Array* array, const ArrayLayout& a, char* texels, size_t texel_bytes, size_t width, size_t lanes) {
  for (size_t x = 0; x < width; ++x) {
    for (size_t l = 0; l < lanes; ++l) {
      auto* element = array + x * a.pixel + l * a.channel;
      char* lane = texels + x * texel_bytes + l * kBytes;
      if constexpr (kToArray) {
        std::memcpy(element, lane, kBytes);
      } else {
        std::memcpy(lane, element, kBytes);
      }
    }
  }
}

template <bool kToArray, class Array>
void transfer(Image& image, Array* data, const Transfer& t) {
  check(image, data, t);
  const MTL::Size& s = t.region.size;
  if (s.width == 0 || s.height == 0 || s.depth == 0) return;
  TextureImpl& texture = ImageAccess::texture(image);
  const size_t texel_bytes = texture.shape().texel_bytes();
  const size_t element = texel_bytes / static_cast<size_t>(ImageAccess::lanes(image.featureChannels()));
  const ArrayLayout a = layout_of(t, element);
  const auto copy = element == 4   ? copy_row<4, kToArray, Array>
                    : element == 2 ? copy_row<2, kToArray, Array>
                                   : copy_row<1, kToArray, Array>;
  auto& backend = texture.device_impl().backend();
  const size_t slices = ImageAccess::slices(image.featureChannels());
  const size_t texture_row = image.width() * texel_bytes;
  std::vector<char> staging(backend.is_host() ? 0 : s.height * texture_row);

  for (size_t n = 0; n < s.depth; ++n) {
    for (size_t c = 0; c < t.channels; c += 4) {
      const size_t slice = ImageAccess::first_slice(image) + (t.image + n) * slices + (t.channel + c) / 4;
      char* rows = texture.row(slice, t.region.origin.y);
      char* host = rows;
      if (!backend.is_host()) {
        host = staging.data();
        backend.copy_to_host(host, rows, staging.size());
      }
      for (size_t y = 0; y < s.height; ++y) {
        copy(data + n * a.image + c * a.channel + y * a.row, a,
             host + y * texture_row + t.region.origin.x * texel_bytes, texel_bytes, s.width,
             t.channels - c < 4 ? t.channels - c : 4);
      }
      if (!kToArray && !backend.is_host()) backend.copy_to_device(rows, host, staging.size());
    }
  }
}

Transfer whole(const Image& image, DataLayout layout, size_t index) {
  return {layout, 0, 0, 0, MTL::Region(0, 0, image.width(), image.height()), 0, image.featureChannels(), index};
}

void read(const Image& image, void* data, const Transfer& t) {
  bnns::mps::protect("MPSImage readBytes", 0, [&] {
    // Memory is allocated at first use even by a read: the image is not changed by that.
    transfer<true>(const_cast<Image&>(image), static_cast<char*>(data), t);
    return 0;
  });
}

void write(Image& image, const void* data, const Transfer& t) {
  bnns::mps::protect("MPSImage writeBytes", 0, [&] {
    transfer<false>(image, static_cast<const char*>(data), t);
    return 0;
  });
}

}  // namespace

void Image::readBytes(void* data, DataLayout layout, NS::UInteger imageIndex) const {
  read(*this, data, whole(*this, layout, imageIndex));
}

void Image::readBytes(void* data, DataLayout layout, NS::UInteger bytesPerRow, MTL::Region region,
                      ImageReadWriteParams c, NS::UInteger imageIndex) const {
  readBytes(data, layout, bytesPerRow, 0, region, c, imageIndex);
}

void Image::readBytes(void* data, DataLayout layout, NS::UInteger bytesPerRow, NS::UInteger bytesPerImage,
                      MTL::Region region, ImageReadWriteParams c, NS::UInteger imageIndex) const {
  read(*this, data,
       {layout, bytesPerRow, bytesPerImage, 0, region, c.featureChannelOffset, c.numberOfFeatureChannelsToReadWrite,
        imageIndex});
}

void Image::writeBytes(const void* data, DataLayout layout, NS::UInteger imageIndex) {
  write(*this, data, whole(*this, layout, imageIndex));
}

void Image::writeBytes(const void* data, DataLayout layout, NS::UInteger bytesPerRow, MTL::Region region,
                       ImageReadWriteParams c, NS::UInteger imageIndex) {
  writeBytes(data, layout, 0, bytesPerRow, 0, region, c, imageIndex);
}

void Image::writeBytes(const void* data, DataLayout layout, NS::UInteger bytesPerRow, NS::UInteger bytesPerImage,
                       MTL::Region region, ImageReadWriteParams c, NS::UInteger imageIndex) {
  writeBytes(data, layout, 0, bytesPerRow, bytesPerImage, region, c, imageIndex);
}

void Image::writeBytes(const void* data, DataLayout layout, NS::UInteger bytesPerColumn, NS::UInteger bytesPerRow,
                       NS::UInteger bytesPerImage, MTL::Region region, ImageReadWriteParams c,
                       NS::UInteger imageIndex) {
  write(*this, data,
        {layout, bytesPerRow, bytesPerImage, bytesPerColumn, region, c.featureChannelOffset,
         c.numberOfFeatureChannelsToReadWrite, imageIndex});
}

}  // namespace MPS
