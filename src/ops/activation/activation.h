// Activation functions: y = f(x), and dx = dy * f' from y where that is possible, else from x.
//
// This file is what other operators include: a fused layer applies `y = act(linear + bias)` to rows of f32 that are
// still in cache, and undoes it in backward. The stand-alone layer is ActivationFilter (activation.cc).
#pragma once

#include <cstddef>
#include <cstdint>

#include "bnns/bnns.h"

namespace bnns {

// One function with its numbers, checked. Trivially copyable.
struct Activation {
  BNNSActivationFunction function = BNNSActivationFunctionIdentity;
  float alpha = 0, beta = 0;

  bool is_identity() const { return function == BNNSActivationFunctionIdentity; }
  // Softmax and LogSoftmax mix the elements of a row; everything else is element by element.
  bool is_rowwise() const {
    return function == BNNSActivationFunctionSoftmax || function == BNNSActivationFunctionLogSoftmax;
  }
};

// For a fused activation: refuses unknown functions and those that cannot be fused into a float layer (integer
// saturation, Gumbel noise). PReLUPerChannel becomes LeakyRectifiedLinear: fused, all channels share alpha.
Activation make_fused_activation(const BNNSActivation& activation, const char* op);

const char* activation_name(BNNSActivationFunction function) noexcept;   // "relu", "gelu", ...

// Whether f' can be computed from y for this function and these numbers (K8).
bool has_derivative_from_output(const Activation& activation) noexcept;

// y = f(x) over n elements; row-wise functions take the n elements as one row. In place (x == y) is allowed.
void activation_forward(const Activation& activation, const float* x, float* y, size_t n) noexcept;

// g = dy * f'(x), from y or from x. g may be dy. Row-wise functions take one row.
void activation_backward_from_output(const Activation& activation, const float* y, const float* dy, float* g,
                                     size_t n) noexcept;
void activation_backward_from_input(const Activation& activation, const float* x, const float* dy, float* g,
                                    size_t n) noexcept;

}  // namespace bnns
