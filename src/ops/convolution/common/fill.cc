// The pixels of a map that no tap reaches.

#include "src/ops/convolution/common/fill.h"

#include <algorithm>

#include "src/core/parallel.h"

namespace bnns {

bool accepts_fill(const PatchMap& p) {
  return !p.has_taps();
}

void run_fill(const PatchMap& p, CallScratch& scratch) {
  if (!scratch.measuring()) fill_pixels(p.y, p.x, p.batch, p.groups() * p.rows, p.target, p.threads);
}

void fill_pixels(const PatchAxis& y, const PatchAxis& x, size_t batch, size_t channels, const ImageTarget& target,
                 size_t threads) {
  if (target.accumulate) return;
  const size_t tasks = batch * channels;
  threads = threads_for(threads, tasks, tasks * y.pixels * x.pixels * sizeof(float));
  parallel_for(tasks, threads, [&](size_t task, size_t) {
    const size_t n = task / channels, c = task % channels;
    float values[64];
    std::fill_n(values, 64, target.bias ? target.bias[c] : 0.0f);
    if (!target.activation.is_identity()) activation_forward(target.activation, values, values, 64);
    for (size_t u = 0; u < y.pixels; ++u) {
      for (size_t v = 0; v < x.pixels; v += 64) {
        store_run(target, n, c, y.target_first + u * y.target_step, x.target_first + v * x.target_step, x.target_step,
                  values, std::min<size_t>(64, x.pixels - v));
      }
    }
  });
}

}  // namespace bnns
