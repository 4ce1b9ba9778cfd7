// Packing of sparse weights for fully connected layers: coordinates or compressed rows in, the packed form of
// src/tensor/sparse_weights.h out.
#pragma once

#include <cstddef>
#include <string>

#include "bnns/bnns.h"
#include "src/core/memory.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct SparsifyProblem {
  const char* op = "sparsify";
  Tensor shape;            // of the dense matrix; its data is not looked at
  Tensor indices, values;  // COO: pairs in size order; CSR: columns
  Tensor starts;           // CSR only: outputs + 1
  size_t outputs = 0, inputs = 0;
  size_t output_axis = 1;  // size axis of the dense matrix that runs over outputs
  bool compressed_rows = false;

  std::string text() const;  // "sparsify_csr f32 i64 o128"
};

// Every check, indices included.
SparsifyProblem make_coo_problem(const BNNSNDArrayDescriptor* shape, const BNNSNDArrayDescriptor* indices,
                                 const BNNSNDArrayDescriptor* values);
SparsifyProblem make_csr_problem(const BNNSNDArrayDescriptor* shape, const BNNSNDArrayDescriptor* columns,
                                 const BNNSNDArrayDescriptor* starts, const BNNSNDArrayDescriptor* values);

// Packs into out->data, which holds at least the bytes of the dense matrix, or into new memory when it is NULL. Sets
// layout, sizes, type and data of out; a refusal leaves out and its memory as they were.
void sparsify(const SparsifyProblem& problem, BNNSNDArrayDescriptor* out, const Options& options);

}  // namespace bnns
