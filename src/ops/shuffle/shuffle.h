// Shuffle: blocks of r x r pixels move between space and channels, N C H W.
//
//   pixel shuffle    space[n, c, h r + i, w r + j] = deep[n, c r r + i r + j, h, w]
//   depth to space   space[n, c, h r + i, w r + j] = deep[n, (i r + j) C + c, h, w]
// and their inverses, which read space and write deep.
#pragma once

#include "src/engine/copy/copy.h"

namespace bnns {

// Every check of BNNSShuffle; the shuffle itself is a copy.
CopyProblem make_shuffle_problem(BNNSShuffleType type, const BNNSNDArrayDescriptor* input,
                                 const BNNSNDArrayDescriptor* output);

}  // namespace bnns
