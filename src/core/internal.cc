#include "src/core/internal.h"

#include <cstdio>

#include "src/core/error.h"
#include "src/core/isa.h"
#include "src/core/log.h"
#include "src/core/parallel.h"

size_t bnns_internal_threads_for(size_t n_threads, size_t tasks, size_t work) noexcept {
  return bnns::threads_for(n_threads, tasks, work);
}

void bnns_internal_run_parallel(size_t tasks, size_t threads, void (*function)(void*, size_t, size_t),
                                void* context) noexcept {
  bnns::detail::run_parallel(tasks, threads, function, context);
}

int bnns_internal_isa() noexcept {
  return static_cast<int>(bnns::isa());
}

const char* bnns_internal_isa_name(int isa) noexcept {
  return bnns::isa_name(static_cast<bnns::Isa>(isa));
}

int bnns_internal_watch() noexcept {
  const int known = bnns::detail::watch.load(std::memory_order_relaxed);
  return known >= 0 ? known : bnns::detail::watch_from_environment();
}

void bnns_internal_log_message(unsigned level, const char* message) noexcept {
  bnns::log_message(static_cast<BNNSExtLogLevel>(level), message);
}

void bnns_internal_log_ignored_setting(const char* name, const char* text, const char* expected) noexcept {
  bnns::log_ignored_setting(name, text, expected);
}

uint64_t bnns_internal_start_call() noexcept {
  return bnns::recorder::next_call();
}

void bnns_internal_finish_call(const bnns::FinishedCall* call) noexcept {
  bnns::finish_call(*call);
}

void bnns_internal_report(const char* function, int kind, const char* message) noexcept {
  bnns::Error error(static_cast<bnns::ErrorKind>(kind), -1);
  std::snprintf(error.text(), bnns::Error::kTextSize, "%s", message);
  bnns::report(function, error);
}

const char* bnns_internal_last_error() noexcept {
  return bnns::last_error();
}

void bnns_internal_clear_last_error() noexcept {
  bnns::clear_last_error();
}

bool bnns_internal_skipped(const char* name) noexcept {
  return bnns::is_skipped(name);
}
