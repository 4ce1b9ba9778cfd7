// Tile: y[o] = x[o mod extent of x] on every axis; dx sums the copies.
#pragma once

#include "src/core/memory.h"
#include "src/filter/batch_pair.h"

namespace bnns {

// Every check of BNNSTile: same rank and type, y.size[k] a multiple of x.size[k], memory apart.
BatchPair make_tile_problem(const BNNSNDArrayDescriptor* x, const BNNSNDArrayDescriptor* y);
void tile_forward(const BatchPair& problem, size_t n_threads);

// The same for BNNSTileBackward: from is dy, to is dx, both of float types.
BatchPair make_tile_backward_problem(const BNNSNDArrayDescriptor* dx, const BNNSNDArrayDescriptor* dy);
void tile_backward(const BatchPair& problem, const Options& options);

}  // namespace bnns
