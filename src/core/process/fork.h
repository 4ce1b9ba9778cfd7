// What a forked child may rely on.
//
// fork copies the memory of all threads but only the thread that called it. A mutex that another thread held stays
// locked in the child for ever. ForkMutex remembers in which process it was locked: the child finds it free. What it
// guards may then be half-written, so lock() says so, and the caller throws that state away.
#pragma once

#include <atomic>
#include <cstdint>

namespace bnns {

// 1 in the process that loaded the library, one more in each child of a fork. A relaxed load.
uint32_t fork_generation() noexcept;

class ForkMutex {
 public:
  ForkMutex() = default;
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  // False: a thread of the parent held it at the fork, and its work on the guarded state is not finished.
  bool lock() noexcept {
    const uint32_t own = fork_generation() << 2 | kLocked;
    uint32_t seen = 0;
    if (word_.compare_exchange_strong(seen, own, std::memory_order_acquire, std::memory_order_relaxed)) return true;
    return lock_slowly(seen);
  }
  void unlock() noexcept {
    if ((word_.exchange(0, std::memory_order_release) & kStates) == kAwaited) wake();
  }

 private:
  static constexpr uint32_t kLocked = 1, kAwaited = 2, kStates = 3;  // above them: the generation that locked it
  bool lock_slowly(uint32_t seen) noexcept;
  void wake() noexcept;

  std::atomic<uint32_t> word_{0};  // 0: free
};

// Holds a ForkMutex; intact() is false where lock() was.
class ForkLock {
 public:
  explicit ForkLock(ForkMutex& mutex) noexcept : mutex_(mutex), intact_(mutex.lock()) {}
  ForkLock(const ForkLock&) = delete;
  ForkLock& operator=(const ForkLock&) = delete;
  ~ForkLock() { mutex_.unlock(); }

  bool intact() const { return intact_; }
  ForkMutex& mutex() const { return mutex_; }

 private:
  ForkMutex& mutex_;
  const bool intact_;
};

// A condition variable without a list of waiters: destroying one in a child waits for nobody.
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

// Sleeping on a word of memory, and waking sleepers. C++20's atomic wait does the same behind a process-wide table that
// fork would tear.
void futex_wait(std::atomic<uint32_t>* word, uint32_t expected) noexcept;
void futex_wake(std::atomic<uint32_t>* word, int threads = 1) noexcept;
// The same where sleepers have bits: all whose bit is among `those` wake.
void futex_wait_as(std::atomic<uint32_t>* word, uint32_t expected, uint32_t bit) noexcept;
void futex_wake_those(std::atomic<uint32_t>* word, uint32_t those) noexcept;

}  // namespace bnns
