// BNNSFilterCreateLayerEmbedding.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/ops/embedding/embedding.h"

BNNSFilter BNNSFilterCreateLayerEmbedding(const BNNSLayerParametersEmbedding* layer_params,
                                          const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded("BNNSFilterCreateLayerEmbedding", BNNSFilter{}, [&] {
    const bnns::Options options = bnns::read_options(filter_params, "embedding");
    return bnns::make_filter<bnns::EmbeddingFilter>(options, bnns::make_embedding_problem(layer_params));
  });
}
