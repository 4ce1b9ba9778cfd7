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

#include "src/core/call_scratch.h"
#include "src/gemm/kernels.h"
#include "src/ops/convolution/winograd/winograd.h"

namespace bnns {

bool accepts_winograd_gather(const PatchMap& p);
void run_winograd_gather(const PatchMap& p, CallScratch& scratch);
SinkParts winograd_gather_parts(const PatchMap& p);

class WinogradProduct {
 public:
  explicit WinogradProduct(const PatchMap& map);

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
                   float* buffer, float* staged) const;
  void finish(const Block& block, size_t column, size_t columns, const float* m, float* buffer) const;
  void stream(const Block& block, size_t columns, const float* bias, const float* m, float* buffer) const;
  bool writes_direct() const;

  PatchAxis y_, x_;
  size_t taps_, tile_;      // r and m
  size_t rows_, channels_;  // channels: phases count
  WinogradWeights weights_;
  ImageTarget target_;
  Isa isa_;  // read once: the panels of U are those of its tile kernel
  TileKernels kernels_;
  PixelBlocks tiles_;
  size_t columns_;     // blocks of 32 target channels
  size_t depth_step_;  // channels of one product
  bool few_tiles_;     // V for all of them first; weights are transformed where they are used
  bool streams_;       // results leave by non-temporal stores
  size_t v_stride_, v_point_, m_point_, u_point_, u_block_;
  size_t stage_floats_, own_u_floats_, m_floats_, staged_floats_;
  size_t parts_, threads_, u_floats_, v_floats_, own_v_floats_, thread_floats_;
};

}  // namespace bnns
