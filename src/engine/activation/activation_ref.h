// The activation functions in double, one expression each, as the specification's table has them.
// Shares nothing with the kernels but the function's name and numbers.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "src/engine/activation/activation.h"

namespace bnns::ref {

inline double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}
inline double normal_cdf(double x) {
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
}
inline double normal_density(double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}
inline double relu6(double x) {
  return std::fmin(std::fmax(x, 0), 6);
}

inline constexpr double kSeluScale = 1.0507009873554805, kSeluAlpha = 1.6732632423543773;
// As a float holds it: the layer's own constant is the decimal 1.702.
inline constexpr double kSwishScale = 1.702f;

// f(x), element-wise functions.
inline double activation_forward(const Activation& activation, double x) {
  const double a = activation.alpha, b = activation.beta;
  switch (activation.function) {
    case BNNSActivationFunctionIdentity:
      return x;
    case BNNSActivationFunctionRectifiedLinear:
      return x >= 0 ? x : 0;
    case BNNSActivationFunctionLeakyRectifiedLinear:
      return x >= 0 ? x : a * x;
    case BNNSActivationFunctionSigmoid:
      return sigmoid(x);
    case BNNSActivationFunctionTanh:
      return std::tanh(x);
    case BNNSActivationFunctionScaledTanh:
      return a * std::tanh(b * x);
    case BNNSActivationFunctionAbs:
      return std::fabs(x);
    case BNNSActivationFunctionLinear:
      return a * x;
    case BNNSActivationFunctionClamp:
      return std::fmin(std::fmax(x, a), b);
    case BNNSActivationFunctionGELUApproximation:
      return x * sigmoid(2 * a * (x + b * x * x * x));
    case BNNSActivationFunctionHardSigmoid:
      return std::fmax(0, std::fmin(1, a * x + b));
    case BNNSActivationFunctionSoftplus:
      return a * (std::fmax(b * x, 0) + std::log1p(std::exp(-std::fabs(b * x))));
    case BNNSActivationFunctionSoftsign:
      return x / (1 + std::fabs(x));
    case BNNSActivationFunctionELU:
      return x >= 0 ? x : a * std::expm1(x);
    case BNNSActivationFunctionClampedLeakyRectifiedLinear:
      return std::fmin(x < 0 ? a * x : x, b);
    case BNNSActivationFunctionLinearWithBias:
      return a * x + b;
    case BNNSActivationFunctionLogSigmoid:
      return std::fmin(x, 0) - std::log1p(std::exp(-std::fabs(x)));
    case BNNSActivationFunctionSELU:
      return kSeluScale * (x >= 0 ? x : kSeluAlpha * std::expm1(x));
    case BNNSActivationFunctionCELU:
      return x >= 0 ? x : a * std::expm1(x / a);
    case BNNSActivationFunctionHardShrink:
      return std::fabs(x) < std::fabs(a) ? 0 : x;
    case BNNSActivationFunctionSoftShrink:
      return std::fabs(x) < std::fabs(a) ? 0 : x - std::copysign(a, x);
    case BNNSActivationFunctionTanhShrink:  // the series where the difference would cancel
      return std::fabs(x) < 1e-2 ? x * x * x * (1.0 / 3 - x * x * (2.0 / 15 - x * x * 17.0 / 315)) : x - std::tanh(x);
    case BNNSActivationFunctionThreshold:
      return x <= a ? b : x;
    case BNNSActivationFunctionHardSwish:
      return x * relu6(x + 3) / 6;
    case BNNSActivationFunctionSiLU:
      return x * sigmoid(x);
    case BNNSActivationFunctionReLU6:
      return relu6(x);
    case BNNSActivationFunctionErf:
      return std::erf(x);
    case BNNSActivationFunctionGELU:
      return x * normal_cdf(x);
    case BNNSActivationFunctionGELUApproximationSigmoid:
      return x * sigmoid(kSwishScale * x);
    default:
      return NAN;
  }
}

// x sigmoid(w): s + x s (1 - s) w', where s (1 - s) is s(w) s(-w).
inline double swish_derivative(double x, double w, double dw) {
  const double slope = sigmoid(w) * sigmoid(-w);
  return sigmoid(w) + (slope == 0 ? 0 : x * slope * dw);
}

// f'(x).
inline double activation_derivative(const Activation& activation, double x) {
  const double a = activation.alpha, b = activation.beta;
  switch (activation.function) {
    case BNNSActivationFunctionIdentity:
      return 1;
    case BNNSActivationFunctionRectifiedLinear:
      return x > 0;
    case BNNSActivationFunctionLeakyRectifiedLinear:
      return x >= 0 ? 1 : a;
    case BNNSActivationFunctionSigmoid:
      return sigmoid(x) * sigmoid(-x);
    case BNNSActivationFunctionTanh:
      return 4 * sigmoid(2 * x) * sigmoid(-2 * x);
    case BNNSActivationFunctionScaledTanh:
      return 4 * a * b * sigmoid(2 * b * x) * sigmoid(-2 * b * x);
    case BNNSActivationFunctionAbs:
      return (x > 0) - (x < 0);
    case BNNSActivationFunctionLinear:
      return a;
    case BNNSActivationFunctionClamp:
      return a <= x && x <= b;
    case BNNSActivationFunctionGELUApproximation:
      return swish_derivative(x, 2 * a * (x + b * x * x * x), 2 * a * (1 + 3 * b * x * x));
    case BNNSActivationFunctionHardSigmoid:
      return 0 < a * x + b && a * x + b < 1 ? a : 0;
    case BNNSActivationFunctionSoftplus:
      return a * b * sigmoid(b * x);
    case BNNSActivationFunctionSoftsign:
      return 1 / ((1 + std::fabs(x)) * (1 + std::fabs(x)));
    case BNNSActivationFunctionELU:
      return x >= 0 ? 1 : a * std::exp(x);
    case BNNSActivationFunctionClampedLeakyRectifiedLinear:
      return x < 0 ? (a * x >= b ? 0 : a) : (x >= b ? 0 : 1);
    case BNNSActivationFunctionLinearWithBias:
      return a;
    case BNNSActivationFunctionLogSigmoid:
      return sigmoid(-x);
    case BNNSActivationFunctionSELU:
      return kSeluScale * (x >= 0 ? 1 : kSeluAlpha * std::exp(x));
    case BNNSActivationFunctionCELU:
      return x >= 0 ? 1 : std::exp(x / a);
    case BNNSActivationFunctionHardShrink:
      return std::fabs(x) >= std::fabs(a);
    case BNNSActivationFunctionSoftShrink:
      return std::fabs(x) >= std::fabs(a);
    case BNNSActivationFunctionTanhShrink:
      return std::tanh(x) * std::tanh(x);
    case BNNSActivationFunctionThreshold:
      return x > a;
    case BNNSActivationFunctionHardSwish:
      return x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6;
    case BNNSActivationFunctionSiLU:
      return swish_derivative(x, x, 1);
    case BNNSActivationFunctionReLU6:
      return 0 < x && x < 6;
    case BNNSActivationFunctionErf:
      return 2 / std::sqrt(M_PI) * std::exp(-x * x);
    case BNNSActivationFunctionGELU:
      return normal_cdf(x) + x * normal_density(x);
    case BNNSActivationFunctionGELUApproximationSigmoid:
      return swish_derivative(x, kSwishScale * x, kSwishScale);
    default:
      return NAN;
  }
}

// f' as a function of y = f(x); NaN where the function has no such form.
inline double activation_derivative_from_output(const Activation& activation, double y) {
  const double a = activation.alpha, b = activation.beta;
  switch (activation.function) {
    case BNNSActivationFunctionIdentity:
      return 1;
    case BNNSActivationFunctionRectifiedLinear:
      return y > 0;
    case BNNSActivationFunctionLeakyRectifiedLinear:
      return y >= 0 ? 1 : a;
    case BNNSActivationFunctionSigmoid:
      return y * (1 - y);
    case BNNSActivationFunctionTanh:
      return 1 - y * y;
    case BNNSActivationFunctionScaledTanh:
      return a * b * (1 - (y / a) * (y / a));
    case BNNSActivationFunctionLinear:
      return a;
    case BNNSActivationFunctionClamp:
      return a < y && y < b;
    case BNNSActivationFunctionHardSigmoid:
      return 0 < y && y < 1 ? a : 0;
    case BNNSActivationFunctionSoftplus:
      return -a * b * std::expm1(-y / a);
    case BNNSActivationFunctionSoftsign:
      return (1 - std::fabs(y)) * (1 - std::fabs(y));
    case BNNSActivationFunctionELU:
      return y >= 0 ? 1 : y + a;
    case BNNSActivationFunctionClampedLeakyRectifiedLinear:
      return y >= b ? 0 : y < 0 ? a : 1;
    case BNNSActivationFunctionLinearWithBias:
      return a;
    case BNNSActivationFunctionLogSigmoid:
      return -std::expm1(y);
    case BNNSActivationFunctionSELU:
      return y >= 0 ? kSeluScale : y + kSeluScale * kSeluAlpha;
    case BNNSActivationFunctionCELU:
      return y >= 0 ? 1 : 1 + y / a;
    case BNNSActivationFunctionHardShrink:
      return y != 0;
    case BNNSActivationFunctionSoftShrink:
      return y != 0;
    case BNNSActivationFunctionThreshold:
      return y != b;
    case BNNSActivationFunctionReLU6:
      return 0 < y && y < 6;
    default:
      return NAN;
  }
}

// One row of softmax, or of its logarithm.
inline std::vector<double> softmax_forward(bool log, const std::vector<double>& x) {
  double max = -INFINITY, sum = 0;
  for (double v : x) max = std::fmax(max, v);
  for (double v : x) sum += std::exp(v - max);
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = log ? x[i] - max - std::log(sum) : std::exp(x[i] - max) / sum;
  return y;
}

inline std::vector<double> softmax_backward(bool log, const std::vector<double>& y, const std::vector<double>& dy) {
  double sum = 0;
  for (size_t i = 0; i < y.size(); ++i) sum += log ? dy[i] : dy[i] * y[i];
  std::vector<double> dx(y.size());
  for (size_t i = 0; i < y.size(); ++i) dx[i] = log ? dy[i] - std::exp(y[i]) * sum : y[i] * (dy[i] - sum);
  return dx;
}

}  // namespace bnns::ref
