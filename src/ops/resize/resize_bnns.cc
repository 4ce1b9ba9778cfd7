// BNNSFilterCreateLayerResize.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/ops/resize/resize.h"

BNNSFilter BNNSFilterCreateLayerResize(const BNNSLayerParametersResize* layer_params,
                                       const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded("BNNSFilterCreateLayerResize", BNNSFilter{}, [&] {
    const bnns::Options options = bnns::read_options(filter_params, "resize");
    return bnns::make_filter<bnns::ResizeFilter>(options, bnns::make_resize_problem(layer_params));
  });
}
