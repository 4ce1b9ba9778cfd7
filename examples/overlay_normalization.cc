// Batch normalization: training makes every channel mean 0 and variance 1; inference uses the statistics it gathered.
#include <bnns/bnns.hpp>
#include <cmath>
#include <cstdio>

int main() {
  using namespace bnns;
  constexpr std::size_t n = 16, channels = 3, pixels = 64;
  const Shape image = Shape::imageCHW(8, 8, channels);
  RandomGenerator random({.seed = 3});
  const NDArray x = NDArray::normal(random, 5.0f, 2.0f, image, n), dy = NDArray::normal(random, 0.0f, 1.0f, image, n);
  NDArray y = NDArray::repeating(0.0f, image, n), dx = NDArray::repeating(0.0f, image, n);
  NDArray mean = NDArray::repeating(0.0f, {channels}), variance = NDArray::repeating(1.0f, {channels});
  NDArray beta = NDArray::repeating(0.0f, {channels}), gamma = NDArray::repeating(1.0f, {channels});
  NDArray dbeta = NDArray::repeating(0.0f, {channels}), dgamma = NDArray::repeating(0.0f, {channels});
  NormalizationLayer layer({.type = NormalizationType::batch(mean, variance),
                            .input = x,
                            .output = y,
                            .beta = beta,
                            .gamma = gamma,
                            .momentum = 0.5f,
                            .epsilon = 1e-5f,
                            .filterParameters = useClientPointer});
  for (int i = 0; i < 20; ++i) layer.apply(n, x, y, LearningPhase::training);
  layer.applyBackward(n, x, y, dy, dx, dbeta, dgamma);

  double sum = 0, squares = 0, slope = 0;  // of the first channel; its gradient cannot move the mean
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < pixels; ++k) {
      const double v = double(y.span<float>()[i * channels * pixels + k]);
      sum += v, squares += v * v, slope += double(dx.span<float>()[i * channels * pixels + k]);
    }
  }
  const double count = double(n * pixels);
  std::printf("mean %.2g, variance %.4f, gathered mean %.3f and variance %.3f, sum of the gradient %.2g\n", sum / count,
              squares / count, double(mean.span<float>()[0]), double(variance.span<float>()[0]), slope);
  layer.apply(n, x, y, LearningPhase::inference);
  return std::fabs(sum / count) < 1e-5 && std::fabs(squares / count - 1) < 1e-4 && std::fabs(slope) < 1e-3 &&
                 std::fabs(double(mean.span<float>()[0]) - 5) < 0.2
             ? 0
             : 1;
}
