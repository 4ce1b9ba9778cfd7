// What the networks of `bnns train` share: parameters with their gradients, Adam, and their last steps,
// softmax cross-entropy for training and softmax for reading. Everything is a call a Mac program could make.
#pragma once

#include <bnns/bnns.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
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

Filter created(const char* call, BNNSFilter handle);
void check(const char* call, int status);

// f32 descriptors; sizes in the layout's own order.
BNNSNDArrayDescriptor describe(BNNSDataLayout layout, std::initializer_list<std::size_t> sizes, float* data = nullptr);
BNNSNDArrayDescriptor vector(std::size_t size, float* data = nullptr);
BNNSNDArrayDescriptor image(std::size_t width, std::size_t height, std::size_t channels, float* data = nullptr);

// Elements of a descriptor without strides.
std::size_t count_of(const BNNSNDArrayDescriptor& d);

class Ranks;  // ranks.h

// The size of one item: a picture.
struct Inputs {
  std::size_t rows, columns, channels;
};

// An array with the name that a file has for it: PyTorch's, "conv1.weight".
struct NamedArray {
  std::string name;
  BNNSNDArrayDescriptor array;
};

// All parameters of a network in one block, their gradients and Adam's moments in others like it.
class Parameters {
 public:
  explicit Parameters(const std::vector<NamedArray>& shapes);

  BNNSNDArrayDescriptor& operator[](std::size_t i) { return parameter_[i]; }
  BNNSNDArrayDescriptor& gradient(std::size_t i) { return gradient_[i]; }
  std::span<const float> values() const { return values_; }
  void fill(std::size_t i, float value);
  // Uniform in +-sqrt(6 / inputs): He's bound for layers followed by a rectifier.
  void draw(std::size_t i, std::size_t inputs, BNNSRandomGenerator generator);
  // With ranks: what they gave meets first.
  void adam_step(float learning_rate, const BNNSFilterParameters& options, Ranks* ranks = nullptr);

  std::vector<NamedArray> named() const;  // the parameters
  std::vector<NamedArray> moments()
      const;  // "optimizer.exp_avg.conv1.weight", "optimizer.exp_avg_sq.conv1.weight", ...
  // A float counts to 2^24 and stays there.
  void set_steps(std::size_t done) { adam_.time_step = static_cast<float>(std::min(done, std::size_t{1} << 24)); }

 private:
  std::vector<std::string> names_;
  std::vector<float> values_, gradients_, moments_;  // moments_: all first, then all second
  std::vector<BNNSNDArrayDescriptor> parameter_, gradient_, moment_;
  std::vector<BNNSNDArrayDescriptor*> parameter_list_, moment_list_;
  std::vector<const BNNSNDArrayDescriptor*> gradient_list_;
  BNNSOptimizerAdamFields adam_{};
};

class Network {
 public:
  virtual ~Network() = default;

  // One forward, backward and Adam step on `batch` samples (x: batch x pixels, labels: batch x steps x classes,
  // one-hot). Returns the mean loss before the step. 0 < batch <= max_batch.
  float train_step(const float* x, const float* labels, std::size_t batch, float learning_rate);
  // The same with other ranks: forward and backward of one shard, whose gradients are on their way when it returns;
  // and, after all shards of this rank, the step.
  float train_shard(const float* x, const float* labels, std::size_t batch, std::size_t shard, Ranks& ranks);
  void step_with(Ranks& ranks, float learning_rate) { parameters_.adam_step(learning_rate, options_, &ranks); }
  // Class probabilities (batch x steps x classes) with the current weights.
  void predict(const float* x, std::size_t batch, float* probabilities);

  std::span<const float> scores() const { return z_; }  // z of the last call, batch x steps x classes
  std::span<const float> weights() const { return parameters_.values(); }

  // What a file keeps: all that predict() uses, and what training needs besides to go on after `steps` steps. The
  // arrays point into the network.
  virtual std::vector<NamedArray> state() { return parameters_.named(); }
  std::vector<NamedArray> optimizer_state() const { return parameters_.moments(); }
  void set_steps(std::size_t done) { parameters_.set_steps(done); }

 protected:
  // `threads` 0 means as many as the machine has.
  // `steps` answers for each item.
  Network(const std::vector<NamedArray>& shapes, std::size_t classes, std::size_t max_batch, std::size_t threads,
          std::size_t steps = 1);

  // z_ from x; then all gradients from dz_, for the same x.
  virtual void forward(const float* x, std::size_t batch, bool training) = 0;
  virtual void backward(const float* x, std::size_t batch) = 0;
  // Called by backward() as soon as it has the gradients of parameters [first, first + count).
  void gradients_ready(std::size_t first, std::size_t count);
  // The last layer, z = W x + b with parameters `first` (W) and first + 1 (b), and its calls; W is drawn.
  Filter create_last(std::size_t first, std::size_t inputs, BNNSRandomGenerator generator);
  void apply_last(const Filter& last, const float* x, std::size_t inputs, std::size_t batch);
  void apply_last_backward(const Filter& last, std::size_t first, const float* x, float* dx, std::size_t inputs,
                           std::size_t batch);
  // What a training forward pass changes besides: moving statistics. Of shards they are averaged like gradients.
  virtual std::vector<BNNSNDArrayDescriptor> statistics() { return {}; }

  // UseClientPtr: the filters read our weights at every call, so an optimizer step is seen by the next forward.
  BNNSFilterParameters options_;
  std::size_t classes_, steps_of_item_;
  Parameters parameters_;
  std::vector<float> z_, dz_;

 private:
  float judge(const float* x, const float* labels, std::size_t batch);

  Filter loss_, softmax_;
  Ranks* ranks_ = nullptr;  // while a shard is trained
  std::size_t shard_ = 0;
  std::vector<std::vector<float>> statistics_before_;  // of the step
};

// A generator that goes away with its owner.
using Generator = std::unique_ptr<std::remove_pointer_t<BNNSRandomGenerator>, decltype(&BNNSDestroyRandomGenerator)>;
Generator make_generator(std::uint64_t seed);

}  // namespace bnns::tool
