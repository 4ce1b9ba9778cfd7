// Gradients from a y that is stored in 16 bits: a bound that the type cannot hold is rounded with y, and what was
// clamped to it must not pass for an element inside. Every layer that has an activation, through the C interface.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/support/testing.h"

namespace bnns::testing {
namespace {

constexpr size_t kCount = 37;  // vectors and a rest
constexpr BNNSDataType kTypes[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16};

// Every third element below all bounds, every third above, the others inside.
std::vector<float> inputs() {
  std::vector<float> x(kCount);
  for (size_t i = 0; i < kCount; ++i) x[i] = i % 3 == 0 ? -4.0f : i % 3 == 1 ? 4.0f : 0.0625f;
  return x;
}

// dx of a layer that passes x through to its activation; dy is 1.
struct Layer {
  const char* name;
  std::function<std::vector<float>(const BNNSActivation&, BNNSDataType)> gradient;
};

BNNSNDArrayDescriptor image(float* data, BNNSDataType type) {
  return descriptor(BNNSDataLayoutImageCHW, {kCount, 1, 1}, data, type);
}

// The generic calls. Both deltas look like `delta`.
std::vector<float> run(BNNSFilter filter, BNNSNDArrayDescriptor delta) {
  EXPECT_NE(filter, nullptr) << BNNSExtLastError();
  const std::vector<float> x = inputs();
  std::vector<float> y(kCount), dy(kCount, 1), dx(kCount, -7);  // y has room for the widest type
  BNNSNDArrayDescriptor in_delta = delta, out_delta = delta;
  in_delta.data = dx.data(), out_delta.data = dy.data();
  EXPECT_EQ(BNNSFilterApply(filter, x.data(), y.data()), 0) << BNNSExtLastError();
  EXPECT_EQ(
      BNNSFilterApplyBackwardBatch(filter, 1, nullptr, 0, &in_delta, 0, y.data(), 0, &out_delta, 0, nullptr, nullptr),
      0)
      << BNNSExtLastError();
  BNNSFilterDestroy(filter);
  return dx;
}

std::vector<float> stand_alone(const BNNSActivation& activation, BNNSDataType type) {
  BNNSLayerParametersActivation layer{};
  layer.i_desc = vector_descriptor(kCount, nullptr);
  layer.o_desc = vector_descriptor(kCount, nullptr, type);
  layer.activation = activation;
  return run(BNNSFilterCreateLayerActivation(&layer, nullptr), vector_descriptor(kCount, nullptr));
}

std::vector<float> fully_connected(const BNNSActivation& activation, BNNSDataType type) {
  std::vector<float> w(kCount * kCount, 0);
  for (size_t i = 0; i < kCount; ++i) w[i * kCount + i] = 1;
  BNNSLayerParametersFullyConnected layer{};
  layer.i_desc = vector_descriptor(kCount, nullptr);
  layer.o_desc = vector_descriptor(kCount, nullptr, type);
  layer.w_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {kCount, kCount}, w.data());
  layer.activation = activation;
  return run(BNNSFilterCreateLayerFullyConnected(&layer, nullptr), vector_descriptor(kCount, nullptr));
}

std::vector<float> convolution(const BNNSActivation& activation, BNNSDataType type) {
  float one = 1;
  BNNSLayerParametersConvolution layer{};
  layer.i_desc = image(nullptr, BNNSDataTypeFloat32);
  layer.o_desc = image(nullptr, type);
  layer.w_desc = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {1, 1, 1, 1}, &one);
  layer.activation = activation;
  return run(BNNSFilterCreateLayerConvolution(&layer, nullptr), image(nullptr, BNNSDataTypeFloat32));
}

std::vector<float> pooling(const BNNSActivation& activation, BNNSDataType type) {
  BNNSLayerParametersPooling layer{};
  layer.i_desc = image(nullptr, BNNSDataTypeFloat32);
  layer.o_desc = image(nullptr, type);
  layer.pooling_function = BNNSPoolingFunctionAverageCountIncludePadding;
  layer.k_width = layer.k_height = 1;
  layer.activation = activation;
  return run(BNNSFilterCreateLayerPooling(&layer, nullptr), image(nullptr, BNNSDataTypeFloat32));
}

// In a batch of 1 every x^ is 0: y is act(beta), and dbeta is dy act'.
std::vector<float> normalization(const BNNSActivation& activation, BNNSDataType type) {
  std::vector<float> x(kCount, 1), beta = inputs(), y(kCount), dy(kCount, 1), dbeta(kCount, -7);
  BNNSLayerParametersNormalization layer{};
  layer.i_desc = vector_descriptor(kCount, nullptr);
  layer.o_desc = vector_descriptor(kCount, nullptr, type);
  layer.beta_desc = vector_descriptor(kCount, beta.data());
  layer.epsilon = 1e-3f;
  layer.activation = activation;
  const BNNSFilter filter = BNNSFilterCreateLayerNormalization(BNNSBatchNorm, &layer, nullptr);
  EXPECT_NE(filter, nullptr) << BNNSExtLastError();
  BNNSNDArrayDescriptor out_delta = vector_descriptor(kCount, dy.data());
  BNNSNDArrayDescriptor beta_delta = vector_descriptor(kCount, dbeta.data());
  EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter, 1, x.data(), 0, y.data(), 0, true), 0) << BNNSExtLastError();
  EXPECT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter, 1, nullptr, 0, y.data(), 0, &out_delta, 0, &beta_delta,
                                                      nullptr),
            0)
      << BNNSExtLastError();
  BNNSFilterDestroy(filter);
  return dbeta;
}

std::vector<float> arithmetic(const BNNSActivation& activation, BNNSDataType type) {
  const std::vector<float> x = inputs(), zero(kCount, 0);
  std::vector<float> y(kCount), dy(kCount, 1), dx(kCount, -7);
  BNNSArithmeticBinary fields{};
  fields.in1 = fields.in2 = vector_descriptor(kCount, nullptr);
  fields.in1_type = fields.out_type = BNNSSample;
  fields.in2_type = BNNSConstant;
  fields.out = vector_descriptor(kCount, nullptr, type);
  BNNSLayerParametersArithmetic layer{};
  layer.arithmetic_function = BNNSArithmeticAdd;
  layer.arithmetic_function_fields = &fields;
  layer.activation = activation;
  const BNNSFilter filter = BNNSFilterCreateLayerArithmetic(&layer, nullptr);
  EXPECT_NE(filter, nullptr) << BNNSExtLastError();
  const void* in[] = {x.data(), zero.data()};
  const size_t strides[] = {0, 0};
  BNNSNDArrayDescriptor in_delta = vector_descriptor(kCount, dx.data());
  BNNSNDArrayDescriptor out_delta = vector_descriptor(kCount, dy.data());
  BNNSNDArrayDescriptor* deltas[] = {&in_delta, nullptr};
  EXPECT_EQ(BNNSArithmeticFilterApplyBatch(filter, 1, 2, in, strides, y.data(), 0), 0) << BNNSExtLastError();
  EXPECT_EQ(BNNSArithmeticFilterApplyBackwardBatch(filter, 1, 2, nullptr, nullptr, deltas, strides, y.data(), 0,
                                                   &out_delta, 0),
            0)
      << BNNSExtLastError();
  BNNSFilterDestroy(filter);
  return dx;
}

void check(const Layer& layer, BNNSDataType type, float bound) {
  SCOPED_TRACE(std::string(layer.name) + " type " + std::to_string(type) + " bound " + std::to_string(bound));
  BNNSActivation clamp{}, leaky{}, threshold{};
  clamp.function = BNNSActivationFunctionClamp, clamp.alpha = -bound, clamp.beta = bound;
  leaky.function = BNNSActivationFunctionClampedLeakyRectifiedLinear, leaky.alpha = 0.5f, leaky.beta = bound;
  threshold.function = BNNSActivationFunctionThreshold, threshold.alpha = 0, threshold.beta = -bound;
  const std::vector<float> by_clamp = layer.gradient(clamp, type), by_leaky = layer.gradient(leaky, type),
                           by_threshold = layer.gradient(threshold, type);
  for (size_t i = 0; i < kCount; ++i) {
    const bool low = i % 3 == 0, high = i % 3 == 1;
    EXPECT_EQ(by_clamp[i], low || high ? 0 : 1) << i;
    EXPECT_EQ(by_leaky[i], low ? 0.5f : high ? 0 : 1) << i;
    EXPECT_EQ(by_threshold[i], low ? 0 : 1) << i;
  }
}

// The bounds are no numbers of 16 bits; some are rounded up, some down.
TEST(ActivationStored, WhatIsClampedHasNoGradient) {
  const Layer layers[] = {{"activation", stand_alone},      {"fully_connected", fully_connected},
                          {"convolution", convolution},     {"pooling", pooling},
                          {"normalization", normalization}, {"arithmetic", arithmetic}};
  for_each_isa([&] {
    for (const float bound : {0.1f, 0.3f, 0.7f, 0.9f, 1.1f, 1.9f, 3.3f}) {
      for (const BNNSDataType type : kTypes) {
        for (const Layer& layer : layers) check(layer, type, bound);
      }
    }
  });
}

}  // namespace
}  // namespace bnns::testing
