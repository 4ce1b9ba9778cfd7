// PairWeightProduct: dW on pairs of pixels, built as WeightProduct is (convolution/gemm/dw.h).
//
// Rows (l, k) of A are runs of pixels as they lie in the source; two neighbours are a word without further ado. The
// columns s of B are transposed word by word.

#include "src/ops/convolution/winograd/dw.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/bf16/bf16.h"
#include "src/ops/convolution/common/gemm_block.h"

namespace bnns {
namespace {

constexpr size_t kRows = 448;               // (l, k) of a block
constexpr size_t kColumns = 256;            // s of a block
constexpr size_t kPixels = 512;             // depth of one step: patches half a megabyte
constexpr size_t kSliceWork = 1 << 19;      // multiply-adds that are worth a slice
constexpr size_t kWeightSlab = 120 * 1024;  // elements
constexpr size_t kPacking = 3;              // what it takes, in tenths of the products of a block
constexpr size_t kOverhang = 32;            // halves that copy_halves may touch behind a run

}  // namespace

// Pairs double the rate of a product; Winograd's algorithm saves three quarters of it for 3x3. AMX is faster than both.
bool accepts_bf16_dw(const WeightMap& p) {
  const Isa set = isa();
  if (!p.bf16 || !p.has_all_taps()) return false;
  const bool same_size = p.map.y.kernel == 3 && p.map.y.stride == 1 && p.map.x.stride == 1;
  return set == Isa::amx || !same_size || !accepts_winograd_dw(p);
}

void run_bf16_dw(const WeightMap& p, CallScratch& scratch) {
  const PairWeightProduct product(p, pair_isa());
  CallScratch::Lease workspace(scratch, product.workspace_bytes());
  if (!scratch.measuring()) product.run(p.small, p.large, Bf16WeightTarget(p), workspace.data());
}

Bf16WeightTarget::Bf16WeightTarget(const WeightMap& p) : WeightStrides(p.strides), accumulate(p.dw->accumulate) {
  if (p.dw->type == BNNSDataTypeBFloat16) {
    bf16 = static_cast<uint16_t*>(p.dw->data) + p.first;
  } else {
    f32 = static_cast<float*>(p.dw->data) + p.first;
  }
}

PairWeightProduct::PairWeightProduct(const WeightMap& p, Isa isa)
    : map_(p.map), y_(p.y), x_(p.x), kernels_(pair_kernels(isa)) {
  const ConvolutionMap& map = map_;
  const size_t batch = p.batch;
  pixels_ = make_pixel_blocks(y_, x_, batch, kPixels, 32, false, kWeightSlab);
  rows_ = ChannelTapBlocks(y_, x_, map.large_channels, kRows, pixels_, kWeightSlab);
  column_block_ = div_up(map.small_channels, div_up(map.small_channels, kColumns));
  set_blocks();
  const size_t words = round_up(pairs_of(pixels_.pixels()), 16), taps = y_.taps * x_.taps;
  const size_t work = map.groups * map.large_channels * taps * map.small_channels * y_.pixels * x_.pixels * batch;
  slices_ = weight_slices(blocks(), pixels_.count(), c_floats_, work, kSliceWork);
  const size_t tasks = blocks() * slices_;
  cut_for_threads(tasks, threads_for(p.threads, SIZE_MAX, work / 4), kPacking, kernels_.tile.columns, &rows_,
                  &column_block_);
  set_blocks();
  threads_ = threads_for(p.threads, blocks() * slices_, work / 4);
  slice_floats_ = slices_ > 1 ? slices_ * blocks() * c_floats_ : 0;

  // Rows: whole words, the overhang of their last run, and an odd number of cache lines apart.
  patch_stride_ = ((words + kOverhang / 2) / 16 | 1) * 16;
  patch_floats_ = rows_.largest() * patch_stride_ + kOverhang;
  panel_floats_ = round_up(div_up(column_block_, kernels_.tile.columns) * (words * kernels_.tile.columns + 16), 16);
  slab_floats_ = round_up(slab_floats(y_, x_, pixels_.at(0), rows_.channel_step) / 2 + kOverhang, 16);
  stage_floats_ = round_up(column_block_ * (words + 16) + kOverhang, 16);
  thread_floats_ = patch_floats_ + panel_floats_ + slab_floats_ + stage_floats_ + (slices_ == 1 ? c_floats_ : 0);
}

// What follows from rows_ and column_block_.
void PairWeightProduct::set_blocks() {
  row_blocks_ = rows_.count();
  tile_rows_ = even_tile_rows(rows_.largest(), kernels_.tile);
  column_blocks_ = div_up(map_.small_channels, column_block_);
  c_stride_ = round_up(column_block_, 16) + 16;
  c_floats_ = round_up(rows_.largest() * c_stride_, 16);
}

// Panels [pair of pixels][channel] of S. Pixels of a channel that do not lie side by side are brought together first.
void PairWeightProduct::pack_small(const ImageSource& small, const PixelBlock& block, size_t first, size_t columns,
                                   float* buffer, float* panels) const {
  const Tensor& t = *small.tensor;
  const size_t pixels = block.pixels(), width = block.width(), words = round_up(pairs_of(pixels), kernels_.depth_unit);
  const uint16_t* from = bf16_at(small, block.n0, first, block.u0) + block.v0;
  auto stride = static_cast<ptrdiff_t>(t.stride[2]);
  if (block.samples() > 1 || (block.rows() > 1 && t.stride[1] != width)) {
    uint16_t* const staged = reinterpret_cast<uint16_t*>(buffer);
    stride = static_cast<ptrdiff_t>(round_up(pixels, 32));
    for (size_t c = 0; c < columns; ++c) {
      uint16_t* to = staged + static_cast<ptrdiff_t>(c) * stride;
      for (size_t n = block.n0; n < block.n1; ++n) {
        const uint16_t* row = bf16_at(small, n, first + c, block.u0) + block.v0;
        if (t.stride[1] == width) {
          std::memcpy(to, row, block.rows() * width * sizeof(uint16_t));
          to += block.rows() * width;
          continue;
        }
        for (size_t u = block.u0; u < block.u1; ++u, row += t.stride[1], to += width) {
          std::memcpy(to, row, width * sizeof(uint16_t));
        }
      }
    }
    from = staged;
  }
  pack_pair_panels({strided_lens(from, FloatType::bf16, stride, 1),
                    {0, columns},
                    {0, pairs_of(pixels)},
                    pixels,
                    kernels_.depth_unit},
                   {panels, kernels_.tile.columns, words * kernels_.tile.columns + 16});
}

// Rows (l, k) of A: for every run of pixels the same run of the slab, shifted by the tap.
void PairWeightProduct::pack_large(const ImageSource& large, const PixelBlock& block, size_t first,
                                   const ChannelTaps& rows, float* buffer, float* patches) const {
  const SlabShape shape(y_, x_, block);
  const Slab slab = shape.slab(y_, x_, rows.channels());
  uint16_t* const halves = reinterpret_cast<uint16_t*>(buffer);
  const ptrdiff_t x_end = static_cast<ptrdiff_t>(x_.extent), y_end = static_cast<ptrdiff_t>(y_.extent);
  const ptrdiff_t begin = std::clamp<ptrdiff_t>(shape.column_low, 0, x_end);
  const ptrdiff_t end = std::clamp<ptrdiff_t>(shape.column_low + static_cast<ptrdiff_t>(shape.columns), begin, x_end);
  const auto lead = static_cast<size_t>(begin - shape.column_low), count = static_cast<size_t>(end - begin);
  const size_t bytes = slab.row_stride * sizeof(uint16_t);
  for (size_t n = 0; n < block.samples(); ++n) {
    for (size_t c = 0; c < rows.channels(); ++c) {
      uint16_t* to = halves + n * slab.sample_stride + c * slab.channel_stride;
      for (size_t r = 0; r < shape.rows; ++r, to += slab.row_stride) {
        const ptrdiff_t row = shape.row_low + static_cast<ptrdiff_t>(r);
        if (row < 0 || row >= y_end || count < slab.row_stride) std::memset(to, 0, bytes);
        if (row < 0 || row >= y_end) continue;
        const uint16_t* from = bf16_at(large, block.n0 + n, first + c, static_cast<size_t>(row)) + begin;
        if (shape.step == 1) {
          std::memcpy(to + lead, from, count * sizeof(uint16_t));
          continue;
        }
        if (shape.step == 2) {
          split_halves(from, lead, count, shape.phase_length, to);
          continue;
        }
        size_t phase = lead % shape.step, at = lead / shape.step;
        for (size_t i = 0; i < count; ++i) {
          to[phase * shape.phase_length + at] = from[i];
          if (++phase == shape.step) phase = 0, ++at;
        }
      }
    }
  }
  // Runs in the order of pixels: what one leaves behind its end, the next overwrites; behind the last come zeros.
  const size_t pixels = block.pixels(), taps = rows.taps(), stride = 2 * patch_stride_;
  uint16_t* const out = reinterpret_cast<uint16_t*>(patches);
  for (size_t n = 0, pixel = 0; n < block.samples(); ++n) {
    for (size_t u = 0; u < block.rows(); ++u, pixel += block.width()) {
      const uint16_t* from = halves + n * slab.sample_stride + static_cast<ptrdiff_t>(u) * slab.target_row_stride;
      for (size_t k = 0; k < taps; ++k) {
        copy_halves(from + slab.tap_offset(rows.t0 + k), slab.channel_stride, out + k * stride + pixel, taps * stride,
                    rows.channels(), block.width());
      }
    }
  }
  const size_t padded = 2 * round_up(pairs_of(pixels), kernels_.depth_unit);
  if (padded == pixels) return;
  for (size_t r = 0; r < rows.size(); ++r) std::fill(out + r * stride + pixels, out + r * stride + padded, uint16_t{0});
}

void PairWeightProduct::run_task(const ImageSource& small, const ImageSource& large, const Bf16WeightTarget& target,
                                 size_t task, float* slices, float* scratch) const {
  const size_t slice = task / blocks(), index = task % blocks();
  const size_t row_index = index % row_blocks_, column = index / row_blocks_ % column_blocks_ * column_block_;
  const size_t group = index / row_blocks_ / column_blocks_;
  const ChannelTaps rows = rows_.at(row_index);
  const size_t columns = std::min(column_block_, map_.small_channels - column);
  float *patches = scratch, *panels = patches + patch_floats_, *slab_buffer = panels + panel_floats_;
  float *stage = slab_buffer + slab_floats_, *own = stage + stage_floats_;

  GemmBlock g;
  g.rows = rows.size(), g.columns = columns;
  g.a = patches, g.b = panels;
  set_a_rows(&g, tile_rows_, static_cast<ptrdiff_t>(patch_stride_));
  g.b_stride = static_cast<ptrdiff_t>(kernels_.tile.columns);
  set_c(&g, slices_ > 1 ? slices + (slice * blocks() + index) * c_floats_ : own, c_stride_);
  const size_t pixel_blocks = pixels_.count(), end = (slice + 1) * pixel_blocks / slices_;
  for (size_t p = slice * pixel_blocks / slices_; p < end; ++p) {
    const PixelBlock block = pixels_.at(p);
    pack_large(large, block, group * map_.large_channels + rows.c0, rows, slab_buffer, patches);
    pack_small(small, block, group * map_.small_channels + column, columns, stage, panels);
    g.ahead = {};
    if (p + 1 < end) {
      g.ahead = source_ahead(large, pixels_.at(p + 1), y_, x_, group * map_.large_channels + rows.c0, rows.channels());
    }
    g.depth = pairs_of(block.pixels());
    g.b_panel_stride = static_cast<ptrdiff_t>(round_up(g.depth, kernels_.depth_unit) * kernels_.tile.columns + 16);
    kernels_.tile.block(g);
    g.accumulate = true;
  }
  if (slices_ == 1) store(target, group, row_index, column, own, 1);
}

// dW = or += the slices of one block, added in order.
void PairWeightProduct::store(const Bf16WeightTarget& target, size_t group, size_t row_index, size_t column,
                              const float* c, size_t slices) const {
  const ChannelTaps rows = rows_.at(row_index);
  const size_t columns = std::min(column_block_, map_.small_channels - column);
  const size_t slice_stride = blocks() * c_floats_;
  const ptrdiff_t first = static_cast<ptrdiff_t>(group) * target.group + static_cast<ptrdiff_t>(column) * target.small +
                          static_cast<ptrdiff_t>(rows.c0) * target.large;
  const auto taps = static_cast<ptrdiff_t>(y_.taps * x_.taps);
  const bool dense =
      target.x == 1 && target.y == static_cast<ptrdiff_t>(x_.taps) && target.large == taps && target.small > 0;
  if (dense) {
    const size_t to_stride = static_cast<size_t>(target.small);
    const ptrdiff_t at = first + static_cast<ptrdiff_t>(rows.t0);
    const TransposedSums sums{c, c_stride_, rows.size(), columns, slices, slice_stride};
    if (target.bf16) {
      store_transposed(sums, target.accumulate, target.bf16 + at, to_stride);
    } else {
      store_transposed(sums, target.accumulate, target.f32 + at, to_stride);
    }
    return;
  }
  for (size_t s = 0; s < columns; ++s) {
    const float* from = c + s;
    for (size_t l = 0; l < rows.channels(); ++l) {
      for (size_t t = rows.t0; t < rows.t1; ++t, from += c_stride_) {
        float sum = *from;
        for (size_t i = 1; i < slices; ++i) sum += from[i * slice_stride];
        const ptrdiff_t at = first + static_cast<ptrdiff_t>(s) * target.small +
                             static_cast<ptrdiff_t>(l) * target.large + static_cast<ptrdiff_t>(t / x_.taps) * target.y +
                             static_cast<ptrdiff_t>(t % x_.taps) * target.x;
        target.put(at, sum);
      }
    }
  }
}

void PairWeightProduct::run(const ImageSource& small, const ImageSource& large, const Bf16WeightTarget& target,
                            void* workspace) const {
  float* slices = static_cast<float*>(workspace);
  float* scratch = slices + slice_floats_;
  parallel_for(blocks() * slices_, threads_, [&](size_t task, size_t worker) {
    run_task(small, large, target, task, slices, scratch + worker * thread_floats_);
  });
  if (slices_ == 1) return;
  parallel_for(blocks(), threads_for(threads_, blocks(), blocks() * c_floats_ * slices_), [&](size_t index, size_t) {
    store(target, index / row_blocks_ / column_blocks_, index % row_blocks_,
          index / row_blocks_ % column_blocks_ * column_block_, slices + index * c_floats_, slices_);
  });
}

}  // namespace bnns
