// A sample's elements as blocks of f32, whatever its layout, strides and type.
//
// Element-wise operators are written once, on short f32 blocks that stay in L1; Elements is the lens between such a
// block and the tensor. A dense f32 tensor is read and written in place, with no copy.
//
//   Elements x(in_tensor), y(out_tensor);
//   float x_buffer[kBlock], y_buffer[kBlock];
//   for (size_t first = 0; first < n; first += kBlock) {
//     const size_t m = std::min(kBlock, n - first);
//     const float* xs = x.read(in, first, m, x_buffer);     // pointer into the tensor, or x_buffer
//     float* ys = y.target(out, first, m, y_buffer);
//     kernel(xs, ys, m);
//     y.write(out, first, m, ys);                         // nothing to do when ys is the tensor itself
//   }
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/tensor/tensor.h"

namespace bnns {

inline constexpr size_t kBlock = 512;  // 2 KiB of f32: three or four blocks fit in L1 beside their sources

class Elements {
 public:
  Elements() = default;
  // Elements in memory order of the tensor itself.
  explicit Elements(const Tensor& t);
  // Elements in the memory order of `as`: t has the same layout and each extent equal or 1; extents of 1 repeat.
  Elements(const Tensor& t, const Tensor& as);

  size_t count() const { return count_; }
  bool direct() const { return direct_; }  // dense f32: blocks are pointers into the tensor

  // Elements [first, first + n) as f32. base is the sample's first element; buffer has space for n values.
  const float* read(const void* base, size_t first, size_t n, float* buffer) const {
    if (direct_) return static_cast<const float*>(base) + first;
    gather(base, first, n, buffer);
    return buffer;
  }
  // Where a kernel may put elements [first, first + n): the tensor itself, or buffer.
  float* target(void* base, size_t first, float* buffer) const {
    return direct_ ? static_cast<float*>(base) + first : buffer;
  }
  // Brings values to the tensor unless they are there already. Floats round to nearest even; integers by
  // saturate(round(v / scale - bias)); booleans are v != 0.
  void write(void* base, size_t first, size_t n, const float* values) const {
    if (!direct_) scatter(base, first, n, values);
  }
  // The same, added to what is there (gradients with BNNSNDArrayFlagBackpropAccumulate). Works for direct tensors
  // too: values must then not be the tensor itself.
  void accumulate(void* base, size_t first, size_t n, const float* values) const;

  // Offset, in elements, of element `index`.
  size_t offset(size_t index) const;

 private:
  void gather(const void* base, size_t first, size_t n, float* buffer) const;
  void scatter(void* base, size_t first, size_t n, const float* values) const;
  template <class Run>
  void for_each_run(size_t first, size_t n, Run&& run) const;
  void merge_axes();

  BNNSDataType type_ = BNNSDataTypeFloat32, table_type_ = BNNSDataTypeFloat32;
  float scale_ = 1, bias_ = 0;
  const void* table_ = nullptr;
  size_t rank_ = 0, count_ = 0;
  size_t extent_[kMaxRank] = {}, stride_[kMaxRank] = {};  // fastest first, neighbours merged where they are dense
  bool direct_ = false;
};

// n elements of t's type, `stride` apart: one row of it.
Elements row_elements(const Tensor& t, size_t n, size_t stride);

// One element of any type as f32 (conversion by scale and bias, table look-up); offset in elements.
float load_element(const Tensor& t, const void* base, size_t offset) noexcept;

// One element of a whole-byte integer type as it is stored, and one written with saturation to the type's range.
int64_t load_integer(const Tensor& t, const void* base, size_t offset) noexcept;
void store_saturated(const Tensor& t, void* base, size_t offset, int64_t value) noexcept;

// base advanced by whole elements; the type must be a whole number of bytes wide.
inline const void* element_at(const void* base, BNNSDataType type, size_t elements) {
  return static_cast<const char*>(base) + elements * type_bytes(type);
}
inline void* element_at(void* base, BNNSDataType type, size_t elements) {
  return static_cast<char*>(base) + elements * type_bytes(type);
}

}  // namespace bnns
