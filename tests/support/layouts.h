// Tensors of any layout, stride and type for tests, with an address computed from the specification's table (not by
// the library), exact bounds (guard pages) and gaps that must keep their poison.
#pragma once

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "src/core/half.h"
#include "tests/support/testing.h"

namespace bnns::testing {

using Coordinates = std::vector<size_t>;  // in size order

// Calls f for every coordinate of a shape, size[0] fastest.
template <class F>
void for_each_coordinate(const std::vector<size_t>& size, F&& f) {
  Coordinates at(size.size(), 0);
  for (;;) {
    f(at);
    size_t k = 0;
    while (k < size.size() && ++at[k] == size[k]) at[k++] = 0;
    if (k == size.size()) return;
  }
}

// The order of a descriptor's strides. last_first: the last is the smallest, the others rise (an image CHW whose
// channels lie side by side).
enum class StrideOrder { rising, falling, last_first };

class LayoutTensor {
 public:
  // unit is the smallest stride; every further one is dense plus pad. unit 1 and pad 0, rising, are a dense tensor
  // (strides 0).
  LayoutTensor(BNNSDataLayout layout, std::vector<size_t> size, BNNSDataType type = BNNSDataTypeFloat32,
               size_t unit = 1, size_t pad = 0, StrideOrder order = StrideOrder::rising)
      : layout_(layout), size_(std::move(size)), type_(type), dense_(unit == 1 && pad == 0) {
    const size_t rank = size_.size();
    size_t next = unit, last = 0;
    dense_ = dense_ && order == StrideOrder::rising;
    stride_.resize(rank);
    for (size_t i = 0; i < rank; ++i) {
      const size_t j = order == StrideOrder::rising    ? i
                       : order == StrideOrder::falling ? rank - 1 - i
                                                       : (i + rank - 1) % rank;
      const size_t extent = size_[axis_at(j)];
      stride_[j] = next;
      last += (extent - 1) * next;
      next = next * extent + pad;
    }
    element_ = (unsigned(type) & 0x7fff) / 8;
    span_ = last + 1;
    memory_ = std::make_unique<Guarded<unsigned char>>(span_ * element_);
    std::memset(memory_->data(), kPoisonByte, span_ * element_);
  }

  const std::vector<size_t>& size() const { return size_; }
  size_t count() const { return std::accumulate(size_.begin(), size_.end(), size_t{1}, std::multiplies<>()); }
  void* data() { return memory_->data(); }
  size_t bytes() const { return span_ * element_; }
  BNNSDataType type() const { return type_; }

  BNNSNDArrayDescriptor descriptor() {
    BNNSNDArrayDescriptor d = bnns::testing::descriptor(layout_, size_, data(), type_);
    for (size_t j = 0; j < size_.size() && !dense_; ++j) d.stride[j] = stride_[j];
    return d;
  }

  size_t offset(const Coordinates& at) const {
    size_t result = 0;
    for (size_t j = 0; j < size_.size(); ++j) {
      const size_t k = axis_at(j);
      const bool rotated = k < 2 && (layout_ == BNNSDataLayoutConvolutionWeightsOIHrWr ||
                                     layout_ == BNNSDataLayoutConvolutionWeightsIOHrWr);
      result += (rotated ? size_[k] - 1 - at[k] : at[k]) * stride_[j];
    }
    return result;
  }

  double get(const Coordinates& at) const {
    const unsigned char* p = memory_->data() + offset(at) * element_;
    switch (type_) {
      case BNNSDataTypeFloat32:
        return raw<float>(p);
      case BNNSDataTypeFloat16:
        return half_to_float(raw<uint16_t>(p));
      case BNNSDataTypeBFloat16:
        return bfloat16_to_float(raw<uint16_t>(p));
      case BNNSDataTypeInt8:
        return raw<int8_t>(p);
      case BNNSDataTypeInt16:
        return raw<int16_t>(p);
      case BNNSDataTypeInt32:
        return raw<int32_t>(p);
      case BNNSDataTypeInt64:
        return double(raw<int64_t>(p));
      case BNNSDataTypeUInt16:
        return raw<uint16_t>(p);
      case BNNSDataTypeUInt32:
        return raw<uint32_t>(p);
      case BNNSDataTypeUInt64:
        return double(raw<uint64_t>(p));
      default:
        return raw<uint8_t>(p);  // UInt8, Boolean
    }
  }

  // Stores the nearest value of the type and returns it.
  double set(const Coordinates& at, double value) {
    unsigned char* p = memory_->data() + offset(at) * element_;
    switch (type_) {
      case BNNSDataTypeFloat32:
        put(p, float(value));
        break;
      case BNNSDataTypeFloat16:
        put(p, float_to_half(float(value)));
        break;
      case BNNSDataTypeBFloat16:
        put(p, float_to_bfloat16(float(value)));
        break;
      case BNNSDataTypeInt8:
        put(p, int8_t(value));
        break;
      case BNNSDataTypeInt16:
        put(p, int16_t(value));
        break;
      case BNNSDataTypeInt32:
        put(p, int32_t(value));
        break;
      case BNNSDataTypeInt64:
        put(p, int64_t(value));
        break;
      case BNNSDataTypeUInt16:
        put(p, uint16_t(value));
        break;
      case BNNSDataTypeUInt32:
        put(p, uint32_t(value));
        break;
      case BNNSDataTypeUInt64:
        put(p, uint64_t(value));
        break;
      default:
        put(p, uint8_t(value));
        break;
    }
    return get(at);
  }

  template <class T>
  T raw_at(const Coordinates& at) const {
    return raw<T>(memory_->data() + offset(at) * element_);
  }
  template <class T>
  void put_raw(const Coordinates& at, T value) {
    put(memory_->data() + offset(at) * element_, value);
  }

  std::vector<unsigned char> snapshot() const { return {memory_->data(), memory_->data() + bytes()}; }

  // Bytes that belong to no element still hold what they were filled with.
  bool gaps_untouched() const {
    std::vector<bool> used(span_, false);
    for_each_coordinate(size_, [&](const Coordinates& at) { used[offset(at)] = true; });
    for (size_t i = 0; i < span_; ++i) {
      for (size_t b = 0; b < element_ && !used[i]; ++b) {
        if (memory_->data()[i * element_ + b] != kPoisonByte) return false;
      }
    }
    return true;
  }

 private:
  static constexpr unsigned char kPoisonByte = 0xcd;

  // The size axis that stride position j belongs to.
  size_t axis_at(size_t j) const {
    const unsigned value = unsigned(layout_);
    if ((value & 0x8001) == 0x8001) return size_.size() - 1 - j;  // FirstMajor
    if (layout_ == BNNSDataLayoutMHA_DHK) return j == 0 ? 0 : 3 - j;
    return j;
  }
  template <class T>
  static T raw(const unsigned char* p) {
    T value;
    std::memcpy(&value, p, sizeof value);
    return value;
  }
  template <class T>
  static void put(unsigned char* p, T value) {
    std::memcpy(p, &value, sizeof value);
  }

  BNNSDataLayout layout_;
  std::vector<size_t> size_, stride_;  // stride_ in stride order
  BNNSDataType type_;
  bool dense_;
  size_t element_ = 0, span_ = 0;
  std::unique_ptr<Guarded<unsigned char>> memory_;
};

}  // namespace bnns::testing
