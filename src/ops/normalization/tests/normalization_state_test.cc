// What a normalization filter keeps between calls: memory, threads, parameters of the client.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "src/ops/normalization/tests/normalization_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

struct Accountant {
  static inline std::atomic<int> live{0}, requests{0}, until_failure{-1};
  static inline std::atomic<size_t> bytes{0};
  static int alloc(void** memory, size_t alignment, size_t size) {
    ++requests;
    if (until_failure == 0) return 12;
    if (until_failure > 0) --until_failure;
    const int status = posix_memalign(memory, alignment, size);
    live += status == 0;
    bytes += size;
    if (status == 0) std::memset(*memory, 0xff, size);  // BC39: NaN in every block handed out
    return status;
  }
  static void free(void* memory) {
    live -= memory != nullptr;
    std::free(memory);
  }
};

// BC42, BC45: the N-th allocation fails; every block comes back; the filter stays usable.
TEST(NormalizationState, BC42_BC45_EveryAllocationMayFail) {
  for (const NormCase& c :
       {NormCase{Norm::batch, 2, 3, 9, 9}, NormCase{Norm::batch, 5, 3, 1, 1}, NormCase{Norm::group, 2, 4, 2, 2, 2},
        NormCase{Norm::layer, 4, 2, 3, 3}, NormCase{Norm::instance, 2, 2, 5, 5}}) {
    Random random(3);
    const auto x = random.normals(c.count()), gamma = random.normals(c.parameters());
    auto dy = random.normals(c.count());
    std::vector<float> moving(c.C), y(c.count()), dx(c.count()), dgamma(c.parameters());
    NormLayer layer(c, &gamma);
    layer.parameters.moving_variance_desc = vector_descriptor(c.C, moving.data());
    layer.options.alloc_memory = Accountant::alloc, layer.options.free_memory = Accountant::free;
    auto dx_desc = layer.data_descriptor(dx.data()), dy_desc = layer.data_descriptor(dy.data());
    auto dgamma_desc = layer.affine_descriptor(dgamma.data());
    const auto forward = [&](BNNSFilter f) {
      return BNNSNormalizationFilterApplyBatch(f, c.N, x.data(), 0, y.data(), 0, true);
    };
    const auto backward = [&](BNNSFilter f) {
      return BNNSNormalizationFilterApplyBackwardBatch(f, c.N, &dx_desc, 0, y.data(), 0, &dy_desc, 0, nullptr,
                                                       &dgamma_desc);
    };
    bool done = false;
    for (int n = 0; n < 30 && !done; ++n) {
      Accountant::until_failure = n;
      BNNSFilter filter = BNNSFilterCreateLayerNormalization(filter_type(c.kind), &layer.parameters, &layer.options);
      if (filter) {
        done = forward(filter) == 0 && backward(filter) == 0;
        EXPECT_TRUE(done || refused_because({"out of memory"}));
        Accountant::until_failure = -1;
        EXPECT_EQ(forward(filter), 0) << "still usable";
        EXPECT_EQ(backward(filter), 0) << BNNSExtLastError();
        for (float v : dx) EXPECT_TRUE(std::isfinite(v));
        BNNSFilterDestroy(filter);
      } else {
        EXPECT_TRUE(refused_because({"out of memory"}));
      }
      EXPECT_EQ(Accountant::live, 0) << c.text() << " after failure " << n;
    }
    EXPECT_TRUE(done);
  }
}

// BC43: what a filter keeps is 4 bytes per value and per set, and a steady state allocates nothing.
TEST(NormalizationState, BC43_StateGrowsOncePerBatchSize) {
  const NormCase c{Norm::batch, 8, 3, 20, 20};
  NormLayer layer(c);
  layer.options.alloc_memory = Accountant::alloc, layer.options.free_memory = Accountant::free;
  Accountant::until_failure = -1;
  const auto filter = layer.make();
  std::vector<float> x(c.count(), 1), y(c.count()), dx(c.count());
  auto dx_desc = layer.data_descriptor(dx.data()), dy_desc = layer.data_descriptor(x.data());
  const auto step = [&](size_t batch) {
    ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), batch, x.data(), 0, y.data(), 0, true), 0);
    ASSERT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter.get(), batch, &dx_desc, 0, y.data(), 0, &dy_desc, 0,
                                                        nullptr, nullptr),
              0);
  };
  Accountant::bytes = 0;
  step(8);
  EXPECT_LE(Accountant::bytes, 4 * c.count() + 4096);
  const int before = Accountant::requests;
  for (size_t batch : {8, 3, 1, 8}) step(batch);
  EXPECT_EQ(Accountant::requests, before);
}

// Where ReLU was 0 does not move when gamma and beta do: after an update in place between the two passes, ReLU has the
// gradient of a layer without it whose dy is 0 where y was 0.
TEST(NormalizationState, ReluRemembersItsSide) {
  for (const NormCase& c : {NormCase{Norm::batch, 3, 5, 7, 9}, NormCase{Norm::batch, 2, 3, 1, 1},
                            NormCase{Norm::batch, 2, 1, 300, 300}, NormCase{Norm::instance, 2, 3, 5, 5}}) {
    Random random(11);
    const auto x = random.normals(c.count());
    auto dy = random.normals(c.count());
    std::vector<float> y(c.count()), plain_y(c.count()), dx[2] = {y, y};
    for (const bool relu : {true, false}) {
      auto gamma = random.normals(c.parameters()), beta = gamma;
      NormLayer layer(c, &gamma, &beta, relu ? BNNSActivationFunctionRectifiedLinear : BNNSActivationFunctionIdentity);
      layer.options.flags = BNNSFlagsUseClientPtr;
      const auto filter = layer.make();
      float* out = relu ? y.data() : plain_y.data();
      ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), 0, out, 0, true), 0);
      std::fill(gamma.begin(), gamma.end(), -2.0f), std::fill(beta.begin(), beta.end(), 0.5f);
      for (size_t i = 0; !relu && i < dy.size(); ++i) dy[i] *= y[i] > 0 ? 1.0f : 0.0f;
      auto dx_desc = layer.data_descriptor(dx[relu].data()), dy_desc = layer.data_descriptor(dy.data());
      ASSERT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter.get(), c.N, &dx_desc, 0, out, 0, &dy_desc, 0, nullptr,
                                                          nullptr),
                0);
    }
    EXPECT_EQ(dx[0], dx[1]) << c.text();
  }
}

// BC46: one filter, 16 threads: inference beside training; each result is one that a single thread gets.
TEST(NormalizationState, BC46_OneFilterManyThreads) {
  const NormCase c{Norm::layer, 4, 3, 5, 5};
  Random random(5);
  const auto x = random.normals(c.count()), gamma = random.normals(c.parameters());
  auto dy = random.normals(c.count());
  const NormLayer layer(c, &gamma);
  const auto want = train(layer, x, dy);
  const auto filter = layer.make();
  std::vector<float> y(c.count());
  ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), 0, y.data(), 0, true), 0);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      std::vector<float> out(c.count()), dx(c.count());
      auto my_dy = dy;
      auto dx_desc = layer.data_descriptor(dx.data()), dy_desc = layer.data_descriptor(my_dy.data());
      for (int i = 0; i < 200; ++i) {
        wrong += BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), 0, out.data(), 0, t % 2) != 0;
        wrong += !same_bits(out, want.y);
        wrong += BNNSNormalizationFilterApplyBackwardBatch(filter.get(), c.N, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                                           nullptr, nullptr) != 0;
        wrong += !same_bits(dx, want.dx);
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

// Moving statistics are read whole: never the mean of one pass with the variance of another.
TEST(NormalizationState, BC46_InferenceNeverSeesHalfAnUpdate) {
  const NormCase c{Norm::batch, 2, 64, 1, 1, 1, 0, 0.0};
  std::vector<float> mean(64, 0), variance(64, 1);
  NormLayer layer(c);
  layer.parameters.momentum = 0;
  layer.parameters.moving_mean_desc = vector_descriptor(64, mean.data());
  layer.parameters.moving_variance_desc = vector_descriptor(64, variance.data());
  const auto filter = layer.make();
  // Passes alternate between mean 0, variance 1 and mean 8, variance 16: y of x = 0 is 0 or -2 in all channels.
  std::vector<float> a(128), b(128);
  for (size_t i = 0; i < 128; ++i) a[i] = i < 64 ? -1.f : 1.f, b[i] = i < 64 ? 4.f : 12.f;
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread trainer([&] {
    std::vector<float> y(128);
    for (int i = 0; i < 3000; ++i) {
      wrong += BNNSNormalizationFilterApplyBatch(filter.get(), 2, (i % 2 ? b : a).data(), 0, y.data(), 0, true) != 0;
    }
    stop = true;
  });
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&] {
      const std::vector<float> zero(64);
      std::vector<float> y(64);
      while (!stop) {
        wrong += BNNSNormalizationFilterApplyBatch(filter.get(), 1, zero.data(), 0, y.data(), 0, false) != 0;
        wrong += !(y[0] == 0 || y[0] == -2) || std::count(y.begin(), y.end(), y[0]) != 64;
      }
    });
  }
  trainer.join();
  for (auto& t : readers) t.join();
  EXPECT_EQ(wrong, 0);
}

// BC57: new gamma and beta are seen through BNNSFlagsUseClientPtr, and only there.
TEST(NormalizationState, BC57_ClientPointerSeesNewGamma) {
  const NormCase c{Norm::batch, 2, 1, 1, 1, 1, 0, 0.0};
  std::vector<float> gamma = {1};
  NormLayer layer(c, &gamma);
  const auto copies = layer.make();
  layer.options.flags = BNNSFlagsUseClientPtr;
  const auto reads = layer.make();
  gamma[0] = 5;
  const float x[] = {1, 3};
  float y[2];
  BNNSNormalizationFilterApplyBatch(copies.get(), 2, x, 0, y, 0, true);
  EXPECT_EQ(y[1], 1);
  BNNSNormalizationFilterApplyBatch(reads.get(), 2, x, 0, y, 0, true);
  EXPECT_EQ(y[1], 5);
}

}  // namespace
}  // namespace bnns
