// BNNSTile, BNNSTileBackward.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/tile/tile.h"

int BNNSTile(const BNNSNDArrayDescriptor* input, BNNSNDArrayDescriptor* output,
             const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded_status("BNNSTile", [&] {
    const bnns::CallTimer timer("apply");
    const bnns::Options options = bnns::read_options(filter_params, "tile");
    const bnns::BatchPair problem = bnns::make_tile_problem(input, output);
    bnns::tile_forward(problem, options.n_threads);
    if (timer.active()) timer.finish("tile " + problem.from.text() + " to " + problem.to.text(), 1);
  });
}

int BNNSTileBackward(BNNSNDArrayDescriptor* in_delta, const BNNSNDArrayDescriptor* out_delta,
                     const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded_status("BNNSTileBackward", [&] {
    const bnns::CallTimer timer("backward");
    const bnns::Options options = bnns::read_options(filter_params, "tile");
    const bnns::BatchPair problem = bnns::make_tile_backward_problem(in_delta, out_delta);
    bnns::tile_backward(problem, options);
    if (timer.active()) timer.finish("tile " + problem.to.text() + " to " + problem.from.text(), 1);
  });
}
