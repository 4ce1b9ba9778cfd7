// Memory runs out at every allocation of every call, one after the other.
//
// This binary replaces malloc and its relatives and pthread_create with versions that can be told to fail, and gives
// the layers an allocator that fails by the same count. A call under a fault either does its work, with the same bits,
// or says that memory ran out and has written nothing; called again, with memory, it gives the same bits.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "tests/process/every_layer.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BNNS_INTERPOSE 0  // sanitizers replace the same functions; the client's allocator fails all the same
#else
#define BNNS_INTERPOSE 1
#endif

namespace {

// Requests while armed; the one numbered `fail_at` fails, and with `all_after` those behind it.
std::atomic<bool> armed{false}, all_after{false};
std::atomic<long> requests{0}, fail_at{-1};

bool fails() {
  if (!armed.load(std::memory_order_relaxed)) return false;
  const long number = requests.fetch_add(1), at = fail_at.load();
  return at >= 0 && (number == at || (all_after.load() && number > at));
}

}  // namespace

#if BNNS_INTERPOSE
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t n, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void* malloc(size_t bytes) {
  return fails() ? nullptr : __libc_malloc(bytes);
}
void* calloc(size_t n, size_t bytes) {
  return fails() ? nullptr : __libc_calloc(n, bytes);
}
void* realloc(void* memory, size_t bytes) {
  return fails() ? nullptr : __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  if (fails()) return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return fails() ? EAGAIN : real(thread, attributes, body, argument);
}
}
#endif

namespace bnns::testing {
namespace {

int client_alloc(void** memory, size_t alignment, size_t bytes) {
  if (!BNNS_INTERPOSE && fails()) return ENOMEM;  // else posix_memalign counts it
  return posix_memalign(memory, alignment, bytes);
}

FilterOptions options() {
  FilterOptions o = {};
  o.n_threads = kTableThreads;
  o.alloc_memory = client_alloc;
  o.free_memory = std::free;
  return o;
}

class Faults {
 public:
  Faults(long at, bool onwards) {
    requests = 0, fail_at = at, all_after = onwards;
    armed = true;
  }
  ~Faults() { armed = false; }
};

::testing::AssertionResult is_out_of_memory() {
  const std::string reason = BNNSExtLastError();
  if (reason.find("out of memory") != reason.npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "the reason is: " << reason;
}

class Filter {
 public:
  explicit Filter(const Layer& layer) : options_(options()), handle_(layer.create ? layer.create(&options_) : nullptr) {
    EXPECT_EQ(handle_ != nullptr, layer.create != nullptr) << layer.name << ": " << BNNSExtLastError();
  }
  ~Filter() { BNNSFilterDestroy(handle_); }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;
  int run(const Layer::Call& call) { return call.run(handle_, &options_); }

 private:
  const FilterOptions options_;
  BNNSFilter handle_;
};

// What the outputs hold after each call, without faults. Empty: a call of the table is wrong.
std::vector<std::vector<char>> expected_outputs(Layer& layer) {
  std::vector<std::vector<char>> after;
  const std::vector<char> before = layer.written();
  Filter filter(layer);
  for (const Layer::Call& call : layer.calls) {
    const int status = filter.run(call);
    EXPECT_EQ(status, 0) << layer.name << ", " << call.name << ": " << BNNSExtLastError();
    if (status != 0) return {};
    after.push_back(layer.written());
  }
  layer.restore(before);
  return after;
}

// Call k of a fresh filter under the fault, the calls before it without one. False: the fault was beyond its requests.
bool survives(Layer& layer, size_t k, const std::vector<std::vector<char>>& after, long at, bool onwards) {
  const std::vector<char> start = layer.written();
  Filter earlier(layer), fresh(layer);
  for (size_t i = 0; i < k; ++i) EXPECT_EQ(earlier.run(layer.calls[i]), 0);
  Filter& filter = layer.keeps_state ? earlier : fresh;  // one that has no scratch yet
  const std::vector<char> before = layer.written();
  int status;
  {
    const Faults faults(at, onwards);
    status = filter.run(layer.calls[k]);
  }
  const bool reached = requests.load() > at;
  if (status != 0) {
    EXPECT_TRUE(reached) << "refused without a fault: " << BNNSExtLastError();
    EXPECT_TRUE(is_out_of_memory());
    EXPECT_TRUE(layer.written() == before) << "it failed and has written";
    layer.restore(before);
    EXPECT_EQ(filter.run(layer.calls[k]), 0) << BNNSExtLastError();
    EXPECT_TRUE(layer.written() == after[k]) << "called again it gives other bits";
  } else {
    EXPECT_TRUE(layer.written() == after[k]) << "other bits under a fault";
  }
  layer.restore(start);
  return reached;
}

void try_every_fault(const Layers& layers) {
  size_t faults = 0;
  for (const auto& layer : layers) {
    const auto after = expected_outputs(*layer);
    for (size_t k = 0; k < after.size(); ++k) {
      for (const bool onwards : {false, true}) {
        for (long at = 0; at < 200; ++at) {
          SCOPED_TRACE(layer->name + ", " + layer->calls[k].name + ", request " + std::to_string(at) +
                       (onwards ? " and those behind it fail" : " fails"));
          if (!survives(*layer, k, after, at, onwards)) break;
          ++faults;
        }
      }
    }
  }
  ::testing::Test::RecordProperty("figure", std::to_string(faults) + " failed allocations: refused or the same bits");
}

Layers made_by(void (*add)(Layers&)) {
  Layers layers;
  add(layers);
  return layers;
}

TEST(LowMemory, Products) {
  for_each_isa([] { try_every_fault(made_by(add_products)); });
}
TEST(LowMemory, Convolutions) {
  for_each_isa([] { try_every_fault(made_by(add_convolutions)); });
}
TEST(LowMemory, NormalizationsAndFused) {
  try_every_fault(made_by(add_normalizations));
}
TEST(LowMemory, Poolings) {
  Layers few, all = made_by(add_poolings);
  for (size_t i = 0; i < all.size(); i += 5) few.push_back(std::move(all[i]));  // small_stack_test runs them all
  try_every_fault(few);
}
TEST(LowMemory, Elementwise) {
  try_every_fault(made_by(add_elementwise));
}
TEST(LowMemory, Tensors) {
  try_every_fault(made_by(add_tensors));
}

// Creation under faults: a filter, or none and the reason.
TEST(LowMemory, Creation) {
  for (const auto& layer : every_layer()) {
    if (!layer->create) continue;
    const FilterOptions o = options();
    for (const bool onwards : {false, true}) {
      for (long at = 0;; ++at) {
        BNNSFilter filter;
        {
          const Faults faults(at, onwards);
          filter = layer->create(&o);
        }
        EXPECT_TRUE(filter || is_out_of_memory()) << layer->name << ": " << BNNSExtLastError();
        BNNSFilterDestroy(filter);
        if (requests.load() <= at) break;
      }
    }
  }
}

// The first parallel call of a process makes its threads. Each fault in a process of its own.
TEST(LowMemory, FirstParallelCall) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads; the plain build proves this";
#endif
  Layers layers;
  add_products(layers);
  Layer& layer = *layers[0];
  const auto after = expected_outputs(layer);
  for (const bool onwards : {false, true}) {
    bool reached = true;
    for (long at = 0; reached && at < 100; ++at) {
      const pid_t pid = fork();
      if (pid == 0) {
        alarm(20);
        bool more = false;
        for (size_t k = 0; k < layer.calls.size(); ++k) more |= survives(layer, k, after, at, onwards);
        _exit(::testing::Test::HasFailure() ? 1 : more ? 2 : 0);
      }
      int status = -1;
      ASSERT_EQ(waitpid(pid, &status, 0), pid);
      ASSERT_TRUE(WIFEXITED(status)) << "request " << at << ": the child died of signal " << WTERMSIG(status);
      ASSERT_NE(WEXITSTATUS(status), 1) << "request " << at;
      reached = WEXITSTATUS(status) == 2;
    }
    EXPECT_FALSE(reached);
  }
}

// The faults do happen: otherwise the tests above could not fail.
TEST(LowMemory, FaultsHappen) {
  const Faults faults(0, true);
  void* memory = nullptr;
  EXPECT_EQ(client_alloc(&memory, 64, 64), ENOMEM);
#if BNNS_INTERPOSE
  void* (*volatile call)(size_t) = malloc;
  EXPECT_EQ(call(10), nullptr);
#endif
}

}  // namespace
}  // namespace bnns::testing
