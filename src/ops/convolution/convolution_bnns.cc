// The C entry points that make convolution filters.

#include <cstring>

#include "bnns/bnns.h"
#include "src/ops/convolution/convolution.h"

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

namespace {

BNNSNDArrayDescriptor from_image_stack(const BNNSImageStackDescriptor& stack) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.layout = BNNSDataLayoutImageCHW;
  d.size[0] = stack.width;
  d.size[1] = stack.height;
  d.size[2] = stack.channels;
  d.stride[0] = 1;
  d.stride[1] = stack.row_stride;
  d.stride[2] = stack.image_stride;
  d.data_type = stack.data_type;
  d.data_scale = stack.data_scale;
  d.data_bias = stack.data_bias;
  return d;
}

BNNSNDArrayDescriptor from_layer_data(const BNNSLayerData& data) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.data = const_cast<void*>(data.data);
  d.data_type = data.data_type;
  d.data_scale = data.data_scale;
  d.data_bias = data.data_bias;
  d.table_data = const_cast<float*>(data.data_table);
  d.table_data_type = BNNSDataTypeFloat32;
  return d;
}

}  // namespace

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
    layer.bias = from_layer_data(old->bias);
    layer.bias.layout = BNNSDataLayoutVector;
    layer.bias.size[0] = old->out_channels;
    layer.activation = old->activation;
    layer.x_stride = old->x_stride;
    layer.y_stride = old->y_stride;
    layer.x_padding = old->x_padding;
    layer.y_padding = old->y_padding;
    const Options options = read_options(parameters, "convolution");
    return make_filter<ConvolutionFilter>(options, make_convolution_problem(&layer, false));
  });
}
