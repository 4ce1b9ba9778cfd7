// What a training pass and its gradients must be, and how far from it they may lie.
#pragma once

#include "src/ops/normalization/tests/normalization_testing.h"

namespace bnns::testing {

struct Want {
  ref::NormForward forward;
  ref::NormBackward backward;
  std::vector<double> abs_g, abs_gx;    // per parameter: sums of magnitudes, which errors are measured by
  std::vector<double> mean_h, mean_hx;  // per set: means of magnitudes
};

inline Want expect(const NormCase& c, const std::vector<float>& x, const std::vector<float>& gamma,
                   const std::vector<float>& beta, const std::vector<float>& dy) {
  Want w;
  w.forward = ref::normalization_forward(c, widen(x), widen(gamma), widen(beta));
  w.backward = ref::normalization_backward(c, w.forward, widen(gamma), widen(dy));
  w.abs_g.resize(c.parameters()), w.abs_gx.resize(c.parameters()), w.mean_h.resize(c.sets()),
      w.mean_hx.resize(c.sets());
  c.for_each([&](size_t e, size_t set, size_t parameter) {
    const double g = std::fabs(dy[e]), h = std::fabs(gamma[parameter]) * g, m = w.forward.members[set];
    w.abs_g[parameter] += g, w.abs_gx[parameter] += g * (std::fabs(w.forward.values[e]) + 1);
    w.mean_h[set] += h / m, w.mean_hx[set] += h * (std::fabs(w.forward.values[e]) + 1) / m;
  });
  return w;
}

// y: |gamma| (|x^| + 1) in units of the forward error, one rounding of the sum. Sums: f32 lanes of at most 64 terms.
// dx: each of its three terms with its own error.
inline void check(const NormCase& c, const TrainingResult& got, const Want& want, const std::vector<float>& gamma,
                  const std::vector<float>& beta, const std::vector<float>& dy) {
  std::vector<double> y_bound(c.count()), dx_bound(c.count());
  c.for_each([&](size_t e, size_t set, size_t p) {
    const double spread = std::fabs(want.forward.values[e]) + 1, g = std::fabs(gamma[p]);
    y_bound[e] = kForwardUnits * g * spread + kEps * std::fabs(beta[p]);
    dx_bound[e] = 2 * kForwardUnits * want.forward.rstd[set] *
                  (g * std::fabs(dy[e]) + want.mean_h[set] + spread * want.mean_hx[set]);
  });
  EXPECT_TRUE(within(got.y, want.forward.y, c.count(), [&](size_t i) { return y_bound[i]; }));
  EXPECT_TRUE(within(got.dx, want.backward.dx, c.count(), [&](size_t i) { return dx_bound[i]; }));
  EXPECT_TRUE(
      within(got.dbeta, want.backward.dbeta, c.parameters(), [&](size_t i) { return kForwardUnits * want.abs_g[i]; }));
  EXPECT_TRUE(within(got.dgamma, want.backward.dgamma, c.parameters(),
                     [&](size_t i) { return 2 * kForwardUnits * want.abs_gx[i]; }));
}

}  // namespace bnns::testing
