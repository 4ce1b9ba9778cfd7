// BNNSCopy, BNNSTranspose.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/memory.h"
#include "src/ops/copy/copy.h"

namespace {

void run(const char* name, BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src, size_t axis0, size_t axis1,
         const BNNSFilterParameters* filter_params) {
  const bnns::CallTimer timer("apply");
  const bnns::Options options = bnns::read_options(filter_params, name);
  const bnns::CopyProblem problem = bnns::make_copy_problem(dest, src, axis0, axis1, name);
  bnns::copy_tensor(problem, options.n_threads);
  if (timer.active()) bnns::count_work(bnns::product_of(problem.from.span_bytes() + problem.to.span_bytes()));
  if (timer.active()) timer.finish(problem.text(name), 1);
}

}  // namespace

int BNNSCopy(BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src,
             const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded_status("BNNSCopy", [&] { run("copy", dest, src, 0, 0, filter_params); });
}

int BNNSTranspose(BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src, size_t axis0, size_t axis1,
                  const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded_status("BNNSTranspose", [&] { run("transpose", dest, src, axis0, axis1, filter_params); });
}
