// Convolution of bf16 images with bf16 weights on the pair kernels (src/gemm/bf16.h): nothing is converted, sums are
// f32 and rounded once at the end.
//
//   down, up   pairs are neighbouring channels: the slab of a block holds a word (channel 2c, channel 2c + 1) for every
//              source pixel, and from there on patches are cut from words as they are from floats
//   weights    pairs are neighbouring pixels, which lie side by side in memory anyway
//
// An odd last channel or pixel is paired with zero in both factors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/core/call_scratch.h"
#include "src/core/half.h"
#include "src/gemm/bf16.h"
#include "src/ops/convolution/common/cut.h"
#include "src/ops/convolution/common/problem.h"

namespace bnns {

// dW: f32 or bf16.
struct Bf16WeightTarget : WeightStrides {
  float* f32 = nullptr;
  uint16_t* bf16 = nullptr;
  bool accumulate = false;

  Bf16WeightTarget() = default;
  explicit Bf16WeightTarget(const WeightMap& p);

  // Element `at` = or += sum.
  void put(ptrdiff_t at, float sum) const {
    if (bf16) {
      bf16[at] = float_to_bfloat16(accumulate ? bfloat16_to_float(bf16[at]) + sum : sum);
    } else {
      f32[at] = accumulate ? f32[at] + sum : sum;
    }
  }
};

// Images that can be read as they lie: bf16, columns side by side, no derivative to apply.
inline bool is_bf16_image(const ImageSource& s) {
  return s.tensor->type == BNNSDataTypeBFloat16 && s.tensor->stride[0] == 1 && s.activation.is_identity();
}
inline const uint16_t* bf16_at(const ImageSource& s, size_t n, size_t c, size_t row) {
  return static_cast<const uint16_t*>(s.data) + n * s.batch_stride + c * s.tensor->stride[2] +
         row * s.tensor->stride[1];
}

// The instruction set of a call that has been accepted, even if another thread lowers it meanwhile.
inline Isa pair_isa() {
  return std::max(isa(), Isa::avx512_bf16);
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

// About what the slab of a block is made of, to be prefetched: the rows of `channels` channels, or whole planes of
// several samples.
Ahead source_ahead(const ImageSource& source, const PixelBlock& block, const PatchAxis& y, const PatchAxis& x,
                   size_t first, size_t channels);

// Pairs [begin, end) of a group's `count` channels, which begin at channel `first` of the image.
struct ChannelPairs {
  size_t first = 0, count = 0, begin = 0, end = 0;
};
// Writes the words of these pairs into buffer, with the strides of `slab`. Zeros around them only if `clear`: they are
// the same for all channels. Behind the slab there is space for one row.
void fill_word_slab(const ImageSource& source, const PatchAxis& y, const PatchAxis& x, const PixelBlock& block,
                    const ChannelPairs& channels, const Slab& slab, bool clear, float* buffer);

// The implementations. Both factors are bf16 as they lie; no sinks, which take an f32 map.
bool accepts_bf16_amx(const PatchMap& p);
void run_bf16_amx(const PatchMap& p, CallScratch& scratch);
bool accepts_bf16_patches(const PatchMap& p);
void run_bf16_patches(const PatchMap& p, CallScratch& scratch);
bool accepts_bf16_amx_dw(const WeightMap& p);
void run_bf16_amx_dw(const WeightMap& p, CallScratch& scratch);
bool accepts_bf16_dw(const WeightMap& p);
void run_bf16_dw(const WeightMap& p, CallScratch& scratch);

// A patch map as a product on pairs of channels, built as PatchProduct is.
class PairPatchProduct {
 public:
  PairPatchProduct(const PatchMap& map, const Bf16Weights& weights, Isa isa);

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
                  size_t group, float* slab_buffer, float* panels) const;
  void finish(const PixelBlock& piece, size_t channel, float* values) const;
  uint16_t* direct_target(size_t block, size_t channel) const;

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

// The same map without patches, for AMX: tiles of B are read from the slab at the offset of each tap (PairSteps). A
// block's target pixels form one line over the whole slab, so that the columns of its padding are computed for nothing,
// or a line per row where that is less. Depth is cut into passes of 16 pairs of channels times all taps: the weights of
// a pass and a tile of rows fit the first cache, sums stay in the second.
class PairStepProduct {
 public:
  static bool accepts(const PatchMap& map);  // its shape
  PairStepProduct(const PatchMap& map, const Bf16Weights& weights, PairStepsKernel kernel);

  size_t workspace_bytes() const { return scratch_bytes(threads_, thread_floats_, packed_floats_); }
  void run(const ImageSource& source, void* workspace) const;

 private:
  // How a block lies in its slab and in its sums.
  struct Layout {
    Slab slab;
    size_t slab_floats = 0;
    bool joined = false;  // one line per sample
    size_t lines = 1, columns = 0, line_c = 0, sample_c = 0;
  };
  Layout layout(const PixelBlock& block) const;
  void pack_weight_tile(size_t group, size_t pass, size_t first_row, float* to) const;
  void run_task(const ImageSource& source, size_t task, const float* packed, float* scratch) const;
  Ahead ahead(const ImageSource& source, size_t group, size_t pass, size_t block) const;
  void finish(const PixelBlock& block, const Layout& l, size_t channel, float* values) const;

  PatchAxis y_, x_;
  size_t groups_, rows_, channels_;
  Bf16Weights weights_;
  ptrdiff_t row_stride_, channel_stride_;
  ImageTarget target_;
  PairStepsKernel kernel_;
  PixelBlocks pixels_;
  size_t taps_, pairs_, pass_pairs_, passes_;
  size_t tiles_, tiles_per_task_, row_blocks_, a_tile_;
  size_t c_stride_, slab_floats_;
  size_t threads_, packed_floats_, thread_floats_;
};

// The weight gradient as a product on pairs of pixels; see WeightProduct.
class PairWeightProduct {
 public:
  PairWeightProduct(const WeightMap& map, Isa isa);

  size_t workspace_bytes() const { return scratch_bytes(threads_, thread_floats_, slice_floats_); }
  void run(const ImageSource& small, const ImageSource& large, const Bf16WeightTarget& target, void* workspace) const;

 private:
  void set_blocks();
  size_t blocks() const { return map_.groups * row_blocks_ * column_blocks_; }
  void run_task(const ImageSource& small, const ImageSource& large, const Bf16WeightTarget& target, size_t task,
                float* slices, float* scratch) const;
  void pack_small(const ImageSource& small, const PixelBlock& block, size_t first, size_t columns, float* buffer,
                  float* panels) const;
  void pack_large(const ImageSource& large, const PixelBlock& block, size_t first, const ChannelTaps& rows,
                  float* buffer, float* patches) const;
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

// The same gradient without patches, for AMX and strides of 1: rows are the small channels, columns the large ones, and
// B, transposed words of two pixels, is read at the offset of each tap (PairSteps). Rows of taps are rows of pixels
// further; columns of taps would break the pairs, so there is a copy of B for each. Dilation is free.
class PairWeightSteps {
 public:
  static bool accepts(const WeightMap& map);  // its shape
  PairWeightSteps(const WeightMap& map, PairStepsKernel kernel);

  size_t workspace_bytes() const { return scratch_bytes(threads_, thread_floats_, slice_floats_); }
  void run(const ImageSource& small, const ImageSource& large, const Bf16WeightTarget& target, void* workspace) const;

 private:
  void set_blocks();
  size_t blocks() const { return map_.groups * row_blocks_ * column_blocks_; }
  // A block's run of pairs in each sample: rows of an even number of pixels, in steps of 16 and what is left.
  struct Depth {
    size_t row_pairs, pairs, steps, rest;
    explicit Depth(const PixelBlock& block)
        : row_pairs(pairs_of(block.width())), pairs(block.rows() * row_pairs), steps(pairs / 16), rest(pairs % 16) {}
  };
  void run_task(const ImageSource& small, const ImageSource& large, const Bf16WeightTarget& target, size_t task,
                float* slices, float* scratch) const;
  void pack_small(const ImageSource& small, const PixelBlock& block, const Depth& depth, size_t first, size_t rows,
                  float* buffer, float* to) const;
  void pack_large(const ImageSource& large, const PixelBlock& block, const Depth& depth, size_t first, size_t columns,
                  float* to) const;
  void store(const Bf16WeightTarget& target, size_t block, const float* c, size_t slices) const;
  size_t copy_rows(const PixelBlock& block) const;  // of pixels in a copy of B

  ConvolutionMap map_;
  PatchAxis y_, x_;
  PairStepsKernel kernel_;
  PixelBlocks pixels_;
  size_t row_block_, row_blocks_, column_block_, column_blocks_;  // of small and of large channels
  size_t b_stride_, line_c_, sample_c_, c_stride_, c_floats_;
  size_t a_floats_, b_floats_, stage_floats_;
  size_t slices_, threads_, slice_floats_, thread_floats_;
};

// The vector kernels (convolution/bf16/pack.cc), for has_pair_kernels only.

// to[i] = a[i] | b[i] << 16 for i < count, on `rows` rows. b may be null: zeros.
void interleave_rows(const uint16_t* a, const uint16_t* b, ptrdiff_t from_stride, size_t rows, size_t count, float* to,
                     size_t to_stride) noexcept;
// to[(t * to_step + p)] = tap t of the pair p of channels, for p < 16, t < taps <= 16: the taps of a channel lie side
// by side from `from` on, channels `stride` apart, `channels` of them, zeros behind.
void gather_taps(const uint16_t* from, ptrdiff_t stride, size_t channels, size_t taps, float* to,
                 size_t to_step) noexcept;
// to[q * to_stride + c] = halves first + 2 q and first + 2 q + 1 of a row of channel c, for q < ceil(width / 2) and 16
// channels: zeros outside [0, extent), beyond width and for channels that there are not.
struct PixelRow {
  const uint16_t* from = nullptr;  // half 0
  size_t channel_stride = 0, channels = 0;
  ptrdiff_t first = 0;
  size_t extent = 0, width = 0;
};
void transpose_pixels(const PixelRow& row, float* to, size_t to_stride) noexcept;
// to[j * taps + t] = or += the sum over slices, in order, of from[(t / taps_x) * sample + (t % taps_x) * line + j], for
// j < count; taps <= 16.
struct TapSums {
  const float* from = nullptr;
  size_t taps = 1, taps_x = 1, sample = 0, line = 0, count = 0, slices = 1, slice_stride = 0;
  float at(size_t t, size_t j) const {
    const float* p = from + t / taps_x * sample + t % taps_x * line + j;
    float sum = *p;
    for (size_t i = 1; i < slices; ++i) sum += p[i * slice_stride];
    return sum;
  }
};
void scatter_taps(const TapSums& sums, bool accumulate, uint16_t* to) noexcept;
void scatter_taps(const TapSums& sums, bool accumulate, float* to) noexcept;
// Rows of `count` values, rounded as float_to_bfloat16 rounds.
void round_rows(const float* from, size_t from_stride, size_t rows, size_t count, uint16_t* to,
                size_t to_stride) noexcept;
// Rows of `width` halves, zeros up to the next row; 32 halves from the beginning of any piece of 32 may be written.
void pad_rows(const uint16_t* from, size_t from_stride, size_t rows, size_t width, uint16_t* to,
              size_t to_stride) noexcept;
// A row of pairs in pieces of 16: whole ones to_step apart, and the rest.
void copy_steps(const uint16_t* from, size_t pairs, float* to, size_t to_step, float* rest) noexcept;
// Half i of `count` goes to coordinate x = lead + i of a row in two phases: row[x % 2 * length + x / 2].
void split_halves(const uint16_t* from, size_t lead, size_t count, size_t length, uint16_t* row) noexcept;
// `count` runs of `length` halves, copied in whole vectors: up to 31 halves behind a run are read and written too.
void copy_halves(const uint16_t* from, size_t from_stride, uint16_t* to, size_t to_stride, size_t count,
                 size_t length) noexcept;

}  // namespace bnns
