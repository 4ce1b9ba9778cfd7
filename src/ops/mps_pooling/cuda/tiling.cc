// Tiles of the general gradient (mps_pooling/cuda/general.cuh): those that fit in a block's shared memory are accepted.

#include "src/ops/mps_pooling/cuda/tiling.h"

#include <algorithm>

#include "src/ops/mps_pooling/cuda/cuda.h"
#include "src/ops/mps_pooling/window.h"

namespace bnns::mps {
namespace {

constexpr int kTile = 32;                 // target texels on a side, at most
constexpr size_t kMostShared = 48 << 10;  // bytes a block has without a setting

// Windows that touch the pixels [p0, p1) of an axis.
int64_t windows_between(int64_t p0, int64_t p1, const PoolAxis& a, int64_t count, int64_t size, PoolEdge edge) {
  p1 = std::min(p1, size);
  if (p0 >= p1) return 0;
  const int64_t first = windows_of(p0, a, a.extent(), count, size, edge).first;
  return std::max<int64_t>(0, windows_of(p1 - 1, a, a.extent(), count, size, edge).last - first + 1);
}

}  // namespace

Tiling make_tiling(const PoolEncode& e, const Planes& planes) noexcept {
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

size_t tile_bytes(const PoolEncode& e, const Tiling& tiling) noexcept {
  return static_cast<size_t>(tiling.windows) * static_cast<size_t>(tiling.planes_per_block) *
         (e.kind == PoolKind::max ? sizeof(Texel) + sizeof(TexelIndex) : sizeof(Texel));
}

bool cuda::accepts_tiles(const PoolEncode& e) noexcept {
  return e.backward && tile_bytes(e, make_tiling(e, Planes(e))) <= kMostShared;
}

}  // namespace bnns::mps
