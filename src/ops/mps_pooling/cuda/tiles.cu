// Gradients of any window, tile by tile (mps_pooling/cuda/general.cuh).

#include "src/ops/mps_pooling/cuda/cuda.h"
#include "src/ops/mps_pooling/cuda/general.cuh"

namespace bnns::mps {

int cuda::launch_tiles(const PoolEncode& e, void* stream) noexcept {
  const Planes planes(e);
  const Tiling tiling = make_tiling(e, planes);
  const int64_t groups = (planes.count + tiling.planes_per_block - 1) / tiling.planes_per_block;
  const auto blocks = static_cast<unsigned>(groups * tiling.across * tiling.down);
  return with_type_and_kind(e, [&]<PixelType kType, bool kWhole, PoolKind kKind>() {
    backward_tile_kernel<kType, kWhole, kKind>
        <<<blocks, kThreads, tile_bytes(e, tiling), static_cast<cudaStream_t>(stream)>>>(e, planes, tiling);
    return static_cast<int>(cudaGetLastError());
  });
}

}  // namespace bnns::mps
