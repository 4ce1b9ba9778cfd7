// The CUDA device's table. Host code: it compiles without nvcc, with launches that are nullptr.
#include "src/ops/mps_pooling/cuda/cuda.h"
#include "src/ops/mps_pooling/implementations.h"

namespace bnns::mps {

#if BNNS_MPS_CUDA
#define BNNS_LAUNCH(name) cuda::name
#else
#define BNNS_LAUNCH(name) nullptr
#endif

const CudaImplementation kOnCuda[kCudaImplementations] = {
    {"mps_pooling/cuda/global", "one window, the whole plane of at most 128 pixels; f32 or f16, whole slices",
     cuda::accepts_global, BNNS_LAUNCH(launch_global)},
    {"mps_pooling/cuda/halving", "forward, f16: 2x2 stride 2 windows that tile the image", cuda::accepts_halving,
     BNNS_LAUNCH(launch_halving)},
    {"mps_pooling/cuda/band",
     "2x2 stride 2, 3x3 stride 1 or 2 of f32 or f16, whole slices; every window meets the image", cuda::accepts_band,
     BNNS_LAUNCH(launch_band)},
    {"mps_pooling/cuda/separable",
     "windows of at most 254 taps on a side; sums without dilation, but not those of band's windows",
     cuda::accepts_separable, BNNS_LAUNCH(launch_separable)},
    {"mps_pooling/cuda/plain", "anything", accepts_any, BNNS_LAUNCH(launch_plain)},
};

#undef BNNS_LAUNCH

#if BNNS_MPS_CUDA
int pool_cuda(const PoolEncode& e, void* stream) noexcept {
  return choose(kOnCuda, e).run(e, stream);
}
#endif

}  // namespace bnns::mps
