#include "src/core/process/precision.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "src/core/log.h"

namespace bnns {
namespace {

constexpr int kNotAsked = -1;
std::atomic<int> strict{kNotAsked};

int read_setting() noexcept {
  const char* text = std::getenv("BNNS_PRECISION");
  const std::string_view setting = text ? text : "fast";
  const int wanted = setting == "strict";
  int expected = kNotAsked;
  if (!strict.compare_exchange_strong(expected, wanted, std::memory_order_relaxed)) return expected;
  if (!wanted && setting != "fast") log_ignored_setting("BNNS_PRECISION", text, "strict or fast");
  return wanted;
}

}  // namespace

bool strict_precision() noexcept {
  const int now = strict.load(std::memory_order_relaxed);
  return (now == kNotAsked ? read_setting() : now) != 0;
}

void set_strict_precision(bool wanted) noexcept {
  strict.store(wanted, std::memory_order_relaxed);
}

}  // namespace bnns
