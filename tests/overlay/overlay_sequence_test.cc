// Attention and LSTM against the C calls, to the bit, forward and backward.

#include "tests/overlay/overlay_testing.h"

namespace overlay {
namespace {

TEST(OverlayAttention, EqualsC) {
  constexpr std::size_t L = 5, S = 6, model = 8, heads = 2, head = 4;
  const Shape target = {L, model}, source = {S, model}, weights = Shape::tensor3DLastMajor(model, head, heads),
              merge = {model, model}, bias = {model};
  const NDArray q = data(target, 1), k = data(source, 2), v = data(source, 3), dy = data(target, 4);
  std::vector<NDArray> w, b, dw, cdw, db, cdb, dx, cdx;
  for (unsigned i = 0; i < 4; ++i) {
    const Shape& ws = i < 3 ? weights : merge;
    const Shape& ts = i == 0 ? target : source;
    w.push_back(data(ws, 10 + i, 1)), b.push_back(data(bias, 20 + i, 1));
    dw.push_back(output(ws, 1)), cdw.push_back(output(ws, 1)), db.push_back(output(bias, 1));
    cdb.push_back(output(bias, 1)), dx.push_back(output(ts)), cdx.push_back(output(ts));
  }
  NDArray mask = NDArray::repeating(false, {S}, kBatch);
  mask.span<bool>()[1] = mask.span<bool>()[S + 3] = true;
  const NDArray extra = data({L, S}, 30, 1);
  MultiheadAttentionLayer layer({.query = {.target = descriptor(target), .weights = w[0], .bias = b[0]},
                                 .key = {.target = descriptor(source), .weights = w[1], .bias = b[1]},
                                 .value = {.target = descriptor(source), .weights = w[2], .bias = b[2]},
                                 .output = {.target = descriptor(target), .weights = w[3], .bias = b[3]}});
  BNNSLayerParametersMultiheadAttention c{};
  BNNSMHAProjectionParameters* parts[] = {&c.query, &c.key, &c.value, &c.output};
  for (std::size_t i = 0; i < 4; ++i) {
    parts[i]->target_desc = descriptor(i == 0 || i == 3 ? target : source), parts[i]->weights = w[i];
    parts[i]->bias = b[i];
  }
  const Filter filter(BNNSFilterCreateLayerMultiheadAttention(&c, nullptr));
  NDArray y = output(target), cy = output(target);
  const Desc qd = q, kd = k, vd = v, yd = cy, maskd = mask, extrad = extra;
  std::size_t c_bytes = 0;
  ASSERT_EQ(BNNSApplyMultiheadAttention(filter, kBatch, qd.data, 0, kd.data, 0, nullptr, 0, vd.data, 0, yd.data, 0,
                                        nullptr, &c_bytes, nullptr, nullptr, nullptr),
            0);
  ASSERT_EQ(layer.backpropCacheSize(kBatch), c_bytes);
  std::vector<std::byte> cache(c_bytes), c_cache(c_bytes), workspace(layer.workspaceSize(kBatch));
  const MultiheadAttentionLayer::Options options{
      .keyMask = mask, .addToAttention = extra, .backpropCache = cache, .workspace = workspace};
  layer.apply(kBatch, q, k, v, y, options);
  ASSERT_EQ(BNNSApplyMultiheadAttention(filter, kBatch, qd.data, 0, kd.data, 0, &maskd, 0, vd.data, 0, yd.data, 0,
                                        &extrad, &c_bytes, c_cache.data(), nullptr, nullptr),
            0)
      << BNNSExtLastError();
  EXPECT_TRUE(same(y, cy));
  MultiheadAttentionLayer::Options again = options;
  again.workspace = {};
  layer.applyBackward({.batchSize = kBatch,
                       .query = q,
                       .key = k,
                       .value = v,
                       .output = y,
                       .outputGradient = dy,
                       .generatingQueryGradients = {.target = dx[0], .weights = dw[0], .bias = db[0]},
                       .generatingKeyGradients = {.target = dx[1], .weights = dw[1], .bias = db[1]},
                       .generatingValueGradients = {.target = dx[2], .weights = dw[2], .bias = db[2]},
                       .generatingOutputWeightsGradient = dw[3],
                       .generatingOutputBiasGradient = db[3],
                       .options = again});
  BNNSMHAProjectionParameters d[4]{};
  for (std::size_t i = 0; i < 4; ++i) {
    if (i < 3) d[i].target_desc = cdx[i];
    if (i == 3) d[i].target_desc = dy;
    d[i].weights = cdw[i], d[i].bias = cdb[i];
  }
  ASSERT_EQ(BNNSApplyMultiheadAttentionBackward(filter, kBatch, qd.data, 0, &d[0], kd.data, 0, &maskd, 0, &d[1],
                                                vd.data, 0, &d[2], &extrad, nullptr, nullptr, yd.data, 0, &d[3],
                                                c_bytes, c_cache.data(), nullptr, nullptr),
            0)
      << BNNSExtLastError();
  for (std::size_t i = 0; i < 4; ++i) {
    if (i < 3) {
      EXPECT_TRUE(same(dx[i], cdx[i])) << i;
    }
    EXPECT_TRUE(same(dw[i], cdw[i])) << i;
    EXPECT_TRUE(same(db[i], cdb[i])) << i;
  }
  layer.apply(kBatch, q, k, v, y);  // no options
  std::vector<std::byte> small(8);
  EXPECT_TRUE(refuses(kApply, {"BNNSApplyMultiheadAttention", "cache"},
                      [&] { layer.apply(kBatch, q, k, v, y, {.backpropCache = small}); }));
}

TEST(OverlayLSTM, EqualsC) {
  constexpr std::size_t in = 3, hidden = 4, steps = 5;
  const Shape sequence = Shape::tensor3DSNE(in, kBatch, steps), states = Shape::tensor3DSNE(hidden, kBatch, 1),
              out = Shape::tensor3DSNE(hidden, kBatch, steps), iw = Shape::matrixRowMajor(in, hidden),
              hw = Shape::matrixRowMajor(hidden, hidden), bias = {hidden};
  const NDArray x = data(sequence, 1, 1), h0 = data(states, 2, 1), c0 = data(states, 3, 1), dy = data(out, 4, 1);
  NDArray y = output(out, 1), hn = output(states, 1), cn = output(states, 1), dx = output(sequence, 1);
  std::vector<NDArray> w, dw;
  for (unsigned g = 0; g < 4; ++g) {
    for (const Shape& s : {iw, hw, bias}) w.push_back(data(s, 10 + g, 1)), dw.push_back(output(s, 1));
  }
  const auto gate = [](std::vector<NDArray>& from, std::size_t g) {
    return LSTMArrays::Gate{.inputWeights = from[3 * g], .hiddenWeights = from[3 * g + 1], .bias = from[3 * g + 2]};
  };
  LSTMArrays arrays{.input = {.data = x, .hidden = h0, .cell = c0}, .output = {.data = y, .hidden = hn, .cell = cn}};
  arrays.inputGate = gate(w, 0), arrays.forgetGate = gate(w, 1), arrays.candidateGate = gate(w, 2);
  arrays.outputGate = gate(w, 3);
  LSTMLayer layer(
      {.inputSize = in, .hiddenSize = hidden, .batchSize = kBatch, .sequenceLength = steps, .arrays = arrays});
  NDArray cy = output(out, 1), chn = output(states, 1), ccn = output(states, 1), cdx = output(sequence, 1);
  std::vector<NDArray> cdw;
  for (unsigned g = 0; g < 4; ++g) {
    for (const Shape& s : {iw, hw, bias}) cdw.push_back(output(s, 1));
  }
  BNNSLayerParametersLSTM c{}, d{};
  c.input_size = in, c.hidden_size = hidden, c.batch_size = kBatch, c.num_layers = 1, c.seq_len = steps;
  c.lstm_flags = BNNSLayerFlagsLSTMDefaultActivations;
  c.input_descriptor = {x, h0, c0}, c.output_descriptor = {cy, chn, ccn};
  d = c;
  const auto fill = [](BNNSLayerParametersLSTM& l, std::vector<NDArray>& from) {
    BNNSLSTMGateDescriptor* gates[] = {&l.input_gate, &l.forget_gate, &l.candidate_gate, &l.output_gate};
    for (std::size_t g = 0; g < 4; ++g) {
      gates[g]->iw_desc[0] = from[3 * g], gates[g]->hw_desc = from[3 * g + 1], gates[g]->b_desc = from[3 * g + 2];
    }
  };
  fill(c, w), fill(d, cdw);
  d.input_descriptor = {cdx, Desc{}, Desc{}}, d.output_descriptor = {dy, Desc{}, Desc{}};
  ASSERT_EQ(layer.trainingCacheCapacity(), BNNSComputeLSTMTrainingCacheCapacity(&c));
  std::vector<std::byte> cache(layer.trainingCacheCapacity()), c_cache(cache.size());
  layer.apply(cache);
  ASSERT_EQ(BNNSDirectApplyLSTMBatchTrainingCaching(&c, nullptr, c_cache.data(), c_cache.size()), 0);
  EXPECT_TRUE(same(y, cy));
  EXPECT_TRUE(same(hn, chn));
  EXPECT_TRUE(same(cn, ccn));
  LSTMArrays gradients{.input = {.data = dx}, .output = {.data = dy}};
  gradients.inputGate = gate(dw, 0), gradients.forgetGate = gate(dw, 1), gradients.candidateGate = gate(dw, 2);
  gradients.outputGate = gate(dw, 3);
  layer.applyBackward(gradients, cache);
  ASSERT_EQ(BNNSDirectApplyLSTMBatchBackward(&c, &d, nullptr, c_cache.data(), c_cache.size()), 0) << BNNSExtLastError();
  EXPECT_TRUE(same(dx, cdx));
  for (std::size_t i = 0; i < dw.size(); ++i) EXPECT_TRUE(same(dw[i], cdw[i])) << i;
  layer.apply();  // inference
  EXPECT_TRUE(
      refuses(kApply, {"BNNSDirectApplyLSTMBatchTrainingCaching"}, [&] { layer.apply(std::span(cache).first(8)); }));
  EXPECT_TRUE(refuses(kCreate, {"BNNSComputeLSTMTrainingCacheCapacity"}, [&] {
    LSTMLayer({.inputSize = 0, .hiddenSize = hidden, .batchSize = 1, .sequenceLength = 1, .arrays = arrays});
  }));
}

}  // namespace
}  // namespace overlay
