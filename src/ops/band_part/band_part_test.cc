// Band part: hand-worked numbers, every layout, type and band against the reference, threads, in place, refusals.

#include "src/ops/band_part/band_part.h"

#include <climits>
#include <functional>

#include "src/ops/band_part/band_part_ref.h"
#include "tests/support/layers.h"

namespace bnns::testing {
namespace {

TEST(BandPart, HandWorked) {
  float x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, y[9];
  auto in = descriptor(BNNSDataLayout2DFirstMajor, {3, 3}, x), out = descriptor(BNNSDataLayout2DFirstMajor, {3, 3}, y);
  const auto band = [&](int lower, int upper) {
    EXPECT_EQ(BNNSBandPart(lower, upper, &in, &out, nullptr), 0) << BNNSExtLastError();
    return std::vector<float>(y, y + 9);
  };
  EXPECT_EQ(band(0, 0), (std::vector<float>{1, 0, 0, 0, 5, 0, 0, 0, 9}));
  EXPECT_EQ(band(-1, 0), (std::vector<float>{1, 0, 0, 4, 5, 0, 7, 8, 9}));  // lower triangle
  EXPECT_EQ(band(0, -1), (std::vector<float>{1, 2, 3, 0, 5, 6, 0, 0, 9}));
  EXPECT_EQ(band(1, 0), (std::vector<float>{1, 0, 0, 4, 5, 0, 0, 8, 9}));
  EXPECT_EQ(band(-1, -1), (std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

// The column is the axis with the smallest stride and the row the next one, in every layout.
TEST(BandPart, BC15_BC33_LayoutsStridesTypes) {
  struct Case {
    BNNSDataLayout layout;
    std::vector<size_t> size;
    size_t column, row;  // size axes
  };
  const Case cases[] = {
      {BNNSDataLayoutRowMajorMatrix, {7, 5}, 0, 1},    {BNNSDataLayoutColumnMajorMatrix, {7, 5}, 0, 1},
      {BNNSDataLayout2DFirstMajor, {5, 37}, 1, 0},     {BNNSDataLayout2DLastMajor, {9, 4}, 0, 1},
      {BNNSDataLayoutImageCHW, {6, 7, 3}, 0, 1},       {BNNSDataLayout3DFirstMajor, {3, 6, 7}, 2, 1},
      {BNNSDataLayoutMHA_DHK, {4, 3, 5}, 0, 2},        {BNNSDataLayout4DFirstMajor, {2, 3, 8, 1}, 3, 2},
      {BNNSDataLayout4DLastMajor, {1, 5, 2, 3}, 0, 1},
  };
  for_each_isa([&] {
    for (const Case& c : cases) {
      for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeBFloat16, BNNSDataTypeInt8, BNNSDataTypeInt64}) {
        for (int lower : {-1, 0, 1, 3, 50, INT_MAX}) {
          for (int upper : {INT_MIN, 0, 2, 50, INT_MAX}) {
            for (size_t gap : {0, 1}) {
              LayoutTensor x(c.layout, c.size, type, 1, gap), y(c.layout, c.size, type, 1 + gap, gap);
              std::vector<double> numbers(x.count());
              for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = double(1 + i % 100);
              fill(&x, numbers);
              auto in = x.descriptor(), out = y.descriptor();
              ASSERT_EQ(BNNSBandPart(lower, upper, &in, &out, nullptr), 0) << BNNSExtLastError();
              ASSERT_TRUE(y.gaps_untouched());
              for_each_coordinate(c.size, [&](const Coordinates& at) {
                const bool kept = ref::in_band(long(at[c.row]), long(at[c.column]), lower, upper);
                ASSERT_EQ(y.get(at), kept ? x.get(at) : 0);
              });
              const auto want = read(y);
              ASSERT_EQ(BNNSBandPart(lower, upper, &in, &in, nullptr), 0) << BNNSExtLastError();  // in place
              ASSERT_EQ(read(x), want);
            }
          }
        }
      }
    }
  });
}

TEST(BandPart, BC53_SameBitsForAnyThreadCount) {
  Random random(1);
  auto x = random.normals(700 * 900);
  for (size_t threads : kThreadCounts) {
    BNNSFilterParameters options = {};
    options.n_threads = threads;
    std::vector<float> y(x.size(), poison());
    auto in = descriptor(BNNSDataLayout2DFirstMajor, {700, 900}, x.data());
    auto out = descriptor(BNNSDataLayout2DFirstMajor, {700, 900}, y.data());
    ASSERT_EQ(BNNSBandPart(20, 300, &in, &out, &options), 0) << BNNSExtLastError();
    for (size_t i = 0; i < x.size(); ++i) {
      const bool kept = ref::in_band(long(i / 900), long(i % 900), 20, 300);
      ASSERT_EQ(bits(y[i]), kept ? bits(x[i]) : 0) << threads << " threads";
    }
  }
}

TEST(BandPartMisuse, BC34_BC37_CallsSayWhyAndWriteNothing) {
  struct Call {
    std::vector<float> x = std::vector<float>(24, 3), y = std::vector<float>(24, 9);
    BNNSNDArrayDescriptor in = descriptor(BNNSDataLayout2DFirstMajor, {3, 4}, x.data());
    BNNSNDArrayDescriptor out = descriptor(BNNSDataLayout2DFirstMajor, {3, 4}, y.data());
    BNNSNDArrayDescriptor *in_pointer = &in, *out_pointer = &out;
  };
  const std::pair<std::function<void(Call&)>, const char*> refusals[] = {
      {[](Call& c) { c.in_pointer = nullptr; }, "input is NULL"},
      {[](Call& c) { c.out_pointer = nullptr; }, "output is NULL"},
      {[](Call& c) { c.out.data = nullptr; }, "output.data is NULL"},
      {[](Call& c) { c.out.size[0] = 4; }, "output is f32 4x4"},
      {[](Call& c) { c.out.layout = BNNSDataLayout2DLastMajor; },
       "layout BNNSDataLayout2DLastMajor (0x28000), expected"},
      {[](Call& c) { c.out.data_type = BNNSDataTypeUInt32; }, "output is u32"},
      {[](Call& c) { c.in = vector_descriptor(6, c.x.data()), c.out = vector_descriptor(6, c.y.data()); },
       "input has rank 1, expected at least 2"},
      {[](Call& c) { c.out.data = c.x.data() + 1; }, "overlap"},
      {[](Call& c) { c.in.size[1] = SIZE_MAX; }, "input"},
  };
  for (const auto& [spoil, reason] : refusals) {
    Call call;
    spoil(call);
    EXPECT_EQ(BNNSBandPart(0, 0, call.in_pointer, call.out_pointer, nullptr), -1);
    EXPECT_TRUE(refused_because({reason}));
    EXPECT_EQ(call.x, std::vector<float>(24, 3));
    EXPECT_EQ(call.y, std::vector<float>(24, 9));
  }
}

}  // namespace
}  // namespace bnns::testing
