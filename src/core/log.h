// Where messages go: to the client's callback if there is one, else to stderr as BNNS_VERBOSE says.
//   0      nothing
//   unset  ignored settings, and the first refusal of each kind
//   error  ignored settings, and every refusal
//   1, all the same, notes, and one line per create and apply with its time
// A line is "openbnns: " and the message, or "bnns_verbose," and fields divided by commas for what was run.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "bnns/bnns_extensions.h"
#include "src/core/implementation.h"

namespace bnns {

void set_log_callback(BNNSExtLogCallback callback, void* user) noexcept;
void log_message(BNNSExtLogLevel level, const char* message) noexcept;

// A note that was asked for (BNNS_CHECK_NAN): printed unless BNNS_VERBOSE is 0.
void log_finding(const char* message) noexcept;

// One line for a variable of the environment whose text means nothing and is passed over.
void log_ignored_setting(const char* name, const char* text, const char* expected) noexcept;

namespace detail {
inline constexpr int kVerbose = 1, kNotes = 2, kCheckNaN = 4;
extern std::atomic<int> watch;  // bits of the above, or -1 until the environment was read
int watch_from_environment() noexcept;
int64_t monotonic_nanoseconds() noexcept;  // not inline: <chrono> would double the time to compile what includes this
inline bool watches(int bit) noexcept {
  const int known = watch.load(std::memory_order_relaxed);
  return ((known >= 0 ? known : watch_from_environment()) & bit) != 0;
}
}  // namespace detail

// Each is a relaxed load after the first call.
inline bool verbose() noexcept {
  return detail::watches(detail::kVerbose);
}
// Somebody listens to notes: BNNS_VERBOSE is 1 or all, or there is a log callback.
inline bool notes_wanted() noexcept {
  return detail::watches(detail::kNotes);
}
inline bool nan_check_wanted() noexcept {
  return detail::watches(detail::kCheckNaN);
}

// One verbose line for one call: what, how many samples, the algorithms by name, instruction set, threads, time.
//   bnns_verbose,apply,fully_connected f32 i784 o128,batch 32,gemm/tiles,avx512,2 threads,12.3 us
// Without BNNS_VERBOSE=1 it costs a relaxed load.
class CallTimer {
 public:
  explicit CallTimer(const char* action) noexcept : action_(verbose() ? action : nullptr) {
    if (!action_) return;
    record_.emplace();
    start_ = detail::monotonic_nanoseconds();
  }
  bool active() const noexcept { return action_ != nullptr; }
  // `name` is that of the one algorithm (the operator, or what BNNSExtImplementation says); by default the first word
  // of the problem. It stands in the line where no table chose, and before the names of its parts where an operator
  // that has one algorithm is made of others: "matmul+gemm/tiles".
  void finish(const std::string& problem, size_t batch, const char* name = nullptr) const noexcept;

 private:
  const char* action_;
  std::optional<CallRecord> record_;
  int64_t start_ = 0;
};

}  // namespace bnns
