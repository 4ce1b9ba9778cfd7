// Plans the band kernels (mps_pooling/cuda/band.cuh): which encodes they take, and how the clip is cut into tiles. Host
// code: it compiles without nvcc.

#include <algorithm>
#include <initializer_list>

#include "src/ops/mps_pooling/cuda/band.h"
#include "src/ops/mps_pooling/cuda/cuda.h"

namespace bnns::mps {
namespace {

constexpr int64_t kLimit = 1 << 24;
constexpr int32_t kMostColumns = 120;      // units of a tile's row: with their halo, a block's threads
constexpr int64_t kMostShared = 48 << 10;  // bytes a block has without a setting

// The axis in 32 bits; false where coordinates are large or a window lies wholly outside.
bool make_axis(const PoolAxis& a, int64_t size, int64_t windows, int64_t source, int64_t target, int64_t count,
               int64_t gradient, BandAxis* out) {
  const int64_t first = a.first_centre - a.before(), last = first + (windows - 1) * a.stride;
  for (const int64_t v : {size, windows, source, target, count, gradient, a.zero_pad}) {
    if (v < 0 || v > kLimit) return false;
  }
  if (a.dilation != 1 || first <= -a.kernel || last >= size || first > kLimit) return false;
  *out = {};
  out->first = static_cast<int32_t>(first), out->size = static_cast<int32_t>(size);
  out->windows = static_cast<int32_t>(windows), out->source = static_cast<int32_t>(source);
  out->target = static_cast<int32_t>(target), out->count = static_cast<int32_t>(count);
  out->gradient = static_cast<int32_t>(gradient), out->zero_pad = static_cast<int32_t>(a.zero_pad);
  return true;
}

// Quads of a gradient's clip from the one that holds its first pixel on, with quads that begin on tap `pair`.
void make_quads(BandAxis& a, int stride, int pair) {
  if (stride == 1) {
    a.origin = a.source - (a.target & 1), a.base = a.origin - a.first;
  } else {
    a.base = (a.source - a.first - pair) >> 1, a.origin = a.first + 2 * a.base + pair;
  }
  a.units = (a.source + a.count - a.origin + 1) / 2;
}

void make_tiles(BandAxis& a, int32_t most) {
  a.tile = std::max(1, std::min(a.units, most));
  a.tiles = (a.units + a.tile - 1) / a.tile;
  a.tile = (a.units + a.tiles - 1) / a.tiles;
}

bool overhangs(const BandAxis& a, int kernel, int stride) {
  return a.first < 0 || a.first + (a.windows - 1) * stride + kernel > a.size;
}

bool is_aligned(const ImageView& v, size_t bytes) {
  return reinterpret_cast<uintptr_t>(v.data) % bytes == 0;
}

BandWalk walk_over(int64_t columns, int64_t rows) {
  BandWalk w;
  w.columns = static_cast<uint32_t>(columns), w.rows = static_cast<uint32_t>(rows);
  while ((1u << w.shift) < w.columns && (1 << w.shift) < kBandThreads) ++w.shift;
  return w;
}

// Tiles of about `units` quads or windows; returns the bytes of shared memory.
int64_t cut(Band& e, const BandLaunch& how, int64_t bytes, int32_t units) {
  make_tiles(e.x, kMostColumns);
  make_tiles(e.y, std::max(1, units / e.x.tile));
  // Whole steps of the block's walk over the rows.
  const int32_t step = kBandThreads >> walk_over(e.x.tile, 1).shift;
  if (e.y.tiles > 1) {
    e.y.tile = (e.y.tile + step - 1) / step * step;
    e.y.tiles = (e.y.units + e.y.tile - 1) / e.y.tile;
  }
  e.planes_per_block = 1;
  if (e.x.tiles * e.y.tiles == 1) {
    e.planes_per_block = static_cast<uint32_t>(std::clamp<int64_t>(units / (e.x.tile * e.y.tile), 1, e.slices));
  }
  const auto windows_of = [&](const BandAxis& a, int pair) {
    if (!how.backward) return a.tile;
    const int before = (how.kernel - 1 - pair) / how.stride, after = (pair + 1) / how.stride;  // BandReach
    return (how.stride == 1 ? 2 * a.tile - 1 : a.tile) + before + after;
  };
  const int64_t wx = windows_of(e.x, how.pair), wy = windows_of(e.y, 0);
  int64_t px = how.stride * (wx - 1) + how.kernel;
  const int64_t py = how.stride * (wy - 1) + how.kernel;
  if (bytes == 8) px = (px + 2) / 2 * 2;  // from an even pixel on
  e.windows = walk_over(wx, wy), e.quads = walk_over(e.x.tile, e.y.tile);
  e.texels = walk_over(2 * e.x.tile, 2 * e.y.tile);
  e.pixels = walk_over(e.fetch_pairs ? px / 2 : px, py);
  e.pitch = static_cast<uint32_t>(px * bytes), e.plane_pitch = static_cast<uint32_t>(py * px * bytes);
  const int64_t windows = how.backward ? e.planes_per_block * wx * wy : 0;
  // Source texels; an f32 gradient is gathered in their place.
  const bool pixels = !(how.backward && how.kind == BandKind::average && bytes == 8);
  const int64_t hits = how.kind == BandKind::max ? (windows + 1) / 2 * 2 * 8 : 0;
  e.hits_at = static_cast<uint32_t>(windows * 16), e.source_at = static_cast<uint32_t>(windows * 16 + hits);
  return e.source_at + (pixels ? e.planes_per_block * static_cast<int64_t>(e.plane_pitch) : 0);
}

// 2x2 windows that fill their plane do not see where it ends: the slices of an image become one tall plane, so that
// small planes make as good tiles as large ones.
void join_slices(Band& e, const PoolEncode& b, bool backward) {
  const int64_t windows = e.y.windows, size = e.y.size, rows = size * e.slices;
  const int64_t small = backward ? b.gradient.height : b.target.height;
  const bool fills = b.y.kernel == 2 && b.y.stride == 2 && e.y.first == 0 && size == 2 * windows && small == windows &&
                     e.y.target == 0 && e.y.source == 0 && e.y.gradient == 0 &&
                     (!backward || (e.y.count == size && b.target.height == size));
  if (!fills || rows > kLimit || rows * b.source.width * 16 >= (int64_t{1} << 31)) return;
  const auto slices = static_cast<int32_t>(e.slices);
  e.y.size *= slices, e.y.windows *= slices, e.y.count *= slices;
  e.slices = 1;
}

}  // namespace

bool plan_band(const PoolEncode& b, Band* plan, BandLaunch* launch) noexcept {
  const bool backward = b.backward;
  const int64_t k = b.x.kernel, s = b.x.stride;
  if (b.y.kernel != k || b.y.stride != s || !((k == 2 && s == 2) || (k == 3 && (s == 1 || s == 2)))) return false;
  const PixelType type = b.source.type;
  const size_t bytes = 4 * bytes_of(type);
  const bool same = type == b.target.type && (type == PixelType::f32 || type == PixelType::f16) &&
                    b.source.lanes == 4 && b.target.lanes == 4 && b.channels % 4 == 0 && is_aligned(b.source, bytes) &&
                    is_aligned(b.target, bytes);
  if (!same || (backward && (b.gradient.type != type || b.gradient.lanes != 4 || !is_aligned(b.gradient, bytes)))) {
    return false;
  }
  for (const ImageView* v : {&b.source, &b.target, &b.gradient}) {
    if (v->width * v->height * 16 >= (int64_t{1} << 31)) return false;
  }
  Band e{};
  const bool fits =
      backward
          ? make_axis(b.x, b.source.width, b.gradient_width, b.source_x, b.target_x, b.width, b.gradient_x, &e.x) &&
                make_axis(b.y, b.source.height, b.gradient_height, b.source_y, b.target_y, b.height, b.gradient_y, &e.y)
          : make_axis(b.x, b.source.width, b.width, 0, b.target_x, b.width, 0, &e.x) &&
                make_axis(b.y, b.source.height, b.height, 0, b.target_y, b.height, 0, &e.y);
  if (!fits) return false;
  const int64_t slices = b.channels / 4;
  if (slices > kMostGrid || b.images > kMostGrid) return false;
  e.clamp = b.edge == PoolEdge::clamp;
  e.target_width = static_cast<int32_t>(b.target.width), e.gradient_width = static_cast<int32_t>(b.gradient.width);
  e.slices = static_cast<uint32_t>(slices);
  e.source = band_image(b.source, b.source_image, b.source_channel);
  e.target = band_image(b.target, b.target_image, b.target_channel);
  e.gradient = band_image(b.gradient, b.gradient_image, b.gradient_channel);
  join_slices(e, b, backward);
  BandLaunch how{};
  how.kernel = static_cast<int>(k), how.stride = static_cast<int>(s), how.backward = backward;
  const bool clamped = e.clamp && (overhangs(e.x, how.kernel, how.stride) || overhangs(e.y, how.kernel, how.stride));
  how.kind = b.kind == PoolKind::max       ? BandKind::max
             : b.kind == PoolKind::average ? BandKind::average
             : clamped                     ? BandKind::l2_clamped
                                           : BandKind::l2;
  if (backward) {
    const int odd = (e.x.target - e.x.source + e.x.first) & 1;
    how.pair = k == 3 && s == 2 ? odd : 0;
    make_quads(e.x, how.stride, how.pair), make_quads(e.y, how.stride, 0);
    e.paired = b.target.width % 2 == 0 && is_aligned(b.target, 16) && (s == 1 || (odd ^ how.pair) == 0);
  } else {
    e.x.units = e.x.count, e.y.units = e.y.count;
  }
  e.fetch_pairs =
      type == PixelType::f16 && b.source.width % 2 == 0 && is_aligned(b.source, 16) && how.kind != BandKind::l2_clamped;
  // A few units per thread; six blocks and more per multiprocessor.
  int32_t units = type == PixelType::f32 ? 256 : backward ? 448 : k == 2 ? 336 : 896;
  if (s == 1) units /= 2;
  int64_t shared = cut(e, how, static_cast<int64_t>(bytes), units);
  while (shared > kMostShared && units > 1) shared = cut(e, how, static_cast<int64_t>(bytes), units /= 2);
  const int64_t tiles = int64_t{e.x.tiles} * e.y.tiles;
  if (shared > kMostShared || tiles >= (int64_t{1} << 31)) return false;
  how.shared = static_cast<uint32_t>(shared);
  how.grid[0] = static_cast<uint32_t>(tiles);
  how.grid[1] = (e.slices + e.planes_per_block - 1) / e.planes_per_block;
  how.grid[2] = static_cast<uint32_t>(b.images);
  *plan = e, *launch = how;
  return true;
}

bool cuda::accepts_band(const PoolEncode& e) noexcept {
  Band plan;
  BandLaunch launch;
  return plan_band(e, &plan, &launch);
}

}  // namespace bnns::mps
