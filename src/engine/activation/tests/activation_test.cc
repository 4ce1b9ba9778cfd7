// The element-wise functions: the reference by hand, its gradients by differences, the kernels against the reference on
// every instruction set, and what holds for all inputs. The layer around them is tested in activation_filter_test.cc.

#include "src/core/error.h"
#include "src/engine/activation/activation_testing.h"
#include "tests/support/testing.h"

namespace bnns::testing {
namespace {

std::string name_of(const Activation& a) {
  return std::string(activation_name(a.function)) + " alpha " + std::to_string(a.alpha) + " beta " +
         std::to_string(a.beta);
}

// ---- 1. the reference -------------------------------------------------------------------------------------------

// Printed by the real framework's tests (leaky, clamp), or worked by hand: sigmoid(0) = 1/2, softplus(0) = log 2,
// 1.5 -> 1.5 * 4.5 / 6 = 1.125 for hard swish, |x| >= 0.5 -> x - 0.5 for soft shrink.
TEST(ActivationReference, HandWorkedValues) {
  const auto f = [](BNNSActivationFunction function, float alpha, float beta, double x) {
    return ref::activation_forward({function, alpha, beta}, x);
  };
  EXPECT_EQ(f(BNNSActivationFunctionLeakyRectifiedLinear, 0.25f, 0, -4), -1);
  const double in[] = {-5, -1, 0.5, 2, 7}, out[] = {-1, -1, 0.5, 2, 2};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(f(BNNSActivationFunctionClamp, -1, 2, in[i]), out[i]);
  EXPECT_EQ(f(BNNSActivationFunctionSigmoid, 0, 0, 0), 0.5);
  EXPECT_DOUBLE_EQ(f(BNNSActivationFunctionSoftplus, 1, 1, 0), std::log(2.0));
  EXPECT_DOUBLE_EQ(f(BNNSActivationFunctionHardSwish, 0, 0, 1.5), 1.125);
  EXPECT_EQ(f(BNNSActivationFunctionSoftShrink, 0.5f, 0, -2), -1.5);
  EXPECT_EQ(f(BNNSActivationFunctionSoftShrink, 0.5f, 0, 0.25), 0);
  EXPECT_EQ(f(BNNSActivationFunctionHardShrink, -0.5f, 0, 0.5), 0.5);
  EXPECT_EQ(f(BNNSActivationFunctionThreshold, 1, 9, 1), 9);
  EXPECT_EQ(f(BNNSActivationFunctionClampedLeakyRectifiedLinear, 0.5f, 3, 4), 3);
  EXPECT_EQ(f(BNNSActivationFunctionReLU6, 0, 0, 8), 6);
  EXPECT_NEAR(f(BNNSActivationFunctionGELU, 0, 0, 1), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(f(BNNSActivationFunctionSELU, 0, 0, -1), -1.1113307378125625, 1e-14);
  EXPECT_NEAR(f(BNNSActivationFunctionTanhShrink, 0, 0, 1), 1 - 0.7615941559557649, 1e-15);
}

// The derivative against central differences, in double, away from kinks.
TEST(ActivationReference, DerivativesMatchDifferences) {
  Random random(1);
  for (const Activation& a : element_cases()) {
    SCOPED_TRACE(name_of(a));
    // Steps of 0.0913 from an offset that meets no kink of the table's functions within 1e-3.
    const std::vector<double> x = random.spread(120, 0.0913);
    std::vector<double> analytic, numeric = central_differences(x, [&](const std::vector<double>&v) {
                                    double sum = 0;
                                    for (double value : v) sum += ref::activation_forward(a, value);
                                    return sum;
                                  });
    for (double value : x) analytic.push_back(ref::activation_derivative(a, value));
    EXPECT_LE(gradient_error(analytic, numeric), 1e-7);
    if (!has_derivative_from_output(a)) continue;
    for (size_t i = 0; i < x.size(); ++i) {
      const double y = ref::activation_forward(a, x[i]);
      EXPECT_NEAR(ref::activation_derivative_from_output(a, y), analytic[i], 1e-12) << "x " << x[i];
    }
  }
}

// ---- 2. kernels against the reference ---------------------------------------------------------------------------

std::vector<size_t> lengths() {
  std::vector<size_t> n;
  for (size_t i = 1; i <= 67; ++i) n.push_back(i);
  n.push_back(1000);
  return n;
}

TEST(ActivationKernels, ForwardMatchesReference) {
  for_each_isa([] {
    Random random(2);
    for (const Activation& a : element_cases()) {
      SCOPED_TRACE(name_of(a));
      for (size_t n : lengths()) {
        Guarded<float> x(random.normals(n, 3)), y(n);
        activation_forward(a, x.data(), y.data(), n);
        std::vector<double> want(n);
        for (size_t i = 0; i < n; ++i) want[i] = ref::activation_forward(a, x[i]);
        ASSERT_TRUE(within(y, want, n, [&](size_t i) { return forward_bound(a, x[i]); }));
      }
    }
  });
}

TEST(ActivationKernels, BackwardMatchesReference) {
  for_each_isa([] {
    Random random(3);
    for (const Activation& a : element_cases()) {
      SCOPED_TRACE(name_of(a));
      for (size_t n : lengths()) {
        Guarded<float> x(random.normals(n, 3), Guarded<float>::Side::begin), dy(random.normals(n)), g(n), y(n);
        std::vector<double> want(n);
        activation_backward_from_input(a, x.data(), dy.data(), g.data(), n);
        for (size_t i = 0; i < n; ++i) want[i] = dy[i] * ref::activation_derivative(a, x[i]);
        ASSERT_TRUE(within(g, want, n, [&](size_t i) {
          return std::fabs(dy[i]) * backward_bound_from_input(a, x[i]) + kUlp * std::fabs(want[i]);
        })) << "from input";
        if (!has_derivative_from_output(a)) continue;
        activation_forward(a, x.data(), y.data(), n);
        activation_backward_from_output(a, y.data(), dy.data(), g.data(), n);
        for (size_t i = 0; i < n; ++i) want[i] = dy[i] * ref::activation_derivative_from_output(a, y[i]);
        ASSERT_TRUE(within(g, want, n, [&](size_t i) {
          return std::fabs(dy[i]) * backward_bound_from_output(a, y[i]) + kUlp * std::fabs(want[i]);
        })) << "from output";
      }
    }
  });
}

TEST(ActivationKernels, PreluAndItsAlphaGradient) {
  for_each_isa([] {
    Random random(4);
    for (size_t n : lengths()) {
      // Integers and quarters: products and sums are exact, so the kernels must equal the formula.
      Guarded<float> x(random.integers(n)), a(random.integers(n)), dy(random.integers(n)), y(n), g(n);
      double sum = 0;
      prelu_forward(x.data(), a.data(), y.data(), n);
      prelu_backward(x.data(), a.data(), dy.data(), g.data(), n);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(y[i], x[i] < 0 ? a[i] * x[i] : x[i]);
        ASSERT_EQ(g[i], x[i] < 0 ? a[i] * dy[i] : dy[i]);
        if (x[i] < 0) sum += double(dy[i]) * x[i];
      }
      ASSERT_EQ(leaky_alpha_gradient(x.data(), dy.data(), n), sum);
    }
  });
}

// ---- 3. extremes ------------------------------------------------------------------------------------------------

std::vector<float> extremes() {
  std::vector<float> x;
  for (float v : {0.0f, FLT_TRUE_MIN, 1e-40f, FLT_MIN, 1e-8f, 0.1f, 1.0f, 20.0f, 87.0f, 88.0f, 89.0f, 100.0f, 103.9f,
                  1e4f, 1e15f, 1e30f, FLT_MAX}) {
    x.push_back(v);
    x.push_back(-v);
  }
  return x;
}

// The derivative stays finite and equals the analytic limit wherever the function itself does.
TEST(ActivationKernels, BC24_DerivativesAreFiniteAtExtremes) {
  for_each_isa([] {
    for (const Activation& a : element_cases()) {
      if (a.function == BNNSActivationFunctionHardSigmoid) continue;  // next test: alpha x + beta rounds at the kink
      SCOPED_TRACE(name_of(a));
      for (float x : extremes()) {
        const float one = 1;
        float y, g;
        activation_forward(a, &x, &y, 1);
        const double want = ref::activation_forward(a, x);
        if (std::fabs(want) <= FLT_MAX) {
          EXPECT_NEAR(y, want, forward_bound(a, x)) << "x " << x;
        }
        activation_backward_from_input(a, &x, &one, &g, 1);
        const double derivative = ref::activation_derivative(a, x);
        EXPECT_TRUE(std::isfinite(g)) << "x " << x;
        EXPECT_NEAR(g, derivative, backward_bound_from_input(a, x)) << "x " << x;
        if (!has_derivative_from_output(a) || !std::isfinite(y)) continue;
        activation_backward_from_output(a, &y, &one, &g, 1);
        EXPECT_TRUE(std::isfinite(g)) << "y " << y;
        EXPECT_NEAR(g, ref::activation_derivative_from_output(a, y), backward_bound_from_output(a, y)) << "y " << y;
      }
    }
  });
}

TEST(ActivationKernels, BC24_KinksHaveTheDocumentedSide) {
  const auto slope = [](const Activation& a, float x) {
    const float one = 1;
    float g;
    activation_backward_from_input(a, &x, &one, &g, 1);
    return g;
  };
  for_each_isa([&] {
    EXPECT_EQ(slope({BNNSActivationFunctionRectifiedLinear, 0, 0}, 0), 0);
    EXPECT_EQ(slope({BNNSActivationFunctionRectifiedLinear, 0, 0}, -0.0f), 0);
    EXPECT_EQ(slope({BNNSActivationFunctionLeakyRectifiedLinear, 0.25f, 0}, 0), 1);
    EXPECT_EQ(slope({BNNSActivationFunctionAbs, 0, 0}, 0), 0);
    EXPECT_EQ(slope({BNNSActivationFunctionClamp, -1, 2}, 2), 1);
    EXPECT_EQ(slope({BNNSActivationFunctionClamp, -1, 2}, -1), 1);
    EXPECT_EQ(slope({BNNSActivationFunctionHardSigmoid, 0.5f, 0.5f}, 1), 0);
    EXPECT_EQ(slope({BNNSActivationFunctionHardSigmoid, 0.5f, 0.5f}, -1), 0);
    EXPECT_EQ(slope({BNNSActivationFunctionHardSigmoid, 0.5f, 0.5f}, 0), 0.5f);
    EXPECT_EQ(slope({BNNSActivationFunctionHardSigmoid, 0.5f, 0.5f}, FLT_MAX), 0);
    EXPECT_EQ(slope({BNNSActivationFunctionELU, 2, 0}, 0), 1);
    EXPECT_EQ(slope({BNNSActivationFunctionThreshold, 1, 0}, 1), 0);
    EXPECT_EQ(slope({BNNSActivationFunctionHardSwish, 0, 0}, -3), 0);
    EXPECT_EQ(slope({BNNSActivationFunctionHardSwish, 0, 0}, 3), 1);
    EXPECT_EQ(slope({BNNSActivationFunctionReLU6, 0, 0}, 6), 0);
    EXPECT_EQ(slope({BNNSActivationFunctionHardShrink, 0.5f, 0}, 0.5f), 1);
  });
}

// NaN in gives NaN out at every position, forward and backward; infinities give the limit.
TEST(ActivationKernels, BC25_NanAndInfinity) {
  for_each_isa([] {
    for (const Activation& a : element_cases()) {
      SCOPED_TRACE(name_of(a));
      for (size_t n = 1; n <= 35; n += 2) {
        for (size_t at = 0; at < n; at += 3) {
          std::vector<float> x(n, 0.5f), y(n), dy(n, 1), g(n);
          x[at] = NAN;
          activation_forward(a, x.data(), y.data(), n);
          for (size_t i = 0; i < n; ++i) ASSERT_EQ(std::isnan(y[i]), i == at);
          const bool constant = a.function == BNNSActivationFunctionIdentity ||
                                a.function == BNNSActivationFunctionLinear ||
                                a.function == BNNSActivationFunctionLinearWithBias;
          activation_backward_from_input(a, x.data(), dy.data(), g.data(), n);
          for (size_t i = 0; i < n; ++i) ASSERT_EQ(std::isnan(g[i]), i == at && !constant);
          if (!has_derivative_from_output(a)) continue;
          activation_backward_from_output(a, y.data(), dy.data(), g.data(), n);
          for (size_t i = 0; i < n; ++i) ASSERT_EQ(std::isnan(g[i]), i == at && !constant);
        }
      }
      const float infinities[] = {INFINITY, -INFINITY}, one[] = {1, 1};
      float y[2], g[2];
      activation_forward(a, infinities, y, 2);
      activation_backward_from_input(a, infinities, one, g, 2);
      for (int i = 0; i < 2; ++i) {
        // The reference at the largest float is the limit, up to the scale of a function that grows.
        const double limit = ref::activation_forward(a, i ? -1e300 : 1e300);
        if (std::fabs(limit) > 1e200) {
          EXPECT_EQ(y[i], std::copysign(INFINITY, limit));
        } else {
          EXPECT_NEAR(y[i], limit, kUlp * std::fabs(limit));
        }
        EXPECT_NEAR(g[i], ref::activation_derivative(a, i ? -1e300 : 1e300), 4 * kUlp * 2);
      }
    }
  });
}

// 2^16 floats spread evenly over all bit patterns.
TEST(ActivationKernels, BC25_SampleOfAllFloats) {
  std::vector<float> x(1 << 16), y(x.size()), g(x.size());
  const std::vector<float> one(x.size(), 1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::bit_cast<float>(uint32_t(i * 65536 + i * 40503 % 65536));
  for_each_isa([&] {
    for (const Activation& a : element_cases()) {
      SCOPED_TRACE(name_of(a));
      activation_forward(a, x.data(), y.data(), x.size());
      activation_backward_from_input(a, x.data(), one.data(), g.data(), x.size());
      for (size_t i = 0; i < x.size(); ++i) {
        if (std::isnan(x[i])) {
          ASSERT_TRUE(std::isnan(y[i]));
          continue;
        }
        const double want = ref::activation_forward(a, x[i]);
        if (std::fabs(want) <= FLT_MAX) {
          ASSERT_NEAR(y[i], want, forward_bound(a, x[i])) << "x " << x[i];
        } else {
          ASSERT_GT(std::fabs(y[i]), 3.4e38) << "x " << x[i];
        }
        ASSERT_NEAR(g[i], ref::activation_derivative(a, x[i]), backward_bound_from_input(a, x[i])) << "x " << x[i];
      }
    }
  });
}

// ---- 4. properties ----------------------------------------------------------------------------------------------

// A value has the same bits alone, in a body, in a tail, at any alignment, and in place.
TEST(ActivationKernels, BC25_BC40_BC41_BitsDoNotDependOnPosition) {
  for_each_isa([] {
    Random random(5);
    const size_t n = 67;
    const std::vector<float> x = random.normals(n, 3), dy = random.normals(n);
    for (const Activation& a : element_cases()) {
      SCOPED_TRACE(name_of(a));
      std::vector<float> y(n), g(n), from_y(n);
      for (size_t i = 0; i < n; ++i) {
        activation_forward(a, &x[i], &y[i], 1);
        activation_backward_from_input(a, &x[i], &dy[i], &g[i], 1);
        activation_backward_from_output(a, &y[i], &dy[i], &from_y[i], 1);
      }
      for (size_t shift = 0; shift < 4; ++shift) {
        for (size_t m = 1; m + shift <= n; ++m) {
          alignas(64) float buffer[80], other[80], third[80];
          std::copy_n(&x[0], m, buffer + shift);
          activation_forward(a, buffer + shift, other + shift + 1, m);
          ASSERT_TRUE(same_bits(other + shift + 1, y.data(), m));
          activation_forward(a, buffer + shift, buffer + shift, m);
          ASSERT_TRUE(same_bits(buffer + shift, y.data(), m)) << "in place";
          std::copy_n(&dy[0], m, other + shift);
          activation_backward_from_input(a, &x[0], other + shift, third + shift, m);
          ASSERT_TRUE(same_bits(third + shift, g.data(), m));
          activation_backward_from_input(a, &x[0], other + shift, other + shift, m);
          ASSERT_TRUE(same_bits(other + shift, g.data(), m)) << "g is dy";
          if (!has_derivative_from_output(a)) continue;
          activation_backward_from_output(a, buffer + shift, &dy[0], buffer + shift, m);
          ASSERT_TRUE(same_bits(buffer + shift, from_y.data(), m)) << "g is y";
        }
      }
    }
  });
}

TEST(FusedActivation, RefusesWhatCannotBeFused) {
  const auto make = [](BNNSActivationFunction function) {
    BNNSActivation activation = {};
    activation.function = function;
    activation.alpha = 0.5f;
    return make_fused_activation(activation, "fully_connected");
  };
  EXPECT_EQ(make(BNNSActivationFunctionPReLUPerChannel).function, BNNSActivationFunctionLeakyRectifiedLinear);
  EXPECT_EQ(make(BNNSActivationFunctionGELU).alpha, 0.5f);
  EXPECT_TRUE(make(BNNSActivationFunctionSoftmax).is_rowwise());
  for (int bad : {9, 10, 13, 14, 36, 1000, -1}) {
    EXPECT_THROW(make(static_cast<BNNSActivationFunction>(bad)), Error) << bad;
  }
}

}  // namespace
}  // namespace bnns::testing
