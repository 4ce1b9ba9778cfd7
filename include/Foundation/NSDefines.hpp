// Integers and the export macro of libbnns_mps.so, shared by the Foundation, Metal and MetalPerformanceShaders headers.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__GNUC__)
#define BNNS_MPS_API __attribute__((visibility("default")))
#else
#define BNNS_MPS_API
#endif

namespace NS {

using Integer = std::intptr_t;
using UInteger = std::uintptr_t;

inline constexpr Integer IntegerMin = INTPTR_MIN;
inline constexpr Integer IntegerMax = INTPTR_MAX;
inline constexpr UInteger UIntegerMax = UINTPTR_MAX;
inline constexpr Integer NotFound = IntegerMax;

struct Range {
  UInteger location = 0, length = 0;
  static Range Make(UInteger location, UInteger length) { return Range{location, length}; }
  bool operator==(const Range& other) const { return location == other.location && length == other.length; }
};

}  // namespace NS
