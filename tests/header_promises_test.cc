// What the comments of bnns.h say about NULL, 0 and sizes, call by call: each case is one sentence of the header.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"

namespace {

using Floats = std::vector<float>;
using Filter = std::unique_ptr<void, decltype(&BNNSFilterDestroy)>;

BNNSNDArrayDescriptor array(BNNSDataLayout layout, std::initializer_list<size_t> sizes, void* data,
                            BNNSDataType type = BNNSDataTypeFloat32) {
  BNNSNDArrayDescriptor d = {};
  d.layout = layout, d.data = data, d.data_type = type;
  size_t k = 0;
  for (size_t size : sizes) d.size[k++] = size;
  return d;
}
BNNSNDArrayDescriptor vec(size_t n, void* data, BNNSDataType type = BNNSDataTypeFloat32) {
  return array(BNNSDataLayoutVector, {n}, data, type);
}
BNNSNDArrayDescriptor vec(Floats& v) {
  return vec(v.size(), v.data());
}
Filter own(BNNSFilter filter) {
  EXPECT_NE(filter, nullptr) << BNNSExtLastError();
  return Filter(filter, &BNNSFilterDestroy);
}
#define EXPECT_DONE(call) EXPECT_EQ(call, 0) << BNNSExtLastError()

// y = W x + b with W = {{1, 2}, {3, 4}}, on two samples.
struct Dense {
  Floats w = {1, 2, 3, 4}, b = {10, 20}, x = {1, 1, 2, 2}, dy = {1, 2, 3, 4};
  Floats dx = Floats(4, -7), dw = Floats(4, -7), db = Floats(2, -7);
  BNNSNDArrayDescriptor dx_desc = vec(2, dx.data()), dy_desc = vec(2, dy.data()), db_desc = vec(db),
                        dw_desc = array(BNNSDataLayoutRowMajorMatrix, {2, 2}, dw.data());
  Filter make(BNNSActivationFunction activation = BNNSActivationFunctionIdentity) {
    BNNSLayerParametersFullyConnected layer = {};
    layer.i_desc = vec(2, nullptr), layer.o_desc = vec(2, nullptr), layer.bias = vec(b);
    layer.w_desc = array(BNNSDataLayoutRowMajorMatrix, {2, 2}, w.data());
    layer.activation.function = activation;
    return own(BNNSFilterCreateLayerFullyConnected(&layer, nullptr));
  }
};

TEST(HeaderPromises, AGradientOfTheBiasAloneNeedsNoInput) {
  Dense d;
  const Filter filter = d.make();
  EXPECT_DONE(BNNSFilterApplyBackwardBatch(filter.get(), 2, nullptr, 0, nullptr, 0, nullptr, 0, &d.dy_desc, 0, nullptr,
                                           &d.db_desc));
  EXPECT_EQ(d.db, (Floats{4, 6}));
  EXPECT_DONE(BNNSFilterApplyBackwardBatch(filter.get(), 2, nullptr, 0, &d.dx_desc, 0, nullptr, 0, &d.dy_desc, 0,
                                           nullptr, nullptr));
  EXPECT_EQ(d.dx, (Floats{7, 10, 15, 22}));
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 2, nullptr, 0, nullptr, 0, nullptr, 0, &d.dy_desc, 0, &d.dw_desc,
                                         nullptr),
            -1);  // weights_delta needs `in`
  EXPECT_EQ(d.dw, Floats(4, -7));
}

TEST(HeaderPromises, OutIsNeededWhereTheActivationsDerivativeFollowsFromIt) {
  Dense d;
  const Filter filter = d.make(BNNSActivationFunctionTanh);
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 2, d.x.data(), 0, nullptr, 0, nullptr, 0, &d.dy_desc, 0, nullptr,
                                         &d.db_desc),
            -1);
  const Floats y(4, 0);  // tanh' = 1 - y * y = 1
  EXPECT_DONE(BNNSFilterApplyBackwardBatch(filter.get(), 2, nullptr, 0, nullptr, 0, y.data(), 0, &d.dy_desc, 0, nullptr,
                                           &d.db_desc));
  EXPECT_EQ(d.db, (Floats{4, 6}));
}

TEST(HeaderPromises, AnEmptyBatchSetsParameterGradientsToZero) {
  Dense d;
  const Filter filter = d.make();
  EXPECT_DONE(BNNSFilterApplyBatch(filter.get(), 0, nullptr, 0, nullptr, 0));
  EXPECT_DONE(BNNSFilterApplyBackwardBatch(filter.get(), 0, nullptr, 0, nullptr, 0, nullptr, 0, &d.dy_desc, 0,
                                           &d.dw_desc, &d.db_desc));
  EXPECT_EQ(d.dw, Floats(4, 0));
  EXPECT_EQ(d.db, Floats(2, 0));
}

TEST(HeaderPromises, OtherFiltersAreRefusedByTheGenericCalls) {
  BNNSLayerParametersLossBase loss = {};
  loss.function = BNNSLossFunctionMeanSquareError, loss.i_desc = vec(2, nullptr);
  loss.reduction = BNNSLossReductionSum;
  BNNSArithmeticUnary unary = {};
  unary.in = unary.out = vec(2, nullptr), unary.in_type = unary.out_type = BNNSSample;
  BNNSLayerParametersArithmetic arithmetic = {};
  arithmetic.arithmetic_function = BNNSArithmeticNegate, arithmetic.arithmetic_function_fields = &unary;
  BNNSLayerParametersNormalization normalization = {};
  normalization.i_desc = normalization.o_desc = vec(2, nullptr), normalization.momentum = 0.9f;
  const Filter filters[] = {own(BNNSFilterCreateLayerLoss(&loss, nullptr)),
                            own(BNNSFilterCreateLayerArithmetic(&arithmetic, nullptr)),
                            own(BNNSFilterCreateLayerNormalization(BNNSBatchNorm, &normalization, nullptr))};
  Floats x(2, 1), y(2, -7);
  auto dy = vec(x), dx = vec(y);
  for (const Filter& filter : filters) {
    EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), -1);
    EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, &dx, 0, x.data(), 0, &dy, 0, nullptr, nullptr),
              -1);
    EXPECT_EQ(y, Floats(2, -7));
  }
}

TEST(HeaderPromises, AnOperandIsNeededForTheOthersGradient) {
  BNNSLayerParametersBroadcastMatMul layer = {};
  layer.alpha = 1;
  layer.iA_desc = layer.iB_desc = layer.o_desc = array(BNNSDataLayoutRowMajorMatrix, {2, 2}, nullptr);
  const Filter filter = own(BNNSFilterCreateLayerBroadcastMatMul(&layer, nullptr));
  Floats b = {1, 0, 0, 1}, dc = {1, 2, 3, 4}, da(4, -7);
  auto dc_desc = array(BNNSDataLayoutRowMajorMatrix, {2, 2}, dc.data()),
       da_desc = array(BNNSDataLayoutRowMajorMatrix, {2, 2}, da.data());
  EXPECT_DONE(BNNSFilterApplyBackwardTwoInputBatch(filter.get(), 1, nullptr, 0, &da_desc, 0, b.data(), 0, nullptr, 0,
                                                   nullptr, 0, &dc_desc, 0, nullptr, nullptr));
  EXPECT_EQ(da, dc);
  EXPECT_EQ(BNNSFilterApplyBackwardTwoInputBatch(filter.get(), 1, nullptr, 0, nullptr, 0, b.data(), 0, &da_desc, 0,
                                                 nullptr, 0, &dc_desc, 0, nullptr, nullptr),
            -1);
}

TEST(HeaderPromises, ArithmeticAddReadsNoInputsAndAConstantHasNoGradient) {
  BNNSArithmeticBinary add = {};
  add.in1 = add.in2 = add.out = vec(2, nullptr);
  add.in1_type = add.out_type = BNNSSample, add.in2_type = BNNSConstant;
  BNNSLayerParametersArithmetic layer = {};
  layer.arithmetic_function = BNNSArithmeticAdd, layer.arithmetic_function_fields = &add;
  const Filter filter = own(BNNSFilterCreateLayerArithmetic(&layer, nullptr));
  Floats dy = {1, 2}, dx(2, -7);
  auto dy_desc = vec(dy), dx_desc = vec(dx);
  BNNSNDArrayDescriptor* deltas[] = {&dx_desc, nullptr};
  const size_t strides[] = {0, 0};
  EXPECT_DONE(BNNSArithmeticFilterApplyBackwardBatch(filter.get(), 1, 2, nullptr, nullptr, deltas, strides, nullptr, 0,
                                                     &dy_desc, 0));
  EXPECT_EQ(dx, dy);
  BNNSNDArrayDescriptor* none[] = {nullptr, nullptr};
  EXPECT_EQ(BNNSArithmeticFilterApplyBackwardBatch(filter.get(), 1, 2, nullptr, nullptr, none, strides, nullptr, 0,
                                                   &dy_desc, 0),
            -1);
}

TEST(HeaderPromises, EachGradientOfANormalizationAlone) {
  BNNSLayerParametersNormalization layer = {};
  Floats beta = {0, 0}, gamma = {1, 1};
  layer.i_desc = layer.o_desc = vec(2, nullptr), layer.momentum = 0.9f;
  layer.beta_desc = vec(beta), layer.gamma_desc = vec(gamma);
  const Filter filter = own(BNNSFilterCreateLayerNormalization(BNNSBatchNorm, &layer, nullptr));
  Floats x = {1, 2, 3, 4}, y(4), dy = {1, 0, 0, 2}, dbeta(2, -7), dgamma(2, -7);
  auto dy_desc = vec(2, dy.data()), dbeta_desc = vec(dbeta), dgamma_desc = vec(dgamma);
  const auto backward = [&](size_t batch, BNNSNDArrayDescriptor* b, BNNSNDArrayDescriptor* g) {
    return BNNSNormalizationFilterApplyBackwardBatch(filter.get(), batch, nullptr, 0, nullptr, 0, &dy_desc, 0, b, g);
  };
  EXPECT_EQ(backward(2, &dbeta_desc, nullptr), -1);  // no forward call with training
  EXPECT_DONE(BNNSNormalizationFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 0, true));
  EXPECT_EQ(backward(1, &dbeta_desc, nullptr), -1);  // of another batch
  EXPECT_DONE(backward(2, &dbeta_desc, nullptr));
  EXPECT_DONE(backward(2, nullptr, &dgamma_desc));
  EXPECT_EQ(dbeta, (Floats{1, 2}));
  EXPECT_NEAR(dgamma[0], -1, 1e-5);
  EXPECT_NEAR(dgamma[1], 2, 1e-5);
}

TEST(HeaderPromises, SizesOfTheWeightsOfALoss) {
  BNNSLayerParametersLossBase layer = {};
  layer.function = BNNSLossFunctionMeanSquareError, layer.i_desc = vec(3, nullptr),
  layer.reduction = BNNSLossReductionSum;
  const Filter filter = own(BNNSFilterCreateLayerLoss(&layer, nullptr));
  Floats x(6, 1), labels(6, 0), weights(6, 2);
  float loss = -7;
  const auto apply = [&](const float* w, size_t size) {
    return BNNSLossFilterApplyBatch(filter.get(), 2, x.data(), 0, labels.data(), 0, w, size, &loss, nullptr, 0);
  };
  EXPECT_DONE(apply(nullptr, 0));
  EXPECT_EQ(loss, 6);
  for (size_t size : {1, 2, 6}) {
    EXPECT_DONE(apply(weights.data(), size));
    EXPECT_EQ(loss, 12) << size;
  }
  loss = -7;
  for (size_t size : {3, 4, 5, 7}) EXPECT_EQ(apply(weights.data(), size), -1) << size;
  EXPECT_EQ(apply(nullptr, 1), -1);
  EXPECT_EQ(loss, -7);
}

TEST(HeaderPromises, OptionalResultsAndOperandsOfCallsWithoutAFilter) {
  Floats x = {3, 9, 1}, best(2);
  auto x_desc = vec(x), best_desc = vec(best);
  EXPECT_DONE(BNNSDirectApplyTopK(2, 0, 1, &x_desc, 0, &best_desc, 0, nullptr, 0, nullptr));
  EXPECT_EQ(best, (Floats{9, 3}));

  bool in[] = {true, false, true}, out[] = {true, true, true};
  auto in_desc = vec(3, in, BNNSDataTypeBoolean), out_desc = vec(3, out, BNNSDataTypeBoolean);
  EXPECT_EQ(BNNSCompareTensor(&in_desc, nullptr, BNNSRelationalOperatorLogicalNOT, &out_desc), 0) << BNNSExtLastError();
  EXPECT_TRUE(!out[0] && out[1] && !out[2]);

  BNNSOptimizerSGDMomentumFields sgd = {};
  sgd.learning_rate = 1, sgd.gradient_scale = 1;
  Floats w = {1, 2}, g = {1, 1};
  auto w_desc = vec(w), g_desc = vec(g);
  BNNSNDArrayDescriptor* parameters[] = {&w_desc};
  const BNNSNDArrayDescriptor* gradients[] = {&g_desc};
  const auto step = [&] {
    return BNNSOptimizerStep(BNNSOptimizerFunctionSGDMomentum, &sgd, 1, parameters, gradients, nullptr, nullptr);
  };
  EXPECT_DONE(step());
  EXPECT_EQ(w, (Floats{0, 1}));
  sgd.momentum = 0.9f;
  EXPECT_EQ(step(), -1);  // a velocity is a role

  BNNSNearestNeighbors store = BNNSCreateNearestNeighbors(2, 1, 1, BNNSDataTypeFloat32, nullptr);
  ASSERT_NE(store, nullptr);
  EXPECT_DONE(BNNSNearestNeighborsLoad(store, 2, x.data()));
  EXPECT_DONE(BNNSNearestNeighborsGetInfo(store, -1, nullptr, nullptr));
  EXPECT_EQ(BNNSNearestNeighborsLoad(store, 1, x.data()), -1);
  BNNSDestroyNearestNeighbors(store);
  BNNSDestroyNearestNeighbors(nullptr);
  BNNSDestroyRandomGenerator(nullptr);
  BNNSFilterDestroy(nullptr);
}

TEST(HeaderPromises, AFusedFilterSkipsWhatIsNotWanted) {
  BNNSArithmeticBinary add = {};
  add.in1 = add.in2 = add.out = vec(2, nullptr), add.in1_type = add.in2_type = add.out_type = BNNSSample;
  BNNSLayerParametersArithmetic first = {};
  first.arithmetic_function = BNNSArithmeticAdd, first.arithmetic_function_fields = &add;
  BNNSLayerParametersNormalization second = {};
  second.i_desc = second.o_desc = vec(2, nullptr), second.momentum = 0.9f, second.epsilon = 1e-5f;
  const BNNSFilterType types[] = {BNNSArithmetic, BNNSBatchNorm};
  const void* layers[] = {&first, &second};
  const Filter filter = own(BNNSFilterCreateFusedLayer(2, types, layers, nullptr));
  Floats a = {1, 2, 3, 4}, b(4, 0), y(4), dy = {1, 0, 0, 2}, da(4, -7), dbeta(2, -7);
  const void* in[] = {a.data(), b.data()};
  EXPECT_DONE(BNNSFusedFilterApplyMultiInputBatch(filter.get(), 2, 2, in, nullptr, y.data(), 0, true));
  auto dy_desc = vec(2, dy.data()), da_desc = vec(2, da.data()), dbeta_desc = vec(dbeta);
  BNNSNDArrayDescriptor* deltas[] = {&da_desc, nullptr};
  BNNSNDArrayDescriptor* parameters[] = {&dbeta_desc, nullptr};
  const size_t strides[] = {0, 0};
  EXPECT_DONE(BNNSFusedFilterApplyBackwardMultiInputBatch(filter.get(), 2, 2, nullptr, nullptr, deltas, strides,
                                                          nullptr, 0, &dy_desc, 0, parameters));
  EXPECT_EQ(dbeta, (Floats{1, 2}));
  EXPECT_NE(da, Floats(4, -7));
}

}  // namespace
