// Convolution of bf16 images with bf16 weights on the pair kernels (src/gemm/bf16.h): nothing is converted, sums are
// f32 and rounded once at the end.
//
//   down, up   pairs are neighbouring channels: the slab of a block holds a word (channel 2c, channel 2c + 1) for every
//              source pixel, and from there on patches are cut from words as they are from floats
//   weights    pairs are neighbouring pixels, which lie side by side in memory anyway
//
// An odd last channel or pixel is paired with zero in both factors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/gemm/bf16.h"
#include "src/ops/convolution/convolution_blocks.h"
#include "src/ops/convolution/convolution_target.h"

namespace bnns {

// bf16 weights of group 0 in any order, as WeightView has them in f32.
struct Bf16Weights : WeightStrides {
  const uint16_t* data = nullptr;
};
// dW: f32 or bf16.
struct Bf16WeightTarget : WeightStrides {
  float* f32 = nullptr;
  uint16_t* bf16 = nullptr;
  bool accumulate = false;
};

// Images that can be read as they lie: bf16, columns side by side, no derivative to apply.
inline bool is_bf16_image(const ImageSource& s) {
  return s.tensor->type == BNNSDataTypeBFloat16 && s.tensor->stride[0] == 1 && s.activation.is_identity();
}
inline const uint16_t* bf16_at(const ImageSource& s, size_t n, size_t c, size_t row) {
  return static_cast<const uint16_t*>(s.data) + n * s.batch_stride + c * s.tensor->stride[2] +
         row * s.tensor->stride[1];
}

// The source rows and columns that a block's taps name, inside the image or not.
struct SlabShape {
  ptrdiff_t row_low = 0, column_low = 0;
  size_t rows = 0, columns = 0, phase_length = 0;  // phases of x.step, as in Slab
  size_t row_stride() const { return phase_length * step; }
  size_t step = 1;
  SlabShape(const PatchAxis& y, const PatchAxis& x, const PixelBlock& block);
  Slab slab(const PatchAxis& y, const PatchAxis& x, size_t channels) const;  // its strides; data is left to the caller
};

// A patch map as a product on pairs of channels; PatchProduct says what the arguments are.
class PairPatchProduct {
 public:
  PairPatchProduct(const PatchAxis& y, const PatchAxis& x, size_t groups, size_t rows, size_t channels,
                   const Bf16Weights& weights, ptrdiff_t row_stride, ptrdiff_t channel_stride, size_t batch,
                   const ImageTarget& target, Isa isa, size_t threads);

  size_t workspace_bytes() const { return scratch_bytes(threads_, thread_floats_, packed_floats_); }
  void run(const ImageSource& source, void* workspace) const;

 private:
  void pack_weight_tile(size_t group, size_t block, size_t first_row, float* to) const;
  void run_task(const ImageSource& source, size_t task, const float* packed, float* scratch) const;
  void choose_blocks(size_t panel);
  size_t block_count() const;
  template <class F>
  size_t for_each_piece(size_t block, F&& f) const;
  void pack_piece(const ImageSource& source, const ChannelTaps& depth, const PixelBlock& piece, size_t first_column,
                  size_t group, float* slab_room, float* panels) const;
  void finish(const PixelBlock& piece, size_t channel, float* values) const;

  PatchAxis y_, x_;
  size_t groups_, rows_, channels_, batch_;
  Bf16Weights weights_;
  ptrdiff_t row_stride_, channel_stride_;
  ImageTarget target_;
  PairKernels kernels_;
  size_t block_rows_;       // of a block: rows of target pixels, of one sample after the other; 0: pieces of a row
  size_t block_pixels_;     // at most
  PixelBlocks pieces_;      // pieces of a row, or the largest piece of a block
  ChannelTapBlocks depth_;  // of pairs of channels
  size_t tile_rows_, tiles_, tiles_per_task_, row_blocks_, a_row_stride_, a_panel_, b_panel_;
  size_t b_floats_, slab_floats_, c_stride_;
  size_t threads_, packed_floats_, thread_floats_;
};

// The weight gradient as a product on pairs of pixels; see WeightProduct.
class PairWeightProduct {
 public:
  PairWeightProduct(const ConvolutionMap& map, size_t batch, Isa isa, size_t threads);

  size_t workspace_bytes() const { return scratch_bytes(threads_, thread_floats_, slice_floats_); }
  void run(const ImageSource& small, const ImageSource& large, const Bf16WeightTarget& target, void* workspace) const;

 private:
  void run_task(const ImageSource& small, const ImageSource& large, const Bf16WeightTarget& target, size_t task,
                float* slices, float* scratch) const;
  void pack_small(const ImageSource& small, const PixelBlock& block, size_t first, size_t columns, float* room,
                  float* panels) const;
  void pack_large(const ImageSource& large, const PixelBlock& block, size_t first, const ChannelTaps& rows, float* room,
                  float* patches) const;
  void store(const Bf16WeightTarget& target, size_t group, size_t row_index, size_t column, const float* c,
             size_t slices) const;

  ConvolutionMap map_;
  PatchAxis y_, x_;
  PairKernels kernels_;
  PixelBlocks pixels_;     // depth
  ChannelTapBlocks rows_;  // (l, k)
  size_t row_blocks_, tile_rows_, column_block_, column_blocks_, c_stride_, c_floats_;
  size_t patch_stride_, patch_floats_, panel_floats_, slab_floats_, stage_floats_;
  size_t slices_, threads_, slice_floats_, thread_floats_;
};

// The vector kernels (convolution_bf16_pack.cc), for has_pair_kernels only.

// to[i] = a[i] | b[i] << 16 for i < count, on `rows` rows. b may be null: zeros.
void interleave_rows(const uint16_t* a, const uint16_t* b, ptrdiff_t from_stride, size_t rows, size_t count, float* to,
                     size_t to_stride) noexcept;
// `count` runs of `length` halves, copied in whole vectors: up to 31 halves behind a run are read and written too.
void copy_halves(const uint16_t* from, size_t from_stride, uint16_t* to, size_t to_stride, size_t count,
                 size_t length) noexcept;

}  // namespace bnns
