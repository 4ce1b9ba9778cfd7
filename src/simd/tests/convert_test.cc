// Conversions: half and bfloat16 against the integer code of half.h (and that against arithmetic in double), integers
// against nearbyint with saturation; every length, guard pages, every instruction set.

#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/tests/convert_test.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/convert-inl.h"
#include "src/simd/dispatch.h"

// clang-format off
#define BNNS_TEST_INTEGERS(X) X(int8_t) X(uint8_t) X(int16_t) X(uint16_t) X(int32_t) X(uint32_t)
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {  // these names stay inside this file

#define BNNS_TEST_KERNEL(T)                           \
  void To_##T(const float* src, size_t n, T* dst) {   \
    FromFloat(src, n, dst);                           \
  }                                                   \
  void From_##T(const T* src, size_t n, float* dst) { \
    ToFloat(src, n, dst);                             \
  }
BNNS_TEST_INTEGERS(BNNS_TEST_KERNEL)
#undef BNNS_TEST_KERNEL

}  // namespace
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "src/simd/convert.h"
#include "src/simd/tests/simd_testing.h"

namespace bnns {
namespace {

using namespace bnns::test;

uint32_t bits_of(float v) {
  return std::bit_cast<uint32_t>(v);
}

// The value of a 16-bit pattern from its definition: (-1)^s 2^(e - bias) (1 + m), or 2^(1 - bias) m.
double value_of(uint16_t bits, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias - mantissa_bits);
}

TEST(Half, ScalarBackConversionsAreExact) {
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const double half = value_of(bits, 10), bfloat = value_of(bits, 7);
    if (std::isnan(half)) {
      EXPECT_EQ(bits_of(half_to_float(bits)) | 0x400000u, (i & 0x8000u) << 16 | 0x7FC00000u | (i & 0x3FFu) << 13);
    } else {
      EXPECT_EQ(half_to_float(bits), half);
      EXPECT_EQ(std::signbit(half_to_float(bits)), i >= 0x8000);
      EXPECT_EQ(float_to_half(half_to_float(bits)), bits);
    }
    EXPECT_EQ(bits_of(bfloat16_to_float(bits)), i << 16);
    if (std::isnan(bfloat)) {
      EXPECT_TRUE(std::isnan(bfloat16_to_float(bits)));
    } else {
      EXPECT_EQ(bfloat16_to_float(bits), bfloat);
      EXPECT_EQ(float_to_bfloat16(bfloat16_to_float(bits)), bits);
    }
  }
}

// Second method: of the two neighbours the closer one, the even one at equal distance. Distances are exact in double.
uint16_t nearest(float v, int mantissa_bits, uint16_t below) {
  const auto inf = static_cast<uint16_t>(0x7FFF & ~((1 << mantissa_bits) - 1));
  if (below == inf) return inf;
  const auto above = static_cast<uint16_t>(below + 1);
  const double top = std::ldexp(1.0, mantissa_bits == 10 ? 16 : 128);  // stands for inf
  const double low = value_of(below, mantissa_bits);
  const double high = above == inf ? top : value_of(above, mantissa_bits);
  const double to_low = v - low, to_high = high - v;
  if (to_low != to_high) return to_low < to_high ? below : above;
  return below % 2 == 0 ? below : above;
}

TEST(Half, ScalarRoundsToNearestEven) {
  std::mt19937 random(7);
  for (uint32_t i = 0; i < 0x7C00; ++i) {
    const auto below = static_cast<uint16_t>(i);
    const float low = half_to_float(below), high = i == 0x7BFF ? 65536.0f : half_to_float(static_cast<uint16_t>(i + 1));
    const float middle = (low + high) / 2;
    const float between = low + (high - low) * std::uniform_real_distribution<float>(0, 1)(random);
    for (const float v : {low, std::nextafter(middle, 0.0f), middle, std::nextafter(middle, kInf), between}) {
      if (v >= high) continue;
      const uint16_t want = nearest(v, 10, below);
      ASSERT_EQ(float_to_half(v), want) << v;
      ASSERT_EQ(float_to_half(-v), want | 0x8000) << v;
    }
  }
  for (uint32_t i = 0; i < 0x7F80; ++i) {
    const auto below = static_cast<uint16_t>(i);
    for (const uint32_t rest : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu, static_cast<uint32_t>(random() & 0xFFFF)}) {
      const float v = std::bit_cast<float>(i << 16 | rest);
      ASSERT_EQ(float_to_bfloat16(v), nearest(v, 7, below)) << v;
      ASSERT_EQ(float_to_bfloat16(-v), nearest(v, 7, below) | 0x8000) << v;
    }
  }
}

TEST(Half, SpecialValues) {
  EXPECT_EQ(float_to_half(kInf), 0x7C00);
  EXPECT_EQ(float_to_half(-kInf), 0xFC00);
  EXPECT_EQ(float_to_half(65519.996f), 0x7BFF);
  EXPECT_EQ(float_to_half(65520.0f), 0x7C00);
  EXPECT_EQ(float_to_half(kMax), 0x7C00);
  EXPECT_EQ(float_to_half(-0.0f), 0x8000);
  EXPECT_EQ(float_to_half(kDenorm), 0);
  EXPECT_EQ(float_to_half(0x1p-25f), 0);  // tie to even
  EXPECT_EQ(float_to_half(0x1.8p-24f), 2);
  EXPECT_EQ(float_to_bfloat16(kMax), 0x7F80);
  EXPECT_EQ(float_to_bfloat16(kInf), 0x7F80);
  EXPECT_EQ(float_to_bfloat16(-0.0f), 0x8000);
  for (const uint32_t nan : {0x7F800001u, 0x7FFFFFFFu, 0xFF800001u, 0xFFFFFFFFu, 0x7FC00000u}) {
    const float v = std::bit_cast<float>(nan);
    EXPECT_EQ(float_to_half(v) & 0x7E00, 0x7E00);
    EXPECT_EQ(float_to_half(v) >> 15, nan >> 31);
    EXPECT_EQ(float_to_bfloat16(v) & 0x7FC0, 0x7FC0);
    EXPECT_EQ(float_to_bfloat16(v) >> 15, nan >> 31);
  }
}

TEST(Half, VectorBackConversionsEqualScalar) {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  std::vector<float> half(all.size()), bfloat(all.size());
  for_each_isa([&](Isa) {
    half_to_float(all.data(), half.data(), all.size());
    bfloat16_to_float(all.data(), bfloat.data(), all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(bits_of(half[i]), bits_of(half_to_float(all[i]))) << i;
      ASSERT_EQ(bits_of(bfloat[i]), static_cast<uint32_t>(i) << 16) << i;
    }
  });
}

template <class T>
void expect_integers() {
  std::vector<T> x(300);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i * 7919);
  for_each_isa([&](Isa) {
    for (const size_t n : {0, 1, 7, 16, 33, 300}) {
      std::vector<float> y(n + 1, -1.0f);
      integers_to_float(x.data(), y.data(), n, 0.3f, -1.7f);
      for (size_t i = 0; i < n; ++i) {
        volatile const float product = 0.3f * static_cast<float>(x[i]);  // rounded before the sum
        ASSERT_EQ(y[i], product + -1.7f) << i;
      }
      ASSERT_EQ(y[n], -1.0f);
    }
  });
}

TEST(Integers, ScaledSpansEqualScalar) {
  expect_integers<int8_t>();
  expect_integers<uint8_t>();
  expect_integers<int16_t>();
  expect_integers<uint16_t>();
}

// 2^22 bit patterns by an odd stride, or all of them.
TEST(Half, VectorForwardConversionsEqualScalar) {
  const uint64_t total = exhaustive() ? uint64_t{1} << 32 : uint64_t{1} << 22;
  const uint64_t stride = exhaustive() ? 1 : 1025;
  const size_t chunk = size_t{1} << 16;
  std::vector<float> x(chunk);
  std::vector<uint16_t> half(chunk), bfloat(chunk);
  for (uint64_t begin = 0; begin < total; begin += chunk) {
    for (size_t i = 0; i < chunk; ++i) x[i] = std::bit_cast<float>(static_cast<uint32_t>((begin + i) * stride));
    for_each_isa([&](Isa) {
      float_to_half(x.data(), half.data(), chunk);
      float_to_bfloat16(x.data(), bfloat.data(), chunk);
      for (size_t i = 0; i < chunk; ++i) {
        ASSERT_EQ(half[i], float_to_half(x[i])) << std::hex << bits_of(x[i]);
        ASSERT_EQ(bfloat[i], float_to_bfloat16(x[i])) << std::hex << bits_of(x[i]);
      }
    });
  }
}

TEST(Half, LengthsAndGuardPages) {
  for (size_t n = 0; n <= 67; ++n) {
    GuardedBuffer<float> floats(n + (n == 0)), back(n + (n == 0));
    GuardedBuffer<uint16_t> halves(n + (n == 0));
    for (const bool end : {false, true}) {
      float* x = end ? floats.at_end() : floats.at_start();
      float* y = end ? back.at_end() : back.at_start();
      uint16_t* h = end ? halves.at_end() : halves.at_start();
      for (size_t i = 0; i < n; ++i) x[i] = static_cast<float>(i) * 0.371f - 9.1f;
      for_each_isa([&](Isa) {
        float_to_half(x, h, n);
        half_to_float(h, y, n);
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], half_to_float(float_to_half(x[i])));
        float_to_bfloat16(x, h, n);
        bfloat16_to_float(h, y, n);
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], bfloat16_to_float(float_to_bfloat16(x[i])));
      });
    }
  }
}

template <typename T>
T saturated(float v) {
  if (std::isnan(v)) return 0;
  const double r = std::nearbyint(static_cast<double>(v));
  const double low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  return static_cast<T>(std::min(std::max(r, low), high));
}

template <typename T>
void check_integer(void (*const* to)(const float*, size_t, T*), void (*const* from)(const T*, size_t, float*)) {
  std::vector<float> x = {
      0.5f,          1.5f,          -0.5f,          -1.5f,          2.5f,          -2.5f,
      127.5f,        128.5f,        -128.5f,        -129.0f,        254.5f,        255.5f,
      256.0f,        32767.5f,      32766.5f,       -32768.5f,      65534.5f,      65535.5f,
      2147483520.0f, 2147483648.0f, -2147483648.0f, -2147483904.0f, 4294967040.0f, 4294967296.0f,
      3e9f,          2147483904.0f, kInf,           -kInf,          kNaN,          -kNaN,
      kMax,          -kMax,         kDenorm,        -0.0f,          8388607.5f,    0x1p31f + 256.0f};
  std::mt19937 random(11);
  for (int i = 0; i < 20000; ++i) x.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  for (int i = 0; i < 20000; ++i) x.push_back(static_cast<float>(static_cast<int>(random() % 300000) - 150000) / 4);
  std::vector<T> all(x.size()), integers(70000);
  for (size_t i = 0; i < integers.size(); ++i) integers[i] = static_cast<T>(i < 65536 ? i : random());
  std::vector<float> back(integers.size());
  for_each_isa([&](Isa isa) {
    const auto run_to = to[static_cast<int>(isa)];
    const auto run_from = from[static_cast<int>(isa)];
    run_to(x.data(), x.size(), all.data());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(all[i], saturated<T>(x[i])) << x[i];
    run_from(integers.data(), integers.size(), back.data());
    for (size_t i = 0; i < integers.size(); ++i) ASSERT_EQ(back[i], static_cast<float>(integers[i])) << integers[i];
    for (size_t n = 1; n <= 67; ++n) {
      GuardedBuffer<T> narrow(n);
      GuardedBuffer<float> wide(n);
      for (const bool end : {false, true}) {
        T* p = end ? narrow.at_end() : narrow.at_start();
        float* v = end ? wide.at_end() : wide.at_start();
        std::copy_n(x.begin(), n, v);
        run_to(v, n, p);
        ASSERT_EQ(std::memcmp(p, all.data(), n * sizeof(T)), 0) << n;
        std::copy_n(integers.begin(), n, p);
        run_from(p, n, v);
        ASSERT_EQ(std::memcmp(v, back.data(), n * sizeof(float)), 0) << n;
      }
    }
  });
}

#if HWY_ARCH_X86_64
#define BNNS_TEST_TABLE(name) \
  { &N_SSE4::name, &N_AVX2::name, &N_AVX3::name }
#else
#define BNNS_TEST_TABLE(name) \
  { &HWY_STATIC_DISPATCH(name) }
#endif

#define BNNS_TEST_INTEGER(T)                                                    \
  TEST(Integers, Type_##T) {                                                    \
    void (*const to[])(const float*, size_t, T*) = BNNS_TEST_TABLE(To_##T);     \
    void (*const from[])(const T*, size_t, float*) = BNNS_TEST_TABLE(From_##T); \
    check_integer<T>(to, from);                                                 \
  }
BNNS_TEST_INTEGERS(BNNS_TEST_INTEGER)

}  // namespace
}  // namespace bnns
#endif
