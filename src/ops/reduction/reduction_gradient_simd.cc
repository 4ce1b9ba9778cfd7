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

void SlopeW(ReductionSlope slope, const float* x, const float* w, const float* c, const float* a, float epsilon,
            float* dw, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  for (size_t i = 0; i < n; i += N) {
    const size_t left = n - i;
    const auto load = [&](const float* p)
                          HWY_ATTR { return left < N ? LoadPartial(d, p + i, left) : hn::LoadU(d, p + i); };
    const auto v = load(x), g = load(c);
    auto term = v;
    switch (slope) {
      case ReductionSlope::linear:
        break;
      case ReductionSlope::masked:
        term = hn::IfThenElse(hn::Eq(load(w), hn::Zero(d)), hn::Zero(d), v);
        break;
      case ReductionSlope::square:
        term = hn::Mul(hn::Mul(v, v), hn::Set(d, 0.5f));
        break;
      case ReductionSlope::logarithm:
        term = Log(d, hn::Add(v, hn::Set(d, epsilon)));
        break;
      case ReductionSlope::magnitude:
        term = hn::Abs(v);
        break;
      case ReductionSlope::exponential:
        term = Exp(d, hn::Sub(v, load(a)));
        break;
    }
    const auto sum = hn::MulAdd(g, term, load(dw));
    left < N ? StorePartial(d, sum, dw + i, left) : hn::StoreU(sum, d, dw + i);
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
