// PairPatchProduct: implicit GEMM on pairs of channels, built as PatchProduct is (convolution/gemm/patches.h).
//
// A word is (channel 2c, channel 2c + 1) of one pixel or of one weight, and depth is (c, tap). A block's slab is made
// of words, so patches are cut from it by the same copies as from floats, at half the bytes per channel. 1x1 maps
// without stride or padding skip the slab: their panels are two rows of pixels interleaved.

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/bf16/bf16.h"
#include "src/ops/convolution/common/gemm_block.h"
#include "src/ops/convolution/common/kernels.h"
#include "src/ops/convolution/common/weights.h"
#include "src/ops/convolution/winograd/gather.h"
#include "src/simd/convert.h"

namespace bnns {
namespace {

constexpr size_t kDepthBlock = 512;        // words: a tile of A is 28 KB, a panel of patches 64 KB
constexpr size_t kPixels = 256;            // of a block: its patches are half a megabyte
constexpr size_t kStagedFloats = 1 << 17;  // sums of a block: half a megabyte, else fewer rows
constexpr size_t kSlack = 16;              // floats behind a panel (pack.h)
constexpr size_t kStreamBytes = 16 << 20;  // results of that size leave by non-temporal stores

}  // namespace

// A block's pieces: f(piece, pixels of the block before it). Returns the block's pixels.
template <class F>
size_t PairPatchProduct::for_each_piece(size_t block, F&& f) const {
  if (block_rows_ == 0) {
    const PixelBlock piece = pieces_.at(block);
    f(piece, size_t{0});
    return piece.pixels();
  }
  const size_t begin = block * block_rows_, end = std::min(batch_ * y_.pixels, begin + block_rows_);
  for (size_t row = begin; row < end;) {
    const size_t n = row / y_.pixels, u = row % y_.pixels, rows = std::min(y_.pixels - u, end - row);
    f(PixelBlock{n, n + 1, u, u + rows, 0, x_.pixels}, (row - begin) * x_.pixels);
    row += rows;
  }
  return (end - begin) * x_.pixels;
}

size_t PairPatchProduct::block_count() const {
  return block_rows_ ? div_up(batch_ * y_.pixels, block_rows_) : pieces_.count();
}

// Pairs double the rate of a product; Winograd's algorithm saves three quarters of it for 3x3. AMX is faster than both.
bool accepts_bf16_patches(const PatchMap& p) {
  const Isa set = isa();
  if (!p.bf16 || !p.has_taps() || p.target.sink) return false;
  const bool same_size = p.map.y.kernel == 3 && p.map.y.stride == 1 && p.map.x.stride == 1;
  return set == Isa::amx || !same_size || !accepts_winograd_gather(p);
}

void run_bf16_patches(const PatchMap& p, CallScratch& scratch) {
  const PairPatchProduct product(p, p.weights->bf16(), pair_isa());
  CallScratch::Lease workspace(scratch, product.workspace_bytes());
  if (!scratch.measuring()) product.run(p.source, workspace.data());
}

PairPatchProduct::PairPatchProduct(const PatchMap& p, const Bf16Weights& weights, Isa isa)
    : y_(p.y),
      x_(p.x),
      groups_(p.groups()),
      rows_(p.rows),
      channels_(p.channels),
      batch_(p.batch),
      weights_(weights),
      row_stride_(p.row_stride(weights)),
      channel_stride_(p.channel_stride(weights)),
      target_(p.target),
      kernels_(pair_kernels(isa)) {
  const PatchAxis &y = y_, &x = x_;
  const size_t groups = groups_, rows = rows_, batch = batch_;
  const size_t panel = kernels_.tile.columns, pairs = pairs_of(channels_), taps = p.taps();
  tile_rows_ = even_tile_rows(rows, kernels_.tile);
  tiles_ = div_up(rows, tile_rows_);
  choose_blocks(panel);
  depth_ = ChannelTapBlocks(y, x, pairs, kDepthBlock, pieces_);
  a_row_stride_ = pair_row_stride(depth_.largest());
  a_panel_ = tile_rows_ * a_row_stride_;
  b_panel_ = round_up(depth_.largest(), kernels_.depth_unit) * panel + kSlack;
  packed_floats_ = round_up(groups * depth_.count() * tiles_ * a_panel_, 16);

  // Enough tasks for the threads; rows are split where pixel blocks are few or their sums would leave the cache,
  // because each part packs patches anew.
  const size_t pixel_blocks = block_count(), work = groups * rows * pairs * taps * y.pixels * x.pixels * batch;
  threads_ = threads_for(p.threads, groups * pixel_blocks * tiles_, work / 2);
  c_stride_ = round_up(block_pixels_, panel) + 16;
  row_blocks_ = div_up(tiles_ * tile_rows_ * c_stride_, kStagedFloats);
  if (threads_ > 1) row_blocks_ = std::max(row_blocks_, std::min(tiles_, div_up(2 * threads_, groups * pixel_blocks)));
  tiles_per_task_ = div_up(tiles_, std::min(tiles_, row_blocks_));
  row_blocks_ = div_up(tiles_, tiles_per_task_);

  b_floats_ = round_up(div_up(block_pixels_, panel) * b_panel_, 16);
  slab_floats_ = round_up(slab_floats(y, x, pieces_.at(0), depth_.channel_step), 16) + 32;
  thread_floats_ = b_floats_ + slab_floats_ + round_up(tiles_per_task_ * tile_rows_ * c_stride_, 16);
}

// Rows of whole samples one after the other, as many as fill panels best; pieces of a row where rows are long or their
// slab is large.
void PairPatchProduct::choose_blocks(size_t panel) {
  block_rows_ = 0;
  pieces_ = make_pixel_blocks(y_, x_, batch_, kPixels, panel, true);
  if (pieces_.width == x_.pixels) {
    double best_share = 0;
    for (size_t rows = std::max<size_t>(1, kPixels / 2 / x_.pixels); rows * x_.pixels <= kPixels * 5 / 4; ++rows) {
      const size_t pixels = rows * x_.pixels;
      const double share = static_cast<double>(pixels) / static_cast<double>(round_up(pixels, panel));
      if (share >= best_share - 0.01) block_rows_ = rows, best_share = std::max(share, best_share);
    }
    PixelBlocks largest = pieces_;
    largest.samples = 1, largest.rows = std::min(block_rows_, y_.pixels);
    if (block_rows_ && slab_floats(y_, x_, largest.at(0), 1) <= kSlabFloats) {
      pieces_ = largest;
      block_rows_ = std::min(block_rows_, batch_ * y_.pixels);
    } else {
      block_rows_ = 0;
    }
  }
  block_pixels_ = block_rows_ ? block_rows_ * x_.pixels : pieces_.pixels();
}

void PairPatchProduct::pack_weight_tile(size_t group, size_t block, size_t first_row, float* to) const {
  const ChannelTaps depth = depth_.at(block);
  const size_t rows = std::min(tile_rows_, rows_ - first_row), taps = depth.taps(), words = depth.size();
  const uint16_t* base =
      weights_.data + static_cast<ptrdiff_t>(group) * weights_.group + static_cast<ptrdiff_t>(first_row) * row_stride_ +
      static_cast<ptrdiff_t>(y_.kernel_first) * weights_.y + static_cast<ptrdiff_t>(x_.kernel_first) * weights_.x;
  const ptrdiff_t y_step = static_cast<ptrdiff_t>(y_.kernel_step) * weights_.y;
  const ptrdiff_t x_step = static_cast<ptrdiff_t>(x_.kernel_step) * weights_.x;
  const size_t padded = round_up(words, kernels_.depth_unit);
  if (taps == 1 && y_.taps * x_.taps == 1) {
    pack_pair_rows({strided_lens(base, FloatType::bf16, row_stride_, channel_stride_),
                    {0, rows},
                    {depth.c0, depth.c1},
                    channels_,
                    kernels_.depth_unit},
                   {to, tile_rows_, a_panel_}, a_row_stride_);
    return;
  }
  const bool in_order = taps == y_.taps * x_.taps && x_step == 1 && y_step == static_cast<ptrdiff_t>(x_.taps);
  for (size_t c = depth.c0; c < depth.c1; ++c) {
    const bool both = 2 * c + 1 < channels_;
    const uint16_t* a = base + static_cast<ptrdiff_t>(2 * c) * channel_stride_;
    float* const words_of_c = to + (c - depth.c0) * taps;
    if (in_order) {
      interleave_rows(a, both ? a + channel_stride_ : nullptr, row_stride_, rows, taps, words_of_c, a_row_stride_);
      continue;
    }
    for (size_t r = 0; r < rows; ++r, a += row_stride_) {
      float* word = words_of_c + r * a_row_stride_;
      for (size_t t = depth.t0; t < depth.t1; ++t, ++word) {
        const uint16_t* at =
            a + static_cast<ptrdiff_t>(t / x_.taps) * y_step + static_cast<ptrdiff_t>(t % x_.taps) * x_step;
        const uint32_t bits = *at | (both ? uint32_t{at[channel_stride_]} << 16 : 0u);
        std::memcpy(word, &bits, sizeof(bits));
      }
    }
  }
  for (size_t r = 0; r < rows; ++r) std::fill(to + r * a_row_stride_ + words, to + r * a_row_stride_ + padded, 0.0f);
}

// The patches of a piece, in columns first_column, first_column + 1, ... of the block's panels.
void PairPatchProduct::pack_piece(const ImageSource& source, const ChannelTaps& depth, const PixelBlock& block,
                                  size_t first_column, size_t group, float* slab_buffer, float* panels) const {
  const size_t panel = kernels_.tile.columns, pixels = block.pixels(), channel0 = group * channels_;
  const Tensor& t = *source.tensor;
  const bool single = y_.taps * x_.taps == 1 && y_.step == 1 && x_.step == 1 && y_.offset == 0 && x_.offset == 0 &&
                      y_.pixels <= y_.extent && x_.pixels <= x_.extent;
  if (single && first_column % panel == 0 && block.samples() == 1 &&
      (block.rows() == 1 || block.width() == t.stride[1])) {
    const uint16_t* from = bf16_at(source, block.n0, channel0, block.u0) + block.v0;
    pack_pair_panels({strided_lens(from, FloatType::bf16, 1, static_cast<ptrdiff_t>(t.stride[2])),
                      {0, pixels},
                      {depth.c0, depth.c1},
                      channels_,
                      kernels_.depth_unit},
                     {panels + first_column / panel * b_panel_, panel, b_panel_});
    return;
  }

  const SlabShape shape(y_, x_, block);
  Slab slab = shape.slab(y_, x_, depth.channels());
  slab.data = slab_buffer;
  fill_word_slab(source, y_, x_, block, {channel0, channels_, depth.c0, depth.c1}, slab, true, slab_buffer);
  PatchRange range{&slab, depth.channels(), depth.t0, depth.t1, block.rows(), block.width(), 0, 0};
  for (size_t j = 0; j < pixels; j += range.pixels) {
    const size_t column = first_column + j;
    range.first = j;
    range.pixels = std::min(panel - column % panel, pixels - j);
    pack_patches(range, panel, panels + column / panel * b_panel_ + column % panel);
  }
}

void PairPatchProduct::run_task(const ImageSource& source, size_t task, const float* packed, float* scratch) const {
  const size_t pixel_blocks = block_count(), depth_blocks = depth_.count(), panel = kernels_.tile.columns;
  const size_t part = task % row_blocks_, group = task / row_blocks_ / pixel_blocks;
  const size_t block = task / row_blocks_ % pixel_blocks;
  const size_t tile0 = part * tiles_per_task_, row0 = tile0 * tile_rows_;
  float *panels = scratch, *slab_buffer = panels + b_floats_, *staged = slab_buffer + slab_floats_;

  GemmBlock g;
  g.rows = std::min(rows_ - row0, tiles_per_task_ * tile_rows_), g.tile_rows = tile_rows_;
  g.a_depth_contiguous = true;
  g.a_stride = static_cast<ptrdiff_t>(a_row_stride_);
  g.a_tile_stride = static_cast<ptrdiff_t>(a_panel_);
  g.b = panels;
  set_b_panels(&g, panel, b_panel_);
  set_c(&g, staged, c_stride_);
  if (uint16_t* const to = direct_target(block, group * rows_ + row0)) {
    g.c_bf16 = to;
    g.c_stride = target_.tensor->stride[2];
    g.stream = batch_ * target_.batch_stride * sizeof(uint16_t) >= kStreamBytes && g.c_stride % 32 == 0 &&
               reinterpret_cast<uintptr_t>(to) % 64 == 0;
  }
  // The next block's source, which the other threads may get as well; with several depth blocks it is here by then.
  if (depth_blocks == 1 && block + 1 < pixel_blocks) {
    for_each_piece(block + 1, [&](const PixelBlock& piece, size_t) {
      g.ahead = source_ahead(source, piece, y_, x_, group * channels_, channels_);
    });
  }
  for (size_t b = 0; b < depth_blocks; ++b) {
    const ChannelTaps depth = depth_.at(b);
    g.columns = for_each_piece(block, [&](const PixelBlock& piece, size_t first_column) {
      pack_piece(source, depth, piece, first_column, group, slab_buffer, panels);
    });
    g.depth = depth.size();
    for (size_t j = 0, padded = round_up(g.depth, kernels_.depth_unit); j < div_up(g.columns, panel); ++j) {
      std::fill(panels + j * b_panel_ + g.depth * panel, panels + j * b_panel_ + padded * panel, 0.0f);
    }
    g.a = packed + ((group * depth_blocks + b) * tiles_ + tile0) * a_panel_;
    kernels_.tile.block(g);
    g.accumulate = true;
  }
  for (size_t r = 0; r < g.rows && !g.c_bf16; ++r) {
    for_each_piece(block, [&](const PixelBlock& piece, size_t first_column) {
      finish(piece, group * rows_ + row0 + r, staged + r * c_stride_ + first_column);
    });
  }
}

// Where a block's sums can go as the kernel rounds them, or null: all of a sum is made at once, nothing is added to it,
// and its pixels lie side by side in the target.
uint16_t* PairPatchProduct::direct_target(size_t block, size_t channel) const {
  const Tensor& t = *target_.tensor;
  if (depth_.count() > 1 || target_.bias || !target_.activation.is_identity() || target_.accumulate ||
      t.type != BNNSDataTypeBFloat16 || t.stride[0] != 1 || x_.target_step != 1 || y_.target_step != 1) {
    return nullptr;
  }
  PixelBlock first;
  size_t pieces = 0;
  for_each_piece(block, [&](const PixelBlock& piece, size_t) {
    if (pieces++ == 0) first = piece;
  });
  if (pieces > 1 || first.samples() > 1 || (first.rows() > 1 && first.width() != t.stride[1])) return nullptr;
  return static_cast<uint16_t*>(target_.data) + first.n0 * target_.batch_stride + channel * t.stride[2] +
         first.u0 * t.stride[1] + first.v0;
}

// Bias and activation on one channel of a finished block, then to the target.
void PairPatchProduct::finish(const PixelBlock& block, size_t channel, float* values) const {
  finish_values(target_, channel, values, block.pixels());
  const Tensor& t = *target_.tensor;
  const size_t run = block.rows() * block.width();
  if (t.type == BNNSDataTypeBFloat16 && !target_.accumulate && t.stride[0] == 1 && x_.target_step == 1 &&
      y_.target_step == 1 && (block.rows() == 1 || block.width() == t.stride[1])) {
    for (size_t n = block.n0; n < block.n1; ++n, values += run) {
      float_to_bfloat16(values,
                        static_cast<uint16_t*>(target_.data) + n * target_.batch_stride + channel * t.stride[2] +
                            block.u0 * t.stride[1] + block.v0,
                        run);
    }
    return;
  }
  store_block(target_, y_, x_, block, channel, values);
}

void PairPatchProduct::run(const ImageSource& source, void* workspace) const {
  float* packed = static_cast<float*>(workspace);
  float* scratch = packed + packed_floats_;
  const size_t blocks = depth_.count(), tasks = groups_ * blocks * tiles_;
  parallel_for(tasks, threads_for(threads_, tasks, tasks * a_panel_), [&](size_t task, size_t) {
    const size_t tile = task % tiles_, block = task / tiles_ % blocks, group = task / tiles_ / blocks;
    pack_weight_tile(group, block, tile * tile_rows_, packed + task * a_panel_);
  });
  parallel_for(groups_ * block_count() * row_blocks_, threads_,
               [&](size_t task, size_t worker) { run_task(source, task, packed, scratch + worker * thread_floats_); });
}

}  // namespace bnns
