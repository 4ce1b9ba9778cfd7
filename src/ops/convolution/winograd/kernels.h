// The vector kernels of Winograd's algorithm F(m x m, r x r): images and weights to points and back. README.md has the
// formulas. `taps` is r: 3, 4 or 5; a tile has 6 x 6 source pixels and m x m target pixels, m = 7 - r.
#pragma once

#include <cstddef>

#include "src/core/isa.h"
#include "src/ops/convolution/common/patch_map.h"

namespace bnns {

inline constexpr size_t kWinogradPoints = 36;   // of a 6x6 tile
inline constexpr size_t kWinogradGroup = 16;    // channels that travel together
inline constexpr size_t kWinogradColumns = 32;  // target channels of one product: whole panels of every tile kernel
// The points are 0, +-a, +-b and infinity: those that round least. For four taps 5/8 has twice the error of 3/4 at
// padded borders.
constexpr float winograd_a(size_t taps) {
  return taps == 4 ? 0.75f : 0.625f;
}
inline constexpr float kWinogradB = 1.5f;

// Target pixels of a tile along an axis: m.
constexpr size_t winograd_tile(size_t taps) {
  return 7 - taps;
}

// `pixels` of one row of `channels` (at most 16) planes, `stride` apart, as to[pixel * 16 + channel]; missing channels
// are 0. Reads exactly what it names.
void winograd_gather(const float* from, size_t stride, size_t channels, size_t pixels, float* to) noexcept;

// Over a step of 2: rows has even and odd source rows of four channels in turn, `stride` floats apart, 2 * pixels
// floats each (two pixels at least). to[pixel * 16 + 4 * channel + phase], phases (0, 0), (0, 1), (1, 0), (1, 1).
void winograd_gather_phases(const float* rows, size_t stride, size_t pixels, float* to) noexcept;

// A row of `tiles` tiles of 16 channels: rows has six rows of m * tiles + r - 1 gathered pixels, row_stride floats
// apart. Point k of tile t goes to v[t * tile_stride + k * point_stride].
void winograd_source_row(size_t taps, const float* rows, size_t row_stride, size_t tiles, float* v, size_t tile_stride,
                         size_t point_stride) noexcept;

// Weight (row, k, ky, kx) is data[row * this->row + k * depth + ky * y + kx * x]. Step 2: k is phase k % 4 of channel
// k / 4, to which the taps 2 ky + k % 4 / 2, 2 kx + k % 2 belong, or zeros where the kernel has no such tap.
struct WinogradWeights {
  const float* data = nullptr;
  ptrdiff_t row = 0, depth = 0, y = 0, x = 0;
  size_t step = 1, taps_y = 0, taps_x = 0;  // of the kernel as it is
  bool phased_rows = false;                 // not k but row is phase row % 4 of channel row / 4
};

// 32 rows (`rows` of them are there, the others become 0) by `depth`: each point as panels of B for the tile kernel of
// this instruction set, side by side; points are point_stride apart.
void winograd_weight_block(Isa isa, size_t taps, const WinogradWeights& w, size_t rows, size_t depth, float* u,
                           size_t point_stride) noexcept;

// `tiles` neighbouring tiles of 16 channels: m[t * tile_stride + k * point_stride + channel] becomes m rows by
// m * tiles pixels of 16 planes, plus 16 biases. Writes all of them and nothing else.
void winograd_target_row(size_t taps, const float* m, size_t tile_stride, size_t point_stride, size_t tiles,
                         const float* bias, float* y, size_t channel_stride, size_t row_stride) noexcept;

// The transpose of the map: from small pixels' Z (below) to large pixels, B M B' (convolution/winograd/transposed.h).

// Rows of pixels of 16 channels, side by side, that rows of tiles make from top to bottom.
struct ScatterRows {
  size_t above_rows = 0;   // how many of them above holds: 0 for the first row of tiles
  size_t finished = 0;     // of the six rows of this row of tiles, by those below it
  float* above = nullptr;  // what rows of tiles above gave; then the 6 - finished rows that those below add to
  float* rows = nullptr;   // the finished ones
};
// A row of `tiles` tiles of 16 channels of M. The second tile begins at pixel `first` (m, or less: then there are two),
// others m pixels after the one before. A row has first + m * (tiles - 1) + r - 1 pixels.
void winograd_scatter_row(size_t taps, const float* m, size_t tile_stride, size_t point_stride, size_t tiles,
                          size_t first, const ScatterRows& rows) noexcept;
// The inverse of winograd_gather_phases.
void winograd_scatter_phases(const float* from, size_t pixels, float* rows, size_t stride) noexcept;

// The weight gradient: Z = A y A' of m x m target pixels, dW = G' (sum over tiles of V * Z) G.

// As winograd_source_row, of m rows of m * tiles pixels.
void winograd_gradient_row(size_t taps, const float* rows, size_t row_stride, size_t tiles, float* z,
                           size_t tile_stride, size_t point_stride) noexcept;

// dW of `rows` large by `columns` (at most 32) small channels = or += those of m[row * 32 + column + k * point_stride],
// whose columns are there up to a multiple of 16.
void winograd_gradient_block(size_t taps, const float* m, size_t point_stride, size_t rows, size_t columns,
                             const WeightTarget& target) noexcept;

}  // namespace bnns
