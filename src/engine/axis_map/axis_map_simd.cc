// Rows of f32: y = w x, y += w x, the sum of x.

#include "src/engine/axis_map/axis_map.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/engine/axis_map/axis_map_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

void RowScale(const float* x, float weight, float* y, size_t n) {
  Transform(x, y, n, [weight](auto d, auto v) HWY_ATTR { return hn::Mul(hn::Set(d, weight), v); });
}

void RowScaleAdd(const float* x, float weight, float* y, size_t n) {
  Transform2(x, y, y, n,
             [weight](auto d, auto v, auto sum) HWY_ATTR { return hn::MulAdd(hn::Set(d, weight), v, sum); });
}

// Four accumulators in a block; the order depends on n alone.
double RowSum(const float* x, size_t n) {
  const auto block = [](const float* p, size_t m)
                         HWY_ATTR { return Reduce(p, m, SumOp(), [](auto /*d*/, auto v) HWY_ATTR { return v; }); };
  if (n <= kRowBlock) return static_cast<double>(block(x, n));
  double sum = 0;
  for (size_t i = 0; i < n; i += kRowBlock) sum += static_cast<double>(block(x + i, HWY_MIN(kRowBlock, n - i)));
  return sum;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void row_scale(const float* x, float weight, float* y, size_t n) noexcept {
  BNNS_DISPATCH(RowScale)(x, weight, y, n);
}
void row_scale_add(const float* x, float weight, float* y, size_t n) noexcept {
  BNNS_DISPATCH(RowScaleAdd)(x, weight, y, n);
}
double row_sum(const float* x, size_t n) noexcept {
  return BNNS_DISPATCH(RowSum)(x, n);
}

}  // namespace bnns
#endif
