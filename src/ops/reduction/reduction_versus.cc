// Reductions over any axes of a tensor, forward and backward, beside PyTorch.

#include "bench/description.h"
#include "bench/plain_loops.h"

namespace bnns::bench {
namespace {

constexpr const char* kNames[] = {"sum", "mean", "max",         "min",     "sum_square",
                                  "l1",  "l2",   "log_sum_exp", "product", "argmax"};
constexpr BNNSReduceFunction kFunctions[] = {
    BNNSReduceFunctionSum,       BNNSReduceFunctionMean,   BNNSReduceFunctionMax,    BNNSReduceFunctionMin,
    BNNSReduceFunctionSumSquare, BNNSReduceFunctionL1Norm, BNNSReduceFunctionL2Norm, BNNSReduceFunctionLogSumExp,
    BNNSReduceFunctionProduct,   BNNSReduceFunctionArgMax};

// mask=: bit k for the reduced axis k of a=, b=, c=, ...
Row make(const Description& d) {
  const size_t function = find_name(kNames, d.op), mask = d("mask");
  OneInput u{axes(d), axes(d), d.type, d("last", 0) != 0, is_backward(d)};
  for (size_t k = 0; k < u.out.size(); ++k) {
    if (mask >> k & 1) u.out[k] = 1;
  }
  const auto layer = [=](size_t threads) {
    BNNSLayerParametersReduction p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = tensor(u.in, u.type, nullptr, u.last), p.o_desc = tensor(u.out, u.type, nullptr, u.last);
    p.reduce_func = kFunctions[function];
    const BNNSFilterParameters f = options(threads);
    return own(BNNSFilterCreateLayerReduction(&p, &f));
  };
  const Loop loop = [=](const float* from, float* to, Data&) {
    if (u.backward)
      loops::reduction_gradient(u.in, mask, d.op.c_str(), from, to);
    else
      loops::reduction(u.in, mask, d.op.c_str(), from, to);
  };
  const bool simple = d.op == "sum" || d.op == "mean" || (d.op == "max" && !u.backward);
  Row r = start(d);
  complete(r, u, layer, simple ? loop : Loop());
  return r;
}

}  // namespace

void add_reduction_rows() {
  makers()["reduction"] = make;
}

}  // namespace bnns::bench
