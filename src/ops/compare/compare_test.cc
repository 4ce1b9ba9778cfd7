// Compare: hand-worked numbers, all operators on every instruction set, layout and type, NaN, wide integers, refusals.

#include "src/ops/compare/compare.h"

#include <functional>
#include <limits>

#include "src/ops/compare/compare_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

TEST(Compare, HandWorked) {
  float a[4] = {1, 2, 3, NAN}, b[4] = {2, 2, 2, 2};
  uint8_t y[4];
  auto in0 = vector_descriptor(4, a), in1 = vector_descriptor(4, b), out = vector_descriptor(4, y, BNNSDataTypeBoolean);
  const auto result = [&](BNNSRelationalOperator op) {
    EXPECT_EQ(BNNSCompareTensor(&in0, &in1, op, &out), 0) << BNNSExtLastError();
    return std::vector<uint8_t>(y, y + 4);
  };
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(result(BNNSRelationalOperatorLess), (Bytes{1, 0, 0, 0}));
  EXPECT_EQ(result(BNNSRelationalOperatorEqual), (Bytes{0, 1, 0, 0}));
  EXPECT_EQ(result(BNNSRelationalOperatorNotEqual), (Bytes{1, 0, 1, 1}));
  EXPECT_EQ(result(BNNSRelationalOperatorLogicalAND), (Bytes{1, 1, 1, 1}));  // NaN is not 0
  EXPECT_EQ(BNNSCompareTensor(&in0, nullptr, BNNSRelationalOperatorLogicalNOT, &out), 0) << BNNSExtLastError();
  EXPECT_EQ(Bytes(y, y + 4), (Bytes{0, 0, 0, 0}));
}

// All operators, every length around the vector, special values in every position; guard pages.
TEST(Compare, BC04_BC18_BC33_MatchesReference) {
  const double special[] = {0, -0.0, 1, -1, 2, NAN, INFINITY, -INFINITY, 1e-37};
  for_each_isa([&] {
    for (size_t n = 1; n <= 70; ++n) {
      Guarded<float> a(n), b(n);
      Guarded<uint8_t> y(n);
      Random random(n);
      for (size_t i = 0; i < n; ++i) a[i] = float(special[random.below(9)]), b[i] = float(special[random.below(9)]);
      auto in0 = vector_descriptor(n, a.data()), in1 = vector_descriptor(n, b.data());
      auto out = vector_descriptor(n, y.data(), BNNSDataTypeBoolean);
      for (unsigned op = 0; op < 12; ++op) {
        std::fill_n(y.data(), n, uint8_t{77});
        ASSERT_EQ(BNNSCompareTensor(&in0, &in1, BNNSRelationalOperator(op), &out), 0) << BNNSExtLastError();
        for (size_t i = 0; i < n; ++i) {
          ASSERT_EQ(y[i], ref::compare(BNNSRelationalOperator(op), double(a[i]), double(b[i])))
              << a[i] << " op " << op << " " << b[i];
        }
      }
    }
  });
}

TEST(Compare, BC15_LayoutsStridesTypes) {
  const BNNSDataType types[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16,
                                BNNSDataTypeInt8,    BNNSDataTypeInt32,   BNNSDataTypeInt64,
                                BNNSDataTypeUInt16,  BNNSDataTypeUInt64,  BNNSDataTypeBoolean};
  const BNNSDataLayout layouts[] = {BNNSDataLayoutImageCHW, BNNSDataLayout3DFirstMajor, BNNSDataLayoutMHA_DHK};
  Random random(7);
  for_each_isa([&] {
    for (BNNSDataType first : types) {
      for (BNNSDataType second : types) {
        for (size_t k = 0; k < 3; ++k) {
          const std::vector<size_t> size = {13, 5, 9};
          LayoutTensor a(layouts[k], size, first, 1 + k / 2, k), b(layouts[(k + 1) % 3], size, second, 1, 1);
          LayoutTensor y(layouts[(k + 2) % 3 / 2], size, BNNSDataTypeBoolean, 1 + k % 2, k % 2);
          for_each_coordinate(size, [&](const Coordinates& at) {
            a.set(at, double(random.below(first == BNNSDataTypeBoolean ? 2 : 4)));
            b.set(at, double(random.below(second == BNNSDataTypeBoolean ? 2 : 4)));
          });
          const auto op = BNNSRelationalOperator(random.below(12));
          auto in0 = a.descriptor(), in1 = b.descriptor(), out = y.descriptor();
          ASSERT_EQ(BNNSCompareTensor(&in0, &in1, op, &out), 0) << BNNSExtLastError();
          ASSERT_TRUE(y.gaps_untouched());
          for_each_coordinate(
              size, [&](const Coordinates& at) { ASSERT_EQ(y.get(at), ref::compare(op, a.get(at), b.get(at))); });
        }
      }
    }
  });
}

// Integers that f32 cannot tell apart, and both 64-bit types against each other.
TEST(Compare, WideIntegersAreExact) {
  int64_t a[5] = {(int64_t{1} << 62) + 1, -5, INT64_MAX, INT64_MIN, 16777217};
  uint64_t b[5] = {uint64_t{1} << 62, UINT64_MAX - 4, uint64_t{1} << 63, 0, 16777216};
  uint8_t y[5];
  auto in0 = vector_descriptor(5, a, BNNSDataTypeInt64), in1 = vector_descriptor(5, b, BNNSDataTypeUInt64);
  auto out = vector_descriptor(5, y, BNNSDataTypeBoolean);
  using Bytes = std::vector<uint8_t>;
  ASSERT_EQ(BNNSCompareTensor(&in0, &in1, BNNSRelationalOperatorGreater, &out), 0) << BNNSExtLastError();
  EXPECT_EQ(Bytes(y, y + 5), (Bytes{1, 0, 0, 0, 1}));
  ASSERT_EQ(BNNSCompareTensor(&in0, &in1, BNNSRelationalOperatorEqual, &out), 0);
  EXPECT_EQ(Bytes(y, y + 5), (Bytes{0, 0, 0, 0, 0}));
  ASSERT_EQ(BNNSCompareTensor(&in1, &in1, BNNSRelationalOperatorEqual, &out), 0);
  EXPECT_EQ(Bytes(y, y + 5), (Bytes{1, 1, 1, 1, 1}));
  // By value when the meanings differ: 2 * 3 + 1 is 7.
  int8_t small[1] = {3}, seven[1] = {7};
  auto scaled = vector_descriptor(1, small, BNNSDataTypeInt8), plain = vector_descriptor(1, seven, BNNSDataTypeInt8);
  scaled.data_scale = 2, scaled.data_bias = 1;
  out.size[0] = 1;
  ASSERT_EQ(BNNSCompareTensor(&scaled, &plain, BNNSRelationalOperatorEqual, &out), 0);
  EXPECT_EQ(y[0], 1);
}

// In place on Booleans, and many tasks.
TEST(Compare, BC41_BC53_InPlaceAndLarge) {
  const size_t n = 200'003;
  Random random(3);
  std::vector<uint8_t> a(n), b(n), want(n);
  for (size_t i = 0; i < n; ++i)
    a[i] = uint8_t(random.below(2)), b[i] = uint8_t(random.below(2)), want[i] = a[i] ^ b[i];
  auto in1 = vector_descriptor(n, b.data(), BNNSDataTypeBoolean);
  for (size_t threads : kThreadCounts) {
    set_default_threads(threads);
    std::vector<uint8_t> y = a;
    auto out = vector_descriptor(n, y.data(), BNNSDataTypeBoolean), same = out;
    ASSERT_EQ(BNNSCompareTensor(&same, &in1, BNNSRelationalOperatorLogicalXOR, &out), 0) << BNNSExtLastError();
    ASSERT_EQ(y, want);
  }
  set_default_threads(0);
}

TEST(CompareMisuse, BC34_BC37_CallsSayWhyAndWriteNothing) {
  struct Call {
    std::vector<float> a = std::vector<float>(24, 3), b = std::vector<float>(24, 9);
    std::vector<uint8_t> y = std::vector<uint8_t>(24, 77);
    BNNSNDArrayDescriptor in0 = descriptor(BNNSDataLayout2DFirstMajor, {3, 4}, a.data());
    BNNSNDArrayDescriptor in1 = descriptor(BNNSDataLayout2DFirstMajor, {3, 4}, b.data());
    BNNSNDArrayDescriptor out = descriptor(BNNSDataLayout2DFirstMajor, {3, 4}, y.data(), BNNSDataTypeBoolean);
    BNNSNDArrayDescriptor *p0 = &in0, *p1 = &in1, *p = &out;
    BNNSRelationalOperator op = BNNSRelationalOperatorLess;
  };
  const std::pair<std::function<void(Call&)>, const char*> refusals[] = {
      {[](Call& c) { c.p0 = nullptr; }, "in0 is NULL"},
      {[](Call& c) { c.p1 = nullptr; }, "in1 is NULL"},
      {[](Call& c) { c.p = nullptr; }, "out is NULL"},
      {[](Call& c) { c.in1.data = nullptr; }, "in1.data is NULL"},
      {[](Call& c) { c.op = BNNSRelationalOperator(12); }, "op is 12"},
      {[](Call& c) { c.out.data_type = BNNSDataTypeUInt8; }, "out has type u8, expected bool"},
      {[](Call& c) { c.out.data_type = BNNSDataTypeInt4; }, "out has type i4"},
      {[](Call& c) { c.in1.size[0] = 1; }, "in1 is f32 1x4, expected the sizes of out"},  // no broadcasting
      {[](Call& c) { c.in0 = vector_descriptor(12, c.a.data()); }, "in0 is f32 12"},
      {[](Call& c) { c.in0.data = c.y.data(), c.in0.data_type = BNNSDataTypeUInt8, c.in0.stride[1] = 5; }, "overlap"},
  };
  for (const auto& [spoil, reason] : refusals) {
    Call call;
    spoil(call);
    EXPECT_EQ(BNNSCompareTensor(call.p0, call.p1, call.op, call.p), -1);
    EXPECT_TRUE(refused_because({"compare", reason}));
    EXPECT_EQ(call.y, std::vector<uint8_t>(24, 77));
  }
}

}  // namespace
}  // namespace bnns::testing
