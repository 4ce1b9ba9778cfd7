// The algorithms of normalization, in the order in which they are asked. src/core/implementation.h says how such a
// table works, README.md shows them.
#pragma once

#include <cstddef>

#include "src/core/implementation.h"
#include "src/ops/normalization/common/plan.h"

namespace bnns {

class ForwardPass;
class BackwardPass;

// What decides which algorithm a pass takes.
struct NormalizationShape {
  const NormalizationPlan& plan;
  bool split = false;             // sets of several segments, fewer sets than keep the threads busy
  bool has_affine = false;        // gamma or beta
  bool joined = false;            // all operands are dense f32 and used in place
  bool gathers = true;            // forward: moments are summed from x
  bool wants_parameters = false;  // backward: dbeta or dgamma
};

using NormalizationForwardEntry = Implementation<NormalizationShape, void (ForwardPass::*)() const>;
inline constexpr size_t kForwardEntries = 5;
extern const NormalizationForwardEntry kNormalizationForward[kForwardEntries];

using NormalizationBackwardEntry = Implementation<NormalizationShape, void (BackwardPass::*)() const>;
inline constexpr size_t kBackwardEntries = 6;
extern const NormalizationBackwardEntry kNormalizationBackward[kBackwardEntries];

// The entry of a pass over dense tensors; backward with all gradients wanted.
const char* normalization_forward_name(const NormalizationProblem& problem, const NormalizationParameters& parameters,
                                       size_t batch, size_t n_threads);
const char* normalization_backward_name(const NormalizationProblem& problem, const NormalizationParameters& parameters,
                                        size_t batch, size_t n_threads);

// Each beside its algorithm.
bool accepts_forward_columns(const NormalizationShape& shape);
bool accepts_forward_split(const NormalizationShape& shape);
bool accepts_forward_rows(const NormalizationShape& shape);
bool accepts_forward_bundles(const NormalizationShape& shape);
bool accepts_backward_columns(const NormalizationShape& shape);
bool accepts_backward_rows(const NormalizationShape& shape);
bool accepts_backward_split(const NormalizationShape& shape);
bool accepts_backward_bundles(const NormalizationShape& shape);
bool accepts_backward_groups(const NormalizationShape& shape);

}  // namespace bnns
