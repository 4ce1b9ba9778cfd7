// Locks that a forked child can use.
//
// fork copies memory but only the calling thread. A std::mutex that another thread held stays locked in the child for
// ever, and destroying a std::condition_variable waits for threads that are not there. These two hold a number of the
// process instead: a lock taken before the fork counts as free in the child, and a condition keeps no list of waiters.
// What a lock guards may be half changed at the fork: lock() says so, and the owner starts its data afresh.
#pragma once

#include <atomic>
#include <cstdint>

namespace bnns::mps {

// 0 in the process that loaded the library, one more in each child.
uint32_t fork_generation() noexcept;

class ForkMutex {
 public:
  // True: another thread held the lock when this process was forked off.
  bool lock() noexcept {
    const uint32_t held = (fork_generation() << 2) | kHeld;
    uint32_t seen = kFree;
    if (word_.compare_exchange_strong(seen, held, std::memory_order_acquire, std::memory_order_relaxed)) return false;
    return lock_slowly(seen);
  }
  void unlock() noexcept {
    if ((word_.exchange(kFree, std::memory_order_release) & 3) == kAwaited) wake();
  }

 private:
  static constexpr uint32_t kFree = 0, kHeld = 1, kAwaited = 2;  // the low bits; above them the generation
  bool lock_slowly(uint32_t seen) noexcept;
  void wake() noexcept;

  std::atomic<uint32_t> word_{kFree};
};

// std::lock_guard that tells whether the guarded data may be half changed.
class ForkLock {
 public:
  explicit ForkLock(ForkMutex& mutex) noexcept : mutex_(mutex), torn_(mutex.lock()) {}
  ~ForkLock() { mutex_.unlock(); }
  ForkLock(const ForkLock&) = delete;
  ForkLock& operator=(const ForkLock&) = delete;
  bool torn() const noexcept { return torn_; }
  ForkMutex& mutex() const noexcept { return mutex_; }

 private:
  ForkMutex& mutex_;
  bool torn_;
};

class ForkCondition {
 public:
  // The lock is released while the thread sleeps.
  template <class Ready>
  void wait(const ForkLock& lock, Ready&& ready) {
    while (!ready()) sleep(lock.mutex());
  }
  void notify_all() noexcept;

 private:
  void sleep(ForkMutex& mutex) noexcept;

  std::atomic<uint32_t> changes_{0}, sleepers_{0};
};

}  // namespace bnns::mps
