// Kernels against the references of their tests, with the tests' own bounds. A miss fails an EXPECT, which ends the
// process.
#pragma once

#include "fuzz/bytes.h"

namespace bnns::fuzz {

void convolution(Bytes& bytes);
void pooling(Bytes& bytes);
void fully_connected(Bytes& bytes);
void normalization(Bytes& bytes);

}  // namespace bnns::fuzz
