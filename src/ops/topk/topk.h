// The K largest values along an axis, and whether given indices are among them.
//
//   TopK    best_values: the K largest, descending, of equal values the lower index first; best_indices: where they are
//   InTopK  true if x[index] >= the K-th largest, so that all equals of that one are in
//
// Larger includes NaN: a NaN is before every number, as in the reductions. Zeros of both signs are equal.
#pragma once

#include <cstddef>
#include <string>

#include "src/core/memory.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct TopKProblem {
  const char* op = "topk";
  size_t k = 0;
  size_t axis = 0;  // size axis
  size_t batch = 0;
  Tensor x, values, indices;  // InTopK: values is the Boolean output, indices the ones to test
  size_t x_stride = 0, values_stride = 0, indices_stride = 0;
  bool want_indices = false;
  bool wide = false;  // integers of 32 and 64 bits, which are ordered as they are stored

  std::string text() const;  // "topk 5 of f32 1000 axis 0"
};

// Every check; for InTopK the test indices too, before anything is written.
TopKProblem make_topk_problem(size_t k, size_t axis, size_t batch, const BNNSNDArrayDescriptor* x, size_t x_stride,
                              const BNNSNDArrayDescriptor* values, size_t values_stride,
                              const BNNSNDArrayDescriptor* indices, size_t indices_stride);
TopKProblem make_in_topk_problem(size_t k, size_t axis, size_t batch, const BNNSNDArrayDescriptor* x, size_t x_stride,
                                 const BNNSNDArrayDescriptor* test, size_t test_stride,
                                 const BNNSNDArrayDescriptor* output, size_t output_stride);

void run_topk(const TopKProblem& problem, const Options& options);
void run_in_topk(const TopKProblem& problem, const Options& options);

}  // namespace bnns
