// Normalization: the reference by hand and by differences, the kernels against it on every instruction set and thread
// count, and properties that hold for all inputs.

#include <gtest/gtest.h>

#include "src/core/float_mode.h"
#include "src/engine/activation/activation.h"
#include "src/ops/normalization/tests/normalization_bounds_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// Every kind, sizes around the vector width, planes on both sides of every switch between kernels.
std::vector<NormCase> cases() {
  std::vector<NormCase> all;
  const size_t planes[][2] = {{1, 1}, {1, 3}, {5, 3}, {4, 4}, {7, 7}, {31, 1}, {8, 9}, {40, 40}};
  for (const auto& plane : planes) {
    for (size_t C : {1, 3, 6, 21}) {
      for (size_t N : {1, 2, 5}) {
        if (N * C * plane[0] * plane[1] > 60000) continue;
        all.push_back({Norm::batch, N, C, plane[0], plane[1]});
        all.push_back({Norm::instance, N, C, plane[0], plane[1]});
        for (size_t axis : {0, 1, 2}) all.push_back({Norm::layer, N, C, plane[0], plane[1], 1, axis});
        for (size_t groups : {size_t{1}, size_t{2}, size_t{3}, C}) {
          if (C % groups == 0) all.push_back({Norm::group, N, C, plane[0], plane[1], groups});
        }
      }
    }
  }
  all.push_back({Norm::batch, 130, 70, 1, 1});  // rows and columns beyond one block of columns
  all.push_back({Norm::batch, 3, 5, 1, 9});
  all.push_back({Norm::batch, 2, 2, 300, 300});  // several segments
  all.push_back({Norm::group, 1, 4, 400, 401, 2});
  all.push_back({Norm::layer, 1, 3, 300, 300});
  all.push_back({Norm::group, 2, 500, 3, 3, 5});       // short groups with more parameters than one pass sums
  all.push_back({Norm::layer, 2500, 1, 2, 40, 1, 2});  // rows cut into stretches
  return all;
}

// ---- the reference ----

// {1,2,3,4}: mean 2.5, variance 1.25. dy = {1,0,0,0}: dx = (dy - 1/4 - x^ (-1.5 / sigma) / 4) / sigma.
TEST(Normalization, LayerNormWorkedByHand) {
  const NormCase c{Norm::layer, 1, 4, 1, 1, 1, 0, 0.0};
  const double sigma = std::sqrt(1.25);
  const auto forward = ref::normalization_forward(c, {1, 2, 3, 4}, {}, {});
  const double want[] = {-1.5 / sigma, -.5 / sigma, .5 / sigma, 1.5 / sigma};
  EXPECT_TRUE(within(forward.y, want, 4, [](size_t) { return 1e-15; }));
  const auto backward = ref::normalization_backward(c, forward, {}, {1, 0, 0, 0});
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(backward.dx[i], ((i == 0) - .25 - want[i] * (-1.5 / (4 * sigma))) / sigma, 1e-15);
  }
  const auto got = train(NormLayer(c), {1, 2, 3, 4}, {1, 0, 0, 0});
  EXPECT_TRUE(within(got.y, want, 4, [](size_t) { return 4 * kEps; }));
  EXPECT_TRUE(within(got.dx, backward.dx, 4, [](size_t) { return 4 * kEps; }));
}

// The documented example: three channels of 9, each ten times the one before, normalise to the same values.
TEST(Normalization, InstanceNormDocumentedExample) {
  const NormCase c{Norm::instance, 1, 3, 1, 9, 1, 0, 0.0};
  std::vector<float> x, y(27);
  for (float scale : {1, 10, 100})
    for (int i = 1; i <= 9; ++i) x.push_back(scale * float(i));
  const auto filter = NormLayer(c).make();
  ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), 1, x.data(), 0, y.data(), 0, false), 0)
      << BNNSExtLastError();
  for (int channel = 0; channel < 3; ++channel) {
    const float want[] = {-1.549f, -1.162f, -.775f, -.387f, 0, .387f, .775f, 1.162f, 1.549f};
    for (int i = 0; i < 9; ++i) EXPECT_NEAR(y[channel * 9 + i], want[i], 5.1e-4);
  }
}

// Samples {1,2} and {3,4}: x^ is -1 and 1. dy = {1,0},{0,2}: dbeta = {1,2}, dgamma = {-1,2}, dx = 0.
TEST(Normalization, BatchNormWorkedByHand) {
  const NormCase c{Norm::batch, 2, 2, 1, 1, 1, 0, 0.0};
  const auto got = train(NormLayer(c), {1, 2, 3, 4}, {1, 0, 0, 2});
  EXPECT_EQ(got.y, (std::vector<float>{-1, -1, 1, 1}));
  EXPECT_EQ(got.dbeta, (std::vector<float>{1, 2}));
  EXPECT_EQ(got.dgamma, (std::vector<float>{-1, 2}));
  EXPECT_EQ(got.dx, (std::vector<float>{0, 0, 0, 0}));
}

TEST(Normalization, ReferenceGradientsAreDerivatives) {
  Random random(3);
  for (const NormCase& c : {NormCase{Norm::batch, 3, 2, 2, 3}, NormCase{Norm::batch, 4, 3, 1, 1},
                            NormCase{Norm::instance, 2, 2, 2, 3}, NormCase{Norm::group, 2, 6, 2, 2, 3},
                            NormCase{Norm::group, 2, 4, 1, 2, 1}, NormCase{Norm::layer, 2, 2, 2, 3, 1, 0},
                            NormCase{Norm::layer, 2, 2, 2, 3, 1, 1}, NormCase{Norm::layer, 2, 2, 3, 4, 1, 2}}) {
    SCOPED_TRACE(c.text());
    const auto x = widen(random.normals(c.count())), dy = widen(random.normals(c.count()));
    const auto gamma = widen(random.normals(c.parameters())), beta = widen(random.normals(c.parameters()));
    const auto loss = [&](const std::vector<double>& px, const std::vector<double>& pg, const std::vector<double>& pb) {
      const auto y = ref::normalization_forward(c, px, pg, pb).y;
      double sum = 0;
      for (size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
      return sum;
    };
    const auto backward = ref::normalization_backward(c, ref::normalization_forward(c, x, gamma, beta), gamma, dy);
    EXPECT_LE(gradient_error(backward.dx, central_differences(x, [&](const auto& v) { return loss(v, gamma, beta); })),
              1e-6);
    EXPECT_LE(
        gradient_error(backward.dgamma, central_differences(gamma, [&](const auto& v) { return loss(x, v, beta); })),
        1e-6);
    EXPECT_LE(
        gradient_error(backward.dbeta, central_differences(beta, [&](const auto& v) { return loss(x, gamma, v); })),
        1e-6);
  }
}

// ---- kernels against the reference ----

// BC23: group sizes in both directions; BC53: the same bits for any number of threads.
TEST(Normalization, BC23_BC53_MatchesReferenceOnEveryIsaAndThreadCount) {
  Random random(7);
  for (const NormCase& c : cases()) {
    SCOPED_TRACE(c.text());
    auto x = random.normals(c.count(), 2);
    for (float& v : x) v += 3;
    const auto gamma = random.normals(c.parameters()), beta = random.normals(c.parameters()),
               dy = random.normals(c.count());
    const Want want = expect(c, x, gamma, beta, dy);
    for_each_isa([&] {
      TrainingResult first;
      for (size_t threads : kThreadCounts) {
        NormLayer layer(c, &gamma, &beta);
        layer.options.n_threads = threads;
        const auto got = train(layer, x, dy);
        if (threads == 1) {
          first = got;
          check(c, got, want, gamma, beta, dy);
        } else {
          EXPECT_TRUE(same_bits(got.y, first.y) && same_bits(got.dx, first.dx) && same_bits(got.dbeta, first.dbeta) &&
                      same_bits(got.dgamma, first.dgamma))
              << threads << " threads";
        }
      }
    });
    if (HasFailure()) return;
  }
}

// Repetitions do not change a bit either, also where sets are cut into segments.
TEST(Normalization, BC53_RepetitionsGiveTheSameBits) {
  for (const NormCase& c : {NormCase{Norm::batch, 3, 2, 260, 260}, NormCase{Norm::layer, 64, 3, 10, 10}}) {
    Random random(11);
    const auto x = random.normals(c.count()), dy = random.normals(c.count());
    NormLayer layer(c);
    const auto first = train(layer, x, dy);
    for (int i = 0; i < 30; ++i) {
      layer.options.n_threads = size_t(1 + i % 8);
      const auto again = train(layer, x, dy);
      ASSERT_TRUE(same_bits(again.y, first.y) && same_bits(again.dx, first.dx) &&
                  same_bits(again.dgamma, first.dgamma));
    }
  }
}

// A fused activation is the activation of the plain result; its gradient is the plain gradient of g = dy act'.
TEST(Normalization, EveryElementwiseActivation) {
  Random random(13);
  for (const NormCase& c :
       {NormCase{Norm::batch, 4, 3, 5, 5}, NormCase{Norm::batch, 9, 5, 1, 2}, NormCase{Norm::group, 2, 6, 9, 9, 3},
        NormCase{Norm::group, 2, 6, 2, 3, 2}, NormCase{Norm::layer, 3, 2, 6, 7}, NormCase{Norm::layer, 2, 5, 30, 30}}) {
    const auto x = random.normals(c.count()), gamma = random.normals(c.parameters()),
               beta = random.normals(c.parameters());
    auto dy = random.normals(c.count());
    for (unsigned f = 0; f <= BNNSActivationFunctionGELUApproximationSigmoid; ++f) {
      const auto function = BNNSActivationFunction(f);
      if (f == BNNSActivationFunctionSoftmax || f == BNNSActivationFunctionLogSoftmax ||
          f == BNNSActivationFunctionGumbel || f == BNNSActivationFunctionGumbelMax ||
          f == BNNSActivationFunctionIntegerLinearSaturate ||
          f == BNNSActivationFunctionIntegerLinearSaturatePerChannel)
        continue;
      NormLayer fused(c, &gamma, &beta, function), plain(c, &gamma, &beta);
      const Activation activation = make_fused_activation(fused.parameters.activation, "test");
      SCOPED_TRACE(c.text() + " " + activation_name(function));
      const auto got = train(fused, x, dy);
      std::vector<float> want(c.count()), g(c.count());
      const auto before = train(plain, x, dy);
      const FloatMode mode;  // as inside the calls
      activation_forward(activation, before.y.data(), want.data(), c.count());
      EXPECT_TRUE(same_bits(got.y, want));
      if (has_derivative_from_output(activation))
        activation_backward_from_output(activation, want.data(), dy.data(), g.data(), c.count());
      else
        activation_backward_from_input(activation, before.y.data(), dy.data(), g.data(), c.count());
      const auto after = train(plain, x, g);
      EXPECT_TRUE(same_bits(got.dx, after.dx));
      EXPECT_TRUE(same_bits(got.dbeta, after.dbeta));
      EXPECT_TRUE(same_bits(got.dgamma, after.dgamma));
    }
  }
}

// ---- properties ----

NormCase random_case(Random& random) {
  NormCase c{Norm(random.below(4)), 1 + random.below(6), 1 + random.below(12), 1 + random.below(12),
             1 + random.below(12)};
  c.axis = random.below(3);
  if (c.kind == Norm::group) {
    do c.groups = 1 + random.below(c.C);
    while (c.C % c.groups != 0);
  }
  return c;
}

// Without gamma and beta each set has mean 0 and variance v / (v + eps); dx sums to 0 over a set and is orthogonal to
// x^.
TEST(Normalization, SetsAreNormalisedAndGradientsSumToZero) {
  Random random(17);
  for (int round = 0; round < 400; ++round) {
    const NormCase c = random_case(random);
    SCOPED_TRACE(c.text() + " round " + std::to_string(round));
    const auto x = random.normals(c.count(), 3), dy = random.normals(c.count());
    const auto got = train(NormLayer(c), x, dy);
    const auto reference = ref::normalization_forward(c, widen(x), {}, {});
    std::vector<double> sum(c.sets()), squares(c.sets()), dx_sum(c.sets()), dx_dot(c.sets()), scale(c.sets());
    c.for_each([&](size_t e, size_t s, size_t) {
      sum[s] += got.y[e], squares[s] += double(got.y[e]) * got.y[e];
      dx_sum[s] += got.dx[e], dx_dot[s] += double(got.dx[e]) * got.y[e],
          scale[s] += std::fabs(dy[e]) * reference.rstd[s];
    });
    for (size_t s = 0; s < c.sets(); ++s) {
      const double m = reference.members[s];
      ASSERT_LE(std::fabs(sum[s]) / m, kForwardUnits * 2);
      ASSERT_NEAR(squares[s] / m, reference.variance[s] * reference.rstd[s] * reference.rstd[s], 4 * kForwardUnits);
      ASSERT_LE(std::fabs(dx_sum[s]), 4 * kForwardUnits * scale[s] * (1 + std::sqrt(m)));
      // dx is orthogonal to x^ but for epsilon: <dx, x^> = <h, x^> rstd (1 - mean x^^2)
      double dot = 0;
      c.for_each([&](size_t e, size_t set, size_t) {
        if (set == s) dot += double(dy[e]) * reference.values[e];
      });
      const double left = dot * reference.rstd[s] * (1 - reference.variance[s] * reference.rstd[s] * reference.rstd[s]);
      ASSERT_NEAR(dx_dot[s], left, 4 * kForwardUnits * scale[s] * (1 + m));
    }
  }
}

// BC23: dbeta is the sum of dy, exactly, on small integers, whatever the groups.
TEST(Normalization, BC23_BetaGradientIsTheExactSum) {
  Random random(19);
  for (const NormCase& c : cases()) {
    auto dy = random.integers(c.count());
    const auto got = train(NormLayer(c), random.normals(c.count()), dy);
    std::vector<float> want(c.parameters());
    c.for_each([&](size_t e, size_t, size_t p) { want[p] += dy[e]; });
    ASSERT_EQ(got.dbeta, want) << c.text();
  }
}

}  // namespace
}  // namespace bnns
