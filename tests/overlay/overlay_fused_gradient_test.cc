// The three applyBackward of FusedParametersLayer against finite differences of its own forward.

#include <algorithm>
#include <cmath>

#include "tests/overlay/overlay_fused_testing.h"

namespace overlay {
namespace {

// sum(dy * y) in double, of a forward pass in float.
double loss(Fixture& f, FusedParametersLayer& layer) {
  f.forward(layer);
  double sum = 0;
  for (std::size_t i = 0; i < f.y.span<float>().size(); ++i) {
    sum += static_cast<double>(f.dy.span<float>()[i]) * static_cast<double>(f.y.span<float>()[i]);
  }
  return sum;
}

// Central differences with steps h and h/2 combined, so that the error is of order h^4; the rounding of about a hundred
// floats below 1 enters divided by h. With h = 1/16: 10 h^4 + 100 * 2^-24 / h = 2.5e-4, relative to the largest.
double difference(Fixture& f, FusedParametersLayer& layer, float& at) {
  constexpr float h = 0.0625f;
  const float before = at;
  double d[2];
  for (int i = 0; i < 2; ++i) {
    const float step = i == 0 ? h : h / 2;
    at = before + step;
    const double above = loss(f, layer), up = at;
    at = before - step;
    d[i] = (above - loss(f, layer)) / (up - static_cast<double>(at));
  }
  at = before;
  return (4 * d[1] - d[0]) / 3;
}
void expect_gradient(Fixture& f, FusedParametersLayer& layer, NDArray& x, const NDArray& dx, const char* what) {
  double largest = 0, worst = 0;
  const auto analytic = dx.span<float>();
  for (float g : analytic) largest = std::max(largest, std::fabs(static_cast<double>(g)));
  // The gradient of a bias under batch normalization is zero: compare it with the others' scale.
  largest = std::max(largest, 0.1);
  for (std::size_t i = 0; i < analytic.size(); ++i) {
    worst = std::max(worst, std::fabs(difference(f, layer, x.span<float>()[i]) - static_cast<double>(analytic[i])));
  }
  EXPECT_LE(worst / largest, 10 * std::pow(0.0625, 4) + 100 * 0x1p-24 / 0.0625) << what;
}

TEST(OverlayFused, GradientsAreFiniteDifferences) {
  for (const auto& [name, k] : cases()) {
    SCOPED_TRACE(name);
    Fixture f(k);
    FusedParametersLayer layer = f.make_layer();
    f.forward(layer);
    f.backward(layer);
    for (std::size_t i = 0; i < f.x.size(); ++i) expect_gradient(f, layer, f.x[i], f.dx[i], "input");
    for (std::size_t i = 0; i < f.w.size(); ++i) expect_gradient(f, layer, f.w[i], f.dw[i], "parameter");
  }
}

}  // namespace
}  // namespace overlay
