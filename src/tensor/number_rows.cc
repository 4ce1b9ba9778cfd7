// Dense rows go in pieces of a fixed length without aliases, which is the form that gcc vectorises at -O2.

#include "src/tensor/number_rows.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "src/tensor/with_integer.h"

namespace bnns {
namespace {

constexpr size_t kPiece = 64;

// f(i, o): element i of one side is element o of the other.
template <class From, class To, class F>
void convert_row(const From* __restrict from, size_t from_stride, To* __restrict to, size_t to_stride, size_t n, F f) {
  size_t i = 0;
  if (from_stride == 1 && to_stride == 1) {
    for (; i + kPiece <= n; i += kPiece) {
      const From* __restrict piece_from = from + i;
      To* __restrict piece_to = to + i;
      for (size_t k = 0; k < kPiece; ++k) piece_to[k] = f(piece_from[k]);
    }
  }
  for (; i < n; ++i) to[i * to_stride] = f(from[i * from_stride]);
}

// Integers of 64 bits are rounded twice, to double and to float, as everything in this library does.
template <class T>
float to_float(T x) {
  if constexpr (sizeof(T) == 8) {
    return static_cast<float>(static_cast<double>(x));
  } else {
    return static_cast<float>(x);
  }
}

template <class T>
T saturate(double value) {
  constexpr double low = static_cast<double>(std::numeric_limits<T>::min());
  constexpr double high = static_cast<double>(std::numeric_limits<T>::max());
  if constexpr (sizeof(T) <= 2) {  // every bound is a double and an int: no branches
    const double known = value == value ? value : 0;
    const double above = known > low ? known : low, within = above < high ? above : high;
    return static_cast<T>(static_cast<int32_t>(std::nearbyint(within)));
  } else {
    value = std::nearbyint(value);
    if (!(value > low)) return value != value ? T{0} : std::numeric_limits<T>::min();
    return value >= high ? std::numeric_limits<T>::max() : static_cast<T>(value);
  }
}

}  // namespace

void load_numbers(BNNSDataType type, const void* from, size_t stride, size_t n, float scale, float bias,
                  float* to) noexcept {
  if (type == BNNSDataTypeBoolean) {
    return convert_row(static_cast<const uint8_t*>(from), stride, to, 1, n, [](uint8_t x) { return x ? 1.0f : 0.0f; });
  }
  with_integer(type, [&](auto t) {
    using T = decltype(t);
    convert_row(static_cast<const T*>(from), stride, to, 1, n,
                [scale, bias](T x) { return scale * to_float(x) + bias; });
  });
}

void store_numbers(BNNSDataType type, const float* from, size_t n, float scale, float bias, void* to,
                   size_t stride) noexcept {
  if (type == BNNSDataTypeBoolean) {
    return convert_row(from, 1, static_cast<uint8_t*>(to), stride, n,
                       [](float x) { return static_cast<uint8_t>(x != 0); });
  }
  with_integer(type, [&](auto t) {
    using T = decltype(t);
    T* target = static_cast<T*>(to);
    if (scale == 1 && bias == 0) {
      convert_row(from, 1, target, stride, n, [](float x) { return saturate<T>(static_cast<double>(x)); });
    } else {
      convert_row(from, 1, target, stride, n, [scale, bias](float x) {
        return saturate<T>(static_cast<double>(x) / static_cast<double>(scale) - static_cast<double>(bias));
      });
    }
  });
}

}  // namespace bnns
