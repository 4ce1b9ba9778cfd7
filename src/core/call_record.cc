// The names of one call.
#include <cstdio>
#include <cstring>

#include "src/core/implementation.h"

namespace bnns {

bool CallRecord::has(const char* name) const noexcept {
  for (size_t k = 0; k < size_; ++k) {
    if (std::strcmp(names_[k], name) == 0) return true;
  }
  return false;
}

void CallRecord::add(const char* name) noexcept {
  if (size_ < kNames && !has(name)) names_[size_++] = name;
}

void CallRecord::join(char* text, size_t bytes) const noexcept {
  std::snprintf(text, bytes, "-");
  size_t at = 0;
  for (size_t k = 0; k < size_ && at < bytes; ++k) {
    at += static_cast<size_t>(std::snprintf(text + at, bytes - at, "%s%s", k ? "+" : "", names_[k]));
  }
}

}  // namespace bnns
