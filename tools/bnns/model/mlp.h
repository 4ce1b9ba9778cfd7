// A two-layer perceptron: h = relu(W1 x + b1), z = W2 h + b2.
#pragma once

#include "tools/bnns/model/network.h"

namespace bnns::tool {

class Mlp final : public Network {
 public:
  // Weights are drawn from `seed`. Throws LibraryError.
  Mlp(std::size_t inputs, std::size_t hidden, std::size_t classes, std::size_t max_batch, std::uint64_t seed,
      std::size_t threads);

 private:
  void forward(const float* x, std::size_t batch, bool training) override;
  void backward(const float* x, std::size_t batch) override;

  std::size_t inputs_, hidden_;
  std::vector<float> h_, dh_;
  Filter first_, second_;
};

}  // namespace bnns::tool
