// Pieces that several activation functions share, on float vectors. All keep NaN, and stay finite wherever the exact
// value is.

#if defined(BNNS_OPS_ACTIVATION_FUNCTIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_ACTIVATION_FUNCTIONS_INL_H_
#undef BNNS_OPS_ACTIVATION_FUNCTIONS_INL_H_
#else
#define BNNS_OPS_ACTIVATION_FUNCTIONS_INL_H_
#endif

#include <hwy/highway.h>

#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kSeluScale = 1.0507009873554805f;
constexpr float kSeluScaleAlpha = 1.7580993408473766f;   // 1.0507009873554805 * 1.6732632423543773

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

// e^-(x^2) (or e^-(x^2/2) with scale 0.5). The rounding error of x^2 would cost x^2 ulp: it is put back.
template <class D, class V>
HWY_INLINE V ExpNegSquare(D d, V x, float scale) {
  const V a = hn::Min(hn::Set(d, 15.0f), hn::Abs(x));   // e^-(15^2/2) is 0 in f32
  const V high = hn::Mul(a, a);
#if HWY_NATIVE_FMA
  const V low = hn::MulSub(a, a, high);
#else
  const hn::RebindToUnsigned<D> du;
  const V ah = hn::BitCast(d, hn::And(hn::BitCast(du, a), hn::Set(du, 0xfffff000u)));
  const V al = hn::Sub(a, ah);   // Dekker's product: every step is exact
  const V cross = hn::Mul(hn::Add(ah, ah), al);
  const V low = hn::Add(hn::Add(hn::Sub(hn::Mul(ah, ah), high), cross), hn::Mul(al, al));
#endif
  const V e = Exp(d, hn::Mul(high, hn::Set(d, -scale)));
  return hn::NegMulAdd(e, hn::Mul(low, hn::Set(d, scale)), e);
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

#endif  // BNNS_OPS_ACTIVATION_FUNCTIONS_INL_H_
