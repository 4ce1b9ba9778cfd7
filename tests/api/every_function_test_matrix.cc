// The walk: calls without a filter: activation, quantizer, matrix products, LSTM.

#include "tests/api/every_function_testing.h"

namespace bnns::testing {
namespace {

// ---- activation, quantizer ------------------------------------------------------------------------------------------

void activation_good() {
  Floats x = {-4, 3, -8, 5}, y(4);
  BNNSLayerParametersActivation layer = {};
  layer.i_desc = vector_descriptor(2, x.data());
  layer.o_desc = vector_descriptor(2, y.data());
  layer.activation.function = BNNSActivationFunctionLeakyRectifiedLinear;
  layer.activation.alpha = 0.25f;
  EXPECT_EQ(BNNSDirectApplyActivationBatch(&layer, nullptr, 2, 2, 2), 0);
  EXPECT_EQ(y, (Floats{-1, 3, -2, 5}));
}
void activation_bad() {
  Floats y = untouched(2);
  BNNSLayerParametersActivation layer = {};
  layer.i_desc = vec_of(2);  // no data
  layer.o_desc = vec(y);
  EXPECT_EQ(BNNSDirectApplyActivationBatch(&layer, nullptr, 1, 0, 0), -1);
  EXPECT_TRUE(is_untouched(y));
}

struct QuantizerCase {
  Floats x = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<int16_t> y = std::vector<int16_t>(8, -77), scale = {1, 10, 100, 1000};
  BNNSLayerParametersQuantization layer = {};
  QuantizerCase() {
    layer.axis_mask = 1;
    layer.function = BNNSQuantizerFunctionQuantize;
    layer.i_desc = row_major(4, 2, x.data());
    layer.o_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {4, 2}, y.data(), BNNSDataTypeInt16);
    layer.scale = vector_descriptor(4, scale.data(), BNNSDataTypeInt16);
  }
};

void quantizer_good() {
  QuantizerCase c;
  EXPECT_EQ(BNNSDirectApplyQuantizer(&c.layer, nullptr, 1, 0, 0), 0);
  EXPECT_EQ(c.y, (std::vector<int16_t>{1, 20, 300, 4000, 5, 60, 700, 8000}));
}
void quantizer_bad() {
  QuantizerCase c;
  c.layer.axis_mask = 2;  // axis 1 has 2 elements, scale has 4
  EXPECT_EQ(BNNSDirectApplyQuantizer(&c.layer, nullptr, 1, 0, 0), -1);
  EXPECT_EQ(c.y, std::vector<int16_t>(8, -77));
}

// ---- matrix products ------------------------------------------------------------------------------------------------

// Three halves of A times the transpose of B.
struct ProductCase {
  Floats a = {1, 2, 3, 4, 5, 6}, b = {1, 0, 1, 0, 1, 0}, y = untouched(4);
  Array a_desc = row_major(3, 2, a.data()), b_desc = row_major(3, 2, b.data()), y_desc = row_major(2, 2, y.data());
  const Floats want = {6, 3, 15, 7.5f};
};

void workspace_good() {
  ProductCase c;
  const ssize_t bytes = BNNSMatMulWorkspaceSize(false, true, 1.5f, &c.a_desc, &c.b_desc, &c.y_desc, nullptr);
  ASSERT_GE(bytes, 0);
  std::vector<char> workspace(size_t(bytes) + 1, 'w');  // it suffices, and no more is used
  EXPECT_EQ(BNNSMatMul(false, true, 1.5f, &c.a_desc, &c.b_desc, &c.y_desc, workspace.data(), nullptr), 0);
  EXPECT_EQ(c.y, c.want);
  EXPECT_EQ(workspace.back(), 'w');
}
void workspace_bad() {
  ProductCase c;
  EXPECT_LT(BNNSMatMulWorkspaceSize(false, false, 1.5f, &c.a_desc, &c.b_desc, &c.y_desc, nullptr), 0);  // 3 against 2
}

void matmul_good() {
  ProductCase c;
  EXPECT_EQ(BNNSMatMul(false, true, 1.5f, &c.a_desc, &c.b_desc, &c.y_desc, nullptr, nullptr), 0);
  EXPECT_EQ(c.y, c.want);
}
void matmul_bad() {
  ProductCase c;
  EXPECT_EQ(BNNSMatMul(false, false, 1.5f, &c.a_desc, &c.b_desc, &c.y_desc, nullptr, nullptr), -1);
  EXPECT_TRUE(is_untouched(c.y));
}

void direct_matmul_good() {
  ProductCase c;
  BNNSDirectApplyBroadcastMatMul(false, true, 1.5f, &c.a_desc, &c.b_desc, &c.y_desc, nullptr);
  EXPECT_EQ(c.y, c.want);
}
// It returns nothing: the untouched output and the reason are all there is.
void direct_matmul_bad() {
  ProductCase c;
  BNNSDirectApplyBroadcastMatMul(false, false, 1.5f, &c.a_desc, &c.b_desc, &c.y_desc, nullptr);
  EXPECT_TRUE(is_untouched(c.y));
}

// ---- LSTM -----------------------------------------------------------------------------------------------------------

// One unit, one step. Only the candidate gate has a weight, so i = f = o = 1/2, g = tanh(w x), c = (c0 + g) / 2 and
// h = tanh(c) / 2.
struct LstmCell {
  Floats x = {0.75f}, h0 = {0}, c0 = {-0.4f}, y = untouched(1), h = untouched(1), c = untouched(1);
  Floats input_weights[4] = {{0}, {0}, {1.2f}, {0}}, hidden_weights[4] = {{0}, {0}, {0}, {0}};
  BNNSLayerParametersLSTM layer = {};
  LstmCell() {
    layer.input_size = layer.hidden_size = layer.batch_size = layer.num_layers = layer.seq_len = 1;
    layer.lstm_flags = BNNSLayerFlagsLSTMDefaultActivations;
    layer.input_descriptor.data_desc = descriptor(BNNSDataLayoutSNE, {1, 1, 1}, x.data());
    layer.input_descriptor.hidden_desc = vec(h0);
    layer.input_descriptor.cell_state_desc = vec(c0);
    layer.output_descriptor.data_desc = descriptor(BNNSDataLayoutSNE, {1, 1, 1}, y.data());
    layer.output_descriptor.hidden_desc = vec(h);
    layer.output_descriptor.cell_state_desc = vec(c);
    BNNSLSTMGateDescriptor* gates[] = {&layer.input_gate, &layer.forget_gate, &layer.candidate_gate,
                                       &layer.output_gate};
    for (int k = 0; k < 4; ++k) {
      gates[k]->iw_desc[0] = row_major(1, 1, input_weights[k].data());
      gates[k]->hw_desc = row_major(1, 1, hidden_weights[k].data());
    }
  }
  LstmCell(const LstmCell&) = delete;
};
const double kCandidate = std::tanh(0.9), kCell = (-0.4 + kCandidate) / 2, kHidden = std::tanh(kCell) / 2;

void capacity_good() {
  LstmCell cell;
  const size_t bytes = BNNSComputeLSTMTrainingCacheCapacity(&cell.layer);
  ASSERT_GT(bytes, 0u);
  ASSERT_LT(bytes, 4096u);  // about 28 bytes per unit and a header
  std::vector<double> cache(bytes / 8 + 1);
  EXPECT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&cell.layer, nullptr, cache.data(), bytes), 0);
}
void capacity_bad() {
  LstmCell cell;
  cell.layer.hidden_size = 0;
  EXPECT_EQ(BNNSComputeLSTMTrainingCacheCapacity(&cell.layer), SIZE_MAX);
}

void lstm_good() {
  LstmCell cell;
  EXPECT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&cell.layer, nullptr, nullptr, 0), 0);
  expect_close(cell.y, {kHidden}, 32);  // two tanh of 4 ulp each, of values below 1
  expect_close(cell.h, {kHidden}, 32);
  expect_close(cell.c, {kCell}, 32);
}
void lstm_bad() {
  LstmCell cell;
  const size_t bytes = BNNSComputeLSTMTrainingCacheCapacity(&cell.layer);
  std::vector<double> cache(bytes / 8 + 1, 5);
  EXPECT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&cell.layer, nullptr, cache.data(), bytes - 1), -1);
  EXPECT_TRUE(is_untouched(cell.y) && is_untouched(cell.h) && is_untouched(cell.c));
  EXPECT_EQ(cache, std::vector<double>(bytes / 8 + 1, 5));
}

// dy = 1: dc = (1 - tanh^2 c) / 2, dg = dc (1 - g^2) / 2, dw = x dg, dx = w dg, dc0 = dc / 2.
struct LstmGradient {
  LstmCell cell, delta;
  size_t bytes = BNNSComputeLSTMTrainingCacheCapacity(&cell.layer);
  std::vector<double> cache = std::vector<double>(bytes / 8 + 1);
  LstmGradient() {
    EXPECT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&cell.layer, nullptr, cache.data(), bytes), 0);
    delta.y[0] = 1;
    delta.h[0] = delta.c[0] = 0;
    for (Floats* wanted : {&delta.x, &delta.h0, &delta.c0}) (*wanted)[0] = kUntouched;
    for (Floats& wanted : delta.input_weights) wanted[0] = kUntouched;
    for (Floats& wanted : delta.hidden_weights) wanted[0] = kUntouched;
  }
  int run(size_t capacity) {
    return BNNSDirectApplyLSTMBatchBackward(&cell.layer, &delta.layer, nullptr, cache.data(), capacity);
  }
};

void lstm_backward_good() {
  LstmGradient c;
  EXPECT_EQ(c.run(c.bytes), 0);
  const double dc = (1 - 4 * kHidden * kHidden) / 2, dg = dc * (1 - kCandidate * kCandidate) / 2;
  constexpr double kUlps = 64;  // about five chained functions and products, all below 1
  expect_close(c.delta.x, {1.2 * dg}, kUlps);
  expect_close(c.delta.c0, {dc / 2}, kUlps);
  expect_close(c.delta.input_weights[2], {0.75 * dg}, kUlps);
  expect_close(c.delta.input_weights[0], {0.75 * dc * kCandidate / 4}, kUlps);  // sigmoid' of 0 is 1/4
  expect_close(c.delta.input_weights[1], {0.75 * dc * -0.4 / 4}, kUlps);
  expect_close(c.delta.input_weights[3], {0.75 * 2 * kHidden / 4}, kUlps);
  for (const Floats& zero : c.delta.hidden_weights) EXPECT_EQ(zero, Floats{0});  // h0 is 0
  EXPECT_EQ(c.delta.h0, Floats{0});
}
void lstm_backward_bad() {
  LstmGradient c;
  EXPECT_EQ(c.run(c.bytes - 1), -1);
  EXPECT_TRUE(is_untouched(c.delta.x) && is_untouched(c.delta.h0) && is_untouched(c.delta.c0));
  for (const Floats& wanted : c.delta.input_weights) EXPECT_TRUE(is_untouched(wanted));
  for (const Floats& wanted : c.delta.hidden_weights) EXPECT_TRUE(is_untouched(wanted));
}

}  // namespace

std::vector<Entry> matrix_entries() {
  return {
      {"BNNSDirectApplyActivationBatch", activation_good, activation_bad},
      {"BNNSDirectApplyQuantizer", quantizer_good, quantizer_bad},
      {"BNNSMatMulWorkspaceSize", workspace_good, workspace_bad},
      {"BNNSMatMul", matmul_good, matmul_bad},
      {"BNNSDirectApplyBroadcastMatMul", direct_matmul_good, direct_matmul_bad},
      {"BNNSComputeLSTMTrainingCacheCapacity", capacity_good, capacity_bad},
      {"BNNSDirectApplyLSTMBatchTrainingCaching", lstm_good, lstm_bad},
      {"BNNSDirectApplyLSTMBatchBackward", lstm_backward_good, lstm_backward_bad},
  };
}

}  // namespace bnns::testing
