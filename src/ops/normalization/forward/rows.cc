// Forward over rows that are sets each, a few at a time; see pass.h.

#include "src/ops/normalization/forward/pass.h"

namespace bnns {

bool accepts_forward_rows(const NormalizationShape& shape) {
  const NormalizationPlan& plan = shape.plan;
  return shape.joined && plan.per_element && plan.segments == 1 && shape.has_affine && shape.gathers &&
         plan.affine_length == plan.set_columns;
}

void ForwardPass::run_rows() const {
  for_each_task([&](Range sets) {
    const Rectangle r{sets.begin, 0, sets.size(), plan_.set_columns};
    float* rstd = call_.state ? call_.state->rstd() + sets.begin : nullptr;
    normalize_each_row(block(r, x_.read(r, nullptr), y_.target(r, nullptr)), problem_.epsilon, affine_.gamma,
                       affine_.beta, rstd);
  });
}

}  // namespace bnns
