// Up over a stride (dX, or forward of a transposed layer): one patch map for each residue of the target coordinates.
#pragma once

#include "src/core/call_scratch.h"
#include "src/ops/convolution/common/problem.h"

namespace bnns {

void run_strided(const PatchMap& p, CallScratch& scratch);

}  // namespace bnns
