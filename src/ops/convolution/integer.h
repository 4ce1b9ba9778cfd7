// Convolution of integer data, forward only: for compatibility, so plain loops.
#pragma once

#include "src/core/call_scratch.h"
#include "src/ops/convolution/common/problem.h"

namespace bnns {

struct ConvolutionProblem;

// The layer, and its current weights and bias.
struct IntegerLayer {
  const ConvolutionProblem* problem = nullptr;
  const Tensor *w = nullptr, *b = nullptr;
};

void run_integer(const PatchMap& p, CallScratch& scratch);

}  // namespace bnns
