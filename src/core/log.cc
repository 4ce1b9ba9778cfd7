#include "src/core/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "src/core/fork.h"
#include "src/core/isa.h"

namespace bnns {
namespace {

std::atomic<int> verbose_level{-1};  // -1 until BNNS_VERBOSE was read

int level_from_environment() noexcept {
  const char* text = std::getenv("BNNS_VERBOSE");
  const int level = text ? std::atoi(text) : 0;
  verbose_level.store(level, std::memory_order_relaxed);
  return level;
}

int level() noexcept {
  const int known = verbose_level.load(std::memory_order_relaxed);
  return known >= 0 ? known : level_from_environment();
}

// Callback and user pointer change together, so they share a lock; it is only taken when there is something to say. A
// child that was forked during a change has the whole pair or no callback.
ForkMutex callback_mutex;
std::atomic<BNNSExtLogCallback> callback{nullptr};
void* callback_user = nullptr;

}  // namespace

void set_log_callback(BNNSExtLogCallback new_callback, void* user) noexcept {
  const ForkLock lock(callback_mutex);
  callback.store(nullptr, std::memory_order_seq_cst);
  callback_user = user;
  callback.store(new_callback, std::memory_order_release);
}

bool verbose() noexcept {
  return level() > 0;
}

void log_message(BNNSExtLogLevel message_level, const char* message) noexcept {
  BNNSExtLogCallback target;
  void* user;
  {
    const ForkLock lock(callback_mutex);
    target = callback;
    user = callback_user;
  }
  if (target) target(message_level, message, user);  // outside the lock: the callback may call the library
  if (level() <= 0) return;
  switch (message_level) {
    case BNNSExtLogError:
      std::fprintf(stderr, "bnns_verbose,error,%s\n", message);
      break;
    case BNNSExtLogInfo:
      std::fprintf(stderr, "bnns_verbose,unsupported,%s\n", message);
      break;
    case BNNSExtLogVerbose:
      std::fprintf(stderr, "bnns_verbose,%s\n", message);
      break;
  }
}

void log_ignored_setting(const char* name, const char* text, const char* expected) noexcept {
  char line[256];
  std::snprintf(line, sizeof line, "%s=%.60s in the environment is ignored, expected %s", name, text, expected);
  log_message(BNNSExtLogError, line);
}

void CallTimer::finish(const std::string& problem, size_t batch) const noexcept {
  const auto elapsed = std::chrono::steady_clock::now() - start_;
  const double microseconds = std::chrono::duration<double, std::micro>(elapsed).count();
  char line[512];
  std::snprintf(line, sizeof line, "%s,%s,batch %zu,%s,%.1f us", action_, problem.c_str(), batch, isa_name(isa()),
                microseconds);
  log_message(BNNSExtLogVerbose, line);
}

}  // namespace bnns
