// Spans of 16-bit floats to and from float, vectorised. The 16-bit values are bit patterns in uint16_t.
//
// Round to nearest, ties to even; NaN stays NaN; the same bits as the scalar functions of half.h. Spans must not
// overlap. Exactly n elements are read and written.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/core/half.h"

namespace bnns {

void half_to_float(const uint16_t* src, float* dst, size_t n) noexcept;
void float_to_half(const float* src, uint16_t* dst, size_t n) noexcept;
void bfloat16_to_float(const uint16_t* src, float* dst, size_t n) noexcept;
void float_to_bfloat16(const float* src, uint16_t* dst, size_t n) noexcept;

}  // namespace bnns
