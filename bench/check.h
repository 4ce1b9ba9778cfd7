// What benchmarks do with a call of ours that fails: say why, and end. bench.py catches it and goes on with the next
// case.
#pragma once

#include <stdexcept>

#include "bnns/bnns_extensions.h"

namespace bnns::bench {

inline void check(int status) {
  if (status == 0) return;
  throw std::runtime_error(BNNSExtLastError());
}

}  // namespace bnns::bench
