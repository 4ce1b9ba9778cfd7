#include "src/ops/convolution/convolution_lanes.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/gemm/pack.h"
#include "src/ops/convolution/convolution_kernels.h"

namespace bnns {
namespace {

constexpr size_t kMostWeights = 16 * 1024;  // floats of a group, padded: 64 KB
constexpr size_t kLeastDepth = 64;          // multiply-adds that repay the transposition
constexpr size_t kStreamBytes = 4u << 20;   // targets from here on go around the caches
constexpr size_t kShortRow = 16;            // pixels; longer rows without a stride fill vectors well enough
constexpr size_t kTasks = 4;                // wanted per thread

// [channel][tap][s] of one group.
void pack_lanes(const PatchAxis& y, const PatchAxis& x, const WeightView& w, size_t group, size_t rows, size_t channels,
                size_t width, float* to) {
  const size_t taps = y.taps * x.taps, depth = channels * taps;
  const float* base = w.data + static_cast<ptrdiff_t>(group) * w.group + static_cast<ptrdiff_t>(y.kernel_first) * w.y +
                      static_cast<ptrdiff_t>(x.kernel_first) * w.x;
  if (rows < width) std::fill_n(to, depth * width, 0.0f);
  if (w.x == 1 && w.y == static_cast<ptrdiff_t>(x.taps) && w.large == static_cast<ptrdiff_t>(taps)) {
    pack_strided(strided_lens(base, FloatType::f32, w.small, 1), {0, rows}, {0, depth}, {to, width, depth * width});
    return;
  }
  for (size_t k = 0; k < depth; ++k, to += width) {
    const size_t t = k % taps;
    const float* from = base + static_cast<ptrdiff_t>(k / taps) * w.large + static_cast<ptrdiff_t>(t / x.taps) * w.y +
                        static_cast<ptrdiff_t>(t % x.taps) * w.x;
    for (size_t s = 0; s < rows; ++s) to[s] = from[static_cast<ptrdiff_t>(s) * w.small];
  }
}

}  // namespace

PatchAxis lanes_columns(const PatchAxis& x) {
  PatchAxis all = x;
  all.pixels = (x.pixels - 1) * static_cast<size_t>(x.step) + 1;
  all.step = 1;
  return all;
}

size_t lanes_rows(const PatchAxis& y, const PatchAxis& x, size_t width) {
  return std::clamp<size_t>(kLanesRowFloats / (x.pixels * width), 1, y.pixels);
}

LaneWindows lane_windows(const Slab& s, const PatchAxis& y, const PatchAxis& x, size_t channels, size_t rows) {
  LaneWindows w;
  w.x = s.data + s.tap_offset(0);
  w.channels = channels, w.taps_y = y.taps, w.taps_x = x.taps;
  w.channel_stride = s.channel_stride, w.tap_row = s.tap_row, w.row_stride = s.target_row_stride;
  w.rows = rows, w.pixels = x.pixels, w.step = static_cast<size_t>(x.step);
  return w;
}

bool lanes_accepts(const ConvolutionMap& map) {
  const PatchAxis y = down_axis(map.y), x = down_axis(map.x);
  const size_t width = round_up(map.small_channels, kLanesUnit), depth = map.large_channels * y.taps * x.taps;
  if (x.step != 2 && (x.step != 1 || x.pixels > kShortRow)) return false;
  return width <= kLanesMost && 8 * (width - map.small_channels) <= width && x.tap == 1 && x.taps > 1 &&
         depth >= kLeastDepth && depth * width <= kMostWeights && x.pixels * width <= 4 * kLanesRowFloats;
}

// A task is a few rows of a sample; how many follows from the number of tasks that the threads want, which no sum
// depends on.
void lanes_down(const ConvolutionMap& map, size_t batch, const ImageSource& source, const ImageTarget& target,
                const WeightView& w, ScratchShelf& scratch, size_t threads) {
  const PatchAxis y = down_axis(map.y), x = down_axis(map.x), columns = lanes_columns(x);
  const size_t rows = map.small_channels, channels = map.large_channels, width = round_up(rows, kLanesUnit);
  const size_t depth = channels * y.taps * x.taps, images = batch * map.groups;
  threads = threads_for(threads, images * y.pixels, images * rows * depth * y.pixels * x.pixels / 2);
  const size_t wanted = threads == 1 ? 1 : std::min(y.pixels, div_up(kTasks * threads, images));
  const size_t block = std::min(lanes_rows(y, x, width), div_up(y.pixels, wanted)), blocks = div_up(y.pixels, block);
  const size_t most = block * x.pixels;
  const bool dense = target.plain() && !target.accumulate && target.tensor->stride[1] == x.pixels;
  const bool stream = images * rows * y.pixels * x.pixels * sizeof(float) >= kStreamBytes;

  const size_t slab = round_up(slab_floats(y, columns, {0, 1, 0, block, 0, columns.pixels}, channels), 16);
  const size_t staged = round_up(most * width, 16), own = slab + 2 * staged;
  ScratchShelf::Lease room(scratch, scratch_bytes(threads, own, map.groups * depth * width));
  float* const packed = room.as<float>();
  for (size_t g = 0; g < map.groups; ++g) {
    pack_lanes(y, x, w, g, rows, channels, width, packed + g * depth * width);
  }
  parallel_for(images * blocks, threads, [&](size_t task, size_t worker) {
    const size_t u0 = task % blocks * block, u1 = std::min(y.pixels, u0 + block);
    const size_t group = task / blocks % map.groups, n = task / blocks / map.groups, count = (u1 - u0) * x.pixels;
    float* const slab_room = packed + map.groups * depth * width + worker * own;
    float *const sums = slab_room + slab, *const planes = sums + staged;
    const Slab s =
        make_slab(source, y, columns, {n, n + 1, u0, u1, 0, columns.pixels}, group * channels, channels, slab_room);
    const LaneWindows windows = lane_windows(s, y, x, channels, u1 - u0);
    lanes_sums(windows, packed + group * depth * width, width, sums);
    lanes_transpose(sums, width, count, rows, planes, count);
    for (size_t r = 0; r < rows; ++r) {
      const size_t channel = group * rows + r;
      float* values = planes + r * count;
      finish_values(target, channel, values, count);
      if (!dense) {
        for (size_t u = u0; u < u1; ++u) {
          store_run(target, n, channel, u, 0, 1, values + (u - u0) * x.pixels, x.pixels);
        }
        continue;
      }
      float* to = static_cast<float*>(target.data) + n * target.batch_stride + channel * target.tensor->stride[2] +
                  u0 * x.pixels;
      if (stream) {
        stream_values(values, count, to);
      } else {
        std::memcpy(to, values, count * sizeof(float));
      }
    }
    if (dense && stream) stream_end();
  });
}

}  // namespace bnns
