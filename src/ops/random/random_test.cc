// AES, the stream of words, and the uniform fills. Normal and categorical values are tested in
// random_distribution_test.cc, the generator object (state, threads, misuse, memory) in random_generator_test.cc.

#include "src/ops/random/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "src/ops/random/random_testing.h"

namespace bnns {
namespace {

using testing::bits;
using testing::descriptor;
using testing::for_each_isa;
using testing::Guarded;
using testing::same_bits;
using testing::Source;
using testing::to_float;
using testing::vector_descriptor;

std::vector<uint8_t> from_hex(const std::string& text) {
  std::vector<uint8_t> result;
  for (size_t i = 0; i < text.size(); i += 2) result.push_back(uint8_t(std::stoi(text.substr(i, 2), nullptr, 16)));
  return result;
}

// ---- AES -----------------------------------------------------------------------------------------------------------

struct AesVector {
  const char *key, *in, *out;
};

TEST(Aes, PublishedVectors) {
  const AesVector kVectors[] = {
      // FIPS-197 appendices B and C.1
      {"2b7e151628aed2a6abf7158809cf4f3c", "3243f6a8885a308d313198a2e0370734", "3925841d02dc09fbdc118597196a0b32"},
      {"000102030405060708090a0b0c0d0e0f", "00112233445566778899aabbccddeeff", "69c4e0d86a7b0430d8cdb78070b4c55a"},
      // SP 800-38A, F.5.1: the output blocks of CTR-AES128
      {"2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", "ec8cdf7398607cb0f2d21675ea9ea1e4"},
      {"2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f3f4f5f6f7f8f9fafbfcfdff00", "362b7c3c6773516318a077d7fc5073ae"},
      {"2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f3f4f5f6f7f8f9fafbfcfdff01", "6a2cc3787889374fbeb4c81b17ba6c44"},
      {"2b7e151628aed2a6abf7158809cf4f3c", "f0f1f2f3f4f5f6f7f8f9fafbfcfdff02", "e89c399ff0f198c6d40a31db156cabfe"},
      // SP 800-38A, F.1.1: ECB-AES128
      {"2b7e151628aed2a6abf7158809cf4f3c", "6bc1bee22e409f96e93d7e117393172a", "3ad77bb40d7a3660a89ecaf32466ef97"},
  };
  for (const AesVector& v : kVectors) {
    const std::vector<uint8_t> key = from_hex(v.key), in = from_hex(v.in), want = from_hex(v.out);
    std::vector<uint8_t> got(16);
    aes128_encrypt(aes128_expand_key(key.data()), in.data(), got.data());
    EXPECT_EQ(got, want) << v.in;
    ref::Block ref_key, ref_in;
    std::copy(key.begin(), key.end(), ref_key.begin());
    std::copy(in.begin(), in.end(), ref_in.begin());
    const ref::Block reference = ref::aes128(ref_key, ref_in);
    EXPECT_TRUE(std::equal(want.begin(), want.end(), reference.begin())) << "reference, " << v.in;
  }
}

TEST(Aes, TablesAndInstructionsGiveTheSameBlocks) {
  const std::vector<uint8_t> key_bytes = from_hex("000102030405060708090a0b0c0d0e0f");
  const AesKey key = aes128_expand_key(key_bytes.data());
  ref::Block ref_key;
  std::copy(key_bytes.begin(), key_bytes.end(), ref_key.begin());
  for (uint64_t first : {uint64_t{0}, uint64_t{0xfffffffd}, (uint64_t{1} << 62) - 20}) {
    for (size_t blocks = 0; blocks <= 19; ++blocks) {
      Guarded<uint8_t> tables(16 * blocks), instructions(16 * blocks);
      aes128_counter_blocks_tables(key, first, blocks, tables.data());
      for (size_t i = 0; i < blocks; ++i) {
        ref::Block counter{};
        for (size_t k = 0; k < 8; ++k) counter[15 - k] = uint8_t((first + i) >> 8 * k);
        const ref::Block want = ref::aes128(ref_key, counter);
        ASSERT_TRUE(std::equal(want.begin(), want.end(), tables.data() + 16 * i)) << first << " + " << i;
      }
      if (!aes_instructions()) continue;
      aes128_counter_blocks_instructions(key, first, blocks, instructions.data());
      ASSERT_TRUE(std::equal(tables.data(), tables.data() + 16 * blocks, instructions.data())) << blocks;
    }
  }
}

// ---- the stream ----------------------------------------------------------------------------------------------------

// AES with key 0 of counter 0 is 66e94bd4 ef8a2c3b 884cfa59 ca342b2e (NIST's zero vector), so the first words of seed
// 0 are d44be966, 3b2c8aef, 59fa4c88, 2e2b34ca, and u = word 2^-32 rounded to 24 bits.
TEST(RandomStream, FirstBlockOfSeedZeroByHand) {
  const uint32_t kWords[] = {0xd44be966, 0x3b2c8aef, 0x59fa4c88, 0x2e2b34ca};
  for_each_isa([&] {
    Source words(0), floats(0), small(0);
    std::vector<uint32_t> w(4);
    std::vector<float> u(4);
    std::vector<int32_t> dice(4);
    auto w_desc = vector_descriptor(4, w.data(), BNNSDataTypeUInt32);
    auto u_desc = vector_descriptor(4, u.data());
    auto dice_desc = vector_descriptor(4, dice.data(), BNNSDataTypeInt32);
    ASSERT_EQ(BNNSRandomFillUniformInt(words, &w_desc, 0, int64_t{1} << 32), 0);
    ASSERT_EQ(BNNSRandomFillUniformFloat(floats, &u_desc, 0, 1), 0);
    ASSERT_EQ(BNNSRandomFillUniformInt(small, &dice_desc, 1, 7), 0);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(w[i], kWords[i]);
      EXPECT_EQ(u[i], float(kWords[i]) * 0x1p-32f);
    }
    // word / 2^32 = 0.829, 0.231, 0.351, 0.180: times 6, floor, plus 1
    EXPECT_EQ(dice, (std::vector<int32_t>{5, 2, 3, 2}));
  });
}

TEST(RandomStream, EqualsTheReferenceForEverySizeAndSplit) {
  constexpr uint64_t kSeed = 0x0123456789abcdef;
  std::vector<float> want(1200);
  for (size_t i = 0; i < want.size(); ++i) {
    want[i] = ref::uniform_float(ref::word(kSeed, i), BNNSDataTypeFloat32, -1, 1);
  }
  for_each_isa([&] {
    std::vector<size_t> sizes;
    for (size_t n = 1; n <= 67; ++n) sizes.push_back(n);
    sizes.push_back(1000);
    for (size_t n : sizes) {
      Source source(kSeed);
      Guarded<float> y(n);
      auto desc = vector_descriptor(n, y.data());
      ASSERT_EQ(BNNSRandomFillUniformFloat(source, &desc, -1, 1), 0);
      ASSERT_TRUE(same_bits(y.data(), want.data(), n)) << n;
    }
    // Pieces of 1, 2, 3, ... elements continue in the middle of a block.
    Source source(kSeed);
    size_t done = 0;
    for (size_t n = 1; done + n <= want.size(); done += n, ++n) {
      Guarded<float> y(n, Guarded<float>::Side::begin);
      auto desc = vector_descriptor(n, y.data());
      ASSERT_EQ(BNNSRandomFillUniformFloat(source, &desc, -1, 1), 0);
      ASSERT_TRUE(same_bits(y.data(), want.data() + done, n)) << "piece of " << n << " at " << done;
    }
    EXPECT_GT(done, 1000u);
  });
}

TEST(RandomStream, TwoSeedsDiffer) {
  std::vector<std::vector<uint32_t>> streams;
  for (uint64_t seed : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}}) {
    Source source(seed);
    std::vector<uint32_t> w(64);
    auto desc = vector_descriptor(64, w.data(), BNNSDataTypeUInt32);
    ASSERT_EQ(BNNSRandomFillUniformInt(source, &desc, 0, int64_t{1} << 32), 0);
    for (const std::vector<uint32_t>& other : streams) {
      size_t equal = 0;
      for (size_t i = 0; i < 64; ++i) equal += w[i] == other[i];
      EXPECT_LE(equal, 1u);
    }
    streams.push_back(w);
  }
}

// ---- uniform floats ------------------------------------------------------------------------------------------------

// n elements of a float type, read back as f32; the data ends at a guard page.
std::vector<float> fill_uniform(BNNSRandomGenerator source, BNNSDataType type, size_t n, float a, float b) {
  std::vector<float> result(n);
  int status;
  if (type == BNNSDataTypeFloat32) {
    Guarded<float> y(n);
    auto desc = vector_descriptor(n, y.data());
    status = BNNSRandomFillUniformFloat(source, &desc, a, b);
    std::copy(y.data(), y.data() + n, result.begin());
  } else {
    Guarded<uint16_t> y(n);
    auto desc = vector_descriptor(n, y.data(), type);
    status = BNNSRandomFillUniformFloat(source, &desc, a, b);
    for (size_t i = 0; i < n; ++i) result[i] = to_float(type, y[i]);
  }
  EXPECT_EQ(status, 0) << BNNSExtLastError();
  return result;
}

struct FloatRange {
  float a, b;
};

TEST(RandomUniformFloat, EqualsTheReferenceAndStaysInsideTheRange) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const FloatRange kRanges[] = {{0, 1},          {-1, 1},          {-0.1f, 0.1f}, {3, 3},
                                {-0.0f, 0.0f},   {0.99f, 1},       {1, 1.01f},    {-1, 0},
                                {1e-3f, 2e-3f},  {-7.3f, 1000.7f}, {0, 1e-40f},   {-3e4f, 6e4f},
                                {-3e38f, 3e38f}, {-kInf, kInf},    {0, kInf},     {1.0003f, 2.0003f}};
  constexpr size_t kCount = 257;
  std::vector<uint32_t> words(kCount);
  for (size_t i = 0; i < kCount; ++i) words[i] = ref::word(42, i);
  for_each_isa([&] {
    for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
      const float largest = float(ref::format(type).largest);
      for (const FloatRange& range : kRanges) {
        SCOPED_TRACE(::testing::Message() << "type 0x" << std::hex << unsigned(type) << std::dec << " [" << range.a
                                          << ", " << range.b << ")");
        Source source(42);
        const std::vector<float> y = fill_uniform(source, type, kCount, range.a, range.b);
        std::vector<float> want(kCount);
        for (size_t i = 0; i < kCount; ++i) {
          // 0 + turns -0 into 0, as the fill does.
          want[i] = 0 + ref::uniform_float(words[i], type, range.a, range.b);
          if (std::fabs(want[i]) < 0x1p-126f) want[i] = 0;  // subnormal numbers are zeros inside calls
          const float a = std::max(range.a, -largest), b = std::min(range.b, largest);
          if (a < b) {
            ASSERT_GE(y[i], a) << i;
            ASSERT_LT(y[i], b) << i;
          }
        }
        ASSERT_TRUE(same_bits(y, want));
      }
    }
  });
}

// One value of the type lies in [a, next(a)): all elements are it. In the next wider range there are two.
TEST(RandomUniformFloat, TinyRanges) {
  for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
    for (double start : {0.0, 1.0, -1.0, 0.5, -2.0, 1000.0}) {
      if (start == 0 && type != BNNSDataTypeFloat16) continue;  // the next number is subnormal, and 0 inside calls
      const double next = ref::next_above(type, start), second = ref::next_above(type, next);
      Source source(7);
      for (float x : fill_uniform(source, type, 100, float(start), float(next))) ASSERT_EQ(x, float(start));
      bool seen_start = false, seen_next = false;
      for (float x : fill_uniform(source, type, 1000, float(start), float(second))) {
        ASSERT_TRUE(x == float(start) || x == float(next)) << start << " " << x;
        (x == float(start) ? seen_start : seen_next) = true;
      }
      EXPECT_TRUE(seen_start && seen_next) << start;
    }
  }
}

// The words whose float is 2^32 give the largest u below 1, not 1.
TEST(RandomUniformFloat, LargestWordsStayBelowB) {
  const uint32_t kWords[] = {0xffffffff, 0xffffff80, 0xffffff7f, 0xfffffe80, 0, 1, 0x80000000};
  for_each_isa([&] {
    for (const FloatRange& range : {FloatRange{0, 1}, {-1, 1}, {1, 2}, {-3e38f, 3e38f}, {0, 0x1p-149f}, {5, 1e30f}}) {
      const UniformRule rule = make_uniform_rule(BNNSDataTypeFloat32, range.a, range.b);
      float y[7];
      uniform_from_words(rule, kWords, 7, y);
      for (size_t i = 0; i < 7; ++i) {
        EXPECT_EQ(bits(y[i]), bits(0 + ref::uniform_float(kWords[i], BNNSDataTypeFloat32, range.a, range.b))) << i;
        EXPECT_LT(y[i], range.b);
        EXPECT_GE(y[i], range.a);
      }
    }
  });
}

// The emulated fused multiply-add of the baseline rounds as std::fma does, for random operands of all sizes.
TEST(RandomUniformFloat, MultiplyAddIsFusedOnEveryIsa) {
  testing::Random random(3);
  for_each_isa([&] {
    for (int round = 0; round < 3000; ++round) {
      const float low = float(std::ldexp(random.uniform(-1, 1), random.integer(-140, 120)));
      const float high = float(std::ldexp(random.uniform(-1, 1), random.integer(-140, 120)));
      const FloatRange range{std::min(low, high), std::max(low, high)};
      if (range.a == range.b) continue;
      const UniformRule rule = make_uniform_rule(BNNSDataTypeFloat32, range.a, range.b);
      uint32_t words[37];
      float y[37];
      for (uint32_t& word : words) word = uint32_t(random.next());
      uniform_from_words(rule, words, 37, y);
      for (size_t i = 0; i < 37; ++i) {
        const float want = 0 + ref::uniform_float(words[i], BNNSDataTypeFloat32, range.a, range.b);
        ASSERT_EQ(bits(y[i]), bits(want)) << "[" << range.a << ", " << range.b << ") word " << words[i];
      }
    }
  });
}

// Products a hair from a power of two, added to sums half an ulp away: rounding them to double first, or to the wrong
// neighbour, falls on the other side of the tie. u = (1 + 2^-23 i) / 2, width = 2^-23 (1 - 2^-24 j), j near 2 i.
TEST(RandomUniformFloat, MultiplyAddNearTies) {
  constexpr float kMax = std::numeric_limits<float>::max();
  for_each_isa([&] {
    for (uint32_t i = 1; i < 6000; ++i) {
      for (uint32_t j : {2 * i - 2, 2 * i - 1, 2 * i, 2 * i + 1}) {
        for (float a : {1.0f, 1 + 0x1p-23f, 1.5f, -1 - 0x1p-23f, -1 - 0x1p-22f}) {
          const UniformRule rule{a, 0x1p-23f * (1 - 0x1p-24f * float(j)), 1, -kMax, kMax};
          const uint32_t word = 0x80000000u + (i << 8);
          float y;
          uniform_from_words(rule, &word, 1, &y);
          ASSERT_EQ(y, std::fma(float(word) * 0x1p-32f, rule.width, a)) << "i " << i << " j " << j << " a " << a;
        }
      }
    }
  });
}

// N values: mean within 5 sigma of 1/2 (sigma = 1 / sqrt(12 N)), variance within 5 sigma of 1/12 (sigma^2 =
// (1/80 - 1/144) / N), chi-square over 256 bins within 5 sigma of 255 (sigma^2 = 2 255), neighbours uncorrelated.
TEST(RandomUniformFloat, MomentsAndChiSquare) {
  constexpr size_t kCount = 1 << 20, kBins = 256;
  Source source(2024, 0);
  const std::vector<float> y = fill_uniform(source, BNNSDataTypeFloat32, kCount, 0, 1);
  double sum = 0, squares = 0, neighbours = 0;
  std::vector<double> bins(kBins);
  for (size_t i = 0; i < kCount; ++i) {
    const double v = double(y[i]) - 0.5;
    sum += v;
    squares += v * v;
    if (i) neighbours += v * (double(y[i - 1]) - 0.5);
    ++bins[size_t(y[i] * kBins)];
  }
  const double n = kCount;
  EXPECT_LT(std::fabs(sum / n), 5 / std::sqrt(12 * n));
  EXPECT_LT(std::fabs(squares / n - 1.0 / 12), 5 * std::sqrt((1.0 / 80 - 1.0 / 144) / n));
  EXPECT_LT(std::fabs(neighbours / n), 5 / (12 * std::sqrt(n)));
  double chi_square = 0;
  for (double count : bins) chi_square += (count - n / kBins) * (count - n / kBins) / (n / kBins);
  EXPECT_LT(std::fabs(chi_square - (kBins - 1)), 5 * std::sqrt(2.0 * (kBins - 1)));
}

// ---- integers ------------------------------------------------------------------------------------------------------

struct IntegerCase {
  BNNSDataType type;
  int64_t a, b;
};

int64_t stored_integer(BNNSDataType type, const void* data, size_t i) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  const size_t width = unsigned(type) & 0x7fff;
  uint64_t value = 0;
  for (size_t bit = 0; bit < width; ++bit) {  // low bits first, for whole bytes and for parts of bytes
    const size_t at = i * width + bit;
    value |= uint64_t(bytes[at / 8] >> at % 8 & 1) << bit;
  }
  const bool negative = (unsigned(type) & BNNSDataTypeIntBit) && width < 64 && (value >> (width - 1) & 1);
  return int64_t(negative ? value - (uint64_t{1} << width) : value);
}

TEST(RandomUniformInt, EqualsTheReferenceForEveryTypeAndRange) {
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min(), kMax = std::numeric_limits<int64_t>::max();
  const IntegerCase kCases[] = {
      {BNNSDataTypeInt8, -128, 128},
      {BNNSDataTypeInt8, -3, 4},
      {BNNSDataTypeUInt8, 0, 256},
      {BNNSDataTypeInt16, -32768, 32768},
      {BNNSDataTypeUInt16, 7, 65536},
      {BNNSDataTypeInt32, -(int64_t{1} << 31), int64_t{1} << 31},
      {BNNSDataTypeInt32, 5, 6},
      {BNNSDataTypeUInt32, 0, int64_t{1} << 32},
      {BNNSDataTypeInt64, 0, 10},
      {BNNSDataTypeInt64, kMin, kMax},
      {BNNSDataTypeInt64, kMax - 1, kMax},
      {BNNSDataTypeInt64, -5, (int64_t{1} << 32) - 4},
      {BNNSDataTypeInt64, -5, (int64_t{1} << 32) - 5},
      {BNNSDataTypeUInt64, 0, kMax},
      {BNNSDataTypeInt1, -1, 1},
      {BNNSDataTypeInt2, -2, 2},
      {BNNSDataTypeInt4, -8, 8},
      {BNNSDataTypeUInt1, 0, 2},
      {BNNSDataTypeUInt2, 0, 4},
      {BNNSDataTypeUInt3, 0, 8},
      {BNNSDataTypeUInt4, 3, 16},
      {BNNSDataTypeUInt6, 0, 64},
  };
  for (const IntegerCase& c : kCases) {
    for (size_t n : {size_t{1}, size_t{2}, size_t{3}, size_t{7}, size_t{64}, size_t{1001}}) {
      SCOPED_TRACE(::testing::Message() << "type 0x" << std::hex << unsigned(c.type) << std::dec << " n " << n);
      const size_t bytes = (n * (unsigned(c.type) & 0x7fff) + 7) / 8;
      Guarded<uint8_t> y(bytes);
      std::fill(y.data(), y.data() + bytes, uint8_t{0});
      auto desc = vector_descriptor(n, y.data(), c.type);
      desc.data_scale = 0.5f;  // stored integers are drawn; scale and bias stay out of it
      desc.data_bias = 3;
      Source source(17);
      ASSERT_EQ(BNNSRandomFillUniformInt(source, &desc, c.a, c.b), 0) << BNNSExtLastError();
      for (size_t i = 0; i < n; ++i) {
        const int64_t value = stored_integer(c.type, y.data(), i);
        ASSERT_EQ(value, ref::uniform_int(17, 0, i, c.a, c.b)) << i;
        ASSERT_GE(value, c.a);
        ASSERT_LT(value, c.b);
      }
    }
  }
}

// Counts of each face within 5 sigma (binomial), and chi-square within 5 sigma of its mean.
TEST(RandomUniformInt, Frequencies) {
  constexpr size_t kCount = 1 << 20, kFaces = 37;
  std::vector<int8_t> y(kCount);
  Source source(11, 0);
  auto desc = vector_descriptor(kCount, y.data(), BNNSDataTypeInt8);
  ASSERT_EQ(BNNSRandomFillUniformInt(source, &desc, -18, 19), 0);
  std::vector<double> counts(kFaces);
  for (int8_t v : y) ++counts[size_t(v + 18)];
  const double n = kCount, p = 1.0 / kFaces;
  double chi_square = 0;
  for (double count : counts) {
    EXPECT_LT(std::fabs(count - n * p), 5 * std::sqrt(n * p * (1 - p)));
    chi_square += (count - n * p) * (count - n * p) / (n * p);
  }
  EXPECT_LT(std::fabs(chi_square - (kFaces - 1)), 5 * std::sqrt(2.0 * (kFaces - 1)));
  // The full range of int64: each bit is set half of the time.
  std::vector<int64_t> wide(1 << 16);
  auto wide_desc = vector_descriptor(wide.size(), wide.data(), BNNSDataTypeInt64);
  ASSERT_EQ(BNNSRandomFillUniformInt(source, &wide_desc, std::numeric_limits<int64_t>::min(),
                                     std::numeric_limits<int64_t>::max()),
            0);
  for (int bit = 0; bit < 64; ++bit) {
    double set = 0;
    for (int64_t v : wide) set += double(uint64_t(v) >> bit & 1);
    EXPECT_LT(std::fabs(set - double(wide.size()) / 2), 5 * std::sqrt(double(wide.size())) / 2) << bit;
  }
}

// ---- layouts -------------------------------------------------------------------------------------------------------

// BC15, BC33: strided elements get the words in memory order; the gaps keep what they had, whatever that was.
TEST(RandomLayouts, StridedFillsLeaveGapsAlone) {
  constexpr size_t kW = 5, kH = 3, kC = 4, kRow = 7, kPlane = 25, kCount = kW * kH * kC;
  constexpr size_t kSpan = (kC - 1) * kPlane + (kH - 1) * kRow + kW;
  for_each_isa([&] {
    for (uint8_t pattern : {uint8_t{0xFF}, uint8_t{0x00}, uint8_t{0x5A}}) {
      for (int what = 0; what < 4; ++what) {
        SCOPED_TRACE(what);
        const bool wide = what != 2;  // 0 uniform f32, 1 normal f32, 2 uniform f16, 3 int32
        const BNNSDataType type = what == 2 ? BNNSDataTypeFloat16 : what == 3 ? BNNSDataTypeInt32 : BNNSDataTypeFloat32;
        const size_t element = wide ? 4 : 2;
        Guarded<uint8_t> strided(kSpan * element);
        std::fill(strided.data(), strided.data() + strided.size(), pattern);
        std::vector<uint8_t> dense(kCount * element);
        auto desc = descriptor(BNNSDataLayoutImageCHW, {kW, kH, kC}, strided.data(), type);
        desc.stride[0] = 1;
        desc.stride[1] = kRow;
        desc.stride[2] = kPlane;
        auto dense_desc = vector_descriptor(kCount, dense.data(), type);
        Source one(77), two(77);
        for (auto [source, d] : {std::pair{&one, &desc}, {&two, &dense_desc}}) {
          const int status = what == 3   ? BNNSRandomFillUniformInt(*source, d, -1000, 1000)
                             : what == 1 ? BNNSRandomFillNormalFloat(*source, d, 0, 1)
                                         : BNNSRandomFillUniformFloat(*source, d, -1, 1);
          ASSERT_EQ(status, 0) << BNNSExtLastError();
        }
        std::vector<uint8_t> want(kSpan * element, pattern);
        for (size_t i = 0; i < kCount; ++i) {
          const size_t at = i / (kW * kH) * kPlane + i / kW % kH * kRow + i % kW;
          std::copy_n(dense.begin() + ptrdiff_t(i * element), element, want.begin() + ptrdiff_t(at * element));
        }
        ASSERT_TRUE(std::equal(want.begin(), want.end(), strided.data()));
      }
    }
  });
}

// Memory order, whatever the layout says about logical order; rotated weights too.
TEST(RandomLayouts, EveryDenseLayoutGetsTheSameMemory) {
  std::vector<float> want(120), y(120);
  auto want_desc = vector_descriptor(120, want.data());
  Source source(55);
  ASSERT_EQ(BNNSRandomFillUniformFloat(source, &want_desc, 0, 1), 0);
  const BNNSNDArrayDescriptor kDescriptors[] = {
      descriptor(BNNSDataLayoutRowMajorMatrix, {10, 12}, y.data()),
      descriptor(BNNSDataLayout3DFirstMajor, {4, 5, 6}, y.data()),
      descriptor(BNNSDataLayout3DLastMajor, {4, 5, 6}, y.data()),
      descriptor(BNNSDataLayoutMHA_DHK, {4, 5, 6}, y.data()),
      descriptor(BNNSDataLayoutConvolutionWeightsOIHW, {3, 2, 4, 5}, y.data()),
      descriptor(BNNSDataLayoutConvolutionWeightsOIHrWr, {3, 2, 4, 5}, y.data()),
      descriptor(BNNSDataLayout8DFirstMajor, {1, 2, 1, 3, 1, 4, 1, 5}, y.data()),
  };
  for (BNNSNDArrayDescriptor desc : kDescriptors) {
    Source again(55);
    std::fill(y.begin(), y.end(), testing::poison());
    ASSERT_EQ(BNNSRandomFillUniformFloat(again, &desc, 0, 1), 0) << BNNSExtLastError();
    EXPECT_TRUE(same_bits(y, want)) << std::hex << unsigned(desc.layout);
  }
}

}  // namespace
}  // namespace bnns
