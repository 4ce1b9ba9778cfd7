// A network that foresees the next character of a text: an LSTM over the characters of a window, one-hot, and a fully
// connected layer on each of its outputs. Every window begins with a state of zeros.
#pragma once

#include "tools/bnns/model/network.h"

namespace bnns::tool {

class Lstm final : public Network {
 public:
  // Weights are drawn from `seed`. x of a window is the number of the character at each of `steps` places, as a float.
  // Throws LibraryError.
  Lstm(std::size_t symbols, std::size_t hidden, std::size_t steps, std::size_t max_batch, std::uint64_t seed,
       std::size_t threads);

  std::vector<NamedArray> state() override;

 private:
  void forward(const float* x, std::size_t batch, bool training) override;
  void backward(const float* x, std::size_t batch) override;
  BNNSLayerParametersLSTM layer(std::size_t batch, bool gradients, float* x, float* y, float* h, float* c);
  // Rows of windows, as the last layer has them, into rows of places, as the LSTM has them; or back.
  void reorder(std::size_t batch, const std::vector<float>& from, std::vector<float>& to, bool back) const;

  std::size_t symbols_, hidden_, steps_;
  std::vector<float> one_hot_, y_, dy_, by_window_, by_place_, h_, c_;
  std::vector<float> second_bias_;  // PyTorch has two biases, BNNS one: what a file says of it is added to the first
  std::vector<char> cache_;         // what a training pass leaves for its backward pass
  Filter last_;
};

}  // namespace bnns::tool
