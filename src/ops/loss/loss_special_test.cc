// What losses do with weights of 0, NaN, infinities and the ends of the range.

#include "src/ops/loss/loss_testing.h"

namespace bnns::testing {
namespace {

// BC27: weights that are all 0 make the weighted means 0, with gradient 0, whatever the samples hold.
TEST(LossWeights, BC27_NothingCounts) {
  for (BNNSLossFunction function : kFunctions) {
    for (auto reduction : {BNNSLossReductionWeightedMean, BNNSLossReductionNonZeroWeightMean}) {
      LossCase c = simple_case(function, reduction, 3, 5);
      c.x[7] = NAN;
      for (size_t size : {size_t{1}, c.batch, c.batch * c.n}) {
        c.weights.assign(size, 0.0);
        for_each_isa([&] {
          const Numbers dy = {2};
          const Result forward = run_case(c, {});
          EXPECT_EQ(forward.out, Numbers{0}) << case_text(c);
          EXPECT_EQ(forward.dx, Numbers(15, 0.0)) << case_text(c);
          EXPECT_EQ(run_case(c, {}, &dy).dx, Numbers(15, 0.0)) << case_text(c);
          Setting s;
          s.accumulate = true;
          s.before = 3;
          EXPECT_EQ(run_case(c, s).dx, Numbers(15, 3.0)) << case_text(c);
        });
      }
    }
  }
}

// A sample (or an element) of weight 0 is taken out, NaN and all. Categorical's documented gradient ignores weights
// where there is no label, so it is not among these.
TEST(LossWeights, ZeroWeightTakesASampleOut) {
  for (BNNSLossFunction function : kFunctions) {
    if (function == BNNSLossFunctionCategoricalCrossEntropy) continue;
    for (size_t n : {3, 50, 700}) {
      LossCase c = simple_case(function, BNNSLossReductionSum, 3, n), rest = c;
      for (size_t i = 0; i < n; ++i) c.x[n + i] = NAN, rest.x[n + i] = 0.25;
      std::vector<size_t> forms = {c.batch};
      if (!c.per_sample()) forms.push_back(c.batch * n);
      for (size_t form : forms) {
        c.weights.assign(form, 1.0);
        for (size_t k = form / 3; k < form / 3 * 2; ++k) c.weights[k] = 0;
        rest.weights = c.weights;
        for_each_isa([&] {
          const Result with_nan = run_case(c, {}), without = run_case(rest, {});
          EXPECT_EQ(with_nan.out, without.out) << case_text(c);
          EXPECT_EQ(with_nan.dx, without.dx) << case_text(c);
          for (size_t i = 0; i < n; ++i) EXPECT_EQ(with_nan.dx[n + i], 0) << case_text(c);
        });
      }
    }
  }
}

// A row without labels has no categorical loss and no gradient.
TEST(LossSpecial, CategoricalWithoutLabels) {
  for (size_t n : {4, 70}) {
    LossCase c = simple_case(BNNSLossFunctionCategoricalCrossEntropy, BNNSLossReductionNone, 2, n);
    for (size_t i = 0; i < n; ++i) c.labels[i] = 0;
    for_each_isa([&] {
      const Result r = run_case(c, {});
      EXPECT_EQ(r.out[0], 0);
      EXPECT_GT(r.out[1], 0);
      for (size_t i = 0; i < n; ++i) EXPECT_EQ(r.dx[i], 0);
    });
  }
}

// BC26: a row that is all -inf, or has +inf or NaN, has NaN for loss and gradient, the whole row, at every position and
// length; other rows keep their bits. -inf beside finite values is a probability of 0.
TEST(LossSpecial, BC26_SoftmaxRows) {
  const double inf = INFINITY;
  for (BNNSLossFunction function : {BNNSLossFunctionSoftmaxCrossEntropy, BNNSLossFunctionCategoricalCrossEntropy}) {
    for (size_t n : {1, 2, 5, 16, 17, 33, 65, 130, 600}) {
      const LossCase good = simple_case(function, BNNSLossReductionNone, 3, n, n);
      for_each_isa([&] {
        const Result want = run_case(good, {});
        for (int kind = 0; kind < 4; ++kind) {
          for (size_t at : {size_t{0}, n / 2, n - 1}) {
            LossCase c = good;
            if (kind == 0) std::fill(c.x.begin() + ptrdiff_t(n), c.x.begin() + ptrdiff_t(2 * n), -inf);
            if (kind == 1) c.x[n + at] = inf;
            if (kind == 2) c.x[n] = c.x[2 * n - 1] = inf;
            if (kind == 3) c.x[n + at] = NAN;
            const Result r = run_case(c, {});
            for (size_t b = 0; b < 3; ++b) {
              if (b == 1)
                EXPECT_TRUE(std::isnan(r.out[b])) << "n " << n << " kind " << kind;
              else
                EXPECT_EQ(r.out[b], want.out[b]);
              for (size_t i = b * n; i < (b + 1) * n; ++i) {
                if (b == 1)
                  EXPECT_TRUE(std::isnan(r.dx[i])) << "n " << n << " kind " << kind << " at " << at;
                else
                  EXPECT_EQ(r.dx[i], want.dx[i]);
              }
            }
          }
        }
        if (n == 1) return;
        LossCase masked = good;  // -inf where there is no label: as if the class were not there
        for (size_t b = 0; b < 3; ++b) {
          const size_t at = good.labels[b * n] == 0 ? 0 : 1;
          masked.labels[b * n + at] = 0;
          if (function == 10) masked.labels[b * n + 1 - at] = 1;
          masked.x[b * n + at] = -inf;
          const Result r = run_case(masked, {});
          EXPECT_TRUE(std::isfinite(r.out[b]));
          EXPECT_EQ(r.dx[b * n + at], 0);
        }
      });
    }
  }
}

// Logits of +-1e4 and one-hot labels with exact zeros: finite, and equal to the limit.
TEST(LossSpecial, BC26_LargeLogits) {
  for (size_t n : {3, 40, 800}) {
    LossCase c = simple_case(BNNSLossFunctionSoftmaxCrossEntropy, BNNSLossReductionNone, 2, n);
    std::fill(c.x.begin(), c.x.end(), -1e4);
    std::fill(c.labels.begin(), c.labels.end(), 0.0);
    c.x[n - 1] = c.x[n] = 1e4;
    c.labels[n - 1] = 1;  // right: loss 0
    c.labels[n + 1] = 1;  // wrong: loss 2e4
    for_each_isa([&] {
      const Result r = run_case(c, {});
      EXPECT_EQ(r.out, (Numbers{0, 2e4}));
      for (size_t k = 0; k < 2 * n; ++k) EXPECT_EQ(r.dx[k], k == n ? 1 : k == n + 1 ? -1 : 0);
    });
  }
}

TEST(LossSpecial, EndsOfTheRange) {
  for_each_isa([] {
    // Log at 0 and 1: -log epsilon where wrong, -log(1 + epsilon) where right. Gradient (P - l) / (P Q): -+1 / epsilon
    // where wrong, epsilon / epsilon where right.
    LossCase c = simple_case(BNNSLossFunctionLog, BNNSLossReductionNone, 1, 4);
    c.x = {0, 0, 1, 1};
    c.labels = {0, 1, 0, 1};
    Result r = run_case(c, {});
    const double most = -std::log(1e-7);
    EXPECT_TRUE(near(r.out, {-1e-7, most, most, -1e-7}, {2 * kU, 32 * kU * most, 32 * kU * most, 2 * kU}));
    EXPECT_TRUE(near(r.dx, {1, -1e7, 1e7, 1}, {1e-6, 10, 10, 1e-6}));
    // Sigmoid: far out the loss is |x| or 0, at the end of the range too.
    c = simple_case(BNNSLossFunctionSigmoidCrossEntropy, BNNSLossReductionNone, 1, 6);
    c.x = {1e4, 1e4, -1e4, -1e4, INFINITY, -INFINITY};
    c.labels = {0, 1, 0, 1, 1, 0};
    r = run_case(c, {});
    EXPECT_EQ(r.out, (Numbers{1e4, 0, 0, 1e4, 0, 0}));
    EXPECT_EQ(r.dx, (Numbers{1, 0, 0, -1, 0, 0}));
  });
}

// NaN in, NaN out, in term and gradient, wherever it stands in a vector; its neighbours keep their bits.
TEST(LossSpecial, NaNStaysWhereItIs) {
  for (BNNSLossFunction function : kElementFunctions) {
    const LossCase good = simple_case(function, BNNSLossReductionNone, 1, 37);
    for_each_isa([&] {
      const Result want = run_case(good, {});
      for (size_t at : {0, 5, 17, 31, 32, 36}) {
        LossCase c = good;
        c.x[at] = NAN;
        const Result r = run_case(c, {});
        for (size_t i = 0; i < c.n; ++i) {
          if (i == at) {
            EXPECT_TRUE(std::isnan(r.out[i]) && std::isnan(r.dx[i])) << "function " << function << " at " << at;
          } else {
            EXPECT_EQ(r.out[i], want.out[i]);
            EXPECT_EQ(r.dx[i], want.dx[i]);
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace bnns::testing
