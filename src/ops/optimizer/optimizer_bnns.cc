// BNNSOptimizerStep.

#include <string>

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/optimizer/optimizer.h"

int BNNSOptimizerStep(BNNSOptimizerFunction function, const void* fields, size_t n, BNNSNDArrayDescriptor** parameters,
                      const BNNSNDArrayDescriptor** gradients, BNNSNDArrayDescriptor** accumulators,
                      const BNNSFilterParameters* filter_parameters) noexcept {
  return bnns::guarded_status("BNNSOptimizerStep", [&] {
    const bnns::CallTimer timer("apply");
    const bnns::Options options = bnns::read_options(filter_parameters, "optimizer");
    const bnns::OptimizerProblem problem = bnns::make_optimizer_problem(function, fields);
    bnns::optimizer_step(problem, n, parameters, gradients, accumulators, options);
    if (timer.active() && !timer.finish_again(problem.hash(n), 1)) {
      timer.finish("optimizer " + problem.text() + " tensors" + std::to_string(n), 1, nullptr, nullptr,
                   problem.hash(n));
    }
  });
}
