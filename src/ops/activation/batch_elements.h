// A batch of samples as one run of batch * count elements in memory order, read and written as blocks of f32.
//
// The batch becomes one more axis of the tensor, so a dense batch is a single run whatever its sample shape. Only a
// tensor that already needs all kMaxRank axes is walked sample by sample; run() then ends at the sample's end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/tensor/elements.h"
#include "src/tensor/tensor.h"

namespace bnns {

// The batch as a tensor of its own: axes in memory order, neighbours merged, the batch last. False when that takes
// more than kMaxRank axes.
bool join_batch(const Tensor& sample, size_t batch, size_t stride, Tensor* joined) noexcept;

class BatchElements {
 public:
  // base may be NULL as long as nothing is read or written.
  BatchElements(const Tensor& sample, size_t batch, size_t stride, const void* base) noexcept;

  bool direct() const { return joined_ && elements_.direct(); }  // dense f32: any run is a pointer
  bool contiguous() const { return contiguous_; }                // dense, of any type
  BNNSDataType type() const { return type_; }
  void* base() const { return base_; }

  // How many of the n elements from `first` one call may take.
  size_t run(size_t first, size_t n) const { return joined_ ? n : std::min(n, count_ - first % count_); }

  const float* read(size_t first, size_t n, float* buffer) const {
    return elements_.read(sample_of(first), index_of(first), n, buffer);
  }
  float* target(size_t first, float* buffer) const {
    return elements_.target(sample_of(first), index_of(first), buffer);
  }
  void write(size_t first, size_t n, const float* values) const {
    elements_.write(sample_of(first), index_of(first), n, values);
  }
  void accumulate(size_t first, size_t n, const float* values) const {
    elements_.accumulate(sample_of(first), index_of(first), n, values);
  }
  // Offset of an element from base, in elements.
  size_t offset(size_t index) const {
    return joined_ ? elements_.offset(index) : index / count_ * stride_ + elements_.offset(index % count_);
  }

 private:
  void* sample_of(size_t first) const { return joined_ ? base_ : element_at(base_, type_, first / count_ * stride_); }
  size_t index_of(size_t first) const { return joined_ ? first : first % count_; }

  Elements elements_;
  void* base_;
  size_t count_, stride_;
  BNNSDataType type_;
  bool joined_, contiguous_;
};

// One operand of a call: a batch of samples and its name in messages.
struct BatchOperand {
  Tensor sample;
  const void* base;
  size_t stride;
  const char* name;

  BatchElements elements(size_t batch) const { return {sample, batch, stride, base}; }
};

// Refuses an output that shares memory with an input, unless both name the same elements in the same order (in place).
// Samples with inner strides may interleave, so only dense samples are compared.
void check_in_place(const BatchOperand& input, const BatchOperand& output, size_t batch, const char* op);

}  // namespace bnns
