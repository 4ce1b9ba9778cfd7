// The band kernels of f32 images.

#include "src/ops/mps_pooling/cuda/band_launch.cuh"

namespace bnns::mps {

template cudaError_t launch_band_kernel<PixelType::f32>(const Band&, const BandLaunch&, cudaStream_t);

}  // namespace bnns::mps
