// The loops of loops-inl.h: every length around the vector width, in place, between guard pages, and reductions whose
// result depends on the data and n alone.

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/tests/loops_test.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {  // these names stay inside this file

void ScaleKernel(const float* x, float* y, size_t n) {
  Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return hn::Mul(v, hn::Set(d, 3.0f)); });
}
void QuotientKernel(const float* a, const float* b, float* y, size_t n) {
  Transform2(a, b, y, n, [](auto, auto u, auto v) HWY_ATTR { return hn::Div(u, v); });
}
void BlendKernel(const float* a, const float* b, const float* c, float* y, size_t n) {
  Transform3(a, b, c, y, n, [](auto, auto u, auto v, auto w) HWY_ATTR { return hn::Sub(hn::Add(u, v), w); });
}
float SumKernel(const float* x, size_t n) {
  return Reduce(x, n, SumOp(), [](auto, auto v) HWY_ATTR { return v; });
}
// 1 + x is 1, not 0, in the unused lanes of a tail: they must not count.
float SumPlusOneKernel(const float* x, size_t n) {
  return Reduce(x, n, SumOp(), [](auto d, auto v) HWY_ATTR { return hn::Add(v, hn::Set(d, 1.0f)); });
}
float MaxKernel(const float* x, size_t n) {
  return Reduce(x, n, MaxOp(), [](auto, auto v) HWY_ATTR { return v; });
}
float MinKernel(const float* x, size_t n) {
  return Reduce(x, n, MinOp(), [](auto, auto v) HWY_ATTR { return v; });
}
float DotKernel(const float* a, const float* b, size_t n) {
  return Reduce2(a, b, n, SumOp(), [](auto, auto u, auto v) HWY_ATTR { return hn::Mul(u, v); });
}

}  // namespace
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <random>
#include <vector>

#include "src/simd/tests/simd_testing.h"

namespace bnns {
namespace {

using namespace bnns::test;

constexpr size_t kMaxLength = 67;  // four vectors of 16 floats and a tail
constexpr float kPoison = -777.0f;

std::vector<float> numbers(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(0.5f, 2.0f);
  std::vector<float> x(n);
  for (float& v : x) v = uniform(random);
  return x;
}

TEST(Loops, TransformsAllLengths) {
  const auto a = numbers(kMaxLength, 1), b = numbers(kMaxLength, 2), c = numbers(kMaxLength, 3);
  for_each_isa([&](Isa) {
    for (size_t n = 0; n <= kMaxLength; ++n) {
      std::vector<float> one(n + 16, kPoison), two = one, three = one;
      BNNS_DISPATCH(ScaleKernel)(a.data(), one.data(), n);
      BNNS_DISPATCH(QuotientKernel)(a.data(), b.data(), two.data(), n);
      BNNS_DISPATCH(BlendKernel)(a.data(), b.data(), c.data(), three.data(), n);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(one[i], a[i] * 3.0f) << n;
        ASSERT_EQ(two[i], a[i] / b[i]) << n;
        ASSERT_EQ(three[i], (a[i] + b[i]) - c[i]) << n;
      }
      for (size_t i = n; i < one.size(); ++i) {
        ASSERT_EQ(one[i], kPoison);
        ASSERT_EQ(two[i], kPoison);
        ASSERT_EQ(three[i], kPoison);
      }
    }
  });
}

TEST(Loops, InPlace) {
  const auto a = numbers(kMaxLength, 1), b = numbers(kMaxLength, 2), c = numbers(kMaxLength, 3);
  for_each_isa([&](Isa) {
    for (size_t n = 0; n <= kMaxLength; ++n) {
      std::vector<float> one = a, two = b, three = c;
      BNNS_DISPATCH(ScaleKernel)(one.data(), one.data(), n);
      BNNS_DISPATCH(QuotientKernel)(a.data(), two.data(), two.data(), n);
      BNNS_DISPATCH(BlendKernel)(a.data(), b.data(), three.data(), three.data(), n);
      for (size_t i = 0; i < kMaxLength; ++i) {
        ASSERT_EQ(one[i], i < n ? a[i] * 3.0f : a[i]);
        ASSERT_EQ(two[i], i < n ? a[i] / b[i] : b[i]);
        ASSERT_EQ(three[i], i < n ? (a[i] + b[i]) - c[i] : c[i]);
      }
    }
  });
}

// A read or write outside the n elements ends the test with a fault.
TEST(Loops, StayBetweenGuardPages) {
  const auto data = numbers(kMaxLength, 4);
  for (size_t n = 1; n <= kMaxLength; ++n) {
    GuardedBuffer<float> in(n), out(n);
    for (const bool end : {false, true}) {
      float* x = end ? in.at_end() : in.at_start();
      float* y = end ? out.at_end() : out.at_start();
      std::copy_n(data.begin(), n, x);
      for_each_isa([&](Isa) {
        BNNS_DISPATCH(ScaleKernel)(x, y, n);
        ASSERT_EQ(y[n - 1], data[n - 1] * 3.0f);
        BNNS_DISPATCH(QuotientKernel)(x, x, y, n);
        ASSERT_EQ(y[0], 1.0f);
        BNNS_DISPATCH(BlendKernel)(x, x, x, y, n);
        ASSERT_EQ(y[n - 1], data[n - 1]);
        ASSERT_GT(BNNS_DISPATCH(SumKernel)(x, n), 0.0f);
        ASSERT_GT(BNNS_DISPATCH(DotKernel)(x, x, n), 0.0f);
        ASSERT_EQ(BNNS_DISPATCH(MaxKernel)(x, n), *std::max_element(x, x + n));
      });
    }
  }
}

// Sums of small integers are exact in any order; a lane counted twice, or left out, shows.
TEST(Loops, SumsAreExactOnIntegers) {
  std::vector<float> x(300), y(300);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>((i * 37) % 101) - 50;
    y[i] = static_cast<float>((i * 53) % 19) - 9;
  }
  for_each_isa([&](Isa) {
    long sum = 0, dot = 0;
    for (size_t n = 0; n <= x.size(); ++n) {
      EXPECT_EQ(BNNS_DISPATCH(SumKernel)(x.data(), n), static_cast<float>(sum));
      EXPECT_EQ(BNNS_DISPATCH(SumPlusOneKernel)(x.data(), n), static_cast<float>(sum + static_cast<long>(n)));
      EXPECT_EQ(BNNS_DISPATCH(DotKernel)(x.data(), y.data(), n), static_cast<float>(dot));
      if (n == x.size()) break;
      sum += static_cast<long>(x[n]);
      dot += static_cast<long>(x[n]) * static_cast<long>(y[n]);
    }
  });
}

// Same values at another alignment: the same bits.
TEST(Loops, SumDoesNotDependOnAlignment) {
  const auto x = numbers(1000, 5);
  std::vector<float> room(1100);
  for_each_isa([&](Isa) {
    const float first = BNNS_DISPATCH(SumKernel)(x.data(), x.size());
    for (size_t offset = 0; offset < 33; ++offset) {
      std::copy(x.begin(), x.end(), room.begin() + static_cast<std::ptrdiff_t>(offset));
      ASSERT_EQ(BNNS_DISPATCH(SumKernel)(room.data() + offset, x.size()), first);
    }
  });
}

TEST(Loops, MaxAndMin) {
  for_each_isa([&](Isa) {
    EXPECT_EQ(BNNS_DISPATCH(MaxKernel)(nullptr, 0), -kInf);
    EXPECT_EQ(BNNS_DISPATCH(MinKernel)(nullptr, 0), kInf);
    for (size_t n = 1; n <= 2 * kMaxLength; ++n) {
      auto x = numbers(n, static_cast<unsigned>(n));
      for (size_t at = 0; at < n; at += n / 5 + 1) {
        auto one = x;
        one[at] = -5;  // below all others, and zeros of the tail must not hide it
        EXPECT_EQ(BNNS_DISPATCH(MinKernel)(one.data(), n), -5.0f);
        one[at] = 5;
        EXPECT_EQ(BNNS_DISPATCH(MaxKernel)(one.data(), n), 5.0f);
        one[at] = kNaN;
        EXPECT_TRUE(std::isnan(BNNS_DISPATCH(MaxKernel)(one.data(), n))) << n << " " << at;
        EXPECT_TRUE(std::isnan(BNNS_DISPATCH(MinKernel)(one.data(), n))) << n << " " << at;
      }
      for (float& v : x) v = -v;
      EXPECT_EQ(BNNS_DISPATCH(MaxKernel)(x.data(), n), *std::max_element(x.begin(), x.end()));
    }
  });
}

}  // namespace
}  // namespace bnns
#endif
