// Whether each element of a tensor has an address of its own.
//
// Strides may come in any order (K1), and those of what is only read may let elements share addresses: a sliding
// window is such a tensor. What is written must have one place for each element.
#pragma once

#include "src/tensor/tensor.h"

namespace bnns {

// Refuses a tensor of which two elements share an address, and names the two. Quick for every shape and stride.
void check_distinct(const Tensor& t, const char* op, const char* field);

}  // namespace bnns
