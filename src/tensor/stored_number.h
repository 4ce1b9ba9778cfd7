// One number as it lies in memory: any type, before scale and bias.
#pragma once

#include <cstddef>

#include "src/tensor/data_type.h"

namespace bnns {

// Sub-byte element k sits in bits (k * width mod 8) upward of its byte (K2); width 3 and 6 may straddle two bytes.
unsigned load_bits(const void* base, size_t index, size_t width);

// The integer or float value as stored, before scale and bias.
double load_number(BNNSDataType type, const void* base, size_t index);

// Saturates to the type; value is already rounded to an integer.
void store_integer_as(BNNSDataType type, void* base, size_t index, double value);

}  // namespace bnns
