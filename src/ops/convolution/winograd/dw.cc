// Weight gradients by Winograd's algorithm.

#include "src/ops/convolution/winograd/dw.h"

#include <algorithm>
#include <bit>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/common/gemm_block.h"
#include "src/ops/convolution/common/kernels.h"

namespace bnns {
namespace {

constexpr size_t kPartFloats = 3 << 20;  // V and Z of a part: 12 MB, shared by all threads in L3
constexpr size_t kRows = 64;             // of a block of dW: its products are 288 KB
constexpr size_t kStageTiles = 96;       // gathered together, more only where a row has more
constexpr size_t kDepth = 512;           // tiles of one product

constexpr size_t kSumFloats = 64 * 1024;     // of a slice, in L2 with V and Z of a part
constexpr size_t kSliceFloats = 176 * 1024;  // V and 32 columns of Z of such a part
constexpr size_t kAllSums = 512 * 1024;      // of all slices: 2 MB
constexpr size_t kMostSlices = 16;           // whose number is a power of two: most numbers of threads share it evenly
constexpr size_t kSliceTiles = 24;           // that are worth one
constexpr size_t kStoreRows = 4;             // large channels whose weights are added up and stored at once

}  // namespace

void run_winograd_dw(const WeightMap& p, CallScratch& scratch) {
  const WinogradWeightProduct product(p);
  CallScratch::Lease workspace(scratch, product.workspace_bytes());
  if (!scratch.measuring()) product.run(p.small, p.large, p.target, workspace.data());
}

WinogradWeightProduct::WinogradWeightProduct(const WeightMap& p)
    : map_(p.map),
      y_(p.y),
      x_(p.x),
      taps_(winograd_taps(y_, x_)),
      tile_(winograd_tile(taps_)),
      phases_(winograd_channels(y_, 1)),
      large_(phases_ * p.map.large_channels),
      kernels_(tile_kernels(isa())) {
  const size_t large = large_, small = map_.small_channels, batch = p.batch;
  row_blocks_ = div_up(large, kRows);
  rows_ = div_up(large, row_blocks_);
  column_blocks_ = div_up(small, kWinogradColumns);
  blocks_ = row_blocks_ * column_blocks_;
  m_point_ = odd_lines(rows_ * kWinogradColumns);
  m_floats_ = kWinogradPoints * m_point_;
  const size_t all_tiles = checked_mul(batch, div_up(y_.pixels, tile_) * div_up(x_.pixels, tile_), "scratch");
  const size_t work = kWinogradPoints * large * small * all_tiles;

  if (row_blocks_ == 1 && blocks_ * m_floats_ <= kSumFloats) {
    v_stride_ = round_up(large, kWinogradGroup);
    z_stride_ = std::min(kWinogradColumns, round_up(small, kWinogradGroup));
    const size_t most = kSliceFloats / (kWinogradPoints * (v_stride_ + z_stride_));
    const size_t slices =
        std::clamp<size_t>(all_tiles / kSliceTiles, 1, std::min(kMostSlices, kAllSums / (blocks_ * m_floats_)));
    parts_ = make_tile_blocks(taps_, y_, x_, batch, std::min(most, div_up(all_tiles, slices)));
    slices_ = std::bit_floor(std::min(slices, parts_.count()));
  }
  if (slices_ == 0) {
    v_stride_ = odd_lines(large);
    z_stride_ = odd_lines(small);
    const size_t wanted = std::max<size_t>(1, kPartFloats / (kWinogradPoints * (v_stride_ + z_stride_)));
    parts_ = make_tile_blocks(taps_, y_, x_, batch, wanted);
  }
  chunk_rows_ = std::clamp<size_t>(kStageTiles / parts_.width, 1, parts_.rows);
  const size_t tiles = parts_.pixels();
  v_point_ = odd_lines(tiles * v_stride_);
  z_point_ = odd_lines(tiles * z_stride_);
  v_floats_ = kWinogradPoints * v_point_;
  z_floats_ = kWinogradPoints * z_point_;

  threads_ = threads_for(p.threads, slices_ > 0 ? slices_ : blocks_ * kWinogradPoints, work / 2);
  thread_floats_ = round_up(stage_floats(tile_ * chunk_rows_ + taps_ - 1, tile_ * parts_.width + taps_ - 1), 16);
  if (slices_ > 0) {
    sums_floats_ = slices_ * blocks_ * m_floats_;
    thread_floats_ += v_floats_ + z_floats_;
    v_floats_ = z_floats_ = 0;  // shared ones
    return;
  }
  const bool one_part = parts_.count() == 1;
  sums_floats_ = one_part ? 0 : checked_mul(blocks_, m_floats_, "scratch");
  if (one_part) thread_floats_ = std::max(thread_floats_, m_floats_);
}

// Whole samples have planes of a few lines each, which the hardware does not foresee: prefetches part step.begin of
// step.end of those that come after 16 channels of sample n.
void WinogradWeightProduct::fetch_next(const Transform& t, const PixelBlock& part, size_t n, size_t channel,
                                       Range step) const {
  asm volatile("");  // g++ 12 drops calls of functions that do nothing but prefetch
  channel += kWinogradGroup;
  if (channel >= t.channels) channel = t.first_channel, ++n;
  if (n == part.samples() || !t.source.plain()) return;
  const size_t of_channel = t.is_large ? phases_ : 1;
  const size_t planes = std::min(kWinogradGroup, t.channels - channel) / of_channel;
  const size_t floats = t.source.height() * t.source.tensor->stride[1];
  for (size_t i = step.begin * planes / step.end; i < (step.begin + 1) * planes / step.end; ++i) {
    const float* plane = t.source.plain_at(part.n0 + n, channel / of_channel + i, 0);
    for (size_t j = 0; j < floats; j += 16) __builtin_prefetch(plane + j);
  }
}

// V or Z of 16 channels of some tile rows of one sample.
void WinogradWeightProduct::transform(const Transform& t, const PixelBlock& part, size_t group, size_t chunk,
                                      float* stage) const {
  const size_t pieces = div_up(part.rows(), chunk_rows_), n = chunk / pieces, first = chunk % pieces * chunk_rows_;
  const size_t rows = std::min(chunk_rows_, part.rows() - first), channel = t.first_channel + group * kWinogradGroup,
               width = part.width();
  WinogradStage window{static_cast<ptrdiff_t>(tile_ * (part.u0 + first)), static_cast<ptrdiff_t>(tile_ * part.v0),
                       tile_ * rows, tile_ * width};
  if (t.is_large) {
    window.step = static_cast<size_t>(y_.step);
    window.top = window.top * y_.step + y_.offset, window.left = window.left * x_.step + x_.offset;
    window.height += taps_ - 1, window.width += taps_ - 1;
  }
  gather_stage(t.source, part.n0 + n, channel, std::min(kWinogradGroup, t.channels - channel), window, stage);
  const size_t row_floats = window.width * kWinogradGroup;
  float* to = t.to + (n * part.rows() + first) * width * t.stride + group * kWinogradGroup;
  for (size_t u = 0; u < rows; ++u, to += width * t.stride) {
    if (part.samples() > 1) fetch_next(t, part, n, channel, {u, rows});
    const auto run = t.is_large ? &winograd_source_row : &winograd_gradient_row;
    run(taps_, stage + tile_ * u * row_floats, row_floats, width, to, t.stride, t.point);
  }
}

// Some points of some rows and up to 32 columns of dW: m = or += V' Z over the tiles of a part.
void WinogradWeightProduct::multiply(const float* v, const float* z, size_t tiles, size_t rows, size_t columns,
                                     Range points, bool accumulate, float* m) const {
  GemmBlock g;
  g.rows = rows;
  g.columns = round_up(columns, kWinogradGroup);  // Z has zeros up to a multiple of 16
  g.tile_rows = even_tile_rows(rows, kernels_);
  // Both operands as they lie: tiles of A, and panels of B, side by side in a row for each depth.
  g.a_tile_stride = static_cast<ptrdiff_t>(g.tile_rows), g.a_stride = static_cast<ptrdiff_t>(v_stride_);
  set_b_panels(&g, z_stride_, kernels_.columns);
  g.c_stride = kWinogradColumns;
  for (size_t k = points.begin; k < points.end; ++k) {
    g.c = m + k * m_point_;
    for (size_t t = 0; t < tiles; t += kDepth) {
      g.depth = std::min(kDepth, tiles - t);
      g.a = v + k * v_point_ + t * v_stride_;
      g.b = z + k * z_point_ + t * z_stride_;
      g.accumulate = accumulate || t > 0;
      kernels_.block(g);
    }
  }
}

void WinogradWeightProduct::multiply_block(const float* v, const float* z, size_t tiles, size_t block, Range points,
                                           bool accumulate, float* m) const {
  const size_t row = block % row_blocks_ * rows_, column = block / row_blocks_ * kWinogradColumns;
  multiply(v + row, z + column, tiles, std::min(rows_, large_ - row),
           std::min(kWinogradColumns, map_.small_channels - column), points, accumulate, m);
}

// dW of some rows of a block. m is that of the first of them.
void WinogradWeightProduct::store(size_t block, Range rows, const float* m, const WeightTarget& target) const {
  const size_t row = block % row_blocks_ * rows_ + rows.begin, column = block / row_blocks_ * kWinogradColumns;
  const size_t count = std::min(rows.size(), large_ - row),
               columns = std::min(kWinogradColumns, map_.small_channels - column);
  WeightTarget to = target;
  to.data += static_cast<ptrdiff_t>(column) * to.small;
  if (phases_ == 1) {
    to.data += static_cast<ptrdiff_t>(row) * to.large;
    return winograd_gradient_block(taps_, m, m_point_, count, columns, to);
  }
  // Taps of a phase are every other one of the kernel, which may lack the last.
  float kernels[kWinogradColumns * 5 * 5];
  WeightTarget buffer;
  buffer.data = kernels, buffer.x = 1, buffer.y = static_cast<ptrdiff_t>(taps_), buffer.small = buffer.y * buffer.y;
  for (size_t r = 0; r < count; ++r, m += kWinogradColumns) {
    winograd_gradient_block(taps_, m, m_point_, 1, columns, buffer);
    const size_t channel = (row + r) / phases_, phase = (row + r) % phases_;
    for (size_t c = 0; c < columns; ++c) {
      float* const kernel = to.data + static_cast<ptrdiff_t>(channel) * to.large + static_cast<ptrdiff_t>(c) * to.small;
      for (size_t ky = phase / 2; ky < y_.taps; ky += 2) {
        const float* from = kernels + (c * taps_ + ky / 2) * taps_;
        for (size_t kx = phase % 2; kx < x_.taps; kx += 2) {
          float& at = kernel[static_cast<ptrdiff_t>(ky) * to.y + static_cast<ptrdiff_t>(kx) * to.x];
          at = to.accumulate ? at + from[kx / 2] : from[kx / 2];
        }
      }
    }
  }
}

void WinogradWeightProduct::run(const ImageSource& small, const ImageSource& large, const WeightTarget& target,
                                void* workspace) const {
  float *v = static_cast<float*>(workspace), *z = v + v_floats_, *sums = z + z_floats_;
  if (slices_ > 0) return run_slices(small, large, target, sums);
  float* const scratch = sums + sums_floats_;
  const Transform transforms[] = {{large, 0, large_, v, v_stride_, v_point_, true},
                                  {small, 0, map_.small_channels, z, z_stride_, z_point_, false}};
  const size_t large_groups = div_up(large_, kWinogradGroup);
  const size_t groups = large_groups + div_up(map_.small_channels, kWinogradGroup), parts = parts_.count();
  for (size_t p = 0; p < parts; ++p) {
    const PixelBlock part = parts_.at(p);
    parallel_for(groups * chunks(part), threads_, [&](size_t task, size_t worker) {
      const size_t group = task % groups;
      const bool is_small = group >= large_groups;
      transform(transforms[is_small], part, is_small ? group - large_groups : group, task / groups,
                scratch + worker * thread_floats_);
    });
    if (parts == 1) {
      parallel_for(blocks_, threads_, [&](size_t block, size_t worker) {
        float* m = scratch + worker * thread_floats_;
        multiply_block(v, z, part.pixels(), block, {0, kWinogradPoints}, false, m);
        store(block, {0, rows_}, m, target);
      });
      return;
    }
    parallel_for(blocks_ * kWinogradPoints, threads_, [&](size_t task, size_t) {
      const size_t block = task % blocks_, point = task / blocks_;
      multiply_block(v, z, part.pixels(), block, {point, point + 1}, p > 0, sums + block * m_floats_);
    });
  }
  parallel_for(blocks_, threads_, [&](size_t block, size_t) {
    store(block, {0, rows_}, sums + block * m_floats_, target);
  });
}

void WinogradWeightProduct::run_slices(const ImageSource& small, const ImageSource& large, const WeightTarget& target,
                                       float* sums) const {
  const size_t slice_floats = blocks_ * m_floats_, parts = parts_.count();
  float* const scratch = sums + sums_floats_;
  parallel_for(slices_, threads_, [&](size_t slice, size_t worker) {
    float* const v = scratch + worker * thread_floats_;
    float *const z = v + kWinogradPoints * v_point_, *const stage = z + kWinogradPoints * z_point_;
    const size_t begin = slice * parts / slices_, end = (slice + 1) * parts / slices_;
    for (size_t p = begin; p < end; ++p) {
      const PixelBlock part = parts_.at(p);
      const auto transform_all = [&](const Transform& t) {
        const size_t groups = div_up(t.channels - t.first_channel, kWinogradGroup);
        for (size_t i = 0; i < groups * chunks(part); ++i) transform(t, part, i % groups, i / groups, stage);
      };
      transform_all({large, 0, large_, v, v_stride_, v_point_, true});
      for (size_t block = 0; block < blocks_; ++block) {
        const size_t column = block * kWinogradColumns;
        const size_t columns = std::min(kWinogradColumns, map_.small_channels - column);
        transform_all({small, column, column + columns, z, z_stride_, z_point_, false});
        multiply(v, z, part.pixels(), large_, columns, {0, kWinogradPoints}, p > begin,
                 sums + slice * slice_floats + block * m_floats_);
      }
    }
  });
  const size_t pieces = div_up(rows_, kStoreRows);
  parallel_for(blocks_ * pieces, threads_, [&](size_t task, size_t) {
    const size_t row = task % pieces * kStoreRows, rows = std::min(kStoreRows, rows_ - row);
    float* const m = sums + task / pieces * m_floats_ + row * kWinogradColumns;
    // 16 columns or 32 are there.
    const bool narrow = map_.small_channels - task / pieces * kWinogradColumns <= kWinogradGroup;
    const size_t step = narrow ? 1 : rows, run = narrow ? kWinogradGroup : rows * kWinogradColumns;
    for (size_t k = 0; k < kWinogradPoints * rows; k += step) {
      float* const sum = m + k / rows * m_point_ + k % rows * kWinogradColumns;
      for (size_t i = 1; i < slices_; ++i) add_values(sum + i * slice_floats, sum, run);
    }
    store(task / pieces, {row, row + rows}, m, target);
  });
}

}  // namespace bnns
