// Every call of the table on a thread that has 48 KiB of stack, on each instruction set: more meets the guard page. The
// library starts no thread here, so that the caller's stack is the one that the kernels use.

#include <gtest/gtest.h>
#include <limits.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

constexpr size_t kStack = 48 * 1024;
// What a thread has on its stack before it runs a line of ours: its descriptor, thread-local memory, the start.
constexpr size_t kThreadItself = 8 * 1024;

class SmallStack {
 public:
  SmallStack() : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))), bytes_(kStack + kThreadItself) {
    memory_ = static_cast<char*>(
        mmap(nullptr, bytes_ + page_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0));
    if (memory_ == MAP_FAILED || mprotect(memory_, page_, PROT_NONE) != 0) throw std::bad_alloc();
    std::memset(memory_ + page_, kPattern, bytes_);
  }
  ~SmallStack() { munmap(memory_, bytes_ + page_); }
  SmallStack(const SmallStack&) = delete;
  SmallStack& operator=(const SmallStack&) = delete;

  bool run(void* (*body)(void*), void* argument) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_t thread;
    const bool started = pthread_attr_setstack(&attributes, memory_ + page_, bytes_) == 0 &&
                         pthread_create(&thread, &attributes, body, argument) == 0;
    pthread_attr_destroy(&attributes);
    if (started) pthread_join(thread, nullptr);
    return started;
  }
  size_t used() const {
    size_t untouched = 0;
    while (untouched < bytes_ && memory_[page_ + untouched] == kPattern) ++untouched;
    return bytes_ - untouched;
  }
  void clean() { std::memset(memory_ + page_, kPattern, bytes_); }

 private:
  static constexpr char kPattern = 0x6b;
  size_t page_, bytes_;
  char* memory_;
};

struct Work {
  Layer* layer;
  std::string failed;
};

void* run_calls(void* argument) {
  Work& work = *static_cast<Work*>(argument);
  FilterOptions options = {};
  options.n_threads = 1;
  BNNSFilter filter = work.layer->create ? work.layer->create(&options) : nullptr;
  for (const Layer::Call& call : work.layer->calls) {
    if (call.run(filter, &options) != 0) work.failed = call.name + ": " + BNNSExtLastError();
  }
  BNNSFilterDestroy(filter);
  return nullptr;
}

void run_on_small_stacks(void (*add)(Layers&)) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers widen every frame; the plain build proves this";
#endif
  Layers layers;
  add(layers);
  SmallStack stack;
  size_t most = 0;
  std::string which;
  for_each_isa([&] {
    for (const auto& layer : layers) {
      SCOPED_TRACE(layer->name);
      const std::vector<char> before = layer->written();
      Work work{layer.get(), ""};
      stack.clean();
      ASSERT_TRUE(stack.run(run_calls, &work));
      EXPECT_EQ(work.failed, "");
      if (stack.used() > most) most = stack.used(), which = std::string(isa_name(isa())) + ", " + layer->name;
      layer->restore(before);
    }
  });
  ::testing::Test::RecordProperty("most", std::to_string(most) + " bytes, " + which);
}

TEST(SmallStack, Poolings) {
  run_on_small_stacks(add_poolings);
}
TEST(SmallStack, NormalizationsAndFused) {
  run_on_small_stacks(add_normalizations);
}
TEST(SmallStack, Convolutions) {
  run_on_small_stacks(add_convolutions);
}
TEST(SmallStack, Products) {
  run_on_small_stacks(add_products);
}
TEST(SmallStack, Elementwise) {
  run_on_small_stacks(add_elementwise);
}
TEST(SmallStack, Tensors) {
  run_on_small_stacks(add_tensors);
}

}  // namespace
}  // namespace bnns::testing
