// The overlay class at work: a ScaleShiftLayer learns the factor and the summand of each channel from examples.

#include <cmath>
#include <cstdio>

#include "examples/operator_skeleton/scale_shift.hpp"

int main() {
  using namespace bnns;
  constexpr std::size_t n = 16, channels = 2, pixels = 16;
  const float factors[channels] = {2, -3}, summands[channels] = {1, 0.5f};
  const Shape image = Shape::imageCHW(4, 4, channels);
  RandomGenerator random({.seed = 1});
  const NDArray x = NDArray::normal(random, 0.0f, 1.0f, image, n);
  NDArray y = NDArray::repeating(0.0f, image, n), dy = NDArray::repeating(0.0f, image, n);
  NDArray a = NDArray::repeating(1.0f, {channels}), b = NDArray::repeating(0.0f, {channels});
  NDArray da = NDArray::repeating(0.0f, {channels}), db = NDArray::repeating(0.0f, {channels});

  ScaleShiftLayer layer(
      {.input = x, .output = y, .scale = a, .shift = b, .axis = 2, .filterParameters = useClientPointer});
  const SGDMomentumOptimizer sgd{.learningRate = 0.3f};
  for (int step = 0; step < 100; ++step) {
    layer.apply(n, x, y);
    for (std::size_t i = 0; i < n * channels * pixels; ++i) {  // the gradient of half the mean square error
      const std::size_t c = i / pixels % channels;
      const float wanted = factors[c] * x.span<float>()[i] + summands[c];
      dy.span<float>()[i] = (y.span<float>()[i] - wanted) / float(n * pixels);
    }
    layer.applyBackward({.batchSize = n,
                         .input = x,
                         .output = y,
                         .outputGradient = dy,
                         .generatingScaleGradient = da,
                         .generatingShiftGradient = db});
    sgd.step({a, b}, {da, db}, {});
  }
  bool learnt = true;
  for (std::size_t c = 0; c < channels; ++c) {
    const float factor = a.span<float>()[c], summand = b.span<float>()[c];
    std::printf("channel %zu: y = %.3f x %+.3f\n", c, double(factor), double(summand));
    learnt = learnt && std::fabs(factor - factors[c]) < 1e-3f && std::fabs(summand - summands[c]) < 1e-3f;
  }
  return learnt ? 0 : 1;
}
