// Gather and scatter along an axis, and by index vectors, beside PyTorch.

#include "bench/description.h"
#include "bench/plain_loops.h"

namespace bnns::bench {
namespace {

constexpr const char* kNames[] = {"gather", "scatter_add", "scatter", "gather_nd", "scatter_nd"};

// A tensor outer x size x inner and count= indices into size. With index vectors of two: outer= is indexed too.
Row make(const Description& d) {
  const size_t op = find_name(kNames, d.op), outer = d("outer"), size = d("size"), inner = d("inner"),
               count = d("count");
  const bool vectors = op >= 3, to_table = op == 1 || op == 2 || op == 4;
  const Type type = d.type;
  const std::vector<size_t> table{outer, size, inner};
  const std::vector<size_t> picked =
      vectors ? std::vector<size_t>{count, inner} : std::vector<size_t>{outer, count, inner};
  Row r = start(d);
  r.bytes = double(kTypeBytes[int(type)]) * double(product(picked)) * (to_table ? 3 : 2) + 8.0 * double(count);
  r.fill = [=](Data& data) {
    const std::vector<size_t> shape = vectors ? std::vector<size_t>{count, 2} : std::vector<size_t>{count};
    data.add("index", shape, Type::u64);
    uint64_t state = 1;
    for (size_t k = 0; k < data["index"].count(); ++k) {
      state = state * 6364136223846793005 + 1442695040888963407;
      data["index"].as<uint64_t>()[k] = op == 2 ? k % size : (state >> 33) % (vectors && k % 2 == 0 ? outer : size);
    }
    data.add("x", to_table ? picked : table, type).fill();
    data.add("y", to_table ? table : picked, type), data.add("peer_y", to_table ? table : picked, type);
  };
  r.open = [=](Case& c, size_t threads) {
    const auto call = [=](Data& data) {
      const auto x = tensor(data["x"].shape(), type, data["x"].data());
      const auto index = tensor(data["index"].shape(), Type::u64, data["index"].data());
      auto y = tensor(data["y"].shape(), type, data["y"].data());
      const BNNSFilterParameters f = options(threads);
      if (op == 0) return check(BNNSGather(1, &x, &index, &y, &f));
      if (op == 3) return check(BNNSGatherND(&x, &index, &y, &f));
      if (op == 4) return check(BNNSScatterND(BNNSReduceFunctionSum, &x, &index, &y, &f));
      check(BNNSScatter(1, op == 1 ? BNNSReduceFunctionSum : BNNSReduceFunctionNone, &x, &index, &y, &f));
    };
    c.contenders.push_back({"ours", call, "y"});
    if (type != Type::f32) return;
    const auto loop = [=](Data& data) {
      const uint64_t* index = data["index"].as<uint64_t>();
      if (vectors)
        loops::index_vectors(size, inner, count, index, to_table, data["x"].as(), data["peer_y"].as());
      else if (to_table)
        loops::scatter(outer, size, inner, count, index, op == 1, data["x"].as(), data["peer_y"].as());
      else
        loops::gather(outer, size, inner, count, index, data["x"].as(), data["peer_y"].as());
    };
    c.contenders.push_back({"plain loop", loop, "peer_y"});
  };
  return r;
}

}  // namespace

void add_gather_rows() {
  makers()["gather"] = make;
}

}  // namespace bnns::bench
