// Reductions: every refusal says why and writes nothing; allocations that fail.

#include <functional>

#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

struct Fixture {
  std::vector<float> x = std::vector<float>(24, 3), y = std::vector<float>(24, 9), w = std::vector<float>(24, 1);
  BNNSLayerParametersReduction layer;
  Fixture() {
    std::memset(&layer, 0, sizeof layer);
    layer.i_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 6}, x.data());
    layer.o_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 1}, y.data());
    layer.reduce_func = BNNSReduceFunctionSum;
  }
};

TEST(ReductionMisuse, BC34_BC35_BC37_CreateAndDirectRefuse) {
  struct Refusal {
    const char* reason;
    std::function<void(Fixture&)> spoil;
  };
  const Refusal refusals[] = {
      {"reduce_func is BNNSReduceFunctionNone (15)", [](Fixture& s) { s.layer.reduce_func = BNNSReduceFunctionNone; }},
      {"reduce_func is 17", [](Fixture& s) { s.layer.reduce_func = BNNSReduceFunction(17); }},
      {"o_desc.size[1] is 2", [](Fixture& s) { s.layer.o_desc.size[1] = 2; }},
      {"o_desc has rank 1", [](Fixture& s) { s.layer.o_desc = vector_descriptor(1, s.y.data()); }},
      {"i_desc.size[0] is 0", [](Fixture& s) { s.layer.i_desc.size[0] = 0; }},
      {"i_desc", [](Fixture& s) { s.layer.i_desc.size[0] = s.layer.i_desc.size[1] = SIZE_MAX / 2; }},
      {"i_desc has type", [](Fixture& s) { s.layer.i_desc.data_type = BNNSDataTypeInt64; }},
      {"o_desc has type", [](Fixture& s) { s.layer.o_desc.data_type = BNNSDataTypeInt32; }},
      {"w_desc is",
       [](Fixture& s) {
         s.layer.w_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 5}, s.w.data());
       }},
      {"w_desc has type",
       [](Fixture& s) {
         s.layer.w_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 6}, s.w.data(), BNNSDataTypeInt8);
       }},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.reason);
    Fixture s;
    refusal.spoil(s);
    EXPECT_EQ(BNNSFilterCreateLayerReduction(&s.layer, nullptr), nullptr);
    EXPECT_TRUE(refused_because({refusal.reason}));
    EXPECT_EQ(BNNSDirectApplyReduction(&s.layer, nullptr), -1);
    EXPECT_TRUE(refused_because({refusal.reason}));
    EXPECT_EQ(s.y, std::vector<float>(24, 9));
  }
  EXPECT_EQ(BNNSFilterCreateLayerReduction(nullptr, nullptr), nullptr);
  EXPECT_EQ(BNNSDirectApplyReduction(nullptr, nullptr), -1);
  EXPECT_TRUE(refused_because({"layer_params is NULL"}));
  Fixture s;
  s.layer.o_desc.data = nullptr;
  EXPECT_EQ(BNNSDirectApplyReduction(&s.layer, nullptr), -1);
  EXPECT_TRUE(refused_because({"o_desc.data is NULL"}));
  s.layer.o_desc.data = s.x.data() + 20;
  EXPECT_EQ(BNNSDirectApplyReduction(&s.layer, nullptr), -1);
  EXPECT_TRUE(refused_because({"overlap"}));
  s.layer.o_desc.data = s.y.data();
  s.layer.i_desc.data = nullptr;
  EXPECT_EQ(BNNSDirectApplyReduction(&s.layer, nullptr), -1);
  EXPECT_TRUE(refused_because({"i_desc.data is NULL"}));
}

TEST(ReductionMisuse, BC37_BC38_ApplyAndBackwardRefuse) {
  Fixture s;
  s.layer.w_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 6}, s.w.data());
  s.layer.reduce_func = BNNSReduceFunctionSumSquare;
  const FilterHandle filter = own(BNNSFilterCreateLayerReduction(&s.layer, nullptr));
  EXPECT_EQ(BNNSFilterApply(filter.get(), nullptr, s.y.data()), -1);
  EXPECT_TRUE(refused_because({"in is NULL"}));
  EXPECT_EQ(BNNSFilterApply(filter.get(), s.x.data(), s.x.data()), -1);
  EXPECT_TRUE(refused_because({"overlap"}));
  std::vector<float> dx(24, 7), dw(24, 7), dy(4, 1);
  auto dx_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 6}, dx.data()), dw_desc = dx_desc;
  dw_desc.data = dw.data();
  auto dy_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 1}, dy.data());
  const auto backward = [&](BNNSFilter f, const void* in, BNNSNDArrayDescriptor* to, BNNSNDArrayDescriptor* weights,
                            BNNSNDArrayDescriptor* bias = nullptr, size_t batch = 1) {
    return BNNSFilterApplyBackwardBatch(f, batch, in, 0, to, 0, nullptr, 0, &dy_desc, 0, weights, bias);
  };
  EXPECT_EQ(backward(filter.get(), nullptr, &dx_desc, nullptr), -1);
  EXPECT_TRUE(refused_because({"in is NULL"}));
  EXPECT_EQ(backward(filter.get(), s.x.data(), &dx_desc, nullptr, &dy_desc), -1);
  EXPECT_TRUE(refused_because({"bias_delta"}));
  EXPECT_EQ(backward(filter.get(), s.x.data(), &dx_desc, &dx_desc), -1);
  EXPECT_TRUE(refused_because({"overlap"}));
  dx_desc.size[0] = 3;
  EXPECT_EQ(backward(filter.get(), s.x.data(), &dx_desc, nullptr), -1);
  EXPECT_TRUE(refused_because({"in_delta has 18"}));
  dx_desc.size[0] = 4;
  dy_desc.size[0] = 3;
  EXPECT_EQ(backward(filter.get(), s.x.data(), &dx_desc, nullptr), -1);
  EXPECT_TRUE(refused_because({"out_delta"}));
  dy_desc.size[0] = 4;
  EXPECT_EQ(dx, std::vector<float>(24, 7));
  EXPECT_EQ(dw, std::vector<float>(24, 7));
  // BC38: an empty batch writes nothing but a weight gradient of 0.
  EXPECT_EQ(backward(filter.get(), s.x.data(), &dx_desc, &dw_desc, nullptr, 0), 0) << BNNSExtLastError();
  EXPECT_EQ(dx, std::vector<float>(24, 7));
  EXPECT_EQ(dw, std::vector<float>(24, 0));
  Fixture plain;
  const FilterHandle sum = own(BNNSFilterCreateLayerReduction(&plain.layer, nullptr));
  EXPECT_EQ(backward(sum.get(), s.x.data(), &dx_desc, &dw_desc), -1);
  EXPECT_TRUE(refused_because({"weights_delta is given"}));
  EXPECT_EQ(backward(sum.get(), nullptr, &dx_desc, nullptr), 0) << BNNSExtLastError();  // a sum needs no input
  EXPECT_EQ(dx, std::vector<float>(24, 1));
  plain.layer.reduce_func = BNNSReduceFunctionArgMax;
  const FilterHandle index = own(BNNSFilterCreateLayerReduction(&plain.layer, nullptr));
  EXPECT_EQ(backward(index.get(), s.x.data(), &dx_desc, nullptr), -1);
  EXPECT_TRUE(refused_because({"no gradient"}));
}

// BC57: with the client's pointers a change of the weights is seen at once.
TEST(ReductionMisuse, BC57_WeightsOfTheClient) {
  for (bool client : {false, true}) {
    Fixture s;
    s.layer.w_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 6}, s.w.data());
    BNNSFilterParameters options = {};
    if (client) options.flags = BNNSFlagsUseClientPtr;
    const FilterHandle filter = own(BNNSFilterCreateLayerReduction(&s.layer, &options));
    s.w.assign(24, 2);
    ASSERT_EQ(BNNSFilterApply(filter.get(), s.x.data(), s.y.data()), 0);
    EXPECT_EQ(s.y[0], client ? 36 : 18);
  }
}

TEST(ReductionMisuse, BC42_FailingAllocations) {
  Fixture s;
  s.layer.reduce_func = BNNSReduceFunctionLogSumExp;
  s.layer.w_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 6}, s.w.data());
  const BNNSFilterParameters options = Accountant::options();
  int failures = 0;
  for (;; ++failures) {
    Accountant::requests = 0;
    Accountant::fail_at = failures;
    BNNSFilter filter = BNNSFilterCreateLayerReduction(&s.layer, &options);
    bool done = false;
    if (filter) {
      std::vector<float> dx(24, 7), dy(4, 1);
      auto dx_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 6}, dx.data());
      auto dy_desc = descriptor(BNNSDataLayout2DFirstMajor, {4, 1}, dy.data());
      done = BNNSFilterApply(filter, s.x.data(), s.y.data()) == 0 &&
             BNNSFilterApplyBackwardBatch(filter, 1, s.x.data(), 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0, nullptr,
                                          nullptr) == 0;
      if (!done) {
        EXPECT_TRUE(refused_because({"out of memory"}));
        EXPECT_EQ(dx[0], 7);
      }
      BNNSFilterDestroy(filter);
    }
    EXPECT_EQ(Accountant::live, 0);
    if (done) break;
  }
  EXPECT_GE(failures, 4);  // filter, weights, rooms, coefficients
}

}  // namespace
}  // namespace bnns::testing
