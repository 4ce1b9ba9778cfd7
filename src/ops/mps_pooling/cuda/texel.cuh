// Texels of an image on the device: one vector access where the type is f32 or f16 with four lanes, else lane by lane.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "src/ops/mps_pooling/window.h"

namespace bnns::mps {

struct DevicePlane {
  void* data;
  int32_t width, stride, lanes;
};

__device__ __forceinline__ DevicePlane plane_of(const ImageView& image, int64_t n, int64_t slice, int32_t lanes) {
  const int64_t texels = (n * image.slices + slice) * image.height * image.width;
  return {static_cast<char*>(image.data) + texels * image.lanes * static_cast<int64_t>(bytes_of(image.type)),
          static_cast<int32_t>(image.width), image.lanes, lanes};
}

__device__ __forceinline__ float load_lane(const void* data, PixelType type, int64_t i) {
  switch (type) {
    case PixelType::f32:
      return static_cast<const float*>(data)[i];
    case PixelType::f16:
      return __half2float(static_cast<const __half*>(data)[i]);
    case PixelType::unorm8:
      return static_cast<float>(static_cast<const uint8_t*>(data)[i]) / 255.0f;
    default:
      return static_cast<float>(static_cast<const uint16_t*>(data)[i]) / 65535.0f;
  }
}

__device__ __forceinline__ void store_lane(void* data, PixelType type, int64_t i, float v) {
  const float unit = v >= 1.0f ? 1.0f : v > 0.0f ? v : 0.0f;  // NaN becomes 0
  switch (type) {
    case PixelType::f32:
      static_cast<float*>(data)[i] = v;
      return;
    case PixelType::f16:
      static_cast<__half*>(data)[i] = __float2half_rn(v);
      return;
    case PixelType::unorm8:
      static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(rintf(unit * 255.0f));
      return;
    default:
      static_cast<uint16_t*>(data)[i] = static_cast<uint16_t>(rintf(unit * 65535.0f));
  }
}

// kType with all four lanes: one vector access. kWhole false: any type, any number of lanes.
template <PixelType kType, bool kWhole>
__device__ __forceinline__ Texel read_texel(const DevicePlane& p, PixelType type, int32_t y, int32_t x) {
  const int64_t at = static_cast<int64_t>(y) * p.width + x;
  Texel t;
  if constexpr (kWhole && kType == PixelType::f32) {
    const float4 v = __ldg(static_cast<const float4*>(p.data) + at);
    t.v[0] = v.x, t.v[1] = v.y, t.v[2] = v.z, t.v[3] = v.w;
  } else if constexpr (kWhole && kType == PixelType::f16) {
    const uint2 v = __ldg(static_cast<const uint2*>(p.data) + at);
    const float2 a = __half22float2(*reinterpret_cast<const __half2*>(&v.x));
    const float2 b = __half22float2(*reinterpret_cast<const __half2*>(&v.y));
    t.v[0] = a.x, t.v[1] = a.y, t.v[2] = b.x, t.v[3] = b.y;
  } else {
#pragma unroll
    for (int l = 0; l < 4; ++l) t.v[l] = l < p.lanes ? load_lane(p.data, type, at * p.stride + l) : 0.0f;
  }
  return t;
}

template <PixelType kType, bool kWhole>
__device__ __forceinline__ void write_texel(const DevicePlane& p, PixelType type, int32_t y, int32_t x,
                                            const Texel& t) {
  const int64_t at = static_cast<int64_t>(y) * p.width + x;
  if constexpr (kWhole && kType == PixelType::f32) {
    static_cast<float4*>(p.data)[at] = make_float4(t.v[0], t.v[1], t.v[2], t.v[3]);
  } else if constexpr (kWhole && kType == PixelType::f16) {
    const __half2 a = __floats2half2_rn(t.v[0], t.v[1]), b = __floats2half2_rn(t.v[2], t.v[3]);
    static_cast<uint2*>(p.data)[at] =
        make_uint2(*reinterpret_cast<const uint32_t*>(&a), *reinterpret_cast<const uint32_t*>(&b));
  } else {
    for (int l = 0; l < p.lanes; ++l) store_lane(p.data, type, at * p.stride + l, t.v[l]);
  }
}

__device__ __forceinline__ int32_t lanes_of(const PoolEncode& e, int32_t slice) {
  const int64_t left = e.channels - 4 * static_cast<int64_t>(slice);
  return left < 4 ? static_cast<int32_t>(left) : 4;
}

}  // namespace bnns::mps
