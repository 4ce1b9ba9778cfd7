// Multi-head self-attention with its projections, and its gradients, beside PyTorch.

#include "bench/description.h"

namespace bnns::bench {
namespace {

// n= samples of l= positions, h= heads of d= columns.
Row make(const Description& d) {
  const size_t n = d("n"), l = d("l"), h = d("h"), columns = d("d"), model = h * columns;
  const bool backward = is_backward(d);
  const Type type = d.type;
  const std::vector<size_t> x{n, l, model}, w{model, model};
  Row r = start(d);
  r.operations = (backward ? 2 : 1) * double(n * l) * double(model) * (8.0 * double(model) + 4.0 * double(l));
  r.bytes = double(kTypeBytes[int(type)]) * double(2 * product(x) + 4 * product(w));
  r.fill = [=](Data& data) {
    data.add("x", x, type).fill();
    for (const char* name : {"wq", "wk", "wv", "wo"}) data.add(name, w, type).fill(0.05f, uint32_t(name[1]));
    data.add("y", x, type);
    if (!backward) return;
    data.add("dy", x, type).fill(1, 9), data.add("dx", x, type);
    for (const char* name : {"dwq", "dwk", "dwv", "dwo"}) data.add(name, w, type);
  };
  r.open = [=](Case& c, size_t threads) {
    struct Layer {
      Filter filter;
      std::vector<char> cache;
    };
    auto layers = std::make_shared<std::map<const void*, Layer>>();
    const auto parameters = [=](Data& data, const char* prefix) {
      BNNSLayerParametersMultiheadAttention p;
      std::memset(static_cast<void*>(&p), 0, sizeof p);
      BNNSMHAProjectionParameters* const parts[] = {&p.query, &p.key, &p.value, &p.output};
      for (size_t k = 0; k < 4; ++k) {
        const std::string name = std::string(prefix) + "w" + "qkvo"[k];
        parts[k]->target_desc = describe(BNNSDataLayout2DFirstMajor, {l, model}, type);
        parts[k]->weights = k < 3 ? describe(BNNSDataLayout3DLastMajor, {model, columns, h}, type, data[name].data())
                                  : describe(BNNSDataLayout2DFirstMajor, {model, model}, type, data[name].data());
      }
      return p;
    };
    const auto forward = [=](Data& data, size_t* bytes, void* cache) {
      const void* in = data["x"].data();
      check(BNNSApplyMultiheadAttention((*layers)[data["x"].data()].filter.get(), n, in, 0, in, 0, nullptr, 0, in, 0,
                                        data["y"].data(), 0, nullptr, bytes, cache, nullptr, nullptr));
    };
    const auto call = [=](Data& data) {
      Layer& layer = (*layers)[data["x"].data()];
      if (!layer.filter) {
        const auto p = parameters(data, "");
        const BNNSFilterParameters f = options(threads);
        layer.filter = own(BNNSFilterCreateLayerMultiheadAttention(&p, &f));
        if (backward) {
          size_t bytes = 0;
          forward(data, &bytes, nullptr);
          layer.cache.resize(bytes);
          forward(data, &bytes, layer.cache.data());
        }
      }
      if (!backward) return forward(data, nullptr, nullptr);
      auto g = parameters(data, "d");
      g.query.target_desc.data = g.key.target_desc.data = g.value.target_desc.data = data["dx"].data();
      g.output.target_desc.data = data["dy"].data();
      const void* in = data["x"].data();
      check(BNNSApplyMultiheadAttentionBackward(layer.filter.get(), n, in, 0, &g.query, in, 0, nullptr, 0, &g.key, in,
                                                0, &g.value, nullptr, nullptr, nullptr, nullptr, 0, &g.output,
                                                layer.cache.size(), layer.cache.data(), nullptr, nullptr));
    };
    c.contenders.push_back({"ours", call, backward ? "dx" : "y"});
  };
  return r;
}

}  // namespace

void add_attention_rows() {
  makers()["attention"] = make;
}

}  // namespace bnns::bench
