// Sequences: an LSTM learns to report the first number of a sequence at its end; attention averages what it attends to.
#include <bnns/bnns.hpp>
#include <cmath>
#include <cstdio>

using namespace bnns;

int main() {
  constexpr std::size_t n = 32, steps = 5, hidden = 8;
  const Shape sequence = Shape::tensor3DSNE(1, n, steps), states = Shape::tensor3DSNE(hidden, n, 1),
              outputs = Shape::tensor3DSNE(hidden, n, steps);
  const Shape shapes[] = {Shape::matrixRowMajor(1, hidden), Shape::matrixRowMajor(hidden, hidden), {hidden}};
  RandomGenerator random({.seed = 8});
  std::vector<NDArray> w, dw, moments;
  for (std::size_t i = 0; i < 12; ++i) w.push_back(NDArray::uniform(random, -0.4f, 0.4f, shapes[i % 3]));
  for (std::size_t i = 0; i < 12; ++i) dw.push_back(NDArray::repeating(0.0f, shapes[i % 3]));
  for (std::size_t i = 0; i < 24; ++i) moments.push_back(NDArray::repeating(0.0f, shapes[i % 3]));
  const auto gate = [](const std::vector<NDArray>& from, std::size_t g) {
    return LSTMArrays::Gate{.inputWeights = from[3 * g], .hiddenWeights = from[3 * g + 1], .bias = from[3 * g + 2]};
  };
  NDArray x = NDArray::repeating(0.0f, sequence), y = NDArray::repeating(0.0f, outputs),
          h = NDArray::repeating(0.0f, states), c = NDArray::repeating(0.0f, states),
          dh = NDArray::repeating(0.0f, states);
  LSTMLayer lstm({.inputSize = 1,
                  .hiddenSize = hidden,
                  .batchSize = n,
                  .sequenceLength = steps,
                  .arrays = {.input = {.data = x},
                             .output = {.data = y, .hidden = h, .cell = c},
                             .inputGate = gate(w, 0),
                             .forgetGate = gate(w, 1),
                             .candidateGate = gate(w, 2),
                             .outputGate = gate(w, 3)}});
  const LSTMArrays gradients{.output = {.hidden = dh},
                             .inputGate = gate(dw, 0),
                             .forgetGate = gate(dw, 1),
                             .candidateGate = gate(dw, 2),
                             .outputGate = gate(dw, 3)};
  std::vector<std::byte> cache(lstm.trainingCacheCapacity());
  const std::vector<Desc> parameters(w.begin(), w.end()), slopes(dw.begin(), dw.end()),
      state(moments.begin(), moments.end());
  AdamOptimizer adam{.learningRate = 0.01f};
  float loss = 0;
  for (; adam.timeStep <= 1500; adam.timeStep += 1) {
    random.fillUniform(x, -0.7f, 0.7f);
    lstm.apply(cache);
    loss = 0;
    for (std::size_t i = 0; i < n; ++i) {  // the first hidden unit is the answer; x of step 0 comes first in memory
      const float error = h.span<float>()[i * hidden] - x.span<float>()[i];
      dh.span<float>()[i * hidden] = 2 * error / n, loss += error * error / n;
    }
    lstm.applyBackward(gradients, cache);
    adam.step(parameters, slopes, state);
  }
  std::printf("LSTM: mean square error %.4f, from 0.16\n", double(loss));

  const Shape rows = {4, 2}, heads = Shape::tensor3DLastMajor(2, 2, 1);
  const NDArray zero = NDArray::repeating(0.0f, heads), identity = NDArray::from({1.0f, 0.0f, 0.0f, 1.0f}, heads),
                merge = NDArray::from({1.0f, 0.0f, 0.0f, 1.0f}, {2, 2}), v = NDArray::uniform(random, 0.0f, 1.0f, rows);
  NDArray mixed = NDArray::repeating(0.0f, rows);
  MultiheadAttentionLayer attention({.query = {.target = v, .weights = zero},
                                     .key = {.target = v, .weights = zero},
                                     .value = {.target = v, .weights = identity},
                                     .output = {.target = v, .weights = merge}});
  attention.apply(1, v, v, v, mixed);  // equal logits: the mean of the rows
  float mean = 0;
  for (std::size_t i = 0; i < 4; ++i) mean += v.span<float>()[2 * i] / 4;
  std::printf("attention: %.4f, the mean is %.4f\n", double(mixed.span<float>()[0]), double(mean));
  return loss < 0.01f && std::fabs(mixed.span<float>()[0] - mean) < 1e-5f ? 0 : 1;
}
