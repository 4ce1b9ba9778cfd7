// The walk: filters backward, and losses.

#include "tests/api/every_function_layers.h"

namespace bnns::testing {
namespace {

// ---- any filter -----------------------------------------------------------------------------------------------------

void backward_good() {
  const FilterHandle filter = make_fully_connected({3, 4}, {5});
  const Floats x = {1, 2, 10, 20};
  Floats dy = {1, 2}, dx(4), dw(2), db(1);
  const Array dy_one = vector_descriptor(1, dy.data());
  Array dx_one = vector_descriptor(2, dx.data()), dw_desc = row_major(2, 1, dw.data()), db_desc = vec(db);
  EXPECT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 2, x.data(), 2, &dx_one, 2, nullptr, 0, &dy_one, 1, &dw_desc,
                                         &db_desc),
            0);
  EXPECT_EQ(dx, (Floats{3, 4, 6, 8}));
  EXPECT_EQ(dw, (Floats{21, 42}));
  EXPECT_EQ(db, Floats{3});
}
void backward_bad() {
  const FilterHandle filter = make_fully_connected({3, 4}, {5});
  Floats dx = untouched(2);
  Array dx_desc = vec(dx);
  EXPECT_EQ(
      BNNSFilterApplyBackwardBatch(filter.get(), 1, nullptr, 0, &dx_desc, 0, nullptr, 0, nullptr, 0, nullptr, nullptr),
      -1);
  EXPECT_TRUE(is_untouched(dx));
}

void two_input_good() {
  const FilterHandle filter = make_matmul();
  const Floats a = {1, 2, 3, 4}, b = {5, 6, 7, 8};
  Floats dy = {1, 2, 3, 4}, da(4), db(4);
  const Array dy_desc = row_major(2, 2, dy.data());
  Array da_desc = row_major(2, 2, da.data()), db_desc = row_major(2, 2, db.data());
  EXPECT_EQ(BNNSFilterApplyBackwardTwoInputBatch(filter.get(), 1, a.data(), 0, &da_desc, 0, b.data(), 0, &db_desc, 0,
                                                 nullptr, 0, &dy_desc, 0, nullptr, nullptr),
            0);
  EXPECT_EQ(da, (Floats{17, 23, 39, 53}));
  EXPECT_EQ(db, (Floats{10, 14, 14, 20}));
}
void two_input_bad() {
  const FilterHandle filter = make_matmul();
  const Floats a = {1, 2, 3, 4};
  Floats dy = {1, 2, 3, 4}, da = untouched(4), db = untouched(4);
  const Array dy_desc = row_major(2, 2, dy.data());
  Array da_desc = row_major(2, 2, da.data()), db_desc = row_major(2, 2, db.data());
  EXPECT_EQ(BNNSFilterApplyBackwardTwoInputBatch(filter.get(), 1, a.data(), 0, &da_desc, 0, nullptr, 0, &db_desc, 0,
                                                 nullptr, 0, &dy_desc, 0, nullptr, nullptr),
            -1);  // da needs b
  EXPECT_TRUE(is_untouched(da) && is_untouched(db));
}

void permute_good() {
  const BNNSLayerParametersPermute layer = permute_layer();
  const FilterHandle filter = own(BNNSFilterCreateLayerPermute(&layer, nullptr));
  Floats dy = {1, 2, 3, 4, 5, 6}, dx(6);
  const Array dy_desc = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, dy.data());
  Array dx_desc = descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, dx.data());
  EXPECT_EQ(BNNSPermuteFilterApplyBackwardBatch(filter.get(), 1, &dx_desc, 0, &dy_desc, 0), 0);
  EXPECT_EQ(dx, (Floats{1, 3, 5, 2, 4, 6}));
}
void permute_bad() {
  const BNNSLayerParametersPermute layer = permute_layer();
  const FilterHandle filter = own(BNNSFilterCreateLayerPermute(&layer, nullptr));
  Floats dy = {1, 2, 3, 4, 5, 6}, dx = untouched(6);
  const Array dy_desc = descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, dy.data());  // the input's shape
  Array dx_desc = descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, dx.data());
  EXPECT_EQ(BNNSPermuteFilterApplyBackwardBatch(filter.get(), 1, &dx_desc, 0, &dy_desc, 0), -1);
  EXPECT_TRUE(is_untouched(dx));
}

// ---- pooling: the gradient goes to the maxima -----------------------------------------------------------------------

struct PoolingCase {
  FilterHandle filter = make_max_pooling();
  Floats dy = {1, 2, 3, 4}, dx = untouched(16);
  Array dy_desc = chw(2, 2, 1, dy.data()), dx_desc = chw(4, 4, 1, dx.data());
};
const Floats kAtTheMaxima = {0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4};

void pooling_good() {
  PoolingCase c;
  const size_t indices[] = {5, 7, 13, 15};
  EXPECT_EQ(BNNSPoolingFilterApplyBackwardBatch(c.filter.get(), 1, nullptr, 0, &c.dx_desc, 0, nullptr, 0, &c.dy_desc, 0,
                                                nullptr, indices, 0),
            0);
  EXPECT_EQ(c.dx, kAtTheMaxima);
}
void pooling_bad() {
  PoolingCase c;
  const size_t indices[] = {5, 7, 13, 16};  // the plane has 16 elements
  EXPECT_EQ(BNNSPoolingFilterApplyBackwardBatch(c.filter.get(), 1, nullptr, 0, &c.dx_desc, 0, nullptr, 0, &c.dy_desc, 0,
                                                nullptr, indices, 0),
            -1);
  EXPECT_TRUE(is_untouched(c.dx));
}

void pooling_ex_good() {
  PoolingCase c;
  const uint32_t indices[] = {5, 7, 13, 15};
  EXPECT_EQ(BNNSPoolingFilterApplyBackwardBatchEx(c.filter.get(), 1, nullptr, 0, &c.dx_desc, 0, nullptr, 0, &c.dy_desc,
                                                  0, nullptr, BNNSDataTypeUInt32, indices, 0),
            0);
  EXPECT_EQ(c.dx, kAtTheMaxima);
}
void pooling_ex_bad() {
  PoolingCase c;  // neither indices nor the input
  EXPECT_EQ(BNNSPoolingFilterApplyBackwardBatchEx(c.filter.get(), 1, nullptr, 0, &c.dx_desc, 0, nullptr, 0, &c.dy_desc,
                                                  0, nullptr, BNNSDataTypeUInt32, nullptr, 0),
            -1);
  EXPECT_TRUE(is_untouched(c.dx));
}

// ---- normalization, fused -------------------------------------------------------------------------------------------

void normalization_good() {
  const FilterHandle filter = make_layer_norm();
  const Floats x = {1, 2, 3, 4};
  Floats y(4), dy = {1, 0, 0, 0}, dx(4);
  Array dy_desc = vec(dy), dx_desc = vec(dx);
  EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), 1, x.data(), 0, y.data(), 0, true), 0);
  EXPECT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter.get(), 1, &dx_desc, 0, nullptr, 0, &dy_desc, 0, nullptr,
                                                      nullptr),
            0);
  const double sigma = std::sqrt(1.25);
  std::vector<double> want;
  for (int i = 0; i < 4; ++i) {
    want.push_back(((i == 0) - 0.25 - (i - 1.5) / sigma * (-1.5 / (4 * sigma))) / sigma);
  }
  expect_close(dx, want);
}
void normalization_bad() {
  const FilterHandle filter = make_layer_norm();  // no forward call with training before
  Floats dy = {1, 0, 0, 0}, dx = untouched(4);
  Array dy_desc = vec(dy), dx_desc = vec(dx);
  EXPECT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter.get(), 1, &dx_desc, 0, nullptr, 0, &dy_desc, 0, nullptr,
                                                      nullptr),
            -1);
  EXPECT_TRUE(is_untouched(dx));
}

constexpr double kFewRoundings = 16 * 0x1p-24;  // of values of about 1

void fused_good() {
  const FilterHandle filter = make_fused();
  const Floats x = {1, 2, 3, 4};
  Floats y(4), dy = {1, 0, 0, 2}, dx(4), dw(4), db(2), dbeta(2), dgamma(2);
  EXPECT_EQ(BNNSFusedFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 0, true), 0);
  Array dy_desc = vector_descriptor(2, dy.data()), dx_desc = vector_descriptor(2, dx.data());
  Array dw_desc = row_major(2, 2, dw.data()), db_desc = vec(db), dbeta_desc = vec(dbeta), dgamma_desc = vec(dgamma);
  Array* parameters[] = {&dw_desc, &db_desc, &dbeta_desc, &dgamma_desc};
  EXPECT_EQ(BNNSFusedFilterApplyBackwardBatch(filter.get(), 2, x.data(), 2, &dx_desc, 2, y.data(), 2, &dy_desc, 2,
                                              parameters),
            0);
  expect_close(dbeta, {1, 2});
  expect_close(dgamma, {-1, 2});
  for (const Floats& zero : {dx, dw, db}) {  // x-hat of two samples is +-1 whatever they are
    for (float value : zero) EXPECT_NEAR(value, 0, 4 * kFewRoundings);
  }
}
void fused_bad() {
  const FilterHandle filter = make_fused();  // no forward call before
  const Floats x = {1, 2, 3, 4};
  Floats dy = {1, 0, 0, 2}, dx = untouched(4);
  Array dy_desc = vector_descriptor(2, dy.data()), dx_desc = vector_descriptor(2, dx.data());
  EXPECT_EQ(
      BNNSFusedFilterApplyBackwardBatch(filter.get(), 2, x.data(), 2, &dx_desc, 2, nullptr, 0, &dy_desc, 2, nullptr),
      -1);
  EXPECT_TRUE(is_untouched(dx));
}

struct FusedSumCase {
  FilterHandle filter = make_fused_sum();
  Floats a = {1, 1, 2, 2}, b = {0, 1, 1, 2}, y = Floats(4), dy = {1, 0, 0, 2}, da = untouched(4), db = untouched(4);
  Floats dbeta = untouched(2), dgamma = untouched(2);
  const void* in[2] = {a.data(), b.data()};
  size_t stride[2] = {2, 2};
  Array dy_desc = vector_descriptor(2, dy.data());
  Array da_desc = vector_descriptor(2, da.data()), db_desc = vector_descriptor(2, db.data());
  Array dbeta_desc = vec(dbeta), dgamma_desc = vec(dgamma);
  Array* deltas[2] = {&da_desc, &db_desc};
  Array* parameters[2] = {&dbeta_desc, &dgamma_desc};
  int forward() { return BNNSFusedFilterApplyMultiInputBatch(filter.get(), 2, 2, in, stride, y.data(), 2, true); }
  int backward(size_t inputs) {
    return BNNSFusedFilterApplyBackwardMultiInputBatch(filter.get(), 2, inputs, in, stride, deltas, stride, y.data(), 2,
                                                       &dy_desc, 2, parameters);
  }
};

void fused_inputs_good() {
  FusedSumCase c;
  EXPECT_EQ(c.forward(), 0);
  EXPECT_EQ(c.backward(2), 0);
  expect_close(c.dbeta, {1, 2});
  expect_close(c.dgamma, {-1, 2});
  for (const Floats& zero : {c.da, c.db}) {
    for (float value : zero) EXPECT_NEAR(value, 0, kFewRoundings);
  }
}
void fused_inputs_bad() {
  FusedSumCase c;
  EXPECT_EQ(c.forward(), 0);
  EXPECT_EQ(c.backward(1), -1);  // the sum has two
  EXPECT_TRUE(is_untouched(c.da) && is_untouched(c.db) && is_untouched(c.dbeta) && is_untouched(c.dgamma));
}

}  // namespace

std::vector<Entry> backward_entries() {
  return {
      {"BNNSFilterApplyBackwardBatch", backward_good, backward_bad},
      {"BNNSFilterApplyBackwardTwoInputBatch", two_input_good, two_input_bad},
      {"BNNSPermuteFilterApplyBackwardBatch", permute_good, permute_bad},
      {"BNNSPoolingFilterApplyBackwardBatch", pooling_good, pooling_bad},
      {"BNNSPoolingFilterApplyBackwardBatchEx", pooling_ex_good, pooling_ex_bad},
      {"BNNSNormalizationFilterApplyBackwardBatch", normalization_good, normalization_bad},
      {"BNNSFusedFilterApplyBackwardBatch", fused_good, fused_bad},
      {"BNNSFusedFilterApplyBackwardMultiInputBatch", fused_inputs_good, fused_inputs_bad},
  };
}

}  // namespace bnns::testing
