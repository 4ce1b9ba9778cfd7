// Layers that multiply matrices.

#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

struct Full {
  const char* name;
  size_t batch, inputs, outputs;
  BNNSDataType type = BNNSDataTypeFloat32;
  BNNSActivationFunction activation = BNNSActivationFunctionIdentity;
  bool accumulate = false;
};

void add(Layers& layers, const Full& c) {
  auto owned = std::make_unique<Layer>(std::string("fully connected ") + c.name);
  Layer& layer = *owned;
  BNNSLayerParametersFullyConnected p = {};
  p.i_desc = vector_descriptor(c.inputs, nullptr, c.type);
  p.o_desc = vector_descriptor(c.outputs, nullptr, c.type);
  p.w_desc = row_major(c.inputs, c.outputs, layer.in(c.inputs * c.outputs, c.type), c.type);
  p.bias = vector_descriptor(c.outputs, layer.in(c.outputs, c.type), c.type);
  p.activation.function = c.activation;
  p.activation.alpha = 1;
  layer.create = [p](const FilterOptions* o) { return BNNSFilterCreateLayerFullyConnected(&p, o); };
  Plain plain{c.batch, c.inputs, c.outputs, c.type, p.i_desc, p.w_desc, p.bias};
  plain.dw.data = layer.out(c.inputs * c.outputs, c.type);
  plain.db.data = layer.out(c.outputs, c.type);
  if (c.accumulate) plain.dx.flags = plain.dw.flags = plain.db.flags = BNNSNDArrayFlagBackpropAccumulate;
  add_plain_calls(layer, plain);
  layers.push_back(std::move(owned));
}

// C (m x n) = A (m x k) B (k x n) for each of some matrices.
void add_matmul(Layers& layers, const char* name, size_t m, size_t n, size_t k, BNNSDataType type) {
  auto owned = std::make_unique<Layer>(std::string("matmul ") + name);
  Layer& layer = *owned;
  BNNSLayerParametersBroadcastMatMul p = {};
  p.alpha = 1;
  p.iA_desc = row_major(k, m, nullptr, type), p.iB_desc = row_major(n, k, nullptr, type);
  p.o_desc = row_major(n, m, nullptr, type);
  layer.create = [p](const FilterOptions* o) { return BNNSFilterCreateLayerBroadcastMatMul(&p, o); };
  constexpr size_t kBatch = 3;
  const void *a = layer.in(kBatch * m * k, type), *b = layer.in(kBatch * k * n, type);
  void* c = layer.out(kBatch * m * n, type);
  layer.call("forward", [=](BNNSFilter f, const FilterOptions*) {
    return BNNSFilterApplyTwoInputBatch(f, kBatch, a, m * k, b, k * n, c, m * n);
  });
  Array dc = p.o_desc, da = p.iA_desc, db = p.iB_desc;
  dc.data = layer.in(kBatch * m * n, type);
  da.data = layer.out(kBatch * m * k, type), db.data = layer.out(kBatch * k * n, type);
  layer.call("backward", [=](BNNSFilter f, const FilterOptions*) mutable {
    return BNNSFilterApplyBackwardTwoInputBatch(f, kBatch, a, m * k, &da, m * k, b, k * n, &db, k * n, c, m * n, &dc,
                                                m * n, nullptr, nullptr);
  });
  Array one_a = p.iA_desc, one_b = p.iB_desc, one_c = p.o_desc;
  one_a.data = const_cast<void*>(a), one_b.data = const_cast<void*>(b), one_c.data = c;
  layer.call("BNNSMatMul", [=](BNNSFilter, const FilterOptions* o) {
    return BNNSMatMul(false, false, 1, &one_a, &one_b, &one_c, nullptr, o);
  });
  layers.push_back(std::move(owned));
}

void add_gram_and_contraction(Layers& layers) {
  auto gram = std::make_unique<Layer>("gram");
  BNNSLayerParametersGram g = {};
  g.alpha = 1;
  g.i_desc = image(48, 12, 12), g.o_desc = descriptor(BNNSDataLayout2DFirstMajor, {48, 48}, nullptr);
  gram->create = [g](const FilterOptions* o) { return BNNSFilterCreateLayerGram(&g, o); };
  Plain plain{4, 48 * 144, 48 * 48};
  plain.dx = g.i_desc;
  add_plain_calls(*gram, plain);
  layers.push_back(std::move(gram));

  auto contraction = std::make_unique<Layer>("contraction");
  Layer& layer = *contraction;
  BNNSLayerParametersTensorContraction p = {};
  p.operation = "a_ik, b_kj -> c_ij";
  p.alpha = 1;
  p.iA_desc = descriptor(BNNSDataLayout2DFirstMajor, {60, 80}, nullptr);
  p.iB_desc = descriptor(BNNSDataLayout2DFirstMajor, {80, 70}, nullptr);
  p.o_desc = descriptor(BNNSDataLayout2DFirstMajor, {60, 70}, nullptr);
  layer.create = [p](const FilterOptions* o) { return BNNSFilterCreateLayerTensorContraction(&p, o); };
  const void *a = layer.in(60 * 80), *b = layer.in(80 * 70);
  void* c = layer.out(60 * 70);
  layer.call("forward", [=](BNNSFilter f, const FilterOptions*) { return BNNSFilterApplyTwoInput(f, a, b, c); });
  Array dc = p.o_desc, da = p.iA_desc, db = p.iB_desc;
  dc.data = layer.in(60 * 70), da.data = layer.out(60 * 80), db.data = layer.out(80 * 70);
  layer.call("backward", [=](BNNSFilter f, const FilterOptions*) mutable {
    return BNNSFilterApplyBackwardTwoInputBatch(f, 1, a, 0, &da, 0, b, 0, &db, 0, c, 0, &dc, 0, nullptr, nullptr);
  });
  layers.push_back(std::move(contraction));
}

void add_attention(Layers& layers) {
  auto owned = std::make_unique<Layer>("attention");
  Layer& layer = *owned;
  constexpr size_t T = 24, D = 32, H = 4, K = 8, kBatch = 2;
  auto p = std::make_shared<BNNSLayerParametersMultiheadAttention>();
  for (auto* projection : {&p->query, &p->key, &p->value}) {
    projection->target_desc = row_major(D, T);
    projection->weights = descriptor(BNNSDataLayoutMHA_DHK, {D, H, K}, layer.in(D * H * K));
    projection->bias = row_major(K, H, layer.in(H * K));
  }
  p->output.target_desc = row_major(D, T);
  p->output.weights = row_major(H * K, D, layer.in(D * H * K));
  p->output.bias = vector_descriptor(D, layer.in(D));
  layer.create = [p](const FilterOptions* o) { return BNNSFilterCreateLayerMultiheadAttention(p.get(), o); };
  const void *q = layer.in(kBatch * T * D), *k = layer.in(kBatch * T * D), *v = layer.in(kBatch * T * D);
  void* y = layer.out(kBatch * T * D);
  layer.call("forward", [=](BNNSFilter f, const FilterOptions*) {
    return BNNSApplyMultiheadAttention(f, kBatch, q, T * D, k, T * D, nullptr, 0, v, T * D, y, T * D, nullptr, nullptr,
                                       nullptr, nullptr, nullptr);
  });
  BNNSMHAProjectionParameters delta[4] = {p->query, p->key, p->value, p->output};
  for (size_t i = 0; i < 4; ++i) {
    delta[i].target_desc.data = i < 3 ? layer.out(kBatch * T * D) : layer.in(kBatch * T * D);
    delta[i].weights.data = layer.out(D * H * K);
    delta[i].bias.data = layer.out(i < 3 ? H * K : D);
  }
  std::vector<BNNSMHAProjectionParameters> deltas(delta, delta + 4);
  layer.call("backward", [=](BNNSFilter f, const FilterOptions*) mutable {
    auto& d = deltas;
    return BNNSApplyMultiheadAttentionBackward(f, kBatch, q, T * D, &d[0], k, T * D, nullptr, 0, &d[1], v, T * D, &d[2],
                                               nullptr, nullptr, nullptr, y, T * D, &d[3], 0, nullptr, nullptr,
                                               nullptr);
  });
  layers.push_back(std::move(owned));
}

void add_lstm(Layers& layers) {
  auto owned = std::make_unique<Layer>("lstm");
  Layer& layer = *owned;
  constexpr size_t E = 24, U = 32, N = 4, T = 6;
  auto p = std::make_shared<BNNSLayerParametersLSTM>(), d = std::make_shared<BNNSLayerParametersLSTM>();
  for (auto* l : {p.get(), d.get()}) {
    const bool delta = l == d.get();
    const auto given = [&](size_t n) { return delta ? layer.out(n) : layer.in(n); };  // read forward, written backward
    const auto made = [&](size_t n) { return delta ? layer.in(n) : layer.out(n); };
    l->input_size = E, l->hidden_size = U, l->batch_size = N, l->num_layers = 1, l->seq_len = T;
    l->lstm_flags = BNNSLayerFlagsLSTMDefaultActivations;
    l->input_descriptor.data_desc = descriptor(BNNSDataLayoutSNE, {E, N, T}, given(E * N * T));
    l->output_descriptor.data_desc = descriptor(BNNSDataLayoutSNE, {U, N, T}, made(U * N * T));
    for (auto* gate : {&l->input_gate, &l->forget_gate, &l->candidate_gate, &l->output_gate}) {
      gate->iw_desc[0] = row_major(E, U, given(E * U));
      gate->hw_desc = row_major(U, U, given(U * U));
      gate->b_desc = vector_descriptor(U, given(U));
    }
  }
  const size_t bytes = BNNSComputeLSTMTrainingCacheCapacity(p.get());
  void* cache = layer.block(bytes);  // not an output: it is the library's own
  layer.call("inference", [=](BNNSFilter, const FilterOptions* o) {
    return BNNSDirectApplyLSTMBatchTrainingCaching(p.get(), o, nullptr, 0);
  });
  layer.call("backward without a cache", [=](BNNSFilter, const FilterOptions* o) {
    return BNNSDirectApplyLSTMBatchBackward(p.get(), d.get(), o, nullptr, 0);
  });
  layer.call("training", [=](BNNSFilter, const FilterOptions* o) {
    return BNNSDirectApplyLSTMBatchTrainingCaching(p.get(), o, cache, bytes);
  });
  layer.call("backward", [=](BNNSFilter, const FilterOptions* o) {
    return BNNSDirectApplyLSTMBatchBackward(p.get(), d.get(), o, cache, bytes);
  });
  layers.push_back(std::move(owned));
}

}  // namespace

void add_products(Layers& layers) {
  constexpr auto f16 = BNNSDataTypeFloat16, bf16 = BNNSDataTypeBFloat16, f32 = BNNSDataTypeFloat32;
  const Full table[] = {
      {"f32", 64, 300, 200},
      {"f32 relu accumulate", 33, 200, 100, f32, BNNSActivationFunctionRectifiedLinear, true},
      {"f32 gelu", 32, 128, 96, f32, BNNSActivationFunctionGELUApproximation},
      {"f32 softmax", 32, 100, 10, f32, BNNSActivationFunctionSoftmax},
      {"one sample", 1, 784, 256},
      {"f16", 40, 200, 128, f16, BNNSActivationFunctionTanh},
      {"bf16", 64, 256, 128, bf16},
      {"bf16 gelu accumulate", 16, 200, 77, bf16, BNNSActivationFunctionGELUApproximation, true},
  };
  for (const Full& c : table) add(layers, c);
  add_matmul(layers, "f32", 70, 90, 110, f32);
  add_matmul(layers, "f16", 64, 64, 64, f16);
  add_matmul(layers, "bf16", 64, 96, 128, bf16);
  add_gram_and_contraction(layers);
  add_attention(layers);
  add_lstm(layers);
}

}  // namespace bnns::testing
