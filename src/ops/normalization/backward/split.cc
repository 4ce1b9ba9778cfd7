// Backward segment by segment, where sets are few and long: all sums first, then dx; see pass.h.

#include "src/ops/normalization/backward/pass.h"

namespace bnns {

bool accepts_backward_split(const NormalizationShape& shape) {
  return shape.split;
}

void BackwardPass::run_split() const {
  if (!begin_sets()) return;
  GradientSums* table = at<GradientSums>(table_at_);
  GradientCoefficients* numbers = at<GradientCoefficients>(coefficients_at_);
  const size_t tasks = plan_.sets * plan_.segments;
  parallel_for(tasks, schedule_.threads,
               [&](size_t task, size_t) { table[task] = segment_sums(task / plan_.segments, task % plan_.segments); });
  for (size_t set = 0; set < plan_.sets; ++set) {
    SetSums sums(*this, set);
    for (size_t s = 0; s < plan_.segments; ++s) sums.add(s, table[set * plan_.segments + s]);
    numbers[set] = sums.finish();
  }
  if (!call_.dx) return;
  parallel_for(tasks, schedule_.threads, [&](size_t task, size_t) {
    write_segment(task / plan_.segments, task % plan_.segments, numbers[task / plan_.segments]);
    if (stream_) hwy::FlushStream();
  });
}

}  // namespace bnns
