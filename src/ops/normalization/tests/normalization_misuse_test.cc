// Normalization: wrong calls get the failure value and a reason that names field and rule, and nothing is written.

#include <gtest/gtest.h>

#include "src/ops/normalization/tests/normalization_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

const NormCase kSmall{Norm::batch, 2, 4, 3, 3};

TEST(NormalizationMisuse, BC34_BC35_CreationSaysWhy) {
  const std::vector<float> gamma(36), beta(36);
  std::vector<float> moving(4);
  const auto refused = [&](Norm kind, auto change, std::initializer_list<const char*> words) {
    NormCase c = kSmall;
    c.kind = kind;
    NormLayer layer(c, &gamma, &beta);
    layer.parameters.moving_mean_desc = layer.parameters.moving_variance_desc = vector_descriptor(4, moving.data());
    change(layer.parameters);
    EXPECT_EQ(BNNSFilterCreateLayerNormalization(filter_type(kind), &layer.parameters, &layer.options), nullptr);
    EXPECT_TRUE(refused_because(words));
  };
  using P = BNNSLayerParametersNormalization;
  refused(Norm::batch, [](P& p) { p.i_desc.size[1] = 0; }, {"normalization", "i_desc.size[1] is 0"});
  refused(Norm::batch, [](P& p) { p.i_desc.size[0] = SIZE_MAX; }, {"i_desc", "does not fit"});
  refused(Norm::batch, [](P& p) { p.o_desc.size[2] = size_t{1} << 62; }, {"o_desc", "does not fit"});
  refused(Norm::batch, [](P& p) { p.o_desc.size[0] = 4; },
          {"o_desc is f32 4x3x4, expected the sizes of i_desc, f32 3x3x4"});
  refused(Norm::batch, [](P& p) { p.o_desc.size[0] = 2, p.o_desc.size[1] = 3, p.o_desc.size[2] = 6; },
          {"o_desc is f32 2x3x6"});
  refused(
      Norm::batch, [](P& p) { p.i_desc.layout = BNNSDataLayoutRowMajorMatrix; },
      {"i_desc.layout is BNNSDataLayoutRowMajorMatrix (0x20000)", "BNNSDataLayoutImageCHW or BNNSDataLayoutVector"});
  refused(Norm::batch, [](P& p) { p.o_desc.layout = BNNSDataLayout(5); }, {"o_desc.layout is 0x5"});
  refused(Norm::batch, [](P& p) { p.i_desc.data_type = BNNSDataTypeInt8; }, {"i_desc has type i8"});
  refused(Norm::batch, [](P& p) { p.o_desc.data_type = BNNSDataType(9); }, {"o_desc.data_type is 0x9"});
  refused(Norm::batch, [](P& p) { p.o_desc.stride[0] = 2, p.o_desc.stride[1] = 1; },
          {"o_desc is f32 3x3x4: elements (1, 0, 0) and (0, 2, 0) share an address"});
  refused(Norm::batch, [](P& p) { p.gamma_desc.size[0] = 5; }, {"gamma_desc has 5 elements, expected 4 = channels"});
  refused(Norm::instance, [](P& p) { p.beta_desc.size[0] = 36; }, {"beta_desc has 36 elements, expected 4 = channels"});
  refused(Norm::group, [](P& p) { p.num_groups = 2, p.beta_desc.size[0] = 2; },
          {"beta_desc has 2 elements, expected 4 = channels"});
  refused(Norm::layer, [](P& p) { p.gamma_desc.size[0] = 4; },
          {"gamma_desc has 4 elements, expected 36 = width * height * channels"});
  refused(Norm::layer, [](P& p) { p.normalization_axis = 1; },
          {"beta_desc has 36 elements, expected 9 = width * height"});
  refused(Norm::layer, [](P& p) { p.normalization_axis = 2; }, {"beta_desc has 36 elements, expected 3 = width"});
  refused(Norm::layer, [](P& p) { p.normalization_axis = 3; }, {"normalization_axis is 3"});
  refused(Norm::layer, [](P& p) { p.normalization_axis = SIZE_MAX; }, {"normalization_axis is 18446744073709551615"});
  refused(Norm::group, [](P& p) { p.num_groups = 0; }, {"num_groups is 0, expected a divisor of the 4 channels"});
  refused(Norm::group, [](P& p) { p.num_groups = 3; }, {"num_groups is 3"});
  refused(Norm::group, [](P& p) { p.num_groups = SIZE_MAX; }, {"num_groups"});
  refused(Norm::batch, [](P& p) { p.gamma_desc.data_type = BNNSDataTypeInt32; }, {"gamma_desc has type i32"});
  refused(Norm::batch, [](P& p) { p.gamma_desc.data = static_cast<char*>(p.gamma_desc.data) + 1; },
          {"gamma_desc.data", "multiple of 4"});
  refused(Norm::batch, [](P& p) { p.moving_mean_desc.size[0] = 3; },
          {"moving_mean_desc has 3 elements, expected 4 = channels"});
  // One reason for every type that is not f32, whatever types other parameters may have.
  refused(
      Norm::instance, [](P& p) { p.moving_variance_desc.data_type = BNNSDataTypeFloat16; },
      {"moving_variance_desc.data_type is BNNSDataTypeFloat16 (0x10010); moving statistics are BNNSDataTypeFloat32"});
  refused(Norm::batch, [](P& p) { p.moving_mean_desc.data_type = BNNSDataTypeInt8; },
          {"moving_mean_desc.data_type is BNNSDataTypeInt8 (0x20008); moving statistics are BNNSDataTypeFloat32"});
  refused(Norm::batch, [](P& p) { p.momentum = -0.1f; }, {"momentum is -0.1, expected 0 to 1"});
  refused(Norm::instance, [](P& p) { p.momentum = 1.5f; }, {"momentum is 1.5"});
  refused(Norm::batch, [](P& p) { p.momentum = NAN; }, {"momentum is nan"});
  refused(Norm::batch, [](P& p) { p.epsilon = -1e-5f; }, {"epsilon is -1e-05"});
  refused(Norm::layer, [](P& p) { p.epsilon = INFINITY; }, {"epsilon is inf"});
  refused(Norm::batch, [](P& p) { p.activation.function = BNNSActivationFunctionSoftmax; },
          {"activation is softmax", "element-wise"});
  refused(Norm::batch, [](P& p) { p.activation.function = BNNSActivationFunctionGumbel; }, {"gumbel cannot be fused"});
  refused(Norm::batch, [](P& p) { p.activation.function = BNNSActivationFunction(77); }, {"activation.function is 77"});
  NormLayer layer(kSmall);
  EXPECT_EQ(BNNSFilterCreateLayerNormalization(BNNSConvolution, &layer.parameters, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"normType is BNNSConvolution (0)"}));
  EXPECT_EQ(BNNSFilterCreateLayerNormalization(BNNSBatchNorm, nullptr, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
  layer.options.flags = 8;
  EXPECT_EQ(BNNSFilterCreateLayerNormalization(BNNSBatchNorm, &layer.parameters, &layer.options), nullptr);
  EXPECT_TRUE(refused_because({"filter_params.flags is 0x8"}));
}

// BC37: one table through forward (both modes) and backward.
TEST(NormalizationMisuse, BC37_AppliesSayWhyAndWriteNothing) {
  const size_t n = kSmall.count();
  const NormLayer layer(kSmall, nullptr, nullptr, BNNSActivationFunctionRectifiedLinear);
  const auto filter = layer.make();
  std::vector<float> x(n, 1), y(n, poison()), dy(n, 1), dx(n, poison()), dbeta(4, poison()), dgamma(4, poison());
  for (bool training : {false, true}) {
    const auto refused = [&](BNNSFilter f, size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride,
                             std::initializer_list<const char*> words) {
      EXPECT_EQ(BNNSNormalizationFilterApplyBatch(f, batch, in, in_stride, out, out_stride, training), -1);
      EXPECT_TRUE(refused_because(words));
    };
    refused(nullptr, 2, x.data(), 0, y.data(), 0, {"BNNSNormalizationFilterApplyBatch", "filter is NULL"});
    refused(filter.get(), 2, nullptr, 0, y.data(), 0, {"in is NULL"});
    refused(filter.get(), 2, x.data(), 0, nullptr, 0, {"out is NULL"});
    refused(filter.get(), 2, reinterpret_cast<char*>(x.data()) + 2, 0, y.data(), 0, {"in is", "multiple of 4"});
    refused(filter.get(), 2, x.data(), 0, y.data(), 35, {"out_stride is 35, expected 0 or at least 36"});
    refused(filter.get(), SIZE_MAX, x.data(), 0, y.data(), 0, {"stride", "do not fit in memory"});
    refused(filter.get(), 2, y.data() + 1, 0, y.data(), 0, {"out and in overlap"});
    refused(filter.get(), 2, y.data(), 36, y.data(), 40, {"out and in overlap"});
  }
  // K21
  auto dx_desc = layer.data_descriptor(dx.data()), dy_desc = layer.data_descriptor(dy.data());
  auto dbeta_desc = layer.affine_descriptor(dbeta.data()), dgamma_desc = layer.affine_descriptor(dgamma.data());
  const auto backward = [&](BNNSFilter f, size_t batch, const void* out, BNNSNDArrayDescriptor* delta,
                            size_t dx_stride = 0) {
    return BNNSNormalizationFilterApplyBackwardBatch(f, batch, &dx_desc, dx_stride, out, 0, delta, 0, &dbeta_desc,
                                                     &dgamma_desc);
  };
  const auto refused = [&](int status, std::initializer_list<const char*> words) {
    EXPECT_EQ(status, -1);
    EXPECT_TRUE(refused_because(words));
  };
  refused(backward(filter.get(), 2, y.data(), &dy_desc), {"no forward pass with training = true"});
  for (float v : y) EXPECT_TRUE(is_poison(v));
  ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 0, false), 0);
  refused(backward(filter.get(), 2, y.data(), &dy_desc),
          {"no forward pass with training = true"});  // inference keeps nothing
  ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 0, true), 0);
  refused(backward(nullptr, 2, y.data(), &dy_desc), {"BNNSNormalizationFilterApplyBackwardBatch", "filter is NULL"});
  refused(backward(filter.get(), 1, y.data(), &dy_desc), {"batch_size is 1, expected 2 as in the last forward pass"});
  refused(backward(filter.get(), 2, nullptr, &dy_desc), {"out is NULL"});
  refused(backward(filter.get(), 2, y.data(), nullptr), {"out_delta is NULL"});
  refused(backward(filter.get(), 2, y.data(), &dy_desc, 7), {"in_delta_stride is 7, expected 0 or at least 36"});
  auto bad = vector_descriptor(35, dy.data());
  refused(backward(filter.get(), 2, y.data(), &bad), {"out_delta has 35 elements, expected 36"});
  bad = layer.data_descriptor(nullptr);
  refused(backward(filter.get(), 2, y.data(), &bad), {"out_delta.data is NULL"});
  bad = layer.data_descriptor(dx.data() + 4);
  refused(backward(filter.get(), 2, y.data(), &bad), {"in_delta and out_delta overlap"});
  dbeta_desc.size[0] = 3;
  refused(backward(filter.get(), 2, y.data(), &dy_desc), {"beta_delta has 3 elements, expected 4"});
  dbeta_desc = layer.affine_descriptor(dgamma.data());
  refused(backward(filter.get(), 2, y.data(), &dy_desc), {"beta_delta and gamma_delta overlap"});
  dbeta_desc = layer.affine_descriptor(dy.data());
  refused(backward(filter.get(), 2, y.data(), &dy_desc), {"beta_delta and out_delta overlap"});
  for (float v : dx) EXPECT_TRUE(is_poison(v));
  for (float v : dbeta) EXPECT_TRUE(is_poison(v));
  for (float v : dgamma) EXPECT_TRUE(is_poison(v));
  dbeta_desc = layer.affine_descriptor(dbeta.data());
  EXPECT_EQ(backward(filter.get(), 2, y.data(), &dy_desc), 0)
      << BNNSExtLastError();  // all of this left the state alone

  // The generic calls name the right one.
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), -1);
  EXPECT_TRUE(refused_because({"applied by BNNSNormalizationFilterApplyBatch"}));
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 2, x.data(), 0, &dx_desc, 0, y.data(), 0, &dy_desc, 0, nullptr,
                                         nullptr),
            -1);
  EXPECT_TRUE(refused_because({"gradient is BNNSNormalizationFilterApplyBackwardBatch"}));
}

// A function without a derivative from y needs no out: x^ is kept (K8).
TEST(NormalizationMisuse, SiLUNeedsNoOut) {
  const NormLayer layer(kSmall, nullptr, nullptr, BNNSActivationFunctionSiLU);
  const auto filter = layer.make();
  std::vector<float> x(kSmall.count(), 1), y(kSmall.count());
  auto dy_desc = layer.data_descriptor(x.data());
  ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 0, true), 0);
  EXPECT_EQ(
      BNNSNormalizationFilterApplyBackwardBatch(filter.get(), 2, nullptr, 0, nullptr, 0, &dy_desc, 0, nullptr, nullptr),
      0);
}

// BC38: nothing is written but gradients of parameters; the state of the last training pass stays.
TEST(NormalizationMisuse, BC38_EmptyBatch) {
  for (Norm kind : {Norm::batch, Norm::layer}) {
    NormCase c = kSmall;
    c.kind = kind;
    std::vector<float> moving(4, 5), dbeta(c.parameters(), 7), dgamma(c.parameters(), 7);
    NormLayer layer(c);
    layer.options.flags = BNNSFlagsUseClientPtr;
    layer.parameters.moving_mean_desc = vector_descriptor(4, moving.data());
    const auto filter = layer.make();
    EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), 0, nullptr, 0, nullptr, 0, true), 0);
    EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), 0, nullptr, 0, nullptr, 0, false), 0);
    EXPECT_EQ(moving, std::vector<float>(4, 5));
    auto dbeta_desc = layer.affine_descriptor(dbeta.data()), dgamma_desc = layer.affine_descriptor(dgamma.data());
    dgamma_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
    EXPECT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter.get(), 0, nullptr, 0, nullptr, 0, nullptr, 0,
                                                        &dbeta_desc, &dgamma_desc),
              0);
    EXPECT_EQ(dbeta, std::vector<float>(c.parameters(), 0));
    EXPECT_EQ(dgamma, std::vector<float>(c.parameters(), 7));
  }
}

}  // namespace
}  // namespace bnns
