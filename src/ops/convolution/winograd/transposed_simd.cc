// The transforms of Winograd's algorithm from the side of the source, with channels in the lanes: the transpose of
// those in convolution/winograd/points_simd.cc. A tile of M becomes 6x6 pixels B M B', of which neighbouring tiles
// overlap by r - 1: a pixel is the sum over tiles from left to right, then over rows of tiles from top to bottom.

#include "src/ops/convolution/winograd/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/winograd/transposed_simd.cc"
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

// Where the six rows of a tile's pixels go: rows i < above_rows are added to what rows of tiles above gave; those
// before `finished` are complete, the others wait for the tiles below.
struct PixelRows {
  size_t above_rows, finished, row_stride;
  float *above, *rows;

  HWY_INLINE void Store(size_t i, size_t pixel, V value) const {
    const D d;
    pixel *= kWinogradGroup;
    if (i < above_rows) value = hn::Add(value, hn::LoadU(d, above + i * row_stride + pixel));
    hn::StoreU(value, d, i < finished ? rows + i * row_stride + pixel : above + (i - finished) * row_stride + pixel);
  }
};

constexpr size_t kLeft = 5;  // pixels of a row that a tile may share with the next

// left: what tiles to the left gave to the first `given` pixels of each row; then what this one gives to those after
// `done`. Not inlined, as in convolution/winograd/points_simd.cc. kPlain: given and done are those of most tiles, r - 1
// and m.
template <size_t kTaps, bool kPlain>
HWY_NOINLINE void ScatterTile(const float* HWY_RESTRICT m, size_t point_stride, float* HWY_RESTRICT left, size_t given,
                              size_t done, const PixelRows& to) {
  const D d;
  if constexpr (kPlain) given = kTaps - 1, done = winograd_tile(kTaps);
  V points[36];  // six rows of pixels, still points of x
  for (size_t j = 0; j < 6; ++j, m += point_stride) {
    V v[6], p[6];
    for (size_t i = 0; i < 6; ++i) v[i] = hn::LoadU(d, m + 6 * i * point_stride);
    PixelAxis<kTaps>(v, p);
    for (size_t i = 0; i < 6; ++i) points[6 * i + j] = p[i];
  }
  for (size_t i = 0; i < 6; ++i, left += kLeft * kLanes) {
    V p[6];
    PixelAxis<kTaps>(points + 6 * i, p);
    for (size_t j = 0; j < given; ++j) p[j] = hn::Add(p[j], hn::Load(d, left + j * kLanes));
    for (size_t j = 0; j < done; ++j) to.Store(i, j, p[j]);
    for (size_t j = done; j < 6; ++j) hn::Store(p[j], d, left + (j - done) * kLanes);
  }
}

template <size_t kTaps>
void ScatterRow(const float* HWY_RESTRICT m, size_t tile_stride, size_t point_stride, size_t tiles, size_t first,
                const ScatterRows& rows) {
  const D d;
  constexpr size_t kTile = winograd_tile(kTaps), kMore = kTaps - 1;
  const size_t row_stride = (first + kTile * (tiles - 1) + kMore) * kWinogradGroup;
  for (size_t c = 0; c < kWinogradGroup; c += kStep) {
    HWY_ALIGN float left[6 * kLeft * kLanes] = {};
    PixelRows to{rows.above_rows, rows.finished, row_stride, rows.above + c, rows.rows + c};
    const float* from = m + c;
    for (size_t t = 0; t < tiles; ++t, from += tile_stride) {
      const size_t done = t == 0 ? first : kTile;
      if (first < kTile && t < 2) {
        ScatterTile<kTaps, false>(from, point_stride, left, t == 0 ? 0 : 6 - first, done, to);
      } else {
        ScatterTile<kTaps, true>(from, point_stride, left, 0, 0, to);
      }
      to.above += done * kWinogradGroup, to.rows += done * kWinogradGroup;
    }
    for (size_t i = 0; i < 6; ++i) {
      for (size_t j = 0; j < kMore; ++j) to.Store(i, j, hn::Load(d, left + (i * kLeft + j) * kLanes));
    }
  }
}

void WinogradScatterRow(size_t taps, const float* m, size_t tile_stride, size_t point_stride, size_t tiles,
                        size_t first, const ScatterRows& rows) {
  const auto run = taps == 3 ? &ScatterRow<3> : taps == 4 ? &ScatterRow<4> : &ScatterRow<5>;
  run(m, tile_stride, point_stride, tiles, first, rows);
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

void winograd_scatter_row(size_t taps, const float* m, size_t tile_stride, size_t point_stride, size_t tiles,
                          size_t first, const ScatterRows& rows) noexcept {
  BNNS_DISPATCH(WinogradScatterRow)(taps, m, tile_stride, point_stride, tiles, first, rows);
}
void winograd_scatter_phases(const float* from, size_t pixels, float* rows, size_t stride) noexcept {
  BNNS_DISPATCH(WinogradScatterPhases)(from, pixels, rows, stride);
}

}  // namespace bnns
#endif
