#include "src/core/process/fork.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace bnns {
namespace {

std::atomic<uint32_t> generation{1};

// At load, when there is one thread and memory: a handler that is registered late misses forks, or is itself torn by
// one.
[[gnu::constructor]] void count_forks() noexcept {
  pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
}

}  // namespace

uint32_t fork_generation() noexcept {
  return generation.load(std::memory_order_relaxed);
}

void futex_wait(std::atomic<uint32_t>* word, uint32_t expected) noexcept {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>* word, int threads) noexcept {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, threads, nullptr, nullptr, 0);
}

void futex_wait_as(std::atomic<uint32_t>* word, uint32_t expected, uint32_t bit) noexcept {
  syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, nullptr, nullptr, bit);
}

void futex_wake_those(std::atomic<uint32_t>* word, uint32_t those) noexcept {
  syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, nullptr, nullptr, those);
}

// A thread that had to wait takes the lock as awaited: others may still sleep, and its unlock must wake one of them.
bool ForkMutex::lock_slowly(uint32_t seen) noexcept {
  const uint32_t ours = fork_generation() << 2;
  for (;;) {
    const bool abandoned = seen != 0 && (seen & ~kStates) != ours;
    if (seen == 0 || abandoned) {
      if (word_.compare_exchange_weak(seen, ours | kAwaited, std::memory_order_acquire, std::memory_order_relaxed)) {
        return !abandoned;
      }
    } else if (seen == (ours | kAwaited) ||
               word_.compare_exchange_weak(seen, ours | kAwaited, std::memory_order_relaxed)) {
      futex_wait(&word_, ours | kAwaited);
      seen = word_.load(std::memory_order_relaxed);
    }
  }
}

void ForkMutex::wake() noexcept {
  futex_wake(&word_);
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

}  // namespace bnns
