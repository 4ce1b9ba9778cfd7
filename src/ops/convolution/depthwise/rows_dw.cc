// Depthwise weight gradients of any window: dot products of dY with slabs.

#include <algorithm>

#include "src/core/checked.h"
#include "src/ops/convolution/depthwise/rows.h"
#include "src/ops/convolution/depthwise/window.h"

namespace bnns {
namespace {

constexpr size_t kDotPixels = 4096;        // summed in float before the double: 256 per lane
constexpr size_t kTaskFloats = 16 * 1024;  // of planes that a task reads in a row, and of its sums
constexpr size_t kTaskChannels = 64;

}  // namespace

bool accepts_depthwise_rows_dw(const WeightMap& p) {
  return is_depthwise(p.map);
}

// A task owns a few channels and walks the batch in order. Bands follow from the shape, so every layout has the same
// sums.
void run_depthwise_rows_dw(const WeightMap& problem, CallScratch& scratch) {
  const ConvolutionMap& map = problem.map;
  const ImageSource &small = problem.small, &large = problem.large;
  const SlabPlan plan{TapAxis(problem.y), TapAxis(problem.x)};
  const size_t height = plan.y.pixels, width = plan.x.pixels, taps = plan.y.taps * plan.x.taps;
  const size_t most = std::min(kTaskFloats / (plan.y.extent * plan.x.extent + 1), kTaskFloats / (taps * kSumLanes));
  const size_t channels = std::clamp<size_t>(std::min(most, map.groups / 8), 1, kTaskChannels);
  const size_t tasks = div_up(map.groups, channels);
  const size_t lanes_floats = channels * taps * kSumLanes, sums_floats = round_up(2 * channels * taps, 16);
  const size_t slab_floats = plan.floats();
  const size_t staged_floats =
      std::max(large.plain() ? 0 : plan.staged_floats(), small.plain() ? 0 : round_up(2 * plan.band * width, 16));
  const size_t g_floats = small.plain() ? 0 : round_up(plan.planes * plan.band * width, 16);
  const size_t floats = lanes_floats + sums_floats + slab_floats + staged_floats + g_floats;
  const size_t threads = std::min(tasks, threads_for_planes(problem.threads, map, problem.batch));
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, floats));
  if (scratch.measuring()) return;
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    const size_t c0 = task * channels, c1 = std::min(map.groups, c0 + channels);
    float* lanes = buffer.as<float>() + worker * floats;
    double* sums = reinterpret_cast<double*>(lanes + lanes_floats);
    float *slab = lanes + lanes_floats + sums_floats, *staged = slab + slab_floats, *values = staged + staged_floats;
    std::fill_n(lanes, lanes_floats + sums_floats, 0.0f);
    size_t pending = 0;  // pixels in the lanes
    for (size_t n = 0; n < problem.batch; ++n) {
      for (size_t u0 = 0; u0 < height; u0 += plan.band) {
        const size_t u1 = std::min(height, u0 + plan.band);
        for (size_t c = c0; c < c1; c += plan.planes) {
          const size_t planes = std::min(plan.planes, c1 - c);
          plan.fill(large, n, c, planes, u0, u1, slab, staged);
          const float* g = values;
          size_t plane_stride = (u1 - u0) * width, row_stride = width;
          if (small.plain()) {
            g = small.plain_at(n, c, u0);
            plane_stride = small.tensor->stride[2], row_stride = small.tensor->stride[1];
          } else {
            for (size_t i = 0; i < planes; ++i) {
              std::copy_n(image_rows(small, n, c + i, {u0, u1}, staged), plane_stride, values + i * plane_stride);
            }
          }
          depthwise_products(slab_of(plan, slab, u1 - u0), planes, g, plane_stride, row_stride,
                             lanes + (c - c0) * taps * kSumLanes);
        }
        pending += (u1 - u0) * width;
        if (pending < kDotPixels && (n + 1 < problem.batch || u1 < height)) continue;
        depthwise_fold(lanes, (c1 - c0) * taps, sums);
        pending = 0;
      }
    }
    const WeightTarget& target = problem.target;
    for (size_t c = c0; c < c1; ++c) {
      float* to = target.data + static_cast<ptrdiff_t>(c) * target.group;
      for (size_t t = 0; t < taps; ++t, ++sums) {
        float& at =
            to[static_cast<ptrdiff_t>(t / plan.x.taps) * target.y + static_cast<ptrdiff_t>(t % plan.x.taps) * target.x];
        at = target.accumulate ? at + static_cast<float>(*sums) : static_cast<float>(*sums);
      }
    }
  });
}

}  // namespace bnns
