// Weight gradients with small channels as lanes: broadcast taps times vectors of gradients.

#include <algorithm>
#include <bit>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/gemm/pack.h"
#include "src/ops/convolution/common/kernels.h"
#include "src/ops/convolution/few/lanes.h"

namespace bnns {
namespace {

constexpr size_t kMostSums = 32 * 1024;  // floats of dW of a group, padded: 128 KB
constexpr size_t kSlices = 16;           // of the batch, at most
constexpr size_t kSliceWork = 1 << 20;   // multiply-adds that are worth one
constexpr size_t kStorePart = 128;       // weights of a channel that are added up and stored at once

}  // namespace

bool accepts_few_lanes_dw(const WeightMap& p) {
  const ConvolutionMap& map = p.map;
  const PatchAxis &y = p.y, &x = p.x;
  const size_t width = round_up(map.small_channels, kLanesUnit), depth = map.large_channels * y.taps * x.taps;
  return width <= kLanesMost && 4 * (width - map.small_channels) < width && x.step <= 2 && x.tap == 1 &&
         (x.taps == 3 || x.taps == 5 || x.taps == 7) && depth * width <= kMostSums &&
         x.pixels * width <= 4 * kLanesRowFloats;
}

// A task takes a slice of all blocks (rows of samples) for one group. Slices follow from the shape and are added in
// order.
void run_few_lanes_dw(const WeightMap& problem, CallScratch& scratch) {
  const ConvolutionMap& map = problem.map;
  const PatchAxis &y = problem.y, &x = problem.x, columns = lanes_columns(x);
  const ImageSource &small = problem.small, &large = problem.large;
  const WeightTarget& target = problem.target;
  const size_t batch = problem.batch;
  const size_t rows = map.small_channels, channels = map.large_channels, width = round_up(rows, kLanesUnit);
  const size_t panel = x.taps == 7 ? std::min<size_t>(width, 32) : width;
  const size_t taps = y.taps * x.taps, depth = channels * taps, sums = depth * width;
  const size_t block = lanes_rows(y, x, width), row_blocks = div_up(y.pixels, block), blocks = batch * row_blocks;
  const size_t work = map.groups * sums * y.pixels * x.pixels * batch;
  // A power of two, which most numbers of threads share evenly.
  const size_t most_slices = std::clamp<size_t>(work / map.groups / kSliceWork, 1, div_up(kSlices, map.groups));
  const size_t slices = std::min(std::bit_ceil(most_slices), blocks);
  // Source channels are split where slices are few: no sum depends on it.
  const size_t threads = threads_for(problem.threads, map.groups * slices * channels, work / 2);
  const size_t wanted = threads == 1 ? 1 : std::min(channels, div_up(2 * threads, map.groups * slices));
  const size_t some_channels = div_up(channels, wanted), parts = div_up(channels, some_channels);

  const bool dense = small.plain() && small.tensor->stride[1] == x.pixels;
  const size_t slab = round_up(slab_floats(y, columns, {0, 1, 0, block, 0, columns.pixels}, some_channels), 16);
  const size_t g_floats = block * x.pixels * panel;
  const size_t own = slab + g_floats + (dense ? 0 : round_up(block * x.pixels * rows + 2 * x.pixels, 16));
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, own, map.groups * slices * sums));
  if (scratch.measuring()) return;
  float* const sliced = buffer.as<float>();
  const bool plain = !target.accumulate && target.x == 1 && target.y == static_cast<ptrdiff_t>(x.taps) &&
                     target.large == static_cast<ptrdiff_t>(taps) && target.small > 0;
  // dW = or += the slices, added in order, for weights [k0, k1) of the panel at small channel r0.
  const auto store = [&](size_t group, size_t r0, size_t k0, size_t k1) {
    const size_t some = std::min(panel, width - r0), r1 = std::min(rows, r0 + some);
    float* sum = sliced + group * slices * sums + r0 * depth + k0 * some;
    for (size_t i = 1; i < slices; ++i) add_values(sum + i * sums, sum, (k1 - k0) * some);
    float* const to =
        target.data + static_cast<ptrdiff_t>(group) * target.group + static_cast<ptrdiff_t>(r0) * target.small;
    if (plain) return lanes_transpose(sum, some, k1 - k0, r1 - r0, to + k0, static_cast<size_t>(target.small));
    for (size_t k = k0; k < k1; ++k, sum += some) {
      const size_t t = k % taps;
      float* at = to + static_cast<ptrdiff_t>(k / taps) * target.large + static_cast<ptrdiff_t>(t / x.taps) * target.y +
                  static_cast<ptrdiff_t>(t % x.taps) * target.x;
      for (size_t r = 0; r < r1 - r0; ++r, at += target.small) *at = target.accumulate ? *at + sum[r] : sum[r];
    }
  };
  parallel_for(map.groups * slices * parts, threads, [&](size_t task, size_t worker) {
    const size_t group = task / parts / slices, slice = task / parts % slices;
    const size_t c0 = task % parts * some_channels, c1 = std::min(channels, c0 + some_channels);
    float* const dw = sliced + task / parts * sums;
    float* const slab_buffer = sliced + map.groups * slices * sums + worker * own;
    float *const g = slab_buffer + slab, *const stage = g + g_floats;
    for (size_t r = 0; r < width; r += panel) {
      const size_t some = std::min(panel, width - r);
      std::fill_n(dw + r * depth + c0 * taps * some, (c1 - c0) * taps * some, 0.0f);
    }
    if (rows < width) std::fill_n(g, g_floats, 0.0f);
    const size_t end = (slice + 1) * blocks / slices;
    for (size_t b = slice * blocks / slices; b < end; ++b) {
      const size_t n = b / row_blocks, u0 = b % row_blocks * block, u1 = std::min(y.pixels, u0 + block);
      const size_t count = (u1 - u0) * x.pixels;
      const float* from = stage;
      size_t stride = count;
      if (dense) {
        from = small.plain_at(n, group * rows, u0);
        stride = small.tensor->stride[2];
      } else {
        for (size_t p = 0; p < rows * (u1 - u0); ++p) {
          const float* row = small.row(n, group * rows + p / (u1 - u0), u0 + p % (u1 - u0), 0, x.pixels,
                                       stage + block * x.pixels * rows);
          std::memcpy(stage + p * x.pixels, row, x.pixels * sizeof(float));
        }
      }
      const Slab s = make_slab(large, y, columns, {n, n + 1, u0, u1, 0, columns.pixels}, group * channels + c0, c1 - c0,
                               slab_buffer);
      const LaneWindows windows = lane_windows(s, y, x, c1 - c0, u1 - u0);
      LinesAhead ahead;  // the next block's gradients: short runs, which the hardware does not foresee
      if (dense && b + 1 < end) {
        ahead.from = small.plain_at((b + 1) / row_blocks, group * rows, (b + 1) % row_blocks * block);
        ahead.runs = rows, ahead.lines = div_up(block * x.pixels, 16), ahead.stride = stride;
        ahead.some = div_up(ahead.runs * ahead.lines, div_up(width, panel) * (c1 - c0) * div_up(y.taps, 2));
      }
      for (size_t r = 0; r < width; r += panel) {
        const size_t some = std::min(panel, width - r);
        pack_strided(strided_lens(from + r * stride, FloatType::f32, static_cast<ptrdiff_t>(stride), 1),
                     {0, std::min(some, rows - r)}, {0, count}, {g, some, g_floats});
        lanes_dots(windows, g, some, dw + r * depth + c0 * taps * some, ahead);
      }
    }
    for (size_t r = 0; r < width && slices == 1; r += panel) store(group, r, c0 * taps, c1 * taps);
  });
  if (slices == 1) return;
  const size_t panels = div_up(width, panel), pieces = div_up(depth, kStorePart), tasks = map.groups * panels * pieces;
  parallel_for(tasks, threads_for(threads, tasks, map.groups * sums * slices), [&](size_t task, size_t) {
    const size_t k0 = task % pieces * kStorePart;
    store(task / pieces / panels, task / pieces % panels * panel, k0, std::min(depth, k0 + kStorePart));
  });
}

}  // namespace bnns
