// Helpers that compute a float function in double lanes: two halves promoted, one body, one rounding back.
//
// Used where it makes a function short and nearly correctly rounded (0.5 ulp plus 2^-12) and speed matters less than
// for the activations: powers, trigonometric, hyperbolic and inverse functions. Every float, subnormals too, is a
// normal double, and results beyond the float range become inf, subnormal or 0 in the final DemoteTo.

#if defined(BNNS_SIMD_MATH_DOUBLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_SIMD_MATH_DOUBLE_INL_H_
#undef BNNS_SIMD_MATH_DOUBLE_INL_H_
#else
#define BNNS_SIMD_MATH_DOUBLE_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace detail {

// f(dd, x) on double lanes, for all lanes of x. f is a functor whose operator() carries HWY_ATTR.
template <class D, class V, class F>
HWY_INLINE V InDouble(D d, V x, F f) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    const hn::Rebind<double, D> dd;
    return hn::DemoteTo(d, f(dd, hn::PromoteTo(dd, x)));
  } else {
    const hn::Half<D> dh;
    const hn::Rebind<double, decltype(dh)> dd;
    const auto low = hn::DemoteTo(dh, f(dd, hn::PromoteTo(dd, hn::LowerHalf(dh, x))));
    const auto high = hn::DemoteTo(dh, f(dd, hn::PromoteTo(dd, hn::UpperHalf(dh, x))));
    return hn::Combine(d, high, low);
  }
}

// The same with two arguments.
template <class D, class V, class F>
HWY_INLINE V InDouble(D d, V x, V y, F f) {
  if constexpr (hn::MaxLanes(D()) == 1) {
    const hn::Rebind<double, D> dd;
    return hn::DemoteTo(d, f(dd, hn::PromoteTo(dd, x), hn::PromoteTo(dd, y)));
  } else {
    const hn::Half<D> dh;
    const hn::Rebind<double, decltype(dh)> dd;
    const auto low =
        hn::DemoteTo(dh, f(dd, hn::PromoteTo(dd, hn::LowerHalf(dh, x)), hn::PromoteTo(dd, hn::LowerHalf(dh, y))));
    const auto high =
        hn::DemoteTo(dh, f(dd, hn::PromoteTo(dd, hn::UpperHalf(dh, x)), hn::PromoteTo(dd, hn::UpperHalf(dh, y))));
    return hn::Combine(d, high, low);
  }
}

// Adding this to |v| < 2^50 rounds v to an integer, whose low bits are then the low bits of the sum.
constexpr double kRoundMagicDouble = 0x1.8p52;

// e^x for -200 <= x <= 200 or NaN, relative error 2^-45.
template <class DD, class V>
HWY_INLINE V ExpDouble(DD dd, V x) {
  const hn::RebindToUnsigned<DD> du;
  const V magic = hn::Set(dd, kRoundMagicDouble);
  const V t = hn::MulAdd(x, hn::Set(dd, 1.4426950408889634), magic);
  const V n = hn::Sub(t, magic);
  V r = hn::NegMulAdd(n, hn::Set(dd, 0x1.62e42feep-1), x);
  r = hn::NegMulAdd(n, hn::Set(dd, 0x1.a39ef35793c76p-33), r);
  V q = hn::Set(dd, 2.7180513776944039e-06);
  q = hn::MulAdd(q, r, hn::Set(dd, 2.4882408459124444e-05));
  q = hn::MulAdd(q, r, hn::Set(dd, 0.00019842292914069561));
  q = hn::MulAdd(q, r, hn::Set(dd, 0.0013888808237237783));
  q = hn::MulAdd(q, r, hn::Set(dd, 0.008333332532788354));
  q = hn::MulAdd(q, r, hn::Set(dd, 0.041666666975590516));
  q = hn::MulAdd(q, r, hn::Set(dd, 0.16666666668520838));
  q = hn::MulAdd(q, r, hn::Set(dd, 0.49999999999656647));
  const V one = hn::Set(dd, 1.0);
  const V p = hn::MulAdd(hn::MulAdd(q, r, one), r, one);
  // The exponent of p takes n: p is in [0.7, 1.42] and |n| <= 289, so it stays normal.
  return hn::BitCast(dd, hn::Add(hn::BitCast(du, p), hn::ShiftLeft<52>(hn::BitCast(du, t))));
}

// log x for 0, |x| normal, inf and NaN, relative error 2^-50; negative x gives NaN.
//   log x = e ln 2 + 2 atanh(s),  x = 2^e m,  m in [sqrt(1/2), sqrt(2)),  s = (m - 1) / (m + 1)
template <class DD, class V>
HWY_INLINE V LogDouble(DD dd, V x) {
  const hn::RebindToUnsigned<DD> du;
  const auto bits = hn::BitCast(du, x);
  // Exponent and mantissa relative to sqrt(1/2), the exponent still biased by 1023.
  const auto bias = hn::Set(du, uint64_t{1023} << 52);
  const auto above = hn::Add(hn::Sub(bits, hn::Set(du, 0x3FE6A09E667F3BCDull)), bias);
  const auto field = hn::And(above, hn::Set(du, 0xFFF0000000000000ull));
  const V m = hn::BitCast(dd, hn::Add(hn::Sub(bits, field), bias));
  // Integer to double by the mantissa of 2^52; 2^52 + 1023 takes the bias out again.
  const auto biased = hn::Or(hn::ShiftRight<52>(above), hn::Set(du, 0x4330000000000000ull));
  const V e = hn::Sub(hn::BitCast(dd, biased), hn::Set(dd, 0x1p52 + 1023));
  const V f = hn::Sub(m, hn::Set(dd, 1.0));
  const V s = hn::Div(f, hn::Add(f, hn::Set(dd, 2.0)));
  const V z = hn::Mul(s, s);
  V q = hn::Set(dd, 0.084106799013511369);
  q = hn::MulAdd(q, z, hn::Set(dd, 0.090617600251729685));
  q = hn::MulAdd(q, z, hn::Set(dd, 0.11111687642379209));
  q = hn::MulAdd(q, z, hn::Set(dd, 0.14285708541104214));
  q = hn::MulAdd(q, z, hn::Set(dd, 0.20000000026272338));
  q = hn::MulAdd(q, z, hn::Set(dd, 0.33333333333293358));
  const V atanh = hn::MulAdd(hn::Mul(q, z), s, s);
  V y = hn::MulAdd(e, hn::Set(dd, 0.69314718055994531), hn::Add(atanh, atanh));
  const V inf = hn::Set(dd, std::numeric_limits<double>::infinity());
  y = hn::IfThenElse(hn::Lt(x, inf), y, x);
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(dd)), hn::Neg(inf), y);
  return hn::IfThenElse(hn::Lt(x, hn::Zero(dd)), hn::Set(dd, std::numeric_limits<double>::quiet_NaN()), y);
}

}  // namespace detail

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_SIMD_MATH_DOUBLE_INL_H_
