// y = f(x) for every element-wise activation. x and y have n elements; y may be x.
// One loop per function; body and tail run the same vector code (src/simd/loops-inl.h), so a value's bits do not depend
// on its position.

#include "src/engine/activation/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/engine/activation/activation_forward_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

#include "src/engine/activation/activation_functions-inl.h"
#include "src/engine/activation/softmax.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// x - tanh x. Below 1 the two nearly cancel: x^3 p(x^2), p a minimax fit of ours, relative error 2^-24.9.
template <class D, class V>
HWY_INLINE V TanhShrink(D d, V x) {
  const V s = hn::Mul(x, x);
  V p = hn::Set(d, -0.000208309895f);
  p = hn::MulAdd(p, s, hn::Set(d, 0.00115837285f));
  p = hn::MulAdd(p, s, hn::Set(d, -0.00353916641f));
  p = hn::MulAdd(p, s, hn::Set(d, 0.00893256627f));
  p = hn::MulAdd(p, s, hn::Set(d, -0.0219154041f));
  p = hn::MulAdd(p, s, hn::Set(d, 0.0539785661f));
  p = hn::MulAdd(p, s, hn::Set(d, -0.13333413f));
  p = hn::MulAdd(p, s, hn::Set(d, 0.333333343f));
  const V small = hn::Mul(hn::Mul(x, s), p);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1.0f)), small, hn::Sub(x, Tanh(d, x)));
}

// x / (1 + |x|); an infinite x is taken as the largest float, where the quotient is 1.
template <class D, class V>
HWY_INLINE V Softsign(D d, V x) {
  const V a = hn::Min(hn::Set(d, hwy::HighestValue<float>()), hn::Abs(x));
  return hn::CopySign(hn::Div(a, hn::Add(hn::Set(d, 1.0f), a)), x);
}

// alpha log(1 + e^w), w = beta x: alpha beta x where w > 0, plus alpha log(1 + e^-|w|). alpha multiplies each part, so
// that an overflowing beta x is no overflow of the result.
template <class D, class V>
HWY_INLINE V ScaledSoftplus(D d, V x, float alpha, float beta) {
  const V w = hn::Mul(hn::Set(d, beta), x);
  const V linear = hn::IfThenElseZero(hn::Gt(w, hn::Zero(d)), hn::Mul(hn::Set(d, alpha * beta), x));
  return hn::MulAdd(hn::Set(d, alpha), detail::Log1pUnit(d, detail::ExpNegAbs(d, w)), linear);
}

// In hn::Min and hn::Max the second argument is the one whose NaN survives (math_exp-inl.h).
void ElementsForward(const Activation& activation, const float* x, float* y, size_t n) {
  const float alpha = activation.alpha, beta = activation.beta;
  switch (activation.function) {
    case BNNSActivationFunctionRectifiedLinear:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return hn::Max(hn::Zero(d), v); });
    case BNNSActivationFunctionPReLUPerChannel:  // with one alpha for all
    case BNNSActivationFunctionLeakyRectifiedLinear:
      return Transform(x, y, n,
                       [alpha](auto d, auto v) HWY_ATTR { return IfNegative(d, v, hn::Mul(hn::Set(d, alpha), v), v); });
    case BNNSActivationFunctionSigmoid:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return Sigmoid(d, v); });
    case BNNSActivationFunctionTanh:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return Tanh(d, v); });
    case BNNSActivationFunctionScaledTanh:
      return Transform(x, y, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        return hn::Mul(hn::Set(d, alpha), Tanh(d, hn::Mul(hn::Set(d, beta), v)));
      });
    case BNNSActivationFunctionAbs:
      return Transform(x, y, n, [](auto, auto v) HWY_ATTR { return hn::Abs(v); });
    case BNNSActivationFunctionLinear:
      return Transform(x, y, n, [alpha](auto d, auto v) HWY_ATTR { return hn::Mul(hn::Set(d, alpha), v); });
    case BNNSActivationFunctionClamp:
      return Transform(x, y, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        return hn::Min(hn::Set(d, beta), hn::Max(hn::Set(d, alpha), v));
      });
    case BNNSActivationFunctionGELUApproximation:
      return Transform(x, y, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        return MulOrZero(d, v, Sigmoid(d, GeluTanhArgument(d, v, alpha, beta).w));
      });
    case BNNSActivationFunctionHardSigmoid:
      return Transform(x, y, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        return detail::ClampKeepNaN(d, hn::MulAdd(hn::Set(d, alpha), v, hn::Set(d, beta)), 0.0f, 1.0f);
      });
    case BNNSActivationFunctionSoftplus:
      return Transform(x, y, n, [alpha, beta](auto d, auto v) HWY_ATTR { return ScaledSoftplus(d, v, alpha, beta); });
    case BNNSActivationFunctionSoftsign:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return Softsign(d, v); });
    case BNNSActivationFunctionELU:
      return Transform(x, y, n, [alpha](auto d, auto v) HWY_ATTR {
        return IfNegative(d, v, hn::Mul(hn::Set(d, alpha), Expm1(d, v)), v);
      });
    case BNNSActivationFunctionClampedLeakyRectifiedLinear:
      return Transform(x, y, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        return hn::Min(hn::Set(d, beta), IfNegative(d, v, hn::Mul(hn::Set(d, alpha), v), v));
      });
    case BNNSActivationFunctionLinearWithBias:
      return Transform(x, y, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        return hn::MulAdd(hn::Set(d, alpha), v, hn::Set(d, beta));
      });
    case BNNSActivationFunctionLogSigmoid:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return LogSigmoid(d, v); });
    case BNNSActivationFunctionSELU:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR {
        return IfNegative(d, v, hn::Mul(hn::Set(d, kSeluScaleAlpha), Expm1(d, v)), hn::Mul(hn::Set(d, kSeluScale), v));
      });
    case BNNSActivationFunctionCELU:
      return Transform(x, y, n, [alpha](auto d, auto v) HWY_ATTR {
        const auto a = hn::Set(d, alpha);
        return IfNegative(d, v, hn::Mul(a, Expm1(d, hn::Div(v, a))), v);
      });
    case BNNSActivationFunctionHardShrink:
      return Transform(x, y, n, [alpha](auto d, auto v) HWY_ATTR {
        return hn::IfThenZeroElse(hn::Lt(hn::Abs(v), hn::Abs(hn::Set(d, alpha))), v);
      });
    case BNNSActivationFunctionSoftShrink:
      return Transform(x, y, n, [alpha](auto d, auto v) HWY_ATTR {
        const auto band = hn::Abs(hn::Set(d, alpha));
        return hn::IfThenZeroElse(hn::Lt(hn::Abs(v), band), hn::Sub(v, hn::CopySign(band, v)));
      });
    case BNNSActivationFunctionTanhShrink:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return TanhShrink(d, v); });
    case BNNSActivationFunctionThreshold:
      return Transform(x, y, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        return hn::IfThenElse(hn::Le(v, hn::Set(d, alpha)), hn::Set(d, beta), v);
      });
    case BNNSActivationFunctionHardSwish:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR {
        const auto gate = detail::ClampKeepNaN(d, hn::Add(v, hn::Set(d, 3.0f)), 0.0f, 6.0f);
        return MulOrZero(d, v, hn::Mul(gate, hn::Set(d, 1.0f / 6)));
      });
    case BNNSActivationFunctionSiLU:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return MulOrZero(d, v, Sigmoid(d, v)); });
    case BNNSActivationFunctionReLU6:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return detail::ClampKeepNaN(d, v, 0.0f, 6.0f); });
    case BNNSActivationFunctionErf:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return Erf(d, v); });
    case BNNSActivationFunctionGELU:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return Gelu(d, v); });
    case BNNSActivationFunctionGELUApproximationSigmoid:
      return Transform(
          x, y, n, [](auto d, auto v) HWY_ATTR { return MulOrZero(d, v, Sigmoid(d, hn::Mul(hn::Set(d, 1.702f), v))); });
    default:  // Identity; the functions of whole rows and of integers do not come here
      if (x != y && n) std::memcpy(y, x, n * sizeof(float));
  }
}

void PreluForward(const float* x, const float* a, float* y, size_t n) {
  Transform2(x, a, y, n, [](auto d, auto v, auto va) HWY_ATTR { return IfNegative(d, v, hn::Mul(va, v), v); });
}

void GumbelForward(const Activation& activation, const float* u, float* y, size_t n) {
  const float alpha = activation.alpha, beta = activation.beta;
  Transform(u, y, n, [alpha, beta](auto d, auto v) HWY_ATTR {
    const auto vbeta = hn::Set(d, beta);
    const auto inner = Log(d, hn::MulAdd(hn::Set(d, alpha), v, vbeta));
    return hn::Neg(Log(d, hn::Sub(vbeta, inner)));
  });
}

}  // namespace
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void activation_forward(const Activation& activation, const float* x, float* y, size_t n) noexcept {
  if (activation.is_rowwise()) return softmax_row_forward(activation, x, y, n);
  BNNS_DISPATCH(ElementsForward)(activation, x, y, n);
}

void prelu_forward(const float* x, const float* a, float* y, size_t n) noexcept {
  BNNS_DISPATCH(PreluForward)(x, a, y, n);
}

void gumbel_forward(const Activation& activation, const float* u, float* y, size_t n) noexcept {
  BNNS_DISPATCH(GumbelForward)(activation, u, y, n);
}

}  // namespace bnns
#endif
