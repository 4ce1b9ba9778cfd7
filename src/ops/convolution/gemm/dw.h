// The weight gradient as a matrix product on the GEMM core's tile kernel.
//
//   dW(s, l, k) = sum over samples n and pixels p of S(n, s, p) * L(n, l, patch of k at p)
//
// is computed transposed, rows (l, k) by columns s, with depth the pixels: the patches are then copied as they lie in
// the source, runs of neighbouring pixels, and only S, which is smaller by the number of taps, is transposed. A task
// owns a block of dW for a part of the batch (a slice); slices are fixed by the shape and added in order, so the bits
// do not depend on the number of threads.
#pragma once

#include <cstddef>

#include "src/core/call_scratch.h"
#include "src/gemm/kernels.h"
#include "src/ops/convolution/common/cut.h"
#include "src/ops/convolution/common/problem.h"

namespace bnns {

void run_gemm_dw(const WeightMap& p, CallScratch& scratch);

class WeightProduct {
 public:
  explicit WeightProduct(const WeightMap& map);

  size_t workspace_bytes() const { return scratch_bytes(threads_, thread_floats_, slice_floats_); }
  void run(const ImageSource& small, const ImageSource& large, const WeightTarget& target, void* workspace) const;

 private:
  void set_blocks();
  size_t blocks() const { return map_.groups * row_blocks_ * column_blocks_; }
  void run_task(const ImageSource& small, const ImageSource& large, const WeightTarget& target, size_t task,
                float* slices, float* scratch) const;
  void pack_small(const ImageSource& small, const PixelBlock& block, size_t first, size_t columns, float* buffer,
                  float* panels) const;
  void store(const WeightTarget& target, size_t group, size_t row_index, size_t column, const float* c,
             size_t slices) const;

  ConvolutionMap map_;
  PatchAxis y_, x_;
  TileKernels kernels_;
  PixelBlocks pixels_;     // depth
  ChannelTapBlocks rows_;  // (l, k)
  size_t row_blocks_, tile_rows_, column_block_, column_blocks_, c_stride_, c_floats_;
  size_t patch_stride_, patch_floats_, panel_floats_, slab_floats_, stage_floats_;
  size_t slices_, threads_, slice_floats_, thread_floats_;
};

// db(c) = or += sum over samples and pixels of g, in blocks of whole rows so that padded and dense rows give the same
// bits. buffer has bias_gradient_buffer floats per thread.
inline size_t bias_gradient_rows(size_t width) {
  return width >= 1024 ? 1 : 1024 / width;
}
inline size_t bias_gradient_buffer(size_t width) {
  return (bias_gradient_rows(width) + 2) * width;
}
void convolution_bias_gradient(const ImageSource& g, size_t batch, size_t channels, bool accumulate, float* db,
                               float* buffer, size_t threads);

}  // namespace bnns
