// A BNNSNDArrayDescriptor, checked and resolved once.
//
// Three orders exist (spec 1.2) and the names keep them apart:
//   size order     size[k]: what axis numbers, axis bits and permutations refer to
//   stride order   the descriptor's stride[]: fastest axis first; FirstMajor layouts pair size[k] with stride[rank-1-k]
//   memory order   elements by rising address: axes in stride order, fastest first
// Tensor::stride[k] always belongs to size[k]; Tensor::axis[j] is the size axis at stride position j.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bnns/bnns.h"
#include "src/tensor/data_type.h"

namespace bnns {

inline constexpr size_t kMaxRank = BNNS_MAX_TENSOR_DIMENSION;

struct Tensor {
  BNNSDataLayout layout = {};
  BNNSDataType type = BNNSDataTypeFloat32;
  size_t rank = 0;
  size_t size[kMaxRank] = {};
  size_t stride[kMaxRank] = {};  // in elements, paired with size
  uint8_t axis[kMaxRank] = {};   // stride position -> size axis
  size_t count = 0;              // elements
  size_t span = 0;               // offset of the last element + 1, in elements
  bool dense = false;            // elements fill the span without gaps
  bool accumulate = false;       // gradients are added to what is there
  void* data = nullptr;
  float scale = 1, bias = 0;    // integer x means scale * x + bias
  const void* table = nullptr;  // indexed types: 2^width values of table_type
  BNNSDataType table_type = BNNSDataTypeFloat32;

  bool is(BNNSDataType t) const { return type == t; }
  // Bytes that span covers; sub-byte types round up.
  size_t span_bytes() const { return (span * type_bits(type) + 7) / 8; }
  // Elements from one sample to the next when the caller gives batch stride 0.
  size_t sample_stride() const;
  std::string text() const;  // "f32 28x28x3"
};

// Rank of a layout, or SIZE_MAX for a value that is none of the 28 layouts.
size_t layout_rank(BNNSDataLayout layout) noexcept;

// All zero, or no data: an optional slot that is not used; its other fields are then not looked at.
inline bool is_absent(const BNNSNDArrayDescriptor& d) {
  return d.data == nullptr;
}

// Checks layout, type, extents, strides (each zero entry is resolved by itself, left to right) and the total size.
// op and field name the place in messages: "fully_connected", "w_desc". Opaque sparse weights are refused here.
Tensor resolve(const BNNSNDArrayDescriptor& d, const char* op, const char* field);

// As resolve, and data must be there and aligned to its type.
Tensor resolve_with_data(const BNNSNDArrayDescriptor& d, const char* op, const char* field);

// A descriptor given by pointer that must not be NULL.
Tensor resolve_with_data(const BNNSNDArrayDescriptor* d, const char* op, const char* field);

// A gradient (or other) descriptor that must have the shape of `like`, or as many elements in a Vector or any other
// layout (existing programs pass a Vector where the layer has CHW).
Tensor resolve_delta(const BNNSNDArrayDescriptor* d, const Tensor& like, const char* op, const char* field);

// As resolve_delta, for operators that work along axes: the result has the shape of `like`. A descriptor with the sizes
// of `like` keeps its own strides, whatever its layout; one of as many elements in another shape must be a vector or
// dense, and holds the elements in the memory order of `like`.
Tensor resolve_delta_view(const BNNSNDArrayDescriptor* d, const Tensor& like, const char* op, const char* field);

// A dense f32 vector of n elements: what an operator uses for the values it owns.
Tensor vector_tensor(size_t n, void* data);

// ---- what apply calls check -------------------------------------------------------------------------------------

// Not NULL and aligned to the type (sub-byte types to a byte). part follows field in messages (".data").
void check_data(const void* data, BNNSDataType type, const char* op, const char* field, const char* part = "");

// The stride between samples: 0 means dense. Outputs must not overlap themselves.
size_t input_batch_stride(size_t stride, size_t batch, const Tensor& sample, const char* op, const char* field);
size_t output_batch_stride(size_t stride, size_t batch, const Tensor& sample, const char* op, const char* field);

// Bytes that `batch` samples cover.
size_t batch_bytes(size_t batch, size_t stride, const Tensor& sample, const char* op, const char* field);

// Refuses byte ranges that share memory.
void check_disjoint(const void* a, size_t a_bytes, const char* a_name, const void* b, size_t b_bytes,
                    const char* b_name, const char* op);

}  // namespace bnns
