// What the GEMM drivers and convolution ask of the kernels of one instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/core/checked.h"
#include "src/core/isa.h"
#include "src/gemm/pack.h"

namespace bnns {

// Memory that will be read soon: `rows` pieces of `bytes` bytes, row_bytes apart. Kernels prefetch it while they
// compute.
struct Ahead {
  const void* data = nullptr;
  ptrdiff_t row_bytes = 0;
  size_t rows = 0, bytes = 0;

  // Part i of `parts` of the pieces.
  Ahead part(size_t i, size_t parts) const {
    const size_t begin = i * rows / parts, end = (i + 1) * rows / parts;
    return {static_cast<const char*>(data) + static_cast<ptrdiff_t>(begin) * row_bytes, row_bytes, end - begin, bytes};
  }
};

// C (rows x columns) = or += A (rows x depth) * B (depth x columns), on one thread.
struct GemmBlock {
  size_t rows = 0, columns = 0, depth = 0;

  // A in tiles of tile_rows rows. Tile t starts at a + t * a_tile_stride; within it element (r, k) is at r + k *
  // a_stride, or at r * a_stride + k when a_depth_contiguous.
  const float* a = nullptr;
  size_t tile_rows = 0;
  ptrdiff_t a_tile_stride = 0, a_stride = 0;
  bool a_depth_contiguous = false;

  // B in panels of TileKernels::columns columns. Panel p starts at b + p * b_panel_stride; element (k, j) of it is at
  // k * b_stride + j. A last panel that is not full must be a padded
  // copy, unless TileKernels::masks: b_tail, or null if all panels are padded anyway.
  const float* b = nullptr;
  ptrdiff_t b_panel_stride = 0, b_stride = 0;
  const float* b_tail = nullptr;

  // For one full panel: the first row tile leaves a packed copy of the panel here, the other tiles read that one.
  float* b_copy = nullptr;
  // The same for pairs of bf16 (PairKernels::copies): b_copy is made from rows of bf16, b_row_stride elements apart,
  // the last of which is missing when the depth is odd.
  const uint16_t* b_rows = nullptr;
  ptrdiff_t b_row_stride = 0;
  bool odd_depth = false;
  // For one panel: the next one, or a part of the next depth block (ahead_by_rows).
  Ahead ahead;
  bool ahead_by_rows = false;

  float* c = nullptr;
  size_t c_stride = 0;
  uint16_t* c_bf16 = nullptr;  // pair kernels (bf16.h), overwrite: the sums go here, rounded; c_stride is its stride
  bool accumulate = false;
  bool c_far = false;   // C is not expected in the cache
  bool stream = false;  // non-temporal stores: overwrite only, rows of C 64-byte aligned

  // n rows in as few tiles of at most `most` as there can be, of equal size.
  void set_rows(size_t n, size_t most) {
    rows = n;
    tile_rows = n <= most ? n : div_up(n, div_up(n, most));
  }
  // A as rows of contiguous depth, `stride` apart; tile_rows is set.
  void set_a_rows(const float* data, ptrdiff_t stride) {
    a = data, a_stride = stride, a_depth_contiguous = true;
    a_tile_stride = static_cast<ptrdiff_t>(tile_rows) * stride;
  }
  // A as pack() leaves it: tiles of tile_rows, which is set.
  void set_a_tiles(const float* data, size_t tile_stride) {
    a = data, a_stride = static_cast<ptrdiff_t>(tile_rows), a_depth_contiguous = false;
    a_tile_stride = static_cast<ptrdiff_t>(tile_stride);
  }
  // A as pack_pair_rows() leaves it: tiles whose rows have contiguous depth.
  void set_a_row_tiles(const float* data, size_t stride, size_t tile_stride) {
    a = data, a_stride = static_cast<ptrdiff_t>(stride), a_depth_contiguous = true;
    a_tile_stride = static_cast<ptrdiff_t>(tile_stride);
  }
  // B in panels; rows of the depth `stride` apart: the panel's columns where it is packed.
  void set_b(const float* data, ptrdiff_t panel_stride, ptrdiff_t stride) {
    b = data, b_panel_stride = panel_stride, b_stride = stride;
  }
  void set_c(float* data, size_t stride) { c = data, c_stride = stride; }
};

// y_i[j] = or += sum_k x_i[k] * w(j, k) for the few vectors x_i and the many rows w(j, :) of a plain matrix.
struct SkinnyBlock {
  size_t vectors = 0;  // how many x; 1 for axpy
  Range rows;          // of w
  size_t depth = 0;
  const float* x = nullptr;  // x_i[k] at x[i * x_stride + k]
  ptrdiff_t x_stride = 0;
  const void* w = nullptr;  // w(j, k) at w[j * w_stride + k] for dot, at w[j + k * w_stride] for axpy
  FloatType type = FloatType::f32;
  ptrdiff_t w_stride = 0;
  bool w_far = false;  // axpy: w is expected in memory rather than in cache
  float* y = nullptr;  // y_i[j] at y[i * y_vector_stride + j * y_row_stride]; y_row_stride is 1 for axpy
  size_t y_vector_stride = 0, y_row_stride = 0;
  bool accumulate = false;
};

inline constexpr size_t kAxpyColumns = 4096;  // rows of w that axpy takes at most: 16 KB of sums stay in L1

// The tile kernel of one instruction set. Asked for once per call, so that a change of instruction set in the middle of
// a call cannot mix tile sizes.
struct TileKernels {
  size_t rows = 0, columns = 0;  // of a full tile
  bool masks = false;            // a last panel of B that is not full may be read in place: b_tail is not needed
  void (*block)(const GemmBlock&) = nullptr;
};
TileKernels tile_kernels(Isa isa) noexcept;

// Few vectors against a matrix: SIMD along the depth with one horizontal sum per element of y (skinny_dot), or along
// the rows of w (skinny_axpy).
void skinny_dot(const SkinnyBlock& block) noexcept;
void skinny_axpy(const SkinnyBlock& block) noexcept;

// y = or += rows[0] + rows[stride] + ... (count of them), in this order, n elements each.
void add_rows(const float* rows, size_t stride, size_t count, size_t n, bool accumulate, float* y) noexcept;

// C[i, :] = or += x[i] * y[:] for i in rows, on n columns.
void rank_one(Range rows, size_t n, const float* x, const float* y, float* c, size_t c_stride, bool accumulate,
              bool stream) noexcept;

}  // namespace bnns
