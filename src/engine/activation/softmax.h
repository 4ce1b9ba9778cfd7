// Kernels of Softmax and LogSoftmax, for one row or for many neighbouring columns. They run on one thread, allocate
// nothing and may work in place (any output pointer may be an input of the same call).
//
//   softmax      y = e^(x - max) / sum e^(x - max)            dx = y (dy - sum dy y)
//   log_softmax  y = (x - max) - log(sum e^(x - max))         dx = dy - e^y sum dy
//
// x - max keeps every exponential at or below 1. A row with a NaN, with +inf, or of -inf alone gives NaN in all its
// elements, and no other row is touched by it.
#pragma once

#include <cstddef>

#include "src/engine/activation/activation.h"

namespace bnns {

// Which of the two values a gradient starts from.
enum class From { input, output };

void softmax_row_forward(const Activation& activation, const float* x, float* y, size_t n) noexcept;
void softmax_row_backward(const Activation& activation, From from, const float* s, const float* dy, float* g,
                          size_t n) noexcept;

// The same for `columns` neighbouring columns: element r of column c is x[r * x_step + c].
void softmax_columns_forward(const Activation& activation, const float* x, size_t x_step, float* y, size_t y_step,
                             size_t rows, size_t columns) noexcept;
void softmax_columns_backward(const Activation& activation, From from, const float* s, size_t s_step, const float* dy,
                              size_t dy_step, float* g, size_t g_step, size_t rows, size_t columns) noexcept;

}  // namespace bnns
