// How a gradient is cut into tiles (mps_pooling/cuda/general.cuh). Host code, but for the structs.
#pragma once

#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps {

struct Planes {  // of 4 channels: task plane -> image and slice
  int32_t slices;
  int64_t count;
  explicit Planes(const PoolEncode& e) : slices(static_cast<int32_t>((e.channels + 3) / 4)), count(e.images * slices) {}
};

// Tiles of a plane and how many planes share a block.
struct Tiling {
  int32_t width, height, across, down;  // texels of a tile; tiles of a plane
  int32_t planes_per_block;
  int32_t windows;  // of a tile, at most
};

Tiling make_tiling(const PoolEncode& e, const Planes& planes) noexcept;
// Of shared memory, for what the windows of a block's tile send.
size_t tile_bytes(const PoolEncode& e, const Tiling& tiling) noexcept;

}  // namespace bnns::mps
