// Copy and transpose: hand-worked numbers, every layout and type against the reference, threads, refusals.

#include "src/engine/copy/copy.h"

#include <cmath>
#include <functional>
#include <limits>

#include "src/ops/copy/copy_ref.h"
#include "tests/support/layouts.h"

namespace bnns::testing {
namespace {

int run_copy(LayoutTensor* dest, LayoutTensor* src, size_t threads = 0) {
  BNNSNDArrayDescriptor d = dest->descriptor(), s = src->descriptor();
  BNNSFilterParameters options = {};
  options.n_threads = threads;
  return BNNSCopy(&d, &s, &options);
}

// Distinct small integers, which every type of at least 8 bits holds.
void number(LayoutTensor* t) {
  size_t next = 0;
  for_each_coordinate(t->size(), [&](const Coordinates& at) { t->set(at, double(next++ % 120)); });
}

// ---- 1. hand-worked ---------------------------------------------------------------------------------------------

TEST(Copy, HandWorked) {
  // RowMajorMatrix {3 columns, 2 rows} and 2DFirstMajor {2, 3} are the same matrix, in the same memory order;
  // ColumnMajorMatrix {2 rows, 3 columns} has it column by column.
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {};
  BNNSNDArrayDescriptor row_major = descriptor(BNNSDataLayoutRowMajorMatrix, {3, 2}, x);
  BNNSNDArrayDescriptor first_major = descriptor(BNNSDataLayout2DFirstMajor, {2, 3}, y);
  ASSERT_EQ(BNNSCopy(&first_major, &row_major, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  BNNSNDArrayDescriptor column_major = descriptor(BNNSDataLayoutColumnMajorMatrix, {2, 3}, y);
  ASSERT_EQ(BNNSCopy(&column_major, &row_major, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  // Transpose swaps size axes: RowMajor {3, 2} to RowMajor {2, 3}.
  BNNSNDArrayDescriptor transposed = descriptor(BNNSDataLayoutRowMajorMatrix, {2, 3}, y);
  ASSERT_EQ(BNNSTranspose(&transposed, &row_major, 0, 1, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  // Rotated weights: the 2 x 2 kernel 1 2 / 3 4 is stored 4 3 / 2 1.
  float k[4] = {1, 2, 3, 4}, r[4] = {};
  BNNSNDArrayDescriptor plain = descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {2, 2, 1, 1}, k);
  BNNSNDArrayDescriptor rotated = descriptor(BNNSDataLayoutConvolutionWeightsOIHrWr, {2, 2, 1, 1}, r);
  ASSERT_EQ(BNNSCopy(&rotated, &plain, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(r, r + 4), (std::vector<float>{4, 3, 2, 1}));
}

TEST(Copy, ConversionRules) {
  const float x[5] = {1.5f, -2.5f, 300.25f, NAN, -0.0f};
  int32_t i32[5];
  int8_t i8[5];
  uint8_t u8[5], boolean[5];
  BNNSNDArrayDescriptor src = vector_descriptor(5, const_cast<float*>(x));
  BNNSNDArrayDescriptor dest = vector_descriptor(5, i32, BNNSDataTypeInt32);
  ASSERT_EQ(BNNSCopy(&dest, &src, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<int32_t>(i32, i32 + 5), (std::vector<int32_t>{2, -2, 300, 0, 0}));  // ties to even
  dest = vector_descriptor(5, i8, BNNSDataTypeInt8);
  dest.data_scale = 0.5f;
  dest.data_bias = 1;  // saturate(round(f / scale - bias))
  ASSERT_EQ(BNNSCopy(&dest, &src, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<int8_t>(i8, i8 + 5), (std::vector<int8_t>{2, -6, 127, 0, -1}));
  dest = vector_descriptor(5, u8, BNNSDataTypeUInt8);
  ASSERT_EQ(BNNSCopy(&dest, &src, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<uint8_t>(u8, u8 + 5), (std::vector<uint8_t>{2, 0, 255, 0, 0}));
  dest = vector_descriptor(5, boolean, BNNSDataTypeBoolean);
  ASSERT_EQ(BNNSCopy(&dest, &src, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<uint8_t>(boolean, boolean + 5), (std::vector<uint8_t>{1, 1, 1, 1, 0}));
  // Back: scale * x + bias.
  float back[5];
  BNNSNDArrayDescriptor quantized = vector_descriptor(5, i8, BNNSDataTypeInt8), f32 = vector_descriptor(5, back);
  quantized.data_scale = 0.5f;
  quantized.data_bias = 1;
  ASSERT_EQ(BNNSCopy(&f32, &quantized, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(back, back + 5), (std::vector<float>{2, -2, 64.5f, 1, 0.5f}));
}

// Integers that no float holds: the same type and other integer types are exact and saturate.
TEST(Copy, IntegersAreExact) {
  const int64_t big = (int64_t{1} << 62) + 1;
  int64_t x[6] = {big, -big, 16777217, -16777217, 5, std::numeric_limits<int64_t>::min()}, y[6];
  int32_t i32[6];
  uint64_t u64[6];
  BNNSNDArrayDescriptor src = vector_descriptor(6, x, BNNSDataTypeInt64);
  BNNSNDArrayDescriptor dest = vector_descriptor(6, y, BNNSDataTypeInt64);
  ASSERT_EQ(BNNSCopy(&dest, &src, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::memcmp(x, y, sizeof x), 0);
  dest = vector_descriptor(6, i32, BNNSDataTypeInt32);
  ASSERT_EQ(BNNSCopy(&dest, &src, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<int32_t>(i32, i32 + 6),
            (std::vector<int32_t>{INT32_MAX, INT32_MIN, 16777217, -16777217, 5, INT32_MIN}));
  dest = vector_descriptor(6, u64, BNNSDataTypeUInt64);
  ASSERT_EQ(BNNSCopy(&dest, &src, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<uint64_t>(u64, u64 + 6), (std::vector<uint64_t>{uint64_t(big), 0, 16777217, 0, 5, 0}));
  u64[0] = UINT64_MAX;
  src = vector_descriptor(6, u64, BNNSDataTypeUInt64);
  dest = vector_descriptor(6, y, BNNSDataTypeInt64);
  ASSERT_EQ(BNNSCopy(&dest, &src, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(y[0], INT64_MAX);
  EXPECT_EQ(y[2], 16777217);
}

// ---- 2. against the reference -----------------------------------------------------------------------------------

struct Pair {
  BNNSDataLayout to, from;
  std::vector<size_t> to_size, from_size;
};
const Pair kPairs[] = {
    {BNNSDataLayoutVector, BNNSDataLayout1DFirstMajor, {131}, {131}},
    {BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutRowMajorMatrix, {17, 9}, {17, 9}},
    {BNNSDataLayout2DFirstMajor, BNNSDataLayoutRowMajorMatrix, {9, 17}, {17, 9}},
    {BNNSDataLayoutRowMajorMatrix, BNNSDataLayoutColumnMajorMatrix, {70, 67}, {67, 70}},
    {BNNSDataLayout2DLastMajor, BNNSDataLayout2DFirstMajor, {33, 130}, {33, 130}},
    {BNNSDataLayoutImageCHW, BNNSDataLayoutImageCHW, {5, 4, 3}, {5, 4, 3}},
    {BNNSDataLayout3DFirstMajor, BNNSDataLayoutImageCHW, {19, 4, 35}, {19, 4, 35}},
    {BNNSDataLayout3DLastMajor, BNNSDataLayout3DFirstMajor, {8, 3, 16}, {8, 3, 16}},
    {BNNSDataLayoutMHA_DHK, BNNSDataLayout3DFirstMajor, {5, 6, 7}, {5, 6, 7}},
    {BNNSDataLayout3DLastMajor, BNNSDataLayoutMHA_DHK, {5, 6, 7}, {5, 6, 7}},
    {BNNSDataLayoutSNE, BNNSDataLayout3DFirstMajor, {5, 1, 7}, {5, 1, 7}},
    {BNNSDataLayoutConvolutionWeightsOIHrWr, BNNSDataLayoutConvolutionWeightsOIHW, {3, 5, 2, 4}, {3, 5, 2, 4}},
    {BNNSDataLayoutConvolutionWeightsOIHW, BNNSDataLayoutConvolutionWeightsIOHrWr, {3, 5, 2, 4}, {3, 5, 4, 2}},
    {BNNSDataLayoutConvolutionWeightsIOHrWr, BNNSDataLayoutConvolutionWeightsOIHrWr, {3, 5, 4, 2}, {3, 5, 2, 4}},
    {BNNSDataLayoutConvolutionWeightsIOHrWr, BNNSDataLayoutConvolutionWeightsIOHrWr, {3, 5, 4, 2}, {3, 5, 4, 2}},
    {BNNSDataLayout5DFirstMajor, BNNSDataLayout5DLastMajor, {2, 3, 2, 3, 4}, {2, 3, 2, 3, 4}},
    {BNNSDataLayout8DLastMajor, BNNSDataLayout8DFirstMajor, {2, 1, 2, 3, 1, 2, 2, 2}, {2, 1, 2, 3, 1, 2, 2, 2}},
};
const BNNSDataType kTypes[] = {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16, BNNSDataTypeInt8,
                               BNNSDataTypeInt16,   BNNSDataTypeInt32,   BNNSDataTypeInt64,    BNNSDataTypeUInt8,
                               BNNSDataTypeUInt16,  BNNSDataTypeUInt32,  BNNSDataTypeUInt64};

TEST(Copy, BC33_LayoutsAndStrides) {
  for_each_isa([&] {
    for (const Pair& pair : kPairs) {
      for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeBFloat16, BNNSDataTypeInt64, BNNSDataTypeUInt8}) {
        for (unsigned gaps = 0; gaps < 4; ++gaps) {
          SCOPED_TRACE("layouts " + std::to_string(pair.to) + " " + std::to_string(pair.from) + " type " +
                       std::to_string(type) + " gaps " + std::to_string(gaps));
          LayoutTensor x(pair.from, pair.from_size, type, gaps & 1 ? 2 : 1, gaps & 1 ? 3 : 0);
          LayoutTensor y(pair.to, pair.to_size, type, gaps & 2 ? 3 : 1, gaps & 2 ? 1 : 0);
          number(&x);
          const auto before = x.snapshot();
          ASSERT_EQ(run_copy(&y, &x), 0) << BNNSExtLastError();
          ASSERT_EQ(x.snapshot(), before);
          ASSERT_TRUE(y.gaps_untouched());
          ref::for_each_copied(pair.to, pair.from, pair.from_size, [&](const Coordinates& to, const Coordinates& from) {
            ASSERT_EQ(y.get(to), x.get(from));
          });
        }
      }
    }
  });
}

TEST(Copy, EveryPairOfTypes) {
  for_each_isa([&] {
    for (BNNSDataType from : kTypes) {
      for (BNNSDataType to : kTypes) {
        for (size_t variant : {2, 4, 11, 13}) {  // same order, transposed, rotated, both rotated
          const Pair& pair = kPairs[variant];
          SCOPED_TRACE("types " + std::to_string(from) + " " + std::to_string(to) + " pair " + std::to_string(variant));
          LayoutTensor x(pair.from, pair.from_size, from, 1, 1), y(pair.to, pair.to_size, to, 1, 2);
          number(&x);
          ASSERT_EQ(run_copy(&y, &x), 0) << BNNSExtLastError();
          ASSERT_TRUE(y.gaps_untouched());
          ref::for_each_copied(pair.to, pair.from, pair.from_size,
                               [&](const Coordinates& a, const Coordinates& b) { ASSERT_EQ(y.get(a), x.get(b)); });
        }
      }
    }
  });
}

// Bits, not values: a signalling NaN, -0 and every f16 pattern come through unchanged.
TEST(Copy, BitsAreKept) {
  std::vector<uint16_t> halves(65536), copied(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = uint16_t(i);
  BNNSNDArrayDescriptor src = descriptor(BNNSDataLayout2DFirstMajor, {256, 256}, halves.data(), BNNSDataTypeFloat16);
  BNNSNDArrayDescriptor dest = descriptor(BNNSDataLayout2DLastMajor, {256, 256}, copied.data(), BNNSDataTypeFloat16);
  ASSERT_EQ(BNNSCopy(&dest, &src, nullptr), 0) << BNNSExtLastError();
  for (size_t i = 0; i < 256; ++i)
    for (size_t j = 0; j < 256; ++j) ASSERT_EQ(copied[i + 256 * j], halves[256 * i + j]);
  uint32_t words[3] = {0x7f800001, 0x80000000, 0xffc0dead}, moved[3] = {};
  src = vector_descriptor(3, words);
  dest = vector_descriptor(3, moved);
  ASSERT_EQ(BNNSCopy(&dest, &src, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::memcmp(words, moved, sizeof words), 0);
}

TEST(Copy, NarrowTypes) {
  // Eight 4-bit numbers, low half of each byte first, as a 2 x 4 matrix, transposed; then to f32; then 1-bit indices.
  uint8_t nibbles[4] = {0x10, 0x32, 0x54, 0x76}, turned[4] = {0xff, 0xff, 0xff, 0xff};
  BNNSNDArrayDescriptor src = descriptor(BNNSDataLayout2DFirstMajor, {2, 4}, nibbles, BNNSDataTypeUInt4);
  BNNSNDArrayDescriptor dest = descriptor(BNNSDataLayout2DLastMajor, {2, 4}, turned, BNNSDataTypeUInt4);
  ASSERT_EQ(BNNSCopy(&dest, &src, nullptr), 0) << BNNSExtLastError();
  const uint8_t want[4] = {0x40, 0x51, 0x62, 0x73};
  EXPECT_EQ(std::memcmp(turned, want, 4), 0);
  float values[8];
  BNNSNDArrayDescriptor f32 = descriptor(BNNSDataLayout2DFirstMajor, {2, 4}, values);
  src.data_type = BNNSDataTypeInt4;  // the upper half of the range is negative
  ASSERT_EQ(BNNSCopy(&f32, &src, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(values[7], 7);
  nibbles[3] = 0xf6;
  ASSERT_EQ(BNNSCopy(&f32, &src, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(values[7], -1);

  const float table[2] = {-3, 8};
  uint8_t bits[1] = {0b101}, same[1] = {0};
  BNNSNDArrayDescriptor indexed = vector_descriptor(3, bits, BNNSDataTypeIndexed1), other = indexed;
  indexed.table_data = other.table_data = const_cast<float*>(table);
  indexed.table_data_type = other.table_data_type = BNNSDataTypeFloat32;
  other.data = same;
  BNNSNDArrayDescriptor looked_up = vector_descriptor(3, values);
  ASSERT_EQ(BNNSCopy(&looked_up, &indexed, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(std::vector<float>(values, values + 3), (std::vector<float>{8, -3, 8}));
  ASSERT_EQ(BNNSCopy(&other, &indexed, nullptr), 0) << BNNSExtLastError();
  EXPECT_EQ(same[0], 0b101);
}

// Every pair of axes of a 4-D tensor, two layouts.
TEST(Transpose, EveryPairOfAxes) {
  for_each_isa([&] {
    for (BNNSDataLayout layout : {BNNSDataLayout4DFirstMajor, BNNSDataLayout4DLastMajor}) {
      const std::vector<size_t> size = {3, 18, 5, 20};
      for (size_t a = 0; a < 4; ++a) {
        for (size_t b = 0; b < 4; ++b) {
          SCOPED_TRACE("axes " + std::to_string(a) + " " + std::to_string(b));
          std::vector<size_t> swapped = size;
          std::swap(swapped[a], swapped[b]);
          LayoutTensor x(layout, size), y(layout, swapped, BNNSDataTypeFloat32, 1, 1);
          float next = 0;
          for_each_coordinate(size, [&](const Coordinates& at) { x.set(at, next++); });
          BNNSNDArrayDescriptor d = y.descriptor(), s = x.descriptor();
          ASSERT_EQ(BNNSTranspose(&d, &s, a, b, nullptr), 0) << BNNSExtLastError();
          ASSERT_TRUE(y.gaps_untouched());
          for_each_coordinate(size, [&](const Coordinates& at) {
            Coordinates to = at;
            std::swap(to[a], to[b]);
            ASSERT_EQ(y.get(to), x.get(at));
          });
        }
      }
    }
  });
}

// ---- 3. properties ----------------------------------------------------------------------------------------------

// Sizes around the vector and the tile, at guard pages; transposing twice gives the bits back.
TEST(Transpose, BC18_SizesAndInverse) {
  for_each_isa([&] {
    for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeInt64, BNNSDataTypeFloat16, BNNSDataTypeUInt8}) {
      for (size_t rows : {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 33, 64, 65, 131}) {
        for (size_t columns : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 129}) {
          LayoutTensor x(BNNSDataLayout2DFirstMajor, {rows, columns}, type),
              back(BNNSDataLayout2DFirstMajor, {rows, columns}, type);
          LayoutTensor y(BNNSDataLayout2DFirstMajor, {columns, rows}, type);
          number(&x);
          BNNSNDArrayDescriptor dx = x.descriptor(), dy = y.descriptor(), db = back.descriptor();
          ASSERT_EQ(BNNSTranspose(&dy, &dx, 0, 1, nullptr), 0) << BNNSExtLastError();
          for (size_t i = 0; i < rows; ++i)
            for (size_t j = 0; j < columns; ++j) ASSERT_EQ(y.get({j, i}), x.get({i, j})) << rows << "x" << columns;
          ASSERT_EQ(BNNSTranspose(&db, &dy, 1, 0, nullptr), 0) << BNNSExtLastError();
          ASSERT_EQ(back.snapshot(), x.snapshot());
        }
      }
    }
  });
}

// Dense copies of every length and alignment; the largest goes through streaming stores.
// Larger than the caches: stores bypass them, from the first whole line of the destination on.
TEST(Transpose, LargeOnesStream) {
  constexpr size_t kRows = 2625, kColumns = 2624, kAll = kRows * kColumns;
  std::vector<float> x(kAll + 3), y(kAll + 18);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (const size_t shift : {0, 1, 5, 16}) {
    for (const bool turned : {false, true}) {
      const size_t rows = turned ? kColumns : kRows, columns = turned ? kRows : kColumns;
      std::fill(y.begin(), y.end(), -1.0f);
      BNNSNDArrayDescriptor from = descriptor(BNNSDataLayoutRowMajorMatrix, {columns, rows}, x.data() + 3);
      BNNSNDArrayDescriptor to = descriptor(BNNSDataLayoutRowMajorMatrix, {rows, columns}, y.data() + 1 + shift);
      ASSERT_EQ(BNNSTranspose(&to, &from, 0, 1, nullptr), 0) << BNNSExtLastError();
      size_t wrong = 0;
      for (size_t j = 0; j < columns; ++j) {
        for (size_t i = 0; i < rows; ++i) wrong += y[1 + shift + j * rows + i] != x[3 + i * columns + j];
      }
      ASSERT_EQ(wrong, 0u) << "shift " << shift << " turned " << turned;
      ASSERT_EQ(y[shift], -1.0f);
      if (shift < 16) {
        ASSERT_EQ(y[1 + shift + kAll], -1.0f);
      }
    }
  }
}

TEST(Copy, BC40_DenseLengthsAndAlignments) {
  for_each_isa([&] {
    std::vector<size_t> lengths = {1000, 65'537, 300'001};
    for (size_t n = 1; n <= 67; ++n) lengths.push_back(n);
    lengths.push_back((25 << 20) / 4 + 3);
    for (size_t n : lengths) {
      Guarded<uint32_t> x(n), y(n + 3);
      for (size_t i = 0; i < n; ++i) x[i] = uint32_t(i * 2654435761u);
      for (size_t shift = 0; shift < (n > 100'000 ? 2 : 4); ++shift) {
        for (size_t i = 0; i < n + 3; ++i) y[i] = kPoisonBits;
        BNNSNDArrayDescriptor src = vector_descriptor(n, x.data()), dest = vector_descriptor(n, y.data() + shift);
        ASSERT_EQ(BNNSCopy(&dest, &src, nullptr), 0) << BNNSExtLastError();
        ASSERT_EQ(std::memcmp(y.data() + shift, x.data(), n * 4), 0);
        for (size_t i = 0; i < n + 3; ++i) {
          if (i == shift) i += n;
          if (i < n + 3) {
            ASSERT_EQ(y[i], kPoisonBits);
          }
        }
      }
    }
  });
}

TEST(Copy, BC53_SameBitsForAnyThreadCount) {
  const Pair pairs[] = {{BNNSDataLayout2DLastMajor, BNNSDataLayout2DFirstMajor, {700, 999}, {700, 999}},
                        {BNNSDataLayout2DFirstMajor, BNNSDataLayout2DFirstMajor, {700, 999}, {700, 999}}};
  for (const Pair& pair : pairs) {
    for (BNNSDataType to : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeInt32}) {
      LayoutTensor x(pair.from, pair.from_size);
      Random random(2);
      for_each_coordinate(x.size(), [&](const Coordinates& at) { x.set(at, 100 * random.normal()); });
      std::vector<unsigned char> first;
      for (size_t threads : kThreadCounts) {
        LayoutTensor y(pair.to, pair.to_size, to, 1, 1);
        ASSERT_EQ(run_copy(&y, &x, threads), 0) << BNNSExtLastError();
        if (first.empty()) first = y.snapshot();
        ASSERT_EQ(y.snapshot(), first) << threads << " threads";
      }
    }
  }
}

// ---- 4. refusals ------------------------------------------------------------------------------------------------

struct Call {
  std::vector<float> x = std::vector<float>(24, 3), y = std::vector<float>(24, 9);
  BNNSNDArrayDescriptor src = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, x.data());
  BNNSNDArrayDescriptor dest = descriptor(BNNSDataLayout2DFirstMajor, {3, 2}, y.data());
  BNNSNDArrayDescriptor *src_pointer = &src, *dest_pointer = &dest;
  size_t axis0 = 1, axis1 = 1;
  BNNSFilterParameters options = {};
};

TEST(Copy, RefusalsWriteNothing) {
  struct Refusal {
    const char* name;
    std::function<void(Call&)> spoil;
    std::initializer_list<const char*> words;
    bool transpose_only = false;
  };
  const Refusal refusals[] = {
      {"no source", [](Call& c) { c.src_pointer = nullptr; }, {"src is NULL"}},
      {"no destination", [](Call& c) { c.dest_pointer = nullptr; }, {"dest is NULL"}},
      {"source data", [](Call& c) { c.src.data = nullptr; }, {"src.data is NULL"}},
      {"destination data", [](Call& c) { c.dest.data = nullptr; }, {"dest.data is NULL"}},
      {"shape", [](Call& c) { c.dest.size[0] = 2, c.dest.size[1] = 3; }, {"(2, 3)", "(3, 2)"}},
      {"rank", [](Call& c) { c.dest = vector_descriptor(6, c.y.data()); }, {"(6)", "(3, 2)"}},
      {"row-major order", [](Call& c) { c.dest.layout = BNNSDataLayoutRowMajorMatrix; }, {"(2, 3)", "(3, 2)"}},
      {"extent 0", [](Call& c) { c.src.size[0] = 0; }, {"src.size[0] is 0"}},
      {"extents overflow", [](Call& c) { c.src.size[0] = c.src.size[1] = SIZE_MAX; }, {"src"}},
      {"no layout", [](Call& c) { c.dest.layout = BNNSDataLayout(9); }, {"dest.layout"}},
      {"no type", [](Call& c) { c.dest.data_type = BNNSDataType(2); }, {"dest.data_type"}},
      {"packed",
       [](Call& c) { c.src.layout = BNNSDataLayoutConvolutionWeightsOIHW_Pack32, c.src.size[2] = c.src.size[3] = 1; },
       {"src.layout", "Pack32"}},
      {"sparse", [](Call& c) { c.src.layout = BNNSDataLayoutFullyConnectedSparse; }, {"src.layout"}},
      {"same memory", [](Call& c) { c.dest.data = c.x.data(); }, {"dest and src overlap"}},
      {"overlap", [](Call& c) { c.dest.data = c.x.data() + 5; }, {"dest and src overlap"}},
      {"misaligned",
       [](Call& c) { c.dest.data = reinterpret_cast<char*>(c.y.data()) + 1; },
       {"dest.data", "multiple of 4"}},
      {"indexed",
       [](Call& c) {
         c.dest.data_type = BNNSDataTypeIndexed8, c.dest.table_data = c.x.data(),
         c.dest.table_data_type = BNNSDataTypeFloat32;
       },
       {"dest has type indexed8"}},
      {"options", [](Call& c) { c.options.flags = 2; }, {"flags is 0x2"}},
      {"axis0", [](Call& c) { c.axis0 = 2; }, {"axis0 is 2", "rank"}, true},
      {"axis1", [](Call& c) { c.axis1 = SIZE_MAX; }, {"axis1", "rank"}, true},
      {"not swapped", [](Call& c) { c.axis0 = 0; }, {"(3, 2)", "(2, 3)"}, true},
  };
  for (const Refusal& refusal : refusals) {
    for (bool transpose : {false, true}) {
      if (refusal.transpose_only && !transpose) continue;
      SCOPED_TRACE(refusal.name);
      Call call;
      refusal.spoil(call);
      const int status = transpose
                             ? BNNSTranspose(call.dest_pointer, call.src_pointer, call.axis0, call.axis1, &call.options)
                             : BNNSCopy(call.dest_pointer, call.src_pointer, &call.options);
      EXPECT_EQ(status, -1);
      EXPECT_TRUE(refused_because(refusal.words));
      EXPECT_EQ(call.x, std::vector<float>(24, 3));
      EXPECT_EQ(call.y, std::vector<float>(24, 9));
    }
  }
}

}  // namespace
}  // namespace bnns::testing
