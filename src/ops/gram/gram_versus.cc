// Gram matrices and their gradient beside PyTorch.

#include "bench/description.h"
#include "bench/plain_loops.h"

namespace bnns::bench {
namespace {

Row make(const Description& d) {
  const size_t channels = d("c"), h = d("h"), w = d("w");
  OneInput u{{channels, h, w}, {channels, channels}, d.type, true, is_backward(d)};
  const auto layer = [=](size_t threads) {
    BNNSLayerParametersGram p;
    std::memset(&p, 0, sizeof p);
    p.alpha = 1;
    p.i_desc = tensor(u.in, u.type, nullptr, true), p.o_desc = tensor(u.out, u.type, nullptr, true);
    const BNNSFilterParameters f = options(threads);
    return own(BNNSFilterCreateLayerGram(&p, &f));
  };
  const Loop loop = [=](const float* from, float* to, Data&) {
    loops::product(channels, channels, h * w, false, true, from, from, to);
  };
  Row r = start(d);
  complete(r, u, layer, u.backward ? Loop() : loop);
  r.operations = 2.0 * double(channels * channels) * double(h * w);
  return r;
}

}  // namespace

void add_gram_rows() {
  makers()["gram"] = make;
}

}  // namespace bnns::bench
