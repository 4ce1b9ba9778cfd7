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
inline constexpr int kVerbose = 1, kNotes = 2, kCheckNaN = 4, kRecord = 8;
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

// An operator's own word about a call, `if (recording()) count_work(...)`: the bytes of the arrays it reads and writes,
// and its operations (2 for a multiplication and an addition). Estimates from shapes; a cache may spare some of the
// bytes, and Winograd's algorithm some of the operations.
inline bool recording() noexcept {
  return detail::watches(detail::kRecord);
}
inline void count_work(double bytes, double operations = 0) noexcept {
  if (CallRecord* record = CallRecord::current()) record->count(bytes, operations);
}
template <class... Sizes>
constexpr double product_of(Sizes... sizes) noexcept {  // of numbers whose product may not fit into a size_t
  return (1.0 * ... * static_cast<double>(sizes));
}

// One call: its verbose line, and what BNNS_TRACE and BNNS_PROFILE keep of it (src/core/record). The line: what, how
// many samples, the algorithms by name, instruction set, threads, time.
//   bnns_verbose,apply,fully_connected f32 i784 o128,batch 32,gemm/tiles,avx512,2 threads,12.3 us
// Without these settings it costs a relaxed load.
class CallTimer {
 public:
  explicit CallTimer(const char* action) noexcept
      : action_(detail::watches(detail::kVerbose | detail::kRecord) ? action : nullptr) {
    if (!action_) return;
    record_.emplace();
    start();
  }
  bool active() const noexcept { return action_ != nullptr; }
  // The end of a call whose like was recorded before, so that its text is not made again. `problem` tells problems
  // apart: text_hash() of the text, or a number that is not 0 and goes to finish() too. False where the text is needed:
  // finish() ends the call then.
  bool finish_again(uint64_t problem, size_t batch) const noexcept;
  // `name` is that of the one algorithm (the operator, or what BNNSExtImplementation says); by default the first word
  // of the problem. It stands in the line where no table chose, and before the names of its parts where an operator
  // that has one algorithm is made of others: "matmul+gemm/tiles". `where` is the instruction set unless given.
  void finish(const std::string& problem, size_t batch, const char* name = nullptr, const char* where = nullptr,
              uint64_t hash = 0) const noexcept;

 private:
  void start() noexcept;

  const char* action_;
  std::optional<CallRecord> record_;
  int64_t start_ = 0;
};

// Never 0.
uint64_t text_hash(const char* text) noexcept;

}  // namespace bnns
