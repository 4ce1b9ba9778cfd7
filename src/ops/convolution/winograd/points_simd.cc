// The transforms of Winograd's F(m x m, r x r), m + r = 7 (Lavin and Gray, 2015), with channels in the lanes.
//   V = B' d B    6x6 source pixels d of a tile
//   U = G g G'    r x r weights g (convolution/winograd/weights_simd.cc)
//   Y = A' M A    m x m target pixels of a tile, M = sum over channels of U * V, point by point
// Points 0, +-5/8 (four taps: 3/4), +-3/2 and infinity: a third of the rounding error of the usual 0, +-1, +-2,
// infinity (README.md), and all entries of B and A are exact in f32.
//
// Images are CHW, so pixels come four at a time from 4 x 4 transposes within 128-bit blocks: rows of channels are
// loaded straight into the block where they belong, which leaves eight shuffles for 64 values on AVX-512.

#include <cstring>

#include "src/ops/convolution/winograd/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/winograd/points_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/ops/convolution/winograd/winograd-inl.h"
#include "src/simd/dispatch.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using namespace winograd;

// ---- source -------------------------------------------------------------------------------------------------------

// Four floats from each of kLanes rows.
HWY_INLINE void LoadRows(const float* const* rows, size_t first, V& v0, V& v1, V& v2, V& v3) {
  const D d;
  V v[4];
  for (size_t q = 0; q < 4; ++q) {
    v[q] = hn::LoadDup128(d, rows[q] + first);
    for (size_t b = 1; b < kLanes / 4; ++b) {
      v[q] = hn::IfThenElse(hn::FirstN(d, 4 * b), v[q], hn::LoadDup128(d, rows[4 * b + q] + first));
    }
  }
  v0 = v[0], v1 = v[1], v2 = v[2], v3 = v[3];
  TransposeBlocks(v0, v1, v2, v3);
}

// Pixels four at a time; the last four overlap those before.
template <bool kAll>
void GatherRow(const float* HWY_RESTRICT from, size_t stride, size_t channels, size_t pixels, float* HWY_RESTRICT to) {
  const D d;
  const float* rows[kWinogradGroup];
  for (size_t c = 0; c < kWinogradGroup; ++c) rows[c] = from + HWY_MIN(c, channels - 1) * stride;
  for (size_t p = 0;;) {
    for (size_t c = 0; c < kWinogradGroup; c += kStep) {
      V v0, v1, v2, v3;
      if constexpr (kAll) {
        LoadColumns(from + c * stride + p, static_cast<ptrdiff_t>(stride), v0, v1, v2, v3);
      } else {
        LoadRows(rows + c, p, v0, v1, v2, v3);
        const auto there = hn::FirstN(d, channels > c ? channels - c : 0);
        v0 = hn::IfThenElseZero(there, v0), v1 = hn::IfThenElseZero(there, v1);
        v2 = hn::IfThenElseZero(there, v2), v3 = hn::IfThenElseZero(there, v3);
      }
      float* at = to + p * kWinogradGroup + c;
      hn::StoreU(v0, d, at);
      hn::StoreU(v1, d, at + kWinogradGroup);
      hn::StoreU(v2, d, at + 2 * kWinogradGroup);
      hn::StoreU(v3, d, at + 3 * kWinogradGroup);
    }
    if (p + 4 == pixels) return;
    p = HWY_MIN(p + 4, pixels - 4);
  }
}

void WinogradGather(const float* from, size_t stride, size_t channels, size_t pixels, float* to) {
  if (pixels >= 4) {
    const auto run = channels == kWinogradGroup ? &GatherRow<true> : &GatherRow<false>;
    return run(from, stride, channels, pixels, to);
  }
  for (size_t p = 0; p < pixels; ++p) {
    for (size_t c = 0; c < kWinogradGroup; ++c) to[p * kWinogradGroup + c] = c < channels ? from[c * stride + p] : 0.0f;
  }
}

void WinogradGatherPhases(const float* HWY_RESTRICT rows, size_t stride, size_t pixels, float* HWY_RESTRICT to) {
  const hn::RepartitionToWide<D> d;
  for (size_t p = 0;;) {
    for (size_t c = 0; c < kWinogradGroup; c += kStep) {
      // Blocks of four floats, two pixels of one channel's even and odd row.
      const float* from = rows + c / 4 * 2 * stride + 2 * p;
      const auto even = hn::BitCast(d, LoadBlocks(from, static_cast<ptrdiff_t>(2 * stride)));
      const auto odd = hn::BitCast(d, LoadBlocks(from + stride, static_cast<ptrdiff_t>(2 * stride)));
      float* at = to + p * kWinogradGroup + c;
      hn::StoreU(hn::BitCast(D(), hn::InterleaveLower(d, even, odd)), D(), at);
      hn::StoreU(hn::BitCast(D(), hn::InterleaveUpper(d, even, odd)), D(), at + kWinogradGroup);
    }
    if (p + 2 == pixels) return;
    p = HWY_MIN(p + 2, pixels - 2);  // the last two overlap those before
  }
}

// B' along one axis.
template <size_t kTaps>
HWY_INLINE void SourceAxis(V d0, V d1, V d2, V d3, V d4, V d5, V& v0, V& v1, V& v2, V& v3, V& v4, V& v5) {
  const D d;
  using P = Points<kTaps>;
  const V a = hn::Set(d, P::kA), b = hn::Set(d, P::kB), a2 = hn::Set(d, P::kA2), b2 = hn::Set(d, P::kB2);
  const V product = hn::Set(d, P::kA2 * P::kB2), sum = hn::Set(d, P::kA2 + P::kB2);
  v0 = hn::NegMulAdd(sum, d2, hn::MulAdd(product, d0, d4));
  v5 = hn::NegMulAdd(sum, d3, hn::MulAdd(product, d1, d5));
  const V even_a = hn::NegMulAdd(b2, d2, d4), odd_a = hn::NegMulAdd(b2, d1, d3);
  const V even_b = hn::NegMulAdd(a2, d2, d4), odd_b = hn::NegMulAdd(a2, d1, d3);
  v1 = hn::MulAdd(a, odd_a, even_a);
  v2 = hn::NegMulAdd(a, odd_a, even_a);
  v3 = hn::MulAdd(b, odd_b, even_b);
  v4 = hn::NegMulAdd(b, odd_b, even_b);
}

template <size_t kTaps>
void SourceRow(const float* HWY_RESTRICT rows, size_t row_stride, size_t tiles, float* HWY_RESTRICT v,
               size_t tile_stride, size_t point_stride) {
  const D d;
  constexpr size_t kTile = winograd_tile(kTaps), kMore = kTaps - 1;
  constexpr size_t kAtOnce = 32 / kTile;  // tiles whose columns are kept in L1
  HWY_ALIGN float columns[6][(kTile * kAtOnce + kMore) * kWinogradGroup];
  for (size_t t0 = 0; t0 < tiles; t0 += kAtOnce, rows += kTile * kAtOnce * kWinogradGroup) {
    const size_t some = HWY_MIN(kAtOnce, tiles - t0);
    for (size_t i = 0; i < (kTile * some + kMore) * kWinogradGroup; i += kStep) {
      const auto load = [&](size_t r) HWY_ATTR { return hn::LoadU(d, rows + r * row_stride + i); };
      V v0, v1, v2, v3, v4, v5;
      SourceAxis<kTaps>(load(0), load(1), load(2), load(3), load(4), load(5), v0, v1, v2, v3, v4, v5);
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
          const float* from = columns[i] + kTile * t * kWinogradGroup + c;
          const auto load = [&](size_t j) HWY_ATTR { return hn::Load(d, from + j * kWinogradGroup); };
          V v0, v1, v2, v3, v4, v5;
          SourceAxis<kTaps>(load(0), load(1), load(2), load(3), load(4), load(5), v0, v1, v2, v3, v4, v5);
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

// ---- target -------------------------------------------------------------------------------------------------------

// A' along one axis, to kTile pixels y[0], y[step], ...
template <size_t kTile>
HWY_INLINE void TargetAxis(V m0, V m1, V m2, V m3, V m4, V m5, V* HWY_RESTRICT y, size_t step) {
  const D d;
  using P = Points<winograd_tile(kTile)>;
  const V sum_a = hn::Add(m1, m2), difference_a = hn::Sub(m1, m2);
  const V sum_b = hn::Add(m3, m4), difference_b = hn::Sub(m3, m4);
  y[0] = hn::Add(hn::Add(m0, sum_a), sum_b);
  if constexpr (kTile == 2) {
    y[step] = hn::MulAdd(hn::Set(d, P::kB), difference_b, hn::MulAdd(hn::Set(d, P::kA), difference_a, m5));
  } else {
    y[step] = hn::MulAdd(hn::Set(d, P::kB), difference_b, hn::Mul(hn::Set(d, P::kA), difference_a));
  }
  if constexpr (kTile == 3) {
    y[2 * step] = hn::MulAdd(hn::Set(d, P::kB2), sum_b, hn::MulAdd(hn::Set(d, P::kA2), sum_a, m5));
  }
  if constexpr (kTile == 4) {
    y[2 * step] = hn::MulAdd(hn::Set(d, P::kB2), sum_b, hn::Mul(hn::Set(d, P::kA2), sum_a));
    y[3 * step] =
        hn::MulAdd(hn::Set(d, P::kB2 * P::kB), difference_b, hn::MulAdd(hn::Set(d, P::kA2 * P::kA), difference_a, m5));
  }
}

// The first kCount of the four floats of block b of v to to + b * stride.
template <size_t kCount>
HWY_INLINE void StoreParts(V v, float* to, size_t stride) {
  const D d;
  HWY_ALIGN float blocks[kLanes];
  hn::Store(v, d, blocks);
  for (size_t b = 0; b < kLanes / 4; ++b) std::memcpy(to + b * stride, blocks + 4 * b, kCount * sizeof(float));
}

// Both axes of one tile: kTile rows of pixels, `step` vectors apart.
template <size_t kTile>
HWY_INLINE void TargetTile(const float* HWY_RESTRICT m, size_t point_stride, V* HWY_RESTRICT p, size_t step) {
  const D d;
  V x[6 * kTile];  // six rows of kTile
  for (size_t i = 0; i < 6; ++i, m += 6 * point_stride) {
    const auto load = [&](size_t j) HWY_ATTR { return hn::LoadU(d, m + j * point_stride); };
    TargetAxis<kTile>(load(0), load(1), load(2), load(3), load(4), load(5), x + kTile * i, 1);
  }
  for (size_t j = 0; j < kTile; ++j) {
    TargetAxis<kTile>(x[j], x[kTile + j], x[2 * kTile + j], x[3 * kTile + j], x[4 * kTile + j], x[5 * kTile + j], p + j,
                      step);
  }
}

// One tile, or two beside each other: kTiles. Pixels are stored four at a time, of tiles of three the fourth to be
// overwritten by the next tile; kExact: no pixel too many. Not inlined: compilers would keep the 36 addresses of the
// points from tile to tile, most of them on the stack, rather than add them up anew.
template <size_t kTile, size_t kTiles, bool kExact>
HWY_NOINLINE void TargetTiles(const float* HWY_RESTRICT m, size_t tile_stride, size_t point_stride,
                              const float* HWY_RESTRICT bias, float* HWY_RESTRICT y, size_t channel_stride,
                              size_t row_stride) {
  const D d;
  constexpr size_t kPixels = kTile * kTiles;
  V p[kTile * kPixels];  // kTile rows
  TargetTile<kTile>(m, point_stride, p, kPixels);
  if constexpr (kTiles == 2) TargetTile<kTile>(m + tile_stride, point_stride, p + kTile, kPixels);
  const V b = hn::LoadU(d, bias);
  for (size_t r = 0; r < kTile; ++r) {
    const V* row = p + kPixels * r;
    V y0 = hn::Add(row[0], b), y1 = hn::Add(row[1], b);
    V y2 = kPixels > 2 ? hn::Add(row[kPixels > 2 ? 2 : 0], b) : b,
      y3 = kPixels > 3 ? hn::Add(row[kPixels > 3 ? 3 : 0], b) : b;
    TransposeBlocks(y0, y1, y2, y3);
    const auto store = [&](V v, size_t channel) HWY_ATTR {
      float* to = y + channel * channel_stride + r * row_stride;
      if constexpr (kExact && kPixels < 4) {
        StoreParts<kPixels>(v, to, 4 * channel_stride);
      } else {
        StoreBlocks(v, to, 4 * channel_stride);
      }
    };
    store(y0, 0);
    store(y1, 1);
    store(y2, 2);
    store(y3, 3);
  }
}

template <size_t kTaps>
void TargetRow(const float* HWY_RESTRICT m, size_t tile_stride, size_t point_stride, size_t tiles,
               const float* HWY_RESTRICT bias, float* HWY_RESTRICT y, size_t channel_stride, size_t row_stride) {
  constexpr size_t kTile = winograd_tile(kTaps), kTiles = kTile == 2 ? 2 : 1;
  for (size_t c = 0; c < kWinogradGroup; c += kStep) {
    const float* from = m + c;
    float* to = y + c * channel_stride;
    size_t t = 0;
    // All but the last of three pixels may write a fourth.
    for (; t + (kTile == 4 ? 1 : 2) <= tiles; t += kTiles, from += kTiles * tile_stride, to += kTiles * kTile) {
      TargetTiles<kTile, kTiles, false>(from, tile_stride, point_stride, bias + c, to, channel_stride, row_stride);
    }
    if (t < tiles) TargetTiles<kTile, 1, true>(from, 0, point_stride, bias + c, to, channel_stride, row_stride);
  }
}

// ---- one instance per size of the kernel --------------------------------------------------------------------------

void WinogradSourceRow(size_t taps, const float* rows, size_t row_stride, size_t tiles, float* v, size_t tile_stride,
                       size_t point_stride) {
  const auto run = taps == 3 ? &SourceRow<3> : taps == 4 ? &SourceRow<4> : &SourceRow<5>;
  run(rows, row_stride, tiles, v, tile_stride, point_stride);
}

void WinogradTargetRow(size_t taps, const float* m, size_t tile_stride, size_t point_stride, size_t tiles,
                       const float* bias, float* y, size_t channel_stride, size_t row_stride) {
  const auto run = taps == 3 ? &TargetRow<3> : taps == 4 ? &TargetRow<4> : &TargetRow<5>;
  run(m, tile_stride, point_stride, tiles, bias, y, channel_stride, row_stride);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void winograd_gather(const float* from, size_t stride, size_t channels, size_t pixels, float* to) noexcept {
  BNNS_DISPATCH(WinogradGather)(from, stride, channels, pixels, to);
}
void winograd_gather_phases(const float* rows, size_t stride, size_t pixels, float* to) noexcept {
  BNNS_DISPATCH(WinogradGatherPhases)(rows, stride, pixels, to);
}
void winograd_source_row(size_t taps, const float* rows, size_t row_stride, size_t tiles, float* v, size_t tile_stride,
                         size_t point_stride) noexcept {
  BNNS_DISPATCH(WinogradSourceRow)(taps, rows, row_stride, tiles, v, tile_stride, point_stride);
}
void winograd_target_row(size_t taps, const float* m, size_t tile_stride, size_t point_stride, size_t tiles,
                         const float* bias, float* y, size_t channel_stride, size_t row_stride) noexcept {
  BNNS_DISPATCH(WinogradTargetRow)
  (taps, m, tile_stride, point_stride, tiles, bias, y, channel_stride, row_stride);
}

}  // namespace bnns
#endif
