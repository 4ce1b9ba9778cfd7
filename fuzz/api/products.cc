// Fully connected, matrix products, contraction, fused layers, attention, LSTM.
#include "fuzz/api/case.h"

namespace bnns::fuzz {
namespace {

void fill(Case& c, BNNSLayerParametersFullyConnected& p, size_t inputs, size_t outputs) {
  p.i_desc = c.vector(inputs), p.o_desc = c.vector(outputs), p.bias = c.vector(outputs);
  p.w_desc = c.array(BNNSDataLayoutRowMajorMatrix, {inputs, outputs});
  p.activation = c.activation();
  c.add(p.i_desc, p.o_desc, p.w_desc, p.bias, p.activation);
}

void fully_connected(Case& c) {
  auto& p = c.make<BNNSLayerParametersFullyConnected>();
  fill(c, p, c.bytes.from(1, 40), c.bytes.from(1, 40));
  c.vary();
  c.give(p.w_desc);
  if (c.bytes.chance(192)) c.give(p.bias);
  const Filter filter(BNNSFilterCreateLayerFullyConnected(&p, &c.options));
  if (filter) run_plain(c, filter, p.i_desc, p.o_desc, &p.w_desc, &p.bias);
}

// The calls for two inputs, or for one.
void run_two(Case& c, BNNSFilter filter, const Array& a, const Array& b, const Array& o) {
  const auto xa = c.input(a, c.batch), xb = c.input(b, c.batch), y = c.output(o, c.batch);
  c.call("two inputs", [&] {
    return BNNSFilterApplyTwoInputBatch(filter, c.batch, xa.data, xa.stride, xb.data, xb.stride, y.data, y.stride);
  });
  Array da = a, db = b, dy = o;
  c.add(da, db, dy);
  c.vary();
  size_t da_stride = 0, db_stride = 0;
  const auto g = c.input(dy, c.batch);
  dy.data = g.data;
  c.give_delta(da, c.batch, &da_stride), c.give_delta(db, c.batch, &db_stride);
  c.call("two inputs backward", [&] {
    return BNNSFilterApplyBackwardTwoInputBatch(filter, c.batch, xa.data, xa.stride, &da, da_stride, xb.data, xb.stride,
                                                &db, db_stride, nullptr, 0, &dy, g.stride, nullptr, nullptr);
  });
}

void matmul(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersBroadcastMatMul>();
  const size_t m = b.from(1, 20), n = b.from(1, 20), k = b.from(1, 20), flags = b.byte();
  p.alpha = 1, p.beta = flags & 1 ? 1.0f : 0.0f, p.transA = flags & 2, p.transB = flags & 4;
  p.a_is_weights = (flags & 0x38) == 8, p.b_is_weights = (flags & 0x38) == 16, p.quadratic = (flags & 0xc0) == 0xc0;
  p.iA_desc = c.array(BNNSDataLayoutRowMajorMatrix, {p.transA ? m : k, p.transA ? k : m});
  p.iB_desc = c.array(BNNSDataLayoutRowMajorMatrix, {p.transB ? k : n, p.transB ? n : k});
  p.o_desc = c.array(BNNSDataLayoutRowMajorMatrix, {n, m});
  c.add(p.iA_desc, p.iB_desc, p.o_desc, p.alpha, p.beta);
  c.vary();
  if (p.a_is_weights) c.give(p.iA_desc);
  if (p.b_is_weights) c.give(p.iB_desc);
  const Filter filter(BNNSFilterCreateLayerBroadcastMatMul(&p, &c.options));
  if (!filter) return;
  if (p.a_is_weights) return run_plain(c, filter, p.iB_desc, p.o_desc, &p.iA_desc);
  if (p.b_is_weights || p.quadratic)
    return run_plain(c, filter, p.iA_desc, p.o_desc, p.quadratic ? nullptr : &p.iB_desc);
  run_two(c, filter, p.iA_desc, p.iB_desc, p.o_desc);
}

void contraction(Case& c) {
  static const char* const kStrings[] = {"a_ij, b_jk -> c_ik", "x_*i, w_ij -> y_*j",    "a_ij -> s_i",
                                         "a_ij -> t_ji",       "a_bij, b_bjk -> c_bik", "x_ij, x_kj -> g_ik",
                                         "a_i, b_j -> c_ij"};
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersTensorContraction>();
  const size_t which = b.below(std::size(kStrings)), i = b.from(1, 6), j = b.from(1, 6), k = b.from(1, 6);
  p.operation = kStrings[which];
  p.alpha = 1, p.beta = b.chance(64) ? 1.0f : 0.0f;
  const bool batched = which == 4, outer = which == 6;
  p.iA_desc = batched ? c.tensor({2, i, j}) : outer ? c.tensor({i}) : c.tensor({i, j});
  p.iB_desc = batched ? c.tensor({2, j, k}) : outer ? c.tensor({j}) : c.tensor({j, k});
  p.o_desc = batched      ? c.tensor({2, i, k})
             : which == 2 ? c.tensor({i})
             : which == 3 ? c.tensor({j, i})
             : which == 5 ? c.tensor({i, i})
             : outer      ? c.tensor({i, j})
                          : c.tensor({i, k});
  c.add(p.iA_desc, p.iB_desc, p.o_desc, p.alpha, p.beta);
  c.vary();
  if (which == 1) c.give(p.iB_desc);
  const Filter filter(BNNSFilterCreateLayerTensorContraction(&p, &c.options));
  if (!filter) return;
  if (which == 1 || which == 2 || which == 3 || which == 5) {
    return run_plain(c, filter, p.iA_desc, p.o_desc, which == 1 ? &p.iB_desc : nullptr);
  }
  run_two(c, filter, p.iA_desc, p.iB_desc, p.o_desc);
}

// Fully connected, then a normalization.
void fused(Case& c) {
  auto& b = c.bytes;
  auto& first = c.make<BNNSLayerParametersFullyConnected>();
  auto& second = c.make<BNNSLayerParametersNormalization>();
  const size_t n = b.from(1, 20);
  fill(c, first, b.from(1, 20), n);
  BNNSFilterType types[] = {BNNSFullyConnected, static_cast<BNNSFilterType>(b.from(2, 5))};
  second.i_desc = second.o_desc = c.vector(n), second.beta_desc = second.gamma_desc = c.vector(n);
  second.momentum = 0.5f, second.epsilon = 1e-3f, second.num_groups = 1, second.activation = c.activation();
  c.add(second.i_desc, second.o_desc, second.beta_desc, second.gamma_desc, second.num_groups,
        second.normalization_axis);
  c.vary();
  c.give(first.w_desc), c.give(first.bias), c.give(second.beta_desc), c.give(second.gamma_desc);
  const void* layers[] = {&first, &second};
  const Filter filter(BNNSFilterCreateFusedLayer(2, types, layers, &c.options));
  if (!filter) return;
  const auto x = c.input(first.i_desc, c.batch), y = c.output(second.o_desc, c.batch);
  c.call("fused",
         [&] { return BNNSFusedFilterApplyBatch(filter, c.batch, x.data, x.stride, y.data, y.stride, b.chance(192)); });
  Array dx = first.i_desc, dy = second.o_desc;
  Array deltas[] = {first.w_desc, first.bias, second.beta_desc, second.gamma_desc};
  Array* parameters[] = {&deltas[0], &deltas[1], &deltas[2], &deltas[3]};
  c.add(dx, dy, deltas[0], deltas[1], deltas[2], deltas[3]);
  c.vary();
  size_t dx_stride = 0;
  const auto g = c.input(dy, c.batch);
  dy.data = g.data;
  c.give_delta(dx, c.batch, &dx_stride);
  for (Array& each : deltas) c.give_delta(each, 1, nullptr);
  c.call("fused backward", [&] {
    return BNNSFusedFilterApplyBackwardBatch(filter, c.batch, x.data, x.stride, &dx, dx_stride, y.data, y.stride, &dy,
                                             g.stride, parameters);
  });
}

void attention(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersMultiheadAttention>();
  const size_t length = b.from(1, 6), keys = b.from(1, 6), model = b.from(1, 6), heads = b.from(1, 3), d = b.from(1, 4);
  for (auto* each : {&p.query, &p.key, &p.value}) {
    each->target_desc = c.array(BNNSDataLayoutRowMajorMatrix, {model, each == &p.query ? length : keys});
    each->weights = c.array(BNNSDataLayoutMHA_DHK, {model, d, heads});
    each->bias = c.array(BNNSDataLayoutRowMajorMatrix, {d, heads});
    c.add(each->target_desc, each->weights, each->bias);
  }
  p.output.target_desc = c.array(BNNSDataLayoutRowMajorMatrix, {model, length});
  p.output.weights = c.array(BNNSDataLayoutRowMajorMatrix, {heads * d, model});
  p.output.bias = c.vector(model);
  p.add_zero_attn = b.chance(64);
  c.add(p.output.target_desc, p.output.weights, p.output.bias, p.dropout);
  c.vary();
  const size_t present = b.byte();
  BNNSMHAProjectionParameters* const all[] = {&p.query, &p.key, &p.value, &p.output};
  for (size_t k = 0; k < 4; ++k) {
    c.give(all[k]->weights);
    if (present >> k & 1) c.give(all[k]->bias);
  }
  const Filter filter(BNNSFilterCreateLayerMultiheadAttention(&p, &c.options));
  if (!filter) return;
  const auto q = c.input(p.query.target_desc, c.batch), k = c.input(p.key.target_desc, c.batch),
             v = c.input(p.value.target_desc, c.batch), y = c.output(p.output.target_desc, c.batch);
  c.call("attention", [&] {
    return BNNSApplyMultiheadAttention(filter, c.batch, q.data, q.stride, k.data, k.stride, nullptr, 0, v.data,
                                       v.stride, y.data, y.stride, nullptr, nullptr, nullptr, nullptr, nullptr);
  });
  BNNSMHAProjectionParameters delta[] = {p.query, p.key, p.value, p.output};
  for (auto& each : delta) c.add(each.weights, each.bias);
  c.vary();
  for (size_t n = 0; n < 4; ++n) {
    auto& target = delta[n].target_desc;
    const auto t = n < 3 ? c.output(target, c.batch) : c.input(target, c.batch);
    target.data = t.data, target.stride[2] = t.stride;  // from one sample to the next
    c.give_delta(delta[n].weights, 1, nullptr), c.give_delta(delta[n].bias, 1, nullptr);
    if ((present >> n & 1) == 0) delta[n].bias.data = nullptr;
  }
  c.call("attention backward", [&] {
    return BNNSApplyMultiheadAttentionBackward(filter, c.batch, q.data, q.stride, &delta[0], k.data, k.stride, nullptr,
                                               0, &delta[1], v.data, v.stride, &delta[2], nullptr, nullptr, nullptr,
                                               nullptr, 0, &delta[3], 0, nullptr, nullptr, nullptr);
  });
}

void lstm(Case& c) {
  auto& b = c.bytes;
  auto& p = c.make<BNNSLayerParametersLSTM>();
  const size_t in = b.from(1, 6), hidden = b.from(1, 6), n = b.from(1, 3), steps = b.from(1, 4);
  p.input_size = in, p.hidden_size = hidden, p.batch_size = n, p.num_layers = 1, p.seq_len = steps;
  p.lstm_flags = BNNSLayerFlagsLSTMDefaultActivations;
  p.input_descriptor.data_desc = c.array(BNNSDataLayoutSNE, {in, n, steps});
  p.output_descriptor.data_desc = c.array(BNNSDataLayoutSNE, {hidden, n, steps});
  BNNSLSTMGateDescriptor* const gates[] = {&p.input_gate, &p.forget_gate, &p.candidate_gate, &p.output_gate};
  for (auto* gate : gates) {
    gate->iw_desc[0] = c.array(BNNSDataLayoutRowMajorMatrix, {in, hidden});
    gate->hw_desc = c.array(BNNSDataLayoutRowMajorMatrix, {hidden, hidden});
    gate->b_desc = c.vector(hidden);
    c.add(gate->iw_desc[0], gate->hw_desc, gate->b_desc, gate->activation);
  }
  c.add(p.input_size, p.hidden_size, p.batch_size, p.num_layers, p.seq_len, p.dropout, p.input_descriptor.data_desc);
  c.add(p.output_descriptor.data_desc), c.add_word(p.lstm_flags);
  c.vary();
  c.give(p.input_descriptor.data_desc), c.give_delta(p.output_descriptor.data_desc, 1, nullptr);
  for (auto* gate : gates) c.give(gate->iw_desc[0]), c.give(gate->hw_desc), c.give(gate->b_desc);
  const size_t capacity = BNNSComputeLSTMTrainingCacheCapacity(&p);
  void* const cache = capacity != 0 && capacity < 1 << 16 ? c.output(capacity) : nullptr;
  if (cache == nullptr) return;
  c.call("lstm", [&] { return BNNSDirectApplyLSTMBatchTrainingCaching(&p, &c.options, cache, capacity); });
  BNNSLayerParametersLSTM delta = p;
  BNNSLSTMGateDescriptor* const written[] = {&delta.input_gate, &delta.forget_gate, &delta.candidate_gate,
                                             &delta.output_gate};
  c.give_delta(delta.input_descriptor.data_desc, 1, nullptr), c.give(delta.output_descriptor.data_desc);
  for (auto* gate : written) {
    c.give_delta(gate->iw_desc[0], 1, nullptr), c.give_delta(gate->hw_desc, 1, nullptr);
    c.give_delta(gate->b_desc, 1, nullptr);
  }
  c.call("lstm backward", [&] { return BNNSDirectApplyLSTMBatchBackward(&p, &delta, &c.options, cache, capacity); });
}

}  // namespace

const std::vector<Kind> kProducts = {fully_connected, matmul, contraction, fused, attention, lstm};

}  // namespace bnns::fuzz
