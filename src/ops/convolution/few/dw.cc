// Weight gradients with few small channels: dot products of gradients with the compact slab.

#include <algorithm>
#include <bit>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/few/few.h"

namespace bnns {
namespace {

constexpr size_t kLaneSums = 4096;      // elements of dW, a vector each: 256 KB
constexpr size_t kSlices = 16;          // wanted of dW
constexpr size_t kSliceWork = 1 << 20;  // multiply-adds that are worth one

}  // namespace

bool accepts_few_dw(const WeightMap& p) {
  const ConvolutionMap& map = p.map;
  const PatchAxis &y = p.y, &x = p.x;
  const size_t columns = map.large_channels * y.taps * x.taps;
  return map.small_channels <= kFewMostRows && map.small_channels * columns <= kLaneSums && y.step == 1 &&
         x.step == 1 && y.taps * x.taps >= 2 && x.pixels <= kFewFlat &&
         std::min<size_t>(y.pixels, 2 + few_span(y)) + few_span(y) <=
             kFewFloats / map.large_channels / x.taps / x.pixels;
}

// A task takes a slice of all blocks (samples and rows of them) for one group. Slices follow from the shape and are
// added in order.
void run_few_dw(const WeightMap& problem, CallScratch& scratch) {
  const ConvolutionMap& map = problem.map;
  const PatchAxis &y = problem.y, &x = problem.x;
  const ImageSource &small = problem.small, &large = problem.large;
  const WeightTarget& target = problem.target;
  const size_t batch = problem.batch;
  const size_t rows = map.small_channels, channels = map.large_channels, taps = y.taps * x.taps;
  const size_t columns = channels * taps, width = x.pixels;
  const FewSlab slab(y, x, channels, true, batch);
  const size_t row_blocks = div_up(y.pixels, slab.rows), blocks = batch / slab.samples * row_blocks;
  const size_t work = map.groups * rows * columns * y.pixels * width * batch;
  // A power of two, which most numbers of threads share evenly.
  const size_t wanted = std::clamp<size_t>(work / kSliceWork, 1, std::max<size_t>(1, kSlices / map.groups));
  const size_t slices = std::min(std::bit_ceil(wanted), blocks);
  const size_t threads = threads_for(problem.threads, map.groups * slices * rows, work / 2);
  // Where slices are few, small channels are shared out: no sum depends on it.
  const size_t part_rows = div_up(rows, div_up(threads, map.groups * slices)), parts = div_up(rows, part_rows);
  const size_t part_sums = round_up(part_rows * columns, 4), sums = parts * part_sums;

  const bool dense = slab.samples == 1 && small.plain() && small.tensor->stride[1] == width;
  const size_t offset_floats = round_up(2 * columns, 16), slice_floats = round_up(map.groups * slices * sums, 16);
  const size_t g_stride = round_up(slab.flat, 16), slab_floats = slab.floats(channels);
  const size_t g_floats = dense ? 0 : rows * g_stride + round_up(2 * width, 16);
  const size_t own_floats = 16 * part_sums + slab_floats + slab.buffer_floats(x) + g_floats;
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, own_floats, offset_floats + slice_floats));
  if (scratch.measuring()) return;
  auto* const offset = buffer.as<ptrdiff_t>();
  float* const sliced = buffer.as<float>() + offset_floats;
  for (size_t i = 0; i < columns; ++i) {
    offset[i] = static_cast<ptrdiff_t>(i / taps * slab.channel_stride) + slab.tap_offset(y, x, i % taps);
  }
  parallel_for(map.groups * slices * parts, threads, [&](size_t task, size_t worker) {
    const size_t group = task / parts / slices, slice = task / parts % slices;
    const size_t s0 = task % parts * part_rows, s1 = std::min(rows, s0 + part_rows);
    float* lanes = sliced + slice_floats + worker * own_floats;
    float *source = lanes + 16 * part_sums, *slab_buffer = source + slab_floats,
          *staged = slab_buffer + slab.buffer_floats(x);
    std::fill_n(lanes, 16 * part_sums, 0.0f);
    FewDots dots;
    dots.rows = s1 - s0, dots.columns = columns, dots.x = source, dots.offset = offset, dots.lanes = lanes;
    for (size_t b = slice * blocks / slices; b < (slice + 1) * blocks / slices; ++b) {
      const size_t n = b / row_blocks * slab.samples, u0 = b % row_blocks * slab.rows,
                   u1 = std::min(y.pixels, u0 + slab.rows);
      slab.fill(large, y, x, n, group * channels, channels, u0, u1, source, slab_buffer);
      dots.flat = slab.flat_of(u1 - u0, width);
      if (dense) {
        dots.g = small.plain_at(n, group * rows + s0, u0), dots.g_stride = small.tensor->stride[2];
        if (u1 == y.pixels && n + 1 < batch) {  // the next block's
          dots.ahead = small.plain_at(n + 1, group * rows + s0, 0);
          dots.ahead_end = dots.ahead + dots.rows * dots.g_stride;
        }
      } else {
        for (size_t p = 0; p < (s1 - s0) * slab.samples; ++p) {
          const size_t s = p / slab.samples, i = p % slab.samples;
          few_copy_source(small, n + i, group * rows + s0 + s, {u0, u1}, 0, width, staged + s * g_stride + i * width,
                          slab.length, staged + rows * g_stride);
        }
        dots.g = staged, dots.g_stride = g_stride;
      }
      few_dots(dots);
    }
    few_lane_sums(lanes, part_sums, sliced + task * part_sums);
  });
  parallel_for(
      map.groups * rows, threads_for(threads, map.groups * rows, map.groups * sums * slices), [&](size_t task, size_t) {
        const size_t group = task / rows, s = task % rows;
        const float* from = sliced + group * slices * sums + s / part_rows * part_sums + s % part_rows * columns;
        float* to =
            target.data + static_cast<ptrdiff_t>(group) * target.group + static_cast<ptrdiff_t>(s) * target.small;
        for (size_t l = 0; l < channels; ++l, to += target.large) {
          float* row = to;
          for (size_t ky = 0; ky < y.taps; ++ky, row += target.y) {
            for (size_t kx = 0; kx < x.taps; ++kx, ++from) {
              float sum = *from;
              for (size_t k = 1; k < slices; ++k) sum += from[k * sums];
              float& at = row[static_cast<ptrdiff_t>(kx) * target.x];
              at = target.accumulate ? at + sum : sum;
            }
          }
        }
      });
}

}  // namespace bnns
