// The search for what may be among the best: most of a row is compared by vectors and passed over.

#include "src/ops/topk/topk_select.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/topk/topk_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

size_t FindAbove(const float* x, size_t begin, size_t n, float least) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  const auto limit = hn::Set(d, least);
  const auto above = [&](auto v) HWY_ATTR { return hn::Or(hn::Gt(v, limit), hn::IsNaN(v)); };
  size_t i = begin;
  for (; i + 4 * N <= n; i += 4 * N) {
    const auto a = hn::Or(above(hn::LoadU(d, x + i)), above(hn::LoadU(d, x + i + N)));
    const auto b = hn::Or(above(hn::LoadU(d, x + i + 2 * N)), above(hn::LoadU(d, x + i + 3 * N)));
    if (!hn::AllFalse(d, hn::Or(a, b))) break;
  }
  for (; i + N <= n; i += N) {
    const intptr_t lane = hn::FindFirstTrue(d, above(hn::LoadU(d, x + i)));
    if (lane >= 0) return i + static_cast<size_t>(lane);
  }
  for (; i < n; ++i) {
    if (x[i] > least || x[i] != x[i]) return i;
  }
  return n;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns::topk {

size_t find_above(const float* x, size_t begin, size_t n, float least) noexcept {
  return BNNS_DISPATCH(FindAbove)(x, begin, n, least);
}

}  // namespace bnns::topk
#endif
