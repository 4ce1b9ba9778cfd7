// The tables of normalization: see implementations.h.

#include "src/ops/normalization/implementations.h"

#include "src/ops/normalization/backward/pass.h"
#include "src/ops/normalization/forward/pass.h"

namespace bnns {

const NormalizationForwardEntry kNormalizationForward[kForwardEntries] = {
    {"normalization/forward/columns", "batch, planes below 16 values: neighbouring values of every sample together",
     accepts_forward_columns, &ForwardPass::run_columns},
    {"normalization/forward/split", "fewer sets than keep the threads busy, each of several segments: all sums first",
     accepts_forward_split, &ForwardPass::run_split},
    {"normalization/forward/rows", "layer with gamma or beta, dense f32: sums of a row while another is written",
     accepts_forward_rows, &ForwardPass::run_rows},
    {"normalization/forward/bundles",
     "batch and instance, planes from 16 values on, sets of one segment: up to 64 sets "
     "that lie side by side together",
     accepts_forward_bundles, &ForwardPass::run_bundles},
    {"normalization/forward/sets", "everything else: one set after the other", accepts_any<NormalizationShape>,
     &ForwardPass::run_sets},
};

const NormalizationBackwardEntry kNormalizationBackward[kBackwardEntries] = {
    {"normalization/backward/columns", "batch, planes below 16 values: neighbouring values of every sample together",
     accepts_backward_columns, &BackwardPass::run_columns},
    {"normalization/backward/rows",
     "layer and groups of short planes, dbeta or dgamma wanted, up to 4096 parameters: "
     "dx and the sums over rows in one pass",
     accepts_backward_rows, &BackwardPass::run_rows},
    {"normalization/backward/split", "fewer sets than keep the threads busy, each of several segments: all sums first",
     accepts_backward_split, &BackwardPass::run_split},
    {"normalization/backward/bundles",
     "batch and instance, planes from 16 values on, sets of one segment: up to 64 "
     "sets that lie side by side together",
     accepts_backward_bundles, &BackwardPass::run_bundles},
    {"normalization/backward/groups", "group, dense f32: up to 64 channels together", accepts_backward_groups,
     &BackwardPass::run_groups},
    {"normalization/backward/sets", "everything else: one set after the other", accepts_any<NormalizationShape>,
     &BackwardPass::run_sets},
};

}  // namespace bnns
