// Resizing of images beside PyTorch.

#include "bench/description.h"
#include "bench/plain_loops.h"

namespace bnns::bench {
namespace {

Row make(const Description& d) {
  constexpr const char* ops[] = {"nearest", "linear", "linear_corners"};
  const size_t op = find_name(ops, d.op);
  const OneInput u{
      {d("n"), d("c"), d("h"), d("w")}, {d("n"), d("c"), d("oh"), d("ow")}, d.type, d("last", 0) != 0, is_backward(d)};
  const auto layer = [=](size_t threads) {
    BNNSLayerParametersResize p;
    std::memset(&p, 0, sizeof p);
    p.method = op == 0 ? BNNSInterpolationMethodNearest : BNNSInterpolationMethodLinear;
    p.align_corners = op == 2;
    p.i_desc = tensor(u.in, u.type, nullptr, u.last), p.o_desc = tensor(u.out, u.type, nullptr, u.last);
    const BNNSFilterParameters f = options(threads);
    return own(BNNSFilterCreateLayerResize(&p, &f));
  };
  const Loop loop = [=](const float* from, float* to, Data&) {
    loops::resize(u.in, u.out, int(op), u.backward, from, to);
  };
  Row r = start(d);
  complete(r, u, layer, loop);
  return r;
}

}  // namespace

void add_resize_rows() {
  makers()["resize"] = make;
}

}  // namespace bnns::bench
