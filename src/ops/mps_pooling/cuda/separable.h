// The plan of the separable kernels: pooling in any window at a cost that grows with its sides, not with its area.
// mps_pooling/cuda/separable_block.h is what a block does, mps_pooling/cuda/separable.cu launches it.
#pragma once

#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps {

inline constexpr int kSeparableRows = 4;        // rows of windows that a thread reduces together
inline constexpr int kSeparableMostSide = 254;  // columns of a strip and taps of a window's side: they take a byte
inline constexpr int kSeparableMostThreads = 256;

// Division by `by`, of numbers that are not negative and less than 2^32 / by: a multiplication.
struct Divisor {
  int32_t by;
  uint32_t inverse;  // ceil(2^32 / by)

  BNNS_HOST_DEVICE static Divisor of(int32_t n) { return {n, n <= 1 ? 0 : 0xffffffffu / static_cast<uint32_t>(n) + 1}; }
  BNNS_HOST_DEVICE int32_t divide(int32_t n) const {
    if (inverse == 0) return n;
#ifdef __CUDA_ARCH__
    return static_cast<int32_t>(__umulhi(static_cast<uint32_t>(n), inverse));
#else
    return static_cast<int32_t>(uint64_t{static_cast<uint32_t>(n)} * inverse >> 32);
#endif
  }
};

// One axis in 32 bits. Window w has its taps at first + stride w + dilation i.
struct SeparableAxis {
  int32_t first, stride, dilation, kernel, extent, size, windows;
  int32_t source, target, count, gradient;  // clip: first source pixel, first target pixel, pixels; first gradient
  int32_t zero_pad;
  int32_t tile, tiles;  // target pixels (forward: windows) of a strip or chunk; how many there are
  Divisor by_stride;
};

struct Separable {
  SeparableAxis x, y;
  bool clamp;
  int32_t slices, planes_per_block, groups;  // groups of kSeparableRows rows of windows in a step
  int64_t planes;
  int32_t columns, windows, ring;  // of a strip, at most; rows of windows that a block remembers
  // Shared memory, in bytes from its beginning.
  uint32_t taps_at, sent_at, routes_at, parts_at, shared;
  int32_t threads;
  int64_t blocks;
};

// The gradient of maxima of one tap is that of averages of one tap, which need no source.
PoolEncode without_choice(const PoolEncode& encode) noexcept;
// False: not for this encode.
bool plan_separable(const PoolEncode& encode, Separable* plan) noexcept;

}  // namespace bnns::mps
