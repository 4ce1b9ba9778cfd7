// The optimizer in plain double loops, straight from the formulas of README.md.
//
// It reads the fields of the call itself (the structures with clipping hold everything the plain ones do) and shares
// nothing with the kernels.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "bnns/bnns.h"

namespace bnns::ref {

using Tensors = std::vector<std::vector<double>>;

struct Model {
  Tensors w, g;
  std::vector<Tensors> state;  // by role, then by tensor
};

// scale * clip(g) + regularization_scale * R'(W)
template <class Fields>
Tensors effective_gradient(const Fields& f, const Model& model, bool decoupled) {
  Tensors result = model.g;
  double all_squares = 0;
  for (const auto& g : model.g)
    for (double x : g) all_squares += x * x;
  for (size_t t = 0; t < result.size(); ++t) {
    double squares = 0;
    for (double x : model.g[t]) squares += x * x;
    for (size_t i = 0; i < result[t].size(); ++i) {
      double g = model.g[t][i];
      const double w = model.w[t][i];
      double norm = 0;
      switch (f.clipping_func) {
        case BNNSOptimizerClippingNone:
          break;
        case BNNSOptimizerClippingByValue:
          if (g < f.clip_gradients_min) g = f.clip_gradients_min;
          if (g > f.clip_gradients_max) g = f.clip_gradients_max;
          break;
        case BNNSOptimizerClippingByNorm:
          norm = std::sqrt(squares);
          break;
        case BNNSOptimizerClippingByGlobalNorm:
          norm = f.clip_gradients_use_norm != 0 ? f.clip_gradients_use_norm : std::sqrt(all_squares);
          break;
      }
      if (norm > f.clip_gradients_max_norm && norm > 0) g *= f.clip_gradients_max_norm / norm;
      g *= f.gradient_scale;
      if (!decoupled && f.regularization_func == BNNSOptimizerRegularizationL1) {
        g += f.regularization_scale * (w > 0 ? 1.0 : w < 0 ? -1.0 : 0.0);
      }
      if (!decoupled && f.regularization_func == BNNSOptimizerRegularizationL2) g += f.regularization_scale * w;
      result[t][i] = g;
    }
  }
  return result;
}

inline void sgd(const BNNSOptimizerSGDMomentumWithClippingFields& f, Model* model) {
  const Tensors gradient = effective_gradient(f, *model, false);
  const double lr = f.learning_rate, m = f.momentum;
  for (size_t t = 0; t < model->w.size(); ++t) {
    for (size_t i = 0; i < model->w[t].size(); ++i) {
      double& w = model->w[t][i];
      const double g = gradient[t][i];
      if (m == 0) {
        w -= lr * g;
        continue;
      }
      double& v = model->state[0][t][i];
      const double old = v;
      if (f.sgd_momentum_variant == BNNSSGDMomentumVariant0) {
        v = m * old - lr * g;
        w += f.nesterov ? v + m * (v - old) : v;
      } else if (f.sgd_momentum_variant == BNNSSGDMomentumVariant1) {
        v = m * old + g;
        w -= f.nesterov ? lr * (g + m * v) : lr * v;
      } else if (f.nesterov) {
        v = m * old + g;
        w -= lr * (g + m * v);
      } else {
        v = m * old + lr * g;
        w -= v;
      }
    }
  }
}

inline void adam(const BNNSOptimizerAdamWithClippingFields& f, bool decoupled, bool amsgrad, Model* model) {
  const Tensors gradient = effective_gradient(f, *model, decoupled);
  const double lr = f.learning_rate, b1 = f.beta1, b2 = f.beta2, t_step = f.time_step;
  const double correction = std::sqrt(1 - std::pow(b2, t_step)) / (1 - std::pow(b1, t_step));
  for (size_t t = 0; t < model->w.size(); ++t) {
    for (size_t i = 0; i < model->w[t].size(); ++i) {
      const double g = gradient[t][i], old_w = model->w[t][i];
      double& first = model->state[0][t][i];
      double& second = model->state[1][t][i];
      first = b1 * first + (1 - b1) * g;
      second = b2 * second + (1 - b2) * g * g;
      double under_root = second;
      if (amsgrad) under_root = model->state[2][t][i] = std::max(model->state[2][t][i], second);
      const double denominator = std::sqrt(under_root) + f.epsilon;
      model->w[t][i] -= denominator == 0 ? 0 : lr * correction * first / denominator;
      if (decoupled) model->w[t][i] -= lr * f.regularization_scale * old_w;
    }
  }
}

inline void rmsprop(const BNNSOptimizerRMSPropWithClippingFields& f, Model* model) {
  const Tensors gradient = effective_gradient(f, *model, false);
  const double lr = f.learning_rate, a = f.alpha, m = f.momentum;
  for (size_t t = 0; t < model->w.size(); ++t) {
    for (size_t i = 0; i < model->w[t].size(); ++i) {
      const double g = gradient[t][i];
      double& square = model->state[0][t][i];
      square = a * square + (1 - a) * g * g;
      double under_root = square;
      if (f.centered) {
        double& mean = model->state[1][t][i];
        mean = a * mean + (1 - a) * g;
        under_root = std::max(0.0, square - mean * mean);
      }
      const double denominator = std::sqrt(under_root) + f.epsilon;
      double delta = denominator == 0 ? 0 : -lr * g / denominator;
      if (m != 0) {
        double& kept = model->state[f.centered ? 2 : 1][t][i];
        delta = kept = m * kept + delta;
      }
      model->w[t][i] += delta;
    }
  }
}

}  // namespace bnns::ref
