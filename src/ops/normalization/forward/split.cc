// Forward segment by segment, where sets are few and long: all sums first, then x^ and y; see pass.h.

#include "src/ops/normalization/forward/pass.h"

namespace bnns {

bool accepts_forward_split(const NormalizationShape& shape) {
  return shape.split;
}

void ForwardPass::run_split() const {
  MomentSums* moments = at<MomentSums>(moments_at_);
  SetCoefficients* coefficients = at<SetCoefficients>(coefficients_at_);
  const size_t tasks = plan_.sets * plan_.segments;
  if (gather_moments_) {
    parallel_for(tasks, schedule_.threads, [&](size_t task, size_t) {
      moments[task] = segment_moments(task / plan_.segments, task % plan_.segments);
    });
  }
  for (size_t set = 0; set < plan_.sets; ++set) {
    MomentSums sums;
    if (call_.moments) sums = call_.moments[set];
    for (size_t s = 0; gather_moments_ && s < plan_.segments; ++s) sums.merge(moments[set * plan_.segments + s]);
    coefficients[set] = finish_set(set, sums);
  }
  parallel_for(tasks, schedule_.threads, [&](size_t task, size_t) {
    normalize_segment(task / plan_.segments, task % plan_.segments, coefficients[task / plan_.segments]);
    flush();
  });
}

}  // namespace bnns
