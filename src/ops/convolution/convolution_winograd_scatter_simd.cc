// The transforms of Winograd's algorithm from the side of the source, with channels in the lanes: the transpose of
// those in convolution_winograd_simd.cc. A tile of M becomes 6x6 pixels B M B', of which neighbouring tiles overlap by
// r - 1. Rows are made first and added up as points of x; a row of pixels then needs each tile once.

#include "src/ops/convolution/convolution_winograd_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/convolution_winograd_scatter_simd.cc"
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

// B along one axis: six pixels from six points.
template <size_t kTaps>
HWY_INLINE void PixelAxis(const V* HWY_RESTRICT v, V* HWY_RESTRICT p) {
  const D d;
  using P = Points<kTaps>;
  const V product = hn::Set(d, P::kA2 * P::kB2), sum = hn::Set(d, -(P::kA2 + P::kB2)), a2 = hn::Set(d, P::kA2),
          b2 = hn::Set(d, P::kB2);
  const V sum_a = hn::Add(v[1], v[2]), difference_a = hn::Sub(v[1], v[2]);
  const V sum_b = hn::Add(v[3], v[4]), difference_b = hn::Sub(v[3], v[4]);
  p[0] = hn::Mul(product, v[0]);
  p[1] = hn::NegMulAdd(hn::Set(d, P::kA2 * P::kB), difference_b,
                       hn::NegMulAdd(hn::Set(d, P::kB2 * P::kA), difference_a, hn::Mul(product, v[5])));
  p[2] = hn::NegMulAdd(a2, sum_b, hn::NegMulAdd(b2, sum_a, hn::Mul(sum, v[0])));
  p[3] = hn::MulAdd(hn::Set(d, P::kB), difference_b, hn::MulAdd(hn::Set(d, P::kA), difference_a, hn::Mul(sum, v[5])));
  p[4] = hn::Add(hn::Add(v[0], sum_a), sum_b);
  p[5] = v[5];
}

// Not inlined, as in convolution_winograd_simd.cc.
template <size_t kTaps>
HWY_NOINLINE void ScatterTile(const float* HWY_RESTRICT m, size_t point_stride, float* HWY_RESTRICT rows,
                              size_t row_stride) {
  const D d;
  for (size_t j = 0; j < 6; ++j, m += point_stride, rows += kWinogradGroup) {
    V v[6], p[6];
    for (size_t i = 0; i < 6; ++i) v[i] = hn::LoadU(d, m + 6 * i * point_stride);
    PixelAxis<kTaps>(v, p);
    for (size_t i = 0; i < 6; ++i) {
      float* at = rows + i * row_stride;
      hn::StoreU(i < kTaps - 1 ? hn::Add(p[i], hn::LoadU(d, at)) : p[i], d, at);
    }
  }
}

template <size_t kTaps>
void ScatterTiles(const float* HWY_RESTRICT m, size_t tile_stride, size_t point_stride, size_t tiles,
                  float* HWY_RESTRICT rows, size_t row_stride) {
  for (size_t t = 0; t < tiles; ++t) {
    for (size_t c = 0; c < kWinogradGroup; c += kStep) {
      ScatterTile<kTaps>(m + t * tile_stride + c, point_stride, rows + 6 * t * kWinogradGroup + c, row_stride);
    }
  }
}

template <size_t kTaps>
void ScatterRow(const float* HWY_RESTRICT row, size_t tiles, float* HWY_RESTRICT to) {
  const D d;
  constexpr size_t kTile = winograd_tile(kTaps), kMore = kTaps - 1;
  for (size_t c = 0; c < kWinogradGroup; c += kStep) {
    const float* from = row + c;
    float* at = to + c;
    V more[kMore];  // what this tile's pixels got from those before
    for (size_t i = 0; i < kMore; ++i) more[i] = hn::Zero(d);
    for (size_t t = 0; t < tiles; ++t, from += 6 * kWinogradGroup, at += kTile * kWinogradGroup) {
      V v[6], p[6];
      for (size_t j = 0; j < 6; ++j) v[j] = hn::LoadU(d, from + j * kWinogradGroup);
      PixelAxis<kTaps>(v, p);
      for (size_t i = 0; i < kMore; ++i) p[i] = hn::Add(p[i], more[i]);
      for (size_t i = 0; i < kTile; ++i) hn::StoreU(p[i], d, at + i * kWinogradGroup);
      for (size_t i = 0; i < kMore; ++i) more[i] = p[kTile + i];
    }
    for (size_t i = 0; i < kMore; ++i) hn::StoreU(more[i], d, at + i * kWinogradGroup);
  }
}

void WinogradScatterTiles(size_t taps, const float* m, size_t tile_stride, size_t point_stride, size_t tiles,
                          float* rows, size_t row_stride) {
  const auto run = taps == 3 ? &ScatterTiles<3> : taps == 4 ? &ScatterTiles<4> : &ScatterTiles<5>;
  run(m, tile_stride, point_stride, tiles, rows, row_stride);
}

void WinogradScatterRow(size_t taps, const float* row, size_t tiles, float* to) {
  const auto run = taps == 3 ? &ScatterRow<3> : taps == 4 ? &ScatterRow<4> : &ScatterRow<5>;
  run(row, tiles, to);
}

void WinogradScatterPhases(const float* HWY_RESTRICT from, size_t pixels, float* HWY_RESTRICT rows, size_t stride) {
  const D d;
  const hn::RepartitionToWide<D> dw;
  for (size_t p = 0;;) {
    for (size_t c = 0; c < kWinogradGroup; c += kStep) {
      const float* at = from + p * kWinogradGroup + c;
      const auto first = hn::BitCast(dw, hn::LoadU(d, at)), second = hn::BitCast(dw, hn::LoadU(d, at + kWinogradGroup));
      float* to = rows + c / 4 * 2 * stride + 2 * p;
      StoreBlocks(hn::BitCast(d, hn::InterleaveLower(dw, first, second)), to, 2 * stride);
      StoreBlocks(hn::BitCast(d, hn::InterleaveUpper(dw, first, second)), to + stride, 2 * stride);
    }
    if (p + 2 == pixels) return;
    p = HWY_MIN(p + 2, pixels - 2);  // the last two overlap those before
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void winograd_scatter_tiles(size_t taps, const float* m, size_t tile_stride, size_t point_stride, size_t tiles,
                            float* rows, size_t row_stride) noexcept {
  BNNS_DISPATCH(WinogradScatterTiles)(taps, m, tile_stride, point_stride, tiles, rows, row_stride);
}
void winograd_scatter_row(size_t taps, const float* row, size_t tiles, float* to) noexcept {
  BNNS_DISPATCH(WinogradScatterRow)(taps, row, tiles, to);
}
void winograd_scatter_phases(const float* from, size_t pixels, float* rows, size_t stride) noexcept {
  BNNS_DISPATCH(WinogradScatterPhases)(from, pixels, rows, stride);
}

}  // namespace bnns
#endif
