// The C entry point that makes dropout filters; BNNSFilterApply[Batch] and BNNSFilterApplyBackwardBatch apply them.

#include "bnns/bnns.h"
#include "src/ops/dropout/dropout.h"

using namespace bnns;

BNNSFilter BNNSFilterCreateLayerDropout(const BNNSLayerParametersDropout* layer,
                                        const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSFilterCreateLayerDropout", BNNSFilter{}, [&] {
    const Options options = read_options(parameters, "dropout");
    return make_filter<DropoutFilter>(options, make_dropout_problem(layer));
  });
}
