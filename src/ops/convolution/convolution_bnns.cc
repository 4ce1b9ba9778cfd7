// The C entry points that make convolution filters.

#include <cstring>

#include "bnns/bnns.h"
#include "src/ops/convolution/convolution.h"
#include "src/tensor/legacy.h"

using namespace bnns;

BNNSFilter BNNSFilterCreateLayerConvolution(const BNNSLayerParametersConvolution* layer,
                                            const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSFilterCreateLayerConvolution", BNNSFilter{}, [&] {
    const Options options = read_options(parameters, "convolution");
    return make_filter<ConvolutionFilter>(options, make_convolution_problem(layer, false));
  });
}

BNNSFilter BNNSFilterCreateLayerTransposedConvolution(const BNNSLayerParametersConvolution* layer,
                                                      const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSFilterCreateLayerTransposedConvolution", BNNSFilter{}, [&] {
    const Options options = read_options(parameters, "transposed_convolution");
    return make_filter<ConvolutionFilter>(options, make_convolution_problem(layer, true));
  });
}

// The constructor of 2016, in terms of today's.
BNNSFilter BNNSFilterCreateConvolutionLayer(const BNNSImageStackDescriptor* in_desc,
                                            const BNNSImageStackDescriptor* out_desc,
                                            const BNNSConvolutionLayerParameters* old,
                                            const BNNSFilterParameters* parameters) noexcept {
  return guarded("BNNSFilterCreateConvolutionLayer", BNNSFilter{}, [&] {
    if (!in_desc || !out_desc || !old) {
      fail_invalid("convolution: in_desc, out_desc or layer_params is NULL, expected all three");
    }
    if (old->in_channels != in_desc->channels || old->out_channels != out_desc->channels) {
      fail_invalid("convolution: layer_params has %zu to %zu channels, expected %zu to %zu as in in_desc and out_desc",
                   old->in_channels, old->out_channels, in_desc->channels, out_desc->channels);
    }
    BNNSLayerParametersConvolution layer;
    std::memset(&layer, 0, sizeof layer);
    layer.i_desc = from_image_stack(*in_desc);
    layer.o_desc = from_image_stack(*out_desc);
    layer.w_desc = from_layer_data(old->weights);
    layer.w_desc.layout = BNNSDataLayoutConvolutionWeightsOIHW;
    layer.w_desc.size[0] = old->k_width;
    layer.w_desc.size[1] = old->k_height;
    layer.w_desc.size[2] = old->in_channels;
    layer.w_desc.size[3] = old->out_channels;
    layer.bias = from_bias(old->bias, old->out_channels);
    layer.activation = old->activation;
    layer.x_stride = old->x_stride;
    layer.y_stride = old->y_stride;
    layer.x_padding = old->x_padding;
    layer.y_padding = old->y_padding;
    const Options options = read_options(parameters, "convolution");
    return make_filter<ConvolutionFilter>(options, make_convolution_problem(&layer, false));
  });
}
