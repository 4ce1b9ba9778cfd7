// Four optimizers and a Huber loss on the same problem: any type that satisfies bnns::Optimizer will do.
#include <bnns/bnns.hpp>
#include <cstdio>

using namespace bnns;

static float train(const char* name, Optimizer auto optimizer) {
  const Shape shape = {32};
  RandomGenerator random({.seed = 5});
  const NDArray target = NDArray::normal(random, 0.0f, 2.0f, shape);
  NDArray w = NDArray::repeating(0.0f, shape), dw = NDArray::repeating(0.0f, shape),
          loss = NDArray::repeating(0.0f, {1});
  std::vector<NDArray> state;
  for (std::size_t i = 0; i < optimizer.accumulatorCountMultiplier(); ++i)
    state.push_back(NDArray::repeating(0.0f, shape));
  LossLayer judge(
      {.input = w, .output = loss, .lossFunction = LossFunction::huber(1), .lossReduction = LossReduction::sum});
  for (int step = 1; step <= 1000; ++step) {
    judge.apply(1, w, target, loss, dw);
    if constexpr (requires { optimizer.timeStep; }) optimizer.timeStep = static_cast<float>(step);
    optimizer.step({w}, {dw}, state);
  }
  std::printf("%-8s loss %.2g after 1000 steps\n", name, double(loss.span<float>()[0]));
  return loss.span<float>()[0];
}

int main() {
  const auto clipping = GradientClipping::byGlobalNorm(1);
  const float worst[] = {
      train("SGD", SGDMomentumOptimizer{.learningRate = 0.1f, .momentum = 0.9f, .gradientClipping = clipping}),
      train("Adam", AdamOptimizer{.learningRate = 0.05f, .usesAMSGrad = true}),
      train("AdamW", AdamWOptimizer{.learningRate = 0.05f, .weightDecay = 0}),
      train("RMSProp", RMSPropOptimizer{.learningRate = 0.01f, .gradientClipping = clipping})};
  for (float loss : worst) {
    if (!(loss < 0.01f)) return 1;
  }
}
