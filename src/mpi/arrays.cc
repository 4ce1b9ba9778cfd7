#include "src/mpi/arrays.h"

#include <cstring>

#include "src/core/error.h"

namespace bnns::mpi {
namespace {

size_t element_bits(BNNSDataType type) {
  return static_cast<uint32_t>(type) & 0xffu;  // the width is the lowest byte of a type's number
}

Bytes dense_block(size_t i, const BNNSNDArrayDescriptor* d) {
  if (!d) fail_invalid("group: arrays[%zu] is NULL, expected a descriptor", i);
  if (!d->data) fail_invalid("group: arrays[%zu]->data is NULL, expected the elements", i);
  const size_t bits = element_bits(d->data_type), rank = BNNSDataLayoutGetRank(d->layout);
  if (rank > BNNS_MAX_TENSOR_DIMENSION) {
    fail_invalid("group: arrays[%zu]->layout is %#x, which has no axes that are known", i,
                 static_cast<unsigned>(d->layout));
  }
  if (bits == 0 || bits % 8 != 0) {
    fail_invalid("group: arrays[%zu]->data_type is %#x, expected one of whole bytes", i,
                 static_cast<unsigned>(d->data_type));
  }
  size_t count = 1;
  for (size_t k = 0; k < rank; ++k) {
    if (d->size[k] == 0 || d->size[k] > SIZE_MAX / 16 / count) {
      fail_invalid("group: arrays[%zu]->size[%zu] is %zu, expected 1 or more, and an array that fits memory", i, k,
                   d->size[k]);
    }
    count *= d->size[k];
  }
  // Elements that fill their span have no gaps, whatever the order of their axes.
  const size_t bytes = count * (bits / 8), span = BNNSNDArrayGetDataSize(d);
  if (span != bytes) {
    fail_invalid("group: arrays[%zu] spans %zu bytes, expected %zu: it must be dense", i, span, bytes);
  }
  return {d->data, d->data_type, count, bytes};
}

void check_list(size_t n, const void* arrays) {
  if (n != 0 && !arrays) fail_invalid("group: arrays is NULL, expected %zu descriptors", n);
}

}  // namespace

std::vector<Bytes> bytes_of(size_t n, const BNNSNDArrayDescriptor* const* arrays) {
  check_list(n, arrays);
  std::vector<Bytes> all;
  for (size_t i = 0; i < n; ++i) all.push_back(dense_block(i, arrays[i]));
  return all;
}

std::vector<Values> values_of(size_t n, const BNNSNDArrayDescriptor* const* arrays) {
  check_list(n, arrays);
  std::vector<Values> all;
  for (size_t i = 0; i < n; ++i) {
    const Bytes block = dense_block(i, arrays[i]);
    if (block.type != BNNSDataTypeFloat32 && block.type != BNNSDataTypeFloat16 && block.type != BNNSDataTypeBFloat16) {
      fail_invalid("group: arrays[%zu]->data_type is %#x, expected Float32, Float16 or BFloat16", i,
                   static_cast<unsigned>(block.type));
    }
    all.push_back({block.data, block.type, block.count});
  }
  return all;
}

Reduction reduction_of(BNNSExtGroupReduction reduction) {
  switch (reduction) {
    case BNNSExtGroupSum:
      return Reduction::sum;
    case BNNSExtGroupMean:
      return Reduction::mean;
    case BNNSExtGroupMax:
      return Reduction::max;
  }
  fail_invalid("group: reduction is %u, expected BNNSExtGroupSum, BNNSExtGroupMean or BNNSExtGroupMax",
               static_cast<unsigned>(reduction));
}

void copy_in(const std::vector<Bytes>& blocks, char* to) {
  for (const Bytes& block : blocks) std::memcpy(to, block.data, block.bytes), to += block.bytes;
}

void copy_out(const char* from, const std::vector<Bytes>& blocks) {
  for (const Bytes& block : blocks) std::memcpy(block.data, from, block.bytes), from += block.bytes;
}

}  // namespace bnns::mpi
