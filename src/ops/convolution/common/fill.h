// Pixels that no tap reaches: padding or dilation leads all of them outside the source, or a phase of a stride has
// none.
#pragma once

#include "src/core/call_scratch.h"
#include "src/ops/convolution/common/problem.h"

namespace bnns {

bool accepts_fill(const PatchMap& p);
// act(bias), or zero, or nothing to add.
void run_fill(const PatchMap& p, CallScratch& scratch);
void fill_pixels(const PatchAxis& y, const PatchAxis& x, size_t batch, size_t channels, const ImageTarget& target,
                 size_t threads);

}  // namespace bnns
