// Texels of an image between storage and f32. Only the lanes that exist are touched; others read as 0.
#pragma once

#include <cmath>
#include <cstring>

#include "src/core/half.h"
#include "src/ops/mps_pooling/window.h"

namespace bnns::mps {

// A plane of texels: one slice of one image, from channel 4 * slice on. `lanes` of each texel belong to the encode.
struct Plane {
  unsigned char* data = nullptr;
  PixelType type = PixelType::f32;
  int64_t width = 0;
  int32_t stride = 4, lanes = 4;  // stored lanes per texel; lanes that are read or written

  size_t offset(int64_t y, int64_t x) const { return static_cast<size_t>((y * width + x) * stride); }
  Texel read(int64_t y, int64_t x) const;
  void write(int64_t y, int64_t x, const Texel& t) const;
};

inline Plane plane_of(const ImageView& image, int64_t n, int64_t slice, int32_t lanes) {
  const size_t texels = static_cast<size_t>((n * image.slices + slice) * image.height * image.width);
  return {static_cast<unsigned char*>(image.data) + texels * static_cast<size_t>(image.lanes) * bytes_of(image.type),
          image.type, image.width, image.lanes, lanes};
}

inline float load_pixel(const unsigned char* data, PixelType type, size_t index) {
  switch (type) {
    case PixelType::f32: {
      float value;
      std::memcpy(&value, data + 4 * index, 4);
      return value;
    }
    case PixelType::f16: {
      uint16_t value;
      std::memcpy(&value, data + 2 * index, 2);
      return half_to_float(value);
    }
    case PixelType::unorm8:
      return static_cast<float>(data[index]) / 255.0f;
    case PixelType::unorm16: {
      uint16_t value;
      std::memcpy(&value, data + 2 * index, 2);
      return static_cast<float>(value) / 65535.0f;
    }
  }
  return 0;
}

// Round to nearest even; unorm clamps to [0, 1], NaN becomes 0.
inline void store_pixel(unsigned char* data, PixelType type, size_t index, float value) {
  const auto unorm = [&](float top) {
    const float clamped = value >= 1.0f ? 1.0f : value > 0.0f ? value : 0.0f;
    return std::nearbyint(clamped * top);
  };
  switch (type) {
    case PixelType::f32:
      std::memcpy(data + 4 * index, &value, 4);
      return;
    case PixelType::f16: {
      const uint16_t half = float_to_half(value);
      std::memcpy(data + 2 * index, &half, 2);
      return;
    }
    case PixelType::unorm8:
      data[index] = static_cast<unsigned char>(unorm(255.0f));
      return;
    case PixelType::unorm16: {
      const auto word = static_cast<uint16_t>(unorm(65535.0f));
      std::memcpy(data + 2 * index, &word, 2);
      return;
    }
  }
}

inline Texel Plane::read(int64_t y, int64_t x) const {
  Texel t = {{0, 0, 0, 0}};
  const size_t at = offset(y, x);
  if (type == PixelType::f32 && lanes == 4) {
    std::memcpy(&t, data + 4 * at, 16);
  } else {
    for (int32_t l = 0; l < lanes; ++l) t.v[l] = load_pixel(data, type, at + static_cast<size_t>(l));
  }
  return t;
}

inline void Plane::write(int64_t y, int64_t x, const Texel& t) const {
  const size_t at = offset(y, x);
  if (type == PixelType::f32 && lanes == 4) {
    std::memcpy(data + 4 * at, &t, 16);
  } else {
    for (int32_t l = 0; l < lanes; ++l) store_pixel(data, type, at + static_cast<size_t>(l), t.v[l]);
  }
}

}  // namespace bnns::mps
