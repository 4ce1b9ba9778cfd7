// The losses in plain loops of double, for tests. Tensors are dense: x and labels [batch][n], weights as weights_size
// says. Written from the formulas of README.md; shares nothing with the kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "bnns/bnns.h"

namespace bnns::ref {

using Numbers = std::vector<double>;

struct LossCase {
  BNNSLossFunction function = BNNSLossFunctionMeanSquareError;
  BNNSLossReductionFunction reduction = BNNSLossReductionSum;
  size_t batch = 1, n = 1;
  Numbers x, labels, weights;  // weights: 0, 1, batch or batch * n of them
  double label_smooth = 0, huber_delta = 1;

  bool per_sample() const { return function == 1 || function == 7 || function == 10; }
  size_t terms() const { return per_sample() ? batch : batch * n; }
};

constexpr double kLogLossEpsilon = 1e-7;

// The weight of element i of sample b.
inline double loss_weight(const LossCase& c, size_t b, size_t i) {
  if (c.weights.empty()) return 1;
  if (c.weights.size() == 1) return c.weights[0];
  return c.weights.size() == c.batch ? c.weights[b] : c.weights[b * c.n + i];
}

// The label as the loss sees it.
inline double loss_label(const LossCase& c, size_t b, size_t i) {
  const double label = c.labels[b * c.n + i];
  if (c.function == 1) return label * (1 - c.label_smooth) + c.label_smooth / double(c.n);
  if (c.function == 2) return label * (1 - c.label_smooth) + c.label_smooth / 2;
  return label;
}

// log softmax of element i of sample b.
inline double loss_log_softmax(const LossCase& c, size_t b, size_t i) {
  const double* x = c.x.data() + b * c.n;
  const double maximum = *std::max_element(x, x + c.n);
  double sum = 0;
  for (size_t j = 0; j < c.n; ++j) sum += std::exp(x[j] - maximum);
  return x[i] - maximum - std::log(sum);
}

inline double count_labels(const LossCase& c, size_t b) {
  double count = 0;
  for (size_t i = 0; i < c.n; ++i) count += c.labels[b * c.n + i] != 0;
  return count;
}

// The weighted term of sample b (per-sample functions; i is ignored) or of its element i.
inline double loss_term(const LossCase& c, size_t b, size_t i) {
  const double x = c.x[b * c.n + i], l = loss_label(c, b, i), w = loss_weight(c, b, i), e = x - l;
  double sum = 0;
  switch (c.function) {
    case BNNSLossFunctionSoftmaxCrossEntropy:
      for (size_t j = 0; j < c.n; ++j) {
        const double wl = loss_weight(c, b, j) * loss_label(c, b, j);
        if (wl != 0) sum -= wl * loss_log_softmax(c, b, j);
      }
      return sum;
    case BNNSLossFunctionCategoricalCrossEntropy:
      for (size_t j = 0; j < c.n; ++j) {
        const double wl = loss_weight(c, b, j) * loss_label(c, b, j);
        if (wl != 0) sum -= wl * loss_log_softmax(c, b, j);
      }
      return count_labels(c, b) == 0 ? 0 : sum / count_labels(c, b);
    case BNNSLossFunctionCosineDistance:
      for (size_t j = 0; j < c.n; ++j) sum += loss_weight(c, b, j) * loss_label(c, b, j) * c.x[b * c.n + j];
      return 1 - sum;
    case BNNSLossFunctionSigmoidCrossEntropy:
      return w * (std::max(x, 0.0) - x * l + std::log1p(std::exp(-std::fabs(x))));
    case BNNSLossFunctionMeanSquareError:
      return w * e * e;
    case BNNSLossFunctionHuber:
      if (std::fabs(e) <= c.huber_delta) return w * e * e / 2;
      return w * c.huber_delta * (std::fabs(e) - c.huber_delta / 2);
    case BNNSLossFunctionLog:
      return w * (-l * std::log(x + kLogLossEpsilon) - (1 - l) * std::log(1 - x + kLogLossEpsilon));
    case BNNSLossFunctionHinge:
      return w * std::max(0.0, 1 - (2 * l - 1) * x);
    case BNNSLossFunctionMeanAbsoluteError:
      return w * std::fabs(e);
    default:
      return NAN;
  }
}

// The derivative by x_i of sample b's term (per-sample functions) or of element i's.
inline double loss_slope(const LossCase& c, size_t b, size_t i) {
  const double x = c.x[b * c.n + i], l = loss_label(c, b, i), w = loss_weight(c, b, i), e = x - l;
  double sum = 0;
  switch (c.function) {
    case BNNSLossFunctionSoftmaxCrossEntropy:
      for (size_t j = 0; j < c.n; ++j) sum += loss_weight(c, b, j) * loss_label(c, b, j);
      return std::exp(loss_log_softmax(c, b, i)) * sum - w * l;
    case BNNSLossFunctionCategoricalCrossEntropy: {
      const double p = std::exp(loss_log_softmax(c, b, i)), count = count_labels(c, b);
      if (count == 0) return 0;
      return l == 0 ? p : w * (p - 1 / count);
    }
    case BNNSLossFunctionCosineDistance:
      return (1 - loss_term(c, b, 0)) * x - w * l;
    case BNNSLossFunctionSigmoidCrossEntropy:
      return w * (1 / (1 + std::exp(-x)) - l);
    case BNNSLossFunctionMeanSquareError:
      return w * 2 * e;
    case BNNSLossFunctionHuber:
      return w * std::clamp(e, -c.huber_delta, c.huber_delta);
    case BNNSLossFunctionLog: {
      const double P = x + kLogLossEpsilon, Q = 1 - x + kLogLossEpsilon;
      return w * (P - l) / (P * Q);
    }
    case BNNSLossFunctionHinge:
      return 1 - (2 * l - 1) * x >= 0 ? -w * (2 * l - 1) : 0;
    case BNNSLossFunctionMeanAbsoluteError:
      return x >= l ? w : -w;
    default:
      return NAN;
  }
}

// What the sum of the terms is divided by. A term of n weighted elements has their mean as its weight.
inline double loss_divisor(const LossCase& c) {
  double sum = 0, nonzero = 0;
  for (size_t b = 0; b < c.batch; ++b) {
    double sample_sum = 0, sample_nonzero = 0;
    for (size_t i = 0; i < c.n; ++i) {
      sample_sum += loss_weight(c, b, i);
      sample_nonzero += loss_weight(c, b, i) != 0;
    }
    sum += c.per_sample() ? sample_sum / double(c.n) : sample_sum;
    nonzero += c.per_sample() ? sample_nonzero != 0 : sample_nonzero;
  }
  switch (c.reduction) {
    case BNNSLossReductionWeightedMean:
      return sum;
    case BNNSLossReductionMean:
      return double(c.terms());
    case BNNSLossReductionNonZeroWeightMean:
      return nonzero;
    default:
      return 1;
  }
}

// All terms (reduction None), or the one value.
inline Numbers loss_forward(const LossCase& c) {
  Numbers terms;
  for (size_t b = 0; b < c.batch; ++b) {
    for (size_t i = 0; i < (c.per_sample() ? 1 : c.n); ++i) terms.push_back(loss_term(c, b, i));
  }
  if (c.reduction == BNNSLossReductionNone) return terms;
  double sum = 0;
  for (double term : terms) sum += term;
  return {loss_divisor(c) == 0 ? 0 : sum / loss_divisor(c)};
}

// dy: one number for each value that loss_forward returns.
inline Numbers loss_backward(const LossCase& c, const Numbers& dy) {
  Numbers dx(c.batch * c.n);
  const double divisor = loss_divisor(c);
  for (size_t b = 0; b < c.batch; ++b) {
    for (size_t i = 0; i < c.n; ++i) {
      const double up = c.reduction != BNNSLossReductionNone ? dy[0] : c.per_sample() ? dy[b] : dy[b * c.n + i];
      dx[b * c.n + i] = divisor == 0 ? 0 : up * loss_slope(c, b, i) / divisor;
    }
  }
  return dx;
}

}  // namespace bnns::ref
