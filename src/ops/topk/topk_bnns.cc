// BNNSDirectApplyTopK and BNNSDirectApplyInTopK.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/topk/topk.h"

int BNNSDirectApplyTopK(size_t K, size_t axis, size_t batch_size, const BNNSNDArrayDescriptor* input,
                        size_t input_batch_stride, BNNSNDArrayDescriptor* best_values, size_t best_values_batch_stride,
                        BNNSNDArrayDescriptor* best_indices, size_t best_indices_batch_stride,
                        const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded_status("BNNSDirectApplyTopK", [&] {
    const bnns::CallTimer timer("apply");
    const bnns::Options options = bnns::read_options(filter_params, "topk");
    const bnns::TopKProblem problem =
        bnns::make_topk_problem(K, axis, batch_size, input, input_batch_stride, best_values, best_values_batch_stride,
                                best_indices, best_indices_batch_stride);
    if (batch_size) bnns::run_topk(problem, options);
    if (timer.active()) timer.finish(problem.text(), batch_size);
  });
}

int BNNSDirectApplyInTopK(size_t K, size_t axis, size_t batch_size, const BNNSNDArrayDescriptor* input,
                          size_t input_batch_stride, const BNNSNDArrayDescriptor* test_indices,
                          size_t test_indices_batch_stride, BNNSNDArrayDescriptor* output, size_t output_batch_stride,
                          const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded_status("BNNSDirectApplyInTopK", [&] {
    const bnns::CallTimer timer("apply");
    const bnns::Options options = bnns::read_options(filter_params, "in_topk");
    const bnns::TopKProblem problem =
        bnns::make_in_topk_problem(K, axis, batch_size, input, input_batch_stride, test_indices,
                                   test_indices_batch_stride, output, output_batch_stride);
    if (batch_size) bnns::run_in_topk(problem, options);
    if (timer.active()) timer.finish(problem.text(), batch_size);
  });
}
