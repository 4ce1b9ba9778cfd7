// The transforms of the weight gradient by Winograd's algorithm, with channels in the lanes.
//   Z = A y A'                     4x4 pixels y of the small image
//   dW = G' (sum of V * Z) G       3x3, from 36 points
// V, the points and the matrices are those of convolution_winograd_simd.cc.

#include "src/ops/convolution/convolution_winograd_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/convolution_winograd_gradient_simd.cc"
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

// A along one axis.
HWY_INLINE void GradientAxis(V y0, V y1, V y2, V y3, V& z0, V& z1, V& z2, V& z3, V& z4, V& z5) {
  const D d;
  const V a = hn::Set(d, kA), b = hn::Set(d, kB), a2 = hn::Set(d, kA2), b2 = hn::Set(d, kB2);
  const V even_a = hn::MulAdd(a2, y2, y0), odd_a = hn::MulAdd(a2, y3, y1);
  const V even_b = hn::MulAdd(b2, y2, y0), odd_b = hn::MulAdd(b2, y3, y1);
  z0 = y0;
  z1 = hn::MulAdd(a, odd_a, even_a);
  z2 = hn::NegMulAdd(a, odd_a, even_a);
  z3 = hn::MulAdd(b, odd_b, even_b);
  z4 = hn::NegMulAdd(b, odd_b, even_b);
  z5 = y3;
}

void WinogradGradientRow(const float* HWY_RESTRICT rows, size_t row_stride, size_t tiles, float* HWY_RESTRICT z,
                         size_t tile_stride, size_t point_stride) {
  const D d;
  for (size_t t = 0; t < tiles; ++t, rows += 4 * kWinogradGroup, z += tile_stride) {
    for (size_t c = 0; c < kWinogradGroup; c += kStep) {
      V x[24];  // six rows of four
      for (size_t j = 0; j < 4; ++j) {
        const auto load = [&](size_t r)
                              HWY_ATTR { return hn::LoadU(d, rows + r * row_stride + j * kWinogradGroup + c); };
        GradientAxis(load(0), load(1), load(2), load(3), x[j], x[4 + j], x[8 + j], x[12 + j], x[16 + j], x[20 + j]);
      }
      float* to = z + c;
      for (size_t i = 0; i < 6; ++i, to += 6 * point_stride) {
        V z0, z1, z2, z3, z4, z5;
        GradientAxis(x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3], z0, z1, z2, z3, z4, z5);
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

// G' along one axis.
HWY_INLINE void KernelAxis(V m0, V m1, V m2, V m3, V m4, V m5, V& g0, V& g1, V& g2) {
  const D d;
  constexpr float kOverA = 1 / (2 * kA2 * (kA2 - kB2)), kOverB = 1 / (2 * kB2 * (kB2 - kA2));
  const V sum_a = hn::Add(m1, m2), difference_a = hn::Sub(m1, m2);
  const V sum_b = hn::Add(m3, m4), difference_b = hn::Sub(m3, m4);
  g0 = hn::MulAdd(hn::Set(d, kOverB), sum_b,
                  hn::MulAdd(hn::Set(d, kOverA), sum_a, hn::Mul(hn::Set(d, 1 / (kA2 * kB2)), m0)));
  g1 = hn::MulAdd(hn::Set(d, kB * kOverB), difference_b, hn::Mul(hn::Set(d, kA * kOverA), difference_a));
  g2 = hn::MulAdd(hn::Set(d, kB2 * kOverB), sum_b, hn::MulAdd(hn::Set(d, kA2 * kOverA), sum_a, m5));
}

// Nine vectors of weights to kLanes kernels, `small` apart, of which `count` are there.
HWY_INLINE void StoreKernels(V* HWY_RESTRICT g, const WeightTarget& target, float* to, size_t count) {
  const D d;
  if (count >= kLanes && !target.accumulate && target.y == 3 && target.x == 1) {
    const size_t small = static_cast<size_t>(target.small);
    V a0 = g[0], a1 = g[1], a2 = g[2], a3 = g[3], b0 = g[4], b1 = g[5], b2 = g[6], b3 = g[7];
    V c0 = g[5], c1 = g[6], c2 = g[7], c3 = g[8];  // three of them once more: a block is four
    TransposeBlocks(a0, a1, a2, a3);
    TransposeBlocks(b0, b1, b2, b3);
    TransposeBlocks(c0, c1, c2, c3);
    const auto store = [&](V x, V y, V z, size_t q) HWY_ATTR {
      StoreBlocks(x, to + q * small, 4 * small);
      StoreBlocks(y, to + q * small + 4, 4 * small);
      StoreBlocks(z, to + q * small + 5, 4 * small);
    };
    store(a0, b0, c0, 0);
    store(a1, b1, c1, 1);
    store(a2, b2, c2, 2);
    store(a3, b3, c3, 3);
    return;
  }
  HWY_ALIGN float some[kLanes];
  for (size_t t = 0; t < 9; ++t) {
    hn::Store(g[t], d, some);
    float* at = to + static_cast<ptrdiff_t>(t / 3) * target.y + static_cast<ptrdiff_t>(t % 3) * target.x;
    for (size_t i = 0; i < HWY_MIN(count, kLanes); ++i, at += target.small) {
      *at = target.accumulate ? *at + some[i] : some[i];
    }
  }
}

void WinogradGradientBlock(const float* HWY_RESTRICT m, size_t point_stride, size_t rows, size_t columns,
                           const WeightTarget& target) {
  const D d;
  for (size_t c = 0; c < columns; c += kLanes) {
    float* to = target.data + static_cast<ptrdiff_t>(c) * target.small;
    const float* from = m + c;
    for (size_t r = 0; r < rows; ++r, to += target.large, from += kWinogradColumns) {
      V x[18], g[9];
      for (size_t i = 0; i < 6; ++i) {
        const auto load = [&](size_t j) HWY_ATTR { return hn::LoadU(d, from + (6 * i + j) * point_stride); };
        KernelAxis(load(0), load(1), load(2), load(3), load(4), load(5), x[3 * i], x[3 * i + 1], x[3 * i + 2]);
      }
      for (size_t j = 0; j < 3; ++j) {
        KernelAxis(x[j], x[3 + j], x[6 + j], x[9 + j], x[12 + j], x[15 + j], g[j], g[3 + j], g[6 + j]);
      }
      StoreKernels(g, target, to, columns - c);
    }
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void winograd_gradient_row(const float* rows, size_t row_stride, size_t tiles, float* z, size_t tile_stride,
                           size_t point_stride) noexcept {
  BNNS_DISPATCH(WinogradGradientRow)(rows, row_stride, tiles, z, tile_stride, point_stride);
}
void winograd_gradient_block(const float* m, size_t point_stride, size_t rows, size_t columns,
                             const WeightTarget& target) noexcept {
  BNNS_DISPATCH(WinogradGradientBlock)(m, point_stride, rows, columns, target);
}

}  // namespace bnns
#endif
