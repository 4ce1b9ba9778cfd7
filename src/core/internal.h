// What libbnns_mps takes from libbnns, so that a process has one pool of threads, one log, one instruction set and one
// set of settings. libbnns.so exports these functions under a version of their own that names this very release
// (src/c_api/exports.map.in): the dynamic loader refuses a pair of libraries from two releases. They are nobody else's,
// and may change at any time. src/mps/foundation/libbnns.cc is the other side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/core/implementation.h"
#include "src/core/record/recorder.h"

#define BNNS_INTERNAL extern "C" __attribute__((visibility("default")))

// src/core/parallel.h
BNNS_INTERNAL size_t bnns_internal_threads_for(size_t n_threads, size_t tasks, size_t work) noexcept;
BNNS_INTERNAL void bnns_internal_run_parallel(size_t tasks, size_t threads,
                                              void (*function)(void* context, size_t task, size_t worker),
                                              void* context) noexcept;
// src/core/isa.h, with Isa as an int
BNNS_INTERNAL int bnns_internal_isa() noexcept;
BNNS_INTERNAL const char* bnns_internal_isa_name(int isa) noexcept;

// src/core/log.h, with BNNSExtLogLevel as an unsigned; watch: the bits of bnns::detail::watch
BNNS_INTERNAL int bnns_internal_watch() noexcept;
BNNS_INTERNAL void bnns_internal_log_message(unsigned level, const char* message) noexcept;
BNNS_INTERNAL void bnns_internal_log_ignored_setting(const char* name, const char* text, const char* expected) noexcept;
BNNS_INTERNAL uint64_t bnns_internal_start_call() noexcept;  // the call's number in the trace
BNNS_INTERNAL void bnns_internal_finish_call(const bnns::FinishedCall* call) noexcept;

// src/core/error.h; kind: ErrorKind as an int
BNNS_INTERNAL void bnns_internal_report(const char* function, int kind, const char* message) noexcept;
BNNS_INTERNAL const char* bnns_internal_last_error() noexcept;
BNNS_INTERNAL void bnns_internal_clear_last_error() noexcept;

// src/core/implementation.h. The record of the calling thread, which run_parallel writes to, is libbnns's.
BNNS_INTERNAL bool bnns_internal_skipped(const char* name) noexcept;
BNNS_INTERNAL bnns::CallRecord* bnns_internal_current_record() noexcept;
BNNS_INTERNAL void bnns_internal_set_current_record(bnns::CallRecord* record) noexcept;
