// Gradients of sums, element by element; c and a hold one value for each element.

#include "src/ops/reduction/reduction.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/reduction/reduction_gradient_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/reduction/reduction_terms-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

void SlopeX(ReductionSlope slope, const float* x, const float* w, const float* c, const float* a, float epsilon,
            float* dx, size_t n) {
  switch (slope) {
    case ReductionSlope::linear:
    case ReductionSlope::masked:
      Transform(c, dx, n, [](auto /*d*/, auto g) HWY_ATTR { return g; });
      break;
    case ReductionSlope::square:
      Transform2(c, x, dx, n, [](auto /*d*/, auto g, auto v) HWY_ATTR { return hn::Mul(g, v); });
      break;
    case ReductionSlope::logarithm:
      Transform2(c, x, dx, n,
                 [epsilon](auto d, auto g, auto v) HWY_ATTR { return hn::Div(g, hn::Add(v, hn::Set(d, epsilon))); });
      break;
    case ReductionSlope::magnitude:
      Transform2(c, x, dx, n, [](auto d, auto g, auto v) HWY_ATTR {
        const auto zero = hn::Zero(d), one = hn::Set(d, 1.0f);
        const auto sign = hn::IfThenElse(hn::Gt(v, zero), one, hn::IfThenElse(hn::Lt(v, zero), hn::Neg(one), v));
        return hn::Mul(g, sign);  // 0 and NaN stay
      });
      break;
    case ReductionSlope::exponential:
      Transform3(c, x, a, dx, n,
                 [](auto d, auto g, auto v, auto y) HWY_ATTR { return hn::Mul(g, Exp(d, hn::Sub(v, y))); });
      break;
  }
  if (!w) return;
  if (slope == ReductionSlope::masked || slope == ReductionSlope::exponential) {  // e^(x - y) may be infinite there
    Transform2(w, dx, dx, n, [](auto d, auto u, auto v) HWY_ATTR { return MaskedTerm()(d, v, u); });
  } else {
    Transform2(w, dx, dx, n, [](auto /*d*/, auto u, auto v) HWY_ATTR { return hn::Mul(u, v); });
  }
}

// dw += c term(x, w, a)
template <class Term>
HWY_INLINE void AddProducts(const float* x, const float* w, const float* c, const float* a, float* dw, size_t n,
                            const Term& term) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    const auto load = [&](const float* p) HWY_ATTR { return hn::LoadU(d, p + i); };
    hn::StoreU(hn::MulAdd(load(c), term(load, x, w, a), load(dw)), d, dw + i);
  }
  if (i == n) return;
  const size_t left = n - i;
  const auto load = [&](const float* p) HWY_ATTR { return LoadPartial(d, p + i, left); };
  StorePartial(d, hn::MulAdd(load(c), term(load, x, w, a), load(dw)), dw + i, left);
}

void SlopeW(ReductionSlope slope, const float* x, const float* w, const float* c, const float* a, float epsilon,
            float* dw, size_t n) {
  const hn::ScalableTag<float> d;
  const auto add = [&](auto term) HWY_ATTR { AddProducts(x, w, c, a, dw, n, term); };
  switch (slope) {
    case ReductionSlope::linear:
      return add([](auto load, auto v, auto, auto) HWY_ATTR { return load(v); });
    case ReductionSlope::masked:
      return add([d](auto load, auto v, auto u, auto)
                     HWY_ATTR { return hn::IfThenElse(hn::Eq(load(u), hn::Zero(d)), hn::Zero(d), load(v)); });
    case ReductionSlope::square:
      return add([d](auto load, auto v, auto, auto)
                     HWY_ATTR { return hn::Mul(hn::Mul(load(v), load(v)), hn::Set(d, 0.5f)); });
    case ReductionSlope::logarithm:
      return add([d, epsilon](auto load, auto v, auto, auto)
                     HWY_ATTR { return Log(d, hn::Add(load(v), hn::Set(d, epsilon))); });
    case ReductionSlope::magnitude:
      return add([](auto load, auto v, auto, auto) HWY_ATTR { return hn::Abs(load(v)); });
    case ReductionSlope::exponential:
      return add([d](auto load, auto v, auto, auto y) HWY_ATTR { return Exp(d, hn::Sub(load(v), load(y))); });
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void reduction_slope_x(ReductionSlope slope, const float* x, const float* w, const float* c, const float* a,
                       float epsilon, float* dx, size_t n) noexcept {
  BNNS_DISPATCH(SlopeX)(slope, x, w, c, a, epsilon, dx, n);
}
void reduction_slope_w(ReductionSlope slope, const float* x, const float* w, const float* c, const float* a,
                       float epsilon, float* dw, size_t n) noexcept {
  BNNS_DISPATCH(SlopeW)(slope, x, w, c, a, epsilon, dw, n);
}

}  // namespace bnns
#endif
