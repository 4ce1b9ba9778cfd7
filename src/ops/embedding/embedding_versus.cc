// Table lookup and its gradient beside PyTorch.

#include "bench/description.h"
#include "bench/plain_loops.h"

namespace bnns::bench {
namespace {

Row make(const Description& d) {
  const size_t items = d("rows"), columns = d("columns"), count = d("count");
  const bool backward = is_backward(d);
  const Type type = d.type;
  Row r = start(d);
  r.bytes =
      double(kTypeBytes[int(type)]) * double((backward ? items + count : 2 * count) * columns) + 8.0 * double(count);
  r.fill = [=](Data& data) {
    data.add("index", {count}, Type::u64);
    uint64_t state = 1;
    for (size_t k = 0; k < count; ++k) {
      state = state * 6364136223846793005 + 1442695040888963407;
      data["index"].as<uint64_t>()[k] = (state >> 33) % items;
    }
    data.add("w", {items, columns}, type).fill();
    data.add("y", {count, columns}, type).fill(1, 9);  // backward: the upstream gradient
    if (backward)
      data.add("dw", {items, columns}, type), data.add("peer_dw", {items, columns}, type);
    else
      data.add("peer_y", {count, columns}, type);
  };
  r.open = [=](Case& c, size_t threads) {
    auto filters = std::make_shared<std::map<const void*, Filter>>();
    const auto call = [=](Data& data) {
      Filter& filter = (*filters)[data["w"].data()];
      if (!filter) {
        BNNSLayerParametersEmbedding p;
        std::memset(&p, 0, sizeof p);
        p.i_desc = describe(BNNSDataLayoutVector, {count}, Type::u64);
        p.o_desc = describe(BNNSDataLayout2DLastMajor, {columns, count}, type);
        p.dictionary = describe(BNNSDataLayout2DLastMajor, {columns, items}, type, data["w"].data());
        p.padding_idx = SIZE_MAX;
        const BNNSFilterParameters f = options(threads);
        filter = own(BNNSFilterCreateLayerEmbedding(&p, &f));
      }
      if (!backward) return check(BNNSFilterApplyBatch(filter.get(), 1, data["index"].data(), 0, data["y"].data(), 0));
      auto dy = describe(BNNSDataLayout2DLastMajor, {columns, count}, type, data["y"].data());
      auto dw = describe(BNNSDataLayout2DLastMajor, {columns, items}, type, data["dw"].data());
      check(BNNSFilterApplyBackwardBatch(filter.get(), 1, data["index"].data(), 0, nullptr, 0, nullptr, 0, &dy, 0, &dw,
                                         nullptr));
    };
    c.contenders.push_back({"ours", call, backward ? "dw" : "y"});
    if (type != Type::f32) return;
    const auto loop = [=](Data& data) {
      const uint64_t* index = data["index"].as<uint64_t>();
      if (backward)
        loops::embedding_gradient(items, columns, count, index, data["y"].as(), data["peer_dw"].as());
      else
        loops::gather(1, items, columns, count, index, data["w"].as(), data["peer_y"].as());
    };
    c.contenders.push_back({"plain loop", loop, backward ? "peer_dw" : "peer_y"});
  };
  return r;
}

}  // namespace

void add_embedding_rows() {
  makers()["embedding"] = make;
}

}  // namespace bnns::bench
