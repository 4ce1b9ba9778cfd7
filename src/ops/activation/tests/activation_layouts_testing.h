// Test helper: descriptors with strides, addressed by arithmetic of its own (nothing from src/tensor/tensor.h).
#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include "tests/support/testing.h"

namespace bnns::testing {

// NULL for arguments that the header declares non-null: a literal would be a warning of clang.
template <class T>
T* null() {
  return nullptr;
}

struct Shape {
  BNNSDataLayout layout;
  std::vector<size_t> size;    // size order
  std::vector<size_t> stride;  // stride order, fastest first; empty means contiguous

  bool first_major() const { return (layout & 0x8000) && (layout & 1); }
  size_t rank() const { return size.size(); }
  size_t count() const {
    size_t n = 1;
    for (size_t s : size) n *= s;
    return n;
  }
  // The size axis of stride position j.
  size_t axis(size_t j) const { return first_major() ? rank() - 1 - j : j; }
  size_t step(size_t j) const {
    if (!stride.empty()) return stride[j];
    size_t s = 1;
    for (size_t k = 0; k < j; ++k) s *= size[axis(k)];
    return s;
  }
  // Coordinates, in stride order, of element m in memory order.
  std::vector<size_t> coordinates(size_t m) const {
    std::vector<size_t> c(rank());
    for (size_t j = 0; j < rank(); ++j) {
      c[j] = m % size[axis(j)];
      m /= size[axis(j)];
    }
    return c;
  }
  size_t offset(size_t m) const {
    const std::vector<size_t> c = coordinates(m);
    size_t at = 0;
    for (size_t j = 0; j < rank(); ++j) at += c[j] * step(j);
    return at;
  }
  size_t span() const { return offset(count() - 1) + 1; }

  BNNSNDArrayDescriptor descriptor(void* data, BNNSDataType type = BNNSDataTypeFloat32) const {
    BNNSNDArrayDescriptor d = bnns::testing::descriptor(layout, size, data, type);
    for (size_t j = 0; j < stride.size(); ++j) d.stride[j] = stride[j];
    return d;
  }
};

// A batch of samples in a buffer full of poison: what no element names must still be poison after a call.
class PoisonedBatch {
 public:
  PoisonedBatch(const Shape& shape, size_t batch, size_t gap = 0)
      : shape_(shape), batch_(batch), stride_(shape.span() + gap), data_((batch - 1) * stride_ + shape.span()) {
    for (size_t i = 0; i < data_.size(); ++i) data_[i] = poison();
  }
  float& at(size_t sample, size_t m) { return data_[sample * stride_ + shape_.offset(m)]; }
  void fill(const std::vector<float>& values) {
    for (size_t n = 0, i = 0; n < batch_; ++n) {
      for (size_t m = 0; m < shape_.count(); ++m) at(n, m) = values[i++];
    }
  }
  std::vector<float> values() {
    std::vector<float> v;
    for (size_t n = 0; n < batch_; ++n) {
      for (size_t m = 0; m < shape_.count(); ++m) v.push_back(at(n, m));
    }
    return v;
  }
  bool gaps_are_poison() {
    std::vector<bool> named(data_.size());
    for (size_t n = 0; n < batch_; ++n) {
      for (size_t m = 0; m < shape_.count(); ++m) named[n * stride_ + shape_.offset(m)] = true;
    }
    for (size_t i = 0; i < data_.size(); ++i) {
      if (!named[i] && !is_poison(data_[i])) return false;
    }
    return true;
  }
  float* data() { return data_.data(); }
  size_t stride() const { return stride_; }
  BNNSNDArrayDescriptor descriptor() { return shape_.descriptor(data()); }

 private:
  Shape shape_;
  size_t batch_, stride_;
  Guarded<float> data_;
};

inline BNNSLayerParametersActivation layer_of(const BNNSNDArrayDescriptor& i, const BNNSNDArrayDescriptor& o,
                                              BNNSActivationFunction function, float alpha = 0, float beta = 0,
                                              uint32_t axis_flags = 0) {
  BNNSLayerParametersActivation layer;
  std::memset(&layer, 0, sizeof layer);
  layer.i_desc = i;
  layer.o_desc = o;
  layer.activation.function = function;
  layer.activation.alpha = alpha;
  layer.activation.beta = beta;
  layer.axis_flags = axis_flags;
  return layer;
}

// Owns a filter made with the given number of threads.
class TestFilter {
 public:
  explicit TestFilter(const BNNSLayerParametersActivation& layer, size_t n_threads = 0) {
    BNNSFilterParameters parameters = {};
    parameters.n_threads = n_threads;
    handle_ = BNNSFilterCreateLayerActivation(&layer, &parameters);
  }
  TestFilter(const TestFilter&) = delete;
  ~TestFilter() { BNNSFilterDestroy(handle_); }
  operator BNNSFilter() const { return handle_; }

 private:
  BNNSFilter handle_;
};

}  // namespace bnns::testing
