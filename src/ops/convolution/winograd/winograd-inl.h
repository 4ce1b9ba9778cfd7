// Vectors and block transposes of the Winograd kernels. Included once per target.
#if defined(BNNS_CONVOLUTION_WINOGRAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_CONVOLUTION_WINOGRAD_INL_H_
#undef BNNS_CONVOLUTION_WINOGRAD_INL_H_
#else
#define BNNS_CONVOLUTION_WINOGRAD_INL_H_
#endif

#include <hwy/highway.h>

#include "src/ops/convolution/winograd/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace winograd {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
inline constexpr size_t kLanes = hn::MaxLanes(D());
inline constexpr size_t kStep = kLanes < kWinogradGroup ? kLanes : kWinogradGroup;

// G: the powers of a point over its denominator, rounded once.
constexpr float WeightFactor(double point, double other, size_t power) {
  double f = 1 / (2 * point * point * (point * point - other * other));
  for (size_t i = 0; i < power; ++i) f *= point;
  return static_cast<float>(f);
}

// The numbers of F(7 - kTaps, kTaps). Those of A and B are exact.
template <size_t kTaps>
struct Points {
  static constexpr float kA = winograd_a(kTaps), kB = kWinogradB, kA2 = kA * kA, kB2 = kB * kB;
  static constexpr float kWeight0 = static_cast<float>(1.0 / (double{kA2} * kB2));
  static constexpr float kWeightA[] = {WeightFactor(kA, kB, 0), WeightFactor(kA, kB, 1), WeightFactor(kA, kB, 2),
                                       WeightFactor(kA, kB, 3), WeightFactor(kA, kB, 4)};
  static constexpr float kWeightB[] = {WeightFactor(kB, kA, 0), WeightFactor(kB, kA, 1), WeightFactor(kB, kA, 2),
                                       WeightFactor(kB, kA, 3), WeightFactor(kB, kA, 4)};
};

// Four vectors, whose 128-bit block b holds x[4 b + q][0..3] for q = 0..3, become the four columns x[..][0] to
// x[..][3].
HWY_INLINE void TransposeBlocks(V& v0, V& v1, V& v2, V& v3) {
  const D d;
  const hn::RepartitionToWide<D> dw;
  const auto wide = [&](V v) HWY_ATTR { return hn::BitCast(dw, v); };
  const auto low01 = wide(hn::InterleaveLower(d, v0, v1)), high01 = wide(hn::InterleaveUpper(d, v0, v1));
  const auto low23 = wide(hn::InterleaveLower(d, v2, v3)), high23 = wide(hn::InterleaveUpper(d, v2, v3));
  v0 = hn::BitCast(d, hn::InterleaveLower(dw, low01, low23));
  v1 = hn::BitCast(d, hn::InterleaveUpper(dw, low01, low23));
  v2 = hn::BitCast(d, hn::InterleaveLower(dw, high01, high23));
  v3 = hn::BitCast(d, hn::InterleaveUpper(dw, high01, high23));
}

// Block b: the four floats at from + b * stride.
HWY_INLINE V LoadBlocks(const float* from, ptrdiff_t stride) {
  const D d;
#if HWY_TARGET == HWY_AVX3
  // Two halves, one insertion each: 1.0 ns for 16 floats on a Zen 4, masked broadcasts take 1.5.
  const hn::CappedTag<float, 4> d4;
  const hn::CappedTag<float, 8> d8;
  const auto low = hn::Combine(d8, hn::LoadU(d4, from + stride), hn::LoadU(d4, from));
  const auto high = hn::Combine(d8, hn::LoadU(d4, from + 3 * stride), hn::LoadU(d4, from + 2 * stride));
  return hn::Combine(d, high, low);
#endif
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

// Block b of v to to + b * stride.
HWY_INLINE void StoreBlocks(V v, float* to, size_t stride) {
  const hn::CappedTag<float, 4> d4;
#if HWY_TARGET == HWY_AVX3
  const hn::CappedTag<float, 8> d8;
  const auto low = hn::LowerHalf(d8, v), high = hn::UpperHalf(d8, v);
  hn::StoreU(hn::LowerHalf(d4, low), d4, to);
  hn::StoreU(hn::UpperHalf(d4, low), d4, to + stride);
  hn::StoreU(hn::LowerHalf(d4, high), d4, to + 2 * stride);
  hn::StoreU(hn::UpperHalf(d4, high), d4, to + 3 * stride);
#elif HWY_TARGET == HWY_AVX2
  hn::StoreU(hn::LowerHalf(d4, v), d4, to);
  hn::StoreU(hn::UpperHalf(d4, v), d4, to + stride);
#else
  static_assert(kLanes == 4, "vectors of one block");
  (void)stride;
  hn::StoreU(v, d4, to);
#endif
}

}  // namespace winograd
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
