// The transforms of the weight gradient by Winograd's algorithm, with channels in the lanes.
//   Z = A y A'                     m x m pixels y of the small image
//   dW = G' (sum of V * Z) G       r x r, from 36 points
// V, the points and the matrices are those of convolution/winograd/points_simd.cc.

#include "src/ops/convolution/winograd/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/winograd/dw_simd.cc"
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

// A along one axis.
template <size_t kTile>
HWY_INLINE void GradientAxis(const V* HWY_RESTRICT y, V& z0, V& z1, V& z2, V& z3, V& z4, V& z5) {
  const D d;
  using P = Points<winograd_tile(kTile)>;
  const V a = hn::Set(d, P::kA), b = hn::Set(d, P::kB), a2 = hn::Set(d, P::kA2), b2 = hn::Set(d, P::kB2);
  V even_a = y[0], odd_a = y[1], even_b = y[0], odd_b = y[1];
  if constexpr (kTile > 2) even_a = hn::MulAdd(a2, y[2], even_a), even_b = hn::MulAdd(b2, y[2], even_b);
  if constexpr (kTile > 3) odd_a = hn::MulAdd(a2, y[3], odd_a), odd_b = hn::MulAdd(b2, y[3], odd_b);
  z0 = y[0];
  z1 = hn::MulAdd(a, odd_a, even_a);
  z2 = hn::NegMulAdd(a, odd_a, even_a);
  z3 = hn::MulAdd(b, odd_b, even_b);
  z4 = hn::NegMulAdd(b, odd_b, even_b);
  z5 = y[kTile - 1];
}

template <size_t kTaps>
void GradientRow(const float* HWY_RESTRICT rows, size_t row_stride, size_t tiles, float* HWY_RESTRICT z,
                 size_t tile_stride, size_t point_stride) {
  const D d;
  constexpr size_t kTile = winograd_tile(kTaps);
  for (size_t t = 0; t < tiles; ++t, rows += kTile * kWinogradGroup, z += tile_stride) {
    for (size_t c = 0; c < kWinogradGroup; c += kStep) {
      V x[6 * kTile];  // six rows of kTile
      for (size_t j = 0; j < kTile; ++j) {
        V y[kTile];
        for (size_t r = 0; r < kTile; ++r) y[r] = hn::LoadU(d, rows + r * row_stride + j * kWinogradGroup + c);
        GradientAxis<kTile>(y, x[j], x[kTile + j], x[2 * kTile + j], x[3 * kTile + j], x[4 * kTile + j],
                            x[5 * kTile + j]);
      }
      float* to = z + c;
      for (size_t i = 0; i < 6; ++i, to += 6 * point_stride) {
        V z0, z1, z2, z3, z4, z5;
        GradientAxis<kTile>(x + kTile * i, z0, z1, z2, z3, z4, z5);
        hn::StoreU(z0, d, to);
        hn::StoreU(z1, d, to + point_stride);
        hn::StoreU(z2, d, to + 2 * point_stride);
        hn::StoreU(z3, d, to + 3 * point_stride);
        hn::StoreU(z4, d, to + 4 * point_stride);
        hn::StoreU(z5, d, to + 5 * point_stride);
      }
    }
  }
}

// G' along one axis, to kTaps weights g[0], g[step], ...
template <size_t kTaps>
HWY_INLINE void KernelAxis(V m0, V m1, V m2, V m3, V m4, V m5, V* HWY_RESTRICT g, size_t step) {
  const D d;
  using P = Points<kTaps>;
  const V sum_a = hn::Add(m1, m2), difference_a = hn::Sub(m1, m2);
  const V sum_b = hn::Add(m3, m4), difference_b = hn::Sub(m3, m4);
  g[0] = hn::MulAdd(hn::Set(d, P::kWeightB[0]), sum_b,
                    hn::MulAdd(hn::Set(d, P::kWeightA[0]), sum_a, hn::Mul(hn::Set(d, P::kWeight0), m0)));
  for (size_t j = 1; j < kTaps; ++j) {
    const V a = j % 2 == 0 ? sum_a : difference_a, b = j % 2 == 0 ? sum_b : difference_b;
    const V factor_a = hn::Set(d, P::kWeightA[j]);
    const V first = j + 1 == kTaps ? hn::MulAdd(factor_a, a, m5) : hn::Mul(factor_a, a);
    g[j * step] = hn::MulAdd(hn::Set(d, P::kWeightB[j]), b, first);
  }
}

// The weights of kLanes kernels, `small` apart, of which `count` are there.
template <size_t kTaps>
HWY_INLINE void StoreKernels(const V* HWY_RESTRICT g, const WeightTarget& target, float* to, size_t count) {
  const D d;
  constexpr size_t kAll = kTaps * kTaps;
  if (count >= kLanes && !target.accumulate && target.y == ptrdiff_t{kTaps} && target.x == 1) {
    const size_t small = static_cast<size_t>(target.small);
    for (size_t t = 0; t < kAll; t += 4) {
      const size_t first = HWY_MIN(t, kAll - 4);  // the last four overlap those before
      V v0 = g[first], v1 = g[first + 1], v2 = g[first + 2], v3 = g[first + 3];
      TransposeBlocks(v0, v1, v2, v3);
      StoreBlocks(v0, to + first, 4 * small);
      StoreBlocks(v1, to + first + small, 4 * small);
      StoreBlocks(v2, to + first + 2 * small, 4 * small);
      StoreBlocks(v3, to + first + 3 * small, 4 * small);
    }
    return;
  }
  HWY_ALIGN float some[kLanes];
  for (size_t t = 0; t < kAll; ++t) {
    hn::Store(g[t], d, some);
    float* at = to + static_cast<ptrdiff_t>(t / kTaps) * target.y + static_cast<ptrdiff_t>(t % kTaps) * target.x;
    for (size_t i = 0; i < HWY_MIN(count, kLanes); ++i, at += target.small) {
      *at = target.accumulate ? *at + some[i] : some[i];
    }
  }
}

template <size_t kTaps>
void GradientBlock(const float* HWY_RESTRICT m, size_t point_stride, size_t rows, size_t columns,
                   const WeightTarget& target) {
  const D d;
  for (size_t c = 0; c < columns; c += kLanes) {
    float* to = target.data + static_cast<ptrdiff_t>(c) * target.small;
    const float* from = m + c;
    for (size_t r = 0; r < rows; ++r, to += target.large, from += kWinogradColumns) {
      V x[6 * kTaps], g[kTaps * kTaps];
      for (size_t i = 0; i < 6; ++i) {
        const auto load = [&](size_t j) HWY_ATTR { return hn::LoadU(d, from + (6 * i + j) * point_stride); };
        KernelAxis<kTaps>(load(0), load(1), load(2), load(3), load(4), load(5), x + kTaps * i, 1);
      }
      for (size_t j = 0; j < kTaps; ++j) {
        KernelAxis<kTaps>(x[j], x[kTaps + j], x[2 * kTaps + j], x[3 * kTaps + j], x[4 * kTaps + j], x[5 * kTaps + j],
                          g + j, kTaps);
      }
      StoreKernels<kTaps>(g, target, to, columns - c);
    }
  }
}

void WinogradGradientRow(size_t taps, const float* rows, size_t row_stride, size_t tiles, float* z, size_t tile_stride,
                         size_t point_stride) {
  const auto run = taps == 3 ? &GradientRow<3> : taps == 4 ? &GradientRow<4> : &GradientRow<5>;
  run(rows, row_stride, tiles, z, tile_stride, point_stride);
}

void WinogradGradientBlock(size_t taps, const float* m, size_t point_stride, size_t rows, size_t columns,
                           const WeightTarget& target) {
  const auto run = taps == 3 ? &GradientBlock<3> : taps == 4 ? &GradientBlock<4> : &GradientBlock<5>;
  run(m, point_stride, rows, columns, target);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void winograd_gradient_row(size_t taps, const float* rows, size_t row_stride, size_t tiles, float* z,
                           size_t tile_stride, size_t point_stride) noexcept {
  BNNS_DISPATCH(WinogradGradientRow)(taps, rows, row_stride, tiles, z, tile_stride, point_stride);
}
void winograd_gradient_block(size_t taps, const float* m, size_t point_stride, size_t rows, size_t columns,
                             const WeightTarget& target) noexcept {
  BNNS_DISPATCH(WinogradGradientBlock)(taps, m, point_stride, rows, columns, target);
}

}  // namespace bnns
#endif
