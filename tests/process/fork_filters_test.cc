// A child that is forked while other threads of the parent train its filters: it can use all of them.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/process/every_layer.h"

namespace bnns::testing {
namespace {

constexpr int kForks = 20;
constexpr unsigned kSeconds = 20;  // a child that waits for a thread that does not exist would wait for ever

// A thread of the parent calls the filter all the time; children run all of its calls once.
void fork_while_training(Layer& layer, Layer& own) {
  FilterOptions options = {};
  options.n_threads = 2;
  BNNSFilter filter = layer.create ? layer.create(&options) : nullptr;
  std::atomic<bool> stop{false};
  std::atomic<int> rounds{0};
  std::thread training([&] {
    for (; !stop; ++rounds) {
      for (const Layer::Call& call : layer.calls) EXPECT_EQ(call.run(filter, &options), 0) << BNNSExtLastError();
    }
  });
  while (rounds < 2) std::this_thread::yield();
  for (int child = 0; child < kForks; ++child) {
    usleep(static_cast<useconds_t>(100 * child));
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(kSeconds);
      int failed = 0;
      // What the parent's thread was doing is not finished here; a gradient may say so. The second round is whole.
      for (const bool first : {true, false}) {
        for (const Layer::Call& call : layer.calls) failed += call.run(filter, &options) != 0 && !first;
      }
      for (const Layer::Call& call : own.calls) failed += call.run(filter, &options) != 0;
      BNNSFilterDestroy(filter);
      _exit(failed);
    }
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFEXITED(status)) << layer.name << ": child " << child << " died of signal " << WTERMSIG(status);
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 0, 0) << layer.name << ": child " << child;
    if (!WIFEXITED(status)) break;  // each such child takes kSeconds
  }
  stop = true;
  training.join();
  BNNSFilterDestroy(filter);
}

TEST(Fork, FiltersInTraining) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads; the plain and ASan builds prove this";
#endif
  Layers layers;
  add_normalizations(layers);
  add_elementwise(layers);
  const char* wanted[] = {"normalization batch", "normalization layer", "fused 3x3 and batch",
                          "fused fully connected and batch", "dropout"};
  size_t found = 0;
  Layer none("");
  for (const auto& layer : layers) {
    for (const char* name : wanted) {
      if (layer->name == name) fork_while_training(*layer, none), ++found;
    }
  }
  EXPECT_EQ(found, std::size(wanted));
}

// Moving statistics are read without a lock; the child must not wait for the end of an update that it was copied in.
TEST(Fork, InferenceDuringUpdates) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads; the plain and ASan builds prove this";
#endif
  constexpr size_t C = 4000;  // nearly all of a training pass is the update
  std::vector<float> x(2 * C, 1), y(2 * C), mean(C, 0), variance(C, 1);
  BNNSLayerParametersNormalization p = {};
  p.i_desc = p.o_desc = vector_descriptor(C, nullptr);
  p.moving_mean_desc = vector_descriptor(C, mean.data());
  p.moving_variance_desc = vector_descriptor(C, variance.data());
  p.momentum = 0.9f, p.epsilon = 1e-3f;
  Layer layer("inference during updates"), child("");
  layer.create = [&](const FilterOptions* o) { return BNNSFilterCreateLayerNormalization(BNNSBatchNorm, &p, o); };
  layer.call("training", [&](BNNSFilter f, const FilterOptions*) {
    return BNNSNormalizationFilterApplyBatch(f, 2, x.data(), C, y.data(), C, true);
  });
  child.call("inference", [&](BNNSFilter f, const FilterOptions*) {
    return BNNSNormalizationFilterApplyBatch(f, 2, x.data(), C, y.data(), C, false);
  });
  fork_while_training(layer, child);
}

// The generator and the log callback have locks of their own.
TEST(Fork, GeneratorAndCallback) {
  Layer layer("generator"), none("");
  BNNSRandomGenerator g = BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, 3, nullptr);
  ASSERT_NE(g, nullptr);
  std::vector<float> data(8);
  const Array to = vector_descriptor(8, data.data());
  std::vector<uint8_t> state(BNNSRandomGeneratorStateSize(g));
  layer.call("fill", [&](BNNSFilter, const FilterOptions*) {
    Array d = to;
    BNNSExtSetLogCallback([](BNNSExtLogLevel, const char*, void*) {}, nullptr);
    BNNSFilterApply(nullptr, data.data(), data.data());  // refused, so that there is something to say
    return BNNSRandomFillUniformFloat(g, &d, 0, 1) | BNNSRandomGeneratorGetState(g, state.size(), state.data()) |
           BNNSRandomGeneratorSetState(g, state.size(), state.data());
  });
  fork_while_training(layer, none);
  BNNSExtSetLogCallback(nullptr, nullptr);
  BNNSDestroyRandomGenerator(g);
}

}  // namespace
}  // namespace bnns::testing
