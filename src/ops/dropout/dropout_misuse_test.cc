// Dropout: wrong calls get the failure value and a reason, and nothing is written; state, memory and threads.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "src/ops/dropout/dropout_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

TEST(DropoutMisuse, BC34_BC35_CreationSaysWhy) {
  const auto refused = [](auto change, std::initializer_list<const char*> words) {
    DropoutLayer layer(BNNSDataLayoutRowMajorMatrix, {4, 3}, 0.5f, 1);
    change(layer.parameters);
    EXPECT_EQ(BNNSFilterCreateLayerDropout(&layer.parameters, &layer.options), nullptr);
    EXPECT_TRUE(refused_because(words));
  };
  using P = BNNSLayerParametersDropout;
  refused([](P& p) { p.rate = 1; },
          {"dropout", "rate is 1, expected at least 0 and below 1"});  // BC28: no division by 0
  refused([](P& p) { p.rate = -0.5f; }, {"rate is -0.5"});
  refused([](P& p) { p.rate = NAN; }, {"rate is nan"});
  refused([](P& p) { p.rate = INFINITY; }, {"rate is inf"});
  refused([](P& p) { p.control = 4; }, {"control is 0x4, expected bits 0 to 1: i_desc has rank 2"});
  refused([](P& p) { p.control = 255; }, {"control is 0xff"});
  refused([](P& p) { p.i_desc.size[0] = 0; }, {"i_desc.size[0] is 0"});
  refused([](P& p) { p.i_desc.size[1] = SIZE_MAX; }, {"i_desc", "does not fit"});
  refused([](P& p) { p.o_desc.size[0] = 5; }, {"o_desc is f32 5x3, expected the sizes of i_desc, f32 4x3"});
  refused([](P& p) { p.o_desc.size[0] = 3, p.o_desc.size[1] = 4; }, {"o_desc is f32 3x4"});
  refused([](P& p) { p.i_desc.data_type = BNNSDataTypeInt8; }, {"i_desc has type i8"});
  refused([](P& p) { p.o_desc.data_type = BNNSDataType(3); }, {"o_desc.data_type is 0x3"});
  refused([](P& p) { p.o_desc.layout = BNNSDataLayout(3); }, {"o_desc.layout is 0x3"});
  refused([](P& p) { p.o_desc.stride[0] = 2, p.o_desc.stride[1] = 1; },
          {"o_desc is f32 4x3: elements (1, 0) and (0, 2) share an address"});
  EXPECT_EQ(BNNSFilterCreateLayerDropout(nullptr, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
}

TEST(DropoutMisuse, BC37_AppliesSayWhyAndWriteNothing) {
  const auto filter = DropoutLayer(4, 0.5f, 1).make();
  std::vector<float> x(8, 1), y(8, poison()), dx(8, poison()), dy(8, 1);
  auto dx_desc = vector_descriptor(4, dx.data()), dy_desc = vector_descriptor(4, dy.data());
  const auto refused = [](int status, std::initializer_list<const char*> words) {
    EXPECT_EQ(status, -1);
    EXPECT_TRUE(refused_because(words));
  };
  refused(backward(filter.get(), 2, &dx_desc, &dy_desc), {"no forward pass precedes"});
  refused(BNNSFilterApply(filter.get(), nullptr, y.data()), {"in is NULL"});
  refused(BNNSFilterApply(filter.get(), x.data(), nullptr), {"out is NULL"});
  refused(BNNSFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 3),
          {"out_stride is 3, expected 0 or at least 4"});
  refused(BNNSFilterApplyBatch(filter.get(), SIZE_MAX, x.data(), 0, y.data(), 0), {"do not fit in memory"});
  refused(BNNSFilterApplyBatch(filter.get(), 2, y.data(), 0, y.data() + 2, 0), {"out and in overlap"});
  refused(backward(filter.get(), 2, &dx_desc, &dy_desc), {"no forward pass precedes"});  // refused calls are no passes
  for (float v : y) EXPECT_TRUE(is_poison(v));
  ASSERT_EQ(BNNSFilterApplyBatch(filter.get(), 2, x.data(), 0, y.data(), 0), 0);
  refused(backward(filter.get(), 1, &dx_desc, &dy_desc), {"batch_size is 1, expected 2 as in the last forward pass"});
  refused(backward(filter.get(), 2, &dx_desc, nullptr), {"out_delta is NULL"});
  refused(backward(filter.get(), 2, &dx_desc, &dy_desc, 1), {"in_delta_stride is 1"});
  auto bad = vector_descriptor(5, dy.data());
  refused(backward(filter.get(), 2, &dx_desc, &bad), {"out_delta has 5 elements, expected 4"});
  refused(backward(filter.get(), 2, &bad, &dy_desc), {"in_delta has 5 elements, expected 4"});
  bad = vector_descriptor(4, dx.data() + 2);
  refused(backward(filter.get(), 2, &dx_desc, &bad), {"in_delta and out_delta overlap"});
  refused(BNNSFilterApplyBackwardBatch(filter.get(), 2, nullptr, 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0, &dx_desc,
                                       nullptr),
          {"weights_delta is given, expected NULL"});
  refused(BNNSFilterApplyBackwardBatch(filter.get(), 2, nullptr, 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0, nullptr,
                                       &dx_desc),
          {"bias_delta is given, expected NULL"});
  for (float v : dx) EXPECT_TRUE(is_poison(v));
  EXPECT_EQ(backward(filter.get(), 2, nullptr, &dy_desc), 0);  // nothing wanted
  EXPECT_EQ(backward(filter.get(), 2, &dx_desc, &dy_desc), 0) << BNNSExtLastError();
}

// BC38: no pass, no write.
TEST(DropoutMisuse, BC38_EmptyBatch) {
  const auto filter = DropoutLayer(4, 0.5f, 1).make();
  float dy[4] = {}, dx[4] = {7, 7, 7, 7};
  auto dx_desc = vector_descriptor(4, dx), dy_desc = vector_descriptor(4, dy);
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), 0, nullptr, 0, nullptr, 0), 0);
  EXPECT_EQ(backward(filter.get(), 0, &dx_desc, &dy_desc), 0);
  EXPECT_EQ(dx[0], 7);
  EXPECT_EQ(backward(filter.get(), 1, &dx_desc, &dy_desc), -1);
}

// BC42, BC43, BC45: the filter is its only allocation.
struct Accountant {
  static inline int live = 0, requests = 0;
  static inline bool fail = false;
  static int alloc(void** memory, size_t alignment, size_t bytes) {
    ++requests;
    if (fail) return 12;
    ++live;
    return posix_memalign(memory, alignment, bytes);
  }
  static void free(void* memory) {
    live -= memory != nullptr;
    std::free(memory);
  }
};
TEST(DropoutMisuse, BC42_BC43_OneAllocation) {
  DropoutLayer layer(100000, 0.5f, 1);
  layer.options.alloc_memory = Accountant::alloc, layer.options.free_memory = Accountant::free;
  Accountant::fail = true;
  EXPECT_EQ(BNNSFilterCreateLayerDropout(&layer.parameters, &layer.options), nullptr);
  EXPECT_TRUE(refused_because({"out of memory"}));
  Accountant::fail = false;
  {
    const auto filter = layer.make();
    const int before = Accountant::requests;
    std::vector<float> x(100000, 1), dy(100000, 1);
    auto desc = vector_descriptor(100000, x.data()), dy_desc = vector_descriptor(100000, dy.data());
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(BNNSFilterApply(filter.get(), x.data(), x.data()), 0);
      EXPECT_EQ(backward(filter.get(), 1, &desc, &dy_desc), 0);
    }
    EXPECT_EQ(Accountant::requests, before);
  }
  EXPECT_EQ(Accountant::live, 0);
}

// BC46: 16 threads on one filter: together they get exactly the passes 1 .. 16 * 50, each whole.
TEST(DropoutMisuse, BC46_OneFilterManyThreads) {
  constexpr size_t n = 64, per_thread = 50, threads = 16;
  const auto filter = DropoutLayer(n, 0.5f, 7).make();
  const std::vector<float> x(n, 1);
  std::vector<std::vector<float>> got(threads * per_thread, std::vector<float>(n));
  std::atomic<int> wrong{0};
  std::vector<std::thread> pool;
  for (size_t t = 0; t < threads; ++t) {
    pool.emplace_back([&, t] {
      std::vector<float> dx(n), dy(n, 1);
      auto dx_desc = vector_descriptor(n, dx.data()), dy_desc = vector_descriptor(n, dy.data());
      for (size_t i = 0; i < per_thread; ++i) {
        wrong += BNNSFilterApply(filter.get(), x.data(), got[t * per_thread + i].data()) != 0;
        wrong += backward(filter.get(), 1, &dx_desc, &dy_desc) != 0;
        for (float v : dx) wrong += v != 0 && v != 2;
      }
    });
  }
  for (auto& t : pool) t.join();
  EXPECT_EQ(wrong, 0);
  std::vector<std::vector<float>> want;
  for (uint64_t pass = 1; pass <= threads * per_thread; ++pass) {
    std::vector<float> y(n);
    for (size_t i = 0; i < n; ++i) y[i] = double(ref::dropout_word(7, pass, i)) < 0x1p31 ? 0.0f : 2.0f;
    want.push_back(y);
  }
  std::sort(got.begin(), got.end());
  std::sort(want.begin(), want.end());
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace bnns
