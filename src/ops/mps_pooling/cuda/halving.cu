// The forward pass of f16 images in 2x2 windows of stride 2 that tile them: no window sees an edge, the slices of an
// image are one tall plane, and output texel i needs the 2x2 texels from 2 (i + i / width * width) on. Nothing is
// shared between windows, so shared memory (mps_pooling/cuda/band.cuh) would be a detour, and planes whose rows are no
// multiple of a warp, as 28 x 28, leave lanes idle in its tiles: here threads take output texels as they lie in memory.
// 28 x 28: 92 % of the limit, from 84; a texel per thread is better than 2, 4 or 8. f32 stays with the tiles: 98 %
// there, 92 here.

#include "src/ops/mps_pooling/cuda/cuda.h"
#include "src/ops/mps_pooling/cuda/shared.cuh"

namespace bnns::mps {
namespace {

constexpr uint32_t kBytes = 8;  // of a texel

struct Halving {
  const char* source;
  char* target;
  int64_t source_image, target_image;  // bytes from image to image
  uint32_t count, width, inverse;      // output texels of an image, of a row; ceil(2^32 / width)
};

template <PoolKind kKind>
__global__ void __launch_bounds__(kBandThreads) halving_kernel(const __grid_constant__ Halving e) {
  const uint32_t i = blockIdx.x * kBandThreads + threadIdx.x;
  const uint32_t above = __umulhi(i, e.inverse) * e.width;  // texels of the rows above
  const char* from = e.source + blockIdx.y * e.source_image + static_cast<int64_t>(i + above) * (2 * kBytes);
  wait_for_stream();
  if (i >= e.count) return;
  uint4 rows[2];  // two texels each
  rows[0] = __ldcs(reinterpret_cast<const uint4*>(from));
  rows[1] = __ldcs(reinterpret_cast<const uint4*>(from + 2 * e.width * kBytes));
  const char* taps = reinterpret_cast<const char*>(rows);
  Texel t;
  if constexpr (kKind == PoolKind::max) t = greatest<PixelType::f16, 2>(taps, 2 * kBytes, false);
  if constexpr (kKind == PoolKind::average) t = averaged<4>(sum_of<PixelType::f16, 2, false>(taps, 2 * kBytes), 4);
  if constexpr (kKind == PoolKind::l2_norm) {
    t = sum_of<PixelType::f16, 2, true>(taps, 2 * kBytes);
#pragma unroll
    for (int l = 0; l < 4; ++l) t.v[l] = sqrtf(t.v[l]);
  }
  store_texel<PixelType::f16>(e.target + blockIdx.y * e.target_image + static_cast<int64_t>(i) * kBytes, t);
}

}  // namespace

int cuda::launch_halving(const PoolEncode& e, void* stream) noexcept {
  const int64_t count = e.width * e.height * (e.channels / 4);
  const BandImage source = band_image(e.source, e.source_image, e.source_channel);
  const BandImage target = band_image(e.target, e.target_image, e.target_channel);
  const auto width = static_cast<uint32_t>(e.width);
  const Halving plan{source.data,
                     target.data,
                     source.image_bytes,
                     target.image_bytes,
                     static_cast<uint32_t>(count),
                     width,
                     static_cast<uint32_t>(((uint64_t{1} << 32) + width - 1) / width)};
  const dim3 grid(static_cast<unsigned>((count + kBandThreads - 1) / kBandThreads), static_cast<unsigned>(e.images));
  const auto kernel = e.kind == PoolKind::max       ? halving_kernel<PoolKind::max>
                      : e.kind == PoolKind::average ? halving_kernel<PoolKind::average>
                                                    : halving_kernel<PoolKind::l2_norm>;
  return static_cast<int>(launch_in_stream(kernel, grid, 0, static_cast<cudaStream_t>(stream), plan));
}

}  // namespace bnns::mps
