// BNNSFilterCreateLayerPadding.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/ops/padding/padding.h"

BNNSFilter BNNSFilterCreateLayerPadding(const BNNSLayerParametersPadding* layer_params,
                                        const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded("BNNSFilterCreateLayerPadding", BNNSFilter{}, [&] {
    const bnns::Options options = bnns::read_options(filter_params, "padding");
    return bnns::make_filter<bnns::PaddingFilter>(options, bnns::make_padding_problem(layer_params));
  });
}
