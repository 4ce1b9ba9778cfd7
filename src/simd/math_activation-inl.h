// The smooth activations on float vectors: Sigmoid, LogSigmoid, Softplus, Tanh, Erf, NormalCdf. In float lanes, but for
// the last.
//
//   z = e^-|x| is in [0, 1], so nothing overflows and the far tails keep their relative accuracy.

#if defined(BNNS_SIMD_MATH_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_SIMD_MATH_ACTIVATION_INL_H_
#undef BNNS_SIMD_MATH_ACTIVATION_INL_H_
#else
#define BNNS_SIMD_MATH_ACTIVATION_INL_H_
#endif

#include <hwy/highway.h>

#include "src/simd/math_double-inl.h"
#include "src/simd/math_exp-inl.h"
#include "src/simd/math_log-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace detail {

// e^-|x|
template <class D, class V>
HWY_INLINE V ExpNegAbs(D d, V x) {
  return ExpInRange(d, hn::Max(hn::Set(d, -104.0f), hn::Neg(hn::Abs(x))));
}

}  // namespace detail

// 1 / (1 + e^-x). With s = z / (1 + z): 1 - s for x >= 0, z - z s else. The last operation then has one rounding of
// the result and only a share of the errors in s; z / (1 + z) itself is off by up to 2.1 ulp.
template <class D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V z = detail::ExpNegAbs(d, x);
  const V s = hn::Div(z, hn::Add(one, z));
  const V top = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), z, one);
  return hn::NegMulAdd(top, s, top);
}

// log(1 + e^x) = max(x, 0) + log(1 + z)
template <class D, class V>
HWY_INLINE V Softplus(D d, V x) {
  return hn::Add(hn::Max(hn::Zero(d), x), detail::Log1pUnit(d, detail::ExpNegAbs(d, x)));
}

// log(sigmoid x) = min(x, 0) - log(1 + z)
template <class D, class V>
HWY_INLINE V LogSigmoid(D d, V x) {
  return hn::Sub(hn::Min(hn::Zero(d), x), detail::Log1pUnit(d, detail::ExpNegAbs(d, x)));
}

// Below 0.625 an odd polynomial; above, 1 - 2 / (e^2|x| + 1), whose second term is at most 0.45.
template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V a = hn::Min(hn::Set(d, 9.1f), hn::Abs(x));  // tanh 9.02 rounds to 1
  const V s = hn::Mul(a, a);
  // tanh a = a + a s q(s), relative error 2^-27.7.
  V q = hn::Set(d, -0.0056922962f);
  q = hn::MulAdd(q, s, hn::Set(d, 0.0206281673f));
  q = hn::MulAdd(q, s, hn::Set(d, -0.0537365153f));
  q = hn::MulAdd(q, s, hn::Set(d, 0.133314058f));
  q = hn::MulAdd(q, s, hn::Set(d, -0.333332807f));
  const V small = hn::MulAdd(hn::Mul(q, s), a, a);
  const V e = detail::ExpNormal(d, hn::Add(a, a));
  const V large = hn::Sub(one, hn::Div(hn::Set(d, 2.0f), hn::Add(e, one)));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.625f)), small, large), x);
}

// Below 27/32 an odd polynomial; above, 1 - e^g(|x|) with g fitted to log(erfc), whose second term is at most 0.24.
template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  const V a = hn::Min(hn::Set(d, 4.0f), hn::Abs(x));  // erf 3.92 rounds to 1
  const V s = hn::Mul(a, a);
  // erf a = a + a q(s), relative error 2^-27.3.
  V q = hn::Set(d, -0.000637496356f);
  q = hn::MulAdd(q, s, hn::Set(d, 0.00506188162f));
  q = hn::MulAdd(q, s, hn::Set(d, -0.0268095359f));
  q = hn::MulAdd(q, s, hn::Set(d, 0.112829119f));
  q = hn::MulAdd(q, s, hn::Set(d, -0.376125932f));
  q = hn::MulAdd(q, s, hn::Set(d, 0.128379166f));
  const V small = hn::MulAdd(q, a, a);
  // The error of g times erfc is below 2^-28.8 of erf.
  V g = hn::Set(d, 0.000204339609f);
  g = hn::MulAdd(g, a, hn::Set(d, -0.00312410225f));
  g = hn::MulAdd(g, a, hn::Set(d, 0.0225429349f));
  g = hn::MulAdd(g, a, hn::Set(d, -0.104573324f));
  g = hn::MulAdd(g, a, hn::Set(d, -0.636467397f));
  g = hn::MulAdd(g, a, hn::Set(d, -1.12809014f));
  g = hn::MulAdd(g, a, hn::Set(d, -9.78274984e-05f));
  const V large = hn::Sub(hn::Set(d, 1.0f), detail::ExpNormal(d, g));
  return hn::CopySign(hn::IfThenElse(hn::Lt(a, hn::Set(d, 0.84375f)), small, large), x);
}

namespace detail {

// x < 0: e^(-x^2/2) P(1 - 6 q) q,  q = 1 / (|x| + 3),  relative error 2^-30;  x >= 0: one minus that.
struct NormalCdfOp {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x) const {
    const V one = hn::Set(dd, 1.0);
    const V a = hn::Min(hn::Set(dd, 14.45), hn::Abs(x));  // below half the smallest float from 14.2 on
    const V e = ExpDouble(dd, hn::Mul(hn::Mul(a, a), hn::Set(dd, -0.5)));
    const V q = hn::Div(one, hn::Add(a, hn::Set(dd, 3.0)));
    const V y = hn::NegMulAdd(q, hn::Set(dd, 6.0), one);
    V g = hn::Set(dd, 5.4450461412985743e-05);
    g = hn::MulAdd(g, y, hn::Set(dd, 0.00013124352183543184));
    g = hn::MulAdd(g, y, hn::Set(dd, -0.00024475796463319121));
    g = hn::MulAdd(g, y, hn::Set(dd, -0.0010325173788434693));
    g = hn::MulAdd(g, y, hn::Set(dd, 0.0010247880843610993));
    g = hn::MulAdd(g, y, hn::Set(dd, 0.0069693010204390877));
    g = hn::MulAdd(g, y, hn::Set(dd, -0.010462521362353166));
    g = hn::MulAdd(g, y, hn::Set(dd, -0.047262687539378102));
    g = hn::MulAdd(g, y, hn::Set(dd, 0.23001770002888272));
    g = hn::MulAdd(g, y, hn::Set(dd, -0.50933199140712848));
    g = hn::MulAdd(g, y, hn::Set(dd, 0.7290836903693162));
    const V tail = hn::Mul(e, hn::Mul(g, q));
    return hn::IfThenElse(hn::Lt(x, hn::Zero(dd)), tail, hn::Sub(one, tail));
  }
};

}  // namespace detail

// (1 + erf(x / sqrt 2)) / 2, the factor of GELU, with its relative accuracy kept down to the subnormals at x = -14:
// there 1 + erf cancels, rounding x / sqrt 2 alone costs 80 ulp, and float lanes reach no better than 5 ulp.
template <class D, class V>
HWY_INLINE V NormalCdf(D d, V x) {
  return detail::InDouble(d, x, detail::NormalCdfOp());
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_SIMD_MATH_ACTIVATION_INL_H_
