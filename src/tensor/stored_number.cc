#include "src/tensor/stored_number.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "src/core/half.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

template <class T>
T load_raw(const void* base, size_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(base) + index * sizeof(T), sizeof(T));
  return value;
}

void store_bits(void* base, size_t index, size_t width, unsigned value) {
  auto* bytes = static_cast<unsigned char*>(base);
  for (size_t k = 0; k < width; ++k) {
    const size_t bit = index * width + k;
    const unsigned char mask = static_cast<unsigned char>(1u << (bit % 8));
    bytes[bit / 8] = static_cast<unsigned char>((value >> k & 1) ? bytes[bit / 8] | mask : bytes[bit / 8] & ~mask);
  }
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

}  // namespace

unsigned load_bits(const void* base, size_t index, size_t width) {
  const auto* bytes = static_cast<const unsigned char*>(base);
  const size_t bit = index * width;
  unsigned word = bytes[bit / 8];
  if (bit % 8 + width > 8) word |= static_cast<unsigned>(bytes[bit / 8 + 1]) << 8;
  return (word >> (bit % 8)) & ((1u << width) - 1);
}

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
