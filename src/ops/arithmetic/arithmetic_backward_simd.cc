// d = g df/dx[k] on a block of f32, and the sums that gradients of repeated inputs need.
//
// The formulas are those of the README, from y where that is shorter. Squares that would overflow or cancel are taken
// apart: 1 - x^2 = (1 - x)(1 + x), a / b^2 = (a / b) / b.

#include "src/ops/arithmetic/arithmetic.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/arithmetic/arithmetic_backward_simd.cc"
#include <hwy/foreach_target.h>  // compiles this file once per instruction set
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kLn2 = 0.693147180559945309f, kInvLn2 = 1.44269504088896341f, kTwoInvSqrtPi = 1.12837916709551257f;

// (1 - x)(1 + x)
template <class D, class V>
HWY_INLINE V OneMinusSquare(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  return hn::Mul(hn::Sub(one, x), hn::Add(one, x));
}

// sqrt(x^2 + 1), which is |x| long before the square overflows.
template <class D, class V>
HWY_INLINE V RootOfSquarePlusOne(D d, V x) {
  const V a = hn::Abs(x);
  return hn::IfThenElse(hn::Gt(a, hn::Set(d, 0x1p30f)), a, hn::Sqrt(hn::MulAdd(x, x, hn::Set(d, 1.0f))));
}

template <class D, class V>
HWY_INLINE V TimesSign(D d, V g, V x) {  // g sign(x); 0 for x = 0, NaN for NaN
  const V y = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Neg(g), g);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Zero(d), hn::IfThenElse(hn::IsNaN(x), x, y));
}

// g where own is the larger (smaller) one, g / 2 at a tie. A NaN is what the forward pass selects; two NaN are a tie.
template <bool kLargest, class D, class V>
HWY_INLINE V ToSelected(D d, V own, V other, V g) {
  const auto own_nan = hn::IsNaN(own), other_nan = hn::IsNaN(other);
  const auto beats = kLargest ? hn::Gt(own, other) : hn::Lt(own, other);
  const auto wins = hn::Or(beats, hn::AndNot(other_nan, own_nan));
  const auto tie = hn::Or(hn::Eq(own, other), hn::And(own_nan, other_nan));
  return hn::IfThenElse(tie, hn::Mul(g, hn::Set(d, 0.5f)), hn::IfThenElseZero(wins, g));
}

// d a^b / da = b a^(b-1), 0 for b = 0.
template <class D, class V>
HWY_INLINE V PowByBase(D d, V a, V b, V g) {
  const V slope = hn::Mul(b, Pow(d, a, hn::Sub(b, hn::Set(d, 1.0f))));
  return hn::IfThenZeroElse(hn::Eq(b, hn::Zero(d)), hn::Mul(g, slope));
}
// d a^b / db = y ln a, 0 for a = 0 and b >= 0, where y is 0 or 1 for good.
template <class D, class V>
HWY_INLINE V PowByExponent(D d, V a, V b, V y, V g) {
  const auto flat = hn::And(hn::Eq(a, hn::Zero(d)), hn::Ge(b, hn::Zero(d)));
  return hn::IfThenZeroElse(flat, hn::Mul(g, hn::Mul(y, Log(d, a))));
}

// Loops over g and what the formula reads. p is the first operand read, q the second.
#define BNNS_G(expression)                                 \
  return Transform(g, dx, n, [](auto d, auto u) HWY_ATTR { \
    (void)d;                                               \
    return expression;                                     \
  })
#define BNNS_GP(from, expression)                                         \
  return Transform2(g, from, dx, n, [](auto d, auto u, auto p) HWY_ATTR { \
    (void)d;                                                              \
    return expression;                                                    \
  })
#define BNNS_GPQ(from, also, expression)                                                \
  return Transform3(g, from, also, dx, n, [](auto d, auto u, auto p, auto q) HWY_ATTR { \
    (void)d;                                                                            \
    return expression;                                                                  \
  })

void BackwardBinary(BNNSArithmeticFunction function, size_t k, const float* const* x, const float* y, const float* g,
                    float* dx, size_t n) {
  const float *a = x[0], *b = x[1];
  switch (function) {
    case BNNSArithmeticSubtract:
      BNNS_G(hn::Neg(u));  // k = 1; k = 0 is g
    case BNNSArithmeticMultiply:
    case BNNSArithmeticMultiplyAdd: {
      const float* other = k == 0 ? b : a;
      BNNS_GP(other, hn::Mul(u, p));
    }
    case BNNSArithmeticDivide:
      if (k == 0) BNNS_GP(b, hn::Div(u, p));
      BNNS_GPQ(a, b, hn::Neg(hn::Mul(hn::Div(u, q), hn::Div(p, q))));
    case BNNSArithmeticMultiplyNoNaN: {
      const float* other = k == 0 ? b : a;
      BNNS_GPQ(other, b, hn::IfThenZeroElse(hn::Eq(q, hn::Zero(d)), hn::Mul(u, p)));
    }
    case BNNSArithmeticDivideNoNaN:
      if (k == 0) BNNS_GP(b, hn::IfThenZeroElse(hn::Eq(p, hn::Zero(d)), hn::Div(u, p)));
      BNNS_GPQ(a, b, hn::IfThenZeroElse(hn::Eq(q, hn::Zero(d)), hn::Neg(hn::Mul(hn::Div(u, q), hn::Div(p, q)))));
    case BNNSArithmeticMinimum: {
      const float *own = x[k], *other = x[1 - k];
      BNNS_GPQ(own, other, ToSelected<false>(d, p, q, u));
    }
    case BNNSArithmeticMaximum: {
      const float *own = x[k], *other = x[1 - k];
      BNNS_GPQ(own, other, ToSelected<true>(d, p, q, u));
    }
    case BNNSArithmeticSelect:
      if (k == 1) BNNS_GP(a, hn::IfThenZeroElse(hn::Eq(p, hn::Zero(d)), u));
      BNNS_GP(a, hn::IfThenElseZero(hn::Eq(p, hn::Zero(d)), u));
    case BNNSArithmeticPow: {
      if (k == 0) BNNS_GPQ(a, b, PowByBase(d, p, q, u));
      // Four operands: whole vectors, then the same body on the rest.
      const hn::ScalableTag<float> d;
      const size_t N = hn::Lanes(d);
      size_t i = 0;
      for (; i + N <= n; i += N) {
        const auto v =
            PowByExponent(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i), hn::LoadU(d, y + i), hn::LoadU(d, g + i));
        hn::StoreU(v, d, dx + i);
      }
      if (i == n) return;
      const size_t left = n - i;
      const auto va = LoadPartial(d, a + i, left), vb = LoadPartial(d, b + i, left), vy = LoadPartial(d, y + i, left);
      return StorePartial(d, PowByExponent(d, va, vb, vy, LoadPartial(d, g + i, left)), dx + i, left);
    }
    default:
      return;
  }
}

void BackwardUnary(BNNSArithmeticFunction function, const float* x, const float* y, const float* g, float* dx,
                   size_t n) {
  switch (function) {
    case BNNSArithmeticSquareRoot:
      BNNS_GP(y, hn::Div(hn::Mul(u, hn::Set(d, 0.5f)), p));
    case BNNSArithmeticReciprocalSquareRoot:
      BNNS_GP(y, hn::Mul(hn::Mul(hn::Mul(hn::Mul(u, hn::Set(d, -0.5f)), p), p), p));
    case BNNSArithmeticSin:
      BNNS_GP(x, hn::Mul(u, Cos(d, p)));
    case BNNSArithmeticCos:
      BNNS_GP(x, hn::Neg(hn::Mul(u, Sin(d, p))));
    case BNNSArithmeticTan:
      BNNS_GP(y, hn::Mul(u, hn::MulAdd(p, p, hn::Set(d, 1.0f))));
    case BNNSArithmeticAsin:
      BNNS_GP(x, hn::Div(u, hn::Sqrt(OneMinusSquare(d, p))));
    case BNNSArithmeticAcos:
      BNNS_GP(x, hn::Neg(hn::Div(u, hn::Sqrt(OneMinusSquare(d, p)))));
    case BNNSArithmeticAtan:
      BNNS_GP(x, hn::Div(u, hn::MulAdd(p, p, hn::Set(d, 1.0f))));
    case BNNSArithmeticSinh:
      BNNS_GP(x, hn::Mul(u, Cosh(d, p)));
    case BNNSArithmeticCosh:
      BNNS_GP(x, hn::Mul(u, Sinh(d, p)));
    case BNNSArithmeticTanh:
      BNNS_GP(y, hn::Mul(u, OneMinusSquare(d, p)));
    case BNNSArithmeticAsinh:
      BNNS_GP(x, hn::Div(u, RootOfSquarePlusOne(d, p)));
    case BNNSArithmeticAcosh:
      BNNS_GP(x, hn::Div(hn::Div(u, hn::Sqrt(hn::Sub(p, hn::Set(d, 1.0f)))), hn::Sqrt(hn::Add(p, hn::Set(d, 1.0f)))));
    case BNNSArithmeticAtanh:
      BNNS_GP(x, hn::Div(u, OneMinusSquare(d, p)));
    case BNNSArithmeticExp:
      BNNS_GP(y, hn::Mul(u, p));
    case BNNSArithmeticExp2:
      BNNS_GP(y, hn::Mul(hn::Mul(u, p), hn::Set(d, kLn2)));
    case BNNSArithmeticLog:
      BNNS_GP(x, hn::Div(u, p));
    case BNNSArithmeticLog2:
      BNNS_GP(x, hn::Mul(hn::Div(u, p), hn::Set(d, kInvLn2)));
    case BNNSArithmeticAbs:
      BNNS_GP(x, TimesSign(d, u, p));
    case BNNSArithmeticNegate:
      BNNS_G(hn::Neg(u));
    case BNNSArithmeticReciprocal:
      BNNS_GP(y, hn::Neg(hn::Mul(hn::Mul(u, p), p)));
    case BNNSArithmeticSquare:
      BNNS_GP(x, hn::Mul(hn::Add(u, u), p));
    case BNNSArithmeticErf:
      BNNS_GP(x, hn::Mul(hn::Mul(u, hn::Set(d, kTwoInvSqrtPi)), Exp(d, hn::Neg(hn::Mul(p, p)))));
    default:
      return;
  }
}

#undef BNNS_G
#undef BNNS_GP
#undef BNNS_GPQ

}  // namespace

void ArithmeticBackwardBlock(BNNSArithmeticFunction function, size_t k, const float* const* x, const float* y,
                             const float* g, float* dx, size_t n) {
  const ArithmeticFunction& info = *arithmetic_function(function);
  const bool reads_y = info.gradient_reads_y >> k & 1;
  if (info.gradient_is_g >> k & 1) {
    if (dx != g) arithmetic_copy(g, dx, n);
  } else if (info.gradient_reads[k] == 0 && !reads_y && function != BNNSArithmeticSubtract &&
             function != BNNSArithmeticNegate) {
    arithmetic_fill(0, dx, n);  // steps, and the condition of select
  } else if (info.inputs == 1) {
    BackwardUnary(function, x[0], y, g, dx, n);
  } else {
    BackwardBinary(function, k, x, y, g, dx, n);
  }
}

void ArithmeticAddToSums(const float* d, double* sums, size_t n) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const size_t N = hn::Lanes(dd);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    hn::StoreU(hn::Add(hn::LoadU(dd, sums + i), hn::PromoteTo(dd, hn::LoadU(df, d + i))), dd, sums + i);
  }
  for (; i < n; ++i) sums[i] += static_cast<double>(d[i]);
}

// Four accumulators, so that additions do not wait for each other; joined as (0 1)(2 3), then the lanes, then the tail.
// Exact for 29 bits of headroom: the order does not show unless the terms differ by more.
double ArithmeticSum(const float* d, size_t n) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const size_t N = hn::Lanes(dd);
  auto s0 = hn::Zero(dd), s1 = hn::Zero(dd), s2 = hn::Zero(dd), s3 = hn::Zero(dd);
  size_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
    s0 = hn::Add(s0, hn::PromoteTo(dd, hn::LoadU(df, d + i)));
    s1 = hn::Add(s1, hn::PromoteTo(dd, hn::LoadU(df, d + i + N)));
    s2 = hn::Add(s2, hn::PromoteTo(dd, hn::LoadU(df, d + i + 2 * N)));
    s3 = hn::Add(s3, hn::PromoteTo(dd, hn::LoadU(df, d + i + 3 * N)));
  }
  for (; i + N <= n; i += N) s0 = hn::Add(s0, hn::PromoteTo(dd, hn::LoadU(df, d + i)));
  double sum = hn::GetLane(hn::SumOfLanes(dd, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
  for (; i < n; ++i) sum += static_cast<double>(d[i]);
  return sum;
}

void ArithmeticAddGroups(const float* d, size_t length, double* sums, size_t groups) {
  for (size_t i = 0; i < groups; ++i) sums[i] += ArithmeticSum(d + i * length, length);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void arithmetic_backward_block(BNNSArithmeticFunction function, size_t k, const float* const* x, const float* y,
                               const float* g, float* d, size_t n) noexcept {
  BNNS_DISPATCH(ArithmeticBackwardBlock)(function, k, x, y, g, d, n);
}
void arithmetic_add_to_sums(const float* d, double* sums, size_t n) noexcept {
  BNNS_DISPATCH(ArithmeticAddToSums)(d, sums, n);
}
void arithmetic_add_groups(const float* d, size_t length, double* sums, size_t groups) noexcept {
  BNNS_DISPATCH(ArithmeticAddGroups)(d, length, sums, groups);
}
double arithmetic_sum(const float* d, size_t n) noexcept {
  return BNNS_DISPATCH(ArithmeticSum)(d, n);
}

}  // namespace bnns
#endif
