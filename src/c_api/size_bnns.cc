// Sizes and ranks of descriptors.

#include <cstdint>

#include "bnns/bnns.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/tensor/sparse_weights.h"
#include "src/tensor/tensor.h"

using namespace bnns;

size_t BNNSDataLayoutGetRank(BNNSDataLayout layout) noexcept {
  return guarded("BNNSDataLayoutGetRank", SIZE_MAX, [&] {
    const size_t rank = layout_rank(layout);
    if (rank == SIZE_MAX) fail_invalid("layout is %s", enum_text(layout).text);
    return rank;
  });
}

// Bytes that the elements span; 0 when data is NULL or the size is unknown, and for types narrower than a byte, which
// the original does not measure.
size_t BNNSNDArrayGetDataSize(const BNNSNDArrayDescriptor* array) noexcept {
  return guarded("BNNSNDArrayGetDataSize", size_t{0}, [&]() -> size_t {
    if (!array) fail_invalid("array is NULL, expected a descriptor");
    if (!array->data) return 0;
    if (array->layout == BNNSDataLayoutFullyConnectedSparse) {
      const SparseHeader header = sparse_header(array->data);
      if (header.magic == 0) fail_invalid("array.data does not hold sparse weights as a Sparsify call left them");
      return header.bytes;
    }
    const Tensor t = resolve(*array, "size", "array");
    return type_bytes(t.type) ? t.span_bytes() : 0;
  });
}

// Bytes for shape and stride as they stand (a stride of 0 is literal here); SIZE_MAX while any of them is unknown.
size_t BNNSTensorGetAllocationSize(const BNNSTensor* tensor) noexcept {
  return guarded("BNNSTensorGetAllocationSize", SIZE_MAX, [&]() -> size_t {
    if (!tensor) fail_invalid("tensor is NULL, expected a tensor");
    if (tensor->rank > kMaxRank) fail_invalid("tensor.rank is %d, expected at most %zu", tensor->rank, kMaxRank);
    if (!is_known_type(tensor->data_type)) {
      fail_invalid("tensor.data_type is %s, expected a type of elements such as BNNSDataTypeFloat32",
                   enum_text(tensor->data_type).text);
    }
    size_t last = 0;
    for (size_t k = 0; k < tensor->rank; ++k) {
      const ssize_t extent = tensor->shape[k], stride = tensor->stride[k];
      if (extent < 0 || stride < 0) fail_invalid("tensor.shape[%zu] or its stride is dynamic", k);
      if (extent == 0) return 0;
      size_t reach;
      if (__builtin_mul_overflow(static_cast<size_t>(extent - 1), static_cast<size_t>(stride), &reach) ||
          __builtin_add_overflow(last, reach, &last)) {
        fail_invalid("tensor.shape[%zu] is %zd with stride %zd, too large: more than 2^64 elements", k, extent, stride);
      }
    }
    size_t bits;
    if (__builtin_add_overflow(last, size_t{1}, &last) ||
        __builtin_mul_overflow(last, type_bits(tensor->data_type), &bits) || bits > SIZE_MAX - 7) {
      fail_invalid("tensor.shape is too large: the last element is number %zu of %s", last,
                   type_name(tensor->data_type));
    }
    return (bits + 7) / 8;
  });
}
