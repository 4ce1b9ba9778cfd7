// From an integer data type to its C++ type.
#pragma once

#include <cstdint>

#include "bnns/bnns.h"

namespace bnns {

// f(T{}) with the C++ type of a whole-byte integer type; nothing is called for other types.
template <class F>
void with_integer(BNNSDataType type, F&& f) {
  switch (type) {
    case BNNSDataTypeInt8:
      return f(int8_t{});
    case BNNSDataTypeInt16:
      return f(int16_t{});
    case BNNSDataTypeInt32:
      return f(int32_t{});
    case BNNSDataTypeInt64:
      return f(int64_t{});
    case BNNSDataTypeUInt8:
      return f(uint8_t{});
    case BNNSDataTypeUInt16:
      return f(uint16_t{});
    case BNNSDataTypeUInt32:
      return f(uint32_t{});
    case BNNSDataTypeUInt64:
      return f(uint64_t{});
    default:
      return;
  }
}

}  // namespace bnns
