// How many windows of a row pooling/forward/separable does at once: its buffers have a fixed size.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/ops/pooling/common/geometry.h"

namespace bnns {

constexpr int64_t kSpanFloats = 512;    // pixels under the windows of a chunk
constexpr int64_t kPhaseFloats = 1024;  // the same taken apart
constexpr int64_t kMostStride = 256, kVectorFloats = 16;
constexpr int64_t kMostGap = 40;  // more pixels between windows cost more than one window after the other

// Windows that are done at once; 0 where they do not fit.
inline int64_t separable_chunk(const PoolingAxis& x) {
  if (x.reach() >= kSpanFloats || x.stride > std::min(x.reach() + kMostGap, kMostStride)) return 0;
  int64_t n = (kSpanFloats - x.reach() - 1) / x.stride + 1;
  const int64_t phases = x.stride == 1 ? 0 : x.stride <= 4 ? x.stride : std::min(x.stride, x.kernel);
  if (phases) n = std::min(n, kPhaseFloats / phases - x.reach() / x.stride - 2 * kVectorFloats);
  return n >= x.out ? x.out : std::max<int64_t>(n, 0) / kVectorFloats * kVectorFloats;
}

}  // namespace bnns
