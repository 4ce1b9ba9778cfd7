// One optimizer step: W (parameters), g (their gradients) and the accumulators of the rule, all dense f32.
//
//   g' = scale * clip(g) + regularization * R'(W)       clip, then scale, then regularise (README.md)
//   W and the accumulators are updated from g' in one pass; element i uses element i of every tensor and nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bnns/bnns.h"
#include "src/core/memory.h"

namespace bnns {

// What happens to one element. lr learning rate, m momentum, b1 b2 Adam's betas, a RMSProp's alpha.
enum class UpdateRule : uint8_t {
  sgd,                // W -= lr g
  momentum,           // V' = m V + velocity_gain g;  W += velocity_step V'
  nesterov_velocity,  // V' = m V + velocity_gain g;  W += V' + m (V' - V)
  nesterov_gradient,  // V' = m V + g;  W -= lr (g + m V')
  adam,               // M = b1 M + (1-b1) g;  U = b2 U + (1-b2) g^2;  W -= step M / (sqrt U + eps)
  amsgrad,            // as adam with X = max(X, U) in the root
  rmsprop,            // n = a n + (1-a) g^2;  W -= lr g / (sqrt n + eps)
  rmsprop_centered,   // q = a q + (1-a) g as well, and n - q^2 in the root
  rmsprop_momentum,   // D = m D - lr g / (sqrt n + eps);  W += D
  rmsprop_centered_momentum,
};

enum class Regularization : uint8_t { none, l1, l2 };  // R' = 0, sign(W), W
enum class Clipping : uint8_t { none, value, norm, global_norm };

// The fields of a call, checked and brought to the form that kernels use.
struct OptimizerProblem {
  UpdateRule rule = UpdateRule::sgd;
  Regularization regularization = Regularization::none;
  Clipping clipping = Clipping::none;
  bool decays = false;  // AdamW: W -= decay W besides, with the old W
  size_t states = 0;    // accumulators per parameter tensor

  float learning_rate = 0, gradient_scale = 1, regularization_scale = 0;
  float clip_low = 0, clip_high = 0;  // Clipping::value
  double max_norm = 0, use_norm = 0;  // Clipping::norm, global_norm; use_norm 0 means compute it

  float momentum = 0, velocity_gain = 1, velocity_step = 1;
  float beta1 = 0, one_minus_beta1 = 1, beta2 = 0, one_minus_beta2 = 1;  // RMSProp: beta2 is alpha
  float step = 0;                // Adam: lr sqrt(1 - b2^t) / (1 - b1^t), in double once per call
  float epsilon = 0, decay = 0;  // decay = lr * regularization_scale

  bool operator==(const OptimizerProblem&) const = default;
  std::string text() const;  // "adam f32 clip_global_norm l2"
  // Tells texts of steps on n tensors apart without making them: a step allocates nothing, recorded or not.
  uint64_t hash(size_t n) const;
};

// Checks every field that the function uses (optimizer_fields.cc). Throws Error with the field, its value and the rule.
OptimizerProblem make_optimizer_problem(BNNSOptimizerFunction function, const void* fields);

// Updates n tensors. Every tensor, pointer and norm is checked before the first write.
void optimizer_step(const OptimizerProblem& problem, size_t n, BNNSNDArrayDescriptor* const* parameters,
                    const BNNSNDArrayDescriptor* const* gradients, BNNSNDArrayDescriptor* const* accumulators,
                    const Options& options);

// ---- kernels ----------------------------------------------------------------------------------------------------

// A stretch of one tensor: W, g and up to three accumulators in the order of the call.
struct OptimizerSlice {
  float* w;
  const float* g;
  float* state[3];
  size_t n;
};

// Gradients are multiplied by `first`, then by `second`: one factor, in two where it is too small for one f32.
struct GradientScale {
  float first = 1, second = 1;
};
GradientScale split_scale(double factor);

// The slice's tensors must not share memory.
void optimizer_update(const OptimizerProblem& problem, GradientScale scale, const OptimizerSlice& slice) noexcept;

}  // namespace bnns
