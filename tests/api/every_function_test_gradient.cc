// The walk: gradients of arithmetic and attention, and losses.

#include "tests/api/every_function_layers.h"

namespace bnns::testing {
namespace {

// ---- arithmetic -----------------------------------------------------------------------------------------------------

void arithmetic_good() {
  const FilterHandle filter = make_arithmetic(BNNSArithmeticMultiply, 2);
  const Floats a = {2, 3}, b = {5, 7};
  Floats dy = {1, 10}, da(2), db(2);
  const void* in[] = {a.data(), b.data()};
  const size_t stride[] = {0, 0};
  Array dy_desc = vec(dy), da_desc = vec(da), db_desc = vec(db);
  Array* deltas[] = {&da_desc, &db_desc};
  EXPECT_EQ(
      BNNSArithmeticFilterApplyBackwardBatch(filter.get(), 1, 2, in, stride, deltas, stride, nullptr, 0, &dy_desc, 0),
      0);
  EXPECT_EQ(da, (Floats{5, 70}));
  EXPECT_EQ(db, (Floats{2, 30}));
  // The gradient of a sum needs no inputs.
  const FilterHandle sum = make_arithmetic(BNNSArithmeticAdd, 2);
  EXPECT_EQ(BNNSArithmeticFilterApplyBackwardBatch(sum.get(), 1, 2, nullptr, nullptr, deltas, stride, nullptr, 0,
                                                   &dy_desc, 0),
            0);
  EXPECT_EQ(da, dy);
  EXPECT_EQ(db, dy);
}
void arithmetic_bad() {
  const FilterHandle filter = make_arithmetic(BNNSArithmeticMultiply, 2);
  Floats dy = {1, 10}, da = untouched(2), db = untouched(2);
  const size_t stride[] = {0, 0};
  Array dy_desc = vec(dy), da_desc = vec(da), db_desc = vec(db);
  Array* deltas[] = {&da_desc, &db_desc};
  EXPECT_EQ(BNNSArithmeticFilterApplyBackwardBatch(filter.get(), 1, 2, nullptr, nullptr, deltas, stride, nullptr, 0,
                                                   &dy_desc, 0),
            -1);  // the gradient of a product needs the factors
  EXPECT_TRUE(is_untouched(da) && is_untouched(db));
}

// ---- attention ------------------------------------------------------------------------------------------------------

struct AttentionGradient {
  ScalarAttention attention;
  FilterHandle filter = attention.make();
  float q = 0.5f, k = -2, v = 3.5f;
  Floats dy = {1}, dq = untouched(1), dk = untouched(1), dv = untouched(1), dwq = untouched(1), dwk = untouched(1);
  Floats dwv = untouched(1), dwo = untouched(1);
  BNNSMHAProjectionParameters query = {}, key = {}, value = {}, output = {};
  AttentionGradient() {
    const auto fill = [](BNNSMHAProjectionParameters& p, Floats& target, Floats& weights) {
      p.target_desc = row_major(1, 1, target.data());
      p.weights = descriptor(BNNSDataLayoutMHA_DHK, {1, 1, 1}, weights.data());
    };
    fill(query, dq, dwq), fill(key, dk, dwk), fill(value, dv, dwv), fill(output, dy, dwo);
    output.weights = row_major(1, 1, dwo.data());
  }
  int run() {
    return BNNSApplyMultiheadAttentionBackward(filter.get(), 1, &q, 0, &query, &k, 0, nullptr, 0, &key, &v, 0, &value,
                                               nullptr, nullptr, nullptr, nullptr, 0, &output, 0, nullptr, nullptr,
                                               nullptr);
  }
};

void attention_good() {
  AttentionGradient c;
  EXPECT_EQ(c.run(), 0);
  EXPECT_EQ(c.dv, Floats{6});
  EXPECT_EQ(c.dwv, Floats{10.5f});
  EXPECT_EQ(c.dwo, Floats{7});
  for (const Floats& zero : {c.dq, c.dk, c.dwq, c.dwk}) EXPECT_EQ(zero, Floats{0});  // one key: its weight is 1
}
void attention_bad() {
  AttentionGradient c;
  c.output.target_desc.data = nullptr;  // the gradient that everything comes from
  EXPECT_EQ(c.run(), -1);
  for (const Floats& d : {c.dq, c.dk, c.dv, c.dwq, c.dwk, c.dwv, c.dwo}) EXPECT_TRUE(is_untouched(d));
}

// ---- losses ---------------------------------------------------------------------------------------------------------

void loss_good() {
  const FilterHandle sum = make_square_error(10, BNNSLossReductionSum);
  const Floats x = {9, 1, 6, 3, 4, 5, 6, 7, 8, 9}, labels = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  Floats y(1), dx(10);
  Array dx_desc = vec(dx);
  EXPECT_EQ(BNNSLossFilterApplyBatch(sum.get(), 1, x.data(), 0, labels.data(), 0, nullptr, 0, y.data(), &dx_desc, 0),
            0);
  EXPECT_EQ(y, Floats{97});
  EXPECT_EQ(dx, (Floats{18, 0, 8, 0, 0, 0, 0, 0, 0, 0}));
  // 1 + 0 + 9, summed and averaged.
  const Floats few = {1, 2, 3}, targets = {0, 2, 6};
  for (const bool mean : {false, true}) {
    const FilterHandle filter = make_square_error(3, mean ? BNNSLossReductionMean : BNNSLossReductionSum);
    EXPECT_EQ(
        BNNSLossFilterApplyBatch(filter.get(), 1, few.data(), 0, targets.data(), 0, nullptr, 0, y.data(), nullptr, 0),
        0);
    expect_close(y, {mean ? 10.0 / 3 : 10});
  }
}
void loss_bad() {
  const FilterHandle filter = make_square_error(3, BNNSLossReductionSum);
  const Floats x = {1, 2, 3}, labels = {0, 2, 6}, weights = {1, 1};
  Floats y = untouched(1), dx = untouched(3);
  Array dx_desc = vec(dx);
  EXPECT_EQ(BNNSLossFilterApplyBatch(filter.get(), 1, x.data(), 0, labels.data(), 0, weights.data(), 2, y.data(),
                                     &dx_desc, 0),
            -1);  // 2 weights are neither one, one per sample nor one per element
  EXPECT_TRUE(is_untouched(y) && is_untouched(dx));
}

void loss_backward_good() {
  const FilterHandle filter = make_square_error(3, BNNSLossReductionNone);
  const Floats x = {1, 2, 3}, labels = {0, 0, 0};
  Floats dy = {1, 1, 1}, dx(3);
  Array dx_desc = vec(dx), dy_desc = vec(dy);
  EXPECT_EQ(BNNSLossFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, &dx_desc, 0, labels.data(), 0, nullptr, 0,
                                             &dy_desc, 0),
            0);
  EXPECT_EQ(dx, (Floats{2, 4, 6}));
}
void loss_backward_bad() {
  const FilterHandle filter = make_square_error(3, BNNSLossReductionNone);
  const Floats x = {1, 2, 3}, labels = {0, 0, 0};
  Floats dx = untouched(3);
  Array dx_desc = vec(dx);
  EXPECT_EQ(BNNSLossFilterApplyBackwardBatch(filter.get(), 1, x.data(), 0, &dx_desc, 0, labels.data(), 0, nullptr, 0,
                                             nullptr, 0),
            -1);
  EXPECT_TRUE(is_untouched(dx));
}

}  // namespace

std::vector<Entry> gradient_entries() {
  return {
      {"BNNSArithmeticFilterApplyBackwardBatch", arithmetic_good, arithmetic_bad},
      {"BNNSApplyMultiheadAttentionBackward", attention_good, attention_bad},
      {"BNNSLossFilterApplyBatch", loss_good, loss_bad},
      {"BNNSLossFilterApplyBackwardBatch", loss_backward_good, loss_backward_bad},
  };
}

}  // namespace bnns::testing
