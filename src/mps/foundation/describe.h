// Numbers of a kernel as text, for description().
#pragma once

#include <string>

#include "MetalPerformanceShaders/MPSTypes.hpp"

namespace bnns::mps {

// The largest number stands for everything there is.
inline std::string text_of(NS::UInteger count) {
  return count == NS::UIntegerMax ? "all" : std::to_string(count);
}
inline std::string text_of(NS::UInteger x, NS::UInteger y) {
  return text_of(x) + " x " + text_of(y);
}
inline std::string text_of(const MTL::Size& size) {
  return text_of(size.width, size.height) + " x " + text_of(size.depth);
}
inline std::string text_of(const MPS::Offset& o) {
  return "(" + std::to_string(o.x) + ", " + std::to_string(o.y) + ", " + std::to_string(o.z) + ")";
}

}  // namespace bnns::mps
