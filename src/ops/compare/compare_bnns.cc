// BNNSCompareTensor.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/compare/compare.h"

int BNNSCompareTensor(const BNNSNDArrayDescriptor* in0, const BNNSNDArrayDescriptor* in1, BNNSRelationalOperator op,
                      BNNSNDArrayDescriptor* out) noexcept {
  return bnns::guarded_status("BNNSCompareTensor", [&] {
    const bnns::CallTimer timer("apply");
    const bnns::CompareProblem problem = bnns::make_compare_problem(in0, in1, op, out);
    bnns::compare_tensors(problem);
    if (timer.active()) timer.finish(problem.text(), 1);
  });
}
