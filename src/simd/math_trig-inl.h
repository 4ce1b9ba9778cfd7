// Trigonometric functions of float vectors and their inverses, in double lanes: Sin, Cos, Tan, Asin, Acos, Atan.
//
//   sin: x = n pi + r,          sin x = (-1)^n sin r
//   cos: x = (n + 1/2) pi + r,  cos x = -(-1)^n sin r     one polynomial on |r| <= pi/2 serves both, exact at the zeros
//   tan: x = n pi/2 + r,        tan x = tan r or -1 / tan r
//
// Up to 2^28 the reduction takes pi in three words (24 + 24 + 53 bits; n times the first two is exact without FMA).
// Larger lanes are rare and go through libm one by one, after the vector code, so a lane's bits never depend on its
// neighbours.

#if defined(BNNS_SIMD_MATH_TRIG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_SIMD_MATH_TRIG_INL_H_
#undef BNNS_SIMD_MATH_TRIG_INL_H_
#else
#define BNNS_SIMD_MATH_TRIG_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

#include "src/simd/math_double-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace detail {

constexpr float kMaxVectorTrig = 0x1p28f;

HWY_NOINLINE inline void ReplaceLarge(const float* x, float* y, size_t n, double (*f)(double)) {
  for (size_t i = 0; i < n; ++i) {
    if (x[i] > kMaxVectorTrig || x[i] < -kMaxVectorTrig) y[i] = static_cast<float>(f(x[i]));
  }
}

// y where |x| <= 2^28 or x is NaN, f(x) of libm elsewhere.
template <class D, class V>
HWY_INLINE V WithLargeArguments(D d, V x, V y, double (*f)(double)) {
  if (HWY_LIKELY(hn::AllFalse(d, hn::Gt(hn::Abs(x), hn::Set(d, kMaxVectorTrig))))) return y;
  HWY_ALIGN float xs[hn::MaxLanes(D())];
  HWY_ALIGN float ys[hn::MaxLanes(D())];
  hn::Store(x, d, xs);
  hn::Store(y, d, ys);
  ReplaceLarge(xs, ys, hn::Lanes(d), f);
  return hn::Load(d, ys);
}

// x - n c for c = pi scale, scale a power of two.
template <class DD, class V>
HWY_INLINE V SubtractPi(DD dd, V x, V n, double scale) {
  x = hn::NegMulAdd(n, hn::Set(dd, 0x1.921fb4p+1 * scale), x);
  x = hn::NegMulAdd(n, hn::Set(dd, 0x1.4442dp-23 * scale), x);
  return hn::NegMulAdd(n, hn::Set(dd, 0x1.8469898cc517p-47 * scale), x);
}

// sin r on |r| <= pi/2, relative error 2^-43.7. The factored form keeps -0.
template <class DD, class V>
HWY_INLINE V SinDouble(DD dd, V r) {
  const V s = hn::Mul(r, r);
  V q = hn::Set(dd, 1.5408880670592568e-10);
  q = hn::MulAdd(q, s, hn::Set(dd, -2.5030152851925266e-08));
  q = hn::MulAdd(q, s, hn::Set(dd, 2.7556952002126854e-06));
  q = hn::MulAdd(q, s, hn::Set(dd, -0.00019841266717091714));
  q = hn::MulAdd(q, s, hn::Set(dd, 0.0083333333210248908));
  q = hn::MulAdd(q, s, hn::Set(dd, -0.1666666666650361));
  return hn::Mul(r, hn::MulAdd(q, s, hn::Set(dd, 1.0)));
}

// cos r on |r| <= pi/4, relative error 2^-42.9.
template <class DD, class V>
HWY_INLINE V CosDouble(DD dd, V r) {
  const V s = hn::Mul(r, r);
  V q = hn::Set(dd, -2.7205401917258955e-07);
  q = hn::MulAdd(q, s, hn::Set(dd, 2.4799455876929259e-05));
  q = hn::MulAdd(q, s, hn::Set(dd, -0.0013888883483775284));
  q = hn::MulAdd(q, s, hn::Set(dd, 0.041666666619300456));
  q = hn::MulAdd(q, s, hn::Set(dd, -0.5));
  return hn::MulAdd(q, s, hn::Set(dd, 1.0));
}

// y with its sign flipped where the integer in t's low bits is odd.
template <class DD, class V>
HWY_INLINE V NegateOdd(DD dd, V t, V y) {
  const hn::RebindToUnsigned<DD> du;
  return hn::Xor(y, hn::BitCast(dd, hn::ShiftLeft<63>(hn::BitCast(du, t))));
}

struct SinOp {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x) const {
    const V magic = hn::Set(dd, kRoundMagicDouble);
    const V t = hn::MulAdd(x, hn::Set(dd, 0.31830988618379069), magic);
    return NegateOdd(dd, t, SinDouble(dd, SubtractPi(dd, x, hn::Sub(t, magic), 1.0)));
  }
};

struct CosOp {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x) const {
    const V magic = hn::Set(dd, kRoundMagicDouble);
    const V half = hn::Set(dd, 0.5);
    const V t = hn::Add(hn::Sub(hn::Mul(x, hn::Set(dd, 0.31830988618379069)), half), magic);
    const V r = SubtractPi(dd, x, hn::Add(hn::Sub(t, magic), half), 1.0);
    return hn::Neg(NegateOdd(dd, t, SinDouble(dd, r)));
  }
};

struct TanOp {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x) const {
    const hn::RebindToUnsigned<DD> du;
    const V magic = hn::Set(dd, kRoundMagicDouble);
    const V t = hn::MulAdd(x, hn::Set(dd, 0.63661977236758138), magic);
    const V r = SubtractPi(dd, x, hn::Sub(t, magic), 0.5);
    const V sin = SinDouble(dd, r);
    const V cos = CosDouble(dd, r);
    const auto odd = hn::RebindMask(dd, hn::TestBit(hn::BitCast(du, t), hn::Set(du, uint64_t{1})));
    return hn::Div(hn::IfThenElse(odd, hn::Neg(cos), sin), hn::IfThenElse(odd, sin, cos));
  }
};

// atan x, relative error 2^-45. |x| is brought to |t| <= tan(pi/8) by one division:
//   x > tan(3 pi/8): pi/2 + atan(-1 / x);  x > tan(pi/8): pi/4 + atan((x - 1) / (x + 1))
template <class DD, class V>
HWY_INLINE V AtanDouble(DD dd, V x) {
  const V one = hn::Set(dd, 1.0);
  const V a = hn::Abs(x);
  const auto middle = hn::Gt(a, hn::Set(dd, 0.41421356237309503));
  const auto high = hn::Gt(a, hn::Set(dd, 2.4142135623730949));
  const V num = hn::IfThenElse(high, hn::Set(dd, -1.0), hn::IfThenElse(middle, hn::Sub(a, one), a));
  const V den = hn::IfThenElse(high, a, hn::IfThenElse(middle, hn::Add(a, one), one));
  const V base = hn::IfThenElse(high, hn::Set(dd, 1.5707963267948966),
                                hn::IfThenElseZero(middle, hn::Set(dd, 0.78539816339744828)));
  const V t = hn::Div(num, den);
  const V s = hn::Mul(t, t);
  V q = hn::Set(dd, 0.030847665499179257);
  q = hn::MulAdd(q, s, hn::Set(dd, -0.058879376737073344));
  q = hn::MulAdd(q, s, hn::Set(dd, 0.075677020185758309));
  q = hn::MulAdd(q, s, hn::Set(dd, -0.09079021076508359));
  q = hn::MulAdd(q, s, hn::Set(dd, 0.11110441085702087));
  q = hn::MulAdd(q, s, hn::Set(dd, -0.14285693233060412));
  q = hn::MulAdd(q, s, hn::Set(dd, 0.19999999678609456));
  q = hn::MulAdd(q, s, hn::Set(dd, -0.33333333331651399));
  const V y = hn::Add(base, hn::MulAdd(hn::Mul(q, s), t, t));
  return hn::CopySign(y, x);
}

struct AtanOp {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x) const {
    return AtanDouble(dd, x);
  }
};

// asin x = atan(x / sqrt(1 - x^2)). x^2 is exact in double; |x| > 1 makes the root NaN, x = 1 the quotient inf.
struct AsinOp {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x) const {
    return AtanDouble(dd, hn::Div(x, hn::Sqrt(hn::NegMulAdd(x, x, hn::Set(dd, 1.0)))));
  }
};

// acos x = 2 atan(sqrt((1 - x) / (1 + x))), accurate near x = 1 where acos is small.
struct AcosOp {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD dd, V x) const {
    const V one = hn::Set(dd, 1.0);
    const V half = AtanDouble(dd, hn::Sqrt(hn::Div(hn::Sub(one, x), hn::Add(one, x))));
    return hn::Add(half, half);
  }
};

}  // namespace detail

template <class D, class V>
HWY_INLINE V Sin(D d, V x) {
  return detail::WithLargeArguments(d, x, detail::InDouble(d, x, detail::SinOp()),
                                    [](double v) { return std::sin(v); });
}

template <class D, class V>
HWY_INLINE V Cos(D d, V x) {
  return detail::WithLargeArguments(d, x, detail::InDouble(d, x, detail::CosOp()),
                                    [](double v) { return std::cos(v); });
}

template <class D, class V>
HWY_INLINE V Tan(D d, V x) {
  return detail::WithLargeArguments(d, x, detail::InDouble(d, x, detail::TanOp()),
                                    [](double v) { return std::tan(v); });
}

template <class D, class V>
HWY_INLINE V Asin(D d, V x) {
  return detail::InDouble(d, x, detail::AsinOp());
}

template <class D, class V>
HWY_INLINE V Acos(D d, V x) {
  return detail::InDouble(d, x, detail::AcosOp());
}

template <class D, class V>
HWY_INLINE V Atan(D d, V x) {
  return detail::InDouble(d, x, detail::AtanOp());
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_SIMD_MATH_TRIG_INL_H_
