// g = dy f' for every element-wise activation, with f' from y or from x. All arrays have n elements; g may be any of
// the inputs. The product is taken as IEEE has it; f' of a NaN is NaN.
//
// Derivatives at kinks: ReLU 0 at 0, Clamp 1 at both ends from x and 0 from y, the others as the branch of the
// function's formula; README.md has the table.

#include "src/engine/activation/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/engine/activation/activation_backward_simd.cc"
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

// g = dy slope(s), s = x or y.
template <class F>
HWY_INLINE void Backward(const float* s, const float* dy, float* g, size_t n, F slope) {
  Transform2(s, dy, g, n,
             [slope](auto d, auto vs, auto vdy) HWY_ATTR { return hn::Mul(vdy, KeepNaN(vs, slope(d, vs))); });
}

void ScaleGradient(float factor, const float* dy, float* g, size_t n) {
  Transform(dy, g, n, [factor](auto d, auto v) HWY_ATTR { return hn::Mul(hn::Set(d, factor), v); });
}

// 1 where the mask holds, else 0.
template <class D, class M>
HWY_INLINE hn::Vec<D> Indicator(D d, M mask) {
  return hn::IfThenElseZero(mask, hn::Set(d, 1.0f));
}

// 1 - t^2 without cancellation near |t| = 1.
template <class D, class V>
HWY_INLINE V OneMinusSquare(D d, V t) {
  const V one = hn::Set(d, 1.0f);
  return hn::Mul(hn::Sub(one, t), hn::Add(one, t));
}

void BackwardFromOutput(const Activation& activation, const float* y, const float* dy, float* g, size_t n) {
  const float alpha = activation.alpha, beta = activation.beta;
  switch (activation.function) {
    case BNNSActivationFunctionRectifiedLinear:
      return Backward(y, dy, g, n, [](auto d, auto v) HWY_ATTR { return Indicator(d, hn::Gt(v, hn::Zero(d))); });
    case BNNSActivationFunctionPReLUPerChannel:
    case BNNSActivationFunctionLeakyRectifiedLinear:
      return Backward(y, dy, g, n, [alpha](auto d, auto v) HWY_ATTR {
        return IfNegative(d, v, hn::Set(d, alpha), hn::Set(d, 1.0f));
      });
    case BNNSActivationFunctionSigmoid:
      return Backward(y, dy, g, n, [](auto d, auto v) HWY_ATTR { return hn::Mul(v, hn::Sub(hn::Set(d, 1.0f), v)); });
    case BNNSActivationFunctionTanh:
      return Backward(y, dy, g, n, [](auto d, auto v) HWY_ATTR { return OneMinusSquare(d, v); });
    case BNNSActivationFunctionScaledTanh:
      return Backward(y, dy, g, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        return hn::Mul(hn::Set(d, alpha * beta), OneMinusSquare(d, hn::Div(v, hn::Set(d, alpha))));
      });
    case BNNSActivationFunctionClamp:
      return Backward(y, dy, g, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        return Indicator(d, hn::And(hn::Gt(v, hn::Set(d, alpha)), hn::Lt(v, hn::Set(d, beta))));
      });
    case BNNSActivationFunctionHardSigmoid:
      return Backward(y, dy, g, n, [alpha](auto d, auto v) HWY_ATTR {
        const auto inside = hn::And(hn::Gt(v, hn::Zero(d)), hn::Lt(v, hn::Set(d, 1.0f)));
        return hn::IfThenElseZero(inside, hn::Set(d, alpha));
      });
    case BNNSActivationFunctionSoftplus:  // alpha beta (1 - e^(-y/alpha))
      return Backward(y, dy, g, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        return hn::Mul(hn::Set(d, -alpha * beta), Expm1(d, hn::Div(v, hn::Set(d, -alpha))));
      });
    case BNNSActivationFunctionSoftsign:
      return Backward(y, dy, g, n, [](auto d, auto v) HWY_ATTR {
        const auto rest = hn::Sub(hn::Set(d, 1.0f), hn::Abs(v));
        return hn::Mul(rest, rest);
      });
    case BNNSActivationFunctionELU:
      return Backward(y, dy, g, n, [alpha](auto d, auto v) HWY_ATTR {
        return IfNegative(d, v, hn::Add(v, hn::Set(d, alpha)), hn::Set(d, 1.0f));
      });
    case BNNSActivationFunctionClampedLeakyRectifiedLinear:
      return Backward(y, dy, g, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        const auto slope = IfNegative(d, v, hn::Set(d, alpha), hn::Set(d, 1.0f));
        return hn::IfThenZeroElse(hn::Ge(v, hn::Set(d, beta)), slope);
      });
    case BNNSActivationFunctionLogSigmoid:
      return Backward(y, dy, g, n, [](auto d, auto v) HWY_ATTR { return hn::Neg(Expm1(d, v)); });
    case BNNSActivationFunctionSELU:
      return Backward(y, dy, g, n, [](auto d, auto v) HWY_ATTR {
        return IfNegative(d, v, hn::Add(v, hn::Set(d, kSeluScaleAlpha)), hn::Set(d, kSeluScale));
      });
    case BNNSActivationFunctionCELU:
      return Backward(y, dy, g, n, [alpha](auto d, auto v) HWY_ATTR {
        const auto one = hn::Set(d, 1.0f);
        return IfNegative(d, v, hn::Add(one, hn::Div(v, hn::Set(d, alpha))), one);
      });
    case BNNSActivationFunctionHardShrink:
    case BNNSActivationFunctionSoftShrink:
      return Backward(y, dy, g, n, [](auto d, auto v) HWY_ATTR { return Indicator(d, hn::Ne(v, hn::Zero(d))); });
    case BNNSActivationFunctionThreshold:
      return Backward(y, dy, g, n,
                      [beta](auto d, auto v) HWY_ATTR { return Indicator(d, hn::Ne(v, hn::Set(d, beta))); });
    case BNNSActivationFunctionReLU6:
      return Backward(y, dy, g, n, [](auto d, auto v) HWY_ATTR {
        return Indicator(d, hn::And(hn::Gt(v, hn::Zero(d)), hn::Lt(v, hn::Set(d, 6.0f))));
      });
    default:
      return ScaleGradient(1, dy, g, n);  // not reached: has_derivative_from_output says which come here
  }
}

// x sigmoid(c x): s + c x s (1 - s), the second term 0 where the slope is (x may be infinite there).
template <class D, class V>
HWY_INLINE V SwishSlope(D d, V x, float c) {
  const V cx = hn::Mul(hn::Set(d, c), x);
  const auto s = SigmoidWithSlope(d, cx);
  return hn::Add(s.value, MulOrZero(d, cx, s.slope));
}

void BackwardFromInput(const Activation& activation, const float* x, const float* dy, float* g, size_t n) {
  const float alpha = activation.alpha, beta = activation.beta;
  switch (activation.function) {
    case BNNSActivationFunctionRectifiedLinear:
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR { return Indicator(d, hn::Gt(v, hn::Zero(d))); });
    case BNNSActivationFunctionPReLUPerChannel:
    case BNNSActivationFunctionLeakyRectifiedLinear:
      return Backward(x, dy, g, n, [alpha](auto d, auto v) HWY_ATTR {
        return IfNegative(d, v, hn::Set(d, alpha), hn::Set(d, 1.0f));
      });
    case BNNSActivationFunctionSigmoid:
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR { return SigmoidWithSlope(d, v).slope; });
    case BNNSActivationFunctionTanh:  // 1 - tanh^2 x = 4 sigmoid'(2x)
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR {
        return hn::Mul(hn::Set(d, 4.0f), SigmoidWithSlope(d, hn::Add(v, v)).slope);
      });
    case BNNSActivationFunctionScaledTanh:
      return Backward(x, dy, g, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        const auto slope = SigmoidWithSlope(d, hn::Mul(hn::Set(d, 2 * beta), v)).slope;
        return hn::Mul(hn::Set(d, 4 * alpha * beta), slope);
      });
    case BNNSActivationFunctionAbs:
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR {
        return hn::IfThenZeroElse(hn::Eq(v, hn::Zero(d)), hn::CopySign(hn::Set(d, 1.0f), v));
      });
    case BNNSActivationFunctionClamp:
      return Backward(x, dy, g, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        return Indicator(d, hn::And(hn::Ge(v, hn::Set(d, alpha)), hn::Le(v, hn::Set(d, beta))));
      });
    case BNNSActivationFunctionGELUApproximation:
      return Backward(x, dy, g, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        const auto argument = GeluTanhArgument(d, v, alpha, beta);
        const auto s = SigmoidWithSlope(d, argument.w);
        return hn::Add(s.value, MulOrZero(d, hn::Mul(argument.x, argument.slope), s.slope));
      });
    case BNNSActivationFunctionHardSigmoid:
      return Backward(x, dy, g, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        const auto t = hn::MulAdd(hn::Set(d, alpha), v, hn::Set(d, beta));
        const auto inside = hn::And(hn::Gt(t, hn::Zero(d)), hn::Lt(t, hn::Set(d, 1.0f)));
        return hn::IfThenElseZero(inside, hn::Set(d, alpha));
      });
    case BNNSActivationFunctionSoftplus:
      return Backward(x, dy, g, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        return hn::Mul(hn::Set(d, alpha * beta), Sigmoid(d, hn::Mul(hn::Set(d, beta), v)));
      });
    case BNNSActivationFunctionSoftsign:
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR {
        const auto one = hn::Set(d, 1.0f);
        const auto r = hn::Div(one, hn::Add(one, hn::Abs(v)));
        return hn::Mul(r, r);
      });
    case BNNSActivationFunctionELU:
      return Backward(x, dy, g, n, [alpha](auto d, auto v) HWY_ATTR {
        return IfNegative(d, v, hn::Mul(hn::Set(d, alpha), Exp(d, v)), hn::Set(d, 1.0f));
      });
    case BNNSActivationFunctionClampedLeakyRectifiedLinear:
      return Backward(x, dy, g, n, [alpha, beta](auto d, auto v) HWY_ATTR {
        const auto one = hn::Set(d, 1.0f);
        const auto slope = IfNegative(d, v, hn::Set(d, alpha), one);
        return hn::IfThenZeroElse(hn::Ge(hn::Mul(slope, v), hn::Set(d, beta)), slope);
      });
    case BNNSActivationFunctionLogSigmoid:
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR { return Sigmoid(d, hn::Neg(v)); });
    case BNNSActivationFunctionSELU:
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR {
        return IfNegative(d, v, hn::Mul(hn::Set(d, kSeluScaleAlpha), Exp(d, v)), hn::Set(d, kSeluScale));
      });
    case BNNSActivationFunctionCELU:
      return Backward(x, dy, g, n, [alpha](auto d, auto v) HWY_ATTR {
        return IfNegative(d, v, Exp(d, hn::Div(v, hn::Set(d, alpha))), hn::Set(d, 1.0f));
      });
    case BNNSActivationFunctionHardShrink:
    case BNNSActivationFunctionSoftShrink:
      return Backward(x, dy, g, n, [alpha](auto d, auto v) HWY_ATTR {
        return Indicator(d, hn::Ge(hn::Abs(v), hn::Abs(hn::Set(d, alpha))));
      });
    case BNNSActivationFunctionTanhShrink:
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR {
        const auto t = Tanh(d, v);
        return hn::Mul(t, t);
      });
    case BNNSActivationFunctionThreshold:
      return Backward(x, dy, g, n,
                      [alpha](auto d, auto v) HWY_ATTR { return Indicator(d, hn::Gt(v, hn::Set(d, alpha))); });
    case BNNSActivationFunctionHardSwish:  // 0 up to -3, (2x + 3) / 6 between, 1 from 3
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR {
        const auto inner = hn::MulAdd(v, hn::Set(d, 1.0f / 3), hn::Set(d, 0.5f));
        const auto left = hn::IfThenElseZero(hn::Gt(v, hn::Set(d, -3.0f)), inner);
        return hn::IfThenElse(hn::Ge(v, hn::Set(d, 3.0f)), hn::Set(d, 1.0f), left);
      });
    case BNNSActivationFunctionSiLU:
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR { return SwishSlope(d, v, 1.0f); });
    case BNNSActivationFunctionReLU6:
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR {
        return Indicator(d, hn::And(hn::Gt(v, hn::Zero(d)), hn::Lt(v, hn::Set(d, 6.0f))));
      });
    case BNNSActivationFunctionErf:  // 2 / sqrt(pi) e^-x^2
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR {
        return hn::Mul(hn::Set(d, 1.1283791670955126f), ExpNegSquare(d, v));
      });
    case BNNSActivationFunctionGELU:
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR { return GeluSlope(d, v); });
    case BNNSActivationFunctionGELUApproximationSigmoid:
      return Backward(x, dy, g, n, [](auto d, auto v) HWY_ATTR { return SwishSlope(d, v, 1.702f); });
    default:
      return ScaleGradient(1, dy, g, n);  // not reached
  }
}

void PreluBackward(const float* s, const float* a, const float* dy, float* g, size_t n) {
  Transform3(s, a, dy, g, n, [](auto d, auto v, auto va, auto vdy) HWY_ATTR {
    return hn::Mul(vdy, KeepNaN(v, IfNegative(d, v, va, hn::Set(d, 1.0f))));
  });
}

float LeakyAlphaGradient(const float* x, const float* dy, size_t n) {
  return Reduce2(x, dy, n, SumOp(), [](auto d, auto v, auto vdy) HWY_ATTR {
    return hn::IfThenZeroElse(hn::Ge(v, hn::Zero(d)), hn::Mul(v, vdy));
  });
}

}  // namespace
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {
namespace {

// Functions whose derivative is a constant need neither x nor y.
bool constant_slope(const Activation& activation, float* slope) {
  switch (activation.function) {
    case BNNSActivationFunctionIdentity:
      *slope = 1;
      return true;
    case BNNSActivationFunctionLinear:
    case BNNSActivationFunctionLinearWithBias:
      *slope = activation.alpha;
      return true;
    case BNNSActivationFunctionGumbel:
      *slope = 0;
      return true;
    default:
      return false;
  }
}

}  // namespace

void activation_backward_from_output(const Activation& activation, const float* y, const float* dy, float* g,
                                     size_t n) noexcept {
  float slope;
  if (activation.is_rowwise()) return softmax_row_backward(activation, From::output, y, dy, g, n);
  if (constant_slope(activation, &slope)) return BNNS_DISPATCH(ScaleGradient)(slope, dy, g, n);
  BNNS_DISPATCH(BackwardFromOutput)(activation, y, dy, g, n);
}

void activation_backward_from_input(const Activation& activation, const float* x, const float* dy, float* g,
                                    size_t n) noexcept {
  float slope;
  if (activation.is_rowwise()) return softmax_row_backward(activation, From::input, x, dy, g, n);
  if (constant_slope(activation, &slope)) return BNNS_DISPATCH(ScaleGradient)(slope, dy, g, n);
  BNNS_DISPATCH(BackwardFromInput)(activation, x, dy, g, n);
}

void prelu_backward(const float* s, const float* a, const float* dy, float* g, size_t n) noexcept {
  BNNS_DISPATCH(PreluBackward)(s, a, dy, g, n);
}

float leaky_alpha_gradient(const float* x, const float* dy, size_t n) noexcept {
  return BNNS_DISPATCH(LeakyAlphaGradient)(x, dy, n);
}

}  // namespace bnns
#endif
