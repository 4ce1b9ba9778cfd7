// Gram matrix of features: G[f, c] = alpha * sum over i, j of x[i, j, f] x[i, j, c]. Logical indices: of an ImageCHW i
// and j are columns and rows, f and c are channels. Further leading indices are repeated. Backward:
// dx[i, j, f] = alpha * sum over c of (dG[f, c] + dG[c, f]) x[i, j, c].
// The layer is the self product "x_*ijf, x_*ijc -> g_*fc" of src/engine/product.
#pragma once

#include "src/engine/product/product.h"

namespace bnns {

// Every check of BNNSLayerParametersGram.
ProductProblem make_gram_problem(const BNNSLayerParametersGram* layer);

}  // namespace bnns
