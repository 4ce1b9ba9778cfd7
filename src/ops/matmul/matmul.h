// Broadcast matrix product: C = beta C + alpha op(A) op(B) over the last two logical indices; the leading ones are
// matched from the back, and missing ones or those of extent 1 are repeated. The layer is a ProductFilter
// (src/engine/product), as are its gradients.
#pragma once

#include "src/engine/product/product.h"

namespace bnns {

// Every check of BNNSLayerParametersBroadcastMatMul.
ProductProblem make_matmul_problem(const BNNSLayerParametersBroadcastMatMul* layer);

// The direct calls: two tensors, no batch, nothing kept.
ProductProblem make_direct_matmul_problem(bool trans_a, bool trans_b, float alpha, const BNNSNDArrayDescriptor* a,
                                          const BNNSNDArrayDescriptor* b, const BNNSNDArrayDescriptor* c);

}  // namespace bnns
