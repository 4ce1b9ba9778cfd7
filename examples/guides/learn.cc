// c++ -std=c++20 learn.cc -o learn -lbnns && ./learn
// prints: y = 2.000 a -3.000 b +1.000
// The shortest training program: one fully connected layer learns y = 2a - 3b + 1 from examples.
#include <bnns/bnns.hpp>
#include <cstdio>

int main() {
  using namespace bnns;
  constexpr std::size_t n = 64;
  RandomGenerator random({.seed = 1});
  NDArray x = NDArray::uniform(random, -1.0f, 1.0f, {2}, n), y = NDArray::uninitialized<float>({1}, n);
  NDArray labels = NDArray::uninitialized<float>({1}, n), loss = NDArray::repeating(0.0f, {1}),
          dy = NDArray::repeating(0.0f, {1}, n);
  for (std::size_t i = 0; i < n; ++i) {
    labels.span<float>()[i] = 2 * x.span<float>()[2 * i] - 3 * x.span<float>()[2 * i + 1] + 1;
  }
  NDArray w = NDArray::repeating(0.0f, Shape::matrixRowMajor(2, 1)), b = NDArray::repeating(0.0f, {1});
  NDArray dw = NDArray::repeating(0.0f, Shape::matrixRowMajor(2, 1)), db = NDArray::repeating(0.0f, {1});

  FullyConnectedLayer layer({.input = x, .output = y, .weights = w, .bias = b, .filterParameters = useClientPointer});
  LossLayer judge({.input = y,
                   .output = loss,
                   .lossFunction = LossFunction::meanSquareError(),
                   .lossReduction = LossReduction::reductionMean});
  const SGDMomentumOptimizer sgd{.learningRate = 0.2f};
  for (int step = 0; step < 200; ++step) {
    layer.apply(n, x, y);
    judge.apply(n, y, labels, loss, dy);
    layer.applyBackward({.batchSize = n,
                         .input = x,
                         .output = y,
                         .outputGradient = dy,
                         .generatingWeightsGradient = dw,
                         .generatingBiasGradient = db});
    sgd.step({w, b}, {dw, db}, {});
  }
  const auto learnt = w.span<float>();
  std::printf("y = %.3f a %+.3f b %+.3f\n", double(learnt[0]), double(learnt[1]), double(b.span<float>()[0]));
  return loss.span<float>()[0] < 1e-6f ? 0 : 1;
}
