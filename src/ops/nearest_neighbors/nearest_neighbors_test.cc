// Nearest neighbours: documented numbers, sorting as the reference, refusals.

#include "src/ops/nearest_neighbors/nearest_neighbors.h"

#include <memory>
#include <thread>

#include "src/core/half.h"
#include "src/ops/nearest_neighbors/nearest_neighbors_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

using Store = std::unique_ptr<void, void (*)(void*)>;
Store make(unsigned capacity, unsigned features, unsigned k, BNNSDataType type = BNNSDataTypeFloat32,
           const BNNSFilterParameters* options = nullptr) {
  Store store(BNNSCreateNearestNeighbors(capacity, features, k, type, options), &BNNSDestroyNearestNeighbors);
  EXPECT_NE(store, nullptr) << BNNSExtLastError();
  return store;
}

TEST(NearestNeighbors, DocumentedNumbers) {
  const Store store = make(5, 1, 3);
  const float samples[5] = {0, 1, 2, 10, 11};
  ASSERT_EQ(BNNSNearestNeighborsLoad(store.get(), 2, samples), 0) << BNNSExtLastError();
  ASSERT_EQ(BNNSNearestNeighborsLoad(store.get(), 3, samples + 2), 0) << BNNSExtLastError();  // appended
  int indices[3];
  float distances[3];
  ASSERT_EQ(BNNSNearestNeighborsGetInfo(store.get(), 3, indices, distances), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<int>(indices, indices + 3), (std::vector<int>{3, 4, 2}));
  EXPECT_EQ(std::vector<float>(distances, distances + 3), (std::vector<float>{0, 1, 8}));
}

TEST(NearestNeighbors, MissingOnesAndTies) {
  const Store store = make(4, 2, 4);
  const float samples[6] = {1, 1, 5, 1, 1, 1};  // 0 and 2 are equal
  ASSERT_EQ(BNNSNearestNeighborsLoad(store.get(), 3, samples), 0);
  int indices[4];
  float distances[4];
  ASSERT_EQ(BNNSNearestNeighborsGetInfo(store.get(), 2, indices, distances), 0);
  EXPECT_EQ(std::vector<int>(indices, indices + 4), (std::vector<int>{2, 0, 1, -1}));  // itself first
  EXPECT_EQ(std::vector<float>(distances, distances + 4), (std::vector<float>{0, 0, 4, INFINITY}));
}

TEST(NearestNeighbors, BC33_BC53_AgainstReference) {
  for_each_isa([&] {
    Random random(1);
    for (size_t features : {1, 3, 16, 17, 70}) {
      for (size_t n : {1, 5, 40, 600}) {
        for (size_t k : {1, 4, 50}) {
          for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16}) {
            SCOPED_TRACE(std::to_string(n) + " samples of " + std::to_string(features) + " k " + std::to_string(k));
            // Small integers: squares are exact, so ties are ties.
            const auto values = random_integers(&random, n * features, 3);
            std::vector<int> want;
            for (size_t threads : kThreadCounts) {
              BNNSFilterParameters options = {};
              options.n_threads = threads;
              const Store store = make(unsigned(n), unsigned(features), unsigned(k), type, &options);
              LayoutTensor samples(BNNSDataLayoutVector, {n * features}, type);
              fill(&samples, values);
              ASSERT_EQ(BNNSNearestNeighborsLoad(store.get(), unsigned(n), samples.data()), 0) << BNNSExtLastError();
              Guarded<int> indices(n * k);
              LayoutTensor distances(BNNSDataLayoutVector, {n * k}, type);
              ASSERT_EQ(BNNSNearestNeighborsGetInfo(store.get(), -1, indices.data(), distances.data()), 0)
                  << BNNSExtLastError();
              const std::vector<int> got(indices.data(), indices.data() + n * k);
              if (!want.empty()) {
                ASSERT_EQ(got, want);
                continue;
              }
              want = got;
              for (size_t s = 0; s<n; s += n> 100 ? 37 : 1) {
                const auto reference = ref::nearest_neighbors(values, features, s, k);
                Guarded<int> one(k);
                ASSERT_EQ(BNNSNearestNeighborsGetInfo(store.get(), int(s), one.data(), nullptr), 0);
                for (size_t j = 0; j < k; ++j) {
                  ASSERT_EQ(got[s * k + j], reference[j].index);
                  ASSERT_EQ(one[j], reference[j].index);
                  // one rounding of the root, and that of the type
                  const double unit = type == BNNSDataTypeFloat32 ? 0x1p-23 : 0x1p-10, d = reference[j].distance;
                  const double v = distances.get({s * k + j});
                  ASSERT_TRUE(v == d || std::fabs(v - d) <= unit * d) << v << " and " << d;
                }
              }
            }
          }
        }
      }
    }
  });
}

TEST(NearestNeighborsMisuse, BC34_BC37_CallsSayWhyAndWriteNothing) {
  const auto refused = [](const char* reason, unsigned n, unsigned features, unsigned k, BNNSDataType type) {
    EXPECT_EQ(BNNSCreateNearestNeighbors(n, features, k, type, nullptr), nullptr) << reason;
    EXPECT_TRUE(refused_because({reason}));
  };
  refused("max_n_samples is 0", 0, 2, 2, BNNSDataTypeFloat32);
  refused("max_n_samples is 4294967295", UINT32_MAX, 2, 2, BNNSDataTypeFloat32);
  refused("n_features is 0", 2, 0, 2, BNNSDataTypeFloat32);
  refused("n_neighbors is 0", 2, 2, 0, BNNSDataTypeFloat32);
  refused("data_type", 2, 2, 2, BNNSDataTypeInt8);
  refused("does not fit", INT32_MAX, UINT32_MAX, 2, BNNSDataTypeFloat32);

  const Store store = make(3, 2, 2);
  const std::vector<float> samples = {0, 0, 3, 4, 6, 8, 9, 9};
  int indices[2] = {7, 7};
  float distances[2] = {7, 7};
  EXPECT_EQ(BNNSNearestNeighborsGetInfo(store.get(), 0, indices, distances), -1);  // nothing loaded
  EXPECT_TRUE(refused_because({"sample_number is 0"}));
  EXPECT_EQ(BNNSNearestNeighborsGetInfo(store.get(), -1, indices, distances), 0);  // of none
  EXPECT_EQ(BNNSNearestNeighborsLoad(store.get(), 1, nullptr), -1);
  EXPECT_TRUE(refused_because({"data_ptr is NULL"}));
  ASSERT_EQ(BNNSNearestNeighborsLoad(store.get(), 2, samples.data()), 0);
  EXPECT_EQ(BNNSNearestNeighborsLoad(store.get(), 2, samples.data() + 4), -1);  // K37
  EXPECT_TRUE(refused_because({"2 samples after 2", "at most 3"}));
  EXPECT_EQ(BNNSNearestNeighborsLoad(store.get(), UINT32_MAX, samples.data()), -1);
  EXPECT_EQ(BNNSNearestNeighborsGetInfo(store.get(), 2, indices, distances), -1);  // the refused ones were not kept
  EXPECT_TRUE(refused_because({"sample_number is 2"}));
  EXPECT_EQ(indices[0], 7);
  EXPECT_EQ(distances[0], 7);
  ASSERT_EQ(BNNSNearestNeighborsLoad(store.get(), 1, samples.data() + 4), 0);
  ASSERT_EQ(BNNSNearestNeighborsGetInfo(store.get(), 2, nullptr, distances), 0);
  EXPECT_EQ(distances[1], 5);
  EXPECT_EQ(BNNSNearestNeighborsGetInfo(store.get(), 2, nullptr, nullptr), 0);

  EXPECT_EQ(BNNSNearestNeighborsLoad(nullptr, 1, samples.data()), -1);
  EXPECT_TRUE(refused_because({"not a living store"}));
  EXPECT_EQ(BNNSNearestNeighborsGetInfo(nullptr, 0, indices, distances), -1);
  BNNSDestroyNearestNeighbors(nullptr);
  uint64_t other[32] = {};
  BNNSDestroyNearestNeighbors(other);  // not ours: left alone
  EXPECT_EQ(BNNSNearestNeighborsLoad(other, 1, samples.data()), -1);
}

TEST(NearestNeighborsMisuse, BC42_BC45_FailingAllocations) {
  const BNNSFilterParameters options = Accountant::options();
  const float samples[4] = {0, 1, 2, 3};
  int failures = 0;
  for (bool done = false; !done; ++failures) {
    Accountant::requests = 0;
    Accountant::fail_at = failures;
    if (BNNSNearestNeighbors store = BNNSCreateNearestNeighbors(4, 1, 2, BNNSDataTypeFloat32, &options)) {
      int indices[2] = {7, 7};
      ASSERT_EQ(BNNSNearestNeighborsLoad(store, 4, samples), 0);
      done = BNNSNearestNeighborsGetInfo(store, 1, indices, nullptr) == 0;
      if (!done) {
        EXPECT_EQ(indices[0], 7);
      }
      BNNSDestroyNearestNeighbors(store);
    }
    EXPECT_EQ(Accountant::live, 0);
  }
  EXPECT_EQ(failures, 4);  // store, samples, distances, and then none
}

// BC46: questions and loads at the same time.
TEST(NearestNeighbors, BC46_Threads) {
  const Store store = make(64, 1, 1);
  std::thread loader([&] {
    for (float i = 0; i < 64; ++i) EXPECT_EQ(BNNSNearestNeighborsLoad(store.get(), 1, &i), 0);
  });
  int indices[64];
  for (int round = 0; round < 200; ++round)
    EXPECT_EQ(BNNSNearestNeighborsGetInfo(store.get(), -1, indices, nullptr), 0);
  loader.join();
  EXPECT_EQ(BNNSNearestNeighborsGetInfo(store.get(), 63, indices, nullptr), 0);
  EXPECT_EQ(indices[0], 63);
}

}  // namespace
}  // namespace bnns::testing
