// Any encode: a thread per target texel (mps_pooling/cuda/general.cuh).

#include "src/ops/mps_pooling/cuda/cuda.h"
#include "src/ops/mps_pooling/cuda/general.cuh"

namespace bnns::mps {

int cuda::launch_plain(const PoolEncode& e, void* stream) noexcept {
  const Planes planes(e);
  const auto blocks = static_cast<unsigned>((e.width * e.height * planes.count + kThreads - 1) / kThreads);
  const auto queue = static_cast<cudaStream_t>(stream);
  return with_type_and_kind(e, [&]<PixelType kType, bool kWhole, PoolKind kKind>() {
    if (e.backward) {
      backward_plain_kernel<kType, kWhole, kKind><<<blocks, kThreads, 0, queue>>>(e, planes);
    } else {
      forward_kernel<kType, kWhole, kKind><<<blocks, kThreads, 0, queue>>>(e, planes);
    }
    return static_cast<int>(cudaGetLastError());
  });
}

int cuda::synchronize(void* stream) noexcept {
  return static_cast<int>(cudaStreamSynchronize(static_cast<cudaStream_t>(stream)));
}

}  // namespace bnns::mps
