// A patch map with r x r taps of one pixel, r = 3 to 5, by Winograd's algorithm F(m x m, r x r), m + r = 7: a quarter
// of the products (r = 5: 36 of 100). Steps of one pixel, or of two, as four phases (winograd_taps below).
//
//   target tile (m x m) of row r = A' [ sum over channels c of U(r, c) * V(c) ] A,   U = G g G',  V = B' d B
//
// For each of the 36 points the sum over channels is a matrix product, rows tiles, columns target channels, on the GEMM
// core's tile kernel. A task takes a block of tiles and 32 target channels at a time, so that V and the 36 products
// stay in the cache; their channels lie side by side as the tile kernel and the transforms both want them.
//
// The sum over channels is cut by the shape alone and tiles and target channels do not touch its order: the bits do not
// depend on the number of threads.
#pragma once

#include <cstddef>

#include "src/gemm/kernels.h"
#include "src/ops/convolution/common/cut.h"
#include "src/ops/convolution/common/target.h"
#include "src/ops/convolution/winograd/kernels.h"

namespace bnns {

inline constexpr size_t kWinogradMostSamples = 64;  // of a block: a part for a sink

// r of F(m x m, r x r) where the map's shape allows it, else 0. Over a step of 2 the four phases of the source (even
// and odd rows and columns) are channels of their own, each with every other tap; where taps are odd the last is 0.
size_t winograd_taps(const PatchAxis& y, const PatchAxis& x);
inline size_t winograd_channels(const PatchAxis& y, size_t channels) {
  return y.step == 2 ? 4 * channels : channels;
}
// Whether the error of the outer taps of dW, which have the terms of fewer pixels, stays within four times that of
// plain sums.
bool has_mild_taps(const PatchAxis& y, const PatchAxis& x);
// Whether Winograd's algorithm computes the map, and pays.
bool is_winograd(const PatchAxis& y, const PatchAxis& x, size_t groups, size_t rows, size_t channels, size_t batch);

// Tiles of all samples in blocks of about `wanted`: whole samples, or rows of tiles, or pieces of a row.
PixelBlocks make_tile_blocks(size_t taps, const PatchAxis& y, const PatchAxis& x, size_t batch, size_t wanted);

// An odd number of cache lines, so that the 36 points of a tile do not fall on the same sets.
inline size_t odd_lines(size_t floats) {
  return (round_up(floats, 16) / 16 | 1) * 16;
}

// A rectangle of source pixels, inside the image or not, gathered for 16 channels: pixels row by row, zeros outside.
// Step 2: channels 4 c to 4 c + 3 are the phases of channel c.
struct WinogradStage {
  ptrdiff_t top = 0, left = 0;  // in the source
  size_t height = 0, width = 0;
  size_t step = 1;
};
// Floats that it takes, with room for rows that must be converted first.
inline size_t stage_floats(size_t height, size_t width) {
  return (height + 2) * width * kWinogradGroup;
}
void gather_stage(const ImageSource& source, size_t n, size_t first_channel, size_t channels,
                  const WinogradStage& window, float* stage);

class WinogradProduct {
 public:
  // As PatchProduct, one group.
  WinogradProduct(const PatchAxis& y, const PatchAxis& x, size_t rows, size_t channels, const WeightView& weights,
                  ptrdiff_t row_stride, ptrdiff_t channel_stride, size_t batch, const ImageTarget& target,
                  size_t threads);

  size_t workspace_bytes() const { return scratch_bytes(threads_, thread_floats_, u_floats_ + v_floats_); }
  void run(const ImageSource& source, void* workspace) const;
  SinkParts sink_parts() const;

 private:
  // A block of results: in the target, or staged.
  struct Block {
    PixelBlock tiles, pixels;
    float* data;  // of the first pixel and channel
    size_t sample_stride, channel_stride, row_stride;
  };

  size_t step() const { return static_cast<size_t>(y_.step); }
  size_t depth_blocks() const { return div_up(channels_, depth_step_); }
  void transform_weights(size_t column, size_t depth_block, float* u) const;
  void transform_source(const ImageSource& source, const PixelBlock& tiles, size_t first_channel, float* stage,
                        float* v) const;
  void run_columns(const PixelBlock& tiles, size_t column, const float* u, const float* v, float* own_u, float* m,
                   float* room, float* staged) const;
  void finish(const Block& block, size_t column, size_t columns, const float* m, float* room) const;
  void stream(const Block& block, size_t columns, const float* bias, const float* m, float* room) const;
  bool writes_direct() const;

  PatchAxis y_, x_;
  size_t taps_, tile_;      // r and m
  size_t rows_, channels_;  // channels: phases count
  WinogradWeights weights_;
  ImageTarget target_;
  Isa isa_;  // asked for once: the panels of U are those of its tile kernel
  TileKernels kernels_;
  PixelBlocks tiles_;
  size_t columns_;     // blocks of 32 target channels
  size_t depth_step_;  // channels of one product
  bool few_tiles_;     // V for all of them first; weights are transformed where they are used
  bool streams_;       // results go around the caches
  size_t v_stride_, v_point_, m_point_, u_point_, u_block_;
  size_t stage_floats_, own_u_floats_, m_floats_, staged_floats_;
  size_t parts_, threads_, u_floats_, v_floats_, own_v_floats_, thread_floats_;
};

}  // namespace bnns
