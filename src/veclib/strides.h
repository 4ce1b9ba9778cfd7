// Vectors with strides, for kernels that know dense ones: kBlock elements at a time are copied to the stack, computed
// and copied back. A stride of 1 is used where it lies. Bits do not depend on strides.
#pragma once

#include <cstddef>

#include "src/veclib/kernels.h"

namespace bnns::veclib {

using Stride = long;
constexpr size_t kBlock = kSumBlock;  // sums add the same blocks as they do for dense vectors

// n elements p[i stride] as they lie, or in `copy`. nullptr stays nullptr.
template <class T>
const T* dense(const T* p, Stride stride, size_t n, T* copy) {
  if (!p || stride == 1) return p;
  for (size_t i = 0; i < n; ++i) copy[i] = p[static_cast<Stride>(i) * stride];
  return copy;
}

template <class T>
void spread(const T* from, T* p, Stride stride, size_t n) {
  for (size_t i = 0; i < n; ++i) p[static_cast<Stride>(i) * stride] = from[i];
}

template <class T>
struct Operand {  // a vector that is read; nullptr: not used
  const T* p = nullptr;
  Stride stride = 1;
  const T* at(size_t i) const { return p ? p + static_cast<Stride>(i) * stride : nullptr; }
};

// y = what(a, b, c, s, t)
template <class T>
void map_strided(Map what, Operand<T> a, Operand<T> b, Operand<T> c, T s, T t, T* y, Stride stride, size_t n) noexcept {
  if (a.stride == 1 && b.stride == 1 && c.stride == 1 && stride == 1) {
    return map(what, MapArguments<T>{a.p, b.p, c.p, y, s, t}, n);
  }
  T copies[4][kBlock];
  for (size_t i = 0; i < n; i += kBlock) {
    const size_t count = n - i < kBlock ? n - i : kBlock;
    T* result = stride == 1 ? y + i : copies[3];
    map(what,
        MapArguments<T>{dense(a.at(i), a.stride, count, copies[0]), dense(b.at(i), b.stride, count, copies[1]),
                        dense(c.at(i), c.stride, count, copies[2]), result, s, t},
        count);
    if (stride != 1) spread(result, y + static_cast<Stride>(i) * stride, stride, count);
  }
}

template <class T>
double sum_strided(Sum what, Operand<T> a, Operand<T> b, T s, size_t n) noexcept {
  if (a.stride == 1 && b.stride == 1) return sum(what, a.p, b.p, s, n);
  T copies[2][kBlock];
  double total = 0;
  for (size_t i = 0; i < n; i += kBlock) {
    const size_t count = n - i < kBlock ? n - i : kBlock;
    total +=
        sum(what, dense(a.at(i), a.stride, count, copies[0]), dense(b.at(i), b.stride, count, copies[1]), s, count);
  }
  return total;
}

}  // namespace bnns::veclib
