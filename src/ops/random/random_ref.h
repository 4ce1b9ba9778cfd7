// The random streams in plain code: AES-128 byte by byte as FIPS-197 writes it, one value at a time, no tables.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bnns/bnns.h"

namespace bnns::ref {

using Block = std::array<uint8_t, 16>;  // byte r + 4 c is row r of column c

// Product in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1.
inline uint8_t gf_multiply(uint8_t a, uint8_t b) {
  unsigned product = 0, x = a;
  for (int bit = 0; bit < 8; ++bit) {
    if (b >> bit & 1) product ^= x;
    x = x << 1 ^ (x & 0x80 ? 0x11b : 0);
  }
  return uint8_t(product);
}

// The affine map of the inverse; the inverse is a^254.
inline uint8_t substitute(uint8_t a) {
  uint8_t inverse = 1;
  for (int i = 0; i < 254; ++i) inverse = gf_multiply(inverse, a);
  unsigned result = 0;
  for (int bit = 0; bit < 8; ++bit) {
    unsigned sum = 0x63u >> bit;
    for (int k : {0, 4, 5, 6, 7}) sum ^= unsigned(inverse) >> (bit + k) % 8;
    result |= (sum & 1) << bit;
  }
  return uint8_t(result);
}

inline const std::array<uint8_t, 256>& sbox() {
  static const std::array<uint8_t, 256> table = [] {
    std::array<uint8_t, 256> t{};
    for (int a = 0; a < 256; ++a) t[size_t(a)] = substitute(uint8_t(a));
    return t;
  }();
  return table;
}

inline Block aes128(const Block& key, const Block& in) {
  std::array<std::array<uint8_t, 4>, 44> w;
  uint8_t constant = 1;
  for (size_t i = 0; i < 44; ++i) {
    for (size_t r = 0; r < 4; ++r) {
      if (i < 4) {
        w[i][r] = key[4 * i + r];
      } else {
        const uint8_t t = i % 4 ? w[i - 1][r] : sbox()[w[i - 1][(r + 1) % 4]];
        w[i][r] = uint8_t(w[i - 4][r] ^ t ^ (i % 4 == 0 && r == 0 ? constant : 0));
      }
    }
    if (i >= 4 && i % 4 == 0) constant = gf_multiply(constant, 2);
  }
  Block s = in;
  for (size_t round = 0; round <= 10; ++round) {
    if (round > 0) {
      Block t;
      for (size_t r = 0; r < 4; ++r) {
        for (size_t c = 0; c < 4; ++c) t[r + 4 * c] = sbox()[s[r + 4 * ((c + r) % 4)]];
      }
      s = t;
      if (round < 10) {
        for (size_t c = 0; c < 4; ++c) {
          for (size_t r = 0; r < 4; ++r) {
            s[r + 4 * c] = uint8_t(gf_multiply(t[r + 4 * c], 2) ^ gf_multiply(t[(r + 1) % 4 + 4 * c], 3) ^
                                   t[(r + 2) % 4 + 4 * c] ^ t[(r + 3) % 4 + 4 * c]);
          }
        }
      }
    }
    for (size_t i = 0; i < 16; ++i) s[i] ^= w[4 * round + i / 4][i % 4];
  }
  return s;
}

// Word i of the stream of a seed.
inline uint32_t word(uint64_t seed, uint64_t i) {
  Block key, counter{};
  for (size_t k = 0; k < 16; ++k) key[k] = uint8_t(seed >> 8 * (k % 8));
  for (size_t k = 0; k < 8; ++k) counter[15 - k] = uint8_t(i / 4 >> 8 * k);
  const Block out = aes128(key, counter);
  const size_t at = 4 * (i % 4);
  return uint32_t(out[at]) | uint32_t(out[at + 1]) << 8 | uint32_t(out[at + 2]) << 16 | uint32_t(out[at + 3]) << 24;
}

// ---- element types -------------------------------------------------------------------------------------------------

struct Format {
  int mantissa_bits, min_exponent;
  double largest;
};
inline Format format(BNNSDataType type) {
  if (type == BNNSDataTypeFloat16) return {10, -14, 65504};
  if (type == BNNSDataTypeBFloat16) return {7, -126, 0x1.fep127};
  return {23, -126, 0x1.fffffep127};
}
// The spacing of the type's values at v.
inline double spacing(BNNSDataType type, double v) {
  const Format f = format(type);
  const int exponent = v == 0 ? f.min_exponent : std::max(std::ilogb(v), f.min_exponent);
  return std::ldexp(1.0, exponent - f.mantissa_bits);
}
inline double round_to(BNNSDataType type, double v) {
  const double step = spacing(type, v);
  return std::nearbyint(v / step) * step;  // ties to even; v is within the finite range
}
inline double next_above(BNNSDataType type, double v) {  // v is a value of the type
  // Just above a negative power of two the spacing is that of the smaller exponent.
  const double up = v + spacing(type, v), half = v + spacing(type, v) / 2;
  return v < 0 && spacing(type, half) < spacing(type, v) ? half : up;
}
inline double next_below(BNNSDataType type, double v) {
  return -next_above(type, -v);
}

// ---- the four distributions ----------------------------------------------------------------------------------------

inline float uniform_float(uint32_t word, BNNSDataType type, float a, float b) {
  const float largest = float(format(type).largest);
  a = std::fmin(std::fmax(a, -largest), largest);
  b = std::fmin(std::fmax(b, -largest), largest);
  float u = float(word) * 0x1p-32f;
  if (u >= 1) u = 1 - 0x1p-24f;
  const float width = b - a;
  const float value = std::isinf(width) ? 2 * std::fma(u, b / 2 - a / 2, a / 2) : std::fma(u, width, a);
  double y = round_to(type, double(value));
  if (a == b) return float(y);
  while (y >= double(b)) y = next_below(type, y);
  while (y < double(a)) y = next_above(type, y);
  return float(y);
}

inline int64_t uniform_int(uint64_t seed, uint64_t position, size_t i, int64_t a, int64_t b) {
  __extension__ typedef unsigned __int128 Wide;
  const uint64_t range = uint64_t(b) - uint64_t(a);
  uint64_t drawn;
  if (range <= uint64_t(1) << 32) {
    drawn = uint64_t(Wide(word(seed, position + i)) * range >> 32);
  } else {
    const uint64_t low = word(seed, position + 2 * i), high = word(seed, position + 2 * i + 1);
    drawn = uint64_t(Wide(high << 32 | low) * range >> 64);
  }
  return int64_t(uint64_t(a) + drawn);
}

// The standard normal quantile of (word + 1/2) / 2^32, by Newton's method on the lower tail.
inline double normal_quantile(uint32_t word) {
  if (word >= 0x80000000u) return -normal_quantile(~word);
  const double p = (double(word) + 0.5) * 0x1p-32;
  double z = p < 0.02 ? -std::sqrt(-2 * std::log(p)) : 0;
  for (int i = 0; i < 60; ++i) {
    const double tail = std::erfc(-z * 0.70710678118654752) / 2;
    const double density = std::exp(-z * z / 2) * 0.3989422804014327;
    const double step = std::log(tail / p) * tail / density;  // on log p, which is nearly a parabola
    z -= step;
    if (std::fabs(step) < 1e-15 * std::fabs(z)) break;
  }
  return z;
}

inline size_t categorical(uint32_t word, const std::vector<double>& p) {
  double total = 0, sum = 0;
  for (double value : p) total += value;
  for (size_t k = 0; k < p.size(); ++k) {
    sum += p[k];
    if (sum > double(word) * 0x1p-32 * total) return k;
  }
  return p.size();
}

}  // namespace bnns::ref
