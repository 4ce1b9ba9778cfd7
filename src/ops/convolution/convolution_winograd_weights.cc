#include "src/ops/convolution/convolution_winograd_weights.h"

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/parallel.h"

namespace bnns {
namespace {

constexpr size_t kPartFloats = 3 << 20;  // V and Z of a part: 12 MB, shared by all threads in L3
constexpr size_t kRows = 64;             // of a block of dW: its products are 288 KB
constexpr size_t kStageTiles = 64;       // gathered together, more only where a row has more
constexpr size_t kDepth = 512;           // tiles of one product

}  // namespace

bool is_winograd_gradient(const ConvolutionMap& map, size_t batch) {
  return isa() != Isa::baseline && map.y.kernel == 3 && map.x.kernel == 3 &&
         is_winograd(down_axis(map.y), down_axis(map.x), map.groups, map.small_channels, map.large_channels, batch);
}

WinogradWeightProduct::WinogradWeightProduct(const ConvolutionMap& map, size_t batch, size_t threads)
    : map_(map), y_(down_axis(map.y)), x_(down_axis(map.x)), kernels_(tile_kernels(isa())) {
  v_stride_ = odd_lines(map.large_channels);
  z_stride_ = odd_lines(map.small_channels);
  const size_t wanted = std::max<size_t>(1, kPartFloats / (kWinogradPoints * (v_stride_ + z_stride_)));
  parts_ = make_tile_blocks(3, y_, x_, batch, wanted);
  chunk_rows_ = std::clamp<size_t>(kStageTiles / parts_.width, 1, parts_.rows);
  const size_t tiles = parts_.pixels();
  v_point_ = odd_lines(tiles * v_stride_);
  z_point_ = odd_lines(tiles * z_stride_);
  v_floats_ = kWinogradPoints * v_point_;
  z_floats_ = kWinogradPoints * z_point_;

  row_blocks_ = div_up(map.large_channels, kRows);
  rows_ = div_up(map.large_channels, row_blocks_);
  column_blocks_ = div_up(map.small_channels, kWinogradColumns);
  blocks_ = row_blocks_ * column_blocks_;
  m_point_ = odd_lines(rows_ * kWinogradColumns);
  m_floats_ = kWinogradPoints * m_point_;
  const bool one_part = parts_.count() == 1;
  sums_floats_ = one_part ? 0 : checked_mul(blocks_, m_floats_, "scratch");
  const size_t work = kWinogradPoints * map.large_channels * map.small_channels * tiles * parts_.count();
  threads_ = threads_for(threads, blocks_ * kWinogradPoints, work / 2);
  thread_floats_ =
      std::max(round_up(stage_floats(4 * chunk_rows_ + 2, 4 * parts_.width + 2), 16), one_part ? m_floats_ : 0);
}

// V or Z of 16 channels of some tile rows of one sample.
void WinogradWeightProduct::transform(const Transform& t, const PixelBlock& part, size_t group, size_t chunk,
                                      float* stage) const {
  const size_t chunks = div_up(part.rows(), chunk_rows_), n = chunk / chunks, first = chunk % chunks * chunk_rows_;
  const size_t rows = std::min(chunk_rows_, part.rows() - first), channel = group * kWinogradGroup,
               width = part.width();
  WinogradStage window{static_cast<ptrdiff_t>(4 * (part.u0 + first)), static_cast<ptrdiff_t>(4 * part.v0), 4 * rows,
                       4 * width};
  if (t.is_large) {
    window.top += y_.offset, window.left += x_.offset;
    window.height += 2, window.width += 2;
  }
  gather_stage(t.source, part.n0 + n, channel, std::min(kWinogradGroup, t.channels - channel), window, stage);
  const size_t row_floats = window.width * kWinogradGroup;
  float* to = t.to + (n * part.rows() + first) * width * t.stride + channel;
  for (size_t u = 0; u < rows; ++u, to += width * t.stride) {
    const auto run = t.is_large ? &winograd_source_row : &winograd_gradient_row;
    run(3, stage + 4 * u * row_floats, row_floats, width, to, t.stride, t.point);
  }
}

// Some points of one block of dW: m = or += V' Z over the tiles of a part.
void WinogradWeightProduct::multiply(const float* v, const float* z, size_t tiles, size_t row_block,
                                     size_t column_block, Range points, bool accumulate, float* m) const {
  const size_t row = row_block * rows_, column = column_block * kWinogradColumns;
  GemmBlock g;
  g.rows = std::min(rows_, map_.large_channels - row);
  // Z has zeros up to a multiple of 16.
  g.columns = round_up(std::min(kWinogradColumns, map_.small_channels - column), kWinogradGroup);
  g.tile_rows = div_up(g.rows, div_up(g.rows, kernels_.rows));
  g.a_tile_stride = static_cast<ptrdiff_t>(g.tile_rows);
  g.a_stride = static_cast<ptrdiff_t>(v_stride_);
  g.b_stride = static_cast<ptrdiff_t>(z_stride_);
  g.b_panel_stride = static_cast<ptrdiff_t>(kernels_.columns);
  g.c_stride = kWinogradColumns;
  for (size_t k = points.begin; k < points.end; ++k) {
    g.c = m + k * m_point_;
    for (size_t t = 0; t < tiles; t += kDepth) {
      g.depth = std::min(kDepth, tiles - t);
      g.a = v + k * v_point_ + t * v_stride_ + row;
      g.b = z + k * z_point_ + t * z_stride_ + column;
      g.accumulate = accumulate || t > 0;
      kernels_.block(g);
    }
  }
}

void WinogradWeightProduct::store(size_t row_block, size_t column_block, const float* m,
                                  const WeightTarget& target) const {
  const size_t row = row_block * rows_, column = column_block * kWinogradColumns;
  WeightTarget to = target;
  to.data += static_cast<ptrdiff_t>(row) * to.large + static_cast<ptrdiff_t>(column) * to.small;
  winograd_gradient_block(3, m, m_point_, std::min(rows_, map_.large_channels - row),
                          std::min(kWinogradColumns, map_.small_channels - column), to);
}

void WinogradWeightProduct::run(const ImageSource& small, const ImageSource& large, const WeightTarget& target,
                                void* workspace) const {
  float *v = static_cast<float*>(workspace), *z = v + v_floats_, *sums = z + z_floats_;
  float* const scratch = sums + sums_floats_;
  const Transform transforms[] = {{large, map_.large_channels, v, v_stride_, v_point_, true},
                                  {small, map_.small_channels, z, z_stride_, z_point_, false}};
  const size_t large_groups = div_up(map_.large_channels, kWinogradGroup);
  const size_t groups = large_groups + div_up(map_.small_channels, kWinogradGroup), parts = parts_.count();
  for (size_t p = 0; p < parts; ++p) {
    const PixelBlock part = parts_.at(p);
    parallel_for(groups * part.samples() * div_up(part.rows(), chunk_rows_), threads_, [&](size_t task, size_t worker) {
      const size_t group = task % groups;
      const bool is_small = group >= large_groups;
      transform(transforms[is_small], part, is_small ? group - large_groups : group, task / groups,
                scratch + worker * thread_floats_);
    });
    if (parts == 1) {
      parallel_for(blocks_, threads_, [&](size_t block, size_t worker) {
        float* m = scratch + worker * thread_floats_;
        multiply(v, z, part.pixels(), block % row_blocks_, block / row_blocks_, {0, kWinogradPoints}, false, m);
        store(block % row_blocks_, block / row_blocks_, m, target);
      });
      return;
    }
    parallel_for(blocks_ * kWinogradPoints, threads_, [&](size_t task, size_t) {
      const size_t block = task % blocks_, point = task / blocks_;
      multiply(v, z, part.pixels(), block % row_blocks_, block / row_blocks_, {point, point + 1}, p > 0,
               sums + block * m_floats_);
    });
  }
  parallel_for(blocks_, threads_, [&](size_t block, size_t) {
    store(block % row_blocks_, block / row_blocks_, sums + block * m_floats_, target);
  });
}

}  // namespace bnns
