// What the checks of the layer and of its calls share.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>

#include "src/ops/attention/attention_view.h"
#include "src/tensor/tensor.h"

namespace bnns {

std::string attention_shape_text(const size_t* size, size_t rank);  // "(3, 4)"

// Refuses a tensor whose logical indices are not `expected`.
void check_attention_shape(const Tensor& t, std::initializer_list<size_t> expected, const char* field,
                           const char* meaning);

// Tensors by their meaning. Shapes of targets and weights were checked before; biases are checked here.
MatrixView attention_target_view(const Tensor& t, size_t batch, const void* data, size_t stride);  // batch, rows, d
MatrixView attention_weights_view(const Tensor& t);         // (d, k, h) as h, k by d
MatrixView attention_output_weights_view(const Tensor& t);  // (h v, d_model)
// (k, h), or a vector with head after head, as h by k.
MatrixView attention_bias_view(const Tensor& t, size_t size, size_t heads, const char* field);
MatrixView attention_output_bias_view(const Tensor& t, size_t model, const char* field);

}  // namespace bnns
