// Filling in a GemmBlock of the GEMM core, for the operands that the maps have.
#pragma once

#include <cstddef>

#include "src/core/checked.h"
#include "src/gemm/kernels.h"

namespace bnns {

// A whose rows are contiguous in depth, `stride` floats apart.
inline void set_a_rows(GemmBlock* g, size_t tile_rows, ptrdiff_t stride) {
  g->tile_rows = tile_rows, g->a_depth_contiguous = true;
  g->a_stride = stride, g->a_tile_stride = static_cast<ptrdiff_t>(tile_rows) * stride;
}

// A packed in tiles, `tile_stride` floats apart: the rows of a tile side by side for each depth.
inline void set_a_tiles(GemmBlock* g, size_t tile_rows, size_t tile_stride) {
  g->tile_rows = tile_rows;
  g->a_stride = static_cast<ptrdiff_t>(tile_rows), g->a_tile_stride = static_cast<ptrdiff_t>(tile_stride);
}

// B packed in panels of `columns`, `panel_stride` floats apart.
inline void set_b_panels(GemmBlock* g, size_t columns, size_t panel_stride) {
  g->b_stride = static_cast<ptrdiff_t>(columns), g->b_panel_stride = static_cast<ptrdiff_t>(panel_stride);
}

inline void set_c(GemmBlock* g, float* c, size_t stride) {
  g->c = c, g->c_stride = stride;
}

// Rows of a tile: as even as possible, at most those of the kernel.
inline size_t even_tile_rows(size_t rows, const TileKernels& kernels) {
  return div_up(rows, div_up(rows, kernels.rows));
}

}  // namespace bnns
