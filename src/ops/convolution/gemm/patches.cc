// Patch maps as a matrix product, and pairs of phases that are written together.

#include "src/ops/convolution/gemm/patches.h"

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/gemm/pack.h"
#include "src/ops/convolution/common/fill.h"
#include "src/ops/convolution/common/gemm_block.h"
#include "src/ops/convolution/common/kernels.h"
#include "src/ops/convolution/common/weights.h"
#include "src/simd/prefetch.h"

namespace bnns {
namespace {

constexpr size_t kDepthBlock = 512;    // of k: a tile of A is 28 KB, a panel of patches 64 KB
constexpr size_t kPixels = 256;        // of a block: its patches are half a megabyte, its slab usually less
constexpr size_t kFewPixels = 128;     // in all: a block is a panel, so that threads share them out
constexpr size_t kTaskTiles = 4;       // of rows, which repay patches that another task packs too
constexpr size_t kStagedRows = 448;    // rows of a block that is not written in place: 448 KB
constexpr size_t kDirectPixels = 256;  // so few pixels do not repay packed weights
constexpr size_t kSinkSamples = 64;    // of a part for a sink, at most
constexpr size_t kSlack = 16;          // floats behind a panel (pack.h)

// Prefetches a piece of a row that will be written soon: rows of a block are too short for the hardware to foresee.
void fetch_row(const ImageTarget& target, size_t sample, size_t channel, size_t row, size_t first, size_t count) {
  if (!target.plain() || channel >= target.tensor->size[2]) return;
  const float* at = target.at(sample, channel, row, first);
  for (size_t i = 0; i < count; i += 16) prefetch_to_write(at + i);
}

}  // namespace

void run_gemm_patches(const PatchMap& p, CallScratch& scratch) {
  if (!p.has_taps()) return run_fill(p, scratch);  // where BNNS_SKIP leaves that out
  const PatchProduct product(p);
  CallScratch::Lease workspace(scratch, product.workspace_bytes());
  if (!scratch.measuring()) product.run(p.source, workspace.data());
}

SinkParts gemm_patches_parts(const PatchMap& p) {
  return p.has_taps() ? PatchProduct(p).sink_parts() : SinkParts{};
}

PatchProduct::PatchProduct(const PatchMap& p)
    : y_(p.y),
      x_(p.x),
      groups_(p.groups()),
      rows_(p.rows),
      channels_(p.channels),
      weights_(f32_weights(p.weights)),
      row_stride_(p.row_stride(weights_)),
      channel_stride_(p.channel_stride(weights_)),
      target_(p.target),
      kernels_(tile_kernels(isa())) {
  const PatchAxis &y = y_, &x = x_;
  const size_t groups = groups_, rows = rows_, batch = p.batch;
  tile_rows_ = even_tile_rows(rows, kernels_);
  tiles_ = div_up(rows, tile_rows_);
  panel_columns_ = kernels_.columns;
  const bool few_pixels = batch * y.pixels * x.pixels <= kFewPixels;
  pixels_ = make_pixel_blocks(y, x, batch, few_pixels ? panel_columns_ : kPixels, panel_columns_, true);
  if (pixels_.samples > kSinkSamples) pixels_.samples = pixels_.samples / kSinkSamples * kSinkSamples;
  depth_ = ChannelTapBlocks(y, x, channels_, kDepthBlock, pixels_);
  a_panel_ = round_up(depth_.largest() * tile_rows_, 16) + kSlack;
  b_panel_ = depth_.largest() * panel_columns_ + kSlack;

  // Weights whose rows are contiguous in k are read in place where few pixels use them.
  const size_t taps = p.taps();
  const bool contiguous = weights_.x == 1 && weights_.y == static_cast<ptrdiff_t>(x.taps) &&
                          channel_stride_ == static_cast<ptrdiff_t>(taps) && x.kernel_step == 1 && y.kernel_step == 1 &&
                          x.kernel_first == 0 && y.kernel_first == 0;
  a_direct_ = contiguous && batch * y.pixels * x.pixels <= kDirectPixels;
  packed_floats_ = a_direct_ ? 0 : round_up(groups * depth_.count() * tiles_ * a_panel_, 16);

  const PixelBlock largest = pixels_.at(0);
  const bool staged = !writes_direct(largest);
  const size_t pixel_blocks = pixels_.count();
  // Enough tasks for the threads: rows are split only where pixel blocks are few, because each part packs patches anew.
  const size_t work = groups * rows * channels_ * taps * y.pixels * x.pixels * batch;
  threads_ = threads_for(p.threads, groups * pixel_blocks * tiles_, work / 2);
  row_blocks_ = 1;
  if (threads_ > 1) {
    const size_t least = div_up(threads_, groups * pixel_blocks), most = div_up(2 * threads_, groups * pixel_blocks);
    row_blocks_ = std::min(tiles_, std::clamp(tiles_ / kTaskTiles, least, most));
  }
  if (staged) row_blocks_ = std::max(row_blocks_, div_up(rows, kStagedRows));
  tiles_per_task_ = div_up(tiles_, row_blocks_);
  row_blocks_ = div_up(tiles_, tiles_per_task_);

  b_floats_ = round_up(div_up(pixels_.pixels(), panel_columns_) * b_panel_, 16);
  slab_floats_ = round_up(slab_floats(y, x, largest, depth_.channel_step), 16);
  c_stride_ = round_up(pixels_.pixels(), panel_columns_) + 16;
  c_floats_ = staged ? round_up(tiles_per_task_ * tile_rows_ * c_stride_, 16) : 0;
  thread_floats_ = b_floats_ + slab_floats_ + c_floats_;
}

// The target's pixels of a block lie side by side in memory.
bool PatchProduct::writes_direct(const PixelBlock& b) const {
  const bool whole_rows = b.rows() == 1 || (b.width() == x_.pixels && target_.tensor->stride[1] == x_.pixels);
  return target_.in_place() && x_.target_step == 1 && y_.target_step == 1 && pixels_.samples == 1 && whole_rows;
}

void PatchProduct::pack_weight_tile(size_t group, size_t block, size_t first_row, float* to) const {
  const ChannelTaps depth = depth_.at(block);
  const size_t rows = std::min(tile_rows_, rows_ - first_row), taps = depth.taps();
  const float* base =
      weights_.data + static_cast<ptrdiff_t>(group) * weights_.group + static_cast<ptrdiff_t>(first_row) * row_stride_ +
      static_cast<ptrdiff_t>(depth.c0) * channel_stride_ + static_cast<ptrdiff_t>(y_.kernel_first) * weights_.y +
      static_cast<ptrdiff_t>(x_.kernel_first) * weights_.x;
  const ptrdiff_t y_step = static_cast<ptrdiff_t>(y_.kernel_step) * weights_.y;
  const ptrdiff_t x_step = static_cast<ptrdiff_t>(x_.kernel_step) * weights_.x;
  const bool all_taps = taps == y_.taps * x_.taps;
  if (all_taps && (taps == 1 || (x_step == 1 && y_step == static_cast<ptrdiff_t>(x_.taps) &&
                                 channel_stride_ == static_cast<ptrdiff_t>(taps)))) {
    const ptrdiff_t depth_stride = taps == 1 ? channel_stride_ : 1;
    pack_strided(strided_lens(base, FloatType::f32, row_stride_, depth_stride), {0, rows}, {0, depth.size()},
                 {to, tile_rows_, a_panel_});
    return;
  }
  for (size_t c = 0; c < depth.channels(); ++c) {
    for (size_t t = 0; t < taps; ++t) {
      const size_t tap = depth.t0 + t;
      const float* from = base + static_cast<ptrdiff_t>(c) * channel_stride_ +
                          static_cast<ptrdiff_t>(tap / x_.taps) * y_step +
                          static_cast<ptrdiff_t>(tap % x_.taps) * x_step;
      float* out = to + (c * taps + t) * tile_rows_;
      for (size_t r = 0; r < rows; ++r, from += row_stride_) out[r] = *from;
    }
  }
}

void PatchProduct::pack_weights(float* to) const {
  const size_t blocks = depth_.count(), tasks = groups_ * blocks * tiles_;
  parallel_for(tasks, threads_for(threads_, tasks, tasks * a_panel_), [&](size_t task, size_t) {
    const size_t tile = task % tiles_, block = task / tiles_ % blocks, group = task / tiles_ / blocks;
    pack_weight_tile(group, block, tile * tile_rows_, to + task * a_panel_);
  });
}

void PatchProduct::pack_panels(const ImageSource& source, const ChannelTaps& depth, const PixelBlock& block,
                               size_t group, float* slab_buffer, float* panels) const {
  const Slab slab = make_slab(source, y_, x_, block, group * channels_ + depth.c0, depth.channels(), slab_buffer);
  PatchRange range{&slab, depth.channels(), depth.t0, depth.t1, block.rows(), block.width(), 0, 0};
  const size_t pixels = block.pixels();
  for (size_t j = 0; j < pixels; j += panel_columns_, panels += b_panel_) {
    range.first = j;
    range.pixels = std::min(panel_columns_, pixels - j);
    pack_patches(range, panel_columns_, panels);
  }
}

PatchProduct::Part PatchProduct::part_at(size_t task) const {
  const size_t pixel_blocks = pixels_.count(), first = task % row_blocks_ * tiles_per_task_ * tile_rows_;
  return {pixels_.at(task / row_blocks_ % pixel_blocks), task / row_blocks_ / pixel_blocks, first,
          std::min(rows_ - first, tiles_per_task_ * tile_rows_)};
}

float* PatchProduct::multiply(const ImageSource& source, const Part& part, const float* packed, float* scratch,
                              float* staged, size_t* stride) const {
  const size_t depth_blocks = depth_.count();
  const PixelBlock& block = part.block;
  float *panels = scratch, *slab_buffer = panels + b_floats_;

  GemmBlock g;
  g.rows = part.rows;
  g.columns = block.pixels();
  g.b = panels;
  set_b_panels(&g, panel_columns_, b_panel_);
  set_c(&g, staged, c_stride_);
  if (writes_direct(block)) {
    set_c(&g, target_.at(block.n0, part.group * rows_ + part.first_row, block.u0, block.v0), target_.tensor->stride[2]);
    g.c_far = true;
  }
  for (size_t b = 0; b < depth_blocks; ++b) {
    const ChannelTaps depth = depth_.at(b);
    pack_panels(source, depth, block, part.group, slab_buffer, panels);
    g.depth = depth.size();
    if (a_direct_) {
      g.a = weights_.data + static_cast<ptrdiff_t>(part.group) * weights_.group +
            static_cast<ptrdiff_t>(part.first_row) * row_stride_ + static_cast<ptrdiff_t>(depth.c0) * channel_stride_ +
            static_cast<ptrdiff_t>(depth.t0);
      set_a_rows(&g, tile_rows_, row_stride_);
    } else {
      g.a = packed + ((part.group * depth_blocks + b) * tiles_ + part.first_row / tile_rows_) * a_panel_;
      set_a_tiles(&g, tile_rows_, a_panel_);
    }
    kernels_.block(g);
    g.accumulate = true;
  }
  *stride = g.c_stride;
  return g.c;
}

void PatchProduct::run_task(const ImageSource& source, size_t task, const float* packed, float* scratch) const {
  const Part part = part_at(task);
  const PixelBlock& block = part.block;
  const size_t first_channel = part.group * rows_ + part.first_row;
  size_t stride;
  float* values = multiply(source, part, packed, scratch, scratch + b_floats_ + slab_floats_, &stride);
  const bool direct = writes_direct(block);
  for (size_t r = 0; r < part.rows; ++r) finish(block, first_channel + r, values + r * stride, direct);
  if (target_.sink) {
    target_.sink->take(target_.sink->context,
                       {block.n0, block.n1, first_channel, part.rows, block.u0 * x_.pixels + block.v0,
                        block.rows() * block.width(), values, block.rows() * block.width(), stride});
  }
}

// Blocks are runs of pixels unless the map is one of several phases, or pieces of rows do not divide a row.
SinkParts PatchProduct::sink_parts() const {
  const bool phases = x_.target_step != 1 || y_.target_step != 1;
  if (phases || (pixels_.width < x_.pixels && x_.pixels % pixels_.width != 0)) return {};
  return {std::min(pixels_.samples, kSinkSamples), pixels_.rows * pixels_.width};
}

// Bias and activation on one channel of a finished block, then to the target.
void PatchProduct::finish(const PixelBlock& block, size_t channel, float* values, bool direct) const {
  finish_values(target_, channel, values, block.pixels());
  if (direct || target_.only_sink()) return;
  store_block(target_, y_, x_, block, channel, values);
}

void PatchProduct::run(const ImageSource& source, void* workspace) const {
  float* packed = static_cast<float*>(workspace);
  float* scratch = packed + packed_floats_;
  if (!a_direct_) pack_weights(packed);
  parallel_for(groups_ * pixels_.count() * row_blocks_, threads_,
               [&](size_t task, size_t worker) { run_task(source, task, packed, scratch + worker * thread_floats_); });
}

bool PatchProduct::can_pair(const PatchProduct* even, const PatchProduct* odd) {
  if (!even || !odd) return true;
  const PixelBlocks &a = even->pixels_, &b = odd->pixels_;
  return a.length == b.length && a.samples == b.samples && a.rows == b.rows && a.width == b.width &&
         even->tiles_per_task_ == odd->tiles_per_task_ && even->threads_ == odd->threads_;
}

size_t PatchProduct::pair_bytes(const PatchProduct* even, const PatchProduct* odd) {
  size_t shared = 0, own = 0, packed = 0;
  for (const PatchProduct* p : {even, odd}) {
    const PatchProduct& sizes = *(p ? p : p == even ? odd : even);
    shared = std::max(shared, sizes.b_floats_ + sizes.slab_floats_);
    own += sizes.c_floats_;
    packed += p ? p->packed_floats_ : 0;
  }
  const PatchProduct& any = *(even ? even : odd);
  return scratch_bytes(any.threads_, shared + own + round_up(2 * any.pixels_.width, 16), packed);
}

void PatchProduct::run_pair(const PatchProduct* even, const PatchProduct* odd, bool fill_next_row,
                            const ImageSource& source, void* workspace) {
  const PatchProduct* const phases[] = {even, odd};
  const PatchProduct& any = *(even ? even : odd);
  const ImageTarget& target = any.target_;
  float* packed[2];
  float* scratch = static_cast<float*>(workspace);
  size_t shared = 0;
  for (size_t k = 0; k < 2; ++k) {
    packed[k] = scratch;
    if (!phases[k]) continue;
    scratch += phases[k]->packed_floats_;
    if (!phases[k]->a_direct_) phases[k]->pack_weights(packed[k]);
    shared = std::max(shared, phases[k]->b_floats_ + phases[k]->slab_floats_);
  }
  const size_t row_floats = round_up(2 * any.pixels_.width, 16), own = shared + 2 * any.c_floats_ + row_floats;
  const size_t tasks = any.groups_ * any.pixels_.count() * any.row_blocks_;
  parallel_for(tasks, any.threads_, [&](size_t task, size_t worker) {
    const Part part = any.part_at(task);
    const PixelBlock& block = part.block;
    const size_t width = block.width(), pixels = block.pixels();
    float *buffer = scratch + worker * own, *staged = buffer + shared, *row = staged + 2 * any.c_floats_;
    float* values[2];
    size_t stride = 0;
    for (size_t k = 0; k < 2; ++k) {
      values[k] = staged + k * any.c_floats_;
      if (phases[k]) phases[k]->multiply(source, part, packed[k], buffer, values[k], &stride);
    }
    for (size_t r = 0; r < part.rows; ++r) {
      const size_t channel = part.group * any.rows_ + part.first_row + r;
      for (size_t k = 0; k < 2; ++k) {
        if (!phases[k]) std::fill_n(values[k] + r * stride, pixels, 0.0f);
        finish_values(target, channel, values[k] + r * stride, pixels);
      }
      const float *a = values[0] + r * stride, *b = values[1] + r * stride;
      for (size_t n = block.n0; n < block.n1; ++n) {
        for (size_t u = block.u0; u < block.u1; ++u, a += width, b += width) {
          const size_t at = any.y_.target_first + u * any.y_.target_step;
          fetch_row(target, n, channel + 1, at, 2 * block.v0, 2 * width);
          if (target.plain()) {
            interleave(a, b, width, target.at(n, channel, at, 2 * block.v0));
          } else {
            interleave(a, b, width, row);
            store_run(target, n, channel, at, 2 * block.v0, 1, row, 2 * width);
          }
          if (!fill_next_row || at + 1 >= target.tensor->size[1]) continue;
          fetch_row(target, n, channel + 1, at + 1, 2 * block.v0, 2 * width);
          std::fill_n(row, 2 * width, 0.0f);
          finish_values(target, channel, row, 2 * width);
          store_run(target, n, channel, at + 1, 2 * block.v0, 1, row, 2 * width);
        }
      }
    }
  });
}

}  // namespace bnns
