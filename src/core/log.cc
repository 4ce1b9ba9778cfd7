// Where messages go and what is printed: see log.h.

#include "src/core/log.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "src/core/isa.h"
#include "src/core/process/fork.h"
#include "src/core/record/recorder.h"

namespace bnns {

std::atomic<int> detail::watch{-1};

namespace {

enum class Printing { nothing, first_of_kind, refusals, all };
std::atomic<Printing> printing{Printing::first_of_kind};

// Callback and user pointer change together, so they share a lock; it is only taken when there is something to say. A
// child that was forked during a change has the whole pair or no callback.
ForkMutex callback_mutex;
std::atomic<BNNSExtLogCallback> callback{nullptr};
void* callback_user = nullptr;

// FNV-1a.
constexpr uint64_t kHashStart = 0xcbf29ce484222325;
uint64_t hash_byte(uint64_t hash, char byte) noexcept {
  return (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
}

// What makes two refusals one kind: the text without its numbers, so entry point, operator, field and rule. A number
// begins with a digit and takes letters along: 0x10000, 28x28x3.
uint64_t kind_of(const char* message) noexcept {
  uint64_t hash = kHashStart;
  bool in_number = false;
  for (const char* at = message; *at; ++at) {
    const bool digit = *at >= '0' && *at <= '9';
    const bool letter = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z');
    in_number = digit || (in_number && letter);
    if (!in_number) hash = hash_byte(hash, *at);
  }
  return hash | 1;  // 0 is a free slot
}

// Kinds that were printed. A program that makes more of them than this is a fuzzer, and not flooded.
constexpr size_t kKinds = 64;
std::atomic<uint64_t> kinds[kKinds];

// The position of a kind that is new, or kKinds.
size_t first_of_kind(const char* message) noexcept {
  const uint64_t kind = kind_of(message);
  for (size_t i = 0; i < kKinds; ++i) {
    uint64_t known = kinds[i].load(std::memory_order_relaxed);
    if (known == 0 && kinds[i].compare_exchange_strong(known, kind, std::memory_order_relaxed)) return i;
    if (known == kind) return kKinds;
  }
  return kKinds;
}

void print_refusal(const char* prefix, const char* message) noexcept {
  const Printing wanted = printing.load(std::memory_order_relaxed);
  if (wanted == Printing::nothing) return;
  const size_t kind = wanted == Printing::first_of_kind ? first_of_kind(message) : 1;
  if (kind == kKinds) return;
  const char* tail = "";
  if (kind == 0)
    tail = "openbnns: (the first refusal of each kind is printed; BNNS_VERBOSE=0: none, error: every one)\n";
  if (kind == kKinds - 1)
    tail = "openbnns: (further kinds of refusals are not printed; BNNS_VERBOSE=error: every one)\n";
  std::fprintf(stderr, "openbnns: %s%s\n%s", prefix, message, tail);
}

// To the callback; false if there is none.
bool call_back(BNNSExtLogLevel level, const char* message) noexcept {
  BNNSExtLogCallback target;
  void* user;
  {
    const ForkLock lock(callback_mutex);
    target = callback;
    user = callback_user;
  }
  if (target) target(level, message, user);  // outside the lock: the callback may call the library
  return target != nullptr;
}

}  // namespace

int64_t detail::monotonic_nanoseconds() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// Two threads may come here at once: both read the same, and the first one's bits stay. It alone begins to record.
int detail::watch_from_environment() noexcept {
  const char* text = std::getenv("BNNS_VERBOSE");
  Printing wanted = Printing::first_of_kind;
  bool understood = true;
  if (!text || !*text)
    wanted = Printing::first_of_kind;
  else if (std::strcmp(text, "0") == 0)
    wanted = Printing::nothing;
  else if (std::strcmp(text, "error") == 0)
    wanted = Printing::refusals;
  else if (std::strcmp(text, "1") == 0 || std::strcmp(text, "all") == 0)
    wanted = Printing::all;
  else
    understood = false;

  const char* nan_text = std::getenv("BNNS_CHECK_NAN");
  const bool nan_off = !nan_text || !*nan_text || std::strcmp(nan_text, "0") == 0;
  const bool nan_on = !nan_off && std::strcmp(nan_text, "1") == 0;
  const int bits = (wanted == Printing::all ? kVerbose | kNotes : 0) | (nan_on ? kCheckNaN : 0);
  printing.store(wanted, std::memory_order_relaxed);
  int unread = -1;
  if (!watch.compare_exchange_strong(unread, bits, std::memory_order_relaxed)) return unread;
  if (!understood) log_ignored_setting("BNNS_VERBOSE", text, "0, error, 1 or all");
  if (!nan_off && !nan_on) log_ignored_setting("BNNS_CHECK_NAN", nan_text, "0 or 1");
  if (recorder::start()) watch.fetch_or(kRecord, std::memory_order_relaxed);
  return watch.load(std::memory_order_relaxed);
}

void set_log_callback(BNNSExtLogCallback new_callback, void* user) noexcept {
  const bool all = verbose();  // the environment is read now
  const ForkLock lock(callback_mutex);
  callback.store(nullptr, std::memory_order_seq_cst);
  callback_user = user;
  callback.store(new_callback, std::memory_order_release);
  if (new_callback || all)
    detail::watch.fetch_or(detail::kNotes, std::memory_order_relaxed);
  else
    detail::watch.fetch_and(~detail::kNotes, std::memory_order_relaxed);
}

void log_message(BNNSExtLogLevel level, const char* message) noexcept {
  const bool all = verbose();
  if (call_back(level, message)) return;
  switch (level) {
    case BNNSExtLogError:
      return print_refusal("", message);
    case BNNSExtLogInfo:
      return print_refusal("not offered: ", message);
    case BNNSExtLogVerbose:
      if (all) std::fprintf(stderr, "bnns_verbose,%s\n", message);
      return;
    case BNNSExtLogNote:
      if (all) std::fprintf(stderr, "openbnns: note: %s\n", message);
      return;
  }
}

void log_finding(const char* message) noexcept {
  verbose();
  if (call_back(BNNSExtLogNote, message) || printing.load(std::memory_order_relaxed) == Printing::nothing) return;
  std::fprintf(stderr, "openbnns: note: %s\n", message);
}

void log_ignored_setting(const char* name, const char* text, const char* expected) noexcept {
  char line[256];
  std::snprintf(line, sizeof line, "%s=%.60s in the environment is ignored, expected %s", name, text, expected);
  verbose();
  if (call_back(BNNSExtLogError, line) || printing.load(std::memory_order_relaxed) == Printing::nothing) return;
  std::fprintf(stderr, "openbnns: %s\n", line);
}

uint64_t text_hash(const char* text) noexcept {
  uint64_t hash = kHashStart;
  for (; *text; ++text) hash = hash_byte(hash, *text);
  return hash | 1;
}

void CallTimer::start() noexcept {
  if (recording()) record_->set_call(recorder::next_call());
  start_ = detail::monotonic_nanoseconds();
}

bool CallTimer::finish_again(uint64_t problem, size_t batch) const noexcept {
  if (verbose()) return false;
  return recorder::add_known(
      {action_, "", nullptr, isa_name(isa()), problem, batch, &*record_, start_, detail::monotonic_nanoseconds()});
}

void CallTimer::finish(const std::string& problem, size_t batch, const char* name, const char* where,
                       uint64_t hash) const noexcept {
  finish_call({action_, problem.c_str(), name, where, hash, batch, &*record_, start_, detail::monotonic_nanoseconds()});
}

void finish_call(FinishedCall call) noexcept {
  const CallRecord& record = *call.record;
  if (!call.where) call.where = isa_name(isa());
  if (call.hash == 0) call.hash = text_hash(call.problem);
  char names[256] = "", implementation[320], line[1024];
  record.join(names, sizeof names);
  const char *name = call.name, *problem = call.problem;
  const bool chosen = record.size() != 0, of_parts = name && !std::strchr(name, '/');
  const int word = chosen && !of_parts ? 0 : static_cast<int>(name ? std::strlen(name) : std::strcspn(problem, " "));
  std::snprintf(implementation, sizeof implementation, "%.*s%s%s", word, name ? name : problem,
                word && chosen ? "+" : "", chosen ? names : "");
  if (verbose()) {
    std::snprintf(line, sizeof line, "%s,%s,batch %zu,%s,%s,%zu thread%s,%.1f us", call.action, problem, call.batch,
                  implementation, call.where, record.threads(), record.threads() == 1 ? "" : "s",
                  static_cast<double>(call.end - call.start) * 1e-3);
    log_message(BNNSExtLogVerbose, line);
  }
  if (recording()) recorder::add(call, implementation);
}

}  // namespace bnns
