// Logarithms of float vectors: Log, Log2, Log1p.
//
//   log x = e ln 2 + log(1 + f),  x = 2^e (1 + f),  log(1 + f) = f + f^2 q(f)
//
// 1 + f is in [sqrt(1/2), sqrt(2)), or [0.75, 1.5) where the processor splits x for us (AVX-512).
// f is exact and nothing cancels while e = 0, so the relative error stays small near x = 1.

#if defined(BNNS_SIMD_MATH_LOG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_SIMD_MATH_LOG_INL_H_
#undef BNNS_SIMD_MATH_LOG_INL_H_
#else
#define BNNS_SIMD_MATH_LOG_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace detail {

template <class V>
struct LogParts {
  V e, f;  // x = 2^e (1 + f)
};

// q with log(1 + f) = f + f^2 q(f) on [-0.293, 0.5], relative error 2^-26.5.
template <class D, class V>
HWY_INLINE V LogTail(D d, V f) {
  V q = hn::Set(d, -0.0580182783f);
  q = hn::MulAdd(q, f, hn::Set(d, 0.119828857f));
  q = hn::MulAdd(q, f, hn::Set(d, -0.135525808f));
  q = hn::MulAdd(q, f, hn::Set(d, 0.14351359f));
  q = hn::MulAdd(q, f, hn::Set(d, -0.16590862f));
  q = hn::MulAdd(q, f, hn::Set(d, 0.199924007f));
  q = hn::MulAdd(q, f, hn::Set(d, -0.250020355f));
  q = hn::MulAdd(q, f, hn::Set(d, 0.333334804f));
  q = hn::MulAdd(q, f, hn::Set(d, -0.499999851f));
  return q;
}

template <class D, class V>
HWY_INLINE V LogPoly(D d, V f) {
  return hn::MulAdd(LogTail(d, f), hn::Mul(f, f), f);
}

// Positive normal x.
template <class D, class V>
HWY_INLINE LogParts<V> SplitNormal(D d, V x) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, x);
  const auto above = hn::Sub(bits, hn::Set(di, 0x3F3504F3));  // relative to sqrt(1/2)
  const auto e = hn::ShiftRight<23>(above);
  const V m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(e)));
  return {hn::ConvertTo(d, e), hn::Sub(m, hn::Set(d, 1.0f))};
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
// getexp and getmant take subnormals as they are: Log 0.318 -> 0.266 ns/element (Zen 4, 4096 floats).
HWY_INLINE hn::Vec512<float> Exponent(hn::Vec512<float> x) {
  return hn::Vec512<float>{_mm512_getexp_ps(x.raw)};
}
HWY_INLINE hn::Vec256<float> Exponent(hn::Vec256<float> x) {
  return hn::Vec256<float>{_mm256_getexp_ps(x.raw)};
}
template <size_t N>
HWY_INLINE hn::Vec128<float, N> Exponent(hn::Vec128<float, N> x) {
  return hn::Vec128<float, N>{_mm_getexp_ps(x.raw)};
}
HWY_INLINE hn::Vec512<float> Mantissa(hn::Vec512<float> x) {  // in [0.75, 1.5)
  return hn::Vec512<float>{_mm512_getmant_ps(x.raw, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_zero)};
}
HWY_INLINE hn::Vec256<float> Mantissa(hn::Vec256<float> x) {
  return hn::Vec256<float>{_mm256_getmant_ps(x.raw, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_zero)};
}
template <size_t N>
HWY_INLINE hn::Vec128<float, N> Mantissa(hn::Vec128<float, N> x) {
  return hn::Vec128<float, N>{_mm_getmant_ps(x.raw, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_zero)};
}
template <class D, class V>
HWY_INLINE LogParts<V> SplitPositive(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V f = hn::Sub(Mantissa(x), one);
  const V e = Exponent(x);  // of x in [1, 2) 2^e: one less than ours where the mantissa was halved
  return {hn::IfThenElse(hn::Lt(f, hn::Zero(d)), hn::Add(e, one), e), f};
}
#else
// Positive x, subnormals included.
template <class D, class V>
HWY_INLINE LogParts<V> SplitPositive(D d, V x) {
  const auto tiny = hn::Lt(x, hn::Set(d, 0x1p-126f));
  const V normal = hn::IfThenElse(tiny, hn::Mul(x, hn::Set(d, 0x1p24f)), x);
  auto parts = SplitNormal(d, normal);
  parts.e = hn::Sub(parts.e, hn::IfThenElseZero(tiny, hn::Set(d, 24.0f)));
  return parts;
}
#endif

// What log x is outside (0, inf): -inf at 0, NaN below, x at inf and NaN.
template <class D, class V>
HWY_INLINE V LogSpecial(D d, V x, V y) {
  const V inf = hn::Set(d, std::numeric_limits<float>::infinity());
  const V zero = hn::Zero(d);
  y = hn::IfThenElse(hn::Lt(x, inf), y, x);
  y = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(inf), y);
  return hn::IfThenElse(hn::Lt(x, zero), hn::Set(d, std::numeric_limits<float>::quiet_NaN()), y);
}

constexpr float kLn2 = 0.693147182f;  // off by 2^-28.4 relative: no second word needed

// log(1 + z) for 0 <= z <= 1 or NaN: 1 + z is 1 + f, or 2 (1 + f) with f = (z - 1) / 2, both exact.
template <class D, class V>
HWY_INLINE V Log1pUnit(D d, V z) {
  const V half = hn::Set(d, 0.5f);
  const auto upper = hn::Ge(z, half);
  const V f = hn::IfThenElse(upper, hn::MulSub(z, half, half), z);
  return hn::Add(LogPoly(d, f), hn::IfThenElseZero(upper, hn::Set(d, kLn2)));
}

}  // namespace detail

template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  const auto parts = detail::SplitPositive(d, x);
  const V y = hn::MulAdd(parts.e, hn::Set(d, detail::kLn2), detail::LogPoly(d, parts.f));
  return detail::LogSpecial(d, x, y);
}

// log2 x; exact for powers of two.
template <class D, class V>
HWY_INLINE V Log2(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const auto parts = detail::SplitPositive(d, x);
  const V f = parts.f;
  // f log2 e is most of the result: the upper halves of both (12 bits each) give an exact product, so that only the
  // last addition rounds at full size. One rounded product instead is off by 2.07 ulp without FMA.
  const V upper = hn::And(f, hn::BitCast(d, hn::Set(du, 0xFFFFF000u)));
  const V log2e_upper = hn::Set(d, 0x1.714p0f);
  const V tail = hn::Mul(detail::LogTail(d, f), hn::Mul(f, f));
  V rest = hn::MulAdd(f, hn::Set(d, 0.000312228389f), hn::Mul(tail, hn::Set(d, 1.44269504f)));
  rest = hn::MulAdd(hn::Sub(f, upper), log2e_upper, rest);
  return detail::LogSpecial(d, x, hn::Add(hn::MulAdd(upper, log2e_upper, parts.e), rest));
}

// log(1 + x) without losing the low bits of a small x.
template <class D, class V>
HWY_INLINE V Log1p(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Add(x, one);
  // x + 1 = u + c exactly (Knuth's two-sum, any order of magnitudes).
  const V v = hn::Sub(u, x);
  const V c = hn::Add(hn::Sub(x, hn::Sub(u, v)), hn::Sub(one, v));
  auto parts = detail::SplitNormal(d, u);
  // f += c / 2^e. c is 0 or below half an ulp of u from e = 60 on, where the factor would leave the exponent's range.
  const auto field = hn::Sub(hn::Set(di, 127), hn::ConvertTo(di, hn::Min(parts.e, hn::Set(d, 60.0f))));
  const V scaled = hn::Mul(c, hn::BitCast(d, hn::ShiftLeft<23>(field)));
  parts.f = hn::Add(parts.f, scaled);
  const V y = hn::MulAdd(parts.e, hn::Set(d, detail::kLn2), detail::LogPoly(d, parts.f));
  // u is 0, negative, inf or NaN exactly where x is -1, below, inf or NaN. The sign of x is that of the result (-0).
  return hn::CopySign(detail::LogSpecial(d, u, y), x);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_SIMD_MATH_LOG_INL_H_
