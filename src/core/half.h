// One value at a time between float and the 16-bit formats, by integer arithmetic.
//
//   half (IEEE binary16)   1 sign, 5 exponent, 10 mantissa bits
//   bfloat16               the upper 16 bits of a float
//
// Rounding is to nearest, ties to even; overflow gives inf; subnormals are exact; NaN stays NaN: its sign and upper
// payload bits are kept and it is made quiet (bfloat16 to float copies the bits as they are). Independent of the
// vector code in src/simd/convert-inl.h, which gives the same bits, and of the floating-point environment.
#pragma once

#include <bit>
#include <cstdint>

namespace bnns {

constexpr float half_to_float(uint16_t half) noexcept {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  uint32_t mantissa = half & 0x3FFu;
  uint32_t bits;
  if (exponent == 0x1F) {
    bits = 0x7F800000u | mantissa << 13 | (mantissa != 0 ? 0x400000u : 0u);
  } else if (exponent != 0) {
    bits = (exponent + 127 - 15) << 23 | mantissa << 13;
  } else if (mantissa == 0) {
    bits = 0;
  } else {
    // mantissa 2^-24: shift the leading one to the implicit position, lowering the exponent as we go.
    uint32_t biased = 127 - 14;
    for (; (mantissa & 0x400u) == 0; mantissa <<= 1) --biased;
    bits = biased << 23 | (mantissa & 0x3FFu) << 13;
  }
  return std::bit_cast<float>(sign | bits);
}

constexpr uint16_t float_to_half(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent > 15) return static_cast<uint16_t>(sign | 0x7C00u);
  if (exponent < -25) return static_cast<uint16_t>(sign);  // below half of the smallest subnormal, 2^-24
  // 24-bit significand, to be shifted down to 11 bits, or fewer for a subnormal result.
  const uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
  const int shift = exponent >= -14 ? 13 : 13 + (-14 - exponent);
  const uint32_t kept = significand >> shift;
  const uint32_t rest = significand & ((1u << shift) - 1);
  const uint32_t tie = 1u << (shift - 1);
  const uint32_t rounded = kept + (rest > tie || (rest == tie && (kept & 1u)) ? 1u : 0u);
  // A normal result brings its implicit one along; a carry moves into the exponent, up to inf, as it should.
  const uint32_t base = exponent >= -14 ? static_cast<uint32_t>(exponent + 14) << 10 : 0u;
  return static_cast<uint16_t>(sign | (base + rounded));
}

constexpr float bfloat16_to_float(uint16_t value) noexcept {
  return std::bit_cast<float>(static_cast<uint32_t>(value) << 16);
}

constexpr uint16_t float_to_bfloat16(float value) noexcept {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t kept = bits >> 16;
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(kept | 0x40u);
  const uint32_t rest = bits & 0xFFFFu;
  return static_cast<uint16_t>(kept + (rest > 0x8000u || (rest == 0x8000u && (kept & 1u)) ? 1u : 0u));
}

}  // namespace bnns
