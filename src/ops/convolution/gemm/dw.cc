// Weight gradients as a matrix product, and the gradient of the bias.

#include "src/ops/convolution/gemm/dw.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/gemm/pack.h"
#include "src/ops/convolution/common/gemm_block.h"
#include "src/ops/convolution/common/kernels.h"

namespace bnns {
namespace {

constexpr size_t kRows = 448;               // (l, k) of a block
constexpr size_t kColumns = 256;            // s of a block
constexpr size_t kPixels = 256;             // depth of one step: patches half a megabyte
constexpr size_t kSliceWork = 1 << 18;      // multiply-adds that are worth a slice
constexpr size_t kWeightSlab = 120 * 1024;  // floats: 480 KB, so that all buffers of a thread stay below 2 MB
constexpr size_t kPacking = 1;              // what it takes, in tenths of the products of a block
constexpr size_t kSlack = 16;

}  // namespace

void run_gemm_dw(const WeightMap& p, CallScratch& scratch) {
  const WeightProduct product(p);
  CallScratch::Lease workspace(scratch, product.workspace_bytes());
  if (!scratch.measuring()) product.run(p.small, p.large, p.target, workspace.data());
}

WeightProduct::WeightProduct(const WeightMap& p) : map_(p.map), y_(p.y), x_(p.x), kernels_(tile_kernels(isa())) {
  const ConvolutionMap& map = map_;
  const size_t batch = p.batch;
  pixels_ = make_pixel_blocks(y_, x_, batch, kPixels, 16, false, kWeightSlab);
  rows_ = ChannelTapBlocks(y_, x_, map.large_channels, kRows, pixels_, kWeightSlab);
  // Three blocks would leave one of two threads waiting: an even number, where blocks are few.
  if (rows_.count() % 2 == 1 && rows_.count() > 1 && rows_.count() < kWeightTasks &&
      rows_.tap_step == y_.taps * x_.taps) {
    const size_t channels = div_up(map.large_channels, rows_.count() + 1);
    rows_ = ChannelTapBlocks(y_, x_, map.large_channels, channels * rows_.taps, pixels_, kWeightSlab);
  }
  column_block_ = std::min(map.small_channels, kColumns);
  column_block_ = div_up(map.small_channels, div_up(map.small_channels, column_block_));
  const size_t pixels = pixels_.pixels(), taps = y_.taps * x_.taps;
  set_blocks();
  const size_t work = map.groups * map.large_channels * taps * map.small_channels * y_.pixels * x_.pixels * batch;
  slices_ = weight_slices(blocks(), pixels_.count(), c_floats_, work, kSliceWork);
  const size_t tasks = blocks() * slices_;
  cut_for_threads(tasks, threads_for(p.threads, SIZE_MAX, work / 2), kPacking, kernels_.columns, &rows_,
                  &column_block_);
  set_blocks();
  threads_ = threads_for(p.threads, blocks() * slices_, work / 2);
  slice_floats_ = slices_ > 1 ? round_up(slices_ * blocks() * c_floats_, 16) : 0;

  // An odd number of cache lines between rows, so that the rows of a tile do not fall on the same sets.
  patch_stride_ = (round_up(pixels, 16) / 16 | 1) * 16;
  patch_floats_ = round_up(rows_.largest() * patch_stride_, 16) + kSlack;
  panel_floats_ = round_up(div_up(column_block_, kernels_.columns) * (pixels * kernels_.columns + kSlack), 16);
  slab_floats_ = round_up(slab_floats(y_, x_, pixels_.at(0), rows_.channel_step), 16);
  stage_floats_ = round_up(column_block_ * pixels + 2 * x_.pixels, 16);
  thread_floats_ =
      patch_floats_ + panel_floats_ + slab_floats_ + stage_floats_ + (slices_ == 1 ? round_up(c_floats_, 16) : 0);
}

// What follows from rows_ and column_block_.
void WeightProduct::set_blocks() {
  row_blocks_ = rows_.count();
  tile_rows_ = even_tile_rows(rows_.largest(), kernels_);
  column_blocks_ = div_up(map_.small_channels, column_block_);
  c_stride_ = round_up(column_block_, 16) + 16;
  c_floats_ = rows_.largest() * c_stride_;
}

// Panels [pixel][channel] of S, transposed from rows of pixels; rows that are not plain and dense are staged first.
void WeightProduct::pack_small(const ImageSource& small, const PixelBlock& block, size_t first, size_t columns,
                               float* buffer, float* panels) const {
  const size_t width = kernels_.columns, panel_stride = block.pixels() * width + kSlack;
  const size_t sample_pixels = block.rows() * block.width();
  const bool in_place = small.plain() && (block.rows() == 1 || small.tensor->stride[1] == block.width());
  for (size_t n = block.n0; n < block.n1; ++n) {
    const float* from;
    ptrdiff_t stride;
    if (in_place) {
      from = small.plain_at(n, first, block.u0) + block.v0;
      stride = static_cast<ptrdiff_t>(small.tensor->stride[2]);
    } else {
      float* row_buffer = buffer + columns * sample_pixels;
      for (size_t c = 0; c < columns; ++c) {
        for (size_t u = block.u0; u < block.u1; ++u) {
          const float* row = small.row(n, first + c, u, block.v0, block.width(), row_buffer);
          std::memcpy(buffer + c * sample_pixels + (u - block.u0) * block.width(), row, block.width() * sizeof(float));
        }
      }
      from = buffer;
      stride = static_cast<ptrdiff_t>(sample_pixels);
    }
    pack_strided(strided_lens(from, FloatType::f32, stride, 1), {0, columns}, {0, sample_pixels},
                 {panels + (n - block.n0) * sample_pixels * width, width, panel_stride});
  }
}

void WeightProduct::run_task(const ImageSource& small, const ImageSource& large, const WeightTarget& target,
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
  set_c(&g, slices_ > 1 ? slices + (slice * blocks() + index) * c_floats_ : own, c_stride_);
  const size_t pixel_blocks = pixels_.count(), end = (slice + 1) * pixel_blocks / slices_;
  for (size_t p = slice * pixel_blocks / slices_; p < end; ++p) {
    const PixelBlock block = pixels_.at(p);
    const size_t pixels = block.pixels();
    const Slab slab =
        make_slab(large, y_, x_, block, group * map_.large_channels + rows.c0, rows.channels(), slab_buffer);
    copy_patches({&slab, rows.channels(), rows.t0, rows.t1, block.rows(), block.width(), 0, pixels}, patch_stride_,
                 patches);
    pack_small(small, block, group * map_.small_channels + column, columns, stage, panels);
    g.depth = pixels;
    set_b_panels(&g, kernels_.columns, pixels * kernels_.columns + kSlack);
    kernels_.block(g);
    g.accumulate = true;
  }
  if (slices_ == 1) store(target, group, row_index, column, own, 1);
}

// dW = or += the slices of one block, added in order.
void WeightProduct::store(const WeightTarget& target, size_t group, size_t row_index, size_t column, const float* c,
                          size_t slices) const {
  const ChannelTaps rows = rows_.at(row_index);
  const size_t columns = std::min(column_block_, map_.small_channels - column);
  const size_t slice_stride = blocks() * c_floats_;
  // Rows (l, k) that lie side by side in dW too: a transpose. Columns by the line, so that what is read stays in L1.
  const auto taps = static_cast<ptrdiff_t>(x_.taps * y_.taps);
  const bool dense = (x_.taps == 1 || target.x == 1) && (y_.taps == 1 || target.y == static_cast<ptrdiff_t>(x_.taps)) &&
                     (rows.channels() == 1 || target.large == taps) && target.small > 0 &&
                     (taps > 1 || target.large == 1 || rows.channels() == 1);
  if (dense) {
    const ptrdiff_t first = static_cast<ptrdiff_t>(group) * target.group +
                            static_cast<ptrdiff_t>(column) * target.small +
                            static_cast<ptrdiff_t>(rows.c0) * target.large + static_cast<ptrdiff_t>(rows.t0);
    return store_transposed({c, slices, slice_stride, c_stride_}, rows.size(), columns, target.accumulate,
                            target.data + first, static_cast<size_t>(target.small));
  }
  constexpr size_t kStep = 16;  // columns: a cache line of c
  for (size_t s0 = 0; s0 < columns; s0 += kStep) {
    for (size_t s = s0; s < std::min(columns, s0 + kStep); ++s) {
      float* to = target.data + static_cast<ptrdiff_t>(group) * target.group +
                  static_cast<ptrdiff_t>(column + s) * target.small + static_cast<ptrdiff_t>(rows.c0) * target.large;
      const float* from = c + s;
      for (size_t l = rows.c0; l < rows.c1; ++l, to += target.large) {
        size_t ky = rows.t0 / x_.taps, kx = rows.t0 % x_.taps;
        for (size_t t = rows.t0; t < rows.t1; ++t, from += c_stride_) {
          float sum = *from;
          for (size_t i = 1; i < slices; ++i) sum += from[i * slice_stride];
          float& at = to[static_cast<ptrdiff_t>(ky) * target.y + static_cast<ptrdiff_t>(kx) * target.x];
          at = target.accumulate ? at + sum : sum;
          if (++kx == x_.taps) kx = 0, ++ky;
        }
      }
    }
  }
}

void WeightProduct::run(const ImageSource& small, const ImageSource& large, const WeightTarget& target,
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

void convolution_bias_gradient(const ImageSource& g, size_t batch, size_t channels, bool accumulate, float* db,
                               float* buffer, size_t threads) {
  const size_t height = g.height(), width = g.width(), rows = bias_gradient_rows(width);
  const bool dense = g.plain() && g.tensor->stride[1] == width;
  threads = threads_for(threads, channels, batch * channels * height * width * sizeof(float));
  parallel_for(channels, threads, [&](size_t c, size_t worker) {
    float* own = buffer + worker * bias_gradient_buffer(width);
    double total = 0;
    for (size_t n = 0; n < batch; ++n) {
      for (size_t y = 0; y < height; y += rows) {
        const size_t some = std::min(rows, height - y);
        const float* values = own;
        if (dense) {
          values = g.plain_at(n, c, y);
        } else {
          for (size_t r = 0; r < some; ++r) {
            const float* row = g.row(n, c, y + r, 0, width, own + rows * width);
            std::memcpy(own + r * width, row, width * sizeof(float));
          }
        }
        total += static_cast<double>(sum_values(values, some * width));
      }
    }
    db[c] = accumulate ? db[c] + static_cast<float>(total) : static_cast<float>(total);
  });
}

}  // namespace bnns
