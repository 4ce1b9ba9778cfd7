// The vector functions against libm in double, on every instruction set: error in ulp over a sample of all float bit
// patterns (all 2^32 with BNNS_TEST_EXHAUSTIVE=1), exact special values, and the same bits wherever a value stands.

#include <cstddef>
#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/tests/math_test.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
#include "src/simd/math-inl.h"

// clang-format off
#define BNNS_TEST_FUNCTIONS(X)                                                                                        \
  X(Exp) X(Exp2) X(Expm1) X(Log) X(Log2) X(Log1p) X(Sigmoid) X(LogSigmoid) X(Softplus) X(Tanh) X(Erf) X(NormalCdf)    \
  X(Sin) X(Cos) X(Tan) X(Asin) X(Acos) X(Atan) X(Sinh) X(Cosh) X(Asinh) X(Acosh) X(Atanh)
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {  // these names stay inside this file

#define BNNS_TEST_KERNEL(Name)                                              \
  void Name##Kernel(const float* x, float* y, size_t n) {                   \
    Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return Name(d, v); }); \
  }
BNNS_TEST_FUNCTIONS(BNNS_TEST_KERNEL)
#undef BNNS_TEST_KERNEL

void PowKernel(const float* a, const float* b, float* y, size_t n) {
  Transform2(a, b, y, n, [](auto d, auto u, auto v) HWY_ATTR { return Pow(d, u, v); });
}

}  // namespace
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/simd/tests/simd_testing.h"

namespace bnns {
namespace {

using namespace bnns::test;

struct Function {
  const char* name;
  void (*run)(const float*, float*, size_t);
  double (*exact)(double);
  double bound;  // ulp, from the contract in math-inl.h
};

#define BNNS_TEST_RUN(Name)                             \
  void run_##Name(const float* x, float* y, size_t n) { \
    BNNS_DISPATCH(Name##Kernel)(x, y, n);               \
  }
BNNS_TEST_FUNCTIONS(BNNS_TEST_RUN)
#undef BNNS_TEST_RUN

void run_pow(const float* a, const float* b, float* y, size_t n) {
  BNNS_DISPATCH(PowKernel)(a, b, y, n);
}

double sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
double softplus(double x) {
  return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
}
double softplus_nan(double x) {
  return std::isnan(x) ? x : softplus(x);
}

const Function kFunctions[] = {
    {"Exp", run_Exp, [](double x) { return std::exp(x); }, 2},
    {"Exp2", run_Exp2, [](double x) { return std::exp2(x); }, 2},
    {"Expm1", run_Expm1, [](double x) { return std::expm1(x); }, 2},
    {"Log", run_Log, [](double x) { return std::log(x); }, 2},
    {"Log2", run_Log2, [](double x) { return std::log2(x); }, 2},
    {"Log1p", run_Log1p, [](double x) { return std::log1p(x); }, 2},
    {"Sigmoid", run_Sigmoid, sigmoid, 2},
    {"LogSigmoid", run_LogSigmoid, [](double x) { return -softplus_nan(-x); }, 2},
    {"Softplus", run_Softplus, softplus_nan, 2},
    {"Tanh", run_Tanh, [](double x) { return std::tanh(x); }, 2},
    {"Erf", run_Erf, [](double x) { return std::erf(x); }, 4},
    {"NormalCdf", run_NormalCdf, [](double x) { return 0.5 * std::erfc(-x * 0.70710678118654752440); }, 2},
    {"Sin", run_Sin, [](double x) { return std::sin(x); }, 2},
    {"Cos", run_Cos, [](double x) { return std::cos(x); }, 2},
    {"Tan", run_Tan, [](double x) { return std::tan(x); }, 4},
    {"Asin", run_Asin, [](double x) { return std::asin(x); }, 2},
    {"Acos", run_Acos, [](double x) { return std::acos(x); }, 2},
    {"Atan", run_Atan, [](double x) { return std::atan(x); }, 2},
    {"Sinh", run_Sinh, [](double x) { return std::sinh(x); }, 2},
    {"Cosh", run_Cosh, [](double x) { return std::cosh(x); }, 2},
    {"Asinh", run_Asinh, [](double x) { return std::asinh(x); }, 4},
    {"Acosh", run_Acosh, [](double x) { return std::acosh(x); }, 4},
    {"Atanh", run_Atanh, [](double x) { return std::atanh(x); }, 4},
};

class MathTest : public testing::TestWithParam<Function> {};
INSTANTIATE_TEST_SUITE_P(All, MathTest, testing::ValuesIn(kFunctions),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

// Bit patterns k * stride for k in [begin, begin + count): an odd stride visits all of them before it repeats.
std::vector<float> bit_patterns(uint64_t begin, size_t count, uint32_t stride) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i) x[i] = std::bit_cast<float>(static_cast<uint32_t>((begin + i) * stride));
  return x;
}

struct Worst {
  double ulp = 0;
  float x = 0, y = 0;
};

TEST_P(MathTest, ErrorInUlp) {
  const Function& f = GetParam();
  const bool all = exhaustive();
  const uint64_t total = all ? uint64_t{1} << 32 : uint64_t{1} << 20;
  const size_t chunk = size_t{1} << 20;
  Worst worst[3];
  std::vector<double> exact(chunk);
  std::vector<float> y(chunk);
  for (uint64_t begin = 0; begin < total; begin += chunk) {
    const std::vector<float> x = bit_patterns(begin, chunk, all ? 1 : 4099);
    for (size_t i = 0; i < chunk; ++i) exact[i] = f.exact(x[i]);
    for_each_isa([&](Isa isa) {
      f.run(x.data(), y.data(), chunk);
      Worst& w = worst[static_cast<int>(isa)];
      for (size_t i = 0; i < chunk; ++i) {
        const double e = ulp_error(y[i], exact[i]);
        if (e > w.ulp) w = {e, x[i], y[i]};
      }
    });
  }
  std::printf("%-10s bound %g  max ulp", f.name, f.bound);
  for_each_isa([&](Isa isa) {
    const Worst& w = worst[static_cast<int>(isa)];
    std::printf("  %s %.3f (x = %a)", isa_name(isa), w.ulp, w.x);
    EXPECT_LE(w.ulp, f.bound) << f.name << "(" << w.x << ") = " << w.y << ", exactly " << f.exact(w.x);
  });
  std::printf("\n");
}

// inf, 0 and NaN where libm has them, with the same sign; odd functions keep -0.
TEST_P(MathTest, SpecialValues) {
  const Function& f = GetParam();
  const float x[] = {0.0f,  -0.0f,  kInf,    -kInf, kNaN,    -kNaN,    std::bit_cast<float>(0x7F800001u),
                     1.0f,  -1.0f,  kMax,    -kMax, kDenorm, -kDenorm, 2.0f,
                     -2.0f, 100.0f, -100.0f, 1e30f, -1e30f,  104.0f,   -104.0f};
  for_each_isa([&](Isa) {
    for (const float value : x) {
      float y = 0;
      f.run(&value, &y, 1);
      const float want = static_cast<float>(f.exact(value));
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(y)) << f.name << "(" << value << ") = " << y;
      } else if (want == 0 || std::isinf(want)) {
        // log(sigmoid(+large)) is -0 in exact arithmetic, from either side of the last subtraction.
        if (std::string(f.name) == "LogSigmoid" && want == 0) {
          EXPECT_EQ(y, 0) << f.name << "(" << value << ")";
        } else {
          EXPECT_EQ(std::bit_cast<uint32_t>(y), std::bit_cast<uint32_t>(want)) << f.name << "(" << value << ") = " << y;
        }
      } else {
        EXPECT_LE(ulp_error(y, f.exact(value)), f.bound) << f.name << "(" << value << ") = " << y;
      }
    }
  });
}

// Each element alone (n = 1, a tail) gives the bits it has at any place of a longer array; in place gives them too.
TEST_P(MathTest, BodyEqualsTail) {
  const Function& f = GetParam();
  std::vector<float> x = bit_patterns(7, 67, 63976183u);
  x[5] = 1e20f;  // a lane that takes the slow path of sin and cos
  for (size_t i = 20; i < 60; ++i) x[i] = (static_cast<float>(i) - 40.0f) * 0.37f;
  for_each_isa([&](Isa) {
    std::vector<float> alone(x.size());
    for (size_t i = 0; i < x.size(); ++i) f.run(&x[i], &alone[i], 1);
    for (size_t n = 1; n <= x.size(); ++n) {
      std::vector<float> y(n + 1, 123.0f);
      f.run(x.data(), y.data(), n);
      ASSERT_EQ(std::memcmp(y.data(), alone.data(), n * sizeof(float)), 0) << f.name << " n = " << n;
      ASSERT_EQ(y[n], 123.0f);
      std::vector<float> in_place(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n));
      f.run(in_place.data(), in_place.data(), n);
      ASSERT_EQ(std::memcmp(in_place.data(), alone.data(), n * sizeof(float)), 0) << f.name << " in place, n = " << n;
    }
  });
}

// What has bounds never leaves them, not even by an ulp.
TEST(MathShape, BoundedFunctionsStayInBounds) {
  const std::vector<float> x = bit_patterns(0, size_t{1} << 20, 4099);
  std::vector<float> y(x.size());
  for_each_isa([&](Isa) {
    for (const auto run : {run_Tanh, run_Erf, run_NormalCdf, run_Sin, run_Cos}) {
      run(x.data(), y.data(), x.size());
      for (size_t i = 0; i < x.size(); ++i) ASSERT_FALSE(std::fabs(y[i]) > 1) << x[i];
    }
    run_Sigmoid(x.data(), y.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_FALSE(y[i] < 0 || y[i] > 1) << x[i];
  });
}

TEST(MathExact, PowersOfTwo) {
  for_each_isa([&](Isa) {
    for (int k = -149; k <= 127; ++k) {
      const float power = std::ldexp(1.0f, k), exponent = static_cast<float>(k);
      float y = 0;
      run_Log2(&power, &y, 1);
      EXPECT_EQ(y, exponent);
      run_Exp2(&exponent, &y, 1);
      EXPECT_EQ(y, power);
    }
  });
}

void expect_pow(float a, float b) {
  float y = 0;
  run_pow(&a, &b, &y, 1);
  const double exact = std::pow(static_cast<double>(a), static_cast<double>(b));
  const float want = static_cast<float>(exact);
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(y)) << "pow(" << a << ", " << b << ") = " << y;
  } else if (want == 0 || std::isinf(want) || want == 1) {
    EXPECT_EQ(std::bit_cast<uint32_t>(y), std::bit_cast<uint32_t>(want)) << "pow(" << a << ", " << b << ") = " << y;
  } else {
    EXPECT_LE(ulp_error(y, exact), 4) << "pow(" << a << ", " << b << ") = " << y;
  }
}

TEST(MathPow, SpecialPairs) {
  const float values[] = {0.0f,         -0.0f,      1.0f,     -1.0f,  2.0f,        -2.0f,      3.0f,    -3.0f,
                          0.5f,         -0.5f,      1.5f,     -1.5f,  kInf,        -kInf,      kNaN,    kMax,
                          -kMax,        kDenorm,    -kDenorm, 0.75f,  -0.75f,      0x1p23f,    0x1p24f, 16777215.0f,
                          -16777215.0f, 8388607.5f, 1e30f,    -1e30f, 1.00000012f, 0.99999994f};
  for_each_isa([&](Isa) {
    for (const float a : values) {
      for (const float b : values) expect_pow(a, b);
    }
  });
}

// Any two bit patterns; then pairs whose power is in range, the base close to and far from 1, and negative bases.
TEST(MathPow, ErrorInUlp) {
  const size_t count = exhaustive() ? size_t{1} << 28 : size_t{1} << 20;
  const size_t chunk = size_t{1} << 18;
  std::mt19937_64 random(20240817);
  Worst worst[3];
  std::vector<float> a(chunk), b(chunk), y(chunk);
  std::vector<double> exact(chunk);
  for (size_t done = 0; done < count; done += chunk) {
    for (size_t i = 0; i < chunk; ++i) {
      const uint64_t bits = random();
      a[i] = std::bit_cast<float>(static_cast<uint32_t>(bits));
      b[i] = std::bit_cast<float>(static_cast<uint32_t>(bits >> 32));
      if (i % 4 != 0 && a[i] != 0) {
        if (i % 4 >= 2) a[i] = 1 + std::remainder(a[i], 1.0f) * 0.9f;
        const double log = std::log(std::fabs(static_cast<double>(a[i])));
        const double power = static_cast<double>(bits >> 40) * 0x1p-24 * 200 - 106;  // of e
        b[i] = static_cast<float>(power / log);
        if (i % 8 == 1) b[i] = std::round(b[i]);
      }
      exact[i] = std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]));
    }
    for_each_isa([&](Isa isa) {
      run_pow(a.data(), b.data(), y.data(), chunk);
      Worst& w = worst[static_cast<int>(isa)];
      for (size_t i = 0; i < chunk; ++i) {
        const double e = ulp_error(y[i], exact[i]);
        if (e > w.ulp) w = {e, a[i], b[i]};
      }
    });
  }
  std::printf("%-10s bound 4  max ulp", "Pow");
  for_each_isa([&](Isa isa) {
    const Worst& w = worst[static_cast<int>(isa)];
    std::printf("  %s %.3f (x = %a, y = %a)", isa_name(isa), w.ulp, w.x, w.y);
    EXPECT_LE(w.ulp, 4) << "pow(" << w.x << ", " << w.y << ")";
  });
  std::printf("\n");
}

}  // namespace
}  // namespace bnns
#endif
