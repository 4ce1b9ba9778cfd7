// The values of the normal and the categorical fill.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "src/ops/random/random.h"
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

// ---- normal floats -------------------------------------------------------------------------------------------------

// The quantile: 2^-34.4 from the fit, 2^-36 from the logarithm, then one rounding to f32. The reference inverts erfc,
// whose last bit near 1 (2^-53, divided by the density 0.4) is an absolute error of its own.
double quantile_bound(double z) {
  return std::fabs(z) * 0x1p-33 + 0x1p-51 + ref::spacing(BNNSDataTypeFloat32, z) / 2;
}

TEST(RandomNormalFloat, QuantileOverAllWords) {
  std::vector<uint32_t> words = {0,          1,          2,          3,          100,        0x7ffffffe,
                                 0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0x00ffffff};
  for (uint64_t w = 12345; w < uint64_t{1} << 32; w += 65521) words.push_back(uint32_t(w));
  const NormalRule rule = make_normal_rule(BNNSDataTypeFloat32, 0, 1);
  std::vector<float> first;
  for_each_isa([&] {
    std::vector<float> z(words.size());
    normal_from_words(rule, words.data(), words.size(), z.data());
    if (first.empty()) {
      std::vector<double> want(words.size());
      for (size_t i = 0; i < words.size(); ++i) want[i] = ref::normal_quantile(words[i]);
      EXPECT_TRUE(testing::within(z, want, z.size(), [&](size_t i) { return quantile_bound(want[i]); }));
      EXPECT_NEAR(want[0], -6.3379, 1e-4);  // of 2^-33
      first = z;
    }
    EXPECT_TRUE(same_bits(z, first)) << "instruction sets differ";
    // Odd symmetry: the quantile of the complement is the negative.
    std::vector<uint32_t> complement(words);
    for (uint32_t& word : complement) word = ~word;
    std::vector<float> mirrored(words.size());
    normal_from_words(rule, complement.data(), complement.size(), mirrored.data());
    for (size_t i = 0; i < z.size(); ++i) ASSERT_EQ(mirrored[i], -z[i]) << words[i];
    // Rising words, rising quantiles.
    for (size_t i = 13; i < z.size(); ++i) ASSERT_GT(z[i], z[i - 1]);
  });
}

TEST(RandomNormalFloat, EqualsTheReferenceForEverySizeAndType) {
  constexpr float kMean = 0.25f, kDeviation = 1.75f;
  for_each_isa([&] {
    for (size_t n = 1; n <= 67; ++n) {
      for (BNNSDataType type : {BNNSDataTypeFloat32, BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
        Source source(n);
        std::vector<float> got(n);
        Guarded<float> y(n);
        Guarded<uint16_t> y16(n);
        const bool wide = type == BNNSDataTypeFloat32;
        auto desc = vector_descriptor(n, wide ? static_cast<void*>(y.data()) : y16.data(), type);
        ASSERT_EQ(BNNSRandomFillNormalFloat(source, &desc, kMean, kDeviation), 0);
        for (size_t i = 0; i < n; ++i) {
          const float value = wide ? y[i] : to_float(type, y16[i]);
          const double want = kMean + kDeviation * ref::normal_quantile(ref::word(n, i));
          // One rounding to f32, one to the type, and the quantile's own error.
          ASSERT_NEAR(value, want, quantile_bound(want) * 2 + ref::spacing(type, want) * 0.5 + kDeviation * 0x1p-30);
        }
      }
    }
  });
}

// mean: sigma = s / sqrt(N); variance: s^2 sqrt(2 / N); third and fourth standardised moments: sqrt(15 / N) and
// sqrt(96 / N), the standard deviations of the sample moments E z^3 and E z^4 of a normal variable.
TEST(RandomNormalFloat, Moments) {
  constexpr size_t kCount = 1 << 20;
  std::vector<float> y(kCount);
  Source source(99, 0);
  auto desc = vector_descriptor(kCount, y.data());
  ASSERT_EQ(BNNSRandomFillNormalFloat(source, &desc, -3, 0.5f), 0);
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  size_t beyond = 0;
  for (float value : y) {
    const double z = (double(value) + 3) / 0.5;
    m1 += z;
    m2 += z * z;
    m3 += z * z * z;
    m4 += z * z * z * z;
    beyond += std::fabs(z) > 2;
  }
  const double n = kCount;
  EXPECT_LT(std::fabs(m1 / n), 5 / std::sqrt(n));
  EXPECT_LT(std::fabs(m2 / n - 1), 5 * std::sqrt(2 / n));
  EXPECT_LT(std::fabs(m3 / n), 5 * std::sqrt(15 / n));
  EXPECT_LT(std::fabs(m4 / n - 3), 5 * std::sqrt(96 / n));
  const double p = std::erfc(std::sqrt(2.0));  // P(|z| > 2)
  EXPECT_LT(std::fabs(double(beyond) - n * p), 5 * std::sqrt(n * p * (1 - p)));
}

TEST(RandomNormalFloat, ZeroDeviationAndOverflow) {
  for_each_isa([&] {
    std::vector<float> y(33);
    auto desc = vector_descriptor(33, y.data());
    Source source(5);
    ASSERT_EQ(BNNSRandomFillNormalFloat(source, &desc, 1.5f, 0), 0);
    for (float v : y) EXPECT_EQ(v, 1.5f);
    ASSERT_EQ(BNNSRandomFillNormalFloat(source, &desc, -0.0f, 0), 0);
    for (float v : y) EXPECT_EQ(bits(v), 0u);
    // Values beyond the type are its largest finite ones, never inf.
    ASSERT_EQ(BNNSRandomFillNormalFloat(source, &desc, 0, std::numeric_limits<float>::max()), 0);
    size_t extreme = 0;
    for (float v : y) {
      EXPECT_TRUE(std::isfinite(v));
      extreme += std::fabs(v) == std::numeric_limits<float>::max();
    }
    EXPECT_GT(extreme, 0u);
    std::vector<uint16_t> half(33);
    auto half_desc = vector_descriptor(33, half.data(), BNNSDataTypeFloat16);
    ASSERT_EQ(BNNSRandomFillNormalFloat(source, &half_desc, 1e6f, 1), 0);
    for (uint16_t v : half) EXPECT_EQ(v, 0x7BFF);
  });
}

// ---- categories ----------------------------------------------------------------------------------------------------

std::vector<double> softmax_weights(const float* x, size_t n, size_t stride) {
  double largest = -INFINITY;
  for (size_t k = 0; k < n; ++k) largest = std::max(largest, double(x[k * stride]));
  std::vector<double> p(n);
  for (size_t k = 0; k < n; ++k) p[k] = std::exp(double(x[k * stride]) - largest);
  return p;
}

// Rows x samples x classes in the layouts people use; word m belongs to element m of desc in memory order.
TEST(RandomCategorical, EqualsTheReferenceInEveryLayout) {
  constexpr size_t kRows = 5, kSamples = 7, kClasses = 11;
  testing::Random random(8);
  for (bool logarithms : {false, true}) {
    std::vector<float> table(kRows * kClasses);  // [row][class]
    for (float& p : table) p = float(logarithms ? random.uniform(-4, 3) : random.uniform(0, 2));
    table[3] = table[kClasses] = logarithms ? -INFINITY : 0.0f;
    std::vector<std::vector<double>> want_p(kRows);
    for (size_t r = 0; r < kRows; ++r) {
      const float* row = table.data() + r * kClasses;
      want_p[r] = logarithms ? softmax_weights(row, kClasses, 1) : std::vector<double>(row, row + kClasses);
    }
    std::vector<float> transposed(table.size());  // [class][row]
    for (size_t r = 0; r < kRows; ++r) {
      for (size_t k = 0; k < kClasses; ++k) transposed[k * kRows + r] = table[r * kClasses + k];
    }
    struct Pair {
      const char* name;
      BNNSNDArrayDescriptor p, y;
      bool samples_fastest;
      size_t samples;
    };
    std::vector<float> y(kRows * kSamples);
    const Pair kPairs[] = {
        {"first major", descriptor(BNNSDataLayout2DFirstMajor, {kRows, kClasses}, table.data()),
         descriptor(BNNSDataLayout2DFirstMajor, {kRows, kSamples}, y.data()), true, kSamples},
        {"last major", descriptor(BNNSDataLayout2DLastMajor, {kRows, kClasses}, transposed.data()),
         descriptor(BNNSDataLayout2DLastMajor, {kRows, kSamples}, y.data()), false, kSamples},
        {"row major", descriptor(BNNSDataLayoutRowMajorMatrix, {kClasses, kRows}, table.data()),
         descriptor(BNNSDataLayoutRowMajorMatrix, {kSamples, kRows}, y.data()), true, kSamples},
        {"mixed", descriptor(BNNSDataLayoutRowMajorMatrix, {kClasses, kRows}, table.data()),
         descriptor(BNNSDataLayoutColumnMajorMatrix, {kRows, kSamples}, y.data()), false, kSamples},
        {"one sample", descriptor(BNNSDataLayout2DFirstMajor, {kRows, kClasses}, table.data()),
         vector_descriptor(kRows, y.data()), true, 1},
        {"one row", vector_descriptor(kClasses, table.data()), vector_descriptor(kSamples, y.data()), true, kSamples},
    };
    for (const Pair& pair : kPairs) {
      SCOPED_TRACE(pair.name);
      const size_t rows = pair.p.layout == BNNSDataLayoutVector ? 1 : kRows, count = rows * pair.samples;
      std::fill(y.begin(), y.end(), testing::poison());
      Source source(123);
      ASSERT_EQ(BNNSRandomFillCategoricalFloat(source, &pair.y, &pair.p, logarithms), 0) << BNNSExtLastError();
      for (size_t m = 0; m < count; ++m) {
        const size_t row = pair.samples_fastest ? m / pair.samples : m % rows;
        ASSERT_EQ(y[m], float(ref::categorical(ref::word(123, m), want_p[row]))) << "element " << m;
      }
      for (size_t m = count; m < y.size(); ++m) ASSERT_TRUE(testing::is_poison(y[m]));
    }
  }
}

// ImageCHW: classes along the channels, one sample per pixel, strided, half precision, gaps untouched.
TEST(RandomCategorical, ImagesAndHalfPrecision) {
  constexpr size_t kW = 3, kH = 2, kC = 5, kRowStride = 4, kPlaneStride = 9;
  testing::Random random(21);
  for (BNNSDataType type : {BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
    std::vector<uint16_t> p(kPlaneStride * (kC - 1) + kRowStride + kW, 0xFFFF);  // gaps are NaN
    for (size_t c = 0; c < kC; ++c) {
      for (size_t i = 0; i < kH * kW; ++i) {
        const float value = float(random.integer(0, 3)) + (c == 2);
        p[c * kPlaneStride + i / kW * kRowStride + i % kW] =
            type == BNNSDataTypeFloat16 ? float_to_half(value) : float_to_bfloat16(value);
      }
    }
    auto p_desc = descriptor(BNNSDataLayoutImageCHW, {kW, kH, kC}, p.data(), type);
    p_desc.stride[0] = 1;
    p_desc.stride[1] = kRowStride;
    p_desc.stride[2] = kPlaneStride;
    std::vector<uint16_t> y(kW * 2 * kH, 0xdead);
    auto y_desc = descriptor(BNNSDataLayout2DLastMajor, {kW, kH}, y.data(), type);
    y_desc.stride[0] = 2;
    y_desc.stride[1] = 2 * kW;
    Source source(4);
    ASSERT_EQ(BNNSRandomFillCategoricalFloat(source, &y_desc, &p_desc, false), 0) << BNNSExtLastError();
    for (size_t i = 0; i < kH * kW; ++i) {
      std::vector<double> weights(kC);
      for (size_t c = 0; c < kC; ++c) weights[c] = to_float(type, p[c * kPlaneStride + i / kW * kRowStride + i % kW]);
      EXPECT_EQ(to_float(type, y[2 * i]), float(ref::categorical(ref::word(4, i), weights)));
      EXPECT_EQ(y[2 * i + 1], 0xdead);
    }
  }
}

// Each class within 5 sigma of its share; a class of probability 0 never comes; softmax ignores a constant shift.
TEST(RandomCategorical, Frequencies) {
  constexpr size_t kCount = 200000;
  std::vector<float> p = {0, 1, 2, 0, 3, 4, 0}, logs, shifted, y(kCount), z(kCount), w(kCount);
  for (float v : p) logs.push_back(std::log(v));
  for (float v : logs) shifted.push_back(v + 64);
  auto y_desc = vector_descriptor(kCount, y.data()), z_desc = vector_descriptor(kCount, z.data());
  auto w_desc = vector_descriptor(kCount, w.data());
  auto p_desc = vector_descriptor(7, p.data()), log_desc = vector_descriptor(7, logs.data());
  auto shifted_desc = vector_descriptor(7, shifted.data());
  Source first(6, 0), second(6, 0), third(6, 0);
  ASSERT_EQ(BNNSRandomFillCategoricalFloat(first, &y_desc, &p_desc, false), 0);
  ASSERT_EQ(BNNSRandomFillCategoricalFloat(second, &z_desc, &log_desc, true), 0);
  ASSERT_EQ(BNNSRandomFillCategoricalFloat(third, &w_desc, &shifted_desc, true), 0);
  std::vector<double> counts(7);
  size_t differ = 0, differ_shifted = 0;
  for (size_t i = 0; i < kCount; ++i) {
    ++counts[size_t(y[i])];
    differ += y[i] != z[i];
    differ_shifted += z[i] != w[i];
  }
  for (size_t k = 0; k < 7; ++k) {
    const double share = p[k] / 10;
    EXPECT_LE(std::fabs(counts[k] - kCount * share), 5 * std::sqrt(kCount * share * (1 - share))) << k;
  }
  // logf and the f32 shift move the class borders by some 2^-23 (2^-18 with the shift of 64): few draws fall between.
  EXPECT_LT(differ, 3u);
  EXPECT_LT(differ_shifted, 20u);
}

// A class border at exactly word 2^-32: the sample belongs to the class above. The first word of seed 0 is d44be966;
// its upper 24 bits and lower 8 bits are two classes whose sum is exact, and two more fill up to 1.
TEST(RandomCategorical, BordersBelongToTheClassAbove) {
  const uint32_t word = 0xd44be966, rest = ~word + 1;
  std::vector<float> p, y(1);
  for (uint32_t part : {word & 0xffffff00u, word & 0xffu, rest & 0xffffff00u, rest & 0xffu}) {
    p.push_back(float(part) * 0x1p-32f);
  }
  auto p_desc = vector_descriptor(4, p.data()), y_desc = vector_descriptor(1, y.data());
  Source source(0);
  ASSERT_EQ(BNNSRandomFillCategoricalFloat(source, &y_desc, &p_desc, false), 0);
  EXPECT_EQ(y[0], 2.0f);
}

// Logarithms far from 0: their exponentials alone would be inf or 0.
TEST(RandomCategorical, LargeLogarithms) {
  for (float shift : {1000.0f, -1000.0f, 3e38f, -3e38f}) {
    std::vector<float> logs = {shift, -INFINITY, shift}, y(100);
    auto p_desc = vector_descriptor(3, logs.data()), y_desc = vector_descriptor(100, y.data());
    Source source(2);
    ASSERT_EQ(BNNSRandomFillCategoricalFloat(source, &y_desc, &p_desc, true), 0);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(y[i], float(ref::categorical(ref::word(2, i), {1, 0, 1}))) << shift;
    }
  }
}

// More classes than the table on the stack holds, more samples than one task draws.
TEST(RandomCategorical, ManyClassesAndSamples) {
  constexpr size_t kClasses = 300, kSamples = 5000;
  testing::Random random(14);
  std::vector<float> p(2 * kClasses), y(2 * kSamples);
  for (float& v : p) v = float(random.uniform(0, 1));
  auto p_desc = descriptor(BNNSDataLayout2DFirstMajor, {2, kClasses}, p.data());
  auto y_desc = descriptor(BNNSDataLayout2DFirstMajor, {2, kSamples}, y.data());
  Source source(9);
  ASSERT_EQ(BNNSRandomFillCategoricalFloat(source, &y_desc, &p_desc, false), 0);
  for (size_t m = 0; m < y.size(); m += 37) {
    const float* row = p.data() + m / kSamples * kClasses;
    const std::vector<double> weights(row, row + kClasses);
    ASSERT_EQ(y[m], float(ref::categorical(ref::word(9, m), weights))) << m;
  }
}

}  // namespace
}  // namespace bnns
