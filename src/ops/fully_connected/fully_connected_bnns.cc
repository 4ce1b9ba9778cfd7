// The C entry points that make fully connected filters.

#include <cstring>

#include "bnns/bnns.h"
#include "src/ops/fully_connected/fully_connected.h"
#include "src/ops/fully_connected/fully_connected_sparse.h"
#include "src/tensor/legacy.h"

using namespace bnns;

BNNSFilter BNNSFilterCreateLayerFullyConnected(const BNNSLayerParametersFullyConnected* layer,
                                               const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSFilterCreateLayerFullyConnected", BNNSFilter{}, [&] {
    const Options options = read_options(parameters, "fully_connected");
    if (layer && layer->w_desc.layout == BNNSDataLayoutFullyConnectedSparse) {
      return make_filter<SparseFullyConnectedFilter>(options, make_sparse_fully_connected_problem(layer));
    }
    return make_filter<FullyConnectedFilter>(options, make_fully_connected_problem(layer));
  });
}

// The constructor of 2016, in terms of today's.
BNNSFilter BNNSFilterCreateFullyConnectedLayer(const BNNSVectorDescriptor* in_desc,
                                               const BNNSVectorDescriptor* out_desc,
                                               const BNNSFullyConnectedLayerParameters* old,
                                               const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSFilterCreateFullyConnectedLayer", BNNSFilter{}, [&] {
    if (!in_desc || !out_desc || !old) {
      fail_invalid("fully_connected: in_desc, out_desc or layer_params is NULL, expected all three");
    }
    if (old->in_size != in_desc->size || old->out_size != out_desc->size) {
      fail_invalid("fully_connected: layer_params is %zu to %zu, expected %zu to %zu as in in_desc and out_desc",
                   old->in_size, old->out_size, in_desc->size, out_desc->size);
    }
    BNNSLayerParametersFullyConnected layer;
    std::memset(&layer, 0, sizeof layer);
    layer.i_desc = from_vector(*in_desc);
    layer.o_desc = from_vector(*out_desc);
    layer.w_desc = from_layer_data(old->weights);
    layer.w_desc.layout = BNNSDataLayoutRowMajorMatrix;
    layer.w_desc.size[0] = old->in_size;
    layer.w_desc.size[1] = old->out_size;
    layer.bias = from_bias(old->bias, old->out_size);
    layer.activation = old->activation;
    const Options options = read_options(parameters, "fully_connected");
    return make_filter<FullyConnectedFilter>(options, make_fully_connected_problem(&layer));
  });
}
