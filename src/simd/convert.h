// Spans of 16-bit floats to and from float, and of integers of 8 and 16 bits to float, vectorised. The 16-bit floats
// are bit patterns in uint16_t.
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

// scale * x + bias, rounded after each of the two.
void integers_to_float(const int8_t* src, float* dst, size_t n, float scale, float bias) noexcept;
void integers_to_float(const uint8_t* src, float* dst, size_t n, float scale, float bias) noexcept;
void integers_to_float(const int16_t* src, float* dst, size_t n, float scale, float bias) noexcept;
void integers_to_float(const uint16_t* src, float* dst, size_t n, float scale, float bias) noexcept;

}  // namespace bnns
