// Where the maps put their results: an image of any type and strides, or a gradient to overwrite or add to, or a second
// stage that takes finished blocks.
#pragma once

#include <cstddef>

#include "src/engine/activation/activation.h"
#include "src/ops/convolution/common/patch_map.h"
#include "src/tensor/tensor.h"

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
  const char* implementation = nullptr;  // the algorithm that feeds the sink
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
  bool only_sink() const { return sink && sink->instead_of_target; }

  // Whether values can be made where they lie in the target: f32, columns side by side, nothing to add to (old + new
  // has the same bits in every layout only if the sum is complete before). With a map's axes: whole rows of it, which
  // follow each other without a gap.
  bool in_place() const { return plain() && !accumulate && !only_sink(); }
  bool in_place(const PatchAxis& y, const PatchAxis& x) const {
    return in_place() && y.target_step == 1 && x.target_step == 1 && tensor->stride[1] == x.pixels;
  }
  float* at(size_t sample, size_t channel, size_t row, size_t column = 0) const {
    return static_cast<float*>(data) + sample * batch_stride + channel * tensor->stride[2] + row * tensor->stride[1] +
           column;
  }
};

// Bias and activation on `count` values of one channel.
void finish_values(const ImageTarget& target, size_t channel, float* values, size_t count);

// Writes `count` values to a row of an image, `step` columns apart.
void store_run(const ImageTarget& target, size_t sample, size_t channel, size_t row, size_t first, size_t step,
               const float* values, size_t count);

// Writes one channel of a block of the map's target pixels, which lie side by side, row by row.
struct PixelBlock;
void store_block(const ImageTarget& target, const PatchAxis& y, const PatchAxis& x, const PixelBlock& block,
                 size_t channel, const float* values);

}  // namespace bnns
