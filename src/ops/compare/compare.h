// Compare: y = x0 op x1 element by element, as Boolean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/tensor/tensor.h"

namespace bnns {

struct CompareProblem {
  Tensor x0, x1, y;  // same sizes; x1 is x0 again for the one operator with one operand
  BNNSRelationalOperator op = BNNSRelationalOperatorEqual;
  bool exact_integers = false;  // both are integers of the same meaning: compared as such, without f32
  bool as_stored = false;       // integers of one type and meaning: what is stored is compared

  std::string text() const;
};

// Every check of BNNSCompareTensor.
CompareProblem make_compare_problem(const BNNSNDArrayDescriptor* in0, const BNNSNDArrayDescriptor* in1,
                                    BNNSRelationalOperator op, const BNNSNDArrayDescriptor* out);

void compare_tensors(const CompareProblem& problem);

// ---- kernels ----------------------------------------------------------------------------------------------------

// y[i] = a[i] op b[i], 0 or 1. NaN is unequal to everything and neither less nor greater; it counts as true in logic.
void compare_floats(BNNSRelationalOperator op, const float* a, const float* b, uint8_t* y, size_t n) noexcept;

}  // namespace bnns
