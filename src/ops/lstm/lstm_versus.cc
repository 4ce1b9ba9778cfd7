// One LSTM layer and its gradients beside PyTorch.

#include "bench/description.h"

namespace bnns::bench {
namespace {

constexpr const char* kGates[] = {"i", "f", "g", "o"};  // PyTorch's order: input, forget, candidate, output

// t= steps of n= sequences, in= features in, h= out. Arrays of the gates lie one after the other, as PyTorch wants
// them.
BNNSLayerParametersLSTM layer(Data& d, size_t t, size_t n, size_t in, size_t h, Type type, const std::string& prefix) {
  BNNSLayerParametersLSTM p;
  std::memset(static_cast<void*>(&p), 0, sizeof p);
  p.input_size = in, p.hidden_size = h, p.batch_size = n, p.num_layers = 1, p.seq_len = t;
  p.lstm_flags = BNNSLayerFlagsLSTMDefaultActivations;
  const auto part = [&](const std::string& name, size_t elements) {
    BNNSNDArrayDescriptor a;
    std::memset(&a, 0, sizeof a);
    a.data_type = kTypeCodes[int(type)];
    a.data = static_cast<char*>(d[prefix + name].data()) + elements * kTypeBytes[int(type)];
    return a;
  };
  p.input_descriptor.data_desc = part("x", 0), p.output_descriptor.data_desc = part("y", 0);
  BNNSLSTMGateDescriptor* const gates[] = {&p.input_gate, &p.forget_gate, &p.candidate_gate, &p.output_gate};
  for (size_t k = 0; k < std::size(kGates); ++k) {
    gates[k]->iw_desc[0] = part("wx", k * h * in), gates[k]->hw_desc = part("wh", k * h * h);
    gates[k]->b_desc = part("b", k * h);
  }
  return p;
}

Row make(const Description& d) {
  const size_t t = d("t"), n = d("n"), in = d("in"), h = d("h");
  const bool backward = is_backward(d);
  const Type type = d.type;
  Row r = start(d);
  r.operations = (backward ? 2 : 1) * 8.0 * double(t * n) * double(h) * double(in + h);
  r.bytes = double(kTypeBytes[int(type)]) * double(t * n * (in + h) + 4 * h * (in + h));
  r.fill = [=](Data& data) {
    for (const std::string& prefix : backward ? std::vector<std::string>{"", "d"} : std::vector<std::string>{""}) {
      data.add(prefix + "x", {t, n, in}, type).fill(), data.add(prefix + "y", {t, n, h}, type).fill(1, 9);
      data.add(prefix + "wx", {4 * h, in}, type).fill(0.1f, 3), data.add(prefix + "wh", {4 * h, h}, type).fill(0.1f, 5);
      data.add(prefix + "b", {4 * h}, type).fill(0.1f, 7);
    }
  };
  r.open = [=](Case& c, size_t threads) {
    auto caches = std::make_shared<std::map<const void*, std::vector<double>>>();
    const auto call = [=](Data& data) {
      const auto p = layer(data, t, n, in, h, type, "");
      const BNNSFilterParameters f = options(threads);
      if (!backward) return check(BNNSDirectApplyLSTMBatchTrainingCaching(&p, &f, nullptr, 0));
      const size_t bytes = BNNSComputeLSTMTrainingCacheCapacity(&p);
      std::vector<double>& cache = (*caches)[data["x"].data()];
      if (cache.empty()) {
        cache.resize(bytes / 8 + 1);
        check(BNNSDirectApplyLSTMBatchTrainingCaching(&p, &f, cache.data(), bytes));
      }
      const auto g = layer(data, t, n, in, h, type, "d");
      check(BNNSDirectApplyLSTMBatchBackward(&p, &g, &f, cache.data(), bytes));
    };
    c.contenders.push_back({"ours", call, backward ? "dx" : "y"});
  };
  return r;
}

}  // namespace

void add_lstm_rows() {
  makers()["lstm"] = make;
}

}  // namespace bnns::bench
