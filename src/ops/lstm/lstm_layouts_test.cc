// The forms in which a layer may be described, what may be left out, and how gradients are stored.
#include "src/ops/lstm/lstm_testing.h"

namespace bnns::testing {
namespace {

std::vector<float> results_of(LstmLayer& layer) {
  std::vector<float> values(layer.model().results());
  layer.for_results([&](LayoutTensor& t, const Coordinates& at, size_t i) { values[i] = float(t.get(at)); });
  return values;
}
std::vector<float> gradients_of(LstmLayer& deltas) {
  std::vector<float> values(deltas.model().arguments());
  deltas.for_arguments([&](LayoutTensor& t, const Coordinates& at, size_t i) { values[i] = float(t.get(at)); });
  return values;
}

// Calls f with every descriptor of a layer.
template <class F>
void for_descriptors(LstmLayer& layer, F&& f) {
  BNNSLayerParametersLSTM& p = layer.parameters;
  for (BNNSLSTMDataDescriptor* d : {&p.input_descriptor, &p.output_descriptor}) {
    f(d->data_desc), f(d->hidden_desc), f(d->cell_state_desc);
  }
  for (size_t k = 0; k < 4; ++k) {
    BNNSLSTMGateDescriptor& g = layer.gate(k);
    f(g.iw_desc[0]), f(g.iw_desc[1]), f(g.hw_desc), f(g.cw_desc), f(g.b_desc);
  }
}

void run(LstmLayer& layer, LstmLayer& deltas) {
  ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&layer.parameters, nullptr, nullptr, 0), 0) << BNNSExtLastError();
  ASSERT_EQ(BNNSDirectApplyLSTMBatchBackward(&layer.parameters, &deltas.parameters, nullptr, nullptr, 0), 0)
      << BNNSExtLastError();
}

// Section 6: the scalar cell, forward and backward, analytic, through the C interface with descriptors as simple as
// they can be.
TEST(LstmLayouts, ScalarCellVector) {
  float x = 0.5f, h0 = 0.3f, c0 = -0.2f, y = NAN, h = NAN, c = NAN;
  float w[4] = {0.4f, -0.3f, 0.8f, 0.6f}, u[4] = {0.2f, 0.5f, -0.7f, 0.1f}, b[4] = {0.1f, 0.2f, -0.1f, 0.05f};
  BNNSLayerParametersLSTM layer, deltas;
  std::memset(&layer, 0, sizeof layer);
  layer.input_size = layer.hidden_size = layer.batch_size = layer.num_layers = layer.seq_len = 1;
  layer.lstm_flags = BNNSLayerFlagsLSTMDefaultActivations;
  deltas = layer;
  const auto one = [](float* data) { return vector_descriptor(1, data); };
  layer.input_descriptor = {one(&x), one(&h0), one(&c0)};
  layer.output_descriptor = {one(&y), one(&h), one(&c)};
  float dy = 1.5f, dx = 9, dh0 = 9, dc0 = 9, dw[4] = {9, 9, 9, 9}, du[4] = {9, 9, 9, 9}, db[4] = {9, 9, 9, 9};
  deltas.output_descriptor.data_desc = one(&dy);
  deltas.input_descriptor = {one(&dx), one(&dh0), one(&dc0)};
  BNNSLSTMGateDescriptor* gates[] = {&layer.input_gate, &layer.forget_gate, &layer.candidate_gate, &layer.output_gate};
  BNNSLSTMGateDescriptor* grads[] = {&deltas.input_gate, &deltas.forget_gate, &deltas.candidate_gate,
                                     &deltas.output_gate};
  for (size_t k = 0; k < 4; ++k) {
    gates[k]->iw_desc[0] = one(&w[k]), gates[k]->hw_desc = one(&u[k]), gates[k]->b_desc = one(&b[k]);
    grads[k]->iw_desc[0] = one(&dw[k]), grads[k]->hw_desc = one(&du[k]), grads[k]->b_desc = one(&db[k]);
  }
  std::vector<double> cache(BNNSComputeLSTMTrainingCacheCapacity(&layer) / 8 + 1);
  ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&layer, nullptr, cache.data(), cache.size() * 8), 0)
      << BNNSExtLastError();
  double z[4];
  for (size_t k = 0; k < 4; ++k) z[k] = double(b[k]) + double(w[k]) * double(x) + double(u[k]) * double(h0);
  const double i = ref::sigmoid(z[0]), f = ref::sigmoid(z[1]), g = std::tanh(z[2]), o = ref::sigmoid(z[3]);
  const double cell = f * double(c0) + i * g, t = std::tanh(cell), eps = 40 * 0x1p-24;
  EXPECT_NEAR(y, o * t, eps);
  EXPECT_EQ(bits(h), bits(y));
  EXPECT_NEAR(c, cell, eps);
  ASSERT_EQ(BNNSDirectApplyLSTMBatchBackward(&layer, &deltas, nullptr, cache.data(), cache.size() * 8), 0)
      << BNNSExtLastError();
  const double dc = 1.5 * o * (1 - t * t);
  const double dz[4] = {dc * g * i * (1 - i), dc * double(c0) * f * (1 - f), dc * i * (1 - g * g),
                        1.5 * t * o * (1 - o)};
  double sum_x = 0, sum_h = 0;
  for (size_t k = 0; k < 4; ++k) {
    EXPECT_NEAR(db[k], dz[k], eps);
    EXPECT_NEAR(dw[k], dz[k] * double(x), eps);
    EXPECT_NEAR(du[k], dz[k] * double(h0), eps);
    sum_x += dz[k] * double(w[k]), sum_h += dz[k] * double(u[k]);
  }
  EXPECT_NEAR(dx, sum_x, eps);
  EXPECT_NEAR(dh0, sum_h, eps);
  EXPECT_NEAR(dc0, dc * f, eps);
}

// Sizes of 0 are those of the layer; so is a layout of 0, and any layout with the same order in memory.
TEST(LstmLayouts, SizesAreInherited) {
  const LstmCase c = {.I = 3, .H = 5, .B = 2, .L = 3, .T = 4, .D = 2, .peephole = 0xf};
  std::vector<float> results, gradients;
  for (int form = 0; form < 4; ++form) {
    Random random(1);
    LstmLayer layer(c), deltas(c);
    layer.fill_arguments(random);
    deltas.for_results([&](LayoutTensor& t, const Coordinates& at, size_t) { t.set(at, random.normal()); });
    for (LstmLayer* l : {&layer, &deltas}) {
      for_descriptors(*l, [&](BNNSNDArrayDescriptor& d) {
        if (!d.data) return;
        size_t count = 1;
        for (size_t k = 0; k < size_t(d.layout) >> 16; ++k) count *= d.size[k];
        if (form > 0) std::memset(d.size, 0, sizeof d.size);
        if (form == 2) d.layout = BNNSDataLayout(0);
        if (form == 3) d.layout = BNNSDataLayoutVector, d.size[0] = count;
      });
    }
    if (form > 0) deltas.parameters.input_size = deltas.parameters.seq_len = 0;
    run(layer, deltas);
    if (form == 0) results = results_of(layer), gradients = gradients_of(deltas);
    EXPECT_TRUE(same_bits(results_of(layer), results)) << form;
    EXPECT_TRUE(same_bits(gradients_of(deltas), gradients)) << form;
  }
}

// NSE is SNE with another order in memory: the same bits. States in NSE order too.
TEST(LstmLayouts, BatchFirst) {
  LstmCase c = {.I = 3, .H = 5, .B = 4, .L = 2, .T = 6, .D = 2, .ragged = true};
  std::vector<float> results[2], gradients[2];
  std::vector<double> values;
  for (const bool batch_first : {false, true}) {
    c.batch_first = batch_first;
    Random random(2);
    LstmLayer layer(c), deltas(c);
    if (!batch_first) {
      values = layer.fill_arguments(random);
    } else {
      layer.for_arguments([&](LayoutTensor& t, const Coordinates& at, size_t i) { t.set(at, values[i]); });
    }
    deltas.for_results([&](LayoutTensor& t, const Coordinates& at, size_t i) { t.set(at, std::sin(double(i))); });
    run(layer, deltas);
    results[batch_first] = results_of(layer), gradients[batch_first] = gradients_of(deltas);
  }
  EXPECT_TRUE(same_bits(results[0], results[1]));
  EXPECT_TRUE(same_bits(gradients[0], gradients[1]));
}

// Separate input weights for layer 0 and the others also where one tensor would do.
TEST(LstmLayouts, InputWeightsInTwoTensors) {
  const LstmCase c = {.I = 6, .H = 6, .B = 2, .L = 3, .T = 2};
  Random random(3);
  LstmLayer layer(c), deltas(c);
  layer.fill_arguments(random);
  deltas.for_results([&](LayoutTensor& t, const Coordinates& at, size_t) { t.set(at, random.normal()); });
  run(layer, deltas);
  const std::vector<float> results = results_of(layer), gradients = gradients_of(deltas);
  for (LstmLayer* l : {&layer, &deltas}) {
    for (size_t k = 0; k < 4; ++k) {
      BNNSLSTMGateDescriptor& g = l->gate(k);
      g.iw_desc[1] = g.iw_desc[0];  // 4DFirstMajor {L, D, H, I}
      g.iw_desc[1].data = static_cast<float*>(g.iw_desc[0].data) + c.D * c.H * c.I;
      g.iw_desc[0].size[0] = 1, g.iw_desc[1].size[0] = c.L - 1;
    }
  }
  run(layer, deltas);
  EXPECT_TRUE(same_bits(results_of(layer), results));
  EXPECT_TRUE(same_bits(gradients_of(deltas), gradients));
}

// BackpropAccumulate adds to what is there; a gradient that is not wanted does not change the others; gradients of the
// first states may be written over those of the last ones.
TEST(LstmLayouts, AccumulateAndSkip) {
  for (const BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeBFloat16}) {
    const LstmCase c = {.I = 3, .H = 5, .B = 3, .L = 2, .T = 4, .D = 2, .peephole = 0xf, .ragged = true, .type = type};
    Random random(4);
    LstmLayer layer(c), deltas(c);
    layer.fill_arguments(random);
    const auto upstream = [&](LstmLayer& to) {
      to.for_results([&](LayoutTensor& t, const Coordinates& at, size_t i) { t.set(at, std::cos(double(i))); });
    };
    upstream(deltas);
    run(layer, deltas);
    const std::vector<float> plain = gradients_of(deltas);
    LstmLayer sums(c);
    upstream(sums);
    sums.for_arguments([&](LayoutTensor& t, const Coordinates& at, size_t) { t.set(at, 2); });
    for_descriptors(sums, [](BNNSNDArrayDescriptor& d) { d.flags = BNNSNDArrayFlagBackpropAccumulate; });
    run(layer, sums);
    const std::vector<float> accumulated = gradients_of(sums);
    for (size_t i = 0; i < plain.size(); ++i) {
      const double bound = 2 * type_epsilon(type) * (2 + std::fabs(double(plain[i])));
      EXPECT_NEAR(accumulated[i], 2 + plain[i], bound) << i;
    }
    for (size_t skipped = 0; skipped < deltas.slots(); ++skipped) {
      if (!deltas.has(skipped) || (skipped >= LstmLayer::kY && skipped < LstmLayer::kFirst)) continue;
      LstmLayer some(c);
      upstream(some);
      const void* data = some.slot(skipped).data();
      const auto before = some.slot(skipped).snapshot();
      for_descriptors(some, [&](BNNSNDArrayDescriptor& d) {
        if (d.data == data) d.data = nullptr;
      });
      run(layer, some);
      EXPECT_EQ(some.slot(skipped).snapshot(), before);
      for (size_t i = 0; i < deltas.slots(); ++i) {
        if (i != skipped && deltas.has(i)) {
          EXPECT_EQ(some.slot(i).snapshot(), deltas.slot(i).snapshot());
        }
      }
    }
    LstmLayer over(c);
    upstream(over);
    over.parameters.input_descriptor.hidden_desc = over.parameters.output_descriptor.hidden_desc;
    over.parameters.input_descriptor.cell_state_desc = over.parameters.output_descriptor.cell_state_desc;
    run(layer, over);
    EXPECT_EQ(over.slot(LstmLayer::kH).snapshot(), deltas.slot(LstmLayer::kH0).snapshot());
    EXPECT_EQ(over.slot(LstmLayer::kC).snapshot(), deltas.slot(LstmLayer::kC0).snapshot());
  }
}

// Only the last states are wanted; no upstream at all gives gradients of 0; sequences of no steps keep their states.
TEST(LstmLayouts, WhatMayBeLeftOut) {
  LstmCase c = {.I = 3, .H = 5, .B = 3, .L = 1, .T = 2, .D = 2, .ragged = true};
  Random random(5);
  LstmLayer layer(c), deltas(c);
  layer.fill_arguments(random);
  static uint32_t active[] = {2, 0};
  layer.parameters.sequence_descriptor.data = active;
  layer.parameters.output_descriptor.data_desc.data = nullptr;
  ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&layer.parameters, nullptr, nullptr, 0), 0) << BNNSExtLastError();
  for (size_t u = 0; u < c.H; ++u) {
    EXPECT_EQ(layer.slot(LstmLayer::kH).get({u, 2, 1, 0}), layer.slot(LstmLayer::kH0).get({u, 2, 1, 0}));
    EXPECT_NE(layer.slot(LstmLayer::kH).get({u, 1, 1, 0}), layer.slot(LstmLayer::kH0).get({u, 1, 1, 0}));
  }
  for (size_t slot : {LstmLayer::kY, LstmLayer::kH, LstmLayer::kC}) {
    const void* data = deltas.slot(slot).data();
    for_descriptors(deltas, [&](BNNSNDArrayDescriptor& d) {
      if (d.data == data) d.data = nullptr;
    });
  }
  ASSERT_EQ(BNNSDirectApplyLSTMBatchBackward(&layer.parameters, &deltas.parameters, nullptr, nullptr, 0), 0);
  for (const float g : gradients_of(deltas)) EXPECT_EQ(g, 0);
  layer.parameters.output_descriptor.hidden_desc.data = layer.parameters.output_descriptor.cell_state_desc.data =
      nullptr;
  EXPECT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&layer.parameters, nullptr, nullptr, 0), -1);
  EXPECT_TRUE(refused_because({"output_descriptor has no data"}));
}

}  // namespace
}  // namespace bnns::testing
