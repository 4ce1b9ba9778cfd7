#include "src/mps/fork_lock.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace bnns::mps {
namespace {

std::atomic<uint32_t> generation{0};

// 30 bits, as ForkMutex has them; a lock would have to be held through 2^30 nested forks to be taken for a new one.
[[maybe_unused]] const int registered = pthread_atfork(nullptr, nullptr, [] {
  generation.store((generation.load(std::memory_order_relaxed) + 1) & 0x3FFFFFFF, std::memory_order_relaxed);
});

void futex_wait(std::atomic<uint32_t>* word, uint32_t expected) noexcept {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>* word, int threads) noexcept {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

}  // namespace

uint32_t fork_generation() noexcept {
  return generation.load(std::memory_order_relaxed);
}

bool ForkMutex::lock_slowly(uint32_t seen) noexcept {
  const uint32_t mine = fork_generation();
  const uint32_t held = (mine << 2) | kHeld, awaited = (mine << 2) | kAwaited;
  // A thread that has slept takes the lock as awaited: it cannot know whether others sleep too.
  for (uint32_t wanted = held;;) {
    const bool stale = seen != kFree && (seen >> 2) != mine;
    if (seen == kFree || stale) {
      if (word_.compare_exchange_weak(seen, wanted, std::memory_order_acquire, std::memory_order_relaxed)) return stale;
      continue;
    }
    if (seen == held &&
        !word_.compare_exchange_weak(seen, awaited, std::memory_order_relaxed, std::memory_order_relaxed)) {
      continue;
    }
    wanted = awaited;
    futex_wait(&word_, awaited);
    seen = word_.load(std::memory_order_relaxed);
  }
}

void ForkMutex::wake() noexcept {
  futex_wake(&word_, 1);
}

void ForkCondition::sleep(ForkMutex& mutex) noexcept {
  // Both under the lock: who changes the state afterwards, under the same lock, sees the sleeper.
  sleepers_.fetch_add(1, std::memory_order_relaxed);
  const uint32_t before = changes_.load(std::memory_order_relaxed);
  mutex.unlock();
  futex_wait(&changes_, before);
  mutex.lock();
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void ForkCondition::notify_all() noexcept {
  changes_.fetch_add(1, std::memory_order_relaxed);
  if (sleepers_.load(std::memory_order_relaxed) != 0) futex_wake(&changes_, INT_MAX);
}

}  // namespace bnns::mps
