// Batched products beside PyTorch.

#include "bench/description.h"
#include "bench/plain_loops.h"

namespace bnns::bench {
namespace {

// batch= products of m= x k= and k= x n=; ta=1, tb=1: the operand is stored transposed. share=1: one B for the batch.
Row make(const Description& d) {
  const size_t batch = d("batch", 1), m = d("m"), n = d("n"), k = d("k"), batch_b = d("share", 0) ? 1 : batch;
  const bool ta = d("ta", 0) != 0, tb = d("tb", 0) != 0;
  const Type type = d.type;
  const std::vector<size_t> a{batch, ta ? k : m, ta ? m : k}, b{batch_b, tb ? n : k, tb ? k : n}, c_shape{batch, m, n};
  Row r = start(d);
  r.operations = 2.0 * double(batch * m) * double(n * k);
  r.bytes = double(kTypeBytes[int(type)]) * double(product(a) + product(b) + product(c_shape));
  r.fill = [=](Data& data) {
    data.add("a", a, type).fill(), data.add("b", b, type).fill(1, 7);
    data.add("y", c_shape, type), data.add("peer_y", c_shape, type);
  };
  r.open = [=](Case& c, size_t threads) {
    const auto call = [=](Data& data) {
      const auto left = tensor(a, type, data["a"].data()), right = tensor(b, type, data["b"].data());
      const auto out = tensor(c_shape, type, data["y"].data());
      const BNNSFilterParameters f = options(threads);
      check(BNNSMatMul(ta, tb, 1, &left, &right, &out, nullptr, &f));
    };
    c.contenders.push_back({"ours", call, "y"});
    if (type != Type::f32) return;
    const auto loop = [=](Data& data) {
      for (size_t i = 0; i < batch; ++i) {
        loops::product(m, n, k, ta, tb, data["a"].as() + i * m * k, data["b"].as() + (batch_b == 1 ? 0 : i * n * k),
                       data["peer_y"].as() + i * m * n);
      }
    };
    c.contenders.push_back({"plain loop", loop, "peer_y"});
  };
  return r;
}

}  // namespace

void add_matmul_rows() {
  makers()["matmul"] = make;
}

}  // namespace bnns::bench
