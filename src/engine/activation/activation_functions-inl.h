// Pieces that several activation functions share, on float vectors. All keep NaN, and stay finite wherever the exact
// value is.

#if defined(BNNS_ENGINE_ACTIVATION_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_ENGINE_ACTIVATION_FUNCTIONS_INL_H_
#undef BNNS_ENGINE_ACTIVATION_FUNCTIONS_INL_H_
#else
#define BNNS_ENGINE_ACTIVATION_FUNCTIONS_INL_H_
#endif

#include <hwy/highway.h>

#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kSeluScale = 1.0507009873554805f;
constexpr float kSeluScaleAlpha = 1.7580993408473766f;  // 1.0507009873554805 * 1.6732632423543773

// x s with 0 where s is 0: x is infinite there only in the limit (-inf * sigmoid(-inf)).
template <class D, class V>
HWY_INLINE V MulOrZero(D d, V x, V s) {
  return hn::IfThenZeroElse(hn::Eq(s, hn::Zero(d)), hn::Mul(x, s));
}

// value, or NaN where s is NaN: for functions made of compares, which lose it. (Highway 1.0.3: Ne(s, s) is false for
// NaN on AVX2 and AVX-512.)
template <class V>
HWY_INLINE V KeepNaN(V s, V value) {
  return hn::IfThenElse(hn::IsNaN(s), s, value);
}

// x < 0 ? negative : other
template <class D, class V>
HWY_INLINE V IfNegative(D d, V x, V negative, V other) {
  return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), negative, other);
}

template <class V>
struct ValueAndSlope {
  V value, slope;
};

// Sigmoid and its derivative s (1 - s) = z / (1 + z)^2 with z = e^-|x|: relative accuracy in both tails.
template <class D, class V>
HWY_INLINE ValueAndSlope<V> SigmoidWithSlope(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V z = detail::ExpNegAbs(d, x);
  const V r = hn::Div(one, hn::Add(one, z));
  const V zr = hn::Mul(z, r);
  return {IfNegative(d, x, zr, r), hn::Mul(zr, r)};
}

// a b - c with one rounding, where c is a b rounded, or close to it. Without FMA by Dekker's product of halves.
template <class D, class V>
HWY_INLINE V ProductMinus(D d, V a, V b, V c) {
#if HWY_NATIVE_FMA
  (void)d;
  return hn::MulSub(a, b, c);
#else
  const hn::RebindToUnsigned<D> du;
  const auto upper = hn::Set(du, 0xfffff000u);
  const V ah = hn::BitCast(d, hn::And(hn::BitCast(du, a), upper)), al = hn::Sub(a, ah);
  const V bh = hn::BitCast(d, hn::And(hn::BitCast(du, b), upper)), bl = hn::Sub(b, bh);
  const V cross = hn::Add(hn::Mul(ah, bl), hn::Mul(al, bh));
  return hn::Add(hn::Add(hn::Sub(hn::Mul(ah, bh), c), cross), hn::Mul(al, bl));
#endif
}

// e^-(x^2). The rounding error of x^2 would cost x^2 ulp: it is put back.
template <class D, class V>
HWY_INLINE V ExpNegSquare(D d, V x) {
  const V a = hn::Min(hn::Set(d, 11.0f), hn::Abs(x));  // e^-121 is 0 in f32
  const V high = hn::Mul(a, a);
  const V e = Exp(d, hn::Neg(high));
  return hn::NegMulAdd(e, ProductMinus(d, a, a, high), e);
}

// The normal distribution at x, by its upper tail at t = |x|: Phi(-t) and the density times sqrt(2 pi), e^-(t^2/2).
//
//   Phi(-t) = e^-(t^2/2) R(t),  R(t) = (t + 4.25)^-1 P(y),  y = 1 - 8.5 / (t + 4.25)
//
// P is a minimax fit of ours on 0 <= t <= 14.5, relative error 2^-27. What rounding took from t + 4.25, from its
// reciprocal and from t^2 is put back (R by its own differential equation R' = t R - 1 / sqrt(2 pi)), so that gelu is
// within 4 ulp in float lanes. src/simd's NormalCdf works in double lanes: gelu 1.50 -> 0.62 ns per element (Zen 4).
template <class V>
struct NormalTail {
  V t;             // |x|, at most 14.5: nothing is left of the tail from 14.2 on
  V ratio, power;  // R(t), and e^-(t^2/2) before its scale by a power of two
  detail::ExpReduced<V> scale;

  // v times the power of two; done last, so that a subnormal result is rounded once.
  template <class D>
  HWY_INLINE V Scaled(D d, V v) const {
    return detail::ScaleByPow2(d, v, scale.n, scale.t);
  }
};
template <class D, class V>
HWY_INLINE NormalTail<V> UpperTail(D d, V x) {
  const V one = hn::Set(d, 1.0f), b = hn::Set(d, 4.25f);
  const V t = hn::Min(hn::Set(d, 14.5f), hn::Abs(x));
  const V s = hn::Add(t, b), r = hn::Div(one, s);
  const V y = hn::NegMulAdd(hn::Set(d, 8.5f), r, one);
  V p = hn::Set(d, -0.000230858743f);
  p = hn::MulAdd(p, y, hn::Set(d, -0.000358392979f));
  p = hn::MulAdd(p, y, hn::Set(d, 0.00218527927f));
  p = hn::MulAdd(p, y, hn::Set(d, -0.000754685607f));
  p = hn::MulAdd(p, y, hn::Set(d, -0.0193680804f));
  p = hn::MulAdd(p, y, hn::Set(d, 0.0852729008f));
  p = hn::MulAdd(p, y, hn::Set(d, -0.220514983f));
  p = hn::MulAdd(p, y, hn::Set(d, 0.418227494f));
  p = hn::MulAdd(p, y, hn::Set(d, -0.625129819f));
  p = hn::MulAdd(p, y, hn::Set(d, 0.759554207f));
  const V ratio = hn::Mul(r, p);
  // From 1/r - 4.25, where the ratio was taken, to t. s - b and its difference from t are exact.
  const V step = hn::MulAdd(ProductMinus(d, r, s, one), s, hn::Sub(t, hn::Sub(s, b)));
  const V slope = hn::MulSub(t, ratio, hn::Set(d, 0.39894228f));
  const V moved = hn::MulAdd(step, slope, ratio);
  const V square = hn::Mul(t, t), half = hn::Set(d, 0.5f);
  const auto e = detail::ReduceExp(d, hn::Mul(square, hn::Set(d, -0.5f)));
  const V power = detail::ExpPoly(d, hn::NegMulAdd(half, ProductMinus(d, t, t, square), e.r));
  return {t, moved, power, e};
}

// x Phi(x) = x - x Phi(-x)
template <class D, class V>
HWY_INLINE V Gelu(D d, V x) {
  const auto tail = UpperTail(d, x);
  const V missing = tail.Scaled(d, hn::Mul(hn::Mul(tail.power, tail.ratio), tail.t));
  return IfNegative(d, x, hn::Neg(missing), hn::Sub(x, missing));
}

// Phi(x) + x e^-(x^2/2) / sqrt(2 pi)
template <class D, class V>
HWY_INLINE V GeluSlope(D d, V x) {
  const auto tail = UpperTail(d, x);
  const V phi = tail.Scaled(d, hn::Mul(tail.power, tail.ratio));
  const V bend = tail.Scaled(d, hn::Mul(hn::Mul(tail.power, tail.t), hn::Set(d, 0.39894228f)));
  return IfNegative(d, x, hn::Sub(phi, bend), hn::Add(hn::Sub(hn::Set(d, 1.0f), phi), bend));
}

// The argument w of x sigmoid(w) = 0.5 x (1 + tanh(w / 2)), w = 2 alpha x (1 + beta x^2), and dw/dx.
// |x| stops at 2^40, so that the cube stays finite; any w that matters is far beyond saturation there.
template <class V>
struct GeluArgument {
  V x, w, slope;
};
template <class D, class V>
HWY_INLINE GeluArgument<V> GeluTanhArgument(D d, V x, float alpha, float beta) {
  const V t = detail::ClampKeepNaN(d, x, -0x1p40f, 0x1p40f);
  const V twice = hn::Set(d, 2 * alpha), one = hn::Set(d, 1.0f);
  const V square = hn::Mul(t, t), vbeta = hn::Set(d, beta);
  const V w = hn::Mul(hn::Mul(twice, t), hn::MulAdd(vbeta, square, one));
  return {t, w, hn::Mul(twice, hn::MulAdd(hn::Set(d, 3 * beta), square, one))};
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_ENGINE_ACTIVATION_FUNCTIONS_INL_H_
