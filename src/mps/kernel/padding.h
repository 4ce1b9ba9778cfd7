// The arithmetic of a padding policy, one axis at a time.
#pragma once

#include <cstdint>

#include "MetalPerformanceShaders/MPSTypes.hpp"

namespace bnns::mps {

struct PaddedAxis {
  int64_t size = 0, offset = 0;
};

// extent: of the window, dilation included. size may come out below 1: no window fits. Throws for unknown methods.
PaddedAxis pad_axis(MPS::NNPaddingMethod method, bool vertical, int64_t source, int64_t extent, int64_t stride);

}  // namespace bnns::mps
