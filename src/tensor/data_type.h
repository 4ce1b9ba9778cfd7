// Facts about BNNSDataType: class bit | width in bits; BFloat16 also sets 0x8000.
#pragma once

#include <cstddef>

#include "bnns/bnns.h"

namespace bnns {

inline constexpr unsigned kTypeWidthMask = 0x7fff;

inline size_t type_bits(BNNSDataType type) {
  return static_cast<unsigned>(type) & kTypeWidthMask;
}
// Bytes of one element; 0 for types narrower than a byte.
inline size_t type_bytes(BNNSDataType type) {
  return type_bits(type) / 8;
}

bool is_known_type(BNNSDataType type) noexcept;  // a storable type of this library
inline bool is_float(BNNSDataType type) {
  return type == BNNSDataTypeFloat32 || type == BNNSDataTypeFloat16 || type == BNNSDataTypeBFloat16;
}
inline bool is_indexed(BNNSDataType type) {
  return (static_cast<unsigned>(type) & BNNSDataTypeIndexedBit) != 0;
}
inline bool is_integer(BNNSDataType type) {
  return (static_cast<unsigned>(type) & (BNNSDataTypeIntBit | BNNSDataTypeUIntBit)) != 0;
}
inline bool is_signed(BNNSDataType type) {
  return (static_cast<unsigned>(type) & BNNSDataTypeIntBit) != 0;
}

const char* type_name(BNNSDataType type) noexcept;  // "f32", "i8", "indexed4", ...; "unknown"

}  // namespace bnns
