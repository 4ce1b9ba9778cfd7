#include "src/ops/convolution/convolution_product.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/convert.h"
#include "src/core/elements.h"
#include "src/core/parallel.h"
#include "src/gemm/pack.h"
#include "src/ops/convolution/convolution_kernels.h"

namespace bnns {
namespace {

constexpr size_t kDepthBlock = 512;         // of k: a tile of A is 28 KB, a panel of patches 64 KB
constexpr size_t kPixels = 256;             // of a block: its patches are half a megabyte, its slab usually less
constexpr size_t kSlabFloats = 192 * 1024;  // 768 KB; fewer channels at a time where rows are long
constexpr size_t kStagedRows = 448;         // rows of a block that is not written in place: 448 KB
constexpr size_t kDirectPixels = 256;       // so few pixels do not repay packed weights
constexpr size_t kSinkSamples = 64;         // of a part for a sink, at most
constexpr size_t kSlack = 16;               // floats behind a panel (pack.h)

}  // namespace

PatchProduct::PatchProduct(const PatchAxis& y, const PatchAxis& x, size_t groups, size_t rows, size_t channels,
                           const WeightView& weights, ptrdiff_t row_stride, ptrdiff_t channel_stride, size_t batch,
                           const ImageTarget& target, size_t threads)
    : y_(y),
      x_(x),
      groups_(groups),
      rows_(rows),
      channels_(channels),
      weights_(weights),
      row_stride_(row_stride),
      channel_stride_(channel_stride),
      batch_(batch),
      target_(target),
      kernels_(tile_kernels(isa())) {
  tile_rows_ = div_up(rows, div_up(rows, kernels_.rows));
  tiles_ = div_up(rows, tile_rows_);
  panel_columns_ = kernels_.columns;
  plan_blocks();

  const size_t taps = y.taps * x.taps;
  if (taps <= kDepthBlock) {
    tap_block_ = taps;
    channel_block_ = std::min(channels, kDepthBlock / taps);
    const PixelBlock largest = pixel_block(0);
    while (channel_block_ > 1 && slab_floats(y, x, largest, channel_block_) > kSlabFloats) --channel_block_;
    channel_block_ = div_up(channels, div_up(channels, channel_block_));  // even blocks
    depth_blocks_ = div_up(channels, channel_block_);
  } else {
    channel_block_ = 1;
    tap_block_ = div_up(taps, div_up(taps, kDepthBlock));
    depth_blocks_ = channels * div_up(taps, tap_block_);
  }
  const size_t depth = channel_block_ * tap_block_;
  a_panel_ = round_up(depth * tile_rows_, 16) + kSlack;
  b_panel_ = depth * panel_columns_ + kSlack;

  // Weights whose rows are contiguous in k are read in place where few pixels use them.
  const bool contiguous = weights.x == 1 && weights.y == static_cast<ptrdiff_t>(x.taps) &&
                          channel_stride == static_cast<ptrdiff_t>(taps) && x.kernel_step == 1 && y.kernel_step == 1;
  a_direct_ = contiguous && batch * y.pixels * x.pixels <= kDirectPixels;
  packed_floats_ = a_direct_ ? 0 : round_up(groups * depth_blocks_ * tiles_ * a_panel_, 16);

  const PixelBlock largest = pixel_block(0);
  const bool staged = !writes_direct(largest);
  const size_t pixels = block_samples_ * block_rows_ * block_width_;
  // Enough tasks for the threads: rows are split only where pixel blocks are few, because each part packs patches anew.
  const size_t work = groups * rows * channels * taps * y.pixels * x.pixels * batch;
  threads_ = threads_for(threads, groups * pixel_blocks_ * tiles_, work / 2);
  row_blocks_ = 1;
  if (threads_ > 1) row_blocks_ = std::min(tiles_, div_up(2 * threads_, groups * pixel_blocks_));
  if (staged) row_blocks_ = std::max(row_blocks_, div_up(rows, kStagedRows));
  tiles_per_task_ = div_up(tiles_, row_blocks_);
  row_blocks_ = div_up(tiles_, tiles_per_task_);

  b_floats_ = round_up(div_up(pixels, panel_columns_) * b_panel_, 16);
  slab_floats_ = round_up(slab_floats(y, x, largest, channel_block_), 16);
  c_stride_ = round_up(pixels, panel_columns_) + 16;
  c_floats_ = staged ? round_up(tiles_per_task_ * tile_rows_ * c_stride_, 16) : 0;
  thread_floats_ = b_floats_ + slab_floats_ + c_floats_;
}

// Whole samples where planes are small, whole rows where they are not too long, else pieces of a row.
void PatchProduct::plan_blocks() {
  const size_t plane = y_.pixels * x_.pixels;
  block_rows_ = y_.pixels, block_width_ = x_.pixels;
  if (2 * plane <= kPixels) {
    block_samples_ = std::clamp<size_t>(kPixels / plane, 1, batch_);
    if (block_samples_ > kSinkSamples) block_samples_ = block_samples_ / kSinkSamples * kSinkSamples;
    pixel_blocks_ = div_up(batch_, block_samples_);
  } else if (x_.pixels <= kPixels) {
    // As many rows as make about kPixels and fill whole panels best.
    size_t best = 1;
    double best_share = 0;
    for (size_t rows = std::max<size_t>(1, kPixels / 2 / x_.pixels);
         rows <= std::min(y_.pixels, std::max<size_t>(1, kPixels * 5 / 4 / x_.pixels)); ++rows) {
      const size_t pixels = rows * x_.pixels;
      const double share = static_cast<double>(pixels) / static_cast<double>(round_up(pixels, panel_columns_));
      if (share >= best_share - 0.01) best = rows, best_share = std::max(share, best_share);
    }
    block_rows_ = best;
    pixel_blocks_ = batch_ * div_up(y_.pixels, block_rows_);
  } else {
    block_rows_ = 1;
    block_width_ = round_up(div_up(x_.pixels, div_up(x_.pixels, kPixels)), panel_columns_);
    pixel_blocks_ = batch_ * y_.pixels * div_up(x_.pixels, block_width_);
  }
}

PixelBlock PatchProduct::pixel_block(size_t index) const {
  PixelBlock b;
  const size_t across = div_up(x_.pixels, block_width_), down = div_up(y_.pixels, block_rows_);
  b.v0 = index % across * block_width_;
  b.v1 = std::min(x_.pixels, b.v0 + block_width_);
  b.u0 = index / across % down * block_rows_;
  b.u1 = std::min(y_.pixels, b.u0 + block_rows_);
  b.n0 = index / (across * down) * block_samples_;
  b.n1 = std::min(batch_, b.n0 + block_samples_);
  return b;
}

PatchProduct::Depth PatchProduct::depth_block(size_t index) const {
  const size_t taps = y_.taps * x_.taps;
  if (tap_block_ == taps) {
    return {index * channel_block_, std::min(channels_, (index + 1) * channel_block_), 0, taps};
  }
  const size_t parts = div_up(taps, tap_block_), c = index / parts, part = index % parts;
  return {c, c + 1, part * tap_block_, std::min(taps, (part + 1) * tap_block_)};
}

// The target's pixels of a block lie side by side in memory. A gradient that is added to another waits until its sum is
// complete: old + new then has the same bits in every layout.
bool PatchProduct::writes_direct(const PixelBlock& b) const {
  const bool whole_rows = b.rows() == 1 || (b.width() == x_.pixels && target_.tensor->stride[1] == x_.pixels);
  return !(target_.sink && target_.sink->instead_of_target) && target_.plain() && !target_.accumulate &&
         x_.target_step == 1 && y_.target_step == 1 && b.samples() == 1 && block_samples_ == 1 && whole_rows;
}

void PatchProduct::pack_weight_tile(size_t group, size_t block, size_t first_row, float* to) const {
  const Depth depth = depth_block(block);
  const size_t rows = std::min(tile_rows_, rows_ - first_row), taps = depth.t1 - depth.t0;
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
  for (size_t c = 0; c < depth.c1 - depth.c0; ++c) {
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
  const size_t tasks = groups_ * depth_blocks_ * tiles_;
  parallel_for(tasks, threads_for(threads_, tasks, tasks * a_panel_), [&](size_t task, size_t) {
    const size_t tile = task % tiles_, block = task / tiles_ % depth_blocks_, group = task / tiles_ / depth_blocks_;
    pack_weight_tile(group, block, tile * tile_rows_, to + task * a_panel_);
  });
}

void PatchProduct::pack_panels(const ImageSource& source, const Depth& depth, const PixelBlock& block, size_t group,
                               float* slab_room, float* panels) const {
  const size_t channels = depth.c1 - depth.c0;
  const Slab slab = make_slab(source, y_, x_, block, group * channels_ + depth.c0, channels, slab_room);
  PatchRange range{&slab, channels, depth.t0, depth.t1, block.rows(), block.width(), 0, 0};
  const size_t pixels = block.pixels();
  for (size_t j = 0; j < pixels; j += panel_columns_, panels += b_panel_) {
    range.first = j;
    range.pixels = std::min(panel_columns_, pixels - j);
    pack_patches(range, panel_columns_, panels);
  }
}

void PatchProduct::run_task(const ImageSource& source, size_t task, const float* packed, float* scratch) const {
  const size_t part = task % row_blocks_, group = task / row_blocks_ / pixel_blocks_;
  const PixelBlock block = pixel_block(task / row_blocks_ % pixel_blocks_);
  const size_t tile0 = part * tiles_per_task_, row0 = tile0 * tile_rows_;
  const size_t rows = std::min(rows_ - row0, tiles_per_task_ * tile_rows_);
  float *panels = scratch, *slab_room = panels + b_floats_, *staged = slab_room + slab_floats_;
  const bool direct = writes_direct(block);
  const size_t first_channel = group * rows_ + row0;

  GemmBlock g;
  g.tile_rows = tile_rows_;
  g.rows = rows;
  g.columns = block.pixels();
  g.b = panels;
  g.b_panel_stride = static_cast<ptrdiff_t>(b_panel_);
  g.b_stride = static_cast<ptrdiff_t>(panel_columns_);
  if (direct) {
    g.c = static_cast<float*>(target_.data) + block.n0 * target_.batch_stride +
          first_channel * target_.tensor->stride[2] + block.u0 * target_.tensor->stride[1] + block.v0;
    g.c_stride = target_.tensor->stride[2];
    g.c_far = true;
  } else {
    g.c = staged;
    g.c_stride = c_stride_;
  }
  for (size_t b = 0; b < depth_blocks_; ++b) {
    const Depth depth = depth_block(b);
    pack_panels(source, depth, block, group, slab_room, panels);
    g.depth = depth.size();
    if (a_direct_) {
      g.a = weights_.data + static_cast<ptrdiff_t>(group) * weights_.group +
            static_cast<ptrdiff_t>(row0) * row_stride_ + static_cast<ptrdiff_t>(depth.c0) * channel_stride_ +
            static_cast<ptrdiff_t>(depth.t0);
      g.a_depth_contiguous = true;
      g.a_stride = row_stride_;
      g.a_tile_stride = static_cast<ptrdiff_t>(tile_rows_) * row_stride_;
    } else {
      g.a = packed + ((group * depth_blocks_ + b) * tiles_ + tile0) * a_panel_;
      g.a_stride = static_cast<ptrdiff_t>(tile_rows_);
      g.a_tile_stride = static_cast<ptrdiff_t>(a_panel_);
    }
    kernels_.block(g);
    g.accumulate = true;
  }
  for (size_t r = 0; r < rows; ++r) finish(block, first_channel + r, g.c + r * g.c_stride, direct);
  if (target_.sink) {
    target_.sink->take(target_.sink->context,
                       {block.n0, block.n1, first_channel, rows, block.u0 * x_.pixels + block.v0,
                        block.rows() * block.width(), g.c, block.rows() * block.width(), g.c_stride});
  }
}

// Blocks are runs of pixels unless the map is one of several phases, or pieces of rows do not divide a row.
SinkParts PatchProduct::sink_parts() const {
  const bool phases = x_.target_step != 1 || y_.target_step != 1;
  if (phases || (block_width_ < x_.pixels && x_.pixels % block_width_ != 0)) return {};
  return {std::min(block_samples_, kSinkSamples), block_rows_ * block_width_};
}

// Bias and activation on one channel of a finished block, then its way to the target.
void PatchProduct::finish(const PixelBlock& block, size_t channel, float* values, bool direct) const {
  const size_t pixels = block.pixels();
  if (target_.bias) add_constant(values, target_.bias[channel], pixels);
  if (!target_.activation.is_identity()) activation_forward(target_.activation, values, values, pixels);
  if (direct || (target_.sink && target_.sink->instead_of_target)) return;
  for (size_t n = block.n0; n < block.n1; ++n) {
    for (size_t u = block.u0; u < block.u1; ++u, values += block.width()) {
      store_run(target_, n, channel, y_.target_first + u * y_.target_step, x_.target_first + block.v0 * x_.target_step,
                x_.target_step, values, block.width());
    }
  }
}

void PatchProduct::run(const ImageSource& source, void* workspace) const {
  float* packed = static_cast<float*>(workspace);
  float* scratch = packed + packed_floats_;
  if (!a_direct_) pack_weights(packed);
  parallel_for(groups_ * pixel_blocks_ * row_blocks_, threads_,
               [&](size_t task, size_t worker) { run_task(source, task, packed, scratch + worker * thread_floats_); });
}

void fill_without_taps(const PatchAxis& y, const PatchAxis& x, size_t batch, size_t channels, const ImageTarget& target,
                       size_t threads) {
  if (target.accumulate) return;
  const size_t tasks = batch * channels;
  parallel_for(tasks, threads_for(threads, tasks, tasks * y.pixels * x.pixels * sizeof(float)),
               [&](size_t task, size_t) {
                 const size_t n = task / channels, c = task % channels;
                 float values[64];
                 std::fill_n(values, 64, target.bias ? target.bias[c] : 0.0f);
                 if (!target.activation.is_identity()) activation_forward(target.activation, values, values, 64);
                 for (size_t u = 0; u < y.pixels; ++u) {
                   for (size_t v = 0; v < x.pixels; v += 64) {
                     store_run(target, n, c, y.target_first + u * y.target_step, x.target_first + v * x.target_step,
                               x.target_step, values, std::min<size_t>(64, x.pixels - v));
                   }
                 }
               });
}

void store_run(const ImageTarget& target, size_t sample, size_t channel, size_t row, size_t first, size_t step,
               const float* values, size_t count) {
  const Tensor& t = *target.tensor;
  const size_t offset = sample * target.batch_stride + channel * t.stride[2] + row * t.stride[1] + first * t.stride[0];
  if (t.type == BNNSDataTypeFloat32) {
    float* to = static_cast<float*>(target.data) + offset;
    const size_t stride = step * t.stride[0];
    if (stride == 1) {
      if (target.accumulate) return add_values(values, to, count);
      std::memcpy(to, values, count * sizeof(float));
      return;
    }
    for (size_t i = 0; i < count; ++i) to[i * stride] = target.accumulate ? to[i * stride] + values[i] : values[i];
    return;
  }
  if (step == 1 && t.stride[0] == 1 && !target.accumulate) {
    uint16_t* to = static_cast<uint16_t*>(target.data) + offset;
    if (t.type == BNNSDataTypeFloat16) return float_to_half(values, to, count);
    if (t.type == BNNSDataTypeBFloat16) return float_to_bfloat16(values, to, count);
  }
  const Elements elements(t);
  void* base = element_at(target.data, t.type, sample * target.batch_stride);
  const size_t index = (channel * t.size[1] + row) * t.size[0] + first;
  for (size_t i = 0; i < count; ++i) {
    if (target.accumulate) {
      elements.accumulate(base, index + i * step, 1, values + i);
    } else {
      elements.write(base, index + i * step, 1, values + i);
    }
  }
}

}  // namespace bnns
