// Padding of any axes beside PyTorch.

#include "bench/description.h"
#include "bench/plain_loops.h"

namespace bnns::bench {
namespace {

constexpr const char* kNames[] = {"constant", "reflect", "symmetric"};

// pa=, pb=, ...: elements before and after the axes a=, b=, ...; qa=, ...: after, where it is another number.
Row make(const Description& d) {
  OneInput u{axes(d), axes(d), d.type, d("last", 0) != 0, is_backward(d)};
  std::vector<size_t> before(u.in.size()), after(u.in.size());
  for (size_t k = 0; k < u.in.size(); ++k) {
    const char p[] = {'p', char('a' + k), 0}, q[] = {'q', char('a' + k), 0};
    before[k] = d(p, 0), after[k] = d(q, before[k]);
    u.out[k] += before[k] + after[k];
  }
  const auto mode = BNNSPaddingMode(find_name(kNames, d.op));
  const auto layer = [=](size_t threads) {
    BNNSLayerParametersPadding p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = tensor(u.in, u.type, nullptr, u.last), p.o_desc = tensor(u.out, u.type, nullptr, u.last);
    for (size_t k = 0; k < u.in.size(); ++k) {
      const size_t at = axis_of(k, u.in.size(), u.last);
      p.padding_size[at][0] = before[k], p.padding_size[at][1] = after[k];
    }
    p.padding_mode = mode;
    const BNNSFilterParameters f = options(threads);
    return own(BNNSFilterCreateLayerPadding(&p, &f));
  };
  const Loop loop = [=](const float* from, float* to, Data&) {
    loops::padding(u.in, u.out, before, int(mode), u.backward, from, to);
  };
  Row r = start(d);
  complete(r, u, layer, loop);
  return r;
}

}  // namespace

void add_padding_rows() {
  makers()["padding"] = make;
}

}  // namespace bnns::bench
