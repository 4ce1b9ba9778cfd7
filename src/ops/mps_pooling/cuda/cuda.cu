// The MPS pooling family on NVIDIA GPUs: chooses a kernel. The common windows are in mps_pooling/cuda/band.cu (2x2 of
// f16 in mps_pooling/cuda/halving.cu), global pooling in mps_pooling/cuda/global.cu, and what remains (other windows,
// dilation, 1 or 2 channels, unorm images) in mps_pooling/cuda/general.cuh.

#include <algorithm>

#include "src/ops/mps_pooling/cuda/general.cuh"

namespace bnns::mps {
namespace {

bool is_whole(const ImageView& v) {
  return v.lanes == 4;
}

template <class F>
int with_type(PixelType type, bool whole, F&& launch) {
  if (whole && type == PixelType::f32) return launch.template operator()<PixelType::f32, true>();
  if (whole && type == PixelType::f16) return launch.template operator()<PixelType::f16, true>();
  return launch.template operator()<PixelType::f32, false>();
}

template <class F>
int with_kind(PoolKind kind, F&& launch) {
  if (kind == PoolKind::max) return launch.template operator()<PoolKind::max>();
  if (kind == PoolKind::average) return launch.template operator()<PoolKind::average>();
  return launch.template operator()<PoolKind::l2_norm>();
}

unsigned blocks_for(int64_t threads) {
  return static_cast<unsigned>((threads + kThreads - 1) / kThreads);
}

// Windows that touch the pixels [p0, p1) of an axis.
int64_t windows_between(int64_t p0, int64_t p1, const PoolAxis& a, int64_t count, int64_t size, PoolEdge edge) {
  p1 = std::min(p1, size);
  if (p0 >= p1) return 0;
  const int64_t first = windows_of(p0, a, a.extent(), count, size, edge).first;
  return std::max<int64_t>(0, windows_of(p1 - 1, a, a.extent(), count, size, edge).last - first + 1);
}

Tiling make_tiling(const PoolBackward& e, const Planes& planes) {
  Tiling t;
  t.width = static_cast<int32_t>(std::min<int64_t>(e.width, kTile));
  t.height = static_cast<int32_t>(std::min<int64_t>(e.height, kTile));
  t.across = static_cast<int32_t>((e.width + t.width - 1) / t.width);
  t.down = static_cast<int32_t>((e.height + t.height - 1) / t.height);
  const PoolEdge edge = e.kind == PoolKind::average ? PoolEdge::zero : e.edge;
  int64_t most_y = 0, most_x = 0;
  for (int32_t i = 0; i < t.down; ++i) {
    const int64_t y = e.source_y + static_cast<int64_t>(i) * t.height;
    most_y = std::max(most_y, windows_between(y, y + t.height, e.y, e.gradient_height, e.source.height, edge));
  }
  for (int32_t i = 0; i < t.across; ++i) {
    const int64_t x = e.source_x + static_cast<int64_t>(i) * t.width;
    most_x = std::max(most_x, windows_between(x, x + t.width, e.x, e.gradient_width, e.source.width, edge));
  }
  t.windows = static_cast<int32_t>(std::min<int64_t>(most_y * most_x, 1 << 20));
  const int32_t texels = t.width * t.height;
  t.planes_per_block = t.across * t.down == 1 && texels < kTile * kTile
                           ? static_cast<int32_t>(std::min<int64_t>(planes.count, kTile * kTile / texels))
                           : 1;
  return t;
}

}  // namespace

int pool_forward_cuda(const PoolForward& e, void* stream) noexcept {
  cudaError_t error = cudaSuccess;
  const auto queue = static_cast<cudaStream_t>(stream);
  if (pool_forward_global(e, queue, &error) || pool_forward_halving(e, queue, &error) ||
      pool_forward_band(e, queue, &error)) {
    return static_cast<int>(error);
  }
  const Planes planes(e);
  const unsigned blocks = blocks_for(e.width * e.height * planes.count);
  const bool whole = is_whole(e.source) && is_whole(e.target) && e.channels % 4 == 0 && e.source.type == e.target.type;
  return with_type(e.source.type, whole, [&]<PixelType kType, bool kWhole>() {
    return with_kind(e.kind, [&]<PoolKind kKind>() {
      forward_kernel<kType, kWhole, kKind><<<blocks, kThreads, 0, queue>>>(e, planes);
      return static_cast<int>(cudaGetLastError());
    });
  });
}

int pool_backward_cuda(const PoolBackward& e, void* stream) noexcept {
  const auto queue = static_cast<cudaStream_t>(stream);
  cudaError_t error = cudaSuccess;
  if (pool_backward_global(e, queue, &error) || pool_backward_band(e, queue, &error)) return static_cast<int>(error);
  const Planes planes(e);
  const bool whole = is_whole(e.source) && is_whole(e.target) && is_whole(e.gradient) && e.channels % 4 == 0 &&
                     e.source.type == e.target.type && e.source.type == e.gradient.type;
  return with_type(e.source.type, whole, [&]<PixelType kType, bool kWhole>() {
    return with_kind(e.kind, [&]<PoolKind kKind>() {
      const Tiling tiling = make_tiling(e, planes);
      const size_t shared = static_cast<size_t>(tiling.windows) * static_cast<size_t>(tiling.planes_per_block) *
                            (kKind == PoolKind::max ? sizeof(Texel) + sizeof(TexelIndex) : sizeof(Texel));
      if (shared > 48 * 1024) {
        backward_plain_kernel<kType, kWhole, kKind>
            <<<blocks_for(e.width * e.height * planes.count), kThreads, 0, queue>>>(e, planes);
        return static_cast<int>(cudaGetLastError());
      }
      const int64_t groups = (planes.count + tiling.planes_per_block - 1) / tiling.planes_per_block;
      const auto blocks = static_cast<unsigned>(groups * tiling.across * tiling.down);
      backward_tile_kernel<kType, kWhole, kKind><<<blocks, kThreads, shared, queue>>>(e, planes, tiling);
      return static_cast<int>(cudaGetLastError());
    });
  });
}

}  // namespace bnns::mps
