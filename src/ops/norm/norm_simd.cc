// Kernels of norm.h. The product of two f32 is exact in double, so squares lose nothing before they are added.

#include "src/ops/norm/norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/norm/norm_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D64 = hn::ScalableTag<double>;
using D32 = hn::Rebind<float, D64>;  // as many floats as a vector holds doubles
using V64 = hn::Vec<D64>;

// Four accumulators hide the latency of the multiply-add; they are joined as (0 1)(2 3), then the lanes.
double SquareSum(const float* x, size_t n) {
  const D64 d;
  const D32 f;
  const size_t N = hn::Lanes(d);
  V64 a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  size_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
    const V64 x0 = hn::PromoteTo(d, hn::LoadU(f, x + i)), x1 = hn::PromoteTo(d, hn::LoadU(f, x + i + N));
    const V64 x2 = hn::PromoteTo(d, hn::LoadU(f, x + i + 2 * N)), x3 = hn::PromoteTo(d, hn::LoadU(f, x + i + 3 * N));
    a0 = hn::MulAdd(x0, x0, a0);
    a1 = hn::MulAdd(x1, x1, a1);
    a2 = hn::MulAdd(x2, x2, a2);
    a3 = hn::MulAdd(x3, x3, a3);
  }
  for (; i + N <= n; i += N) {
    const V64 v = hn::PromoteTo(d, hn::LoadU(f, x + i));
    a0 = hn::MulAdd(v, v, a0);
  }
  if (i < n) {
    const V64 v = hn::PromoteTo(d, LoadPartial(f, x + i, n - i));
    a1 = hn::MulAdd(v, v, a1);
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a0, a1), hn::Add(a2, a3))));
}

void SquareAdd(const float* x, double* sums, size_t n) {
  const D64 d;
  const D32 f;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    const V64 v = hn::PromoteTo(d, hn::LoadU(f, x + i));
    hn::StoreU(hn::MulAdd(v, v, hn::LoadU(d, sums + i)), d, sums + i);
  }
  if (i == n) return;
  const V64 v = hn::PromoteTo(d, LoadPartial(f, x + i, n - i));
  StorePartial(d, hn::MulAdd(v, v, LoadPartial(d, sums + i, n - i)), sums + i, n - i);
}

// The product is formed in double: factors near the limits of f32 (a norm of 1e38 clipped to 1e-5) stay exact.
void ScaleAll(const float* x, double factor, float* y, size_t n) {
  const D64 d;
  const D32 f;
  const size_t N = hn::Lanes(d);
  const V64 s = hn::Set(d, factor);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    hn::StoreU(hn::DemoteTo(f, hn::Mul(s, hn::PromoteTo(d, hn::LoadU(f, x + i)))), f, y + i);
  }
  if (i == n) return;
  const V64 v = hn::PromoteTo(d, LoadPartial(f, x + i, n - i));
  StorePartial(f, hn::DemoteTo(f, hn::Mul(s, v)), y + i, n - i);
}

void ScaleEach(const float* x, const double* factors, float* y, size_t n) {
  const D64 d;
  const D32 f;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    const V64 v = hn::PromoteTo(d, hn::LoadU(f, x + i));
    hn::StoreU(hn::DemoteTo(f, hn::Mul(hn::LoadU(d, factors + i), v)), f, y + i);
  }
  if (i == n) return;
  const V64 v = hn::PromoteTo(d, LoadPartial(f, x + i, n - i));
  StorePartial(f, hn::DemoteTo(f, hn::Mul(LoadPartial(d, factors + i, n - i), v)), y + i, n - i);
}

void ClampAll(const float* x, float low, float high, float* y, size_t n) {
  Transform(x, y, n, [low, high](auto d, auto v) HWY_ATTR {
    const auto lo = hn::Set(d, low), hi = hn::Set(d, high);
    v = hn::IfThenElse(hn::Lt(v, lo), lo, v);  // comparisons, not Min and Max: those lose a NaN on x86
    return hn::IfThenElse(hn::Gt(v, hi), hi, v);
  });
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

double square_sum(const float* x, size_t n) noexcept {
  return BNNS_DISPATCH(SquareSum)(x, n);
}
void square_add(const float* x, double* sums, size_t n) noexcept {
  BNNS_DISPATCH(SquareAdd)(x, sums, n);
}
void scale_all(const float* x, double factor, float* y, size_t n) noexcept {
  BNNS_DISPATCH(ScaleAll)(x, factor, y, n);
}
void scale_each(const float* x, const double* factors, float* y, size_t n) noexcept {
  BNNS_DISPATCH(ScaleEach)(x, factors, y, n);
}
void clamp_all(const float* x, float low, float high, float* y, size_t n) noexcept {
  BNNS_DISPATCH(ClampAll)(x, low, high, y, n);
}

}  // namespace bnns
#endif
