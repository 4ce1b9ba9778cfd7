// BNNSGather, BNNSScatter, BNNSGatherND, BNNSScatterND.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/gather/gather.h"

namespace {

using bnns::GatherAction;
using bnns::GatherProblem;

template <class Make>
int run(const char* function, const char* op, const BNNSFilterParameters* filter_params, Make&& make) noexcept {
  return bnns::guarded_status(function, [&] {
    const bnns::CallTimer timer("apply");
    const bnns::Options options = bnns::read_options(filter_params, op);
    const GatherProblem problem = make();
    bnns::run_gather(problem, options.n_threads);
    if (timer.active()) timer.finish(problem.text(), 1);
  });
}

}  // namespace

int BNNSGather(size_t axis, const BNNSNDArrayDescriptor* input, const BNNSNDArrayDescriptor* indices,
               BNNSNDArrayDescriptor* output, const BNNSFilterParameters* filter_params) noexcept {
  return run("BNNSGather", "gather", filter_params,
             [&] { return bnns::make_gather_problem(GatherAction::gather, axis, input, indices, output); });
}

int BNNSScatter(size_t axis, BNNSReduceFunction op, const BNNSNDArrayDescriptor* input,
                const BNNSNDArrayDescriptor* indices, BNNSNDArrayDescriptor* output,
                const BNNSFilterParameters* filter_params) noexcept {
  return run("BNNSScatter", "scatter", filter_params, [&] {
    return bnns::make_gather_problem(bnns::scatter_action(op, "scatter"), axis, input, indices, output);
  });
}

int BNNSGatherND(const BNNSNDArrayDescriptor* input, const BNNSNDArrayDescriptor* indices,
                 BNNSNDArrayDescriptor* output, const BNNSFilterParameters* filter_params) noexcept {
  return run("BNNSGatherND", "gather_nd", filter_params,
             [&] { return bnns::make_gather_nd_problem(GatherAction::gather, input, indices, output); });
}

int BNNSScatterND(BNNSReduceFunction op, const BNNSNDArrayDescriptor* input, const BNNSNDArrayDescriptor* indices,
                  BNNSNDArrayDescriptor* output, const BNNSFilterParameters* filter_params) noexcept {
  return run("BNNSScatterND", "scatter_nd", filter_params, [&] {
    return bnns::make_gather_nd_problem(bnns::scatter_action(op, "scatter_nd"), input, indices, output);
  });
}
