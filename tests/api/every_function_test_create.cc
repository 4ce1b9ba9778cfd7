// The walk: constructors of layers with weights, of losses and normalizations, and those of macOS 10.12.

#include "tests/api/every_function_layers.h"

namespace bnns::testing {
namespace {

// ---- convolution ----------------------------------------------------------------------------------------------------

struct ConvolutionCase {
  Floats weights = Floats(12, 1.0f / 12);
  BNNSLayerParametersConvolution layer = {};
  ConvolutionCase() {
    layer.i_desc = chw(2, 2, 3);
    layer.o_desc = chw(1, 1, 1);
    layer.w_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {2, 2, 3, 1}, weights.data());
  }
};

void convolution_good() {
  const ConvolutionCase c;
  const FilterHandle filter = own(BNNSFilterCreateLayerConvolution(&c.layer, nullptr));
  const Floats x = {10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33};
  Floats y(1);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  expect_close(y, {21.5}, 24);  // 12 products and sums
}
void convolution_bad() {
  ConvolutionCase c;
  c.layer.w_desc.size[2] = 2;  // the input has 3 channels
  expect_no_filter(BNNSFilterCreateLayerConvolution(&c.layer, nullptr));
}

struct TransposedCase {
  Floats weights = Floats(9, 1);
  BNNSLayerParametersConvolution layer = {};
  TransposedCase() {
    layer.i_desc = chw(2, 2, 1);
    layer.o_desc = chw(4, 4, 1);
    layer.w_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {3, 3, 1, 1}, weights.data());
  }
};

void transposed_good() {
  const TransposedCase c;
  const FilterHandle filter = own(BNNSFilterCreateLayerTransposedConvolution(&c.layer, nullptr));
  const Floats x = {1, 1, 1, 1};
  Floats y(16);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{1, 2, 2, 1, 2, 4, 4, 2, 2, 4, 4, 2, 1, 2, 2, 1}));
}
void transposed_bad() {
  TransposedCase c;
  c.layer.o_desc = chw(3, 4, 1);  // 2 inputs and a kernel of 3 need 4
  expect_no_filter(BNNSFilterCreateLayerTransposedConvolution(&c.layer, nullptr));
}

// 1 to 9, a kernel of ones.
struct OldConvolutionCase {
  Floats weights = Floats(4, 1);
  BNNSImageStackDescriptor in = {3, 3, 1, 3, 9, BNNSDataTypeFloat32, 0, 0};
  BNNSImageStackDescriptor out = {2, 2, 1, 2, 4, BNNSDataTypeFloat32, 0, 0};
  BNNSConvolutionLayerParameters layer = {};
  OldConvolutionCase() {
    layer.x_stride = layer.y_stride = 1;
    layer.k_width = layer.k_height = 2;
    layer.in_channels = layer.out_channels = 1;
    layer.weights = {weights.data(), BNNSDataTypeFloat32, 0, 0, nullptr};
  }
};

void old_convolution_good() {
  const OldConvolutionCase c;
  const FilterHandle filter = own(BNNSFilterCreateConvolutionLayer(&c.in, &c.out, &c.layer, nullptr));
  const Floats x = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  Floats y(4);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{12, 16, 24, 28}));
}
void old_convolution_bad() {
  OldConvolutionCase c;
  c.layer.in_channels = 2;  // in_desc has 1
  expect_no_filter(BNNSFilterCreateConvolutionLayer(&c.in, &c.out, &c.layer, nullptr));
}

// ---- fully connected ------------------------------------------------------------------------------------------------

struct FullyConnectedCase {
  Floats weights = {1, 2, 3, 4, 5, 6}, bias = {0.5f, -1};
  BNNSLayerParametersFullyConnected layer = {};
  FullyConnectedCase() {
    layer.i_desc = vec_of(3);
    layer.o_desc = vec_of(2);
    layer.w_desc = row_major(3, 2, weights.data());
    layer.bias = vec(bias);
  }
};

void fully_connected_good() {
  const FullyConnectedCase c;
  const FilterHandle filter = own(BNNSFilterCreateLayerFullyConnected(&c.layer, nullptr));
  const Floats x = {1, 1, 1};
  Floats y(2);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{6.5f, 14}));
}
void fully_connected_bad() {
  FullyConnectedCase c;
  c.layer.w_desc.size[0] = 4;  // the input has 3
  expect_no_filter(BNNSFilterCreateLayerFullyConnected(&c.layer, nullptr));
}

struct OldFullyConnectedCase {
  Floats weights = {1, 2, 3, 4, 5, 6}, bias = {0.5f, -1};
  BNNSVectorDescriptor in = {3, BNNSDataTypeFloat32, 0, 0}, out = {2, BNNSDataTypeFloat32, 0, 0};
  BNNSFullyConnectedLayerParameters layer = {};
  OldFullyConnectedCase() {
    layer.in_size = 3;
    layer.out_size = 2;
    layer.weights = {weights.data(), BNNSDataTypeFloat32, 0, 0, nullptr};
    layer.bias = {bias.data(), BNNSDataTypeFloat32, 0, 0, nullptr};
  }
};

void old_fully_connected_good() {
  const OldFullyConnectedCase c;
  const FilterHandle filter = own(BNNSFilterCreateFullyConnectedLayer(&c.in, &c.out, &c.layer, nullptr));
  const Floats x = {1, 1, 1};
  Floats y(2);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{6.5f, 14}));
}
void old_fully_connected_bad() {
  OldFullyConnectedCase c;
  c.layer.weights.data = nullptr;
  expect_no_filter(BNNSFilterCreateFullyConnectedLayer(&c.in, &c.out, &c.layer, nullptr));
}

// ---- activation -----------------------------------------------------------------------------------------------------

// Clamp to [-1, 2].
BNNSLayerParametersActivation clamp_layer(size_t n) {
  BNNSLayerParametersActivation layer = {};
  layer.i_desc = layer.o_desc = vec_of(n);
  layer.activation.function = BNNSActivationFunctionClamp;
  layer.activation.alpha = -1;
  layer.activation.beta = 2;
  return layer;
}

void activation_good() {
  const BNNSLayerParametersActivation layer = clamp_layer(5);
  const FilterHandle filter = own(BNNSFilterCreateLayerActivation(&layer, nullptr));
  const Floats x = {-5, -1, 0.5f, 2, 7};
  Floats y(5);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{-1, -1, 0.5f, 2, 2}));
}
void activation_bad() {
  BNNSLayerParametersActivation layer = clamp_layer(5);
  layer.o_desc.size[0] = 4;
  expect_no_filter(BNNSFilterCreateLayerActivation(&layer, nullptr));
}

// A conversion: ties go to the even neighbour.
void old_activation_good() {
  const BNNSVectorDescriptor in = {3, BNNSDataTypeFloat32, 0, 0}, out = {3, BNNSDataTypeInt32, 0, 0};
  const BNNSActivation activation = {};
  const FilterHandle filter = own(BNNSFilterCreateVectorActivationLayer(&in, &out, &activation, nullptr));
  const Floats x = {1.5f, -2.5f, 300.25f};
  std::vector<int32_t> y(3);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (std::vector<int32_t>{2, -2, 300}));
}
void old_activation_bad() {
  const BNNSVectorDescriptor in = {3, BNNSDataTypeFloat32, 0, 0}, out = {3, BNNSDataTypeInt32, 0, 0};
  expect_no_filter(BNNSFilterCreateVectorActivationLayer(&in, &out, nullptr, nullptr));
}

// ---- loss, normalization, fused, attention --------------------------------------------------------------------------

BNNSLayerParametersLossBase square_error_layer() {
  BNNSLayerParametersLossBase layer = {};
  layer.function = BNNSLossFunctionMeanSquareError;
  layer.i_desc = layer.o_desc = vec_of(3);
  layer.reduction = BNNSLossReductionNone;
  return layer;
}

void loss_good() {
  const BNNSLayerParametersLossBase layer = square_error_layer();
  const FilterHandle filter = own(BNNSFilterCreateLayerLoss(&layer, nullptr));
  const Floats x = {1, 2, 3}, labels = {0, 2, 6};
  Floats y(3);
  EXPECT_EQ(BNNSLossFilterApplyBatch(filter.get(), 1, x.data(), 0, labels.data(), 0, nullptr, 0, y.data(), nullptr, 0),
            0);
  EXPECT_EQ(y, (Floats{1, 0, 9}));
}
void loss_bad() {
  BNNSLayerParametersLossBase layer = square_error_layer();
  layer.function = BNNSLossFunction(99);
  expect_no_filter(BNNSFilterCreateLayerLoss(&layer, nullptr));
}

// The documented example: three channels of 9, each ten times the one before.
void normalization_good() {
  BNNSLayerParametersNormalization layer = normalization_layer(0);
  layer.i_desc = layer.o_desc = chw(9, 1, 3);
  const FilterHandle filter = own(BNNSFilterCreateLayerNormalization(BNNSInstanceNorm, &layer, nullptr));
  Floats x, y(27);
  std::vector<double> want;
  for (float scale : {1.0f, 10.0f, 100.0f}) {
    for (int i = 1; i <= 9; ++i) x.push_back(scale * float(i)), want.push_back((i - 5) / std::sqrt(60.0 / 9));
  }
  EXPECT_NEAR(want[0], -1.549, 5e-4);  // as the documentation prints it
  EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), 1, x.data(), 0, y.data(), 0, false), 0);
  expect_close(y, want);
}
void normalization_bad() {
  const BNNSLayerParametersNormalization layer = normalization_layer(4);
  expect_no_filter(BNNSFilterCreateLayerNormalization(BNNSConvolution, &layer, nullptr));
}

void fused_good() {
  const FilterHandle filter = make_fused();
  const Floats x = {1, 2, 3, 4};
  Floats y(4);
  EXPECT_EQ(BNNSFusedFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 0, true), 0);
  expect_close(y, {-1, -1, 1, 1});
}
void fused_bad() {
  const BNNSLayerParametersNormalization norm = normalization_layer(2);
  const BNNSFilterType types[] = {BNNSBatchNorm, BNNSBatchNorm};  // no first stage
  const void* layers[] = {&norm, &norm};
  expect_no_filter(BNNSFilterCreateFusedLayer(2, types, layers, nullptr));
}

void attention_good() {
  const ScalarAttention attention;
  const FilterHandle filter = attention.make();
  const float q = 0.5f, k = -2, v = 3.5f;
  Floats y(1);
  EXPECT_EQ(BNNSApplyMultiheadAttention(filter.get(), 1, &q, 0, &k, 0, nullptr, 0, &v, 0, y.data(), 0, nullptr, nullptr,
                                        nullptr, nullptr, nullptr),
            0);
  EXPECT_EQ(y, Floats{21});
}
void attention_bad() {
  ScalarAttention attention;
  attention.layer.key.weights.size[1] = 2;  // query and key differ in d_key
  expect_no_filter(BNNSFilterCreateLayerMultiheadAttention(&attention.layer, nullptr));
}

}  // namespace

std::vector<Entry> create_entries() {
  return {
      {"BNNSFilterCreateLayerConvolution", convolution_good, convolution_bad},
      {"BNNSFilterCreateLayerTransposedConvolution", transposed_good, transposed_bad},
      {"BNNSFilterCreateConvolutionLayer", old_convolution_good, old_convolution_bad},
      {"BNNSFilterCreateLayerFullyConnected", fully_connected_good, fully_connected_bad},
      {"BNNSFilterCreateFullyConnectedLayer", old_fully_connected_good, old_fully_connected_bad},
      {"BNNSFilterCreateLayerActivation", activation_good, activation_bad},
      {"BNNSFilterCreateVectorActivationLayer", old_activation_good, old_activation_bad},
      {"BNNSFilterCreateLayerLoss", loss_good, loss_bad},
      {"BNNSFilterCreateLayerNormalization", normalization_good, normalization_bad},
      {"BNNSFilterCreateFusedLayer", fused_good, fused_bad},
      {"BNNSFilterCreateLayerMultiheadAttention", attention_good, attention_bad},
  };
}

}  // namespace bnns::testing
