// Size arithmetic that refuses to wrap. Every product of extents, strides and element sizes goes through here.
#pragma once

#include <cstddef>

#include "src/core/error.h"

namespace bnns {

// `what` begins the message: the operator and the fields that the factors come from, "resize: i_desc and o_desc". Sizes
// that a caller can make too large by one field are better checked beside it, with a message that has field and value.
inline size_t checked_mul(size_t a, size_t b, const char* what) {
  size_t product;
  if (__builtin_mul_overflow(a, b, &product)) fail_invalid("%s: %zu * %zu does not fit in 64 bits", what, a, b);
  return product;
}

inline size_t checked_add(size_t a, size_t b, const char* what) {
  size_t sum;
  if (__builtin_add_overflow(a, b, &sum)) fail_invalid("%s: %zu + %zu does not fit in 64 bits", what, a, b);
  return sum;
}

inline size_t div_up(size_t a, size_t b) {
  return a / b + (a % b != 0);
}
inline size_t round_up(size_t a, size_t multiple) {
  return div_up(a, multiple) * multiple;
}

}  // namespace bnns
