// Repeated tensors and their gradient beside PyTorch.

#include "bench/description.h"
#include "bench/plain_loops.h"

namespace bnns::bench {
namespace {

// ra=, rb=, ...: how often along the axes a=, b=, ...
Row make(const Description& d) {
  const std::vector<size_t> in = axes(d);
  std::vector<size_t> out = in;
  for (size_t k = 0; k < in.size(); ++k) {
    const char name[] = {'r', char('a' + k), 0};
    out[k] *= d(name, 1);
  }
  const bool backward = is_backward(d);
  const Type type = d.type;
  Row r = start(d);
  r.bytes = double(kTypeBytes[int(type)]) * double(product(in) + product(out));
  r.fill = [=](Data& data) {
    data.add("x", in, type).fill();
    data.add("y", out, type).fill(1, 9);  // backward: the upstream gradient
    if (backward) data.add("dx", in, type);
    data.add(backward ? "peer_dx" : "peer_y", backward ? in : out, type);
  };
  r.open = [=](Case& c, size_t threads) {
    const auto call = [=](Data& data) {
      const BNNSFilterParameters f = options(threads);
      auto y = tensor(out, type, data["y"].data()), x = tensor(in, type, data[backward ? "dx" : "x"].data());
      check(backward ? BNNSTileBackward(&x, &y, &f) : BNNSTile(&x, &y, &f));
    };
    c.contenders.push_back({"ours", call, backward ? "dx" : "y"});
    if (type != Type::f32) return;
    const auto loop = [=](Data& data) {
      loops::tile(in, out, backward, data[backward ? "y" : "x"].as(), data[backward ? "peer_dx" : "peer_y"].as());
    };
    c.contenders.push_back({"plain loop", loop, backward ? "peer_dx" : "peer_y"});
  };
  return r;
}

}  // namespace

void add_tile_rows() {
  makers()["tile"] = make;
}

}  // namespace bnns::bench
