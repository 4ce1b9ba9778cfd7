// Chooses and launches the band kernel of an encode; one file per pixel type instantiates it, so that they compile side
// by side.
#pragma once

#include "src/ops/mps_pooling/cuda/band.cuh"

namespace bnns::mps {

template <PixelType kType>
cudaError_t launch_band_kernel(const Band& e, const BandLaunch& how, cudaStream_t stream) {
  const dim3 grid(how.grid[0], how.grid[1], how.grid[2]);
  cudaError_t error = cudaSuccess;
  const auto with_window = [&]<BandKind kKind>() {
    const auto go = [&]<int K, int S, int P, bool kBackward>() {
      error = launch_in_stream(band_kernel<kType, kKind, K, S, P, kBackward>, grid, how.shared, stream, e);
    };
    if (!how.backward) {
      how.kernel == 2   ? go.template operator()<2, 2, 0, false>()
      : how.stride == 2 ? go.template operator()<3, 2, 0, false>()
                        : go.template operator()<3, 1, 0, false>();
    } else {
      how.kernel == 2   ? go.template operator()<2, 2, 0, true>()
      : how.stride == 1 ? go.template operator()<3, 1, 0, true>()
      : how.pair == 0   ? go.template operator()<3, 2, 0, true>()
                        : go.template operator()<3, 2, 1, true>();
    }
  };
  switch (how.kind) {
    case BandKind::max:
      with_window.template operator()<BandKind::max>();
      break;
    case BandKind::average:
      with_window.template operator()<BandKind::average>();
      break;
    case BandKind::l2:
      with_window.template operator()<BandKind::l2>();
      break;
    case BandKind::l2_clamped:
      with_window.template operator()<BandKind::l2_clamped>();
      break;
  }
  return error;
}

extern template cudaError_t launch_band_kernel<PixelType::f32>(const Band&, const BandLaunch&, cudaStream_t);
extern template cudaError_t launch_band_kernel<PixelType::f16>(const Band&, const BandLaunch&, cudaStream_t);

}  // namespace bnns::mps
