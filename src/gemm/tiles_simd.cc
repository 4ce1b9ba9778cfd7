// Blocks of C by the micro-kernel (tile-inl.h): which of its forms each tile takes, and what is prefetched meanwhile.

#include <hwy/cache_control.h>

#include "src/gemm/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/gemm/tiles_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
// clang-format on

#include "src/gemm/tile-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr ptrdiff_t kRowsAhead = 8;

// One full panel against all row tiles, while the next panel is brought into the cache.
template <bool kDepthContiguous>
void PanelBlock(const GemmBlock& g, TileArgs t) {
  const size_t tiles = (g.rows + g.tile_rows - 1) / g.tile_rows;
  const char* const data = static_cast<const char*>(g.ahead.data);
  const size_t lines = HWY_MAX(size_t{1}, (g.ahead.bytes + 63) / 64);
  const bool copies = g.b_copy != nullptr && tiles > 1;
  const bool by_rows = !g.b_copy || g.ahead_by_rows;
  const size_t first = copies ? 1 : 0;                                        // tile that prefetches what comes next
  const size_t share = (g.ahead.rows + tiles - first - 1) / (tiles - first);  // pieces per tile
  for (size_t i = 0, tile = 0; i < g.rows; i += g.tile_rows, ++tile) {
    const size_t rows = HWY_MIN(g.tile_rows, g.rows - i);
    t.a = g.a + static_cast<ptrdiff_t>(tile) * g.a_tile_stride;
    t.c = g.c + i * g.c_stride;
    bool asks = data != nullptr;
    if (copies && tile == 0) {
      // The panel itself: where rows are a large power of two apart, some of it has been pushed out again.
      t.prefetch = reinterpret_cast<const char*>(t.b + kRowsAhead * t.b_stride);
      t.chunk = t.depth, t.chunk_step = 0, t.step = t.b_stride * static_cast<ptrdiff_t>(sizeof(float)), t.second = 64;
    } else if (by_rows) {
      // A piece per chunk, and a second piece with it where one per chunk is not enough.
      const size_t begin = (tile - first) * share;
      asks = asks && begin < g.ahead.rows;
      t.prefetch = data + static_cast<ptrdiff_t>(begin) * g.ahead.row_bytes;
      t.chunk = lines, t.chunk_step = g.ahead.row_bytes, t.step = 64;
      t.second = share * lines <= t.depth ? 0 : static_cast<ptrdiff_t>((share + 1) / 2) * g.ahead.row_bytes;
    } else {
      // Row k of the next panel with step k: the first line of all rows with the second tile, the others (two if rows
      // are not aligned) with the third.
      asks = asks && tile <= 2;
      t.prefetch = data + (tile == 2 ? 64 : 0);
      t.chunk = t.depth, t.chunk_step = 0, t.step = g.ahead.row_bytes;
      t.second = tile == 2 ? 63 : tiles > 2 ? 0 : static_cast<ptrdiff_t>(t.columns * sizeof(float) - 1);
    }
    if (copies && tile == 0) {
      t.copy = g.b_copy;
      FindTile<D, 2, kDepthContiguous, false, Extra::copy>(rows)(t);
      t.b = g.b_copy;
      t.b_stride = static_cast<ptrdiff_t>(t.columns);
    } else if (asks) {
      FindTile<D, 2, kDepthContiguous, false, Extra::prefetch>(rows)(t);
    } else {
      t.chunk = t.depth;
      FindTile<D, 2, kDepthContiguous, false, Extra::none>(rows)(t);
    }
  }
}

void Block(const GemmBlock& g) {
  const D d;
  const size_t lanes = hn::Lanes(d), panel = 2 * lanes;
  TileArgs t{};
  t.depth = g.depth, t.a_stride = g.a_stride, t.b = g.b, t.b_stride = g.b_stride;
  t.c_stride = g.c_stride, t.columns = panel, t.accumulate = g.accumulate, t.stream = g.stream;
  const bool c_far = g.c_far && !g.stream, c_ahead = c_far && g.depth >= 2 * kTileRows && g.columns > panel;
  t.fetch_c = c_far;
  if (g.columns == panel && (g.b_copy || g.ahead.data)) {
    g.a_depth_contiguous ? PanelBlock<true>(g, t) : PanelBlock<false>(g, t);
    if (g.stream) hwy::FlushStream();
    return;
  }
  for (size_t i = 0; i < g.rows; i += g.tile_rows) {
    const size_t rows = HWY_MIN(g.tile_rows, g.rows - i);
    t.a = g.a + static_cast<ptrdiff_t>(i / g.tile_rows) * g.a_tile_stride;
    t.b = g.b, t.b_stride = g.b_stride;
    t.c = g.c + i * g.c_stride;
    t.columns = panel;
    t.chunk = c_ahead ? g.depth / kTileRows : g.depth;
    t.fetch_c = c_far;
    const float* const next_rows = t.c + rows * g.c_stride;
    const auto find = g.a_depth_contiguous ? &FindPlainTile<true> : &FindPlainTile<false>;
    size_t left = g.columns;
    if (left >= panel) {
      const TileFunction run = find(rows, panel);
      for (; left >= panel; left -= panel) {
        if (c_ahead) t.next_c = left > panel ? t.c + panel : next_rows;
        run(t);
        t.fetch_c = c_far && !c_ahead;
        t.b += g.b_panel_stride;
        t.c += panel;
      }
    }
    if (left != 0) {
      t.columns = left;
      if (c_ahead) t.next_c = next_rows;
      if (g.b_tail) t.b = g.b_tail, t.b_stride = static_cast<ptrdiff_t>(panel);
      find(rows, left)(t);
    }
  }
  if (g.stream) hwy::FlushStream();
}

TileKernels Kernels() {
  return {kTileRows, 2 * hn::Lanes(D()), kHasMasks, &Block};
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

TileKernels tile_kernels(Isa isa) noexcept {
  return BNNS_DISPATCH_FOR(isa, Kernels)();
}

}  // namespace bnns
#endif
