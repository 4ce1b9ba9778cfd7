// BNNSNDArrayFullyConnectedSparsifySparseCOO and ...CSR. The sparsity parameters, the batch size and the workspace are
// hints that the packed form does not need.

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/sparse/sparse.h"

int BNNSNDArrayFullyConnectedSparsifySparseCOO(const BNNSNDArrayDescriptor* in_dense_shape,
                                               const BNNSNDArrayDescriptor* in_indices,
                                               const BNNSNDArrayDescriptor* in_values, BNNSNDArrayDescriptor* out,
                                               const BNNSSparsityParameters*, size_t, void*, size_t,
                                               const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded_status("BNNSNDArrayFullyConnectedSparsifySparseCOO", [&] {
    const bnns::CallTimer timer("apply");
    const bnns::Options options = bnns::read_options(filter_params, "sparsify_coo");
    const bnns::SparsifyProblem problem = bnns::make_coo_problem(in_dense_shape, in_indices, in_values);
    bnns::sparsify(problem, out, options);
    if (timer.active()) timer.finish(problem.text(), 1);
  });
}

int BNNSNDArrayFullyConnectedSparsifySparseCSR(const BNNSNDArrayDescriptor* in_dense_shape,
                                               const BNNSNDArrayDescriptor* in_column_indices,
                                               const BNNSNDArrayDescriptor* in_row_starts,
                                               const BNNSNDArrayDescriptor* in_values, BNNSNDArrayDescriptor* out,
                                               const BNNSSparsityParameters*, size_t, void*, size_t,
                                               const BNNSFilterParameters* filter_params) noexcept {
  return bnns::guarded_status("BNNSNDArrayFullyConnectedSparsifySparseCSR", [&] {
    const bnns::CallTimer timer("apply");
    const bnns::Options options = bnns::read_options(filter_params, "sparsify_csr");
    const bnns::SparsifyProblem problem =
        bnns::make_csr_problem(in_dense_shape, in_column_indices, in_row_starts, in_values);
    bnns::sparsify(problem, out, options);
    if (timer.active()) timer.finish(problem.text(), 1);
  });
}
