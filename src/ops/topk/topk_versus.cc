// The K largest of each row or column beside PyTorch.

#include "bench/description.h"
#include "bench/plain_loops.h"

namespace bnns::bench {
namespace {

// a=, b=: a matrix; axis=: along which axis of it.
Row make(const Description& d) {
  const std::vector<size_t> in{d("a"), d("b")};
  const size_t axis = d("axis", 1), k = d("k");
  std::vector<size_t> out = in;
  out.at(axis) = k;
  const Type type = d.type;
  Row r = start(d);
  r.bytes = double(kTypeBytes[int(type)]) * double(product(in) + product(out)) + 8.0 * double(product(out));
  r.fill = [=](Data& data) {
    data.add("x", in, type).fill();
    data.add("y", out, type), data.add("peer_y", out, type);
    data.add("index", out, Type::u64), data.add("peer_index", out, Type::u64);
  };
  r.open = [=](Case& c, size_t threads) {
    const auto call = [=](Data& data) {
      const auto x = tensor(in, type, data["x"].data());
      auto y = tensor(out, type, data["y"].data()), index = tensor(out, Type::u64, data["index"].data());
      const BNNSFilterParameters f = options(threads);
      check(BNNSDirectApplyTopK(k, axis, 1, &x, 0, &y, 0, &index, 0, &f));
    };
    c.contenders.push_back({"ours", call, "y"});
    if (type != Type::f32) return;
    const size_t lines = in[1 - axis], count = in[axis];
    const auto loop = [=](Data& data) {
      loops::topk(lines, count, k, axis == 1, data["x"].as(), data["peer_y"].as(), data["peer_index"].as<uint64_t>());
    };
    c.contenders.push_back({"plain loop", loop, "peer_y"});
  };
  return r;
}

}  // namespace

void add_topk_rows() {
  makers()["topk"] = make;
}

}  // namespace bnns::bench
