// Indices of every type that the Ex calls take, written and read by every kernel: Max both ways and UnMax both ways
// against the reference. Types that are no index, planes that a type cannot number and negative indices are refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "src/ops/pooling/tests/pooling_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

template <class T>
constexpr BNNSDataType kTypeOf = std::is_same_v<T, int32_t>    ? BNNSDataTypeInt32
                                 : std::is_same_v<T, uint32_t> ? BNNSDataTypeUInt32
                                 : std::is_same_v<T, int64_t>  ? BNNSDataTypeInt64
                                                               : BNNSDataTypeUInt64;

template <class T>
struct PoolingIndexTypes : ::testing::Test {};
using IndexTypes = ::testing::Types<int32_t, uint32_t, int64_t, uint64_t>;
TYPED_TEST_SUITE(PoolingIndexTypes, IndexTypes, );

// Two samples; the index arrays end at a page that faults.
template <class T>
void expect_reference(const PoolShape& s, Random& random) {
  constexpr size_t N = 2;
  const auto x = random.integers(N * s.large(), 50), g = random.integers(N * s.small());
  const auto want = ref::pool_forward(Pool::max, s, N, widen(x));
  const auto dx_want = ref::pool_backward(Pool::max, s, N, widen(x), widen(g));
  const auto filter = PoolLayer(Pool::max, s).make();
  Guarded<T> index(N * s.small());
  std::fill_n(index.data(), index.size(), T(-1));
  std::vector<float> y(N * s.small(), poison()), dx(N * s.large(), poison());
  ASSERT_EQ(BNNSPoolingFilterApplyBatchEx(filter.get(), N, x.data(), 0, y.data(), 0, kTypeOf<T>, index.data(), 0), 0)
      << BNNSExtLastError();
  ASSERT_TRUE(within(y, want.y, y.size(), [](size_t) { return 0.0; })) << text(s);
  for (size_t i = 0; i < index.size(); ++i) ASSERT_EQ(uint64_t(index[i]), want.index[i]) << text(s) << " at " << i;

  std::vector<float> dy = g;
  auto dx_desc = large_descriptor(s, dx.data()), dy_desc = small_descriptor(s, dy.data());
  ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatchEx(filter.get(), N, nullptr, 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                                  nullptr, kTypeOf<T>, index.data(), 0),
            0)
      << BNNSExtLastError();
  ASSERT_TRUE(within(dx, dx_want, dx.size(), [](size_t) { return 0.0; })) << text(s);

  const auto unmax = PoolLayer(BNNSPoolingFunctionUnMax, s).make();
  const auto up_want = ref::unmax_forward(s, N, widen(g), want.index);
  const auto down_want = ref::unmax_backward(s, N, widen(x), want.index);
  std::vector<float> up(N * s.large(), poison()), down(N * s.small(), poison()), large = x;
  ASSERT_EQ(BNNSPoolingFilterApplyBatchEx(unmax.get(), N, g.data(), 0, up.data(), 0, kTypeOf<T>, index.data(), 0), 0)
      << BNNSExtLastError();
  ASSERT_TRUE(within(up, up_want, up.size(), [](size_t) { return 0.0; })) << text(s);
  auto down_desc = small_descriptor(s, down.data()), large_desc = large_descriptor(s, large.data());
  ASSERT_EQ(BNNSPoolingFilterApplyBackwardBatchEx(unmax.get(), N, nullptr, 0, &down_desc, 0, nullptr, 0, &large_desc, 0,
                                                  nullptr, kTypeOf<T>, index.data(), 0),
            0)
      << BNNSExtLastError();
  ASSERT_TRUE(within(down, down_want, down.size(), [](size_t) { return 0.0; })) << text(s);
}

TYPED_TEST(PoolingIndexTypes, EveryKernelAgainstTheReference) {
  for_each_isa([] {
    Random random(15);
    for (const long size : {3, 9, 16, 35}) {
      for (const PoolShape& s : one_of_each_kernel(2, size)) {
        if (s.OW <= 0 || s.OH <= 0) continue;
        expect_reference<TypeParam>(s, random);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
    for (int i = 0; i < 60; ++i) {
      expect_reference<TypeParam>(random_shape(random, 24), random);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TYPED_TEST(PoolingIndexTypes, OutsideThePlaneIsRefusedWithTheCallersValue) {
  const PoolShape s = square(1, 4, 2, 2);
  const auto filter = PoolLayer(Pool::max, s).make(), unmax = PoolLayer(BNNSPoolingFunctionUnMax, s).make();
  std::vector<float> dy(4, 1.0f), dx(16, poison());
  auto dx_desc = large_descriptor(s, dx.data()), dy_desc = small_descriptor(s, dy.data());
  for (const TypeParam wrong : {TypeParam(16), TypeParam(-1), std::numeric_limits<TypeParam>::min()}) {
    if (wrong == 0) continue;
    std::vector<TypeParam> index = {5, 7, wrong, 15};
    const std::string value = " is " + std::to_string(wrong) + ", expected";
    EXPECT_EQ(BNNSPoolingFilterApplyBackwardBatchEx(filter.get(), 1, nullptr, 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                                    nullptr, kTypeOf<TypeParam>, index.data(), 0),
              -1);
    EXPECT_TRUE(refused_because({value.c_str(), "less than 16 = 4 * 4"}));
    EXPECT_EQ(
        BNNSPoolingFilterApplyBatchEx(unmax.get(), 1, dy.data(), 0, dx.data(), 0, kTypeOf<TypeParam>, index.data(), 0),
        -1);
    EXPECT_TRUE(refused_because({value.c_str(), "less than 16 = 4 * 4"}));
    EXPECT_TRUE(std::all_of(dx.begin(), dx.end(), is_poison)) << wrong;
  }
}

TEST(PoolingIndexTypeRules, OtherTypesAreRefusedInEveryCall) {
  const PoolShape s = square(1, 4, 2, 2);
  const auto filter = PoolLayer(Pool::max, s).make(), unmax = PoolLayer(BNNSPoolingFunctionUnMax, s).make();
  std::vector<float> x(16, 1.0f), y(4, poison()), dy(4, 1.0f), dx(16, poison());
  auto dx_desc = large_descriptor(s, dx.data()), dy_desc = small_descriptor(s, dy.data());
  std::vector<uint64_t> index(4, 0);
  for (const BNNSDataType type :
       {BNNSDataTypeInt8, BNNSDataTypeUInt8, BNNSDataTypeInt16, BNNSDataTypeUInt16, BNNSDataTypeFloat32,
        BNNSDataTypeFloat16, BNNSDataTypeBoolean, BNNSDataTypeIndexed8, static_cast<BNNSDataType>(0)}) {
    const auto refused = [] { return refused_because({"indices_data_type", "UInt32, UInt64, Int32 or Int64"}); };
    EXPECT_EQ(BNNSPoolingFilterApplyBatchEx(filter.get(), 1, x.data(), 0, y.data(), 0, type, index.data(), 0), -1);
    EXPECT_TRUE(refused());
    EXPECT_EQ(BNNSPoolingFilterApplyBackwardBatchEx(filter.get(), 1, nullptr, 0, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                                    nullptr, type, index.data(), 0),
              -1);
    EXPECT_TRUE(refused());
    EXPECT_EQ(BNNSPoolingFilterApplyBatchEx(unmax.get(), 1, dy.data(), 0, dx.data(), 0, type, index.data(), 0), -1);
    EXPECT_TRUE(refused());
    EXPECT_TRUE(std::all_of(y.begin(), y.end(), is_poison) && std::all_of(dx.begin(), dx.end(), is_poison));
  }
}

// A batch of none reaches the check without the memory of such a plane.
TEST(PoolingIndexTypeRules, PlanesWithMorePixelsThanTheTypeNumbers) {
  PoolShape s = square(1, 4, 2, 2);
  s.W = 1L << 16, s.kw = s.W, s.sx = s.W, s.OW = 1;
  const auto apply = [&](long rows, BNNSDataType type) {
    s.H = s.kh = s.sy = rows, s.OH = 1;
    const auto filter = PoolLayer(Pool::max, s).make();
    float x = 0, y = 0;
    uint64_t index = 0;
    return BNNSPoolingFilterApplyBatchEx(filter.get(), 0, &x, 0, &y, 0, type, &index, 0);
  };
  EXPECT_EQ(apply((1L << 15) - 1, BNNSDataTypeInt32), 0);
  EXPECT_EQ(apply((1L << 15) + 1, BNNSDataTypeInt32), -1);
  EXPECT_TRUE(refused_because({"indices_data_type is Int32, expected Int64", "65536 x 32769"}));
  EXPECT_EQ(apply((1L << 15) + 1, BNNSDataTypeUInt32), 0);
  EXPECT_EQ(apply((1L << 16) + 1, BNNSDataTypeUInt32), -1);
  EXPECT_TRUE(refused_because({"indices_data_type is UInt32, expected UInt64", "65536 x 65537"}));
  EXPECT_EQ(apply((1L << 16) + 1, BNNSDataTypeInt64), 0);
  EXPECT_EQ(apply((1L << 16) + 1, BNNSDataTypeUInt64), 0);
}

}  // namespace
}  // namespace bnns
