// BNNS_CHECK_NAN=1 names filter, pass and first position of a result that is not finite.

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "tests/api/every_function_layers.h"

namespace bnns::testing {
namespace {

// Before the library reads it.
[[maybe_unused]] const int set = setenv("BNNS_CHECK_NAN", "1", 1);

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

class NanCheck : public ::testing::Test {
 protected:
  void SetUp() override {
    BNNSExtSetLogCallback(
        [](BNNSExtLogLevel level, const char* message, void* user) {
          EXPECT_EQ(level, BNNSExtLogNote) << message;
          static_cast<NanCheck*>(user)->notes_.push_back(message);
        },
        this);
  }
  void TearDown() override { BNNSExtSetLogCallback(nullptr, nullptr); }
  // The only note since the last look says each of the texts.
  void expect_note(std::initializer_list<const char*> texts) {
    ASSERT_EQ(notes_.size(), 1u);
    for (const char* text : texts) EXPECT_NE(notes_[0].find(text), std::string::npos) << notes_[0];
    notes_.clear();
  }
  std::vector<std::string> notes_;
};

TEST_F(NanCheck, ForwardOnceWithSampleAndPosition) {
  const FilterHandle filter = make_fully_connected({1, 0, 0, 1}, {0, 0});
  Floats x = {1, 2, 3, 4, 5, 6}, y(6);
  ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), 3, x.data(), 2, y.data(), 2), 0);
  EXPECT_TRUE(notes_.empty());
  x[5] = kInf;
  x[4] = 0;
  ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), 3, x.data(), 2, y.data(), 2), 0);
  expect_note({"fully_connected f32", "forward: out is ", "sample 2, position ["});
  ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), 3, x.data(), 2, y.data(), 2), 0);
  EXPECT_TRUE(notes_.empty());  // once per filter and pass
  const FilterHandle other = make_fully_connected({1, 0, 0, 1}, {0, 0});
  const Floats one = {0, kNaN};
  ASSERT_EQ(BNNSFilterApply(other.get(), one.data(), y.data()), 0);
  expect_note({"out is", "nan at position [0]"});
}

TEST_F(NanCheck, BackwardNamesTheGradient) {
  const FilterHandle filter = make_fully_connected({1, 0, 0, 1}, {0, 0});
  Floats x = {1, 2}, dx(2), dy = {0, kInf}, dw(4), db(2);
  Array in_delta = vec(dx), out_delta = vec(dy), weights_delta = row_major(2, 2, dw.data()), bias_delta = vec(db);
  ASSERT_EQ(BNNSFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, nullptr, 0, nullptr, 0, &out_delta, 0, nullptr,
                                         &bias_delta),
            0)
      << BNNSExtLastError();
  expect_note({"backward: bias_delta is inf at position [1]"});
  const FilterHandle other = make_fully_connected({1, 0, 0, 1}, {0, 0});
  ASSERT_EQ(BNNSFilterApplyBackwardBatch(other.get(), 1, x.data(), 0, &in_delta, 0, nullptr, 0, &out_delta, 0,
                                         &weights_delta, nullptr),
            0)
      << BNNSExtLastError();
  expect_note({"backward: in_delta is "});
}

TEST_F(NanCheck, PositionIsInTheOrderOfSizes) {
  const FilterHandle filter = make_max_pooling();  // 4 x 4 to 2 x 2
  Floats x(16), y(4);
  x[2 * 4 + 3] = kInf;  // row 2, column 3: the window of column 1, row 1
  ASSERT_EQ(BNNSPoolingFilterApplyBatch(filter.get(), 1, x.data(), 0, y.data(), 0, nullptr, 0), 0);
  expect_note({"max_pool", "forward: out is inf at position [1, 1, 0]"});
  Floats dx(16), dy = {0, 0, kNaN, 0};
  Array in_delta = chw(4, 4, 1, dx.data()), out_delta = chw(2, 2, 1, dy.data());
  ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, &in_delta, 0, y.data(), 0, &out_delta, 0,
                                                nullptr, nullptr, 0),
            0);
  expect_note({"max_pool", "backward: in_delta is"});
}

TEST_F(NanCheck, NormalizationFusedArithmeticAndMatmul) {
  Floats x = {1, 2, 3, kNaN}, y(4), both = {1, kInf};
  const FilterHandle norm = make_layer_norm();
  ASSERT_EQ(BNNSNormalizationFilterApplyBatch(norm.get(), 1, x.data(), 0, y.data(), 0, true), 0);
  expect_note({"layer_norm", "forward: out is"});
  const FilterHandle fused = make_fused();
  ASSERT_EQ(BNNSFusedFilterApplyBatch(fused.get(), 1, both.data(), 0, y.data(), 0, true), 0);
  expect_note({"forward: out is"});
  const FilterHandle sum = make_arithmetic(BNNSArithmeticAdd, 2);
  const void* inputs[] = {both.data(), both.data()};
  const size_t strides[] = {0, 0};
  ASSERT_EQ(BNNSArithmeticFilterApplyBatch(sum.get(), 1, 2, inputs, strides, y.data(), 0), 0);
  expect_note({"arithmetic add", "out is inf at position [1]"});
  const FilterHandle matmul = make_matmul();
  ASSERT_EQ(BNNSFilterApplyTwoInput(matmul.get(), x.data(), x.data(), y.data()), 0);
  expect_note({"matmul", "out is"});
}

TEST_F(NanCheck, LossAndOptimizer) {
  Floats x = {kInf, 0}, labels = {0, 0}, dx(2);
  float value = 0;
  Array delta = vec(dx);
  const FilterHandle loss = make_square_error(2, BNNSLossReductionSum);
  ASSERT_EQ(BNNSLossFilterApplyBatch(loss.get(), 1, x.data(), 2, labels.data(), 2, nullptr, 0, &value, &delta, 2), 0);
  ASSERT_EQ(notes_.size(), 2u);  // the value, and its gradient
  EXPECT_NE(notes_[0].find("loss mse f32 2 sum: forward: out is inf"), std::string::npos) << notes_[0];
  EXPECT_NE(notes_[1].find("in_delta is inf at position [0]"), std::string::npos) << notes_[1];
  notes_.clear();

  Floats w = {1, 1}, gradient = {0, kNaN};
  Array parameter = vec(w);
  const Array given = vec(gradient);
  Array* parameters[] = {&parameter};
  const Array* gradients[] = {&given};
  BNNSOptimizerSGDMomentumFields fields = {};
  fields.learning_rate = 0.1f;
  fields.gradient_scale = 1;
  for (int step = 0; step < 2; ++step) {
    ASSERT_EQ(BNNSOptimizerStep(BNNSOptimizerFunctionSGDMomentum, &fields, 1, parameters, gradients, nullptr, nullptr),
              0);
  }
  expect_note({"optimizer sgd", "parameters[0] is", "position [1]"});
}

TEST_F(NanCheck, LstmNamesUnitSampleAndStep) {
  Floats x(2 * 3 * 2, 0.5f), y(2 * 3 * 2),
      weights[4] = {Floats(4, 0.1f), Floats(4, 0.1f), Floats(4, 0.1f), Floats(4, 0.1f)};
  BNNSLayerParametersLSTM layer = {};
  layer.input_size = layer.hidden_size = layer.seq_len = 2;
  layer.batch_size = 3;
  layer.num_layers = 1;
  layer.lstm_flags = BNNSLayerFlagsLSTMDefaultActivations;
  layer.input_descriptor.data_desc = descriptor(BNNSDataLayoutSNE, {2, 3, 2}, x.data());
  layer.output_descriptor.data_desc = descriptor(BNNSDataLayoutSNE, {2, 3, 2}, y.data());
  BNNSLSTMGateDescriptor* gates[] = {&layer.input_gate, &layer.forget_gate, &layer.candidate_gate, &layer.output_gate};
  for (int k = 0; k < 4; ++k) gates[k]->iw_desc[0] = gates[k]->hw_desc = row_major(2, 2, weights[k].data());
  ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&layer, nullptr, nullptr, 0), 0) << BNNSExtLastError();
  EXPECT_TRUE(notes_.empty());
  x[1 * 6 + 2 * 2] = kNaN;  // step 1, sample 2
  ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&layer, nullptr, nullptr, 0), 0) << BNNSExtLastError();
  expect_note({"lstm", "output_desc.data_desc is", "position [0, 2, 1, 0]"});
}

TEST_F(NanCheck, AttentionAndCallsWithoutAFilter) {
  const ScalarAttention attention;
  const FilterHandle filter = attention.make();
  const Floats q = {0.5f, 1}, k = {-2, 4}, v = {3.5f, kInf};
  Floats y(2), x = {1, kNaN, 3, 4}, product(4);
  ASSERT_EQ(BNNSApplyMultiheadAttention(filter.get(), 2, q.data(), 1, k.data(), 1, nullptr, 0, v.data(), 1, y.data(), 1,
                                        nullptr, nullptr, nullptr, nullptr, nullptr),
            0)
      << BNNSExtLastError();
  expect_note({"attention", "forward: out is", "sample 1, position [0, 0]"});
  const Array a = row_major(2, 2, x.data()), c = row_major(2, 2, product.data());
  ASSERT_EQ(BNNSMatMul(false, false, 1, &a, &a, &c, nullptr, nullptr), 0) << BNNSExtLastError();
  expect_note({"matmul", "output is"});
  BNNSLayerParametersReduction sum = {};
  sum.i_desc = a;
  sum.o_desc = row_major(1, 2, y.data());
  sum.reduce_func = BNNSReduceFunctionSum;
  ASSERT_EQ(BNNSDirectApplyReduction(&sum, nullptr), 0) << BNNSExtLastError();
  expect_note({"reduc", "o_desc is", "position [0, 0]"});
}

TEST_F(NanCheck, HalfPrecisionAndGaps) {
  BNNSLayerParametersActivation layer = {};
  layer.i_desc = layer.o_desc = chw(2, 2, 1);
  layer.i_desc.data_type = layer.o_desc.data_type = BNNSDataTypeFloat16;
  layer.o_desc.stride[0] = 1, layer.o_desc.stride[1] = 3, layer.o_desc.stride[2] = 6;
  const FilterHandle filter = own(BNNSFilterCreateLayerActivation(&layer, nullptr));
  const uint16_t x[] = {0, 0, 0, 0x7c00};
  uint16_t y[6] = {0, 0, 0x7e00, 0, 0, 0x7e00};  // gaps are not results
  ASSERT_EQ(BNNSFilterApply(filter.get(), x, y), 0) << BNNSExtLastError();
  expect_note({"out is inf at position [1, 1, 0]"});
}

}  // namespace
}  // namespace bnns::testing
