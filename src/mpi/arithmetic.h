// Sums and maxima of what shards give, in the type that travels between ranks.
//
// Every node of the tree is a value of the wire type: where that has 16 bits, leaves and sums are rounded to it within
// a rank as between ranks, so that the bits do not depend on which nodes are a rank's own.
#pragma once

#include <cstddef>

#include "bnns/bnns.h"

namespace bnns::mpi {

// Float32, Float16 or BFloat16, in a buffer that travels.
struct WireType {
  BNNSDataType type = BNNSDataTypeFloat32;
  size_t bytes() const { return type == BNNSDataTypeFloat32 ? 4 : 2; }
};

enum class Combine : bool { sum, max };  // a maximum with a NaN is NaN

// out = a combined with b, a being the left operand; out may be a or b. Buffers of n values of the wire type.
void combine(WireType wire, Combine how, const void* a, const void* b, void* out, size_t n) noexcept;

// The leaf of shard `shard` of a rank, n values of `type` at x. levels[l] holds the left node of height l that waits
// for its right one. Adding a leaf is adding one to a binary counter: the trailing ones of `shard` say how many left
// nodes it completes, and the result goes to the level above them.
void add_leaf(WireType wire, Combine how, BNNSDataType type, const void* x, size_t n, void* const* levels,
              size_t shard) noexcept;

// n values of a sum, times `scale`, as values of `type`.
void write_result(WireType wire, const void* sum, float scale, BNNSDataType type, void* out, size_t n) noexcept;

}  // namespace bnns::mpi
