// Depthwise weight gradients of 3x3 windows: nine dot products for each plane.

#include <algorithm>

#include "src/core/checked.h"
#include "src/ops/convolution/depthwise/tile.h"
#include "src/ops/convolution/depthwise/window.h"

namespace bnns {
namespace {

constexpr size_t kDotPixels = 4096;   // summed in float before the double: 256 per lane
constexpr size_t kDotChannels = 8;    // of a task at least; their planes of one sample lie side by side
constexpr size_t kDotFloats = 16384;  // that a task reads in a row, where planes are small
// Small planes of so many samples share a load and a store of the lanes. (Of four they meet in one set of L1.)
constexpr size_t kDotSamples = 2, kSmallPlane = 256;

}  // namespace

bool accepts_depthwise_tile_dw(const WeightMap& p) {
  WindowAxis wy, wx;
  return is_depthwise(p.map) && p.y.step == p.x.step && window_axis(p.y, &wy) && window_axis(p.x, &wx);
}

// A task owns a few channels and walks the batch in order. Bands follow from the shape, so every layout has the same
// sums.
void run_depthwise_tile_dw(const WeightMap& problem, CallScratch& scratch) {
  const ConvolutionMap& map = problem.map;
  const PatchAxis &y = problem.y, &x = problem.x;
  const ImageSource &small = problem.small, &large = problem.large;
  const WeightTarget& target = problem.target;
  const size_t batch = problem.batch;
  WindowAxis wy, wx;
  window_axis(y, &wy), window_axis(x, &wx);
  const auto step = static_cast<size_t>(x.step);
  const size_t band = band_rows(y.pixels, step * wx.used, x.pixels);
  const size_t large_buffer = large.plain() ? 0 : round_up((std::min(y.extent, band * step + 2) + 2) * wx.used, 16);
  const size_t small_buffer = small.plain() ? 0 : round_up((band + 2) * x.pixels, 16);
  const size_t zeros_floats = round_up(wx.used, 16);
  const size_t side_by_side = std::clamp<size_t>(kDotFloats / (y.extent * x.extent), kDotChannels, 8 * kDotChannels);
  const size_t channels = std::clamp<size_t>(map.groups / 8, 1, side_by_side), tasks = div_up(map.groups, channels);
  constexpr size_t kLanes = 9 * kDepthwiseLanes, kSums = 32;  // floats per channel: lanes, nine doubles
  const size_t floats = channels * (kLanes + kSums) + large_buffer + small_buffer;
  const size_t threads = std::min(tasks, threads_for_planes(problem.threads, map, batch));
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, floats, zeros_floats));
  if (scratch.measuring()) return;
  std::fill_n(buffer.as<float>(), zeros_floats, 0.0f);
  DepthwiseWindow window = make_window(y, wy, wx, large);
  window.zeros = buffer.as<float>(), window.sample_stride = large.batch_stride;
  window.far = planes_are_far(map, batch);
  const bool together = large.plain() && small.plain();
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    const size_t c0 = task * channels, c1 = std::min(map.groups, c0 + channels);
    float* lanes = buffer.as<float>() + zeros_floats + worker * floats;
    double* sums = reinterpret_cast<double*>(lanes + channels * kLanes);
    float *large_rows = lanes + channels * (kLanes + kSums), *small_rows = large_rows + large_buffer;
    std::fill_n(lanes, channels * (kLanes + kSums), 0.0f);
    DepthwiseWindow plane = window;
    size_t pending = 0;  // pixels in the lanes
    size_t samples = 1;
    for (size_t n = 0; n < batch; n += samples) {
      if (together && y.pixels * x.pixels <= kSmallPlane) {
        samples = std::min({kDotSamples, batch - n, div_up(kDotPixels - pending, y.pixels * x.pixels)});
      }
      for (size_t u0 = 0; u0 < y.pixels; u0 += band) {
        const size_t u1 = std::min(y.pixels, u0 + band);
        const Range rows = window_rows(y, wy, u0, u1);
        const size_t planes = together ? c1 - c0 : 1;
        for (size_t c = c0; c < c1; c += planes) {
          plane.x = source_rows(large, n, c, rows.begin, rows.end, wx.used, large_rows, &plane.row_stride);
          ptrdiff_t g_stride;
          const float* g = source_rows(small, n, c, u0, u1, x.pixels, small_rows, &g_stride);
          DepthwiseGradient gradient{g, small.tensor->stride[2], static_cast<size_t>(g_stride),
                                     lanes + (c - c0) * kLanes, small.batch_stride};
          const bool more = together && n + samples < batch;
          plane.next = more ? large.plain_at(n + samples, c, 0) : nullptr;
          gradient.next = more ? small.plain_at(n + samples, c, 0) : nullptr;
          plane.samples = samples;
          depthwise_dots(plane, planes, {u0, u1}, x.pixels, gradient);
        }
        pending += samples * (u1 - u0) * x.pixels;
        if (pending < kDotPixels && (n + samples < batch || u1 < y.pixels)) continue;
        for (size_t c = 0; c < c1 - c0; ++c) depthwise_dot_sums(lanes + c * kLanes, sums + c * kSums / 2);
        pending = 0;
      }
    }
    for (size_t c = c0; c < c1; ++c) {
      float* to = target.data + static_cast<ptrdiff_t>(c) * target.group;
      for (ptrdiff_t k = 0; k < 9; ++k) {
        float& at = to[k / 3 * target.y + k % 3 * target.x];
        const auto sum = static_cast<float>(sums[(c - c0) * kSums / 2 + static_cast<size_t>(k)]);
        at = target.accumulate ? at + sum : sum;
      }
    }
  });
}

}  // namespace bnns
