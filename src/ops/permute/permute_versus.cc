// Permuted axes, and copies between types, beside PyTorch.

#include <algorithm>

#include "bench/description.h"
#include "bench/plain_loops.h"

namespace bnns::bench {
namespace {

// axes=: the decimal digits name the input axes in the order of the output, e.g. axes=1320 (a leading 0 is left away).
Row make_permute(const Description& d) {
  OneInput u{axes(d), {}, d.type, d("last", 0) != 0, is_backward(d)};
  const size_t rank = u.in.size();
  std::vector<size_t> order(rank);
  for (size_t k = rank, digits = d("axes"); k-- > 0; digits /= 10) order[k] = std::min(digits % 10, rank - 1);
  for (const size_t axis : order) u.out.push_back(u.in[axis]);
  const auto layer = [=](size_t threads) {
    BNNSLayerParametersPermute p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = tensor(u.in, u.type, nullptr, u.last), p.o_desc = tensor(u.out, u.type, nullptr, u.last);
    for (size_t k = 0; k < rank; ++k) p.permutation[axis_of(k, rank, u.last)] = axis_of(order[k], rank, u.last);
    const BNNSFilterParameters f = options(threads);
    return own(BNNSFilterCreateLayerPermute(&p, &f));
  };
  const Loop loop = [=](const float* from, float* to, Data&) { loops::permute(u.in, order, u.backward, from, to); };
  Row r = start(d);
  complete(r, u, layer, loop);
  if (u.backward) {
    r.open = [=](Case& c, size_t threads) {
      const Filter filter = layer(threads);
      const auto call = [=](Data& data) {
        auto dx = tensor(u.in, u.type, data["dx"].data(), u.last),
             dy = tensor(u.out, u.type, data["dy"].data(), u.last);
        check(BNNSPermuteFilterApplyBackwardBatch(filter.get(), 1, &dx, 0, &dy, 0));
      };
      c.contenders.push_back({"ours", call, "dx"});
      const auto plain = [=](Data& data) { loop(data["dy"].as(), data["peer_dx"].as(), data); };
      if (u.type == Type::f32) c.contenders.push_back({"plain loop", plain, "peer_dx"});
    };
  }
  return r;
}

// copy to_f16 forward f32 a=... : from the type of the description to that of the name. skip=1: rows of the source lie
// one element apart.
Row make_copy(const Description& d) {
  constexpr const char* ops[] = {"to_f32", "to_bf16", "to_f16"};
  const auto to = Type(find_name(ops, d.op));
  const std::vector<size_t> shape = axes(d);
  const size_t skip = d("skip", 0), columns = shape.back(), rows = product(shape) / columns;
  Row r = start(d);
  r.bytes = double(product(shape)) * double(kTypeBytes[int(d.type)] + kTypeBytes[int(to)]);
  r.fill = [=, type = d.type](Data& data) {
    data.add("x", {rows, columns + skip}, type).fill(2);
    data.add("y", {rows, columns}, to), data.add("peer_y", {rows, columns}, to);
  };
  r.open = [=, type = d.type](Case& c, size_t threads) {
    const auto call = [=](Data& data) {
      auto from = tensor({rows, columns}, type, data["x"].data()), dest = tensor({rows, columns}, to, data["y"].data());
      from.stride[0] = 1, from.stride[1] = columns + skip;
      const BNNSFilterParameters f = options(threads);
      check(BNNSCopy(&dest, &from, &f));
    };
    c.contenders.push_back({"ours", call, "y"});
  };
  return r;
}

}  // namespace

void add_permute_rows() {
  makers()["permute"] = make_permute;
  makers()["copy"] = make_copy;
}

}  // namespace bnns::bench
