// Comparisons of f32 vectors; masks become bytes of 0 and 1.

#include "src/ops/compare/compare.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/compare/compare_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {

template <class Test>
HWY_INLINE void ForEach(const float* a, const float* b, uint8_t* y, size_t n, Test test) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<uint8_t, decltype(d)> du8;
  const size_t N = hn::Lanes(d);
  const auto one = hn::Set(di, 1);
  const auto bytes = [&](auto mask)
                         HWY_ATTR { return hn::DemoteTo(du8, hn::IfThenElseZero(hn::RebindMask(di, mask), one)); };
  size_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(bytes(test(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i))), du8, y + i);
  if (i < n) {
    uint8_t last[hn::MaxLanes(du8)];
    hn::StoreU(bytes(test(d, LoadPartial(d, a + i, n - i), LoadPartial(d, b + i, n - i))), du8, last);
    for (size_t k = 0; i + k < n; ++k) y[i + k] = last[k];
  }
}

// Not 0, and NaN: in Highway 1.0.3 Ne is an ordered comparison on AVX2 and AVX-512.
template <class D, class V>
HWY_INLINE hn::Mask<D> Truth(D d, V v) {
  return hn::Not(hn::Eq(v, hn::Zero(d)));
}

}  // namespace

void CompareFloats(BNNSRelationalOperator op, const float* a, const float* b, uint8_t* y, size_t n) {
  switch (op) {
    case BNNSRelationalOperatorEqual:
      return ForEach(a, b, y, n, [](auto /*d*/, auto u, auto v) HWY_ATTR { return hn::Eq(u, v); });
    case BNNSRelationalOperatorLess:
      return ForEach(a, b, y, n, [](auto /*d*/, auto u, auto v) HWY_ATTR { return hn::Lt(u, v); });
    case BNNSRelationalOperatorLessEqual:
      return ForEach(a, b, y, n, [](auto /*d*/, auto u, auto v) HWY_ATTR { return hn::Le(u, v); });
    case BNNSRelationalOperatorGreater:
      return ForEach(a, b, y, n, [](auto /*d*/, auto u, auto v) HWY_ATTR { return hn::Gt(u, v); });
    case BNNSRelationalOperatorGreaterEqual:
      return ForEach(a, b, y, n, [](auto /*d*/, auto u, auto v) HWY_ATTR { return hn::Ge(u, v); });
    case BNNSRelationalOperatorNotEqual:
      return ForEach(a, b, y, n, [](auto /*d*/, auto u, auto v) HWY_ATTR { return hn::Not(hn::Eq(u, v)); });
    case BNNSRelationalOperatorLogicalAND:
      return ForEach(a, b, y, n, [](auto d, auto u, auto v) HWY_ATTR { return hn::And(Truth(d, u), Truth(d, v)); });
    case BNNSRelationalOperatorLogicalOR:
      return ForEach(a, b, y, n, [](auto d, auto u, auto v) HWY_ATTR { return hn::Or(Truth(d, u), Truth(d, v)); });
    case BNNSRelationalOperatorLogicalNOT:
      return ForEach(a, b, y, n, [](auto d, auto u, auto /*v*/) HWY_ATTR { return hn::Not(Truth(d, u)); });
    case BNNSRelationalOperatorLogicalNAND:
      return ForEach(a, b, y, n,
                     [](auto d, auto u, auto v) HWY_ATTR { return hn::Not(hn::And(Truth(d, u), Truth(d, v))); });
    case BNNSRelationalOperatorLogicalNOR:
      return ForEach(a, b, y, n,
                     [](auto d, auto u, auto v) HWY_ATTR { return hn::Not(hn::Or(Truth(d, u), Truth(d, v))); });
    default:
      return ForEach(a, b, y, n, [](auto d, auto u, auto v) HWY_ATTR { return hn::Xor(Truth(d, u), Truth(d, v)); });
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void compare_floats(BNNSRelationalOperator op, const float* a, const float* b, uint8_t* y, size_t n) noexcept {
  BNNS_DISPATCH(CompareFloats)(op, a, b, y, n);
}

}  // namespace bnns
#endif
