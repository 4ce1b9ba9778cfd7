// Pow, the hyperbolic functions and their inverses on float vectors, in double lanes.

#if defined(BNNS_SIMD_MATH_POWER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_SIMD_MATH_POWER_INL_H_
#undef BNNS_SIMD_MATH_POWER_INL_H_
#else
#define BNNS_SIMD_MATH_POWER_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "src/simd/math_double-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace detail {

// e^(y log x) for x >= 0. The clamp keeps NaN (second argument); e^-110 and e^110 become 0 and inf in float.
struct PowOp {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x, V y) const {
    const V v = hn::Mul(y, LogDouble(dd, x));
    return ExpDouble(dd, hn::Max(hn::Set(dd, -110.0), hn::Min(hn::Set(dd, 110.0), v)));
  }
};

// e^a with a = |x| capped where both sinh and cosh are beyond float.
template <class DD, class V>
HWY_INLINE V ExpAbs(DD dd, V x) {
  return ExpDouble(dd, hn::Min(hn::Set(dd, 110.0), hn::Abs(x)));
}

struct SinhOp {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x) const {
    const V one = hn::Set(dd, 1.0);
    const V e = ExpAbs(dd, x);
    const V large = hn::CopySign(hn::Mul(hn::Sub(e, hn::Div(one, e)), hn::Set(dd, 0.5)), x);
    // Taylor below 1/16, where the difference would cancel: x (1 + s/6 + s^2/120), error 2^-36.
    const V s = hn::Mul(x, x);
    const V q = hn::MulAdd(s, hn::Set(dd, 1.0 / 120), hn::Set(dd, 1.0 / 6));
    const V small = hn::Mul(x, hn::MulAdd(q, s, one));
    return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(dd, 0.0625)), small, large);
  }
};

struct CoshOp {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x) const {
    const V e = ExpAbs(dd, x);
    return hn::Mul(hn::Add(e, hn::Div(hn::Set(dd, 1.0), e)), hn::Set(dd, 0.5));
  }
};

// log(|x| + sqrt(x^2 + 1)); x (1 - s/6 + 3 s^2/40) below 1/64, error 2^-40.
struct AsinhOp {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x) const {
    const V one = hn::Set(dd, 1.0);
    const V a = hn::Abs(x);
    const V s = hn::Mul(x, x);
    const V large = hn::CopySign(LogDouble(dd, hn::Add(a, hn::Sqrt(hn::Add(s, one)))), x);
    const V q = hn::MulAdd(s, hn::Set(dd, 3.0 / 40), hn::Set(dd, -1.0 / 6));
    const V small = hn::Mul(x, hn::MulAdd(q, s, one));
    return hn::IfThenElse(hn::Lt(a, hn::Set(dd, 0.015625)), small, large);
  }
};

// log(x + sqrt(x^2 - 1)); x^2 - 1 is exact near x = 1, where acosh is at least 2^-11.
struct AcoshOp {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x) const {
    const V one = hn::Set(dd, 1.0);
    const V y = LogDouble(dd, hn::Add(x, hn::Sqrt(hn::MulSub(x, x, one))));
    return hn::IfThenElse(hn::Lt(x, one), hn::Set(dd, std::numeric_limits<double>::quiet_NaN()), y);
  }
};

// log((1 + a) / (1 - a)) / 2; x (1 + s/3 + s^2/5) below 1/64, error 2^-38.
struct AtanhOp {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x) const {
    const V one = hn::Set(dd, 1.0);
    const V a = hn::Abs(x);
    const V s = hn::Mul(x, x);
    const V log = LogDouble(dd, hn::Div(hn::Add(one, a), hn::Sub(one, a)));
    const V large = hn::CopySign(hn::Mul(log, hn::Set(dd, 0.5)), x);
    const V q = hn::MulAdd(s, hn::Set(dd, 1.0 / 5), hn::Set(dd, 1.0 / 3));
    const V small = hn::Mul(x, hn::MulAdd(q, s, one));
    return hn::IfThenElse(hn::Lt(a, hn::Set(dd, 0.015625)), small, large);
  }
};

}  // namespace detail

// x^y by the rules of C99 (annex F), vector lanes independent:
//   y = 0 or x = 1 give 1 even with NaN; x = -1 and y = +-inf give 1; x < 0 needs an integer y, else NaN;
//   odd integers y keep the sign of x, -0 and -inf included.
template <class D, class V>
HWY_INLINE V Pow(D d, V x, V y) {
  const V one = hn::Set(d, 1.0f);
  const V zero = hn::Zero(d);
  const V a = hn::Abs(x);
  const V inf = hn::Set(d, std::numeric_limits<float>::infinity());
  V r = detail::InDouble(d, a, y, detail::PowOp());
  // 0 times inf in y log 1; NaN y stays.
  r = hn::IfThenElse(hn::And(hn::Eq(a, one), hn::Eq(hn::Abs(y), inf)), one, r);
  const V half = hn::Mul(y, hn::Set(d, 0.5f));
  const auto integer = hn::Eq(hn::Round(y), y);  // inf counts as an even integer; so does all beyond 2^24
  const auto odd = hn::AndNot(hn::Eq(hn::Round(half), half), integer);
  r = hn::IfThenElse(odd, hn::CopySign(r, x), r);
  const auto negative = hn::And(hn::Lt(x, zero), hn::Lt(a, inf));  // finite, not -0
  r = hn::IfThenElse(hn::AndNot(integer, negative), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), r);
  return hn::IfThenElse(hn::Or(hn::Eq(y, zero), hn::Eq(x, one)), one, r);
}

template <class D, class V>
HWY_INLINE V Sinh(D d, V x) {
  return detail::InDouble(d, x, detail::SinhOp());
}

template <class D, class V>
HWY_INLINE V Cosh(D d, V x) {
  return detail::InDouble(d, x, detail::CoshOp());
}

template <class D, class V>
HWY_INLINE V Asinh(D d, V x) {
  return detail::InDouble(d, x, detail::AsinhOp());
}

template <class D, class V>
HWY_INLINE V Acosh(D d, V x) {
  return detail::InDouble(d, x, detail::AcoshOp());
}

template <class D, class V>
HWY_INLINE V Atanh(D d, V x) {
  return detail::InDouble(d, x, detail::AtanhOp());
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_SIMD_MATH_POWER_INL_H_
