// Convolutions: each algorithm of both passes, types, activations that need memory of their own.

#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

struct Conv {
  const char* name;
  size_t batch, inputs, outputs, size, kernel, stride = 1, pad = 0, groups = 1, dilation = 1;
  bool transposed = false;
  BNNSDataType type = BNNSDataTypeFloat32;
  BNNSActivationFunction activation = BNNSActivationFunctionIdentity;
  bool accumulate = false;
};

void add(Layers& layers, const Conv& c) {
  auto owned = std::make_unique<Layer>(std::string("convolution ") + c.name);
  Layer& layer = *owned;
  const size_t reach = (c.kernel - 1) * c.dilation + 1;
  const size_t to =
      c.transposed ? (c.size - 1) * c.stride + reach - 2 * c.pad : (c.size + 2 * c.pad - reach) / c.stride + 1;
  BNNSLayerParametersConvolution p = {};
  p.i_desc = image(c.inputs, c.size, c.size, nullptr, c.type);
  p.o_desc = image(c.outputs, to, to, nullptr, c.type);
  const size_t weights = c.inputs / c.groups * c.outputs * c.kernel * c.kernel;
  p.w_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {c.kernel, c.kernel, c.inputs / c.groups, c.outputs},
                        layer.in(weights, c.type), c.type);
  p.bias = vector_descriptor(c.outputs, layer.in(c.outputs));
  p.x_stride = p.y_stride = c.stride;
  p.x_dilation_stride = p.y_dilation_stride = c.dilation;
  p.x_padding = p.y_padding = c.pad;
  p.groups = c.groups;
  p.activation.function = c.activation;
  p.activation.alpha = 1;
  layer.create = [p, transposed = c.transposed](const FilterOptions* o) {
    return transposed ? BNNSFilterCreateLayerTransposedConvolution(&p, o) : BNNSFilterCreateLayerConvolution(&p, o);
  };
  Plain plain{c.batch, c.inputs * c.size * c.size, c.outputs * to * to, c.type, p.i_desc, p.w_desc, p.bias};
  plain.dw.data = layer.out(weights, c.type);
  plain.db.data = layer.out(c.outputs);
  if (c.accumulate) plain.dx.flags = plain.dw.flags = plain.db.flags = BNNSNDArrayFlagBackpropAccumulate;
  plain.backward = !(c.transposed && c.groups > 1);
  add_plain_calls(layer, plain);
  layers.push_back(std::move(owned));
}

}  // namespace

void add_convolutions(Layers& layers) {
  constexpr auto f16 = BNNSDataTypeFloat16, bf16 = BNNSDataTypeBFloat16, f32 = BNNSDataTypeFloat32;
  constexpr auto softmax = BNNSActivationFunctionSoftmax, gelu = BNNSActivationFunctionGELUApproximation,
                 relu = BNNSActivationFunctionRectifiedLinear;
  const Conv table[] = {
      {"3x3", 4, 64, 64, 14, 3, 1, 1},
      {"3x3 relu accumulate", 2, 32, 48, 12, 3, 1, 1, 1, 1, false, f32, relu, true},
      {"3x3 of 3 channels", 4, 3, 16, 28, 3, 1, 1},
      {"3x3 stride 2", 4, 32, 32, 16, 3, 2, 1},
      {"1x1", 4, 32, 48, 14, 1},
      {"5x5 stride 2", 4, 16, 24, 17, 5, 2, 2},
      {"5x5 of few", 2, 1, 6, 28, 5},
      {"7x7 stride 2", 2, 3, 32, 32, 7, 2, 3},
      {"3x3 dilated", 2, 16, 32, 16, 3, 1, 2, 1, 2},
      {"groups", 2, 32, 32, 12, 3, 1, 1, 4},
      {"depthwise", 4, 32, 32, 14, 3, 1, 1, 32},
      {"depthwise stride 2", 4, 32, 32, 15, 3, 2, 1, 32},
      {"depthwise dilated", 2, 16, 16, 20, 5, 1, 4, 16, 2},
      {"depthwise stride 3", 2, 16, 16, 20, 2, 3, 0, 16},
      {"softmax", 2, 8, 8, 12, 3, 1, 1, 1, 1, false, f32, softmax},
      {"softmax f16", 2, 8, 8, 12, 3, 1, 1, 1, 1, false, f16, softmax},
      {"gelu", 2, 16, 16, 12, 3, 1, 1, 1, 1, false, f32, gelu},
      {"3x3 f16", 2, 32, 32, 12, 3, 1, 1, 1, 1, false, f16, relu},
      {"3x3 bf16", 2, 32, 32, 12, 3, 1, 1, 1, 1, false, bf16},
      {"5x5 stride 2 bf16", 2, 16, 24, 17, 5, 2, 2, 1, 1, false, bf16, relu},
      {"1x1 stride 2 bf16", 2, 32, 32, 12, 1, 2, 0, 1, 1, false, bf16},
      {"up 4x4 stride 2", 2, 32, 16, 12, 4, 2, 1, 1, 1, true},
      {"up 2x2 stride 2", 2, 32, 16, 12, 2, 2, 0, 1, 1, true},
      {"up 3x3", 2, 32, 32, 12, 3, 1, 1, 1, 1, true},
      {"up 3x3 stride 2", 2, 32, 24, 11, 3, 2, 1, 1, 1, true},
      {"up 3x3 stride 3", 2, 16, 24, 10, 3, 3, 0, 1, 1, true},
      {"up 2x2 stride 3", 2, 16, 24, 10, 2, 3, 0, 1, 1, true},
      {"up 5x5 stride 2 to 3 channels", 2, 32, 3, 12, 5, 2, 2, 1, 1, true},
      {"up 3x3 dilated stride 2", 2, 16, 16, 12, 3, 2, 1, 1, 2, true},
      {"up groups", 2, 32, 32, 12, 4, 2, 1, 4, 1, true},
      {"up depthwise", 2, 16, 16, 12, 3, 2, 0, 16, 1, true},
      {"up softmax", 2, 8, 8, 12, 2, 2, 0, 1, 1, true, f32, softmax},
      {"up gelu", 2, 16, 8, 12, 4, 2, 1, 1, 1, true, f32, gelu},
  };
  for (const Conv& c : table) add(layers, c);
}

}  // namespace bnns::testing
