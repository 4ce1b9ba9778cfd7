// What benchmarks do with a call of ours that fails: say why, and end.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "bnns/bnns_extensions.h"

namespace bnns::bench {

inline void check(int status) {
  if (status == 0) return;
  std::fprintf(stderr, "%s\n", BNNSExtLastError());
  std::exit(1);
}

}  // namespace bnns::bench
