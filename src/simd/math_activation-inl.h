// The smooth activations on float vectors: Sigmoid, LogSigmoid, Softplus, Tanh, Erf. Float lanes only.
//
//   z = e^-|x| is in [0, 1], so nothing overflows and the far tails keep their relative accuracy.

#if defined(BNNS_SIMD_MATH_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_SIMD_MATH_ACTIVATION_INL_H_
#undef BNNS_SIMD_MATH_ACTIVATION_INL_H_
#else
#define BNNS_SIMD_MATH_ACTIVATION_INL_H_
#endif

#include <hwy/highway.h>

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

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_SIMD_MATH_ACTIVATION_INL_H_
