// The walk: constructors of layers without weights of their own: pooling, arithmetic, products, copies, reductions.

#include "tests/api/every_function_layers.h"

namespace bnns::testing {
namespace {

// ---- pooling --------------------------------------------------------------------------------------------------------

// Max over 2 x 2 of a 2 x 2 image with a border of 1.
BNNSLayerParametersPooling padded_pooling_layer() {
  BNNSLayerParametersPooling layer = {};
  layer.i_desc = chw(2, 2, 1);
  layer.o_desc = chw(3, 3, 1);
  layer.pooling_function = BNNSPoolingFunctionMax;
  layer.k_width = layer.k_height = 2;
  layer.x_stride = layer.y_stride = 1;
  layer.x_padding = layer.y_padding = 1;
  return layer;
}

void pooling_good() {
  const BNNSLayerParametersPooling layer = padded_pooling_layer();
  const FilterHandle filter = own(BNNSFilterCreateLayerPooling(&layer, nullptr));
  const Floats x = {1, 2, 3, 4};
  Floats y(9);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{1, 2, 2, 3, 4, 4, 3, 4, 4}));
}
void pooling_bad() {
  BNNSLayerParametersPooling layer = padded_pooling_layer();
  layer.o_desc = chw(5, 3, 1);  // the last window would begin outside the border
  expect_no_filter(BNNSFilterCreateLayerPooling(&layer, nullptr));
}

// The mean over 2 x 2 with a border of zeros, stride 2.
struct OldPoolingCase {
  BNNSImageStackDescriptor in = {2, 2, 1, 2, 4, BNNSDataTypeFloat32, 0, 0};
  BNNSImageStackDescriptor out = {2, 2, 1, 2, 4, BNNSDataTypeFloat32, 0, 0};
  BNNSPoolingLayerParameters layer = {};
  OldPoolingCase() {
    layer.x_stride = layer.y_stride = layer.k_width = layer.k_height = 2;
    layer.x_padding = layer.y_padding = layer.in_channels = layer.out_channels = 1;
    layer.pooling_function = BNNSPoolingFunctionAverage;
  }
};

void old_pooling_good() {
  const OldPoolingCase c;
  const FilterHandle filter = own(BNNSFilterCreatePoolingLayer(&c.in, &c.out, &c.layer, nullptr));
  const Floats x = {1, 2, 3, 4};
  Floats y(4);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{0.25f, 0.5f, 0.75f, 1}));
}
void old_pooling_bad() {
  OldPoolingCase c;
  c.layer.pooling_function = BNNSPoolingFunction(9);
  expect_no_filter(BNNSFilterCreatePoolingLayer(&c.in, &c.out, &c.layer, nullptr));
}

// ---- arithmetic, dropout --------------------------------------------------------------------------------------------

void arithmetic_good() {
  const FilterHandle filter = make_arithmetic(BNNSArithmeticMultiply, 2);
  const Floats a = {2, 3}, b = {5, 7};
  Floats y(2);
  const void* in[] = {a.data(), b.data()};
  const size_t stride[] = {0, 0};
  EXPECT_EQ(BNNSArithmeticFilterApplyBatch(filter.get(), 1, 2, in, stride, y.data(), 0), 0);
  EXPECT_EQ(y, (Floats{10, 21}));
}
void arithmetic_bad() {
  BNNSArithmeticBinary fields = binary_fields(2);
  fields.in1.size[0] = 3;  // neither 2 nor 1
  BNNSLayerParametersArithmetic layer = {};
  layer.arithmetic_function_fields = &fields;
  expect_no_filter(BNNSFilterCreateLayerArithmetic(&layer, nullptr));
}

BNNSLayerParametersDropout dropout_layer(float rate) {
  BNNSLayerParametersDropout layer = {};
  layer.i_desc = layer.o_desc = vec_of(200);
  layer.rate = rate;
  layer.seed = 1;
  return layer;
}

void dropout_good() {
  for (const float rate : {0.0f, 0.75f}) {
    const BNNSLayerParametersDropout layer = dropout_layer(rate);
    const FilterHandle filter = own(BNNSFilterCreateLayerDropout(&layer, nullptr));
    const Floats x(200, 3);
    Floats y(200);
    EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
    size_t kept = 0, dropped = 0;
    for (float value : y) kept += value == 3 / (1 - rate), dropped += value == 0;
    EXPECT_EQ(kept + dropped, 200u);
    EXPECT_EQ(dropped > 0, rate > 0);  // 0.75^200 = 1e-25 is the chance that all go
    EXPECT_GT(kept, 0u);
  }
}
void dropout_bad() {
  const BNNSLayerParametersDropout layer = dropout_layer(1);  // nothing would be left
  expect_no_filter(BNNSFilterCreateLayerDropout(&layer, nullptr));
}

// ---- copies ---------------------------------------------------------------------------------------------------------

void permute_good() {
  const BNNSLayerParametersPermute layer = permute_layer();
  const FilterHandle filter = own(BNNSFilterCreateLayerPermute(&layer, nullptr));
  const Floats x = {1, 2, 3, 4, 5, 6};
  Floats y(6);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{1, 4, 2, 5, 3, 6}));
}
void permute_bad() {
  BNNSLayerParametersPermute layer = permute_layer();
  layer.permutation[0] = 0;  // twice the same axis
  expect_no_filter(BNNSFilterCreateLayerPermute(&layer, nullptr));
}

BNNSLayerParametersPadding padding_layer() {
  BNNSLayerParametersPadding layer = {};
  layer.i_desc = vec_of(3);
  layer.o_desc = vec_of(6);
  layer.padding_size[0][0] = 1;
  layer.padding_size[0][1] = 2;
  layer.padding_mode = BNNSPaddingModeConstant;
  layer.padding_value = bits(7.0f);
  return layer;
}

void padding_good() {
  const BNNSLayerParametersPadding layer = padding_layer();
  const FilterHandle filter = own(BNNSFilterCreateLayerPadding(&layer, nullptr));
  const Floats x = {1, 2, 3};
  Floats y(6);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{7, 1, 2, 3, 7, 7}));
}
void padding_bad() {
  BNNSLayerParametersPadding layer = padding_layer();
  layer.o_desc = vec_of(5);  // 1 + 3 + 2
  expect_no_filter(BNNSFilterCreateLayerPadding(&layer, nullptr));
}

BNNSLayerParametersResize resize_layer() {
  BNNSLayerParametersResize layer = {};
  layer.method = BNNSInterpolationMethodNearest;
  layer.i_desc = chw(2, 2, 1);
  layer.o_desc = chw(4, 4, 1);
  return layer;
}

void resize_good() {
  const BNNSLayerParametersResize layer = resize_layer();
  const FilterHandle filter = own(BNNSFilterCreateLayerResize(&layer, nullptr));
  const Floats x = {1, 2, 3, 4};
  Floats y(16);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
}
void resize_bad() {
  BNNSLayerParametersResize layer = resize_layer();
  layer.method = static_cast<BNNSInterpolationMethod>(7);
  expect_no_filter(BNNSFilterCreateLayerResize(&layer, nullptr));
}

// ---- products -------------------------------------------------------------------------------------------------------

void matmul_good() {
  const FilterHandle filter = make_matmul();
  const Floats a = {1, 2, 3, 4}, b = {5, 6, 7, 8};
  Floats y(4);
  EXPECT_EQ(BNNSFilterApplyTwoInput(filter.get(), a.data(), b.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{19, 22, 43, 50}));
}
void matmul_bad() {
  BNNSLayerParametersBroadcastMatMul layer = {};
  layer.alpha = 1;
  layer.iA_desc = layer.o_desc = row_major(2, 2);
  layer.iB_desc = row_major(2, 3);  // 3 rows against 2 columns
  expect_no_filter(BNNSFilterCreateLayerBroadcastMatMul(&layer, nullptr));
}

BNNSLayerParametersTensorContraction contraction_layer(const char* operation) {
  BNNSLayerParametersTensorContraction layer = {};
  layer.operation = operation;
  layer.alpha = 10;
  layer.iA_desc = layer.iB_desc = row_major(2, 1);  // (i, p) and (i, q) with one i
  layer.o_desc = row_major(2, 2);
  return layer;
}

void contraction_good() {
  const BNNSLayerParametersTensorContraction layer = contraction_layer("a_ip, b_iq -> o_pq");
  const FilterHandle filter = own(BNNSFilterCreateLayerTensorContraction(&layer, nullptr));
  const Floats a = {1, 2}, b = {3, 4};
  Floats y(4);
  EXPECT_EQ(BNNSFilterApplyTwoInput(filter.get(), a.data(), b.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{30, 40, 60, 80}));
}
void contraction_bad() {
  const BNNSLayerParametersTensorContraction layer = contraction_layer("a_ip, b_iq > o_pq");
  expect_no_filter(BNNSFilterCreateLayerTensorContraction(&layer, nullptr));
}

BNNSLayerParametersGram gram_layer() {
  BNNSLayerParametersGram layer = {};
  layer.alpha = 1;
  layer.i_desc = chw(2, 1, 2);
  layer.o_desc = row_major(2, 2);
  return layer;
}

void gram_good() {
  for (const float alpha : {1.0f, 2.0f}) {
    BNNSLayerParametersGram layer = gram_layer();
    layer.alpha = alpha;
    const FilterHandle filter = own(BNNSFilterCreateLayerGram(&layer, nullptr));
    const Floats x = {1, 2, 3, 4};
    Floats y(4);
    EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
    EXPECT_EQ(y, (Floats{5 * alpha, 11 * alpha, 11 * alpha, 25 * alpha}));
  }
}
void gram_bad() {
  BNNSLayerParametersGram layer = gram_layer();
  layer.o_desc = row_major(3, 3);  // the input has 2 channels
  expect_no_filter(BNNSFilterCreateLayerGram(&layer, nullptr));
}

}  // namespace

std::vector<Entry> create_shape_entries() {
  return {
      {"BNNSFilterCreateLayerPooling", pooling_good, pooling_bad},
      {"BNNSFilterCreatePoolingLayer", old_pooling_good, old_pooling_bad},
      {"BNNSFilterCreateLayerArithmetic", arithmetic_good, arithmetic_bad},
      {"BNNSFilterCreateLayerDropout", dropout_good, dropout_bad},
      {"BNNSFilterCreateLayerPermute", permute_good, permute_bad},
      {"BNNSFilterCreateLayerPadding", padding_good, padding_bad},
      {"BNNSFilterCreateLayerResize", resize_good, resize_bad},
      {"BNNSFilterCreateLayerBroadcastMatMul", matmul_good, matmul_bad},
      {"BNNSFilterCreateLayerTensorContraction", contraction_good, contraction_bad},
      {"BNNSFilterCreateLayerGram", gram_good, gram_bad},
  };
}

}  // namespace bnns::testing
