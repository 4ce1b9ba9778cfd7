// Descriptors: every layout's addresses against the table of the specification (1.2), strides, sizes, refusals;
// and Elements, the f32 view of any tensor.

#include "src/tensor/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>

#include "src/core/error.h"
#include "src/tensor/elements.h"
#include "tests/support/testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

TEST(Layout, Ranks) {
  EXPECT_EQ(BNNSDataLayoutGetRank(BNNSDataLayoutVector), 1u);
  EXPECT_EQ(BNNSDataLayoutGetRank(BNNSDataLayoutImageCHW), 3u);
  EXPECT_EQ(BNNSDataLayoutGetRank(BNNSDataLayoutConvolutionWeightsOIHW_Pack32), 4u);
  EXPECT_EQ(BNNSDataLayoutGetRank(BNNSDataLayout8DFirstMajor), 8u);
  EXPECT_EQ(BNNSDataLayoutGetRank(BNNSDataLayout(0)), SIZE_MAX);
  EXPECT_EQ(BNNSDataLayoutGetRank(BNNSDataLayout(0x98000)), SIZE_MAX);
  EXPECT_EQ(BNNSDataLayoutGetRank(BNNSDataLayout(0x30007)), SIZE_MAX);
}

struct StrideCase {
  BNNSDataLayout layout;
  std::vector<size_t> size;
  std::vector<size_t> stride;  // expected stride of each size axis when the descriptor gives none
};

// Worked from the table: the stride of size[k] is the product of the extents of all faster axes.
TEST(Resolve, DefaultStridesOfEveryLayout) {
  const StrideCase cases[] = {
      {BNNSDataLayoutVector, {5}, {1}},
      {BNNSDataLayout1DFirstMajor, {5}, {1}},
      {BNNSDataLayoutRowMajorMatrix, {3, 4}, {1, 3}},     // columns, rows
      {BNNSDataLayoutColumnMajorMatrix, {3, 4}, {1, 3}},  // rows, columns
      {BNNSDataLayout2DLastMajor, {3, 4}, {1, 3}},
      {BNNSDataLayout2DFirstMajor, {3, 4}, {4, 1}},
      {BNNSDataLayoutImageCHW, {2, 3, 4}, {1, 2, 6}},
      {BNNSDataLayoutSNE, {2, 3, 4}, {1, 2, 6}},
      {BNNSDataLayoutNSE, {2, 3, 4}, {1, 2, 6}},
      {BNNSDataLayoutMHA_DHK, {2, 3, 4}, {1, 8, 2}},  // d*s0 + h*s1 + k*s2: s1 = 2, s2 = 2*4
      {BNNSDataLayout3DFirstMajor, {2, 3, 4}, {12, 4, 1}},
      {BNNSDataLayoutConvolutionWeightsOIHW, {2, 3, 4, 5}, {1, 2, 6, 24}},
      {BNNSDataLayout4DFirstMajor, {2, 3, 4, 5}, {60, 20, 5, 1}},
      {BNNSDataLayout8DLastMajor, {2, 2, 2, 2, 2, 2, 2, 2}, {1, 2, 4, 8, 16, 32, 64, 128}},
      {BNNSDataLayout8DFirstMajor, {2, 2, 2, 2, 2, 2, 2, 2}, {128, 64, 32, 16, 8, 4, 2, 1}},
  };
  for (const StrideCase& c : cases) {
    const Tensor t = resolve(descriptor(c.layout, c.size, nullptr), "test", "d");
    EXPECT_EQ(std::vector<size_t>(t.stride, t.stride + t.rank), c.stride) << std::hex << unsigned(c.layout);
    EXPECT_TRUE(t.dense);
    EXPECT_EQ(t.span, t.count);
  }
}

// Each zero is resolved by itself from the stride before it.
TEST(Resolve, MixedAndPaddedStrides) {
  auto d = descriptor(BNNSDataLayoutImageCHW, {2, 3, 4}, nullptr);
  d.stride[1] = 8;
  Tensor t = resolve(d, "test", "d");
  EXPECT_EQ(std::vector<size_t>(t.stride, t.stride + 3), (std::vector<size_t>{1, 8, 24}));
  EXPECT_FALSE(t.dense);
  EXPECT_EQ(t.span, 1 + 1 + 2 * 8 + 3 * 24u);
  EXPECT_EQ(t.sample_stride(), 4 * 24u);

  d = descriptor(BNNSDataLayout2DFirstMajor, {3, 4}, nullptr);  // stride[0] is the last axis'
  d.stride[0] = 2;
  t = resolve(d, "test", "d");
  EXPECT_EQ(std::vector<size_t>(t.stride, t.stride + 2), (std::vector<size_t>{8, 2}));
}

TEST(Resolve, Pack32PadsTheLastGroup) {
  const Tensor t =
      resolve(descriptor(BNNSDataLayoutConvolutionWeightsOIHW_Pack32, {3, 3, 2, 33}, nullptr), "test", "d");
  EXPECT_EQ(t.count, 3 * 3 * 2 * 33u);
  EXPECT_EQ(t.span, 2 * 32 * 3 * 3 * 2u);
}

TEST(Resolve, SaysWhyItRefuses) {
  const auto refused = [](BNNSNDArrayDescriptor d, const char* words) {
    try {
      resolve(d, "op", "field");
      ADD_FAILURE() << "accepted; expected: " << words;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  refused(descriptor(BNNSDataLayoutImageCHW, {2, 0, 4}, nullptr), "op: field.size[1] is 0");
  refused(descriptor(BNNSDataLayout(5), {2}, nullptr), "field.layout is 0x5");
  refused(descriptor(BNNSDataLayoutVector, {2}, nullptr, BNNSDataType(0x10011)), "field.data_type is 0x10011");
  refused(descriptor(BNNSDataLayoutVector, {2}, nullptr, BNNSDataTypeFloatBit), "field.data_type");
  refused(descriptor(BNNSDataLayout2DLastMajor, {size_t{1} << 33, size_t{1} << 33}, nullptr), "does not fit");
  refused(descriptor(BNNSDataLayoutVector, {SIZE_MAX / 16}, nullptr), "does not fit");
  auto wrapping = descriptor(BNNSDataLayoutVector, {3}, nullptr);
  wrapping.stride[0] = SIZE_MAX / 2;
  refused(wrapping, "field");
  float value = 0;
  auto table = descriptor(BNNSDataLayoutVector, {3}, &value, BNNSDataTypeIndexed4);
  refused(table, "table_data is NULL");
}

// Each product and sum of sizes and strides that wraps is refused, also where all others fit.
TEST(Resolve, BC34_SizesThatWrap) {
  const auto refused = [](BNNSNDArrayDescriptor d, std::initializer_list<size_t> strides) {
    std::copy(strides.begin(), strides.end(), d.stride);
    EXPECT_THROW(resolve(d, "op", "field"), Error);
  };
  constexpr size_t k32 = size_t{1} << 32, k62 = size_t{1} << 62;
  refused(descriptor(BNNSDataLayout2DLastMajor, {k32, k32}, nullptr), {1, 1});  // elements that share addresses
  refused(descriptor(BNNSDataLayout4DLastMajor, {2, 2, 2, 2}, nullptr), {k62, k62, k62, k62});
  refused(descriptor(BNNSDataLayoutVector, {k32 + 1}, nullptr), {k32});
  refused(descriptor(BNNSDataLayoutVector, {k62}, nullptr), {1});  // bytes
  refused(descriptor(BNNSDataLayoutConvolutionWeightsOIHW_Pack32, {k32, k32, 1, 32}, nullptr), {});
}

TEST(Sizes, DataSizeFollowsTheSpecification) {
  float data[64];
  auto d = descriptor(BNNSDataLayoutImageCHW, {2, 3, 4}, data);
  EXPECT_EQ(BNNSNDArrayGetDataSize(&d), 96u);
  d.stride[1] = 8;
  EXPECT_EQ(BNNSNDArrayGetDataSize(&d), (1 + 1 + 16 + 72) * 4u);
  d.data = nullptr;
  EXPECT_EQ(BNNSNDArrayGetDataSize(&d), 0u);
  for (auto type : {BNNSDataTypeInt4, BNNSDataTypeUInt1, BNNSDataTypeIndexed4}) {  // 0 on the original too
    auto narrow = descriptor(BNNSDataLayoutVector, {8}, data, type);
    narrow.table_data = data;
    narrow.table_data_type = BNNSDataTypeFloat32;
    EXPECT_EQ(BNNSNDArrayGetDataSize(&narrow), 0u);
  }
  EXPECT_EQ(BNNSNDArrayGetDataSize(nullptr), 0u);

  BNNSTensor t;
  std::memset(&t, 0, sizeof t);
  t.data_type = BNNSDataTypeFloat16;
  t.rank = 2;
  t.shape[0] = 3, t.shape[1] = 4;
  t.stride[0] = 4, t.stride[1] = 1;
  EXPECT_EQ(BNNSTensorGetAllocationSize(&t), 24u);
  t.stride[0] = 0;  // literal: all rows are one row
  EXPECT_EQ(BNNSTensorGetAllocationSize(&t), 8u);
  t.shape[1] = -1;
  EXPECT_EQ(BNNSTensorGetAllocationSize(&t), SIZE_MAX);
  t.shape[1] = SSIZE_MAX, t.stride[1] = SSIZE_MAX;
  EXPECT_EQ(BNNSTensorGetAllocationSize(&t), SIZE_MAX);
  EXPECT_EQ(BNNSTensorGetAllocationSize(nullptr), SIZE_MAX);
}

// Reading in memory order through any strides, in blocks that start anywhere.
TEST(Elements, ReadsStridedBlocks) {
  std::vector<float> memory(200);
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = float(i);
  auto d = descriptor(BNNSDataLayoutImageCHW, {3, 4, 5}, memory.data());
  d.stride[0] = 2, d.stride[1] = 7, d.stride[2] = 30;
  const Tensor t = resolve(d, "test", "d");
  const Elements elements(t);
  EXPECT_FALSE(elements.direct());
  std::vector<float> want;
  for (size_t c = 0; c < 5; ++c)
    for (size_t y = 0; y < 4; ++y)
      for (size_t x = 0; x < 3; ++x) want.push_back(float(2 * x + 7 * y + 30 * c));
  for (size_t first = 0; first < 60; ++first) {
    for (size_t n = 1; first + n <= 60; ++n) {
      float room[60];
      const float* got = elements.read(memory.data(), first, n, room);
      ASSERT_TRUE(same_bits(got, &want[first], n)) << first << " " << n;
    }
    EXPECT_EQ(elements.offset(first), size_t(want[first]));
  }
}

TEST(Elements, DenseFloatIsReadInPlace) {
  float memory[24];
  const Tensor t = resolve(descriptor(BNNSDataLayout3DFirstMajor, {2, 3, 4}, memory), "test", "d");
  const Elements elements(t);
  float room[24];
  EXPECT_TRUE(elements.direct());
  EXPECT_EQ(elements.read(memory, 5, 3, room), memory + 5);
}

// A row repeated over an image, in the image's memory order.
TEST(Elements, BroadcastRepeats) {
  float row[] = {1, 2, 3};
  const Tensor t = resolve(descriptor(BNNSDataLayoutImageCHW, {3, 1, 1}, row), "test", "d");
  const Tensor image = resolve(descriptor(BNNSDataLayoutImageCHW, {3, 2, 2}, nullptr), "test", "d");
  float room[12];
  const float* got = Elements(t, image).read(row, 0, 12, room);
  for (size_t i = 0; i < 12; ++i) EXPECT_EQ(got[i], float(1 + i % 3));
}

// Integers: x = scale * i + bias on the way in, saturate(round_half_even(x / scale - bias)) on the way out (1.3, K42).
TEST(Elements, IntegersConvertBothWays) {
  const float values[] = {1.5f, -2.5f, 300.25f, 2.5f, -1e9f, 1e30f, NAN};
  int32_t wide[7];
  int8_t narrow[7];
  uint8_t unsigned_narrow[7];
  Elements(resolve(vector_descriptor(7, wide, BNNSDataTypeInt32), "t", "d")).write(wide, 0, 7, values);
  Elements(resolve(vector_descriptor(7, narrow, BNNSDataTypeInt8), "t", "d")).write(narrow, 0, 7, values);
  Elements(resolve(vector_descriptor(7, unsigned_narrow, BNNSDataTypeUInt8), "t", "d"))
      .write(unsigned_narrow, 0, 7, values);
  EXPECT_EQ(std::vector<int>(wide, wide + 7), (std::vector<int>{2, -2, 300, 2, -1000000000, INT32_MAX, 0}));
  EXPECT_EQ(std::vector<int>(narrow, narrow + 7), (std::vector<int>{2, -2, 127, 2, -128, 127, 0}));
  EXPECT_EQ(std::vector<int>(unsigned_narrow, unsigned_narrow + 7), (std::vector<int>{2, 0, 255, 2, 0, 255, 0}));
  auto d = vector_descriptor(2, narrow, BNNSDataTypeInt8);
  d.data_scale = 0.5f, d.data_bias = 3;
  narrow[0] = 4, narrow[1] = -4;
  float room[2];
  EXPECT_EQ(Elements(resolve(d, "t", "d")).read(narrow, 0, 2, room)[0], 5.0f);
  EXPECT_EQ(room[1], 1.0f);
  const float back[] = {5, 1};  // 5/.5-3 = 7, 1/.5-3 = -1: the header's rule, not the inverse
  Elements(resolve(d, "t", "d")).write(narrow, 0, 2, back);
  EXPECT_EQ(narrow[0], 7);
  EXPECT_EQ(narrow[1], -1);
}

// K2: element k sits in bits (k * width mod 8) upward of byte k * width / 8; int1 is {0, -1}.
TEST(Elements, SubByteTypes) {
  uint8_t bytes[] = {0xe4, 0x1b, 0xf0};
  float room[24];
  const auto read = [&](BNNSDataType type, size_t n) {
    return Elements(resolve(vector_descriptor(n, bytes, type), "t", "d")).read(bytes, 0, n, room);
  };
  const float* got = read(BNNSDataTypeUInt2, 4);
  EXPECT_EQ(std::vector<float>(got, got + 4), (std::vector<float>{0, 1, 2, 3}));
  got = read(BNNSDataTypeInt2, 4);
  EXPECT_EQ(std::vector<float>(got, got + 4), (std::vector<float>{0, 1, -2, -1}));
  got = read(BNNSDataTypeInt4, 4);
  EXPECT_EQ(std::vector<float>(got, got + 4), (std::vector<float>{4, -2, -5, 1}));
  got = read(BNNSDataTypeInt1, 8);
  EXPECT_EQ(std::vector<float>(got, got + 8), (std::vector<float>{0, 0, -1, 0, 0, -1, -1, -1}));
  got = read(BNNSDataTypeUInt3, 8);  // 0xf01be4 = 111 100 000 001 101 111 100 100
  EXPECT_EQ(std::vector<float>(got, got + 8), (std::vector<float>{4, 4, 7, 5, 1, 0, 4, 7}));
  for (auto type : {BNNSDataTypeInt1, BNNSDataTypeInt2, BNNSDataTypeInt4, BNNSDataTypeUInt1, BNNSDataTypeUInt2,
                    BNNSDataTypeUInt3, BNNSDataTypeUInt4, BNNSDataTypeUInt6}) {
    const size_t n = 24 / type_bits(type);
    const Elements elements(resolve(vector_descriptor(n, bytes, type), "t", "d"));
    elements.read(bytes, 0, n, room);
    uint8_t copy[3] = {0xaa, 0xaa, 0xaa};
    elements.write(copy, 0, n, room);
    EXPECT_EQ(std::memcmp(copy, bytes, 3), 0) << type_name(type);
  }
}

TEST(Elements, IndexedTypesLookUpTheTable) {
  const float table[] = {10, 20, 30, 40};
  uint8_t bytes[] = {0xe4};
  auto d = vector_descriptor(4, bytes, BNNSDataTypeIndexed2);
  d.table_data = const_cast<float*>(table);
  d.table_data_type = BNNSDataTypeFloat32;
  float room[4];
  const float* got = Elements(resolve(d, "t", "d")).read(bytes, 0, 4, room);
  EXPECT_EQ(std::vector<float>(got, got + 4), (std::vector<float>{10, 20, 30, 40}));
}

TEST(Elements, AccumulateAdds) {
  float dense[] = {1, 2, 3};
  const float more[] = {10, 20, 30};
  Elements(resolve(vector_descriptor(3, dense), "t", "d")).accumulate(dense, 0, 3, more);
  EXPECT_EQ(std::vector<float>(dense, dense + 3), (std::vector<float>{11, 22, 33}));
  float strided[] = {1, poison(), 2, poison(), 3};
  auto d = vector_descriptor(3, strided);
  d.stride[0] = 2;
  Elements(resolve(d, "t", "d")).accumulate(strided, 0, 3, more);
  EXPECT_EQ(strided[0], 11);
  EXPECT_EQ(strided[4], 33);
  EXPECT_TRUE(is_poison(strided[1]) && is_poison(strided[3]));
}

}  // namespace
}  // namespace bnns
