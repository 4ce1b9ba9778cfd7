// How much of a promise a test goes through: little in `make test`, more in `make reliability`, all with FULL=1.
#pragma once

#include <cstdlib>
#include <cstring>

namespace bnns::testing {

// BNNS_RELIABILITY is unset, "short" or "full".
inline size_t amount(size_t usual, size_t in_short, size_t in_full) {
  const char* form = std::getenv("BNNS_RELIABILITY");
  if (!form) return usual;
  return std::strcmp(form, "full") == 0 ? in_full : in_short;
}

}  // namespace bnns::testing
