// Rows of stored whole-byte integers and Booleans to and from f32, one loop for each type.
#pragma once

#include <cstddef>

#include "src/tensor/data_type.h"

namespace bnns {

// to[i] = scale * x + bias for n integers `stride` apart, x != 0 for Booleans. from is the first of them.
void load_numbers(BNNSDataType type, const void* from, size_t stride, size_t n, float scale, float bias,
                  float* to) noexcept;

// saturate(round(value / scale - bias)), NaN as 0; value != 0 for Booleans.
void store_numbers(BNNSDataType type, const float* from, size_t n, float scale, float bias, void* to,
                   size_t stride) noexcept;

}  // namespace bnns
