// A two-layer perceptron on the public BNNS C API: everything it computes is a call a Mac program could make.
//
//   h = relu(W1 x + b1)      fully connected with fused activation
//   z = W2 h + b2            fully connected
//   loss = mean softmax cross-entropy of z and the label, with dz in the same call
#pragma once

#include <bnns/bnns.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace bnns::tool {

// A BNNS call failed; the text is the call's name and BNNSExtLastError().
class LibraryError : public std::runtime_error {
 public:
  explicit LibraryError(const std::string& call);
};

struct FilterDeleter {
  void operator()(void* filter) const { BNNSFilterDestroy(filter); }
};
using Filter = std::unique_ptr<std::remove_pointer_t<BNNSFilter>, FilterDeleter>;

class Mlp {
 public:
  // Weights are drawn from `seed`; `threads` 0 means as many as the machine has. Throws LibraryError.
  Mlp(std::size_t inputs, std::size_t hidden, std::size_t classes, std::size_t max_batch, std::uint64_t seed,
      std::size_t threads);

  // One forward, backward and Adam step on `batch` samples (x: batch x inputs, labels: batch x classes, one-hot).
  // Returns the mean loss before the step. 0 < batch <= max_batch.
  float train_step(const float* x, const float* labels, std::size_t batch, float learning_rate);

  // Class probabilities (batch x classes) with the current weights.
  void predict(const float* x, std::size_t batch, float* probabilities);

  std::span<const float> scores() const { return z_; }            // z of the last call, batch x classes
  std::span<const float> weights() const { return parameters_; }  // W1, b1, W2, b2 one after the other

 private:
  BNNSNDArrayDescriptor vector(std::size_t size, float* data = nullptr) const;
  BNNSNDArrayDescriptor matrix(std::size_t columns, std::size_t rows, float* data) const;
  void forward(const float* x, std::size_t batch);

  std::size_t inputs_, hidden_, classes_;
  BNNSFilterParameters options_;
  std::vector<float> parameters_, gradients_, moments_;  // moments_: all first, then all second
  std::vector<float> h_, dh_, z_, dz_;
  std::vector<BNNSNDArrayDescriptor> parameter_, gradient_, moment_;
  std::vector<BNNSNDArrayDescriptor*> parameter_list_, moment_list_;
  std::vector<const BNNSNDArrayDescriptor*> gradient_list_;
  BNNSOptimizerAdamFields adam_{};
  Filter first_, second_, loss_, softmax_;
};

}  // namespace bnns::tool
