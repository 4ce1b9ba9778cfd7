// parallel_for on our own small pool.
//
// A task is a piece of work fixed by the problem's shape; which thread runs it is not fixed, so results never depend
// on the number of threads. Each thread begins with a share of its own, the same in every call of a shape, so that what
// it wrote in one layer is in its cache for the next; then it helps the others. The caller takes part. One call at a
// time owns the workers: a second caller that finds them busy (or a call from inside a task) runs its tasks itself, so
// many user threads neither deadlock nor oversubscribe. Workers spin briefly, then sleep. After fork the child starts
// with no workers and makes new ones.
#pragma once

#include <cstddef>
#include <type_traits>

namespace bnns {

struct Range {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
};

inline constexpr size_t kMaxThreads = 256;

// min(affinity mask, cgroup quota rounded up, online CPUs), or BNNS_NUM_THREADS; at least 1.
size_t default_threads() noexcept;
void set_default_threads(size_t threads) noexcept;  // 0 returns to the machine's number

// How many threads a call should use: n_threads from the filter parameters (0 = default), no more than there are
// tasks, and one thread per kMinThreadWork of work (in bytes touched or multiply-adds) so that tiny problems stay on
// the caller and wake nobody.
inline constexpr size_t kMinThreadWork = 64 * 1024;
size_t threads_for(size_t n_threads, size_t tasks, size_t work) noexcept;

// The tasks that thread k of a parallel_for begins with, and the share that a task lies in (threads <= tasks).
inline Range thread_share(size_t tasks, size_t threads, size_t k) {
  return {tasks * k / threads, tasks * (k + 1) / threads};
}
inline Range share_with(size_t tasks, size_t threads, size_t task) {
  return thread_share(tasks, threads, ((task + 1) * threads - 1) / tasks);
}

namespace detail {
using TaskFunction = void (*)(void* context, size_t task, size_t worker);
void run_parallel(size_t tasks, size_t threads, TaskFunction function, void* context) noexcept;
}  // namespace detail

// Runs task(i, worker) for every i in [0, tasks) on up to `threads` threads. worker < threads names the scratch slot
// that the running thread owns during the call. Tasks must not throw.
template <class Task>
void parallel_for(size_t tasks, size_t threads, Task&& task) noexcept {
  if (threads <= 1 || tasks <= 1) {
    for (size_t i = 0; i < tasks; ++i) task(i, size_t{0});
    return;
  }
  using Plain = std::remove_reference_t<Task>;
  detail::run_parallel(
      tasks, threads, [](void* context, size_t i, size_t worker) { (*static_cast<Plain*>(context))(i, worker); },
      const_cast<void*>(static_cast<const void*>(&task)));
}

}  // namespace bnns
