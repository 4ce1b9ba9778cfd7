// Launches the band kernels (mps_pooling/cuda/band.cuh) that mps_pooling/cuda/band_plan.cc plans.

#include "src/ops/mps_pooling/cuda/band_launch.cuh"
#include "src/ops/mps_pooling/cuda/cuda.h"

namespace bnns::mps {

int cuda::launch_band(const PoolEncode& e, void* stream) noexcept {
  Band plan;
  BandLaunch how;
  plan_band(e, &plan, &how);
  const auto queue = static_cast<cudaStream_t>(stream);
  return static_cast<int>(e.source.type == PixelType::f32 ? launch_band_kernel<PixelType::f32>(plan, how, queue)
                                                          : launch_band_kernel<PixelType::f16>(plan, how, queue));
}

}  // namespace bnns::mps
