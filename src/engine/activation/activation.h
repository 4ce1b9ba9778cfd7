// Activation functions: y = f(x), and dx = dy * f' from y where that is possible, else from x.
//
// A fused layer applies `y = act(linear + bias)` to rows of f32 that are still in cache, and undoes it in backward. The
// stand-alone layer is src/ops/activation.
#pragma once

#include <cstddef>

#include "bnns/bnns.h"

namespace bnns {

// ---- for fused layers -------------------------------------------------------------------------------------------

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

// Refuses numbers that are no function of the C header.
void check_activation_function(BNNSActivationFunction function, const char* op);

// For a fused activation: refuses unknown functions and those that cannot be fused into a float layer (integer
// saturation, Gumbel noise). PReLUPerChannel becomes LeakyRectifiedLinear: fused, all channels share alpha.
Activation make_fused_activation(const BNNSActivation& activation, const char* op);

const char* activation_name(BNNSActivationFunction function) noexcept;  // "relu", "gelu", ...

// Whether f' can be computed from y for this function and these numbers (K8).
bool has_derivative_from_output(const Activation& activation) noexcept;

// The function as seen from a y that is stored in `type`: the numbers that y is compared with are rounded like y, else
// an element that was clamped to a bound would be taken for one that lies inside. For activation_backward_from_output.
Activation as_stored(const Activation& activation, BNNSDataType type) noexcept;

// y = f(x) over n elements; row-wise functions take the n elements as one row. In place (x == y) is allowed.
void activation_forward(const Activation& activation, const float* x, float* y, size_t n) noexcept;

// g = dy * f'(x), from y or from x. g may be dy, and it may be y or x. Row-wise functions take one row.
void activation_backward_from_output(const Activation& activation, const float* y, const float* dy, float* g,
                                     size_t n) noexcept;
void activation_backward_from_input(const Activation& activation, const float* x, const float* dy, float* g,
                                    size_t n) noexcept;

// ---- kernels of the stand-alone layer ---------------------------------------------------------------------------

// One alpha per element: y = x < 0 ? a x : x, and g = dy * (s < 0 ? a : 1) with s = x, or s = y where every a > 0.
void prelu_forward(const float* x, const float* a, float* y, size_t n) noexcept;
void prelu_backward(const float* s, const float* a, const float* dy, float* g, size_t n) noexcept;
// Sum of dy * x over x < 0: the gradient of a shared alpha. f32 within n, so callers pass short blocks.
float leaky_alpha_gradient(const float* x, const float* dy, size_t n) noexcept;
// y = -log(-log(alpha u + beta) + beta)
void gumbel_forward(const Activation& activation, const float* u, float* y, size_t n) noexcept;

}  // namespace bnns
