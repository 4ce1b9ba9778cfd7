// The arithmetic of the separable kernels' axes, for host and device (mps_pooling/cuda/separable_block.h): bytes,
// numbers, windows on a pixel, taps inside.
#pragma once

#include "src/ops/mps_pooling/cuda/separable.h"
#include "src/ops/mps_pooling/window.h"

#ifndef __CUDA_ARCH__
#include <cmath>
#endif

#define BNNS_PRAGMA(text) _Pragma(#text)
#ifdef __CUDACC__
#define BNNS_UNROLL(times) BNNS_PRAGMA(unroll times)
#else
#define BNNS_UNROLL(times)
#endif

namespace bnns::mps {

// ---- four bytes, one of each channel --------------------------------------------------------------------------------

inline constexpr uint32_t kNoByte = 255;  // no tap, no column

// 0xff in each byte that is equal.
BNNS_HOST_DEVICE uint32_t equal_bytes(uint32_t a, uint32_t b) {
#ifdef __CUDA_ARCH__
  return __vcmpeq4(a, b);
#else
  uint32_t mask = 0;
  for (int l = 0; l < 4; ++l) mask |= ((a >> 8 * l & 255) == (b >> 8 * l & 255) ? 255u : 0u) << 8 * l;
  return mask;
#endif
}
BNNS_HOST_DEVICE bool some_equal_byte(uint32_t a, uint32_t b) {
  const uint32_t other = a ^ b;
  return ((other - 0x01010101u) & ~other & 0x80808080u) != 0;
}
// Byte l of `four`, times 256, plus a byte.
BNNS_HOST_DEVICE uint32_t byte_above(uint32_t four, int l, uint32_t byte) {
#ifdef __CUDA_ARCH__
  return __byte_perm(four, byte, 0x5504u | static_cast<uint32_t>(l) << 4);
#else
  return (four >> 8 * l & 255) << 8 | byte;
#endif
}
BNNS_HOST_DEVICE uint32_t four_bytes(uint32_t byte) {
  return byte * 0x01010101u;
}

// ---- numbers --------------------------------------------------------------------------------------------------------

BNNS_HOST_DEVICE int32_t least(int32_t a, int32_t b) {
  return a < b ? a : b;
}
BNNS_HOST_DEVICE int32_t most(int32_t a, int32_t b) {
  return a > b ? a : b;
}
// The greater one; NaN loses.
BNNS_HOST_DEVICE float greater(float a, float b) {
#ifdef __CUDA_ARCH__
  return fmaxf(a, b);
#else
  return b > a || a != a ? b : a;
#endif
}
BNNS_HOST_DEVICE float root(float v) {
#ifdef __CUDA_ARCH__
  return sqrtf(v);
#else
  return std::sqrt(v);
#endif
}
BNNS_HOST_DEVICE float infinity() {
  return __builtin_huge_valf();
}
BNNS_HOST_DEVICE float not_a_number() {
  return __builtin_nanf("");
}

// Windows that reach pixel p, of all; clamp: an outermost pixel also belongs to those that reach beyond it.
struct Windows {
  int32_t first, last;
};
BNNS_HOST_DEVICE Windows windows_on(int32_t p, const SeparableAxis& a, bool clamp) {
  const int32_t high = p - a.first, low = high - (a.extent - 1);
  Windows w{low <= 0 ? 0 : a.by_stride.divide(low + a.stride - 1), high < 0 ? -1 : a.by_stride.divide(high)};
  if (clamp && p == 0) w.first = 0;
  if (clamp && p == a.size - 1) w.last = a.windows - 1;
  w.last = least(w.last, a.windows - 1);
  return w;
}

// Taps [begin, end) of the window from `first` on that lie inside.
struct Inside {
  int32_t begin, end;
};
BNNS_HOST_DEVICE Inside taps_inside(int32_t first, const SeparableAxis& a) {
  int32_t begin = first >= 0 ? 0 : -first, end = a.size - first;  // in pixels, then in taps
  if (a.dilation != 1) begin = (begin + a.dilation - 1) / a.dilation, end = (end + a.dilation - 1) / a.dilation;
  begin = least(begin, a.kernel), end = least(end, a.kernel);
  return {begin, most(end, begin)};
}
BNNS_HOST_DEVICE bool overhangs(int32_t first, const SeparableAxis& a) {
  return first < 0 || first + a.extent > a.size;
}
BNNS_HOST_DEVICE int32_t into(int32_t p, const SeparableAxis& a) {
  return most(0, least(p, a.size - 1));
}
BNNS_HOST_DEVICE int32_t divisor_on(int32_t first, const SeparableAxis& a, bool clamp) {
  if (!clamp) return a.kernel;
  return most(least(first + a.kernel, a.size + a.zero_pad) - most(first, -a.zero_pad), 0);
}

// How many taps resolve to pixel p, of a clamped window without dilation that reaches it.
BNNS_HOST_DEVICE float weight_on(int32_t p, int32_t first, const SeparableAxis& a) {
  const int32_t begin = p == 0 ? 0 : p - first, end = p == a.size - 1 ? a.kernel : p - first + 1;
  return static_cast<float>(least(end, a.kernel) - most(begin, 0));
}

// One source column over the rows of a window: a maximum, with its tap where it is a gradient's, or a sum.
template <PoolKind kKind, bool kRoutes>
struct SeparableColumn {
  Texel v;
  uint32_t tap[4];

  BNNS_HOST_DEVICE void begin() {
    for (int l = 0; l < 4; ++l) v.v[l] = kKind != PoolKind::max ? 0.0f : kRoutes ? -infinity() : not_a_number();
    for (int l = 0; l < 4; ++l) tap[l] = kNoByte;
  }
  BNNS_HOST_DEVICE void take(const Texel& t, int32_t i) {
    for (int l = 0; l < 4; ++l) {
      if constexpr (kRoutes) {
        const bool better = t.v[l] > v.v[l];
        v.v[l] = better ? t.v[l] : v.v[l], tap[l] = better ? static_cast<uint32_t>(i) : tap[l];
      } else if constexpr (kKind == PoolKind::max) {
        v.v[l] = greater(v.v[l], t.v[l]);
      } else {
        v.v[l] += kKind == PoolKind::average ? t.v[l] : t.v[l] * t.v[l];
      }
    }
  }
};

}  // namespace bnns::mps
