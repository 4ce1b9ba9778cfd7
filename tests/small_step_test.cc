// A training step at batch 1 is arithmetic and nothing else: no allocation, no lock, no thread.
//
// This binary replaces malloc, posix_memalign, pthread_mutex_lock and syscall with counting versions (the C library
// finds ours first), so a step that called any of them would be seen.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <filesystem>

#include "bench/network.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BNNS_INTERPOSE 0  // sanitizers replace the same functions
#else
#define BNNS_INTERPOSE 1
#endif

namespace {
std::atomic<size_t> allocations{0}, locks{0}, system_calls{0};
}

#if BNNS_INTERPOSE
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void* malloc(size_t bytes) {
  ++allocations;
  return __libc_malloc(bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  ++allocations;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : 12;
}
int pthread_mutex_lock(pthread_mutex_t* mutex) {
  ++locks;
  static const auto real = reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  return real(mutex);
}
long syscall(long number, ...) {  // the pool's futex calls, and nothing else in this process
  ++system_calls;
  __builtin_va_list arguments;
  __builtin_va_start(arguments, number);
  long a[6];
  for (long& value : a) value = __builtin_va_arg(arguments, long);
  __builtin_va_end(arguments);
  static const auto real = reinterpret_cast<long (*)(long, ...)>(dlsym(RTLD_NEXT, "syscall"));
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
}
#endif

namespace bnns {
namespace {

size_t threads_of_process() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

// 784-128-10 at batch 1, always on the same picture.
class Mlp {
 public:
  explicit Mlp(bench::Optimizer optimizer) : network_(parameters_, 1, optimizer) {
    network_.loss(network_.full(network_.full(network_.input(784), 128, true), 10, false));
  }
  float step() { return network_.step(x_.data(), labels_.data()); }

 private:
  const std::vector<float> x_ = std::vector<float>(784, 0.5f), labels_{0, 0, 0, 1, 0, 0, 0, 0, 0, 0};
  bench::Data parameters_;
  bench::Network network_;
};

TEST(SmallStep, AllocatesNothingLocksNothingWakesNobody) {
  if (!BNNS_INTERPOSE) GTEST_SKIP() << "a sanitizer has replaced malloc; the plain build proves this";
  for (auto optimizer : {bench::Optimizer::sgd, bench::Optimizer::adam}) {
    Mlp mlp(optimizer);
    for (int i = 0; i < 3; ++i) mlp.step();  // the scratch shelves settle: blocks grow until each fits every lease
    const size_t threads = threads_of_process();
    allocations = locks = system_calls = 0;
    for (int i = 0; i < 100; ++i) mlp.step();
    EXPECT_EQ(allocations.load(), 0u);
    EXPECT_EQ(locks.load(), 0u);
    EXPECT_EQ(system_calls.load(), 0u);
    EXPECT_EQ(threads_of_process(), threads);
  }
}

// The counters do count: otherwise the test above could not fail.
TEST(SmallStep, CountersSee) {
  if (!BNNS_INTERPOSE) GTEST_SKIP() << "a sanitizer has replaced malloc; the plain build proves this";
  allocations = locks = 0;
  void* volatile memory = malloc(10);
  free(memory);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  EXPECT_EQ(allocations.load(), 1u);
  EXPECT_EQ(locks.load(), 1u);
}

TEST(SmallStep, LossFalls) {
  Mlp mlp(bench::Optimizer::sgd);
  const float first = mlp.step();
  float last = first;
  for (int i = 0; i < 50; ++i) last = mlp.step();
  EXPECT_LT(last, 0.5f * first);
}

}  // namespace
}  // namespace bnns
