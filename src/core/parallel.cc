#include "src/core/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "src/core/float_mode.h"
#include "src/core/log.h"
#include "src/core/process/blocked_signals.h"
#include "src/core/process/cgroup.h"
#include "src/core/process/fork.h"
#include "src/core/record/recorder.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bnns {
namespace {

size_t machine_threads() noexcept {
  // The second is what programs written for Accelerate set.
  for (const char* name : {"BNNS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"}) {
    const char* text = std::getenv(name);
    if (!text) continue;
    char* end = nullptr;
    const long wanted = std::strtol(text, &end, 10);
    if (wanted > 0 && *end == '\0') return std::min<size_t>(static_cast<size_t>(wanted), kMaxThreads);
    log_ignored_setting(name, text, "a number of threads, 1 or more");
  }
  size_t count = static_cast<size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) count = std::min<size_t>(count, std::max(1, CPU_COUNT(&mask)));
  if (const size_t quota = cgroup_threads()) count = std::min(count, quota);
  return std::clamp<size_t>(count, 1, kMaxThreads);
}

std::atomic<size_t> default_thread_count{0};  // 0: not asked yet

inline void cpu_relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A turn of a loop that waits for another thread. Where a thread waits for this CPU, perhaps the very one that is
// awaited, it gets it soon: sched_yield takes a third of a microsecond when nobody does.
inline void wait_a_turn(int turn) {
  turn % 64 == 63 ? static_cast<void>(sched_yield()) : cpu_relax();
}

bool start_thread(pthread_t* thread, void* (*body)(void*), void* argument) noexcept {
  const BlockedSignals blocked;
  return pthread_create(thread, nullptr, body, argument) == 0;
}

// Keeps a sleeping worker off the CPU of the thread that is about to wake it. Schedulers like to wake a thread where
// its waker runs; there it would wait until the caller has done all of the work alone. Only the caller's CPU is
// excluded, and only among those that the worker may use anyway: the rest is left to the scheduler.
class Placement {
 public:
  void keep_away_from_caller(pthread_t worker) noexcept {
    const int cpu = sched_getcpu();
    if (cpu < 0 || cpu >= CPU_SETSIZE || cpu == avoided_) return;
    cpu_set_t now;
    if (pthread_getaffinity_np(worker, sizeof now, &now) != 0) return;
    if (avoided_ < 0 || !CPU_EQUAL(&now, &set_)) allowed_ = now;  // first time, or somebody else changed it
    set_ = allowed_;
    CPU_CLR(cpu, &set_);
    if (CPU_COUNT(&set_) == 0) set_ = allowed_;
    if (pthread_setaffinity_np(worker, sizeof set_, &set_) == 0) avoided_ = cpu;
  }

 private:
  int avoided_ = -1;
  cpu_set_t allowed_, set_;  // what the worker may use; what was set
};

struct Job {
  detail::TaskFunction function = nullptr;
  void* context = nullptr;
  size_t tasks = 0, threads = 1;  // threads: those that take part, set by Pool::run
  uint64_t call = 0;              // in the trace, or 0
};

// The tasks that a thread begins with: the same ones in every call of the same shape, so that what it wrote in one
// layer, and keeps in its own cache, it also reads in the next.
struct alignas(64) Share {
  std::atomic<size_t> next{0};
  size_t end = 0;
};

// Nobody waits for a thread that has not come: the caller offers the call to the workers it wants, one word each,
// works, and withdraws the offer from those that were still asleep or waiting for a CPU when the last task was taken.
// So a short loop is never longer than on one thread by more than the offers, and job_ does not change under a worker
// that reads it.
class Pool {
 public:
  // Runs the job with up to `threads` threads, or returns false when another caller owns the workers.
  bool run(const Job& job, size_t threads) noexcept {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    const size_t helpers = std::min(grow(threads - 1), threads - 1);
    job_ = job;
    job_.threads = helpers + 1;
    for (size_t i = 0; i <= helpers; ++i) {
      const Range share = thread_share(job.tasks, job_.threads, i);
      shares_[i].next.store(share.begin, std::memory_order_relaxed);
      shares_[i].end = share.end;
    }
    offer(helpers);
    work(0);
    for (size_t i = 0; i < helpers; ++i) await(workers_[i]);
    busy_.store(false, std::memory_order_release);
    return true;
  }

  bool is_ours() const noexcept { return generation_ == fork_generation(); }

  // Ends the workers. False when a caller is inside run: the pool must then be left alone.
  bool stop() noexcept {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    stopping_.store(true, std::memory_order_relaxed);
    offer(worker_count_);
    for (size_t i = 0; i < worker_count_; ++i) pthread_join(workers_[i].thread, nullptr);
    return true;
  }

 private:
  enum Part : uint32_t { none, offered, taken };  // a worker's, in the present call
  struct Worker {
    alignas(64) std::atomic<uint32_t> part{none};
    std::atomic<bool> asleep{false};
    Placement placement;
    pthread_t thread;
    Pool* pool;
  };

  // Some 80 to 150 microseconds: what waking a thread costs, and more than the gap between two parallel loops of a
  // training step.
  static constexpr int kTurns = 4000;
  // With so few helpers the scheduler's choice of a CPU decides whether there is a second thread at all; of many it
  // places some well, and each placement is a system call.
  static constexpr size_t kPlacedHelpers = 3;

  static uint32_t bit(size_t slot) noexcept { return uint32_t{1} << slot % 32; }

  // All words first: workers that spin begin before the system call, and one call wakes all those that sleep.
  void offer(size_t helpers) noexcept {
    for (size_t i = 0; i < helpers; ++i) workers_[i].part.store(offered, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    uint32_t sleepers = 0;
    for (size_t i = 0; i < helpers; ++i) {
      if (!workers_[i].asleep.load(std::memory_order_relaxed)) continue;
      if (helpers <= kPlacedHelpers) workers_[i].placement.keep_away_from_caller(workers_[i].thread);
      sleepers |= bit(i);
    }
    if (sleepers == 0) return;
    wakes_.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_those(&wakes_, sleepers);
  }

  void await(Worker& worker) noexcept {
    uint32_t part = worker.part.load(std::memory_order_acquire);
    if (part == offered && worker.part.compare_exchange_strong(part, none, std::memory_order_acquire)) return;
    for (int turn = 0; worker.part.load(std::memory_order_acquire) == taken; ++turn) wait_a_turn(turn);
  }

  // First the thread's own share, then what others have left of theirs: cores are not equally fast. A share is looked
  // at before a task is taken: threads that only read a line do not take it from each other.
  void work(size_t slot) noexcept {
    for (size_t i = 0; i < job_.threads; ++i) {
      const size_t other = slot + i;
      Share& share = shares_[other < job_.threads ? other : other - job_.threads];
      while (share.next.load(std::memory_order_relaxed) < share.end) {
        const size_t task = share.next.fetch_add(1, std::memory_order_relaxed);
        if (task >= share.end) break;
        job_.function(job_.context, task, slot);
      }
    }
  }

  // As many workers as the system gives: fewer threads, same results. pthread_create and not std::thread, which also
  // takes memory of its own and throws when there is none.
  size_t grow(size_t wanted) noexcept {
    while (worker_count_ < std::min(wanted, kMaxThreads - 1)) {
      Worker& worker = workers_[worker_count_];
      worker.pool = this;
      const auto body = [](void* argument) -> void* {
        Worker* self = static_cast<Worker*>(argument);
        self->pool->loop(static_cast<size_t>(self - self->pool->workers_));
        return nullptr;
      };
      if (!start_thread(&worker.thread, body, &worker)) break;
      ++worker_count_;
    }
    return worker_count_;
  }

  void loop(size_t slot) noexcept {
    const FloatMode mode;  // as in guarded(): the same bits, whoever runs a task
    Worker& self = workers_[slot];
    for (;;) {
      for (int turn = 0; self.part.load(std::memory_order_acquire) != offered; ++turn) {
        if (turn < kTurns) {
          wait_a_turn(turn);
          continue;
        }
        // The caller offers and then looks who sleeps; here it is the other way round, so one of the two sees the
        // other.
        self.asleep.store(true, std::memory_order_seq_cst);
        const uint32_t wakes = wakes_.load(std::memory_order_seq_cst);
        if (self.part.load(std::memory_order_seq_cst) != offered) futex_wait_as(&wakes_, wakes, bit(slot));
        self.asleep.store(false, std::memory_order_relaxed);
        turn = 0;
      }
      uint32_t part = offered;
      if (!self.part.compare_exchange_strong(part, taken, std::memory_order_acquire)) continue;
      if (stopping_.load(std::memory_order_relaxed)) return;
      const uint64_t call = job_.call;
      const int64_t start = call ? detail::monotonic_nanoseconds() : 0;
      work(slot + 1);
      if (call) recorder::add_part(slot, call, start, detail::monotonic_nanoseconds());
      self.part.store(none, std::memory_order_release);
    }
  }

  const uint32_t generation_ = fork_generation();
  std::atomic<bool> busy_{false}, stopping_{false};
  alignas(64) std::atomic<uint32_t> wakes_{0};
  Job job_;
  size_t worker_count_ = 0;
  Share shares_[kMaxThreads];
  Worker workers_[kMaxThreads - 1];
};

std::atomic<Pool*> the_pool{nullptr};

// The child of a fork has none of the workers, and the pool may have been copied mid-call: it starts afresh and leaks
// the copy.
Pool* pool() noexcept {
  Pool* existing = the_pool.load(std::memory_order_acquire);
  if (existing && existing->is_ours()) return existing;
  Pool* fresh = new (std::nothrow) Pool;
  if (fresh && !the_pool.compare_exchange_strong(existing, fresh, std::memory_order_acq_rel)) {
    delete fresh;
    return existing;
  }
  return fresh;
}

// Runs at exit and at dlclose, so that no worker outlives the library's code.
[[gnu::destructor]] void end_pool() noexcept {
  Pool* existing = the_pool.exchange(nullptr, std::memory_order_acq_rel);
  if (existing && existing->is_ours() && existing->stop()) delete existing;
}

}  // namespace

size_t default_threads() noexcept {
  if (const size_t count = default_thread_count.load(std::memory_order_relaxed)) return count;
  const size_t count = machine_threads();
  default_thread_count.store(count, std::memory_order_relaxed);
  return count;
}

void set_default_threads(size_t threads) noexcept {
  default_thread_count.store(std::min(threads, kMaxThreads), std::memory_order_relaxed);
}

size_t threads_for(size_t n_threads, size_t tasks, size_t work) noexcept {
  const size_t wanted = n_threads ? std::min(n_threads, kMaxThreads) : default_threads();
  return std::max<size_t>(1, std::min({wanted, tasks, work / kMinThreadWork}));
}

void detail::run_parallel(size_t tasks, size_t threads, TaskFunction function, void* context) noexcept {
  threads = std::min(threads, tasks);
  Pool* workers = pool();
  CallRecord* record = CallRecord::current();
  if (workers && workers->run({function, context, tasks, 1, record ? record->call() : 0}, threads)) {
    if (record) record->use_threads(threads);
    return;
  }
  for (size_t i = 0; i < tasks; ++i) function(context, i, 0);
}

}  // namespace bnns
