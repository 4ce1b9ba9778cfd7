// Arithmetic: special values at every position of a vector, fused activations, and element types.

#include "src/ops/arithmetic/arithmetic_testing.h"

namespace bnns::testing {
namespace {

constexpr auto kSample = BNNSSample, kParameter = BNNSParameter;
constexpr float kInf = INFINITY, kNaN = NAN;

// ---- special values --------------------------------------------------------------------------------------------

struct Special {
  BNNSArithmeticFunction function;
  float x[3], y;
  float d[3] = {};         // gradients for g = 2; checked where `gradients` says so
  unsigned gradients = 0;  // bits of inputs
};
const Special kSpecials[] = {
    {BNNSArithmeticRound, {0.5f}, 0, {0}, 1},
    {BNNSArithmeticRound, {1.5f}, 2, {0}, 1},
    {BNNSArithmeticRound, {2.5f}, 2, {0}, 1},
    {BNNSArithmeticRound, {-2.5f}, -2, {0}, 1},
    {BNNSArithmeticMaximum, {3, 3}, 3, {1, 1}, 3},
    {BNNSArithmeticMinimum, {3, 3}, 3, {1, 1}, 3},
    {BNNSArithmeticMaximum, {kNaN, 3}, kNaN, {2, 0}, 3},
    {BNNSArithmeticMaximum, {3, kNaN}, kNaN, {0, 2}, 3},
    {BNNSArithmeticMinimum, {kNaN, 3}, kNaN, {2, 0}, 3},
    {BNNSArithmeticMinimum, {3, kNaN}, kNaN, {0, 2}, 3},
    {BNNSArithmeticMaximum, {kNaN, kNaN}, kNaN, {1, 1}, 3},
    {BNNSArithmeticMaximum, {-kInf, -kInf}, -kInf, {1, 1}, 3},
    {BNNSArithmeticMinimum, {-kInf, kInf}, -kInf, {2, 0}, 3},
    {BNNSArithmeticMultiplyNoNaN, {kInf, 0}, 0, {0, 0}, 3},
    {BNNSArithmeticMultiplyNoNaN, {kNaN, 0}, 0, {0, 0}, 3},
    {BNNSArithmeticMultiplyNoNaN, {kNaN, 1}, kNaN, {2, kNaN}, 3},
    {BNNSArithmeticMultiplyNoNaN, {0, 5}, 0, {10, 0}, 3},
    {BNNSArithmeticDivideNoNaN, {5, 0}, 0, {0, 0}, 3},
    {BNNSArithmeticDivideNoNaN, {0, 0}, 0, {0, 0}, 3},
    {BNNSArithmeticDivideNoNaN, {6, 2}, 3, {1, -3}, 3},
    {BNNSArithmeticDivide, {1, 0}, kInf},
    {BNNSArithmeticDivide, {3e30f, 1e30f}, 3, {2e-30f, -6e-30f}, 3},  // b^2 would overflow
    {BNNSArithmeticSelect, {kNaN, 4, 5}, 4, {0, 2, 0}, 7},            // NaN is not 0
    {BNNSArithmeticSelect, {-0.0f, 4, 5}, 5, {0, 0, 2}, 7},
    {BNNSArithmeticSelect, {0, kNaN, 5}, 5, {0, 0, 2}, 7},
    {BNNSArithmeticSign, {0}, 0, {0}, 1},
    {BNNSArithmeticSign, {kNaN}, kNaN, {0}, 1},
    {BNNSArithmeticSign, {-kInf}, -1, {0}, 1},
    {BNNSArithmeticAbs, {0}, 0, {0}, 1},
    {BNNSArithmeticAbs, {-0.0f}, 0, {0}, 1},
    {BNNSArithmeticAbs, {-kInf}, kInf, {-2}, 1},
    {BNNSArithmeticPow, {0, 0}, 1, {0, 0}, 3},
    {BNNSArithmeticPow, {0, 2}, 0, {0, 0}, 3},
    {BNNSArithmeticPow, {-2, 3}, -8, {24}, 1},
    {BNNSArithmeticPow, {-2, 0}, 1, {0}, 1},
    {BNNSArithmeticPow, {1, 7}, 1, {14, 0}, 3},
    {BNNSArithmeticAsinh, {1e30f}, 69.77069f, {2e-30f}, 1},  // x^2 would overflow
    {BNNSArithmeticTanh, {100}, 1, {0}, 1},
    {BNNSArithmeticTanh, {-100}, -1, {0}, 1},
    {BNNSArithmeticErf, {20}, 1, {0}, 1},
    {BNNSArithmeticExp, {-200}, 0, {0}, 1},
    {BNNSArithmeticLog, {0}, -kInf, {kInf}, 1},
    {BNNSArithmeticSquareRoot, {-1}, kNaN, {kNaN}, 1},
    {BNNSArithmeticFloorDivide, {1, 0.1f}, 9},  // 1 / 0.1f is 9.99999985, f32 rounds it to 10
    {BNNSArithmeticFloorDivide, {-7, 2}, -4},
    {BNNSArithmeticFloorDivide, {7, -2}, -4},
    {BNNSArithmeticTruncDivide, {-7, 2}, -3},
    {BNNSArithmeticTruncDivide, {1, 0}, kInf},
    {BNNSArithmeticTruncRemainder, {-7, 2}, -1},
    {BNNSArithmeticTruncRemainder, {7, -2}, 1},
    {BNNSArithmeticTruncRemainder, {5, kInf}, 5},
    {BNNSArithmeticTruncRemainder, {kInf, 5}, kNaN},
    {BNNSArithmeticTruncRemainder, {5, 0}, kNaN},
    {BNNSArithmeticTruncRemainder, {1e30f, 3}, 1},          // the f32 next to 1e30 leaves 1 when divided by 3
    {BNNSArithmeticTruncRemainder, {16777215, 3e-38f}, 0},  // y and d are what fmod says: filled in below
};

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || a == b;
}

TEST(ArithmeticValues, SpecialValuesAtEveryPosition) {
  for_each_isa([] {
    for (Special s : kSpecials) {
      const ArithmeticFunction& info = *arithmetic_function(s.function);
      if (s.function == BNNSArithmeticTruncRemainder) s.y = std::fmod(s.x[0], s.x[1]);  // exact, so floats agree
      SCOPED_TRACE(std::string(info.name) + "(" + std::to_string(s.x[0]) + ", " + std::to_string(s.x[1]) + ")");
      for (const size_t n : {1, 3, 8, 19, 33}) {
        const auto d = vector_descriptor(n, nullptr);
        std::vector<std::vector<float>> x, dx(info.inputs, std::vector<float>(n));
        std::vector<const void*> in;
        std::vector<BNNSNDArrayDescriptor> deltas;
        std::vector<BNNSNDArrayDescriptor*> delta;
        for (size_t k = 0; k < info.inputs; ++k) x.emplace_back(n, s.x[k]);
        for (size_t k = 0; k < info.inputs; ++k)
          in.push_back(x[k].data()), deltas.push_back(vector_descriptor(n, dx[k].data()));
        for (auto& one : deltas) delta.push_back(&one);
        std::vector<float> y(n), g(n, 2.0f);
        auto dy = vector_descriptor(n, g.data());
        const std::vector<size_t> dense(info.inputs, 0);
        Arithmetic filter(s.function, std::vector(size_t(info.inputs), d), std::vector(size_t(info.inputs), kSample),
                          d);
        ASSERT_EQ(filter.forward(1, in, dense, y.data(), 0), 0) << BNNSExtLastError();
        for (float v : y) ASSERT_TRUE(same(v, s.y) || std::fabs(v - s.y) <= 8 * kUnit * std::fabs(s.y)) << v;
        ASSERT_TRUE(same_bits(y, std::vector<float>(n, y[0])));  // body and tail agree
        if (s.gradients == 0) continue;
        ASSERT_EQ(filter.backward(1, in, dense, delta, dense, nullptr, 0, &dy, 0), 0) << BNNSExtLastError();
        for (size_t k = 0; k < info.inputs; ++k) {
          if (!(s.gradients >> k & 1)) continue;
          for (float v : dx[k]) {
            ASSERT_TRUE(same(v, s.d[k]) || std::fabs(v - s.d[k]) <= 16 * kUnit * std::fabs(s.d[k])) << k << ": " << v;
          }
          ASSERT_TRUE(same_bits(dx[k], std::vector<float>(n, dx[k][0])));
        }
      }
    }
  });
}

// a = b trunc_divide(a, b) + trunc_remainder(a, b), with |remainder| < |b| and the sign of a; fmod is exact.
TEST(ArithmeticValues, RemainderIsExact) {
  for_each_isa([] {
    Random random(11);
    const size_t n = 4000;
    std::vector<float> a(n), b(n), y(n);
    for (size_t i = 0; i < n; ++i) {
      a[i] = static_cast<float>(random.normal() * std::exp2(random.integer(-40, 40)));
      b[i] = static_cast<float>(random.normal() * std::exp2(random.integer(-40, 40)));
    }
    const auto d = vector_descriptor(n, nullptr);
    Arithmetic filter(BNNSArithmeticTruncRemainder, {d, d}, {kSample, kSample}, d);
    ASSERT_EQ(filter.forward(1, {a.data(), b.data()}, {0, 0}, y.data(), 0), 0);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(bits(y[i]), bits(std::fmod(a[i], b[i]))) << a[i] << " by " << b[i];
  });
}

// ---- fused activations -----------------------------------------------------------------------------------------

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// Sigmoid is undone from y; SiLU only from the recomputed a b or exp(a). |z| <= 4.
// 64 units: about 16 roundings on values of up to |z| = 4 times the slope.
TEST(ArithmeticValues, FusedActivationsAreUndone) {
  for_each_isa([] {
    for (const size_t n : {1, 7, 16, 33, 600}) {
      Random random(n);
      std::vector<float> a(n), b(n), g = random.normals(n), y(n), da(n), db(n);
      for (size_t i = 0; i < n; ++i) a[i] = float(random.uniform(-2, 1.3)), b[i] = float(random.uniform(-2, 2));
      const auto d = vector_descriptor(n, nullptr);
      auto delta_a = vector_descriptor(n, da.data()), delta_b = vector_descriptor(n, db.data());
      auto dy = vector_descriptor(n, g.data());
      for (const bool silu : {false, true}) {
        const BNNSActivation act = activation(silu ? BNNSActivationFunctionSiLU : BNNSActivationFunctionSigmoid);
        const auto value = [&](double z) { return silu ? z * sigmoid(z) : sigmoid(z); };
        const auto slope = [&](double z) {
          const double s = sigmoid(z);
          return silu ? s * (1 + z * (1 - s)) : s * (1 - s);
        };
        Arithmetic multiply(BNNSArithmeticMultiply, {d, d}, {kSample, kSample}, d, act);
        ASSERT_EQ(multiply.forward(1, {a.data(), b.data()}, {0, 0}, y.data(), 0), 0) << BNNSExtLastError();
        ASSERT_EQ(multiply.backward(1, {a.data(), b.data()}, {0, 0}, {&delta_a, &delta_b}, {0, 0}, y.data(), 0, &dy, 0),
                  0)
            << BNNSExtLastError();
        for (size_t i = 0; i < n; ++i) {
          const double z = double(a[i]) * b[i], unit = 64 * kUnit;
          ASSERT_NEAR(y[i], value(z), unit) << i;
          ASSERT_NEAR(da[i], g[i] * slope(z) * b[i], unit * std::fabs(g[i] * b[i])) << i;
          ASSERT_NEAR(db[i], g[i] * slope(z) * a[i], unit * std::fabs(g[i] * a[i])) << i;
        }
        Arithmetic exponential(BNNSArithmeticExp, {d}, {kSample}, d, act);
        ASSERT_EQ(exponential.forward(1, {a.data()}, {0}, y.data(), 0), 0) << BNNSExtLastError();
        ASSERT_EQ(exponential.backward(1, {a.data()}, {0}, {&delta_a}, {0}, y.data(), 0, &dy, 0), 0)
            << BNNSExtLastError();
        for (size_t i = 0; i < n; ++i) {
          const double z = std::exp(double(a[i])), unit = 64 * kUnit;
          ASSERT_NEAR(da[i], g[i] * slope(z) * z, unit * std::fabs(g[i] * z)) << i;
        }
      }
    }
  });
}

// Softmax runs along size[0] whatever the layout: z = a + b, y = softmax(z), dz = y (g - sum(g y)).
TEST(ArithmeticValues, FusedSoftmaxRunsAlongTheFirstAxis) {
  for_each_isa([] {
    for (const BNNSDataLayout layout : {BNNSDataLayoutRowMajorMatrix, BNNSDataLayout2DFirstMajor}) {
      for (const size_t length : {1, 3, 40, 700}) {
        for (const size_t gap : {0, 2}) {
          const size_t rows = 9, batch = 2;
          Random random(length);
          Stored a(layout, {length, rows}, BNNSDataTypeFloat32, batch, gap), b(layout, {length, 1});
          Stored y(layout, {length, rows}, BNNSDataTypeFloat32, batch, gap),
              dy(layout, {length, rows}, BNNSDataTypeFloat32, batch, gap);
          Stored da(layout, {length, rows}, BNNSDataTypeFloat32, batch, gap), db(layout, {length, 1});
          Values x(batch * rows * length), w(length), g(x.size()), want_b(length, 0);
          for (double& v : x) v = float(random.normal());
          for (double& v : w) v = float(random.normal());
          for (double& v : g) v = float(random.normal());
          a.fill(x);
          b.fill(w);
          dy.fill(g);
          for (const size_t n_threads : {1, 3}) {
            BNNSFilterParameters parameters;
            std::memset(&parameters, 0, sizeof parameters);
            parameters.n_threads = n_threads;
            Arithmetic filter(BNNSArithmeticAdd, {a.descriptor(), b.descriptor()}, {kSample, kParameter},
                              y.descriptor(), activation(BNNSActivationFunctionSoftmax), &parameters);
            ASSERT_TRUE(filter.handle()) << BNNSExtLastError();
            ASSERT_EQ(filter.forward(batch, {a.data(), b.data()}, {a.batch_stride(), 0}, y.data(), y.batch_stride()),
                      0);
            ASSERT_EQ(filter.backward(batch, {}, {}, {da.delta(), db.delta()}, {da.batch_stride(), 0}, y.data(),
                                      y.batch_stride(), dy.delta(), dy.batch_stride()),
                      0)
                << BNNSExtLastError();
            std::fill(want_b.begin(), want_b.end(), 0);
            double magnitude = 0;
            for (size_t row = 0; row < batch * rows; ++row) {
              double sum = 0, dot = 0;
              for (size_t i = 0; i < length; ++i) sum += std::exp(x[row * length + i] + w[i]);
              const auto p = [&](size_t i) { return std::exp(x[row * length + i] + w[i]) / sum; };
              for (size_t i = 0; i < length; ++i)
                dot += p(i) * g[row * length + i], magnitude += std::fabs(g[row * length + i]);
              for (size_t i = 0; i < length; ++i) {
                const size_t at = row * length + i;
                // exp of a rounded sum, and a sum of `length` terms: units of |p|, and of |p| max|g| for the gradient.
                const double bound = (16 + double(length)) * kUnit * p(i), dz = p(i) * (g[at] - dot);
                ASSERT_NEAR(y.get(at), p(i), bound) << at;
                ASSERT_NEAR(da.get(at), dz, 2 * bound * (4 + std::fabs(g[at]))) << at;
                want_b[i] += dz;
              }
            }
            for (size_t i = 0; i < length; ++i) ASSERT_NEAR(db.get(i), want_b[i], 32 * kUnit * magnitude) << i;
            ASSERT_TRUE(y.gaps_untouched() && da.gaps_untouched());
          }
        }
      }
    }
  });
}

// A row's gradient comes from all of its dy, so in place no part of a row may be overwritten before the rest is read.
TEST(ArithmeticValues, FusedSoftmaxGradientInPlace) {
  for (const size_t length : {5, 9000}) {
    const size_t rows = 7;
    const auto d = descriptor(BNNSDataLayoutRowMajorMatrix, {length, rows}, nullptr);
    const auto bias = descriptor(BNNSDataLayoutRowMajorMatrix, {length, 1}, nullptr);
    Random random(length);
    const std::vector<float> a = random.normals(length * rows), b = random.normals(length),
                             g = random.normals(a.size());
    std::vector<float> y(a.size()), da(a.size()), db(length), both = g, db2(length);
    Arithmetic filter(BNNSArithmeticAdd, {d, bias}, {kSample, kParameter}, d,
                      activation(BNNSActivationFunctionSoftmax));
    ASSERT_EQ(filter.forward(1, {a.data(), b.data()}, {0, 0}, y.data(), 0), 0) << BNNSExtLastError();
    auto delta = descriptor(BNNSDataLayoutRowMajorMatrix, {length, rows}, da.data()), delta_b = bias, dy = d, over = d;
    delta_b.data = db.data();
    dy.data = const_cast<float*>(g.data());
    over.data = both.data();
    ASSERT_EQ(filter.backward(1, {}, {}, {&delta, &delta_b}, {0, 0}, y.data(), 0, &dy, 0), 0) << BNNSExtLastError();
    delta_b.data = db2.data();
    ASSERT_EQ(filter.backward(1, {}, {}, {&over, &delta_b}, {0, 0}, y.data(), 0, &over, 0), 0) << BNNSExtLastError();
    EXPECT_TRUE(same_bits(both, da));
    EXPECT_TRUE(same_bits(db2, db));
  }
}

// ---- element types ---------------------------------------------------------------------------------------------

// Half-precision storage, f32 arithmetic: the error is that of the kernel plus one rounding to the type (K38).
TEST(ArithmeticValues, HalfPrecisionRoundsOnce) {
  for_each_isa([] {
    for (const BNNSDataType type : {BNNSDataTypeFloat16, BNNSDataTypeBFloat16}) {
      for (const FunctionCase& c : function_cases()) {
        const ArithmeticFunction& info = *arithmetic_function(c.function);
        SCOPED_TRACE(info.name);
        const size_t n = 45, inputs = info.inputs;
        Random random(4);
        ArithmeticShape shape;
        shape.out = {n};
        Values x[3], dx[3];
        std::vector<std::unique_ptr<Stored>> in, delta;
        std::vector<BNNSNDArrayDescriptor> d;
        std::vector<const void*> pointers;
        std::vector<BNNSNDArrayDescriptor*> deltas;
        for (size_t k = 0; k < inputs; ++k) {
          shape.in[k] = {n};
          in.push_back(std::make_unique<Stored>(BNNSDataLayoutVector, Sizes{n}, type));
          delta.push_back(std::make_unique<Stored>(BNNSDataLayoutVector, Sizes{n}, type));
          for (size_t i = 0; i < n; ++i) in[k]->set(i, random.uniform(c.low[k], c.high[k]));
          x[k] = in[k]->values();
          d.push_back(in[k]->descriptor());
          pointers.push_back(in[k]->data());
          deltas.push_back(delta[k]->delta());
        }
        Stored y(BNNSDataLayoutVector, {n}, type), dy(BNNSDataLayoutVector, {n}, type);
        for (size_t i = 0; i < n; ++i) dy.set(i, random.normal());
        const Values g = dy.values(), want = ref::arithmetic_forward(c.function, inputs, shape, x);
        const std::vector<size_t> dense(inputs, 0);
        Arithmetic filter(c.function, d, std::vector(inputs, kSample), y.descriptor());
        ASSERT_EQ(filter.forward(1, pointers, dense, y.data(), 0), 0) << BNNSExtLastError();
        const double unit = 1.01 * storage_unit(type), tiny = type == BNNSDataTypeFloat16 ? 0x1p-25 : 0;  // subnormals
        ASSERT_TRUE(within(y.values(), want, n, [&](size_t i) {
          return unit * std::fabs(want[i]) + tiny + forward_bound(c, want[i], x[0][i], inputs > 1 ? x[1][i] : 0);
        }));
        if (!info.has_gradient) continue;
        // `out` is given, but rounded: the gradient comes from the inputs, so its error is that of f32 all the same.
        ASSERT_EQ(filter.backward(1, pointers, dense, deltas, dense, y.data(), 0, dy.delta(), 0), 0)
            << BNNSExtLastError();
        ref::arithmetic_backward(c.function, inputs, shape, x, g, dx);
        for (size_t k = 0; k < inputs; ++k) {
          ASSERT_TRUE(within(delta[k]->values(), dx[k], n, [&](size_t i) {
            return unit * std::fabs(dx[k][i]) + tiny + backward_bound(c, k, dx[k][i], g[i]);
          })) << k;
        }
      }
    }
  });
}

// The sum for the bias is taken from dy before the other gradient overwrites it, however the work is split.
TEST(ArithmeticValues, InPlaceGradientBesideASum) {
  for (const Sizes& size : {Sizes{10, 7}, Sizes{1000, 200}, Sizes{30000, 5}}) {
    const auto d = descriptor(BNNSDataLayoutRowMajorMatrix, size, nullptr);
    auto bias = descriptor(BNNSDataLayoutRowMajorMatrix, {size[0], 1}, nullptr);
    Random random(size[0]);
    std::vector<float> g = random.integers(size[0] * size[1]), db(size[0]);
    Values sums(size[0], 0);
    for (size_t i = 0; i < g.size(); ++i) sums[i % size[0]] += g[i];
    const std::vector<float> before = g;
    Arithmetic filter(BNNSArithmeticSubtract, {bias, d}, {kParameter, kSample}, d);
    auto over = d;
    over.data = g.data();
    bias.data = db.data();
    ASSERT_EQ(filter.backward(1, {}, {}, {&bias, &over}, {0, 0}, nullptr, 0, &over, 0), 0) << BNNSExtLastError();
    for (size_t i = 0; i < g.size(); ++i) ASSERT_EQ(g[i], -before[i]) << i;
    for (size_t i = 0; i < db.size(); ++i) ASSERT_EQ(db[i], sums[i]) << i;
  }
}

// Integers mean scale * x + bias; a Boolean condition is 0 or not.
TEST(ArithmeticValues, IntegerInputsAreScaled) {
  Stored a(BNNSDataLayoutVector, {3}, BNNSDataTypeInt8), b(BNNSDataLayoutVector, {3}), y(BNNSDataLayoutVector, {3});
  a.fill({-4, 0, 100});
  b.fill({1, 2, 3});
  BNNSNDArrayDescriptor scaled = a.descriptor();
  scaled.data_scale = 0.5f;
  scaled.data_bias = 1;
  Arithmetic filter(BNNSArithmeticMultiply, {scaled, b.descriptor()}, {kSample, kSample}, y.descriptor());
  ASSERT_EQ(filter.forward(1, {a.data(), b.data()}, {0, 0}, y.data(), 0), 0) << BNNSExtLastError();
  EXPECT_EQ(y.values(), (Values{-1, 2, 153}));
}

}  // namespace
}  // namespace bnns::testing
