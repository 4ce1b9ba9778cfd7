#include "src/ops/gram/gram.h"

BNNSFilter BNNSFilterCreateLayerGram(const BNNSLayerParametersGram* layer,
                                     const BNNSFilterParameters* parameters) noexcept {
  return bnns::guarded("BNNSFilterCreateLayerGram", BNNSFilter{}, [&] {
    return bnns::make_filter<bnns::ProductFilter>(bnns::read_options(parameters, "gram"),
                                                  bnns::make_gram_problem(layer));
  });
}
