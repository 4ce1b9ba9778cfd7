// Fully connected: wrong calls get the failure value and a reason that names field and rule, and nothing is written.

#include <gtest/gtest.h>

#include <cstdlib>

#include "src/ops/fully_connected/fully_connected_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

TEST(FullyConnectedMisuse, CreationSaysWhy) {
  const float w[6] = {}, b[2] = {};
  const auto refused = [&](auto change, std::initializer_list<const char*> words) {
    Layer layer(3, 2, w, b);
    change(layer);
    EXPECT_EQ(BNNSFilterCreateLayerFullyConnected(&layer.parameters, &layer.options), nullptr);
    EXPECT_TRUE(refused_because(words));
  };
  refused([](Layer& l) { l.parameters.i_desc.size[0] = 0; }, {"fully_connected", "i_desc.size[0] is 0"});
  refused([](Layer& l) { l.parameters.i_desc.size[0] = 4; }, {"w_desc.size[0] is 3, expected 4 = elements of i_desc"});
  refused([](Layer& l) { l.parameters.o_desc.size[0] = 5; }, {"w_desc.size[1] is 2, expected 5"});
  refused([](Layer& l) { l.parameters.i_desc.size[0] = SIZE_MAX; }, {"i_desc"});
  refused(
      [](Layer& l) {
        l.parameters.w_desc.size[0] = size_t{1} << 40;
        l.parameters.w_desc.size[1] = size_t{1} << 40;
      },
      {"w_desc", "does not fit"});
  refused([](Layer& l) { l.parameters.w_desc.data = nullptr; }, {"w_desc.data is NULL"});
  refused([](Layer& l) { l.parameters.w_desc.data = static_cast<char*>(l.parameters.w_desc.data) + 1; },
          {"w_desc.data", "multiple of 4"});
  refused([](Layer& l) { l.parameters.w_desc.layout = BNNSDataLayoutVector; }, {"w_desc.layout"});
  refused([](Layer& l) { l.parameters.w_desc.layout = BNNSDataLayout(77); }, {"w_desc.layout is 0x4d"});
  refused([](Layer& l) { l.parameters.w_desc.layout = BNNSDataLayoutFullyConnectedSparse; },
          {"w_desc.data", "Sparsify"});
  refused([](Layer& l) { l.parameters.i_desc.data_type = BNNSDataType(3); }, {"i_desc.data_type is 0x3"});
  refused([](Layer& l) { l.parameters.bias.size[0] = 3; }, {"bias has 3 elements, expected 2"});
  refused([](Layer& l) { l.parameters.activation.function = BNNSActivationFunction(99); },
          {"fully_connected", "activation"});
  refused([](Layer& l) { l.options.flags = 6; }, {"filter_params.flags is 0x6"});
  refused([](Layer& l) { l.options.free_memory = std::free; }, {"both or neither"});
  EXPECT_EQ(BNNSFilterCreateLayerFullyConnected(nullptr, nullptr), nullptr);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
}

TEST(FullyConnectedMisuse, ApplySaysWhyAndWritesNothing) {
  const float w[6] = {}, x[6] = {};
  float y[4], dy[4] = {}, dx[6], dw[6], db[2];
  const auto filter = Layer(3, 2, w, nullptr, BNNSActivationFunctionRectifiedLinear).make();
  const auto silu = Layer(3, 2, w, nullptr, BNNSActivationFunctionSiLU).make();
  std::fill_n(y, 4, poison()), std::fill_n(dx, 6, poison()), std::fill_n(dw, 6, poison()), std::fill_n(db, 2, poison());
  EXPECT_EQ(BNNSFilterApply(nullptr, x, y), -1);
  EXPECT_TRUE(refused_because({"BNNSFilterApply", "filter is NULL"}));
  EXPECT_EQ(BNNSFilterApply(filter.get(), nullptr, y), -1);
  EXPECT_TRUE(refused_because({"in is NULL"}));
  EXPECT_EQ(BNNSFilterApply(filter.get(), x, nullptr), -1);
  EXPECT_TRUE(refused_because({"out is NULL"}));
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), 2, x, 3, y, 1), -1);
  EXPECT_TRUE(refused_because({"out_stride is 1, expected 0 or at least 2"}));
  EXPECT_EQ(BNNSFilterApplyBatch(filter.get(), SIZE_MAX, x, 3, y, 2), -1);
  EXPECT_TRUE(refused_because({"stride", "do not fit in memory"}));
  float both[8] = {};
  EXPECT_EQ(BNNSFilterApply(filter.get(), both, both + 1), -1);
  EXPECT_TRUE(refused_because({"in and out overlap"}));

  auto dx_desc = vector_descriptor(3, dx), dy_desc = vector_descriptor(2, dy), db_desc = vector_descriptor(2, db);
  auto dw_desc = descriptor(BNNSDataLayoutRowMajorMatrix, {3, 2}, dw);
  const auto backward = [&](BNNSFilter f, const void* in, const void* out, const BNNSNDArrayDescriptor* dy_given) {
    return BNNSFilterApplyBackwardBatch(f, 2, in, 3, &dx_desc, 3, out, 2, dy_given, 2, &dw_desc, &db_desc);
  };
  EXPECT_EQ(backward(filter.get(), x, nullptr, &dy_desc), -1);
  EXPECT_TRUE(refused_because({"BNNSFilterApplyBackwardBatch", "out is NULL"}));
  EXPECT_EQ(backward(filter.get(), nullptr, y, &dy_desc), -1);
  EXPECT_TRUE(refused_because({"in is NULL"}));
  EXPECT_EQ(backward(silu.get(), nullptr, y, &dy_desc), -1);
  EXPECT_TRUE(refused_because({"in is NULL", "needs the layer's input"}));
  EXPECT_EQ(backward(filter.get(), x, y, nullptr), -1);
  EXPECT_TRUE(refused_because({"out_delta is NULL"}));
  auto wrong = vector_descriptor(5, dy);
  EXPECT_EQ(backward(filter.get(), x, y, &wrong), -1);
  EXPECT_TRUE(refused_because({"out_delta has 5 elements, expected 2"}));
  db_desc.size[0] = 1;
  EXPECT_EQ(backward(filter.get(), x, y, &dy_desc), -1);
  EXPECT_TRUE(refused_because({"bias_delta"}));
  for (float v : y) EXPECT_TRUE(is_poison(v));
  for (float v : dx) EXPECT_TRUE(is_poison(v));
  for (float v : dw) EXPECT_TRUE(is_poison(v));
  EXPECT_TRUE(is_poison(db[0]) && is_poison(db[1]));
}

// BC42, BC45: the N-th allocation fails; every block comes back; the filter stays usable.
struct Accountant {
  static inline int live = 0, until_failure = -1;
  static int alloc(void** memory, size_t alignment, size_t bytes) {
    if (until_failure == 0) return 12;
    if (until_failure > 0) --until_failure;
    const int status = posix_memalign(memory, alignment, bytes);
    live += status == 0;
    return status;
  }
  static void free(void* memory) {
    live -= memory != nullptr;
    std::free(memory);
  }
};

TEST(FullyConnectedMisuse, EveryAllocationMayFail) {
  constexpr size_t N = 40, I = 200, O = 150;
  Random random(17);
  const auto x = random.normals(N * I), w = random.normals(O * I);
  std::vector<float> y(N * O), dx(N * I);
  auto dy = random.normals(N * O);
  Layer layer(I, O, w.data(), nullptr, BNNSActivationFunctionSiLU);
  layer.options.alloc_memory = Accountant::alloc;
  layer.options.free_memory = Accountant::free;
  bool created = false, applied = false, backed = false;
  for (int n = 0; n < 20 && !(created && applied && backed); ++n) {
    Accountant::until_failure = n;
    BNNSFilter filter = BNNSFilterCreateLayerFullyConnected(&layer.parameters, &layer.options);
    created = filter != nullptr;
    if (filter) {
      applied = BNNSFilterApplyBatch(filter, N, x.data(), 0, y.data(), 0) == 0;
      auto dx_desc = vector_descriptor(I, dx.data()), dy_desc = vector_descriptor(O, dy.data());
      backed = BNNSFilterApplyBackwardBatch(filter, N, x.data(), 0, &dx_desc, 0, y.data(), 0, &dy_desc, 0, nullptr,
                                            nullptr) == 0;
      EXPECT_TRUE((applied && backed) || refused_because({"out of memory"}));
      Accountant::until_failure = -1;
      EXPECT_EQ(BNNSFilterApplyBatch(filter, N, x.data(), 0, y.data(), 0), 0) << "still usable";
      BNNSFilterDestroy(filter);
    } else {
      EXPECT_TRUE(refused_because({"out of memory"}));
    }
    EXPECT_EQ(Accountant::live, 0) << "after failure " << n;
  }
  EXPECT_TRUE(created && applied && backed);
}

}  // namespace
}  // namespace bnns
