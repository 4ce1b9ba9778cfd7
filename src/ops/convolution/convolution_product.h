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

#include "src/gemm/kernels.h"
#include "src/ops/convolution/convolution_slab.h"

namespace bnns {

// Takes finished blocks (bias and activation applied) on the thread that made them, while they are in its cache: the
// second stage of a fused layer. Pixel k (index in the plane, from first_pixel on) of sample n0 + i and channel
// first_channel + j is values[i * sample_stride + j * channel_stride + k - first_pixel].
struct FinishedBlock {
  size_t n0 = 0, n1 = 0, first_channel = 0, channels = 0, first_pixel = 0, pixels = 0;
  const float* values = nullptr;
  size_t sample_stride = 0, channel_stride = 0;
};
struct BlockSink {
  void (*take)(void* context, const FinishedBlock& block) = nullptr;
  void* context = nullptr;
  bool instead_of_target = false;  // nothing is written to the target
};

// The blocks that a sink gets are made of such parts: this many samples, this many pixels of a plane (the last part of
// each kind may be smaller). pixels 0: blocks are not runs of pixels, there is no sink for this map.
struct SinkParts {
  size_t samples = 1, pixels = 0;
};

// Where results go: samples of a CHW image, with bias and activation, or a gradient to overwrite or add to.
struct ImageTarget {
  const Tensor* tensor = nullptr;
  void* data = nullptr;
  size_t batch_stride = 0;
  bool accumulate = false;
  const float* bias = nullptr;  // one per channel, or none
  Activation activation = {};   // element by element

  const BlockSink* sink = nullptr;

  bool plain() const { return tensor->type == BNNSDataTypeFloat32 && tensor->stride[0] == 1; }
};

class PatchProduct {
 public:
  // rows: target channels per group; channels: source channels per group. A(row, channel, ky, kx) of group 0 is
  // weights[row * row_stride + channel * channel_stride + ky * weights.y + kx * weights.x].
  PatchProduct(const PatchAxis& y, const PatchAxis& x, size_t groups, size_t rows, size_t channels,
               const WeightView& weights, ptrdiff_t row_stride, ptrdiff_t channel_stride, size_t batch,
               const ImageTarget& target, size_t threads);

  size_t workspace_bytes() const { return (packed_floats_ + threads_ * thread_floats_) * sizeof(float); }
  void run(const ImageSource& source, void* workspace) const;
  SinkParts sink_parts() const;

 private:
  struct Depth {
    size_t c0, c1, t0, t1;
    size_t size() const { return (c1 - c0) * (t1 - t0); }
  };
  Depth depth_block(size_t index) const;
  PixelBlock pixel_block(size_t index) const;
  void plan_blocks();
  void pack_weights(float* to) const;
  void pack_weight_tile(size_t group, size_t block, size_t first_row, float* to) const;
  void run_task(const ImageSource& source, size_t task, const float* packed, float* scratch) const;
  void pack_panels(const ImageSource& source, const Depth& depth, const PixelBlock& block, size_t group,
                   float* slab_room, float* panels) const;
  void finish(const PixelBlock& block, size_t channel, float* values, bool direct) const;
  bool writes_direct(const PixelBlock& block) const;

  PatchAxis y_, x_;
  size_t groups_, rows_, channels_;
  WeightView weights_;
  ptrdiff_t row_stride_, channel_stride_;
  size_t batch_;
  ImageTarget target_;
  TileKernels kernels_;
  // Rows of A in tiles; depth in blocks of whole channels, or parts of one channel's taps.
  size_t tile_rows_, tiles_, channel_block_, tap_block_, depth_blocks_, a_panel_;
  // Pixels.
  size_t block_samples_ = 1, block_rows_ = 1, block_width_ = 1, pixel_blocks_, row_blocks_, tiles_per_task_;
  size_t panel_columns_, b_panel_, b_floats_, slab_floats_, c_stride_, c_floats_;
  bool a_direct_;
  size_t threads_, packed_floats_, thread_floats_;
};

// The pixels of a phase that no tap reaches: act(bias), or zero, or nothing to add.
void fill_without_taps(const PatchAxis& y, const PatchAxis& x, size_t batch, size_t channels, const ImageTarget& target,
                       size_t threads);

// Writes `count` values to a row of an image, `step` columns apart.
void store_run(const ImageTarget& target, size_t sample, size_t channel, size_t row, size_t first, size_t step,
               const float* values, size_t count);

}  // namespace bnns
