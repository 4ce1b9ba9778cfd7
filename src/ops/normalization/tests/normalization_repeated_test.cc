// gamma and beta of a layer normalization that repeat along normalised axes.

#include <gtest/gtest.h>

#include "src/ops/normalization/tests/normalization_testing.h"

namespace bnns {
namespace {

using namespace bnns::testing;

// gamma as a CHW image with extents of 1 repeats along them (a transformer's {N, 1, 1} for tokens {N, 1, M}); its
// gradient is the sum of those of the elements.
TEST(NormalizationRepeated, GammaAndBetaOfAnImage) {
  Random random(24);
  struct Case {
    NormCase c;
    std::vector<size_t> gamma;
  };
  for (const Case& k : {Case{{Norm::layer, 3, 7, 1, 16, 1, 0}, {16, 1, 1}}, Case{{Norm::layer, 2, 5, 4, 3}, {1, 1, 5}},
                        Case{{Norm::layer, 2, 5, 4, 3}, {3, 1, 5}}, Case{{Norm::layer, 3, 2, 4, 6, 1, 1}, {6, 1, 1}},
                        Case{{Norm::layer, 2, 2, 4, 6, 1, 1}, {1, 1, 1}}}) {
    const NormCase& c = k.c;
    const size_t extent[] = {c.W, c.axis <= 1 ? c.H : 1, c.axis == 0 ? c.C : 1};
    const size_t few = k.gamma[0] * k.gamma[1] * k.gamma[2];
    const auto x = random.normals(c.count()), dy = random.normals(c.count());
    auto gamma = random.normals(few), beta = random.normals(few);
    std::vector<size_t> of;  // which one each element takes
    for (size_t z = 0; z < extent[2]; ++z) {
      for (size_t v = 0; v < extent[1]; ++v) {
        for (size_t u = 0; u < extent[0]; ++u) {
          of.push_back(u % k.gamma[0] + k.gamma[0] * (v % k.gamma[1] + k.gamma[1] * (z % k.gamma[2])));
        }
      }
    }
    std::vector<float> all_gamma(of.size()), all_beta(of.size());
    for (size_t i = 0; i < of.size(); ++i) all_gamma[i] = gamma[of[i]], all_beta[i] = beta[of[i]];
    const auto want = train(NormLayer(c, &all_gamma, &all_beta), x, dy);

    NormLayer layer(c);
    layer.parameters.gamma_desc = descriptor(BNNSDataLayoutImageCHW, k.gamma, gamma.data());
    layer.parameters.beta_desc = descriptor(BNNSDataLayoutImageCHW, k.gamma, beta.data());
    const auto filter = layer.make();
    std::vector<float> y(c.count()), dx(c.count()), dgamma(few, poison()), dbeta(few, poison());
    ASSERT_EQ(BNNSNormalizationFilterApplyBatch(filter.get(), c.N, x.data(), 0, y.data(), 0, true), 0)
        << BNNSExtLastError();
    auto dx_desc = layer.data_descriptor(dx.data()), dy_desc = layer.data_descriptor(const_cast<float*>(dy.data()));
    auto dgamma_desc = descriptor(BNNSDataLayoutImageCHW, k.gamma, dgamma.data());
    auto dbeta_desc = descriptor(BNNSDataLayoutImageCHW, k.gamma, dbeta.data());
    for (double times : {1.0, 2.0}) {
      ASSERT_EQ(BNNSNormalizationFilterApplyBackwardBatch(filter.get(), c.N, &dx_desc, 0, nullptr, 0, &dy_desc, 0,
                                                          &dbeta_desc, &dgamma_desc),
                0)
          << BNNSExtLastError();
      EXPECT_TRUE(same_bits(y, want.y) && same_bits(dx, want.dx)) << c.text();
      std::vector<double> gamma_sum(few), beta_sum(few), gamma_size(few), beta_size(few);
      for (size_t i = 0; i < of.size(); ++i) {
        gamma_sum[of[i]] += times * double(want.dgamma[i]), gamma_size[of[i]] += std::fabs(double(want.dgamma[i]));
        beta_sum[of[i]] += times * double(want.dbeta[i]), beta_size[of[i]] += std::fabs(double(want.dbeta[i]));
      }
      // one rounding, two where it is added
      EXPECT_TRUE(within(dgamma, gamma_sum, few, [&](size_t i) { return times * 0x1p-24 * gamma_size[i] * times; }));
      EXPECT_TRUE(within(dbeta, beta_sum, few, [&](size_t i) { return times * 0x1p-24 * beta_size[i] * times; }));
      dgamma_desc.flags = dbeta_desc.flags = BNNSNDArrayFlagBackpropAccumulate;
    }
  }
}

}  // namespace
}  // namespace bnns
