// The kernels of channels as lanes: register tiles of vectors by pixels, or by taps, with a broadcast source.

#include "src/ops/convolution/few/lanes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/few/lanes_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/ops/convolution/winograd/winograd-inl.h"
#include "src/simd/dispatch.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace lanes {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Broadcasts are loaded anew for every tap: g++ 12 would else keep those that the next tap uses again, and the sums on
// the stack.
HWY_INLINE void ForgetLoads(const float*& at) {
  asm("" : "+r"(at));
}

constexpr size_t kVectors = HWY_TARGET == HWY_AVX3 ? 4 : 2;  // of a tile, at most

template <size_t kCount>
struct Count {
  static constexpr size_t value = kCount;
};
// Calls f with Count<min(vectors, kMost)>.
template <size_t kMost, class F>
HWY_INLINE void ForVectors(size_t vectors, F&& f) {
  if constexpr (kMost > 1) {
    if (vectors < kMost) return ForVectors<kMost - 1>(vectors, f);
  }
  f(Count<kMost>());
}

// How many sums per vector of channels fit the registers, besides those vectors and a broadcast.
constexpr size_t SumsFor(size_t vectors) {
  return ((HWY_TARGET == HWY_AVX3 ? 31 : 15) - vectors) / vectors;
}

// kPixels pixels by kCount vectors of channels.
template <size_t kCount, size_t kPixels, size_t kStep>
HWY_NOINLINE void SumTile(const LaneWindows& t, const float* HWY_RESTRICT x, const float* HWY_RESTRICT w, size_t width,
                          float* HWY_RESTRICT y) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V sum[kPixels * kCount];
  HWY_UNROLL(28)
  for (size_t i = 0; i < kPixels * kCount; ++i) sum[i] = hn::Zero(d);
  for (size_t c = 0; c < t.channels; ++c) {
    for (size_t ky = 0; ky < t.taps_y; ++ky) {
      const float* at = x + c * t.channel_stride + static_cast<ptrdiff_t>(ky) * t.tap_row;
      for (size_t kx = 0; kx < t.taps_x; ++kx, ++at, w += width) {
        ForgetLoads(at);
        V weight[kCount];
        HWY_UNROLL(4)
        for (size_t v = 0; v < kCount; ++v) weight[v] = hn::LoadU(d, w + v * lanes);
        HWY_UNROLL(14)
        for (size_t p = 0; p < kPixels; ++p) {
          const V b = hn::Set(d, at[p * kStep]);
          HWY_UNROLL(4)
          for (size_t v = 0; v < kCount; ++v) sum[p * kCount + v] = hn::MulAdd(weight[v], b, sum[p * kCount + v]);
        }
      }
    }
  }
  HWY_UNROLL(14)
  for (size_t p = 0; p < kPixels; ++p) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kCount; ++v) hn::StoreU(sum[p * kCount + v], d, y + p * width + v * lanes);
  }
}

// A row in tiles of one size, the one that wastes least; the last overlaps the one before, which it repeats.
template <size_t kCount, size_t kStep>
HWY_INLINE void SumRow(const LaneWindows& t, const float* x, const float* w, size_t width, float* y) {
  constexpr size_t kMost = SumsFor(kCount);
  constexpr size_t kSizes[] = {HWY_MIN(kMost, size_t{14}), HWY_MIN(kMost, size_t{10}), HWY_MIN(kMost, size_t{6}), 4, 1};
  constexpr decltype(&SumTile<kCount, 1, kStep>) kTiles[] = {
      &SumTile<kCount, kSizes[0], kStep>, &SumTile<kCount, kSizes[1], kStep>, &SumTile<kCount, kSizes[2], kStep>,
      &SumTile<kCount, HWY_MIN(kSizes[3], kMost), kStep>, &SumTile<kCount, 1, kStep>};
  size_t best = 4, cost = t.pixels;
  for (size_t i = 4; i-- > 0;) {
    // Small tiles load weights more often.
    const size_t tiles = (t.pixels + kSizes[i] - 1) / kSizes[i], all = tiles * kSizes[i];
    if (kSizes[i] <= t.pixels && all <= cost + (best == 4 ? t.pixels : 0)) best = i, cost = all;
  }
  const size_t size = kSizes[best];
  for (size_t p = 0; p < t.pixels; p += size) {
    const size_t first = HWY_MIN(p, t.pixels - size);
    kTiles[best](t, x + first * kStep, w, width, y + first * width);
  }
}

template <size_t kStep>
HWY_INLINE void SumRows(const LaneWindows& t, const float* w, size_t width, float* y) {
  const size_t lanes = hn::Lanes(D());
  for (size_t u = 0; u < t.rows; ++u, y += t.pixels * width) {
    const float* x = t.x + static_cast<ptrdiff_t>(u) * t.row_stride;
    for (size_t s = 0; s < width; s += kVectors * lanes) {
      ForVectors<kVectors>((width - s) / lanes, [&](auto count) HWY_ATTR {
        SumRow<decltype(count)::value, kStep>(t, x, w + s, width, y + s);
      });
    }
  }
}

void LanesSums(const LaneWindows& t, const float* w, size_t width, float* y) {
  (t.step == 1 ? &SumRows<1> : &SumRows<2>)(t, w, width, y);
}

// kRows rows of kTaps taps by kCount vectors of channels.
template <size_t kCount, size_t kRows, size_t kTaps, size_t kStep>
HWY_NOINLINE void DotTile(const LaneWindows& t, const float* HWY_RESTRICT x, const float* HWY_RESTRICT g, size_t width,
                          float* HWY_RESTRICT dw) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V sum[kRows * kTaps * kCount];
  HWY_UNROLL(28)
  for (size_t k = 0; k < kRows * kTaps; ++k) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kCount; ++v) sum[k * kCount + v] = hn::LoadU(d, dw + k * width + v * lanes);
  }
  for (size_t u = 0; u < t.rows; ++u) {
    const float* at = x + static_cast<ptrdiff_t>(u) * t.row_stride;
    for (size_t p = 0; p < t.pixels; ++p, at += kStep, g += width) {
      ForgetLoads(at);
      V gs[kCount];
      HWY_UNROLL(4)
      for (size_t v = 0; v < kCount; ++v) gs[v] = hn::LoadU(d, g + v * lanes);
      HWY_UNROLL(5)
      for (size_t i = 0; i < kRows; ++i) {
        const float* row = at + static_cast<ptrdiff_t>(i) * t.tap_row;
        HWY_UNROLL(7)
        for (size_t k = 0; k < kTaps; ++k) {
          const V b = hn::Set(d, row[k]);
          HWY_UNROLL(4)
          for (size_t v = 0; v < kCount; ++v) {
            V& s = sum[(i * kTaps + k) * kCount + v];
            s = hn::MulAdd(gs[v], b, s);
          }
        }
      }
    }
  }
  HWY_UNROLL(28)
  for (size_t k = 0; k < kRows * kTaps; ++k) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kCount; ++v) hn::StoreU(sum[k * kCount + v], d, dw + k * width + v * lanes);
  }
}

template <size_t kCount, size_t kTaps, size_t kStep>
HWY_INLINE void DotChannels(const LaneWindows& t, const float* g, size_t width, float* dw, LinesAhead& ahead) {
  constexpr size_t kRows = HWY_MAX(size_t{1}, HWY_MIN(kTaps, SumsFor(kCount) / kTaps));
  for (size_t c = 0; c < t.channels; ++c) {
    const auto run = [&](auto tile, size_t ky) {
      prefetch_some(ahead);
      tile(t, t.x + c * t.channel_stride + static_cast<ptrdiff_t>(ky) * t.tap_row, g, width,
           dw + (c * t.taps_y + ky) * kTaps * width);
    };
    size_t ky = 0;
    for (; ky + kRows <= t.taps_y; ky += kRows) run(&DotTile<kCount, kRows, kTaps, kStep>, ky);
    for (; ky < t.taps_y; ++ky) run(&DotTile<kCount, 1, kTaps, kStep>, ky);
  }
}

template <size_t kTaps, size_t kStep>
HWY_INLINE void DotLanes(const LaneWindows& t, const float* g, size_t width, float* dw, LinesAhead& ahead) {
  const size_t lanes = hn::Lanes(D());
  constexpr size_t kMost = SumsFor(kVectors) < kTaps ? 2 : kVectors;
  for (size_t s = 0; s < width; s += kMost * lanes) {
    ForVectors<kMost>((width - s) / lanes, [&](auto count) HWY_ATTR {
      DotChannels<decltype(count)::value, kTaps, kStep>(t, g + s, width, dw + s, ahead);
    });
  }
}

template <size_t kStep>
HWY_INLINE void DotTaps(const LaneWindows& t, const float* g, size_t width, float* dw, LinesAhead& ahead) {
  if (t.taps_x == 3) return DotLanes<3, kStep>(t, g, width, dw, ahead);
  if (t.taps_x == 5) return DotLanes<5, kStep>(t, g, width, dw, ahead);
  DotLanes<7, kStep>(t, g, width, dw, ahead);
}

void LanesDots(const LaneWindows& t, const float* g, size_t width, float* dw, LinesAhead& ahead) {
  t.step == 1 ? DotTaps<1>(t, g, width, dw, ahead) : DotTaps<2>(t, g, width, dw, ahead);
}

// Four pixels at a time: blocks of four channels turn into four pixels of a channel each.
void LanesTranspose(const float* HWY_RESTRICT from, size_t width, size_t pixels, size_t channels,
                    float* HWY_RESTRICT to, size_t stride) {
  const D d;
  const size_t lanes = hn::Lanes(d), whole = pixels / 4 * 4;
  for (size_t s = 0; s < channels; s += lanes) {
    for (size_t p = 0; p < whole && s + lanes <= channels; p += 4) {
      const float* at = from + p * width + s;
      V v0 = hn::LoadU(d, at), v1 = hn::LoadU(d, at + width), v2 = hn::LoadU(d, at + 2 * width),
        v3 = hn::LoadU(d, at + 3 * width);
      winograd::TransposeBlocks(v0, v1, v2, v3);
      float* out = to + s * stride + p;
      winograd::StoreBlocks(v0, out, 4 * stride);
      winograd::StoreBlocks(v1, out + stride, 4 * stride);
      winograd::StoreBlocks(v2, out + 2 * stride, 4 * stride);
      winograd::StoreBlocks(v3, out + 3 * stride, 4 * stride);
    }
    for (size_t r = s; r < HWY_MIN(channels, s + lanes); ++r) {
      for (size_t p = s + lanes <= channels ? whole : 0; p < pixels; ++p) to[r * stride + p] = from[p * width + r];
    }
  }
}

}  // namespace lanes
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void lanes_sums(const LaneWindows& windows, const float* w, size_t width, float* y) noexcept {
  BNNS_DISPATCH(lanes::LanesSums)(windows, w, width, y);
}
void lanes_dots(const LaneWindows& windows, const float* g, size_t width, float* dw, LinesAhead& ahead) noexcept {
  BNNS_DISPATCH(lanes::LanesDots)(windows, g, width, dw, ahead);
}
void lanes_transpose(const float* from, size_t width, size_t pixels, size_t channels, float* to,
                     size_t stride) noexcept {
  BNNS_DISPATCH(lanes::LanesTranspose)(from, width, pixels, channels, to, stride);
}

}  // namespace bnns
#endif
