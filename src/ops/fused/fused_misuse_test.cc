// Fused layers: every refusal has its reason, and a refused call writes nothing.

#include <gtest/gtest.h>

#include "src/ops/fused/fused_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

FusedCase convolution_case() {
  ConvolutionShape s;
  s.n = 2, s.i = 2, s.ih = 4, s.iw = 5, s.o = 3, s.kh = s.kw = 3, s.top = s.left = 1, s.oh = 4, s.ow = 5;
  return {"misuse", First::convolution, s};
}
FusedCase arithmetic_case() {
  ConvolutionShape s;
  s.n = 2, s.i = s.o = 3, s.ih = s.oh = 4, s.iw = s.ow = 5;
  return {"misuse", First::arithmetic, s, 2};
}

TEST(FusedMisuse, CreationSaysWhy) {
  const FusedData d(convolution_case(), 1);
  const auto refused = [&](auto&& change, std::initializer_list<const char*> words) {
    FusedLayer layer(convolution_case(), d);
    change(layer);
    EXPECT_FALSE(layer.try_make());
    EXPECT_TRUE(refused_because(words));
  };
  refused([](auto& l) { l.normalization.i_desc.size[2] = 4, l.normalization.o_desc.size[2] = 4; }, {"normalization"});
  refused([](auto& l) { l.normalization.i_desc.size[0] = 6, l.normalization.o_desc.size[0] = 6; },
          {"fused", "size[0]", "5", "6"});
  refused([](auto& l) { l.normalization.i_desc.stride[1] = 8; }, {"fused", "axis 1", "stride 5", "8"});
  refused([](auto& l) { l.normalization.i_desc.data_type = BNNSDataTypeFloat16; }, {"fused", "f32", "f16"});
  refused([](auto& l) { l.convolution.i_desc.size[0] = 2; }, {"convolution", "width"});
  refused([](auto& l) { l.normalization.momentum = 2; }, {"momentum"});

  const FusedLayer layer(convolution_case(), d);
  const void* layers[] = {&layer.convolution, &layer.normalization};
  const BNNSFilterType types[] = {BNNSConvolution, BNNSBatchNorm}, two_norms[] = {BNNSBatchNorm, BNNSBatchNorm},
                       two_convolutions[] = {BNNSConvolution, BNNSConvolution},
                       unknown[] = {BNNSConvolution, static_cast<BNNSFilterType>(77)};
  const auto create = [&](size_t n, const BNNSFilterType* t, const void** l) {
    return FilterHandle(BNNSFilterCreateFusedLayer(n, t, l, nullptr), &BNNSFilterDestroy);
  };
  EXPECT_FALSE(create(1, types, layers));
  EXPECT_TRUE(refused_because({"number_of_fused_filters is 1", "expected 2"}));
  EXPECT_FALSE(create(3, types, layers));
  EXPECT_FALSE(create(2, nullptr, layers));
  EXPECT_TRUE(refused_because({"filter_type is NULL"}));
  EXPECT_FALSE(create(2, types, nullptr));
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
  const void* half[] = {&layer.convolution, nullptr};
  EXPECT_FALSE(create(2, types, half));
  EXPECT_TRUE(refused_because({"layer_params[1] is NULL"}));
  EXPECT_FALSE(create(2, two_norms, layers));
  EXPECT_TRUE(refused_because({"filter_type[0] is BNNSBatchNorm", "expected BNNSConvolution"}));
  EXPECT_FALSE(create(2, two_convolutions, layers));
  EXPECT_TRUE(refused_because({"filter_type[1] is BNNSConvolution", "expected BNNSBatchNorm"}));
  EXPECT_FALSE(create(2, unknown, layers));
  EXPECT_TRUE(refused_because({"filter_type[1] is 77"}));
}

// The generic calls refuse a fused filter (K31), and the fused calls any other filter.
TEST(FusedMisuse, OtherCallsAndOtherFilters) {
  const FusedCase c = convolution_case();
  const FusedData d(c, 1);
  const FusedLayer layer(c, d);
  const auto filter = layer.make();
  std::vector<float> y(c.s.y_count(), poison());
  EXPECT_EQ(BNNSFilterApply(filter.get(), d.x[0].data(), y.data()), -1);
  EXPECT_TRUE(refused_because({"BNNSFusedFilterApplyBatch"}));
  auto dy = layer.y_descriptor(const_cast<float*>(d.dy.data()));
  EXPECT_EQ(
      BNNSFilterApplyBackwardBatch(filter.get(), 1, d.x[0].data(), 0, nullptr, 0, nullptr, 0, &dy, 0, nullptr, nullptr),
      -1);
  EXPECT_TRUE(refused_because({"BNNSFusedFilterApplyBackwardBatch"}));
  EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), 1, d.x[0].data(), 0, y.data(), 0, true), -1);
  const FilterHandle plain(BNNSFilterCreateLayerConvolution(&layer.convolution, nullptr), &BNNSFilterDestroy);
  EXPECT_EQ(BNNSFusedFilterApplyBatch(plain.get(), 1, d.x[0].data(), 0, y.data(), 0, true), -1);
  EXPECT_TRUE(refused_because({"kind convolution", "kind fused"}));
  EXPECT_EQ(BNNSFusedFilterApplyBatch(nullptr, 1, d.x[0].data(), 0, y.data(), 0, true), -1);
  for (const float v : y) EXPECT_TRUE(is_poison(v));
}

TEST(FusedMisuse, ForwardSaysWhyAndWritesNothing) {
  const FusedCase c = convolution_case(), a = arithmetic_case();
  const FusedData d(c, 1), e(a, 1);
  FusedLayer layer(c, d), sum(a, e);
  const auto filter = layer.make(), multiply = sum.make();
  std::vector<float> y(c.s.y_count(), poison());
  const auto refused = [&](int status, std::initializer_list<const char*> words) {
    EXPECT_EQ(status, -1);
    EXPECT_TRUE(refused_because(words));
    for (const float v : y) ASSERT_TRUE(is_poison(v));
    for (const float v : layer.moving_mean) ASSERT_EQ(v, 0.25f);
  };
  const float* x = d.x[0].data();
  refused(BNNSFusedFilterApplyBatch(filter.get(), 2, nullptr, 0, y.data(), 0, true), {"in"});
  refused(BNNSFusedFilterApplyBatch(filter.get(), 2, x, 0, nullptr, 0, true), {"out"});
  refused(BNNSFusedFilterApplyBatch(filter.get(), 2, x, 0, y.data(), 7, true), {"out_stride", "7"});
  refused(BNNSFusedFilterApplyBatch(filter.get(), SIZE_MAX / 2, x, 0, y.data(), 0, true), {});
  refused(BNNSFusedFilterApplyBatch(filter.get(), 2, y.data() + 1, 0, y.data(), 0, true), {"in", "out"});
  const void* in[] = {x, x, x};
  const size_t strides[] = {0, 0, 0};
  refused(BNNSFusedFilterApplyMultiInputBatch(filter.get(), 2, 2, in, strides, y.data(), 0, true),
          {"number_of_inputs is 2", "expected 1"});
  refused(BNNSFusedFilterApplyMultiInputBatch(multiply.get(), 2, 3, in, strides, y.data(), 0, true),
          {"number_of_inputs is 3", "expected 2"});
  refused(BNNSFusedFilterApplyMultiInputBatch(multiply.get(), 2, 2, nullptr, strides, y.data(), 0, true), {"in"});
  const void* half[] = {e.x[0].data(), nullptr};
  refused(BNNSFusedFilterApplyMultiInputBatch(multiply.get(), 2, 2, half, strides, y.data(), 0, true), {"in"});

  // An activation between the stages: inference only.
  layer.convolution.activation.function = BNNSActivationFunctionTanh;
  const auto inference = layer.make();
  refused(BNNSFusedFilterApplyBatch(inference.get(), 2, x, 0, y.data(), 0, true), {"activation", "Identity"});
  EXPECT_EQ(BNNSFusedFilterApplyBatch(inference.get(), 2, x, 0, y.data(), 0, false), 0) << BNNSExtLastError();
}

TEST(FusedMisuse, BackwardSaysWhyAndWritesNothing) {
  const FusedCase c = convolution_case();
  const FusedData d(c, 1);
  FusedLayer layer(c, d);
  layer.normalization.activation.function = BNNSActivationFunctionRectifiedLinear;
  const auto filter = layer.make();
  std::vector<float> y(c.s.y_count()), dx(c.x_count(), poison()), dw(c.s.w_count(), poison()), db(3, poison()),
      dbeta(3, poison()), dgamma(3, poison());
  auto dx_desc = layer.x_descriptor(dx.data()), dw_desc = layer.convolution.w_desc,
       db_desc = vector_descriptor(3, db.data()), dbeta_desc = vector_descriptor(3, dbeta.data()),
       dgamma_desc = vector_descriptor(3, dgamma.data()), dy = layer.y_descriptor(const_cast<float*>(d.dy.data()));
  dw_desc.data = dw.data();
  BNNSNDArrayDescriptor* deltas[] = {&dw_desc, &db_desc, &dbeta_desc, &dgamma_desc};
  const float* x = d.x[0].data();
  const auto backward = [&](size_t batch, const void* in, const void* out, BNNSNDArrayDescriptor* out_delta) {
    return BNNSFusedFilterApplyBackwardBatch(filter.get(), batch, in, 0, &dx_desc, 0, out, 0, out_delta, 0, deltas);
  };
  const auto refused = [&](int status, std::initializer_list<const char*> words) {
    EXPECT_EQ(status, -1);
    EXPECT_TRUE(refused_because(words));
    for (const auto* v : {&dx, &dw, &db, &dbeta, &dgamma}) {
      for (const float e : *v) ASSERT_TRUE(is_poison(e));
    }
  };
  refused(backward(2, x, y.data(), &dy), {"training"});  // no training pass yet
  ASSERT_EQ(BNNSFusedFilterApplyBatch(filter.get(), 2, x, 0, y.data(), 0, true), 0) << BNNSExtLastError();
  refused(backward(1, x, y.data(), &dy), {"batch"});
  refused(backward(2, nullptr, y.data(), &dy), {"in is NULL"});  // dW needs it
  refused(backward(2, x, nullptr, &dy), {"out"});                // the rectifier needs it
  refused(backward(2, x, y.data(), nullptr), {"out_delta"});
  auto wrong = dy;
  wrong.size[0] = 6;
  refused(backward(2, x, y.data(), &wrong), {"out_delta"});
  dbeta_desc.size[0] = 4;
  refused(backward(2, x, y.data(), &dy), {"beta"});
  dbeta_desc.size[0] = 3;
  // What only the first stage finds must be found before beta and gamma are written.
  dw_desc.size[0] = 2;
  refused(backward(2, x, y.data(), &dy), {"weights_delta"});
  dw_desc.size[0] = 3;
  dw_desc.data = const_cast<float*>(x);
  refused(backward(2, x, y.data(), &dy), {"weights_delta", "in"});
  dw_desc.data = dw.data();
  EXPECT_EQ(backward(2, x, y.data(), &dy), 0) << BNNSExtLastError();
}

// A quantizer as second stage: inference only, and not after arithmetic.
TEST(FusedMisuse, QuantizerIsForInference) {
  const FusedCase c = convolution_case();
  const FusedData d(c, 1);
  const FusedLayer layer(c, d);
  const auto quantization = quantizer(layer, BNNSDataTypeInt8, nullptr, nullptr);
  const BNNSFilterType types[] = {BNNSConvolution, BNNSQuantization}, sums[] = {BNNSArithmetic, BNNSQuantization};
  const void* layers[] = {&layer.convolution, &quantization};
  const FilterHandle filter(BNNSFilterCreateFusedLayer(2, types, layers, nullptr), &BNNSFilterDestroy);
  ASSERT_TRUE(filter) << BNNSExtLastError();
  std::vector<int8_t> y(c.s.y_count(), 77);
  EXPECT_EQ(BNNSFusedFilterApplyBatch(filter.get(), 2, d.x[0].data(), 0, y.data(), 0, true), -1);
  EXPECT_TRUE(refused_because({"training", "quantizer"}));
  auto dy = layer.y_descriptor(const_cast<float*>(d.dy.data()));
  EXPECT_EQ(
      BNNSFusedFilterApplyBackwardBatch(filter.get(), 2, d.x[0].data(), 0, nullptr, 0, nullptr, 0, &dy, 0, nullptr),
      -1);
  EXPECT_TRUE(refused_because({"quantization has no gradient"}));
  for (const int8_t v : y) ASSERT_EQ(v, 77);
  const FusedData e(arithmetic_case(), 1);
  const FusedLayer sum(arithmetic_case(), e);
  const void* sum_layers[] = {&sum.arithmetic, &quantization};
  EXPECT_FALSE(FilterHandle(BNNSFilterCreateFusedLayer(2, sums, sum_layers, nullptr), &BNNSFilterDestroy));
  EXPECT_TRUE(refused_because({"filter_type[1] is BNNSQuantization"}));
}

}  // namespace
}  // namespace bnns
