// Exponentials of float vectors: Exp, Exp2, Expm1, and the pieces that math_activation-inl.h builds on.
//
//   e^x = 2^n e^r,  n = round(x log2 e),  r = x - n ln 2 in [-0.347, 0.347],  e^r by a polynomial
//
// Polynomials in these files are weighted minimax fits of our own (Remez exchange in quad precision, coefficients
// rounded to float one by one with the rest fitted again); each comment gives the error of the rounded polynomial.
// The rounding mode is to nearest. Subnormal results are right with one rounding, unless the caller has set FTZ/DAZ.

#if defined(BNNS_SIMD_MATH_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_SIMD_MATH_EXP_INL_H_
#undef BNNS_SIMD_MATH_EXP_INL_H_
#else
#define BNNS_SIMD_MATH_EXP_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace detail {

// Adding this to |v| < 2^21 rounds v to an integer n, and leaves n + 254 in the low bits of the sum.
// 254 = 127 + 127 is the exponent bias of the two factors that ScaleByPow2 makes.
constexpr float kRoundMagic = 0x1.8p23f + 254.0f;

// x with NaN kept: Min and Max return their second argument when either is NaN (x86), or NaN (arm64).
template <class D, class V>
HWY_INLINE V ClampKeepNaN(D d, V x, float low, float high) {
  return hn::Max(hn::Set(d, low), hn::Min(hn::Set(d, high), x));
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// One instruction does what takes six below: Exp 0.206 -> 0.166 ns/element (Zen 4, 4096 floats).
HWY_INLINE hn::Vec512<float> ScaleFloat(hn::Vec512<float> p, hn::Vec512<float> n) {
  return hn::Vec512<float>{_mm512_scalef_ps(p.raw, n.raw)};
}
HWY_INLINE hn::Vec256<float> ScaleFloat(hn::Vec256<float> p, hn::Vec256<float> n) {
  return hn::Vec256<float>{_mm256_scalef_ps(p.raw, n.raw)};
}
template <size_t N>
HWY_INLINE hn::Vec128<float, N> ScaleFloat(hn::Vec128<float, N> p, hn::Vec128<float, N> n) {
  return hn::Vec128<float, N>{_mm_scalef_ps(p.raw, n.raw)};
}
template <class D, class V>
HWY_INLINE V ScaleByPow2(D /*d*/, V p, V n, V /*t*/) {
  return ScaleFloat(p, n);
}
#else
// p 2^n for -151 <= n <= 128, t = n + kRoundMagic. Two exact factors, so that a subnormal result is rounded once.
template <class D, class V>
HWY_INLINE V ScaleByPow2(D d, V p, V /*n*/, V t) {
  const hn::RebindToUnsigned<D> du;
  const auto sum = hn::BitCast(du, t);
  const auto half = hn::ShiftRight<1>(sum);
  const V a = hn::BitCast(d, hn::ShiftLeft<23>(half));
  const V b = hn::BitCast(d, hn::ShiftLeft<23>(hn::Sub(sum, half)));
  return hn::Mul(hn::Mul(p, a), b);
}
#endif

template <class V>
struct ExpReduced {
  V r, n, t;  // e^x = 2^n e^r, t = n + kRoundMagic
};

// n ln2_hi is exact (10 bits times 8), so r is good without FMA too.
template <class D, class V>
HWY_INLINE ExpReduced<V> ReduceExp(D d, V x) {
  const V magic = hn::Set(d, kRoundMagic);
  const V t = hn::MulAdd(x, hn::Set(d, 1.44269504f), magic);
  const V n = hn::Sub(t, magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  return {r, n, t};
}

// e^r on |r| <= 0.348, relative error 2^-28.
template <class D, class V>
HWY_INLINE V ExpPoly(D d, V r) {
  V q = hn::Set(d, 0.00138437806f);
  q = hn::MulAdd(q, r, hn::Set(d, 0.00836954918f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.0416680612f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.166665137f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.49999994f));
  const V one = hn::Set(d, 1.0f);
  return hn::MulAdd(hn::MulAdd(q, r, one), r, one);
}

// e^x for -104 <= x <= 88.8 or NaN: Exp without its clamp.
template <class D, class V>
HWY_INLINE V ExpInRange(D d, V x) {
  const auto e = ReduceExp(d, x);
  return ScaleByPow2(d, ExpPoly(d, e.r), e.n, e.t);
}

// e^x for -86 <= x <= 88 or NaN, where one exponent field holds 2^n.
template <class D, class V>
HWY_INLINE V ExpNormal(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const auto e = ReduceExp(d, x);
  const auto field = hn::Sub(hn::BitCast(du, e.t), hn::Set(du, 127u));
  return hn::Mul(ExpPoly(d, e.r), hn::BitCast(d, hn::ShiftLeft<23>(field)));
}

}  // namespace detail

// e^x. Above 88.73 inf, below -103.98 zero, subnormal in between.
template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  // e^88.8 overflows in the last multiplication and e^-104 < 2^-150 rounds to zero: no compare, no select.
  return detail::ExpInRange(d, detail::ClampKeepNaN(d, x, -104.0f, 88.8f));
}

// 2^x; exact for integers.
template <class D, class V>
HWY_INLINE V Exp2(D d, V x) {
  x = detail::ClampKeepNaN(d, x, -151.0f, 128.0f);
  const V magic = hn::Set(d, detail::kRoundMagic);
  const V t = hn::Add(x, magic);
  const V n = hn::Sub(t, magic);
  const V r = hn::Sub(x, n);  // exact
  // 2^r = 1 + r q(r) on |r| <= 0.5, relative error 2^-26.3.
  V q = hn::Set(d, 0.000133327863f);
  q = hn::MulAdd(q, r, hn::Set(d, 0.00133879227f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.00962544419f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.0555036627f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.240225941f));
  q = hn::MulAdd(q, r, hn::Set(d, 0.693147182f));
  return detail::ScaleByPow2(d, hn::MulAdd(q, r, hn::Set(d, 1.0f)), n, t);
}

// e^x - 1 without cancellation near 0.
template <class D, class V>
HWY_INLINE V Expm1(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const auto e = detail::ReduceExp(d, detail::ClampKeepNaN(d, x, -18.0f, 89.0f));
  // e^r - 1 = r + r^2 q(r), relative error 2^-26.
  V q = hn::Set(d, 0.00139175483f);
  q = hn::MulAdd(q, e.r, hn::Set(d, 0.00836730096f));
  q = hn::MulAdd(q, e.r, hn::Set(d, 0.041666612f));
  q = hn::MulAdd(q, e.r, hn::Set(d, 0.166665375f));
  q = hn::MulAdd(q, e.r, hn::Set(d, 0.5f));
  const V p = hn::MulAdd(q, hn::Mul(e.r, e.r), e.r);
  // 2^n p + (2^n - 1), all halved so that n = 128 still has a factor.
  const V s = hn::BitCast(d, hn::ShiftLeft<23>(hn::Sub(hn::BitCast(du, e.t), hn::Set(du, 128u))));
  const V half = hn::MulAdd(s, p, hn::Sub(s, hn::Set(d, 0.5f)));
  // x itself is nearest below 2^-25; also keeps -0 and the last bits of subnormals.
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-25f)), x, hn::Add(half, half));
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_SIMD_MATH_EXP_INL_H_
