// Statistics: large offsets, long sums, moving averages.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "src/ops/normalization/tests/normalization_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// A training pass with momentum 0 leaves the statistics of the batch in the moving ones.
struct Statistics {
  std::vector<float> mean, variance, y;
};
Statistics statistics_of(const NormCase& c, const std::vector<float>& x) {
  Statistics s{std::vector<float>(c.C, 7), std::vector<float>(c.C, 7), std::vector<float>(c.count())};
  NormLayer layer(c);
  layer.parameters.momentum = 0;
  layer.options.flags = BNNSFlagsUseClientPtr;
  layer.parameters.moving_mean_desc = vector_descriptor(c.C, s.mean.data());
  layer.parameters.moving_variance_desc = vector_descriptor(c.C, s.variance.data());
  const auto filter = layer.make();
  EXPECT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), 0, s.y.data(), 0, true), 0)
      << BNNSExtLastError();
  return s;
}

TEST(NormalizationStatistics, BC19_LargeOffsetsKeepTheirDigits) {
  for_each_isa([] {
    for (const NormCase& c :
         {NormCase{Norm::batch, 8, 3, 33, 33, 1, 0, 0.0}, NormCase{Norm::batch, 700, 37, 1, 1, 1, 0, 0.0},
          NormCase{Norm::instance, 1, 2, 60, 60, 1, 0, 0.0}, NormCase{Norm::batch, 40, 5, 7, 7, 1, 0, 0.0}}) {
      for (double mean : {0.0, 1e3, 1e4, 1e6, 1e7, -1e7}) {
        for (double deviation : {1e-2, 1.0}) {
          SCOPED_TRACE(c.text() + " mean " + std::to_string(mean) + " deviation " + std::to_string(deviation));
          Random random(3);
          std::vector<float> x(c.count());
          for (float& v : x) v = float(mean + deviation * random.normal());
          const auto want = ref::normalization_forward(c, widen(x), {}, {});
          const auto got = statistics_of(c, x);
          for (size_t k = 0; k < c.C; ++k) {
            const double m = want.mean[k], v = want.variance[k];
            ASSERT_NEAR(got.mean[k], m, 0x1p-24 * std::fabs(m) + 1e-6 * std::sqrt(v));
            ASSERT_NEAR(got.variance[k], v, 1e-5 * v);  // where all values are equal it must be 0
            ASSERT_GE(got.variance[k], 0);
          }
          ASSERT_TRUE(within(got.y, want.y, c.count(),
                             [&](size_t i) { return 2 * kForwardUnits * (std::fabs(want.y[i]) + 1); }));
          const auto dy = random.normals(c.count());
          const auto backward = ref::normalization_backward(c, want, {}, widen(dy));
          const auto trained = train(NormLayer(c), x, dy);
          double largest = 0;
          for (double d : backward.dx) largest = std::max(largest, std::fabs(d));
          ASSERT_TRUE(within(trained.dx, backward.dx, c.count(), [&](size_t) { return 1e-4 * largest; }));
        }
      }
    }
  });
}

// One value far from all others, first or last: the shift is then far from the mean.
TEST(NormalizationStatistics, BC19_OutliersDoNotCancel) {
  for_each_isa([] {
    for (const NormCase& c :
         {NormCase{Norm::batch, 1, 1, 100, 100, 1, 0, 0.0}, NormCase{Norm::batch, 1000, 1, 1, 1, 1, 0, 0.0}}) {
      for (size_t place : {size_t{0}, size_t{1}, c.count() - 1}) {
        for (double outlier : {10.0, 1e3, 1e6}) {
          Random random(5);
          auto x = random.normals(c.count());
          x[place] = float(outlier);
          const auto want = ref::normalization_forward(c, widen(x), {}, {});
          const auto got = statistics_of(c, x);
          EXPECT_NEAR(got.mean[0], want.mean[0], 1e-5 * std::sqrt(want.variance[0]))
              << c.text() << " " << outlier << " at " << place;
          EXPECT_NEAR(got.variance[0], want.variance[0], 1e-5 * want.variance[0])
              << c.text() << " " << outlier << " at " << place;
        }
      }
    }
  });
}

TEST(NormalizationStatistics, BC19_ConstantChannelGivesExactlyBeta) {
  for_each_isa([] {
    for (double epsilon : {0.0, 1e-5}) {
      for (float value : {0.0f, 1.0f, -3.3f, 1e7f, 16777217.0f, 1e-30f}) {
        for (NormCase c : {NormCase{Norm::batch, 3, 2, 9, 9}, NormCase{Norm::batch, 100, 3, 1, 1},
                           NormCase{Norm::layer, 2, 3, 20, 20}, NormCase{Norm::group, 2, 4, 2, 2, 2},
                           NormCase{Norm::instance, 2, 3, 1, 1}}) {
          c.epsilon = epsilon;
          const std::vector<float> x(c.count(), value);
          Random random(7);
          const auto gamma = random.normals(c.parameters()), beta = random.normals(c.parameters());
          const auto got = train(NormLayer(c, &gamma, &beta), x, random.normals(c.count()));
          c.for_each([&](size_t e, size_t, size_t p) {
            ASSERT_EQ(got.y[e], beta[p]) << c.text() << " value " << value;
            ASSERT_TRUE(std::isfinite(got.dx[e]));
          });
          for (float d : got.dgamma) ASSERT_EQ(d, 0);
        }
      }
    }
  });
}

TEST(NormalizationStatistics, BC20_TenMillionValues) {
  for (const NormCase& c : {NormCase{Norm::batch, 1, 1, 2500, 4000}, NormCase{Norm::batch, 1000000, 1, 1, 1}}) {
    Random random(9);
    std::vector<float> x(c.count());
    for (float& v : x) v = float(random.next() >> 40) * 0x1p-24f;  // in [0, 1)
    x[0] = 0;  // sums are about the first value: they grow all the way
    double sum = 0, squares = 0;
    for (float v : x) sum += v;
    const double mean = sum / double(x.size());
    for (float v : x) squares += (v - mean) * (v - mean);
    const double variance = squares / double(x.size());
    for_each_isa([&] {
      const auto got = statistics_of(c, x);
      EXPECT_NEAR(got.mean[0], mean, 1e-6 * mean);
      EXPECT_NEAR(got.variance[0], variance, 1e-6 * variance);
    });
  }
}

// BC22: momentum's direction, the biased variance, one update per pass, 1, 2 and 10 passes; N H W = 1 divides by 1.
TEST(NormalizationStatistics, BC22_MovingStatisticsFollowTheRecurrence) {
  for (const NormCase& c :
       {NormCase{Norm::batch, 4, 3, 6, 6}, NormCase{Norm::batch, 5, 7, 1, 1}, NormCase{Norm::instance, 4, 3, 5, 5},
        NormCase{Norm::batch, 1, 2, 1, 1}, NormCase{Norm::batch, 2, 1, 260, 260}}) {
    for (float momentum : {0.0f, 0.9f, 1.0f}) {
      for (int present : {1, 2, 3}) {  // mean, variance, both
        for (bool client : {false, true}) {
          SCOPED_TRACE(c.text() + " momentum " + std::to_string(momentum));
          Random random(11);
          std::vector<float> mean = random.normals(c.C), variance(c.C, 2), y(c.count());
          const std::vector<float> mean_before = mean, variance_before = variance;
          std::vector<double> want_mean = widen(mean), want_variance = widen(variance);
          NormLayer layer(c);
          layer.parameters.momentum = momentum;
          if (present & 1) layer.parameters.moving_mean_desc = vector_descriptor(c.C, mean.data());
          if (present & 2) layer.parameters.moving_variance_desc = vector_descriptor(c.C, variance.data());
          if (client) layer.options.flags = BNNSFlagsUseClientPtr;
          const auto filter = layer.make();
          for (int step = 1; step <= 10; ++step) {
            auto x = random.integers(c.count(), 500);
            for (float& v : x) v = v / 256 - 0.3f;
            const auto forward = ref::normalization_forward(c, widen(x), {}, {});
            want_mean = ref::moving_after(c, momentum, want_mean, forward.mean);
            want_variance = ref::moving_after(c, momentum, want_variance, forward.variance);
            ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), 0, y.data(), 0, true), 0)
                << BNNSExtLastError();
            if (step != 1 && step != 2 && step != 10) continue;
            if (client) {
              for (size_t k = 0; k < c.C; ++k) {
                if (present & 1) {
                  ASSERT_NEAR(mean[k], want_mean[k], 1e-6 * (1 + std::fabs(want_mean[k])));
                }
                if (present & 2) {
                  ASSERT_NEAR(variance[k], want_variance[k], 1e-6 * (1 + want_variance[k]));
                }
              }
            }
            // BC21: inference is the affine map of the moving statistics (of the batch's own where absent), and changes
            // none.
            std::vector<double> m, v;
            for (size_t s = 0; s < c.sets(); ++s) {
              m.push_back(present & 1 ? want_mean[s % c.C] : forward.mean[s]);
              v.push_back(present & 2 ? want_variance[s % c.C] : forward.variance[s]);
            }
            const auto want = ref::normalization_forward(c, widen(x), {}, {}, m, v);
            for (int repeat = 0; repeat < 2; ++repeat) {
              ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), 0, y.data(), 0, false), 0);
              ASSERT_TRUE(within(y, want.y, c.count(), [&](size_t i) { return 2e-5 * (1 + std::fabs(want.y[i])); }));
            }
          }
          EXPECT_TRUE(client || (mean == mean_before && variance == variance_before)) << "the filter has a copy";
        }
      }
    }
  }
}

// BC21: inference with moving statistics is linear but for the offset: <y(x) - y(0), g> = <x, gamma rstd g>.
TEST(NormalizationStatistics, BC21_InferenceIsAffine) {
  const NormCase c{Norm::batch, 3, 4, 5, 5, 1, 0, 0.0};
  Random random(13);
  std::vector<float> mean = random.integers(c.C), variance(c.C, 4), gamma = random.integers(c.C), y(c.count()),
                     zero(c.count());
  NormLayer layer(c, &gamma);
  layer.parameters.moving_mean_desc = vector_descriptor(c.C, mean.data());
  layer.parameters.moving_variance_desc = vector_descriptor(c.C, variance.data());
  const auto filter = layer.make();
  const auto x = random.integers(c.count()), g = random.integers(c.count());
  ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), 0, y.data(), 0, false), 0);
  const std::vector<float> nothing(c.count());
  ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, nothing.data(), 0, zero.data(), 0, false), 0);
  double left = 0, right = 0;
  c.for_each([&](size_t e, size_t, size_t p) {
    left += double(y[e] - zero[e]) * g[e];
    right += double(x[e]) * gamma[p] * 0.5 * g[e];  // 1 / sqrt(4)
  });
  EXPECT_EQ(left, right);  // all of it exact
}

// BC21: gradients belong to training passes (K21). After inference alone there are none, rather than some of statistics
// that nobody computed; and inference between a training pass and its gradients changes neither them nor the moving
// statistics.
TEST(NormalizationStatistics, BC21_GradientsComeFromTheTrainingPass) {
  for (const NormCase& c :
       {NormCase{Norm::batch, 3, 4, 5, 5}, NormCase{Norm::batch, 6, 5, 1, 1}, NormCase{Norm::instance, 3, 4, 5, 5},
        NormCase{Norm::group, 3, 4, 5, 5, 2}, NormCase{Norm::layer, 3, 4, 5, 5}}) {
    SCOPED_TRACE(c.text());
    Random random(31);
    const auto x = random.normals(c.count()), other = random.normals(c.count(), 5);
    auto dy = random.normals(c.count());
    const auto want = train(NormLayer(c), x, dy);
    std::vector<float> mean = random.normals(c.C), variance(c.C, 2), y(c.count()), dx(c.count(), poison()),
                       dbeta(c.parameters(), poison()), dgamma(c.parameters(), poison());
    NormLayer layer(c);
    layer.options.flags = BNNSFlagsUseClientPtr;
    layer.parameters.moving_mean_desc = vector_descriptor(c.C, mean.data());
    layer.parameters.moving_variance_desc = vector_descriptor(c.C, variance.data());
    const auto filter = layer.make();
    auto dx_desc = layer.data_descriptor(dx.data()), dy_desc = layer.data_descriptor(dy.data());
    auto dbeta_desc = layer.affine_descriptor(dbeta.data()), dgamma_desc = layer.affine_descriptor(dgamma.data());
    const auto inference = [&] {
      const auto mean_before = mean, variance_before = variance;
      for (size_t batch : {c.N, size_t{1}}) {
        ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), batch, other.data(), 0, y.data(), 0, false), 0);
        for (size_t i = 0; i < batch * c.count() / c.N; ++i) ASSERT_TRUE(std::isfinite(y[i]));
      }
      ASSERT_TRUE(same_bits(mean, mean_before) && same_bits(variance, variance_before));
    };
    const auto backward = [&] {
      return BNNSNormalizationFilterApplyBackwardBatch(filter.get(), c.N, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                                       &dbeta_desc, &dgamma_desc);
    };
    inference();
    EXPECT_EQ(backward(), -1);
    EXPECT_TRUE(refused_because({"no forward pass with training = true"}));
    for (const auto* untouched : {&dx, &dbeta, &dgamma}) {
      for (float v : *untouched) ASSERT_TRUE(is_poison(v));
    }
    ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), 0, y.data(), 0, true), 0);
    inference();
    ASSERT_EQ(backward(), 0) << BNNSExtLastError();
    EXPECT_TRUE(same_bits(dx, want.dx) && same_bits(dbeta, want.dbeta) && same_bits(dgamma, want.dgamma));
  }
}

// NaN spoils its own set and no other, whatever its place.
TEST(NormalizationStatistics, NaNStaysInItsSet) {
  for_each_isa([] {
    for (const NormCase& c : {NormCase{Norm::batch, 2, 3, 5, 5}, NormCase{Norm::batch, 3, 20, 1, 1},
                              NormCase{Norm::instance, 2, 3, 5, 5}, NormCase{Norm::layer, 3, 2, 4, 5, 1, 1}}) {
      Random random(19);
      const auto clean = random.normals(c.count());
      const auto want = train(NormLayer(c), clean, clean).y;
      for (size_t place = 0; place < c.count(); ++place) {
        auto x = clean;
        x[place] = NAN;
        const auto got = train(NormLayer(c), x, clean).y;
        size_t bad = 0;
        c.for_each([&](size_t e, size_t s, size_t) {
          if (e == place) bad = s;
        });
        c.for_each([&](size_t e, size_t s, size_t) {
          ASSERT_TRUE(s == bad ? std::isnan(got[e]) : bits(got[e]) == bits(want[e])) << c.text() << " NaN at " << place;
        });
      }
    }
  });
}

// An infinite gamma times the zeros beside the last values of a plane is NaN: they must not count.
TEST(NormalizationStatistics, InfiniteGammaWithRelu) {
  for_each_isa([] {
    for (const size_t width : {15, 16, 17, 33, 63}) {
      const NormCase c{Norm::batch, 2, 2, 1, width};
      const std::vector<float> gamma{std::numeric_limits<float>::infinity(), 1}, beta{0.5f, 0};
      Random random(9);
      const auto x = random.normals(c.count());
      const auto r = train(NormLayer(c, &gamma, &beta, BNNSActivationFunctionRectifiedLinear), x,
                           std::vector<float>(c.count(), 1.0f));
      size_t passed = 0;  // of the first channel
      for (size_t n = 0; n < 2; ++n) {
        for (size_t i = 0; i < width; ++i) passed += r.y[n * 2 * width + i] > 0;
      }
      ASSERT_GT(passed, 0u);
      EXPECT_EQ(r.dbeta[0], float(passed)) << c.text();
      EXPECT_TRUE(std::isfinite(r.dgamma[0])) << c.text();
    }
  });
}

}  // namespace
}  // namespace bnns
