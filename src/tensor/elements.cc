#include "src/tensor/elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/core/half.h"
#include "src/simd/convert.h"

namespace bnns {
namespace {

template <class T>
T load_raw(const void* base, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + index * sizeof(T), sizeof(T));
  return value;
}

// Sub-byte element k sits in bits (k * width mod 8) upward of its byte (K2); width 3 and 6 may straddle two bytes.
unsigned load_bits(const void* base, size_t index, size_t width) {
  const auto* bytes = static_cast<const unsigned char*>(base);
  const size_t bit = index * width;
  unsigned word = bytes[bit / 8];
  if (bit % 8 + width > 8) word |= static_cast<unsigned>(bytes[bit / 8 + 1]) << 8;
  return (word >> (bit % 8)) & ((1u << width) - 1);
}

void store_bits(void* base, size_t index, size_t width, unsigned value) {
  auto* bytes = static_cast<unsigned char*>(base);
  for (size_t k = 0; k < width; ++k) {
    const size_t bit = index * width + k;
    const unsigned char mask = static_cast<unsigned char>(1u << (bit % 8));
    bytes[bit / 8] = static_cast<unsigned char>((value >> k & 1) ? bytes[bit / 8] | mask : bytes[bit / 8] & ~mask);
  }
}

// The integer or float value as stored, before scale and bias.
double load_number(BNNSDataType type, const void* base, size_t index) {
  switch (type) {
    case BNNSDataTypeFloat32:
      return load_raw<float>(base, index);
    case BNNSDataTypeFloat16:
      return half_to_float(load_raw<uint16_t>(base, index));
    case BNNSDataTypeBFloat16:
      return bfloat16_to_float(load_raw<uint16_t>(base, index));
    case BNNSDataTypeInt8:
      return load_raw<int8_t>(base, index);
    case BNNSDataTypeInt16:
      return load_raw<int16_t>(base, index);
    case BNNSDataTypeInt32:
      return load_raw<int32_t>(base, index);
    case BNNSDataTypeInt64:
      return static_cast<double>(load_raw<int64_t>(base, index));
    case BNNSDataTypeUInt8:
      return load_raw<uint8_t>(base, index);
    case BNNSDataTypeUInt16:
      return load_raw<uint16_t>(base, index);
    case BNNSDataTypeUInt32:
      return load_raw<uint32_t>(base, index);
    case BNNSDataTypeUInt64:
      return static_cast<double>(load_raw<uint64_t>(base, index));
    case BNNSDataTypeBoolean:
      return load_raw<uint8_t>(base, index) != 0;
    default:
      break;
  }
  const size_t width = type_bits(type);
  const unsigned bits = load_bits(base, index, width);
  if (is_signed(type) && (bits >> (width - 1))) return static_cast<double>(bits) - static_cast<double>(1u << width);
  return bits;
}

template <class T>
void store_integer(void* base, size_t index, double value) {
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double high = static_cast<double>(std::numeric_limits<T>::max());
  T stored;
  if (!(value > low))
    stored = std::isnan(value) ? T{0} : std::numeric_limits<T>::min();
  else if (value >= high)
    stored = std::numeric_limits<T>::max();
  else
    stored = static_cast<T>(value);
  std::memcpy(static_cast<char*>(base) + index * sizeof(T), &stored, sizeof(T));
}

// value is already rounded to an integer.
void store_integer_as(BNNSDataType type, void* base, size_t index, double value) {
  switch (type) {
    case BNNSDataTypeInt8:
      return store_integer<int8_t>(base, index, value);
    case BNNSDataTypeInt16:
      return store_integer<int16_t>(base, index, value);
    case BNNSDataTypeInt32:
      return store_integer<int32_t>(base, index, value);
    case BNNSDataTypeInt64:
      return store_integer<int64_t>(base, index, value);
    case BNNSDataTypeUInt8:
      return store_integer<uint8_t>(base, index, value);
    case BNNSDataTypeUInt16:
      return store_integer<uint16_t>(base, index, value);
    case BNNSDataTypeUInt32:
      return store_integer<uint32_t>(base, index, value);
    case BNNSDataTypeUInt64:
      return store_integer<uint64_t>(base, index, value);
    default:
      break;
  }
  const size_t width = type_bits(type);
  const double low = is_signed(type) ? -static_cast<double>(1u << (width - 1)) : 0;
  const double high = low + static_cast<double>((1u << width) - 1);
  const double clamped = std::isnan(value) ? 0 : std::clamp(value, low, high);
  store_bits(base, index, width, static_cast<unsigned>(static_cast<int>(clamped)) & ((1u << width) - 1));
}

}  // namespace

Elements::Elements(const Tensor& t) : Elements(t, t) {}

Elements::Elements(const Tensor& t, const Tensor& as)
    : type_(t.type),
      table_type_(t.table_type),
      scale_(t.scale),
      bias_(t.bias),
      table_(t.table),
      rank_(as.rank),
      count_(as.count) {
  for (size_t j = 0; j < rank_; ++j) {
    const size_t k = as.axis[j];
    extent_[j] = as.size[k];
    stride_[j] = t.size[k] == 1 ? 0 : t.stride[k];
  }
  merge_axes();
  direct_ = type_ == BNNSDataTypeFloat32 && rank_ == 1 && (stride_[0] == 1 || count_ == 1);
}

void Elements::merge_axes() {
  size_t kept = 0;
  for (size_t j = 0; j < rank_; ++j) {
    if (extent_[j] == 1) continue;
    if (kept > 0 && stride_[j] == stride_[kept - 1] * extent_[kept - 1]) {
      extent_[kept - 1] *= extent_[j];
      continue;
    }
    extent_[kept] = extent_[j];
    stride_[kept++] = stride_[j];
  }
  if (kept == 0) {  // a single element
    extent_[0] = 1;
    stride_[0] = 1;
    kept = 1;
  }
  rank_ = kept;
}

size_t Elements::offset(size_t index) const {
  size_t result = 0;
  for (size_t j = 0; j < rank_; ++j) {
    result += index % extent_[j] * stride_[j];
    index /= extent_[j];
  }
  return result;
}

// Calls run(offset, stride, position, length) for each stretch along the fastest axis.
template <class Run>
void Elements::for_each_run(size_t first, size_t n, Run&& run) const {
  size_t coordinate[kMaxRank], at = 0, rest = first;
  for (size_t j = 0; j < rank_; ++j) {
    coordinate[j] = rest % extent_[j];
    rest /= extent_[j];
    at += coordinate[j] * stride_[j];
  }
  for (size_t position = 0; position < n;) {
    const size_t length = std::min(n - position, extent_[0] - coordinate[0]);
    run(at, stride_[0], position, length);
    position += length;
    coordinate[0] += length;
    at += length * stride_[0];
    for (size_t j = 0; j + 1 < rank_ && coordinate[j] == extent_[j]; ++j) {
      at += stride_[j + 1] - extent_[j] * stride_[j];
      coordinate[j] = 0;
      ++coordinate[j + 1];
    }
  }
}

void Elements::gather(const void* base, size_t first, size_t n, float* buffer) const {
  for_each_run(first, n, [&](size_t at, size_t stride, size_t position, size_t length) {
    float* to = buffer + position;
    if (type_ == BNNSDataTypeFloat32) {
      const float* from = static_cast<const float*>(base) + at;
      if (stride == 1)
        std::memcpy(to, from, length * sizeof(float));
      else
        for (size_t i = 0; i < length; ++i) to[i] = from[i * stride];
    } else if (stride == 1 && type_ == BNNSDataTypeFloat16) {
      half_to_float(static_cast<const uint16_t*>(base) + at, to, length);
    } else if (stride == 1 && type_ == BNNSDataTypeBFloat16) {
      bfloat16_to_float(static_cast<const uint16_t*>(base) + at, to, length);
    } else if (is_float(type_) || type_ == BNNSDataTypeBoolean) {
      for (size_t i = 0; i < length; ++i) to[i] = static_cast<float>(load_number(type_, base, at + i * stride));
    } else if (is_indexed(type_)) {
      for (size_t i = 0; i < length; ++i) {
        const unsigned index = load_bits(base, at + i * stride, type_bits(type_));
        to[i] = static_cast<float>(load_number(table_type_, table_, index));
      }
    } else {
      for (size_t i = 0; i < length; ++i) {
        to[i] = scale_ * static_cast<float>(load_number(type_, base, at + i * stride)) + bias_;
      }
    }
  });
}

void Elements::scatter(void* base, size_t first, size_t n, const float* values) const {
  for_each_run(first, n, [&](size_t at, size_t stride, size_t position, size_t length) {
    const float* from = values + position;
    if (type_ == BNNSDataTypeFloat32) {
      float* to = static_cast<float*>(base) + at;
      if (stride == 1)
        std::memcpy(to, from, length * sizeof(float));
      else
        for (size_t i = 0; i < length; ++i) to[i * stride] = from[i];
    } else if (stride == 1 && type_ == BNNSDataTypeFloat16) {
      float_to_half(from, static_cast<uint16_t*>(base) + at, length);
    } else if (stride == 1 && type_ == BNNSDataTypeBFloat16) {
      float_to_bfloat16(from, static_cast<uint16_t*>(base) + at, length);
    } else if (is_float(type_)) {
      auto* to = static_cast<uint16_t*>(base) + at;
      const bool half = type_ == BNNSDataTypeFloat16;
      for (size_t i = 0; i < length; ++i) to[i * stride] = half ? float_to_half(from[i]) : float_to_bfloat16(from[i]);
    } else if (type_ == BNNSDataTypeBoolean) {
      auto* to = static_cast<uint8_t*>(base) + at;
      for (size_t i = 0; i < length; ++i) to[i * stride] = from[i] != 0;
    } else {
      for (size_t i = 0; i < length; ++i) {
        const double scaled = static_cast<double>(from[i]) / scale_ - bias_;
        store_integer_as(type_, base, at + i * stride, std::nearbyint(scaled));
      }
    }
  });
}

void Elements::accumulate(void* base, size_t first, size_t n, const float* values) const {
  if (direct_) {
    float* to = static_cast<float*>(base) + first;
    for (size_t i = 0; i < n; ++i) to[i] += values[i];
    return;
  }
  float buffer[kBlock];
  for (size_t done = 0; done < n; done += kBlock) {
    const size_t m = std::min(kBlock, n - done);
    gather(base, first + done, m, buffer);
    for (size_t i = 0; i < m; ++i) buffer[i] += values[done + i];
    scatter(base, first + done, m, buffer);
  }
}

Elements row_elements(const Tensor& t, size_t n, size_t stride) {
  Tensor row = t;
  row.rank = 1;
  row.axis[0] = 0;
  row.size[0] = row.count = n;
  row.stride[0] = stride;
  return Elements(row);
}

float load_element(const Tensor& t, const void* base, size_t offset) noexcept {
  if (is_indexed(t.type)) {
    return static_cast<float>(load_number(t.table_type, t.table, load_bits(base, offset, type_bits(t.type))));
  }
  const float value = static_cast<float>(load_number(t.type, base, offset));
  return is_integer(t.type) ? t.scale * value + t.bias : value;
}

int64_t load_integer(const Tensor& t, const void* base, size_t offset) noexcept {
  switch (t.type) {
    case BNNSDataTypeInt64:
      return load_raw<int64_t>(base, offset);
    case BNNSDataTypeUInt64:
      return static_cast<int64_t>(std::min<uint64_t>(load_raw<uint64_t>(base, offset), INT64_MAX));
    default:
      return static_cast<int64_t>(load_number(t.type, base, offset));  // up to 32 bits: exact in double
  }
}

void store_saturated(const Tensor& t, void* base, size_t offset, int64_t value) noexcept {
  if (t.type == BNNSDataTypeInt64 || t.type == BNNSDataTypeUInt64) {
    const int64_t stored = t.type == BNNSDataTypeUInt64 ? std::max<int64_t>(value, 0) : value;
    std::memcpy(static_cast<char*>(base) + offset * sizeof stored, &stored, sizeof stored);
  } else {
    store_integer_as(t.type, base, offset, static_cast<double>(value));
  }
}

}  // namespace bnns
