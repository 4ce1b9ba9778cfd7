// What the tests of this folder share: every element-wise function with numbers that make all its branches live, and
// how far the kernels may be from the reference.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstddef>
#include <vector>

#include "src/engine/activation/activation_ref.h"

namespace bnns::testing {

inline constexpr double kUlp = 0x1p-23;  // the largest ratio of a float's last place to its value

inline std::vector<Activation> element_cases() {
  return {{BNNSActivationFunctionIdentity, 0, 0},
          {BNNSActivationFunctionRectifiedLinear, 0, 0},
          {BNNSActivationFunctionLeakyRectifiedLinear, 0.25f, 0},
          {BNNSActivationFunctionLeakyRectifiedLinear, -0.5f, 0},
          {BNNSActivationFunctionSigmoid, 0, 0},
          {BNNSActivationFunctionTanh, 0, 0},
          {BNNSActivationFunctionScaledTanh, 1.7159f, 0.6667f},
          {BNNSActivationFunctionAbs, 0, 0},
          {BNNSActivationFunctionLinear, -1.75f, 0},
          {BNNSActivationFunctionClamp, -1, 2},
          {BNNSActivationFunctionGELUApproximation, 0.79788456f, 0.044715f},
          {BNNSActivationFunctionHardSigmoid, 0.2f, 0.5f},
          {BNNSActivationFunctionSoftplus, 0.5f, 2},
          {BNNSActivationFunctionSoftsign, 0, 0},
          {BNNSActivationFunctionELU, 1.25f, 0},
          {BNNSActivationFunctionELU, -0.5f, 0},
          {BNNSActivationFunctionClampedLeakyRectifiedLinear, 0.125f, 1.5f},
          {BNNSActivationFunctionLinearWithBias, 0.7f, -0.3f},
          {BNNSActivationFunctionLogSigmoid, 0, 0},
          {BNNSActivationFunctionSELU, 0, 0},
          {BNNSActivationFunctionCELU, 1.5f, 0},
          {BNNSActivationFunctionHardShrink, 0.5f, 0},
          {BNNSActivationFunctionSoftShrink, 0.5f, 0},
          {BNNSActivationFunctionTanhShrink, 0, 0},
          {BNNSActivationFunctionThreshold, 0.25f, -0.75f},
          {BNNSActivationFunctionHardSwish, 0, 0},
          {BNNSActivationFunctionSiLU, 0, 0},
          {BNNSActivationFunctionReLU6, 0, 0},
          {BNNSActivationFunctionErf, 0, 0},
          {BNNSActivationFunctionGELU, 0, 0},
          {BNNSActivationFunctionGELUApproximationSigmoid, 0, 0}};
}

// Subnormal results have an absolute error of a few last places, times what they are multiplied by.
inline double subnormal_error(const Activation& a, double x) {
  return 0x1p-147 * (1 + std::fabs(x) + std::fabs(double(a.alpha)) + std::fabs(double(a.alpha) * a.beta));
}

// The kernel computes f within 4 ulp of the value. Where it rounds a product before the function (beta x, 1.702 x, the
// cubic), that rounding moves the result by |w f'(w)|, which |x f' - f| + |f| covers for f = s(w) and f = x s(w).
inline double forward_bound(const Activation& a, double x) {
  const double f = std::fabs(ref::activation_forward(a, x));
  double scale = 4 * f;
  switch (a.function) {
    case BNNSActivationFunctionScaledTanh:
    case BNNSActivationFunctionSoftplus:
    case BNNSActivationFunctionCELU:
    case BNNSActivationFunctionGELUApproximation:
    case BNNSActivationFunctionGELUApproximationSigmoid:
      scale += 3 * std::fabs(x * ref::activation_derivative(a, x) - ref::activation_forward(a, x)) + 3 * f;
      break;
    case BNNSActivationFunctionHardSigmoid:
    case BNNSActivationFunctionLinearWithBias:
      scale = std::fabs(a.alpha * x) + std::fabs(a.beta);
      break;
    default:
      break;
  }
  return kUlp * scale + subnormal_error(a, x);
}

// The derivative is 5 ulp of the sum of its terms, again with |w| ulp where w was rounded.
inline double backward_bound_from_input(const Activation& a, double x) {
  const double derivative = std::fabs(ref::activation_derivative(a, x));
  double scale = derivative, factor = 0;  // factor: what a subnormal slope is multiplied by
  const auto swish = [x, &factor](double w, double dw) {
    const double slope = ref::sigmoid(w) * ref::sigmoid(-w);
    factor = slope == 0 ? 0 : std::fabs(x * dw);
    return ref::sigmoid(w) + factor * slope;
  };
  switch (a.function) {
    case BNNSActivationFunctionScaledTanh:
      scale *= 1 + std::fabs(2 * a.beta * x);
      break;
    case BNNSActivationFunctionSoftplus:
      scale *= 1 + std::fabs(a.beta * x);
      break;
    case BNNSActivationFunctionCELU:
      scale *= x < 0 ? 1 + std::fabs(x / a.alpha) : 1;
      break;
    case BNNSActivationFunctionHardSwish:
      scale = x > -3 && x < 3 ? std::fabs(x) / 3 + 0.5 : derivative;
      break;
    case BNNSActivationFunctionSiLU:
      scale = swish(x, 1);
      break;
    case BNNSActivationFunctionGELUApproximationSigmoid:
      scale = swish(1.702 * x, 1.702) * (1 + std::fabs(1.702 * x));
      break;
    case BNNSActivationFunctionGELUApproximation: {
      const double w = 2 * a.alpha * (x + a.beta * x * x * x);
      scale = swish(w, 2 * a.alpha * (1 + 3 * a.beta * x * x)) * (1 + std::fabs(w));
      break;
    }
    case BNNSActivationFunctionGELU:
      scale = ref::normal_cdf(x) + std::fabs(x) * ref::normal_density(x);
      break;
    default:
      break;
  }
  if (std::isnan(scale) || std::isinf(scale)) scale = derivative;  // |w| is infinite where the slope is zero
  return 5 * kUlp * scale + subnormal_error(a, x) * (1 + factor);
}

inline double backward_bound_from_output(const Activation& a, double y) {
  double scale = std::fabs(ref::activation_derivative_from_output(a, y));
  switch (a.function) {
    case BNNSActivationFunctionScaledTanh:
      scale = std::fabs(a.alpha * a.beta) * (1 + (y / a.alpha) * (y / a.alpha));
      break;
    case BNNSActivationFunctionSoftplus:  // expm1(w), w = -y/alpha rounded: |w e^w| ulp more
      scale += std::fabs(a.beta * y) * std::exp(-y / a.alpha);
      break;
    case BNNSActivationFunctionELU:
      scale = std::fabs(y) + std::fabs(a.alpha);
      break;
    case BNNSActivationFunctionCELU:
      scale = 1 + std::fabs(y / a.alpha);
      break;
    case BNNSActivationFunctionSELU:
      scale = std::fabs(y) + 2;
      break;
    default:
      break;
  }
  return 5 * kUlp * scale + subnormal_error(a, y);
}

}  // namespace bnns::testing
