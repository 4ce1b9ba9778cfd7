// y = f(a, b, c) on a block of f32: one switch, then one loop over whole vectors and the tail.
//
// The formulas are those of the README. Two need a word:
//   quotients     floor_divide, trunc_divide and trunc_remainder divide in double, so that a quotient just below an
//   integer
//                 is not rounded up to it: the remainder is exact, and a = b trunc_divide + trunc_remainder
//   extrema       a NaN on either side is the result
// Highway 1.0.3 has hn::Ne false for NaN on AVX2 and AVX-512 and true on SSE4: comparisons here are Eq and IsNaN.

#include "src/ops/arithmetic/arithmetic.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/arithmetic/arithmetic_forward_simd.cc"
#include <hwy/foreach_target.h>  // compiles this file once per instruction set
#include <hwy/highway.h>

#include <cmath>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

struct FloorQuotient {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD /*dd*/, V a, V b) const {
    return hn::Floor(hn::Div(a, b));
  }
};
struct TruncQuotient {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD /*dd*/, V a, V b) const {
    return hn::Trunc(hn::Div(a, b));
  }
};
// q b has 24 + 28 bits at most, so the product and the difference are exact; the remainder has the sign of a.
struct ShortRemainder {
  template <class DD, class V>
  HWY_ATTR HWY_INLINE V operator()(DD /*dd*/, V a, V b) const {
    const V q = hn::Trunc(hn::Div(a, b));
    return hn::CopySign(hn::Sub(a, hn::Mul(q, b)), a);
  }
};

// Quotients of 2^27 and more, and what is not finite, are rare: libm, lane by lane. Both are exact.
HWY_NOINLINE void LongRemainders(const float* a, const float* b, float* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = static_cast<float>(__builtin_fmod(a[i], b[i]));
}

template <class D, class V>
HWY_INLINE V Remainder(D d, V a, V b) {
  const V y = detail::InDouble(d, a, b, ShortRemainder());
  const auto is_short = hn::And(hn::Lt(hn::Abs(hn::Div(a, b)), hn::Set(d, 0x1p27f)), hn::IsFinite(b));
  if (HWY_LIKELY(hn::AllTrue(d, is_short))) return y;
  HWY_ALIGN float as[hn::MaxLanes(D())];
  HWY_ALIGN float bs[hn::MaxLanes(D())];
  HWY_ALIGN float ys[hn::MaxLanes(D())];
  hn::Store(a, d, as);
  hn::Store(b, d, bs);
  LongRemainders(as, bs, ys, hn::Lanes(d));
  return hn::Load(d, ys);
}

template <class D, class V>
HWY_INLINE V SignOf(D d, V x) {  // 0 and NaN stay what they are
  const V one = hn::Set(d, 1.0f);
  return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), one, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Neg(one), x));
}

#define BNNS_UNARY(expression)                            \
  return Transform(a, y, n, [](auto d, auto p) HWY_ATTR { \
    (void)d;                                              \
    return expression;                                    \
  })
#define BNNS_BINARY(expression)                                       \
  return Transform2(a, b, y, n, [](auto d, auto p, auto q) HWY_ATTR { \
    (void)d;                                                          \
    return expression;                                                \
  })
#define BNNS_TERNARY(expression)                                                 \
  return Transform3(a, b, c, y, n, [](auto d, auto p, auto q, auto r) HWY_ATTR { \
    (void)d;                                                                     \
    return expression;                                                           \
  })

// The functions that cost little more than their memory traffic.
void ForwardPlain(BNNSArithmeticFunction function, const float* a, const float* b, const float* c, float* y, size_t n) {
  switch (function) {
    case BNNSArithmeticAdd:
      BNNS_BINARY(hn::Add(p, q));
    case BNNSArithmeticSubtract:
      BNNS_BINARY(hn::Sub(p, q));
    case BNNSArithmeticMultiply:
      BNNS_BINARY(hn::Mul(p, q));
    case BNNSArithmeticDivide:
      BNNS_BINARY(hn::Div(p, q));
    case BNNSArithmeticSquareRoot:
      BNNS_UNARY(hn::Sqrt(p));
    case BNNSArithmeticReciprocalSquareRoot:
      BNNS_UNARY(hn::Div(hn::Set(d, 1.0f), hn::Sqrt(p)));
    case BNNSArithmeticCeil:
      BNNS_UNARY(hn::Ceil(p));
    case BNNSArithmeticFloor:
      BNNS_UNARY(hn::Floor(p));
    case BNNSArithmeticRound:
      BNNS_UNARY(hn::Round(p));
    case BNNSArithmeticMultiplyNoNaN:
      BNNS_BINARY(hn::IfThenZeroElse(hn::Eq(q, hn::Zero(d)), hn::Mul(p, q)));
    case BNNSArithmeticDivideNoNaN:
      BNNS_BINARY(hn::IfThenZeroElse(hn::Eq(q, hn::Zero(d)), hn::Div(p, q)));
    // Two roundings on every instruction set, where a fused one would differ on SSE4.
    case BNNSArithmeticMultiplyAdd:
      BNNS_TERNARY(hn::Add(hn::Mul(p, q), r));
    case BNNSArithmeticMinimum:
      BNNS_BINARY(hn::IfThenElse(hn::Or(hn::Le(p, q), hn::IsNaN(p)), p, q));
    case BNNSArithmeticMaximum:
      BNNS_BINARY(hn::IfThenElse(hn::Or(hn::Ge(p, q), hn::IsNaN(p)), p, q));
    case BNNSArithmeticSelect:
      BNNS_TERNARY(hn::IfThenElse(hn::Eq(p, hn::Zero(d)), r, q));
    case BNNSArithmeticAbs:
      BNNS_UNARY(hn::Abs(p));
    case BNNSArithmeticSign:
      BNNS_UNARY(SignOf(d, p));
    case BNNSArithmeticNegate:
      BNNS_UNARY(hn::Neg(p));
    case BNNSArithmeticReciprocal:
      BNNS_UNARY(hn::Div(hn::Set(d, 1.0f), p));
    case BNNSArithmeticSquare:
      BNNS_UNARY(hn::Mul(p, p));
    case BNNSArithmeticFloorDivide:
      BNNS_BINARY(detail::InDouble(d, p, q, FloorQuotient()));
    case BNNSArithmeticTruncDivide:
      BNNS_BINARY(detail::InDouble(d, p, q, TruncQuotient()));
    case BNNSArithmeticTruncRemainder:
      BNNS_BINARY(Remainder(d, p, q));
    default:
      return;
  }
}

}  // namespace

void ArithmeticForwardBlock(BNNSArithmeticFunction function, const float* const* x, float* y, size_t n) {
  const size_t inputs = arithmetic_function(function)->inputs;
  const float* a = x[0];
  const float* b = inputs > 1 ? x[1] : nullptr;
  const float* c = inputs > 2 ? x[2] : nullptr;
  switch (function) {
    case BNNSArithmeticSin:
      BNNS_UNARY(Sin(d, p));
    case BNNSArithmeticCos:
      BNNS_UNARY(Cos(d, p));
    case BNNSArithmeticTan:
      BNNS_UNARY(Tan(d, p));
    case BNNSArithmeticAsin:
      BNNS_UNARY(Asin(d, p));
    case BNNSArithmeticAcos:
      BNNS_UNARY(Acos(d, p));
    case BNNSArithmeticAtan:
      BNNS_UNARY(Atan(d, p));
    case BNNSArithmeticSinh:
      BNNS_UNARY(Sinh(d, p));
    case BNNSArithmeticCosh:
      BNNS_UNARY(Cosh(d, p));
    case BNNSArithmeticTanh:
      BNNS_UNARY(Tanh(d, p));
    case BNNSArithmeticAsinh:
      BNNS_UNARY(Asinh(d, p));
    case BNNSArithmeticAcosh:
      BNNS_UNARY(Acosh(d, p));
    case BNNSArithmeticAtanh:
      BNNS_UNARY(Atanh(d, p));
    case BNNSArithmeticPow:
      BNNS_BINARY(Pow(d, p, q));
    case BNNSArithmeticExp:
      BNNS_UNARY(Exp(d, p));
    case BNNSArithmeticExp2:
      BNNS_UNARY(Exp2(d, p));
    case BNNSArithmeticLog:
      BNNS_UNARY(Log(d, p));
    case BNNSArithmeticLog2:
      BNNS_UNARY(Log2(d, p));
    case BNNSArithmeticErf:
      BNNS_UNARY(Erf(d, p));
    default:
      return ForwardPlain(function, a, b, c, y, n);
  }
}

void ArithmeticCopy(const float* x, float* y, size_t n) {
  Transform(x, y, n, [](auto /*d*/, auto v) HWY_ATTR { return v; });
}

void ArithmeticFill(float value, float* y, size_t n) {
  const hn::ScalableTag<float> d;
  const auto v = hn::Set(d, value);
  size_t i = 0;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) hn::StoreU(v, d, y + i);
  for (; i < n; ++i) y[i] = value;
}

#undef BNNS_UNARY
#undef BNNS_BINARY
#undef BNNS_TERNARY

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void arithmetic_forward_block(BNNSArithmeticFunction function, const float* const* x, float* y, size_t n) noexcept {
  BNNS_DISPATCH(ArithmeticForwardBlock)(function, x, y, n);
}
void arithmetic_copy(const float* x, float* y, size_t n) noexcept {
  BNNS_DISPATCH(ArithmeticCopy)(x, y, n);
}
void arithmetic_fill(float value, float* y, size_t n) noexcept {
  BNNS_DISPATCH(ArithmeticFill)(value, y, n);
}

}  // namespace bnns
#endif
