// BNNSCopy and BNNSTranspose: copies between tensors of one logical shape, and the swap of two axes.
#pragma once

#include <cstddef>

#include "bnns/bnns.h"
#include "src/engine/copy/copy.h"

namespace bnns {

// Every check. swap0 and swap1 are the size axes of src that change places; equal for a plain copy.
CopyProblem make_copy_problem(const BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src, size_t swap0,
                              size_t swap1, const char* op);

}  // namespace bnns
