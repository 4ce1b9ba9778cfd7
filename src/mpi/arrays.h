// Arrays of callers as ranks exchange them: dense blocks.
#pragma once

#include <cstddef>
#include <vector>

#include "bnns/bnns_distributed.h"
#include "src/mpi/stream.h"

namespace bnns::mpi {

struct Bytes {
  void* data;
  BNNSDataType type;
  size_t count, bytes;
};

// Each throws Error for the first array that is none, has no data, is not dense, or has a type that is not offered.
std::vector<Bytes> bytes_of(size_t n, const BNNSNDArrayDescriptor* const* arrays);
std::vector<Values> values_of(size_t n, const BNNSNDArrayDescriptor* const* arrays);
Reduction reduction_of(BNNSExtGroupReduction reduction);

// All blocks one behind the other, and back.
void copy_in(const std::vector<Bytes>& blocks, char* to);
void copy_out(const char* from, const std::vector<Bytes>& blocks);

}  // namespace bnns::mpi
