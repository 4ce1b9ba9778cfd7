// Depthwise weight gradients of any window: dot products of dY with the slab.

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/depthwise/slab.h"

namespace bnns {

bool accepts_depthwise_slab_dw(const WeightMap& p) {
  return is_depthwise(p.map);
}

// A task owns a channel and walks the batch in order.
void run_depthwise_slab_dw(const WeightMap& problem, CallScratch& scratch) {
  const ConvolutionMap& map = problem.map;
  const PatchAxis &y = problem.y, &x = problem.x;
  const ImageSource &small = problem.small, &large = problem.large;
  const WeightTarget& target = problem.target;
  const size_t batch = problem.batch;
  const size_t taps = y.taps * x.taps, step = depthwise_slab_rows(y, x);
  const size_t sums_floats = round_up(2 * taps, 16), stage = round_up(step * x.pixels + 2 * x.pixels, 16);
  const size_t floats = sums_floats + PhaseTaps::floats(taps) + depthwise_slab_floats(y, x) + stage;
  const size_t threads =
      threads_for(problem.threads, map.groups, batch * map.groups * map.y.large * map.x.large * sizeof(float));
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, floats));
  if (scratch.measuring()) return;
  const bool dense = small.plain();
  parallel_for(map.groups, threads, [&](size_t c, size_t worker) {
    float* own = buffer.as<float>() + worker * floats;
    double* sums = reinterpret_cast<double*>(own);
    const PhaseTaps phase(own + sums_floats, taps);
    float* slab_memory = own + sums_floats + PhaseTaps::floats(taps);
    float* staged = slab_memory + depthwise_slab_floats(y, x);
    std::fill_n(sums, taps, 0.0);
    PixelBlock block;
    block.v1 = x.pixels;
    for (size_t n = 0; n < batch; ++n) {
      block.n0 = n, block.n1 = n + 1;
      for (block.u0 = 0; block.u0 < y.pixels; block.u0 = block.u1) {
        block.u1 = std::min(y.pixels, block.u0 + step);
        const Slab slab = make_slab(large, y, x, block, c, 1, slab_memory);
        const float* g = staged;
        size_t g_stride = x.pixels;
        if (dense) {
          g = small.plain_at(n, c, block.u0);
          g_stride = small.tensor->stride[1];
        } else {
          for (size_t u = block.u0; u < block.u1; ++u) {
            const float* row = small.row(n, c, u, 0, x.pixels, staged + step * x.pixels);
            std::memcpy(staged + (u - block.u0) * x.pixels, row, x.pixels * sizeof(float));
          }
        }
        direct_dots(phase.of(slab, taps), g, g_stride, block.rows(), x.pixels, sums);
      }
    }
    float* to = target.data + static_cast<ptrdiff_t>(c) * target.group;
    for (size_t t = 0; t < taps; ++t) {
      float& at = to[static_cast<ptrdiff_t>(t / x.taps) * target.y + static_cast<ptrdiff_t>(t % x.taps) * target.x];
      at = target.accumulate ? at + static_cast<float>(sums[t]) : static_cast<float>(sums[t]);
    }
  });
}

}  // namespace bnns
