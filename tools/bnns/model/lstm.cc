#include "tools/bnns/model/lstm.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace bnns::tool {
namespace {

enum : std::size_t { kInput, kHidden, kBias, kLast };  // the last layer has two
constexpr std::size_t kGates = 4, kForgetGate = 1;

// The gates' weights lie one after the other: input, forget, candidate, output, as PyTorch has them.
std::vector<NamedArray> shapes(std::size_t symbols, std::size_t hidden) {
  return {{"lstm.weight_ih_l0", describe(BNNSDataLayoutRowMajorMatrix, {symbols, kGates * hidden})},
          {"lstm.weight_hh_l0", describe(BNNSDataLayoutRowMajorMatrix, {hidden, kGates * hidden})},
          {"lstm.bias_ih_l0", vector(kGates * hidden)},
          {"fc.weight", describe(BNNSDataLayoutRowMajorMatrix, {hidden, symbols})},
          {"fc.bias", vector(symbols)}};
}

}  // namespace

Lstm::Lstm(std::size_t symbols, std::size_t hidden, std::size_t steps, std::size_t max_batch, std::uint64_t seed,
           std::size_t threads)
    : Network(shapes(symbols, hidden), symbols, max_batch, threads, steps),
      symbols_(symbols),
      hidden_(hidden),
      steps_(steps),
      one_hot_(max_batch * steps * symbols),
      y_(max_batch * steps * hidden),
      dy_(y_.size()),
      by_window_(y_.size()),
      by_place_(y_.size()),
      h_(max_batch * hidden),
      c_(h_.size()),
      second_bias_(kGates * hidden) {
  const Generator generator = make_generator(seed);
  parameters_.draw(kInput, 6 * hidden, generator.get());  // uniform in +-1 / sqrt(hidden)
  parameters_.draw(kHidden, 6 * hidden, generator.get());
  float* const bias = static_cast<float*>(parameters_[kBias].data);
  std::fill_n(bias + kForgetGate * hidden, hidden, 1.0f);  // to remember at first
  last_ = create_last(kLast, hidden, generator.get());
}

std::vector<NamedArray> Lstm::state() {
  std::vector<NamedArray> all = Network::state();
  all.push_back({"lstm.bias_hh_l0", vector(second_bias_.size(), second_bias_.data())});
  return all;
}

BNNSLayerParametersLSTM Lstm::layer(std::size_t batch, bool gradients, float* x, float* y, float* h, float* c) {
  const auto tensor = [](std::size_t a, std::size_t b, std::size_t s, float* data) {
    return describe(BNNSDataLayoutSNE, {a, b, s}, data);
  };
  BNNSLayerParametersLSTM l{};
  l.input_size = symbols_, l.hidden_size = hidden_, l.batch_size = batch, l.num_layers = 1, l.seq_len = steps_;
  l.lstm_flags = BNNSLayerFlagsLSTMDefaultActivations;
  l.input_descriptor.data_desc = tensor(symbols_, batch, steps_, x);
  l.output_descriptor.data_desc = tensor(hidden_, batch, steps_, y);
  l.input_descriptor.hidden_desc = l.output_descriptor.hidden_desc = tensor(hidden_, batch, 1, h);
  l.input_descriptor.cell_state_desc = l.output_descriptor.cell_state_desc = tensor(hidden_, batch, 1, c);
  BNNSLSTMGateDescriptor* const gates[] = {&l.input_gate, &l.forget_gate, &l.candidate_gate, &l.output_gate};
  const auto part = [&](std::size_t parameter, std::size_t gate, std::size_t size) {
    void* const data = gradients ? parameters_.gradient(parameter).data : parameters_[parameter].data;
    return static_cast<float*>(data) + gate * size;
  };
  for (std::size_t k = 0; k < kGates; ++k) {
    gates[k]->iw_desc[0] =
        describe(BNNSDataLayoutRowMajorMatrix, {symbols_, hidden_}, part(kInput, k, symbols_ * hidden_));
    gates[k]->hw_desc = describe(BNNSDataLayoutRowMajorMatrix, {hidden_, hidden_}, part(kHidden, k, hidden_ * hidden_));
    gates[k]->b_desc = vector(hidden_, part(kBias, k, hidden_));
  }
  return l;
}

void Lstm::reorder(std::size_t batch, const std::vector<float>& from, std::vector<float>& to, bool back) const {
  for (std::size_t n = 0; n < batch; ++n) {
    for (std::size_t t = 0; t < steps_; ++t) {
      const std::size_t window = (n * steps_ + t) * hidden_, place = (t * batch + n) * hidden_;
      std::copy_n(from.data() + (back ? place : window), hidden_, to.data() + (back ? window : place));
    }
  }
}

void Lstm::forward(const float* x, std::size_t batch, bool training) {
  float* const bias = static_cast<float*>(parameters_[kBias].data);
  for (std::size_t i = 0; i < second_bias_.size(); ++i) bias[i] += std::exchange(second_bias_[i], 0.0f);
  std::fill_n(one_hot_.begin(), batch * steps_ * symbols_, 0.0f);
  for (std::size_t n = 0; n < batch; ++n) {
    for (std::size_t t = 0; t < steps_; ++t) {
      one_hot_[(t * batch + n) * symbols_ + static_cast<std::size_t>(x[n * steps_ + t])] = 1;
    }
  }
  std::fill(h_.begin(), h_.end(), 0.0f);
  std::fill(c_.begin(), c_.end(), 0.0f);
  const BNNSLayerParametersLSTM l = layer(batch, false, one_hot_.data(), y_.data(), h_.data(), c_.data());
  std::size_t capacity = 0;
  if (training) {
    capacity = BNNSComputeLSTMTrainingCacheCapacity(&l);
    if (capacity == SIZE_MAX) throw LibraryError("BNNSComputeLSTMTrainingCacheCapacity");
    if (cache_.size() < capacity) cache_.resize(capacity);
  }
  check("BNNSDirectApplyLSTMBatchTrainingCaching",
        BNNSDirectApplyLSTMBatchTrainingCaching(&l, &options_, training ? cache_.data() : nullptr, capacity));
  reorder(batch, y_, by_window_, true);
  apply_last(last_, by_window_.data(), hidden_, batch * steps_);
}

void Lstm::backward(const float*, std::size_t batch) {
  apply_last_backward(last_, kLast, by_window_.data(), dy_.data(), hidden_, batch * steps_);
  reorder(batch, dy_, by_place_, false);
  std::fill(h_.begin(), h_.end(), 0.0f);  // the states that the windows began with
  std::fill(c_.begin(), c_.end(), 0.0f);
  const BNNSLayerParametersLSTM l = layer(batch, false, one_hot_.data(), y_.data(), h_.data(), c_.data());
  const BNNSLayerParametersLSTM deltas = layer(batch, true, nullptr, by_place_.data(), nullptr, nullptr);
  check("BNNSDirectApplyLSTMBatchBackward", BNNSDirectApplyLSTMBatchBackward(&l, &deltas, &options_, cache_.data(),
                                                                             BNNSComputeLSTMTrainingCacheCapacity(&l)));
  gradients_ready(kInput, 3);
}

}  // namespace bnns::tool
