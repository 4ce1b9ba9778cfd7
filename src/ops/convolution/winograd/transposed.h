// An up map by the transpose of Winograd's algorithm, from the side of the small image:
//
//   large tiles (6x6, which overlap) of channel l = B [ sum over s of U(s, l) * Z(s) ] B',  U = G g G',  Z = A y A'
//
// For kernels whose large image is a good deal larger than the small one (no padding, or a stride of 2, whose four
// phases are channels of their own as in convolution/winograd/winograd.h), where tiles of the large image would meet
// many zeros.
//
// A task is a band of rows of tiles of a sample, or a piece of it, or whole samples, for all target channels or a part
// of them. Rows of tiles are taken from top to bottom and what two of them share is added in this order. A band begins
// with the rows above that its own share pixels with, so that the bits of a pixel do not depend on the cut, which
// follows from the number of threads. The tiles end where the small image ends; the first is cut instead.
#pragma once

#include <cstddef>

#include "src/core/call_scratch.h"
#include "src/ops/convolution/winograd/winograd.h"

namespace bnns {

bool accepts_winograd_transposed(const PatchMap& p);
void run_winograd_transposed(const PatchMap& p, CallScratch& scratch);

}  // namespace bnns
