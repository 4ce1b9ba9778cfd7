#include "src/ops/contraction/contraction.h"

BNNSFilter BNNSFilterCreateLayerTensorContraction(const BNNSLayerParametersTensorContraction* layer,
                                                  const BNNSFilterParameters* parameters) noexcept {
  return bnns::guarded("BNNSFilterCreateLayerTensorContraction", BNNSFilter{}, [&] {
    return bnns::make_filter<bnns::ProductFilter>(bnns::read_options(parameters, "contraction"),
                                                  bnns::make_contraction_problem(layer));
  });
}
