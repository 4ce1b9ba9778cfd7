// The reference of quantization: one element at a time, in double, with the roundings that the operator states.
//
// The f32 result of one operation is its double result rounded to float: 53 bits are more than 2 * 24 + 2, so rounding
// twice does no harm.
#pragma once

#include <cmath>
#include <limits>

#include "bnns/bnns.h"
#include "src/core/half.h"

namespace bnns::ref {

// x, scale and bias are numbers of any type; they enter as f32.
inline double quantize(double x, double scale, double bias) {
  const float product = float(double(float(scale)) * double(float(x)));
  return double(float(double(product) + double(float(bias))));
}
inline double dequantize(double x, double scale, double bias) {
  const float difference = float(double(float(x)) - double(float(bias)));
  return double(float(double(difference) / double(float(scale))));
}

// The value that an output element of a type holds.
inline double stored(BNNSDataType type, double value) {
  const unsigned kind = unsigned(type), bits = kind & 0x7fff;
  if (type == BNNSDataTypeFloat32) return value;
  if (type == BNNSDataTypeFloat16) return double(half_to_float(float_to_half(float(value))));
  if (type == BNNSDataTypeBFloat16) return double(bfloat16_to_float(float_to_bfloat16(float(value))));
  if (std::isnan(value)) return 0;
  const bool is_signed = (kind & BNNSDataTypeIntBit) != 0;
  const double low = is_signed ? -std::ldexp(1, int(bits) - 1) : 0;
  const double high = std::ldexp(1, int(bits) - int(is_signed)) - 1;  // 2^63 and 2^64 in double for 64 bits
  // Nearest, ties to even, spelled out.
  double whole = std::floor(value);
  const double rest = value - whole;
  if (rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) != 0)) whole += 1;
  return whole < low ? low : whole > high ? high : whole;
}

}  // namespace bnns::ref
