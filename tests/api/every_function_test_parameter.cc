// The walk: optimizer, clipping and norms; sizes, ranks and pointers.

#include "tests/api/every_function_layers.h"

namespace bnns::testing {
namespace {

// ---- optimizer ------------------------------------------------------------------------------------------------------

struct SgdCase {
  BNNSOptimizerSGDMomentumFields fields = {};
  Floats w = {1, 2, 3, 4}, g = {0.5f, -1, 2, 0};
  Array w_desc = vec(w), g_desc = vec(g), v_desc = {};
  Array *weights[1] = {&w_desc}, *accumulators[1] = {&v_desc};
  const Array* gradients[1] = {&g_desc};
  SgdCase() {
    fields.learning_rate = 0.1f;
    fields.gradient_scale = 1;
  }
  int run() {
    return BNNSOptimizerStep(BNNSOptimizerFunctionSGDMomentum, &fields, 1, weights, gradients,
                             v_desc.data ? accumulators : nullptr, nullptr);
  }
};

void optimizer_good() {
  SgdCase plain;
  EXPECT_EQ(plain.run(), 0);
  expect_close(plain.w, {0.95, 2.1, 2.8, 4});
  // V' = 0.9 V + g, W -= 0.1 V', twice.
  SgdCase momentum;
  Floats v = {0};
  momentum.w = {10}, momentum.g = {2};
  momentum.w_desc = vec(momentum.w), momentum.g_desc = vec(momentum.g), momentum.v_desc = vec(v);
  momentum.fields.momentum = 0.9f;
  momentum.fields.sgd_momentum_variant = BNNSSGDMomentumVariant1;
  EXPECT_EQ(momentum.run(), 0);
  expect_close(momentum.w, {9.8});
  expect_close(v, {2});
  EXPECT_EQ(momentum.run(), 0);
  expect_close(momentum.w, {9.42});
  expect_close(v, {3.8});
}
void optimizer_bad() {
  SgdCase c;
  c.g_desc.size[0] = 3;  // 4 weights
  EXPECT_EQ(c.run(), -1);
  EXPECT_EQ(c.w, (Floats{1, 2, 3, 4}));
}

// ---- clipping -------------------------------------------------------------------------------------------------------

void clip_value_good() {
  Floats x = {-5, -1, 0.5f, 2, 7}, y(5);
  const Array src = vec(x);
  Array dest = vec(y);
  EXPECT_EQ(BNNSClipByValue(&dest, &src, -1, 2), 0);
  EXPECT_EQ(y, (Floats{-1, -1, 0.5f, 2, 2}));
}
void clip_value_bad() {
  Floats x = {-5, 7}, y = untouched(2);
  const Array src = vec(x);
  Array dest = vec(y);
  EXPECT_EQ(BNNSClipByValue(&dest, &src, 2, -1), -1);  // an empty range
  EXPECT_TRUE(is_untouched(y));
}

void clip_norm_good() {
  Floats x = {3, 4}, y(2);
  const Array src = vec(x);
  Array dest = vec(y);
  EXPECT_EQ(BNNSClipByNorm(&dest, &src, 2.5f, 0), 0);
  EXPECT_EQ(y, (Floats{1.5f, 2}));
  EXPECT_EQ(BNNSClipByNorm(&dest, &src, 10, 0), 0);  // short enough
  EXPECT_EQ(y, x);
}
void clip_norm_bad() {
  Floats x = {3, 4}, y = untouched(2);
  const Array src = vec(x);
  Array dest = vec(y);
  EXPECT_EQ(BNNSClipByNorm(&dest, &src, 2.5f, 2), -1);  // a vector has no axis 1
  EXPECT_TRUE(is_untouched(y));
}

// The joint norm of {3, 4} and {12} is 13.
struct GlobalClip {
  Floats x1 = {3, 4}, x2 = {12}, y1 = untouched(2), y2 = untouched(1);
  Array src1 = vec(x1), src2 = vec(x2), dest1 = vec(y1), dest2 = vec(y2);
  const Array* src[2] = {&src1, &src2};
  Array* dest[2] = {&dest1, &dest2};
};

void clip_global_good() {
  GlobalClip c;
  EXPECT_EQ(BNNSClipByGlobalNorm(c.dest, c.src, 2, 6.5f, 0), 0);
  EXPECT_EQ(c.y1, (Floats{1.5f, 2}));
  EXPECT_EQ(c.y2, Floats{6});
  EXPECT_EQ(BNNSClipByGlobalNorm(c.dest, c.src, 2, 6.5f, 26), 0);  // the caller's norm counts
  EXPECT_EQ(c.y1, (Floats{0.75f, 1}));
  EXPECT_EQ(c.y2, Floats{3});
}
void clip_global_bad() {
  GlobalClip c;
  c.src2.size[0] = 2;  // dest[1] has 1
  EXPECT_EQ(BNNSClipByGlobalNorm(c.dest, c.src, 2, 6.5f, 0), -1);
  EXPECT_TRUE(is_untouched(c.y1) && is_untouched(c.y2));
}

// ---- norms ----------------------------------------------------------------------------------------------------------

void norm_good() {
  Floats x = {3, 4}, y(1);
  const Array src = vec(x);
  Array dest = vec(y);
  EXPECT_EQ(BNNSComputeNorm(&dest, &src, BNNSL2Norm, 0), 0);
  EXPECT_EQ(y, Floats{5});
  // Bit 0 reduces the rows of a 2 x 2 matrix: {3,8}, {4,6} has columns of 5 and 10.
  Floats matrix = {3, 8, 4, 6}, norms(2);
  const Array matrix_desc = descriptor(BNNSDataLayout2DFirstMajor, {2, 2}, matrix.data());
  Array norms_desc = vec(norms);
  EXPECT_EQ(BNNSComputeNorm(&norms_desc, &matrix_desc, BNNSL2Norm, 1), 0);
  EXPECT_EQ(norms, (Floats{5, 10}));
}
void norm_bad() {
  Floats x = {3, 4}, y = untouched(1);
  const Array src = vec(x);
  Array dest = vec(y);
  EXPECT_EQ(BNNSComputeNorm(&dest, &src, BNNSNormType(7), 0), -1);
  EXPECT_TRUE(is_untouched(y));
}

void norm_backward_good() {
  Floats x = {3, 4}, y = {5}, dy = {2}, dx(2);
  Array dx_desc = vec(dx);
  const Array dy_desc = vec(dy);
  EXPECT_EQ(BNNSComputeNormBackward(x.data(), &dx_desc, y.data(), &dy_desc, BNNSL2Norm, 0), 0);
  expect_close(dx, {1.2, 1.6});
}
void norm_backward_bad() {
  Floats x = {3, 4}, dy = {2}, dx = untouched(2);
  Array dx_desc = vec(dx);
  const Array dy_desc = vec(dy);
  EXPECT_EQ(BNNSComputeNormBackward(x.data(), &dx_desc, nullptr, &dy_desc, BNNSL2Norm, 0), -1);
  EXPECT_TRUE(is_untouched(dx));
}

// ---- sizes and pointers ---------------------------------------------------------------------------------------------

void rank_good() {
  EXPECT_EQ(BNNSDataLayoutGetRank(BNNSDataLayoutVector), 1u);
  EXPECT_EQ(BNNSDataLayoutGetRank(BNNSDataLayoutImageCHW), 3u);
  EXPECT_EQ(BNNSDataLayoutGetRank(BNNSDataLayout8DFirstMajor), 8u);
}
void rank_bad() {
  EXPECT_EQ(BNNSDataLayoutGetRank(BNNSDataLayout(0x70007)), SIZE_MAX);
}

void data_size_good() {
  Floats x(32);
  Array array = row_major(3, 4, x.data());
  EXPECT_EQ(BNNSNDArrayGetDataSize(&array), 48u);
  array.stride[0] = 1, array.stride[1] = 8;  // 3 rows of 8, and 3 elements of the last
  EXPECT_EQ(BNNSNDArrayGetDataSize(&array), 27u * 4);
  array.data = nullptr;
  EXPECT_EQ(BNNSNDArrayGetDataSize(&array), 0u);  // documented, no failure
}
void data_size_bad() {
  Floats x(12);
  Array array = row_major(3, 4, x.data());
  array.layout = BNNSDataLayout(0x70007);
  EXPECT_EQ(BNNSNDArrayGetDataSize(&array), 0u);
}

BNNSTensor small_tensor() {
  BNNSTensor tensor = {};
  tensor.data_type = BNNSDataTypeFloat16;
  tensor.rank = 2;
  tensor.shape[0] = 3, tensor.shape[1] = 4;
  tensor.stride[0] = 6, tensor.stride[1] = 1;
  return tensor;
}

void allocation_size_good() {
  const BNNSTensor tensor = small_tensor();
  EXPECT_EQ(BNNSTensorGetAllocationSize(&tensor), 2u * (2 * 6 + 4));
}
void allocation_size_bad() {
  BNNSTensor tensor = small_tensor();
  tensor.shape[0] = -1;  // dynamic
  EXPECT_EQ(BNNSTensorGetAllocationSize(&tensor), SIZE_MAX);
}

// What is written through the pointer is what the next call uses.
void pointer_good() {
  BNNSLayerParametersActivation layer = {};
  layer.i_desc = layer.o_desc = vec_of(2);
  layer.activation.function = BNNSActivationFunctionLeakyRectifiedLinear;
  layer.activation.alpha = 0.25f;
  const FilterHandle filter = own(BNNSFilterCreateLayerActivation(&layer, nullptr));
  const Array alpha = BNNSGetPointer(filter.get(), BNNSPointerSpecifierAlpha);
  ASSERT_NE(alpha.data, nullptr);
  EXPECT_EQ(alpha.size[0], 1u);
  EXPECT_EQ(alpha.data_type, BNNSDataTypeFloat32);
  float* value = static_cast<float*>(alpha.data);
  EXPECT_EQ(*value, 0.25f);
  const Floats x = {-4, 3};
  Floats y(2);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{-1, 3}));
  *value = 0.5f;
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{-2, 3}));
}
void pointer_bad() {
  const FilterHandle filter = make_fully_connected({3, 4}, {5});  // no activation filter
  EXPECT_EQ(BNNSGetPointer(filter.get(), BNNSPointerSpecifierAlpha).data, nullptr);
}

}  // namespace

std::vector<Entry> parameter_entries() {
  return {
      {"BNNSOptimizerStep", optimizer_good, optimizer_bad},
      {"BNNSClipByValue", clip_value_good, clip_value_bad},
      {"BNNSClipByNorm", clip_norm_good, clip_norm_bad},
      {"BNNSClipByGlobalNorm", clip_global_good, clip_global_bad},
      {"BNNSComputeNorm", norm_good, norm_bad},
      {"BNNSComputeNormBackward", norm_backward_good, norm_backward_bad},
      {"BNNSDataLayoutGetRank", rank_good, rank_bad},
      {"BNNSNDArrayGetDataSize", data_size_good, data_size_bad},
      {"BNNSTensorGetAllocationSize", allocation_size_good, allocation_size_bad},
      {"BNNSGetPointer", pointer_good, pointer_bad},
  };
}

}  // namespace bnns::testing
