// The walk: filters forward, and their end.

#include "tests/api/every_function_layers.h"

namespace bnns::testing {
namespace {

const Floats kOneToSixteen = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

// ---- any filter -----------------------------------------------------------------------------------------------------

void apply_good() {
  const FilterHandle filter = make_fully_connected({1, 2, 3, 4, 5, 6}, {0.5f, -1});
  const Floats x = {1, 0, -1};
  Floats y(2);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{-1.5f, -3}));
}
void apply_bad() {
  const FilterHandle filter = make_arithmetic(BNNSArithmeticAdd, 2);  // has a call of its own
  const Floats x = {1, 2};
  Floats y = untouched(2);
  EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), y.data()), -1);
  EXPECT_TRUE(is_untouched(y));
}

void apply_batch_good() {
  const FilterHandle filter = make_fully_connected({3, 4}, {5});
  const Floats x = {1, 2, 10, 20};
  Floats y(2);
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 0), 0);
  EXPECT_EQ(y, (Floats{16, 115}));
}
void apply_batch_bad() {
  const FilterHandle filter = make_fully_connected({3, 4}, {5});
  Floats y = untouched(2);
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), 2, nullptr, 0, y.data(), 0), -1);
  EXPECT_TRUE(is_untouched(y));
}

void two_input_good() {
  const FilterHandle filter = make_matmul();
  const Floats a = {1, 2, 3, 4}, b = {5, 6, 7, 8};
  Floats y(4);
  EXPECT_EQ(BNNSFilterApplyTwoInput(filter.get(), a.data(), b.data(), y.data()), 0);
  EXPECT_EQ(y, (Floats{19, 22, 43, 50}));
}
void two_input_bad() {
  const FilterHandle filter = make_matmul();
  const Floats a = {1, 2, 3, 4};
  Floats y = untouched(4);
  EXPECT_EQ(BNNSFilterApplyTwoInput(filter.get(), a.data(), nullptr, y.data()), -1);
  EXPECT_TRUE(is_untouched(y));
}

void two_input_batch_good() {
  const FilterHandle filter = make_matmul();
  const Floats a = {1, 2, 3, 4, 1, 0, 0, 1}, b = {5, 6, 7, 8, 9, 8, 7, 6};
  Floats y(8);
  EXPECT_EQ(BNNSFilterApplyTwoInputBatch(filter.get(), 2, a.data(), 4, b.data(), 4, y.data(), 4), 0);
  EXPECT_EQ(y, (Floats{19, 22, 43, 50, 9, 8, 7, 6}));
}
void two_input_batch_bad() {
  const FilterHandle filter = make_fully_connected({3, 4}, {5});  // has one input
  const Floats x = {1, 2};
  Floats y = untouched(1);
  EXPECT_EQ(BNNSFilterApplyTwoInputBatch(filter.get(), 1, x.data(), 0, x.data(), 0, y.data(), 0), -1);
  EXPECT_TRUE(is_untouched(y));
}

// ---- pooling --------------------------------------------------------------------------------------------------------

void pooling_good() {
  const FilterHandle filter = make_max_pooling();
  Floats y(4), negative = kOneToSixteen;
  std::vector<size_t> indices(4);
  EXPECT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), 1, kOneToSixteen.data(), 0, y.data(), 0, indices.data(), 0), 0);
  EXPECT_EQ(y, (Floats{6, 8, 14, 16}));
  EXPECT_EQ(indices, (std::vector<size_t>{5, 7, 13, 15}));
  for (float& x : negative) x = -x;
  EXPECT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), 1, negative.data(), 0, y.data(), 0, indices.data(), 0), 0);
  EXPECT_EQ(y, (Floats{-1, -3, -9, -11}));
  EXPECT_EQ(indices, (std::vector<size_t>{0, 2, 8, 10}));
}
void pooling_bad() {
  const FilterHandle filter = make_fully_connected({3, 4}, {5});  // no pooling
  Floats y = untouched(4);
  std::vector<size_t> indices(4, 99);
  EXPECT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), 1, kOneToSixteen.data(), 0, y.data(), 0, indices.data(), 0), -1);
  EXPECT_TRUE(is_untouched(y));
  EXPECT_EQ(indices, std::vector<size_t>(4, 99));
}

void pooling_ex_good() {
  const FilterHandle filter = make_max_pooling();
  Floats y(4);
  std::vector<uint32_t> indices(4);
  EXPECT_EQ(BNNSPoolingFilterApplyBatchEx(filter.get(), 1, kOneToSixteen.data(), 0, y.data(), 0, BNNSDataTypeUInt32,
                                          indices.data(), 0),
            0);
  EXPECT_EQ(y, (Floats{6, 8, 14, 16}));
  EXPECT_EQ(indices, (std::vector<uint32_t>{5, 7, 13, 15}));
}
void pooling_ex_bad() {
  const FilterHandle filter = make_max_pooling();
  Floats y = untouched(4), indices = untouched(4);
  EXPECT_EQ(BNNSPoolingFilterApplyBatchEx(filter.get(), 1, kOneToSixteen.data(), 0, y.data(), 0, BNNSDataTypeFloat32,
                                          indices.data(), 0),
            -1);
  EXPECT_TRUE(is_untouched(y));
  EXPECT_TRUE(is_untouched(indices));
}

// ---- normalization, fused -------------------------------------------------------------------------------------------

void normalization_good() {
  const FilterHandle filter = make_layer_norm();
  const Floats x = {1, 2, 3, 4};
  Floats y(4);
  EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), 1, x.data(), 0, y.data(), 0, true), 0);
  const double sigma = std::sqrt(1.25);
  expect_close(y, {-1.5 / sigma, -0.5 / sigma, 0.5 / sigma, 1.5 / sigma});
}
void normalization_bad() {
  const FilterHandle filter = make_layer_norm();
  Floats y = untouched(4);
  EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), 1, nullptr, 0, y.data(), 0, true), -1);
  EXPECT_TRUE(is_untouched(y));
}

void fused_good() {
  const FilterHandle filter = make_fused();
  const Floats x = {1, 2, 3, 4};
  Floats y(4);
  EXPECT_EQ(BNNSFusedFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 0, true), 0);
  expect_close(y, {-1, -1, 1, 1});
}
void fused_bad() {
  const FilterHandle filter = make_layer_norm();  // not fused
  const Floats x = {1, 2, 3, 4};
  Floats y = untouched(4);
  EXPECT_EQ(BNNSFusedFilterApplyBatch(filter.get(), 1, x.data(), 0, y.data(), 0, true), -1);
  EXPECT_TRUE(is_untouched(y));
}

void fused_inputs_good() {
  const FilterHandle filter = make_fused_sum();
  const Floats a = {1, 1, 2, 2}, b = {0, 1, 1, 2};  // 1 2 and 3 4 together
  Floats y(4);
  const void* in[] = {a.data(), b.data()};
  const size_t stride[] = {2, 2};
  EXPECT_EQ(BNNSFusedFilterApplyMultiInputBatch(filter.get(), 2, 2, in, stride, y.data(), 2, true), 0);
  expect_close(y, {-1, -1, 1, 1});
}
void fused_inputs_bad() {
  const FilterHandle filter = make_fused_sum();
  const Floats a = {1, 1, 2, 2};
  Floats y = untouched(4);
  const void* in[] = {a.data()};
  const size_t stride[] = {2};
  EXPECT_EQ(BNNSFusedFilterApplyMultiInputBatch(filter.get(), 2, 1, in, stride, y.data(), 2, true), -1);
  EXPECT_TRUE(is_untouched(y));
}

// ---- arithmetic, attention ------------------------------------------------------------------------------------------

void arithmetic_good() {
  const FilterHandle filter = make_arithmetic(BNNSArithmeticSubtract, 2);
  const Floats a = {10, 20, 30, 40}, b = {1, 2, 3, 4};
  Floats y(4);
  const void* in[] = {a.data(), b.data()};
  const size_t stride[] = {2, 2};
  EXPECT_EQ(BNNSArithmeticFilterApplyBatch(filter.get(), 2, 2, in, stride, y.data(), 2), 0);
  EXPECT_EQ(y, (Floats{9, 18, 27, 36}));
}
void arithmetic_bad() {
  const FilterHandle filter = make_arithmetic(BNNSArithmeticSubtract, 2);
  const Floats a = {10, 20};
  Floats y = untouched(2);
  const void* in[] = {a.data()};
  const size_t stride[] = {0};
  EXPECT_EQ(BNNSArithmeticFilterApplyBatch(filter.get(), 1, 1, in, stride, y.data(), 0), -1);  // one input of two
  EXPECT_TRUE(is_untouched(y));
}

// Two samples, with the cache that a question told the size of.
void attention_good() {
  const ScalarAttention attention;
  const FilterHandle filter = attention.make();
  const Floats q = {0.5f, 1}, k = {-2, 4}, v = {3.5f, -1};
  Floats y = untouched(2);
  size_t bytes = 0;
  const auto run = [&](void* cache) {
    return BNNSApplyMultiheadAttention(filter.get(), 2, q.data(), 1, k.data(), 1, nullptr, 0, v.data(), 1, y.data(), 1,
                                       nullptr, &bytes, cache, nullptr, nullptr);
  };
  EXPECT_EQ(run(nullptr), 0);
  EXPECT_GT(bytes, 0u);
  EXPECT_TRUE(is_untouched(y));  // that was the question
  std::vector<char> cache(bytes);
  EXPECT_EQ(run(cache.data()), 0);
  EXPECT_EQ(y, (Floats{21, -6}));
}
void attention_bad() {
  const ScalarAttention attention;
  const FilterHandle filter = attention.make();
  const float q = 0.5f, k = -2;
  Floats y = untouched(1);
  EXPECT_EQ(BNNSApplyMultiheadAttention(filter.get(), 1, &q, 0, &k, 0, nullptr, 0, nullptr, 0, y.data(), 0, nullptr,
                                        nullptr, nullptr, nullptr, nullptr),
            -1);  // no values
  EXPECT_TRUE(is_untouched(y));
}

// ---- the end --------------------------------------------------------------------------------------------------------

// What the filter took from the client's allocator goes back to it.
void destroy_good() {
  const BNNSFilterParameters options = Accountant::options();
  BNNSLayerParametersActivation layer = {};
  layer.i_desc = layer.o_desc = vec_of(3);
  BNNSFilter filter = BNNSFilterCreateLayerActivation(&layer, &options);
  EXPECT_GT(Accountant::live, 0);
  BNNSFilterDestroy(filter);
  EXPECT_EQ(Accountant::live, 0);
}
void destroy_bad() {
  BNNSFilterDestroy(nullptr);
}

}  // namespace

std::vector<Entry> apply_entries() {
  return {
      {"BNNSFilterApply", apply_good, apply_bad},
      {"BNNSFilterApplyBatch", apply_batch_good, apply_batch_bad},
      {"BNNSFilterApplyTwoInput", two_input_good, two_input_bad},
      {"BNNSFilterApplyTwoInputBatch", two_input_batch_good, two_input_batch_bad},
      {"BNNSPoolingFilterApplyBatch", pooling_good, pooling_bad},
      {"BNNSPoolingFilterApplyBatchEx", pooling_ex_good, pooling_ex_bad},
      {"BNNSNormalizationFilterApplyBatch", normalization_good, normalization_bad},
      {"BNNSFusedFilterApplyBatch", fused_good, fused_bad},
      {"BNNSFusedFilterApplyMultiInputBatch", fused_inputs_good, fused_inputs_bad},
      {"BNNSArithmeticFilterApplyBatch", arithmetic_good, arithmetic_bad},
      {"BNNSApplyMultiheadAttention", attention_good, attention_bad},
      {"BNNSFilterDestroy", destroy_good, destroy_bad, "releasing NULL is allowed, as with free"},
  };
}

}  // namespace bnns::testing
