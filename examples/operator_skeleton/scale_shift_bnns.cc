// The C entry point that makes scale-and-shift filters; BNNSFilterApply[Batch] and BNNSFilterApplyBackwardBatch apply
// them.

#include "examples/operator_skeleton/scale_shift.h"

using namespace bnns;

BNNSFilter BNNSExtFilterCreateLayerScaleShift(const BNNSExtLayerParametersScaleShift* layer,
                                              const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSExtFilterCreateLayerScaleShift", BNNSFilter{}, [&] {
    const Options options = read_options(parameters, "scale_shift");
    return make_filter<ScaleShiftFilter>(options, make_scale_shift_problem(layer));
  });
}
