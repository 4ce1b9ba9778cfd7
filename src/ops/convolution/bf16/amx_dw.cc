// PairWeightSteps: dW on AMX. dW(s, l, tap) = sum over pixels of S(s, pixel) L(l, pixel + tap).
//
// A: rows s, words of two neighbouring pixels as they lie in S. B: a row for every pair of pixels, the large channels
// side by side in it. The sums of all taps of 32 small channels are made while their A stays in the first cache; what
// packed patches copy once per tap is here transposed once per column of taps.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/bf16/bf16.h"

namespace bnns {
namespace {

constexpr size_t kSide = 16, kTileRows = 2 * kSide, kStep = kTileRows * kSide;
constexpr size_t kRows = 256;           // s of a block
constexpr size_t kColumns = 64;         // l of a block: with 9 taps, 600 KB of sums
constexpr size_t kPixels = 512;         // of a block, at most 64 steps
constexpr size_t kTaps = 16;            // that scatter_taps can take
constexpr size_t kCopies = 5;           // of B: columns of taps
constexpr size_t kReach = 32;           // rows of pixels that B has besides those of a block
constexpr size_t kSliceWork = 1 << 22;  // multiply-adds that are worth a slice
constexpr size_t kPacking = 4;          // what it takes, in tenths of the products of a block

void fetch(const Ahead& ahead) {
  for (size_t r = 0; r < ahead.rows; ++r) {
    const char* row = static_cast<const char*>(ahead.data) + static_cast<ptrdiff_t>(r) * ahead.row_bytes;
    for (size_t at = 0; at < ahead.bytes; at += 64) __builtin_prefetch(row + at, 0, 2);
  }
}

}  // namespace

bool accepts_bf16_amx_dw(const WeightMap& p) {
  return p.bf16 && p.has_all_taps() && pair_steps_kernel(isa()) && PairWeightSteps::accepts(p);
}

void run_bf16_amx_dw(const WeightMap& p, CallScratch& scratch) {
  const PairWeightSteps product(p, pair_steps_kernel(Isa::amx));
  CallScratch::Lease workspace(scratch, product.workspace_bytes());
  if (!scratch.measuring()) product.run(p.small, p.large, Bf16WeightTarget(p), workspace.data());
}

bool PairWeightSteps::accepts(const WeightMap& p) {
  const ConvolutionMap& m = p.map;
  const size_t taps = m.y.kernel * m.x.kernel;
  return m.y.stride == 1 && m.x.stride == 1 && taps > 1 && taps <= kTaps && m.x.kernel <= kCopies &&
         (m.y.kernel - 1) * m.y.dilation <= kReach && m.small_channels >= kSide && m.large_channels >= kSide;
}

PairWeightSteps::PairWeightSteps(const WeightMap& p, PairStepsKernel kernel)
    : map_(p.map), y_(p.y), x_(p.x), kernel_(kernel) {
  const ConvolutionMap& map = map_;
  const size_t batch = p.batch;
  const size_t taps = y_.taps * x_.taps;
  pixels_ = make_pixel_blocks(y_, x_, batch, kPixels, 2 * kSide, false, kSlabFloats / kColumns);
  pixels_.samples = std::min(pixels_.samples, div_up(kPixels, 2 * kSide));
  row_block_ = div_up(map.small_channels, div_up(map.small_channels, kRows));
  column_block_ = div_up(map.large_channels, div_up(map.large_channels, kColumns));
  set_blocks();
  const size_t work = map.groups * map.large_channels * taps * map.small_channels * y_.pixels * x_.pixels * batch;
  slices_ = weight_slices(blocks(), pixels_.count(), c_floats_, work, kSliceWork);
  const BlockParts most{row_block_ / kTileRows, column_block_ / kSide};
  const BlockParts parts =
      parts_for_threads(blocks() * slices_, threads_for(p.threads, SIZE_MAX, work / 16), most, kPacking);
  if (parts.rows > 1) row_block_ = round_up(div_up(row_block_, parts.rows), kTileRows);
  if (parts.columns > 1) column_block_ = round_up(div_up(column_block_, parts.columns), kSide);
  set_blocks();
  threads_ = threads_for(p.threads, blocks() * slices_, work / 16);
  slice_floats_ = slices_ > 1 ? slices_ * blocks() * c_floats_ : 0;

  const PixelBlock largest = pixels_.at(0);
  const Depth depth(largest);
  a_floats_ = round_up(row_block_, kTileRows) * largest.samples() * (depth.steps + 1) * kSide;
  b_floats_ = largest.samples() * x_.taps * copy_rows(largest) * depth.row_pairs * b_stride_;
  stage_floats_ = round_up(depth.pairs + kSide, kSide);

  thread_floats_ = a_floats_ + b_floats_ + stage_floats_ + (slices_ == 1 ? c_floats_ : 0);
}

// What follows from row_block_ and column_block_.
void PairWeightSteps::set_blocks() {
  row_blocks_ = div_up(map_.small_channels, row_block_);
  column_blocks_ = div_up(map_.large_channels, column_block_);
  line_c_ = round_up(column_block_, kSide);
  sample_c_ = x_.taps * line_c_;
  c_stride_ = (y_.taps * sample_c_ / kSide | 1) * kSide;
  c_floats_ = round_up(row_block_, kTileRows) * c_stride_;
  b_stride_ = (line_c_ / kSide | 1) * kSide;
}

size_t PairWeightSteps::copy_rows(const PixelBlock& block) const {
  return block.rows() + (y_.taps - 1) * static_cast<size_t>(y_.tap);
}

// Steps of all samples, then what is left of each.
void PairWeightSteps::pack_small(const ImageSource& small, const PixelBlock& block, const Depth& depth, size_t first,
                                 size_t rows, float* buffer, float* to) const {
  const Tensor& t = *small.tensor;
  const size_t width = block.width(), pitch = 2 * depth.row_pairs, tile = block.samples() * (depth.steps + 1) * kStep;
  const bool side_by_side = width == pitch && (block.rows() == 1 || t.stride[1] == width);
  uint16_t* const staged = reinterpret_cast<uint16_t*>(buffer);
  for (size_t n = 0; n < block.samples(); ++n) {
    for (size_t r = 0; r < rows; ++r) {
      const uint16_t* from = bf16_at(small, block.n0 + n, first + r, block.u0) + block.v0;
      if (!side_by_side) {
        pad_rows(from, t.stride[1], block.rows(), width, staged, pitch);
        from = staged;
      }
      float* const out = to + r / kTileRows * tile + r % kTileRows * kSide;
      copy_steps(from, depth.pairs, out + n * depth.steps * kStep, kStep,
                 out + (block.samples() * depth.steps + n) * kStep);
    }
  }
}

// [sample][column of taps][row][pair of pixels][channel]
void PairWeightSteps::pack_large(const ImageSource& large, const PixelBlock& block, const Depth& depth, size_t first,
                                 size_t columns, float* to) const {
  const Tensor& t = *large.tensor;
  const size_t rows = copy_rows(block), row_floats = depth.row_pairs * b_stride_;
  const ptrdiff_t row_low = static_cast<ptrdiff_t>(block.u0) + y_.offset;
  PixelRow row;
  row.channel_stride = t.stride[2], row.extent = x_.extent, row.width = block.width();
  for (size_t n = 0; n < block.samples(); ++n) {
    for (size_t r = 0; r < rows; ++r) {
      float* out = to + (n * x_.taps * rows + r) * row_floats;
      const ptrdiff_t at = row_low + static_cast<ptrdiff_t>(r);
      const bool inside = at >= 0 && at < static_cast<ptrdiff_t>(y_.extent);
      for (size_t k = 0; k < x_.taps; ++k, out += rows * row_floats) {
        row.first = static_cast<ptrdiff_t>(block.v0) + x_.offset + static_cast<ptrdiff_t>(k) * x_.tap;
        for (size_t c = 0; inside && c < columns; c += kSide) {
          row.from = bf16_at(large, block.n0 + n, first + c, static_cast<size_t>(at));
          row.channels = columns - c;
          transpose_pixels(row, out + c, b_stride_);
        }
        if (!inside) std::fill_n(out, row_floats, 0.0f);
      }
    }
  }
}

void PairWeightSteps::run_task(const ImageSource& small, const ImageSource& large, const Bf16WeightTarget& target,
                               size_t task, float* slices, float* scratch) const {
  const size_t slice = task / blocks(), index = task % blocks();
  const size_t row = index % row_blocks_ * row_block_, column = index / row_blocks_ % column_blocks_ * column_block_;
  const size_t group = index / row_blocks_ / column_blocks_;
  const size_t rows = std::min(row_block_, map_.small_channels - row);
  const size_t columns = std::min(column_block_, map_.large_channels - column);
  const size_t first_small = group * map_.small_channels + row, first_large = group * map_.large_channels + column;
  float *a = scratch, *b = a + a_floats_, *stage = b + b_floats_, *own = stage + stage_floats_;

  ptrdiff_t offsets[kPixels];
  PairSteps g;
  g.rows = rows, g.columns = columns;
  g.b = b, g.b_stride = b_stride_;
  g.offsets = offsets;
  g.samples = y_.taps, g.lines = x_.taps;
  g.line_c = line_c_, g.sample_c = sample_c_;
  g.c = slices_ > 1 ? slices + (slice * blocks() + index) * c_floats_ : own;
  g.c_stride = c_stride_;
  const size_t pixel_blocks = pixels_.count(), end = (slice + 1) * pixel_blocks / slices_;
  for (size_t p = slice * pixel_blocks / slices_; p < end; ++p) {
    const PixelBlock block = pixels_.at(p);
    const Depth depth(block);
    const size_t row_floats = depth.row_pairs * b_stride_, copy = copy_rows(block) * row_floats;
    PatchAxis same = y_;
    same.taps = 1, same.offset = 0, same.extent = y_.pixels;
    fetch(source_ahead(small, block, same, x_, first_small, rows));
    pack_large(large, block, depth, first_large, columns, b);
    pack_small(small, block, depth, first_small, rows, stage, a);
    g.ahead = {};
    if (p + 1 < end) g.ahead = source_ahead(large, pixels_.at(p + 1), y_, x_, first_large, columns);
    g.sample_b = static_cast<size_t>(y_.tap) * row_floats, g.line_b = copy;
    g.a_tile_stride = block.samples() * (depth.steps + 1) * kStep;
    const auto multiply = [&](size_t first_step, size_t steps, size_t pairs, size_t first_pair) {
      if (pairs == 0 || steps == 0) return;
      g.a = a + first_step * kStep, g.pairs = pairs, g.steps = steps * block.samples();
      for (size_t s = 0; s < g.steps; ++s) {
        offsets[s] = static_cast<ptrdiff_t>(s / steps * x_.taps * copy + (first_pair + s % steps * kSide) * b_stride_);
      }
      kernel_(g);
      g.accumulate = true;
      g.ahead = {};
    };
    multiply(0, depth.steps, kSide, 0);
    multiply(block.samples() * depth.steps, 1, depth.rest, depth.steps * kSide);
  }
  if (slices_ == 1) store(target, index, own, 1);
}

// dW = or += the slices of one block, added in order.
void PairWeightSteps::store(const Bf16WeightTarget& target, size_t index, const float* c, size_t slices) const {
  const size_t row = index % row_blocks_ * row_block_, column = index / row_blocks_ % column_blocks_ * column_block_;
  const size_t group = index / row_blocks_ / column_blocks_;
  const size_t rows = std::min(row_block_, map_.small_channels - row);
  const auto taps = static_cast<ptrdiff_t>(y_.taps * x_.taps);
  const bool dense = target.x == 1 && target.y == static_cast<ptrdiff_t>(x_.taps) && target.large == taps;
  TapSums sums{c, static_cast<size_t>(taps), x_.taps, sample_c_, line_c_};
  sums.count = std::min(column_block_, map_.large_channels - column);
  sums.slices = slices, sums.slice_stride = blocks() * c_floats_;
  for (size_t r = 0; r < rows; ++r, sums.from += c_stride_) {
    const ptrdiff_t first = static_cast<ptrdiff_t>(group) * target.group +
                            static_cast<ptrdiff_t>(row + r) * target.small +
                            static_cast<ptrdiff_t>(column) * target.large;
    if (dense && target.bf16) {
      scatter_taps(sums, target.accumulate, target.bf16 + first);
      continue;
    }
    if (dense) {
      scatter_taps(sums, target.accumulate, target.f32 + first);
      continue;
    }
    for (size_t j = 0; j < sums.count; ++j) {
      for (size_t t = 0; t < sums.taps; ++t) {
        const ptrdiff_t at = first + static_cast<ptrdiff_t>(j) * target.large +
                             static_cast<ptrdiff_t>(t / x_.taps) * target.y +
                             static_cast<ptrdiff_t>(t % x_.taps) * target.x;
        target.put(at, sums.at(t, j));
      }
    }
  }
}

void PairWeightSteps::run(const ImageSource& small, const ImageSource& large, const Bf16WeightTarget& target,
                          void* workspace) const {
  float* slices = static_cast<float*>(workspace);
  float* scratch = slices + slice_floats_;
  parallel_for(blocks() * slices_, threads_, [&](size_t task, size_t worker) {
    run_task(small, large, target, task, slices, scratch + worker * thread_floats_);
  });
  if (slices_ == 1) return;
  parallel_for(blocks(), threads_for(threads_, blocks(), blocks() * c_floats_ * slices_),
               [&](size_t index, size_t) { store(target, index, slices + index * c_floats_, slices_); });
}

}  // namespace bnns
