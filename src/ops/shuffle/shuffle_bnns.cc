// BNNSShuffle.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/memory.h"
#include "src/ops/shuffle/shuffle.h"

int BNNSShuffle(const BNNSShuffleType type, const BNNSNDArrayDescriptor* input, BNNSNDArrayDescriptor* output,
                const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded_status("BNNSShuffle", [&] {
    const bnns::CallTimer timer("apply");
    const bnns::Options options = bnns::read_options(filter_params, "shuffle");
    const bnns::CopyProblem problem = bnns::make_shuffle_problem(type, input, output);
    bnns::copy_tensor(problem, options.n_threads);
    if (timer.active()) {
      bnns::count_work(bnns::product_of(problem.from.span_bytes() + problem.to.span_bytes()));
      timer.finish(problem.text("shuffle"), 1);
    }
  });
}
