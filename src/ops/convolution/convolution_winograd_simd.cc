// The transforms of Winograd's F(4x4, 3x3) (Lavin and Gray, 2015), with channels in the lanes.
//   V = B' d B    6x6 source pixels d of a tile
//   U = G g G'    3x3 weights g
//   Y = A' m A    4x4 target pixels of a tile, m = sum over channels of U * V, point by point
// Points 0, +-5/8, +-3/2 and infinity: a third of the rounding error of the usual 0, +-1, +-2, infinity (README.md),
// and all entries of B and A are exact in f32.
//
// Images are CHW, so pixels come four at a time from 4 x 4 transposes within 128-bit blocks: rows of channels are
// loaded straight into the block where they belong, which leaves eight shuffles for 64 values on AVX-512.

#include <hwy/cache_control.h>

#include <cstring>

#include "src/ops/convolution/convolution_winograd_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/convolution_winograd_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/ops/convolution/convolution_winograd-inl.h"
#include "src/simd/dispatch.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace winograd;

// Block b: the four floats at from + b * stride.
HWY_INLINE V LoadBlocks(const float* from, ptrdiff_t stride) {
  const D d;
  V v = hn::LoadDup128(d, from);
  for (size_t b = 1; b < kLanes / 4; ++b) {
    const auto first = hn::FirstN(d, 4 * b);  // a constant
    v = hn::IfThenElse(first, v, hn::LoadDup128(d, from + static_cast<ptrdiff_t>(b) * stride));
  }
  return v;
}

// Four floats from each of kLanes rows, as four vectors with a lane per row.
HWY_INLINE void LoadColumns(const float* from, ptrdiff_t stride, V& v0, V& v1, V& v2, V& v3) {
  v0 = LoadBlocks(from, 4 * stride);
  v1 = LoadBlocks(from + stride, 4 * stride);
  v2 = LoadBlocks(from + 2 * stride, 4 * stride);
  v3 = LoadBlocks(from + 3 * stride, 4 * stride);
  TransposeBlocks(v0, v1, v2, v3);
}

// ---- source -------------------------------------------------------------------------------------------------------

void WinogradGather(const float* HWY_RESTRICT from, size_t stride, size_t channels, size_t pixels,
                    float* HWY_RESTRICT to) {
  const D d;
  if (channels == kWinogradGroup && pixels >= 4) {
    for (size_t p = 0;;) {
      for (size_t c = 0; c < kWinogradGroup; c += kStep) {
        V v0, v1, v2, v3;
        LoadColumns(from + c * stride + p, static_cast<ptrdiff_t>(stride), v0, v1, v2, v3);
        float* at = to + p * kWinogradGroup + c;
        hn::StoreU(v0, d, at);
        hn::StoreU(v1, d, at + kWinogradGroup);
        hn::StoreU(v2, d, at + 2 * kWinogradGroup);
        hn::StoreU(v3, d, at + 3 * kWinogradGroup);
      }
      if (p + 4 == pixels) return;
      p = HWY_MIN(p + 4, pixels - 4);  // the last four overlap those before
    }
  }
  for (size_t p = 0; p < pixels; ++p) {
    for (size_t c = 0; c < kWinogradGroup; ++c) to[p * kWinogradGroup + c] = c < channels ? from[c * stride + p] : 0.0f;
  }
}

// B' along one axis.
HWY_INLINE void SourceAxis(V d0, V d1, V d2, V d3, V d4, V d5, V& v0, V& v1, V& v2, V& v3, V& v4, V& v5) {
  const D d;
  const V a = hn::Set(d, kA), b = hn::Set(d, kB), a2 = hn::Set(d, kA2), b2 = hn::Set(d, kB2);
  const V product = hn::Set(d, kA2 * kB2), sum = hn::Set(d, kA2 + kB2);
  v0 = hn::NegMulAdd(sum, d2, hn::MulAdd(product, d0, d4));
  v5 = hn::NegMulAdd(sum, d3, hn::MulAdd(product, d1, d5));
  const V even_a = hn::NegMulAdd(b2, d2, d4), odd_a = hn::NegMulAdd(b2, d1, d3);
  const V even_b = hn::NegMulAdd(a2, d2, d4), odd_b = hn::NegMulAdd(a2, d1, d3);
  v1 = hn::MulAdd(a, odd_a, even_a);
  v2 = hn::NegMulAdd(a, odd_a, even_a);
  v3 = hn::MulAdd(b, odd_b, even_b);
  v4 = hn::NegMulAdd(b, odd_b, even_b);
}

void WinogradSourceRow(const float* HWY_RESTRICT rows, size_t row_stride, size_t tiles, float* HWY_RESTRICT v,
                       size_t tile_stride, size_t point_stride) {
  const D d;
  constexpr size_t kAtOnce = 8;  // tiles whose columns are kept in L1
  HWY_ALIGN float columns[6][(4 * kAtOnce + 2) * kWinogradGroup];
  for (size_t t0 = 0; t0 < tiles; t0 += kAtOnce, rows += 4 * kAtOnce * kWinogradGroup) {
    const size_t some = HWY_MIN(kAtOnce, tiles - t0);
    for (size_t i = 0; i < (4 * some + 2) * kWinogradGroup; i += kStep) {
      const auto load = [&](size_t r) HWY_ATTR { return hn::LoadU(d, rows + r * row_stride + i); };
      V v0, v1, v2, v3, v4, v5;
      SourceAxis(load(0), load(1), load(2), load(3), load(4), load(5), v0, v1, v2, v3, v4, v5);
      hn::Store(v0, d, columns[0] + i);
      hn::Store(v1, d, columns[1] + i);
      hn::Store(v2, d, columns[2] + i);
      hn::Store(v3, d, columns[3] + i);
      hn::Store(v4, d, columns[4] + i);
      hn::Store(v5, d, columns[5] + i);
    }
    for (size_t t = 0; t < some; ++t, v += tile_stride) {
      for (size_t i = 0; i < 6; ++i) {
        for (size_t c = 0; c < kWinogradGroup; c += kStep) {
          const float* from = columns[i] + 4 * t * kWinogradGroup + c;
          const auto load = [&](size_t j) HWY_ATTR { return hn::Load(d, from + j * kWinogradGroup); };
          V v0, v1, v2, v3, v4, v5;
          SourceAxis(load(0), load(1), load(2), load(3), load(4), load(5), v0, v1, v2, v3, v4, v5);
          float* to = v + 6 * i * point_stride + c;
          hn::StoreU(v0, d, to);
          hn::StoreU(v1, d, to + point_stride);
          hn::StoreU(v2, d, to + 2 * point_stride);
          hn::StoreU(v3, d, to + 3 * point_stride);
          hn::StoreU(v4, d, to + 4 * point_stride);
          hn::StoreU(v5, d, to + 5 * point_stride);
        }
      }
    }
  }
}

// ---- weights ------------------------------------------------------------------------------------------------------

// G along one axis.
HWY_INLINE void WeightAxis(V g0, V g1, V g2, V& u0, V& u1, V& u2, V& u3, V& u4, V& u5) {
  const D d;
  constexpr float kOverA = 1 / (2 * kA2 * (kA2 - kB2)), kOverB = 1 / (2 * kB2 * (kB2 - kA2));
  u0 = hn::Mul(g0, hn::Set(d, 1 / (kA2 * kB2)));
  const V even_a = hn::MulAdd(g2, hn::Set(d, kA2 * kOverA), hn::Mul(g0, hn::Set(d, kOverA)));
  const V even_b = hn::MulAdd(g2, hn::Set(d, kB2 * kOverB), hn::Mul(g0, hn::Set(d, kOverB)));
  const V a = hn::Set(d, kA * kOverA), b = hn::Set(d, kB * kOverB);
  u1 = hn::MulAdd(g1, a, even_a);
  u2 = hn::NegMulAdd(g1, a, even_a);
  u3 = hn::MulAdd(g1, b, even_b);
  u4 = hn::NegMulAdd(g1, b, even_b);
  u5 = g2;
}

// The nine weights of kLanes rows, lane by lane.
HWY_INLINE void LoadWeights(const WinogradWeights& w, const float* from, size_t rows, V* HWY_RESTRICT g) {
  const D d;
  const bool forward = w.y == 3 && w.x == 1, backward = w.y == -3 && w.x == -1;
  if (rows == kLanes && (forward || backward)) {
    V unused, also;  // taps 5 to 7 once more
    const float* first = forward ? from : from - 8;
    LoadColumns(first, w.row, g[0], g[1], g[2], g[3]);
    LoadColumns(first + 5, w.row, unused, g[6], g[7], g[8]);
    LoadColumns(first + 4, w.row, g[4], g[5], unused, also);
    if (forward) return;
    for (size_t t = 0; t < 4; ++t) {
      const V other = g[t];
      g[t] = g[8 - t];
      g[8 - t] = other;
    }
    return;
  }
  HWY_ALIGN float some[kLanes];
  for (size_t t = 0; t < 9; ++t) {
    const float* at = from + static_cast<ptrdiff_t>(t / 3) * w.y + static_cast<ptrdiff_t>(t % 3) * w.x;
    for (size_t r = 0; r < kLanes; ++r) some[r] = r < rows ? at[static_cast<ptrdiff_t>(r) * w.row] : 0.0f;
    g[t] = hn::Load(d, some);
  }
}

constexpr ptrdiff_t kDepthAhead = 8;

void WinogradWeightBlock(const WinogradWeights& w, size_t rows, size_t depth, float* HWY_RESTRICT u,
                         size_t point_stride) {
  const D d;
  constexpr size_t kPanel = 2 * kLanes;  // as the tile kernel reads B
  for (size_t r = 0; r < kWinogradColumns; r += kLanes) {
    float* to = u + r / kPanel * kPanel * depth + r % kPanel;
    const float* from = w.data + static_cast<ptrdiff_t>(r) * w.row;
    const size_t some = r < rows ? HWY_MIN(kLanes, rows - r) : 0;
    for (size_t k = 0; k < depth; ++k, to += kPanel, from += w.depth) {
      V g[9], t[18];
      // Kernels are far apart along the rows or along the depth: more streams than the hardware follows.
      for (size_t i = 0; i < kLanes; ++i) {
        hwy::Prefetch(from + static_cast<ptrdiff_t>(i) * w.row + kDepthAhead * w.depth);
      }
      LoadWeights(w, from, some, g);
      for (size_t j = 0; j < 3; ++j) {
        WeightAxis(g[j], g[3 + j], g[6 + j], t[j], t[3 + j], t[6 + j], t[9 + j], t[12 + j], t[15 + j]);
      }
      float* at = to;
      for (size_t i = 0; i < 6; ++i) {
        V u0, u1, u2, u3, u4, u5;
        WeightAxis(t[3 * i], t[3 * i + 1], t[3 * i + 2], u0, u1, u2, u3, u4, u5);
        hn::StoreU(u0, d, at);
        hn::StoreU(u1, d, at + point_stride);
        hn::StoreU(u2, d, at + 2 * point_stride);
        hn::StoreU(u3, d, at + 3 * point_stride);
        hn::StoreU(u4, d, at + 4 * point_stride);
        hn::StoreU(u5, d, at + 5 * point_stride);
        at += 6 * point_stride;
      }
    }
  }
}

// ---- target -------------------------------------------------------------------------------------------------------

// A' along one axis.
HWY_INLINE void TargetAxis(V m0, V m1, V m2, V m3, V m4, V m5, V& y0, V& y1, V& y2, V& y3) {
  const D d;
  const V sum_a = hn::Add(m1, m2), difference_a = hn::Sub(m1, m2);
  const V sum_b = hn::Add(m3, m4), difference_b = hn::Sub(m3, m4);
  y0 = hn::Add(hn::Add(m0, sum_a), sum_b);
  y1 = hn::MulAdd(hn::Set(d, kB), difference_b, hn::Mul(hn::Set(d, kA), difference_a));
  y2 = hn::MulAdd(hn::Set(d, kB2), sum_b, hn::Mul(hn::Set(d, kA2), sum_a));
  y3 = hn::MulAdd(hn::Set(d, kB2 * kB), difference_b, hn::MulAdd(hn::Set(d, kA2 * kA), difference_a, m5));
}

void WinogradTargetRow(const float* HWY_RESTRICT m, size_t tile_stride, size_t point_stride, size_t tiles,
                       const float* HWY_RESTRICT bias, float* HWY_RESTRICT y, size_t channel_stride,
                       size_t row_stride) {
  const D d;
  for (size_t t = 0; t < tiles; ++t, m += tile_stride, y += 4) {
    for (size_t c = 0; c < kWinogradGroup; c += kStep) {
      V x[24];  // six rows of four
      for (size_t i = 0; i < 6; ++i) {
        const auto load = [&](size_t j) HWY_ATTR { return hn::LoadU(d, m + (6 * i + j) * point_stride + c); };
        TargetAxis(load(0), load(1), load(2), load(3), load(4), load(5), x[4 * i], x[4 * i + 1], x[4 * i + 2],
                   x[4 * i + 3]);
      }
      for (size_t j = 0; j < 4; ++j) {
        V y0, y1, y2, y3;
        TargetAxis(x[j], x[4 + j], x[8 + j], x[12 + j], x[16 + j], x[20 + j], y0, y1, y2, y3);
        x[j] = y0, x[4 + j] = y1, x[8 + j] = y2, x[12 + j] = y3;
      }
      const V b = hn::LoadU(d, bias + c);
      for (size_t r = 0; r < 4; ++r) {
        V y0 = hn::Add(x[4 * r], b), y1 = hn::Add(x[4 * r + 1], b), y2 = hn::Add(x[4 * r + 2], b),
          y3 = hn::Add(x[4 * r + 3], b);
        TransposeBlocks(y0, y1, y2, y3);
        float* to = y + c * channel_stride + r * row_stride;
        StoreBlocks(y0, to, 4 * channel_stride);
        StoreBlocks(y1, to + channel_stride, 4 * channel_stride);
        StoreBlocks(y2, to + 2 * channel_stride, 4 * channel_stride);
        StoreBlocks(y3, to + 3 * channel_stride, 4 * channel_stride);
      }
    }
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void winograd_gather(const float* from, size_t stride, size_t channels, size_t pixels, float* to) noexcept {
  BNNS_DISPATCH(WinogradGather)(from, stride, channels, pixels, to);
}
void winograd_source_row(const float* rows, size_t row_stride, size_t tiles, float* v, size_t tile_stride,
                         size_t point_stride) noexcept {
  BNNS_DISPATCH(WinogradSourceRow)(rows, row_stride, tiles, v, tile_stride, point_stride);
}
void winograd_weight_block(Isa isa, const WinogradWeights& w, size_t rows, size_t depth, float* u,
                           size_t point_stride) noexcept {
  BNNS_DISPATCH_FOR(isa, WinogradWeightBlock)(w, rows, depth, u, point_stride);
}
void winograd_target_row(const float* m, size_t tile_stride, size_t point_stride, size_t tiles, const float* bias,
                         float* y, size_t channel_stride, size_t row_stride) noexcept {
  BNNS_DISPATCH(WinogradTargetRow)
  (m, tile_stride, point_stride, tiles, bias, y, channel_stride, row_stride);
}

}  // namespace bnns
#endif
