// The parts of src/core that a process has once, from libbnns (src/core/internal.h): pool, instruction set, log, last
// error, names to leave out. This file is in libbnns_mps only; programs that have both libraries' objects, as the tests
// do, call src/core itself.
#include <chrono>
#include <string>

#include "src/core/error.h"
#include "src/core/internal.h"
#include "src/core/isa.h"
#include "src/core/log.h"
#include "src/core/parallel.h"

namespace bnns {

// These three stay -1, "not known yet", so that the inline functions which read them ask libbnns every time.
std::atomic<int> detail::chosen_isa{-1};
std::atomic<int> detail::watch{-1};
std::atomic<int> detail::skips{-1};

int detail::detect_isa() noexcept {
  return bnns_internal_isa();
}

int detail::watch_from_environment() noexcept {
  return bnns_internal_watch();
}

bool detail::skipped(const char* name) noexcept {
  return bnns_internal_skipped(name);
}

size_t threads_for(size_t n_threads, size_t tasks, size_t work) noexcept {
  return bnns_internal_threads_for(n_threads, tasks, work);
}

void detail::run_parallel(size_t tasks, size_t threads, TaskFunction function, void* context) noexcept {
  bnns_internal_run_parallel(tasks, threads, function, context);
}

const char* isa_name(Isa isa) noexcept {
  return bnns_internal_isa_name(static_cast<int>(isa));
}

void log_message(BNNSExtLogLevel level, const char* message) noexcept {
  bnns_internal_log_message(level, message);
}

void log_ignored_setting(const char* name, const char* text, const char* expected) noexcept {
  bnns_internal_log_ignored_setting(name, text, expected);
}

void report(const char* function, const Error& error) noexcept {
  bnns_internal_report(function, static_cast<int>(error.kind()), error.what());
}

void report_out_of_memory(const char* function) noexcept {
  bnns_internal_report(function, static_cast<int>(ErrorKind::out_of_memory), "out of memory");
}

const char* last_error() noexcept {
  return bnns_internal_last_error();
}

void clear_last_error() noexcept {
  bnns_internal_clear_last_error();
}

void CallTimer::start() noexcept {
  record_->set_call(bnns_internal_start_call());
  start_ = detail::monotonic_nanoseconds();
}

void CallTimer::finish(const std::string& problem, size_t batch, const char* name, const char* where,
                       uint64_t hash) const noexcept {
  const int64_t end = detail::monotonic_nanoseconds();
  const FinishedCall call{action_, problem.c_str(), name, where, hash, batch, &*record_, start_, end};
  bnns_internal_finish_call(&call);
}

int64_t detail::monotonic_nanoseconds() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

CallRecord::CallRecord() noexcept : before_(bnns_internal_current_record()) {
  bnns_internal_set_current_record(this);
}

CallRecord::~CallRecord() {
  bnns_internal_set_current_record(before_);
}

CallRecord* CallRecord::current() noexcept {
  return bnns_internal_current_record();
}

}  // namespace bnns
