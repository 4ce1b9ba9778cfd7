// Ctrl-C as a request: what runs finishes its step and reports. A second Ctrl-C ends the process.
#pragma once

#include <atomic>
#include <csignal>

namespace bnns::tool {

// SIGINT sets interrupted() while an object lives; one object at a time.
class InterruptGuard {
 public:
  InterruptGuard() {
    flag().store(false);
    struct sigaction action {};
    action.sa_handler = [](int) { flag().store(true); };
    action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_);
    if (before_.sa_handler == SIG_IGN) sigaction(SIGINT, &before_, nullptr);  // who started us wants none (nohup, &)
  }
  ~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  const std::atomic<bool>& interrupted() const { return flag(); }

 private:
  static std::atomic<bool>& flag() {
    static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler stores it");
    static constinit std::atomic<bool> seen{false};
    return seen;
  }
  struct sigaction before_ {};
};

}  // namespace bnns::tool
