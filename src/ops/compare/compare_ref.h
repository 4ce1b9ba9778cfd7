// Comparisons and logic of two numbers.
#pragma once

#include "bnns/bnns.h"

namespace bnns::ref {

inline bool compare(BNNSRelationalOperator op, double a, double b) {
  const bool p = a != 0, q = b != 0;
  const bool results[] = {a == b, a<b, a <= b, a> b, a >= b, a != b, p && q, p || q, !p, !(p && q), !(p || q), p != q};
  return results[static_cast<unsigned>(op)];
}

}  // namespace bnns::ref
