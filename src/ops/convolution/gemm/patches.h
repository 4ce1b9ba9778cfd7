// A patch map as a matrix product on the GEMM core's tile kernel (implicit GEMM).
//
//   target[row, pixel] = sum over k = (channel, tap) of A[row, k] * patch[k, pixel]
//
// per group. The weights are packed once per call, by all threads; a task takes a block of target pixels (about 256)
// and all or some rows, and for each depth block (at most 512 of k) stages the slab of source rows, packs its patches
// and multiplies. The patch matrix as a whole never exists: a thread holds one depth block of one pixel block.
//
// The sum over k of every element is cut into the same depth blocks whatever the number of threads, so its bits are
// the same; pixel and row blocks do not touch the order of any sum.
#pragma once

#include <cstddef>

#include "src/core/call_scratch.h"
#include "src/gemm/kernels.h"
#include "src/ops/convolution/common/cut.h"
#include "src/ops/convolution/common/problem.h"

namespace bnns {

void run_gemm_patches(const PatchMap& p, CallScratch& scratch);
SinkParts gemm_patches_parts(const PatchMap& p);

class PatchProduct {
 public:
  explicit PatchProduct(const PatchMap& map);

  size_t workspace_bytes() const { return scratch_bytes(threads_, thread_floats_, packed_floats_); }
  void run(const ImageSource& source, void* workspace) const;
  SinkParts sink_parts() const;

  // Both phases of an x axis of stride 2 in one pass, which writes whole rows of the target: overwrite only, no sink.
  // Either may be null, for a phase without taps. False where their blocks differ. fill_next_row: the row below each
  // has no taps at all.
  static bool can_pair(const PatchProduct* even, const PatchProduct* odd);
  static size_t pair_bytes(const PatchProduct* even, const PatchProduct* odd);
  static void run_pair(const PatchProduct* even, const PatchProduct* odd, bool fill_next_row, const ImageSource& source,
                       void* workspace);

 private:
  void pack_weights(float* to) const;
  void pack_weight_tile(size_t group, size_t block, size_t first_row, float* to) const;
  // What one task makes: a block of pixels of some channels.
  struct Part {
    PixelBlock block;
    size_t group, first_row, rows;
  };
  Part part_at(size_t task) const;
  // Returns the block's values, their channels *stride apart: linear, in the target or in `staged`.
  float* multiply(const ImageSource& source, const Part& part, const float* packed, float* scratch, float* staged,
                  size_t* stride) const;
  void run_task(const ImageSource& source, size_t task, const float* packed, float* scratch) const;
  void pack_panels(const ImageSource& source, const ChannelTaps& depth, const PixelBlock& block, size_t group,
                   float* slab_buffer, float* panels) const;
  void finish(const PixelBlock& block, size_t channel, float* values, bool direct) const;
  bool writes_direct(const PixelBlock& block) const;

  PatchAxis y_, x_;
  size_t groups_, rows_, channels_;
  WeightView weights_;  // A(row, channel, ky, kx): row * row_stride + channel * channel_stride + ky * y + kx * x
  ptrdiff_t row_stride_, channel_stride_;
  ImageTarget target_;
  TileKernels kernels_;
  PixelBlocks pixels_;
  ChannelTapBlocks depth_;
  size_t tile_rows_, tiles_, tiles_per_task_, row_blocks_, a_panel_;  // rows of A
  size_t panel_columns_, b_panel_, b_floats_, slab_floats_, c_stride_, c_floats_;
  bool a_direct_;
  size_t threads_, packed_floats_, thread_floats_;
};

}  // namespace bnns
