// Band part: of every innermost matrix, what lies within a band of diagonals is kept, the rest is 0.
#pragma once

#include <cstddef>

#include "src/tensor/tensor.h"

namespace bnns {

struct BandPartProblem {
  Tensor x, y;                       // same layout, sizes and type; apart, or the same elements
  ptrdiff_t lower = -1, upper = -1;  // diagonals kept below and above the main one; negative: all
  std::string text() const;
};

// Every check of BNNSBandPart.
BandPartProblem make_band_part_problem(int lower, int upper, const BNNSNDArrayDescriptor* input,
                                       const BNNSNDArrayDescriptor* output);

void band_part(const BandPartProblem& problem, size_t n_threads);

}  // namespace bnns
