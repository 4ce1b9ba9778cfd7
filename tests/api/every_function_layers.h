// The filters that several entries of the walk run: small, and with results that can be worked by hand.
#pragma once

#include "tests/api/every_function_testing.h"

namespace bnns::testing {

inline FilterHandle make_fully_connected(Floats weights, Floats bias) {
  BNNSLayerParametersFullyConnected layer = {};
  const size_t inputs = weights.size() / bias.size();
  layer.i_desc = vec_of(inputs);
  layer.o_desc = vec_of(bias.size());
  layer.w_desc = row_major(inputs, bias.size(), weights.data());
  layer.bias = vec(bias);
  return own(BNNSFilterCreateLayerFullyConnected(&layer, nullptr));
}

// Max over 2 x 2 windows of a 4 x 4 image, stride 2.
inline FilterHandle make_max_pooling() {
  BNNSLayerParametersPooling layer = {};
  layer.i_desc = chw(4, 4, 1);
  layer.o_desc = chw(2, 2, 1);
  layer.pooling_function = BNNSPoolingFunctionMax;
  layer.k_width = layer.k_height = layer.x_stride = layer.y_stride = 2;
  return own(BNNSFilterCreateLayerPooling(&layer, nullptr));
}

// 2 x 2 by 2 x 2.
inline FilterHandle make_matmul() {
  BNNSLayerParametersBroadcastMatMul layer = {};
  layer.alpha = 1;
  layer.iA_desc = layer.iB_desc = layer.o_desc = row_major(2, 2);
  return own(BNNSFilterCreateLayerBroadcastMatMul(&layer, nullptr));
}

inline BNNSLayerParametersNormalization normalization_layer(size_t n) {
  BNNSLayerParametersNormalization layer = {};
  layer.i_desc = layer.o_desc = vec_of(n);
  layer.momentum = 0.9f;
  return layer;
}

// Layer normalization of a vector of 4, epsilon 0, no parameters.
inline FilterHandle make_layer_norm() {
  const BNNSLayerParametersNormalization layer = normalization_layer(4);
  return own(BNNSFilterCreateLayerNormalization(BNNSLayerNorm, &layer, nullptr));
}

// The identity as a fully connected layer, then batch normalization of 2 channels with epsilon 0.
inline FilterHandle make_fused() {
  Floats identity = {1, 0, 0, 1}, zero = {0, 0};
  BNNSLayerParametersFullyConnected first = {};
  first.i_desc = first.o_desc = vec_of(2);
  first.w_desc = row_major(2, 2, identity.data());
  first.bias = vec(zero);
  Floats beta = {0, 0}, gamma = {1, 1};
  BNNSLayerParametersNormalization second = normalization_layer(2);
  second.beta_desc = vec(beta);
  second.gamma_desc = vec(gamma);
  const BNNSFilterType types[] = {BNNSFullyConnected, BNNSBatchNorm};
  const void* layers[] = {&first, &second};
  return own(BNNSFilterCreateFusedLayer(2, types, layers, nullptr));
}

inline BNNSArithmeticBinary binary_fields(size_t n) {
  BNNSArithmeticBinary fields = {};
  fields.in1 = fields.in2 = fields.out = vec_of(n);
  fields.in1_type = fields.in2_type = fields.out_type = BNNSSample;
  return fields;
}

inline FilterHandle make_arithmetic(BNNSArithmeticFunction function, size_t n) {
  BNNSArithmeticBinary fields = binary_fields(n);
  BNNSLayerParametersArithmetic layer = {};
  layer.arithmetic_function = function;
  layer.arithmetic_function_fields = &fields;
  return own(BNNSFilterCreateLayerArithmetic(&layer, nullptr));
}

// The sum of two vectors of 2, then batch normalization with epsilon 0.
inline FilterHandle make_fused_sum() {
  BNNSArithmeticBinary fields = binary_fields(2);
  BNNSLayerParametersArithmetic first = {};
  first.arithmetic_function = BNNSArithmeticAdd;
  first.arithmetic_function_fields = &fields;
  Floats beta = {0, 0}, gamma = {1, 1};
  BNNSLayerParametersNormalization second = normalization_layer(2);
  second.beta_desc = vec(beta);
  second.gamma_desc = vec(gamma);
  const BNNSFilterType types[] = {BNNSArithmetic, BNNSBatchNorm};
  const void* layers[] = {&first, &second};
  return own(BNNSFilterCreateFusedLayer(2, types, layers, nullptr));
}

inline FilterHandle make_square_error(size_t n, BNNSLossReductionFunction reduction) {
  BNNSLayerParametersLossBase layer = {};
  layer.function = BNNSLossFunctionMeanSquareError;
  layer.i_desc = vec_of(n);
  layer.o_desc = vec_of(reduction == BNNSLossReductionNone ? n : 1);
  layer.reduction = reduction;
  return own(BNNSFilterCreateLayerLoss(&layer, nullptr));
}

// 2 x 3 to 3 x 2.
inline BNNSLayerParametersPermute permute_layer() {
  BNNSLayerParametersPermute layer = {};
  layer.i_desc = descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, nullptr);
  layer.o_desc = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, nullptr);
  layer.permutation[0] = 1;
  layer.permutation[1] = 0;
  return layer;
}

// One query, one key, one head, everything of size 1: y = Wo Wv v, and q and k do not matter.
struct ScalarAttention {
  Floats one = {1}, value_weight = {2}, output_weight = {3};
  BNNSLayerParametersMultiheadAttention layer = {};
  ScalarAttention() {
    for (auto* projection : {&layer.query, &layer.key, &layer.value}) {
      projection->target_desc = row_major(1, 1);
      projection->weights = descriptor(BNNSDataLayoutMHA_DHK, {1, 1, 1}, one.data());
    }
    layer.value.weights.data = value_weight.data();
    layer.output.target_desc = row_major(1, 1);
    layer.output.weights = row_major(1, 1, output_weight.data());
  }
  FilterHandle make() const { return own(BNNSFilterCreateLayerMultiheadAttention(&layer, nullptr)); }
};

}  // namespace bnns::testing
