// The element types of the safetensors format, and which of them BNNS has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bnns/bnns.h"

namespace bnns::io {

struct ElementType {
  const char* name;  // in the file
  size_t bytes;
  BNNSDataType data_type;  // 0: BNNS has none
};

// In the order of the format's own list: a writer puts the last ones first, so that wide elements are aligned.
inline constexpr BNNSDataType kNoDataType = static_cast<BNNSDataType>(0);
inline constexpr ElementType kElementTypes[] = {
    {"BOOL", 1, BNNSDataTypeBoolean}, {"U8", 1, BNNSDataTypeUInt8},    {"I8", 1, BNNSDataTypeInt8},
    {"F8_E5M2", 1, kNoDataType},      {"F8_E4M3", 1, kNoDataType},     {"I16", 2, BNNSDataTypeInt16},
    {"U16", 2, BNNSDataTypeUInt16},   {"F16", 2, BNNSDataTypeFloat16}, {"BF16", 2, BNNSDataTypeBFloat16},
    {"I32", 4, BNNSDataTypeInt32},    {"U32", 4, BNNSDataTypeUInt32},  {"F32", 4, BNNSDataTypeFloat32},
    {"C64", 8, kNoDataType},          {"F64", 8, kNoDataType},         {"I64", 8, BNNSDataTypeInt64},
    {"U64", 8, BNNSDataTypeUInt64},
};
inline constexpr size_t kElementTypeCount = sizeof kElementTypes / sizeof kElementTypes[0];

inline constexpr char kTypesOfBnns[] = "F32, F16, BF16, I8 to I64, U8 to U64 or BOOL";

}  // namespace bnns::io
