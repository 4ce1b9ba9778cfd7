#include "tools/bnns/model/network.h"

#include <bnns/bnns_extensions.h>

#include <algorithm>
#include <cmath>

#include "tools/bnns/model/ranks.h"

namespace bnns::tool {

LibraryError::LibraryError(const std::string& call)
    : std::runtime_error(*BNNSExtLastError() != '\0' ? BNNSExtLastError() : call + " failed without a reason") {}

Filter created(const char* call, BNNSFilter handle) {
  Filter filter(handle);
  if (filter == nullptr) throw LibraryError(call);
  return filter;
}

void check(const char* call, int status) {
  if (status != 0) throw LibraryError(call);
}

BNNSNDArrayDescriptor describe(BNNSDataLayout layout, std::initializer_list<std::size_t> sizes, float* data) {
  BNNSNDArrayDescriptor d{};
  d.layout = layout;
  std::copy(sizes.begin(), sizes.end(), d.size);
  d.data = data;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

BNNSNDArrayDescriptor vector(std::size_t size, float* data) {
  return describe(BNNSDataLayoutVector, {size}, data);
}

BNNSNDArrayDescriptor image(std::size_t width, std::size_t height, std::size_t channels, float* data) {
  return describe(BNNSDataLayoutImageCHW, {width, height, channels}, data);
}

std::size_t count_of(const BNNSNDArrayDescriptor& d) {
  std::size_t count = 1;
  for (std::size_t k = 0; k < BNNSDataLayoutGetRank(d.layout); ++k) count *= d.size[k];
  return count;
}

Parameters::Parameters(const std::vector<NamedArray>& shapes) {
  std::size_t total = 0;
  for (const NamedArray& shape : shapes) {
    names_.push_back(shape.name);
    parameter_.push_back(shape.array);
    total += count_of(shape.array);
  }
  gradient_ = moment_ = parameter_;
  values_.assign(total, 0.0f);
  gradients_.assign(total, 0.0f);
  moments_.assign(2 * total, 0.0f);
  moment_.insert(moment_.end(), parameter_.begin(), parameter_.end());
  const auto place = [](std::vector<BNNSNDArrayDescriptor>& list, float* at) {
    for (auto& d : list) {
      d.data = at;
      at += count_of(d);
    }
  };
  place(parameter_, values_.data());
  place(gradient_, gradients_.data());
  place(moment_, moments_.data());
  for (auto& d : parameter_) parameter_list_.push_back(&d);
  for (auto& d : gradient_) gradient_list_.push_back(&d);
  for (auto& d : moment_) moment_list_.push_back(&d);
  adam_.beta1 = 0.9f;
  adam_.beta2 = 0.999f;
  adam_.epsilon = 1e-8f;
  adam_.gradient_scale = 1.0f;
  adam_.regularization_func = BNNSOptimizerRegularizationNone;
}

void Parameters::fill(std::size_t i, float value) {
  std::fill_n(static_cast<float*>(parameter_[i].data), count_of(parameter_[i]), value);
}

void Parameters::draw(std::size_t i, std::size_t inputs, BNNSRandomGenerator generator) {
  const float bound = std::sqrt(6.0f / static_cast<float>(inputs));
  check("BNNSRandomFillUniformFloat", BNNSRandomFillUniformFloat(generator, &parameter_[i], -bound, bound));
}

void Parameters::adam_step(float learning_rate, const BNNSFilterParameters& options, Ranks* ranks) {
  adam_.learning_rate = learning_rate;
  adam_.time_step += 1;
  if (ranks != nullptr) return ranks->adam_step(adam_, parameter_list_, gradient_list_, moment_list_, options);
  check("BNNSOptimizerStep",
        BNNSOptimizerStep(BNNSOptimizerFunctionAdam, &adam_, parameter_list_.size(), parameter_list_.data(),
                          gradient_list_.data(), moment_list_.data(), &options));
}

std::vector<NamedArray> Parameters::named() const {
  std::vector<NamedArray> all;
  for (std::size_t i = 0; i < names_.size(); ++i) all.push_back({names_[i], parameter_[i]});
  return all;
}

std::vector<NamedArray> Parameters::moments() const {
  std::vector<NamedArray> all;
  for (std::size_t i = 0; i < moment_.size(); ++i) {
    const bool first = i < names_.size();
    all.push_back({(first ? "optimizer.exp_avg." : "optimizer.exp_avg_sq.") + names_[i % names_.size()], moment_[i]});
  }
  return all;
}

Network::Network(const std::vector<NamedArray>& shapes, std::size_t classes, std::size_t max_batch, std::size_t threads,
                 std::size_t steps)
    : options_{BNNSFlagsUseClientPtr, threads, nullptr, nullptr},
      classes_(classes),
      steps_of_item_(steps),
      parameters_(shapes),
      z_(max_batch * steps * classes),
      dz_(max_batch * steps * classes) {
  BNNSLayerParametersLossSoftmaxCrossEntropy loss{};
  loss.function = BNNSLossFunctionSoftmaxCrossEntropy;
  loss.i_desc = vector(classes);
  loss.o_desc = vector(1);
  loss.reduction = BNNSLossReductionMean;
  loss_ = created("BNNSFilterCreateLayerLoss", BNNSFilterCreateLayerLoss(&loss, &options_));

  BNNSLayerParametersActivation softmax{};
  softmax.i_desc = softmax.o_desc = vector(classes);
  softmax.activation.function = BNNSActivationFunctionSoftmax;
  softmax_ = created("BNNSFilterCreateLayerActivation", BNNSFilterCreateLayerActivation(&softmax, &options_));
}

// The loss, and all gradients.
float Network::judge(const float* x, const float* labels, std::size_t batch) {
  forward(x, batch, true);
  float loss = 0;
  BNNSNDArrayDescriptor dz = vector(classes_, dz_.data());
  check("BNNSLossFilterApplyBatch", BNNSLossFilterApplyBatch(loss_.get(), batch * steps_of_item_, z_.data(), classes_,
                                                             labels, classes_, nullptr, 0, &loss, &dz, classes_));
  backward(x, batch);
  return loss;
}

float Network::train_step(const float* x, const float* labels, std::size_t batch, float learning_rate) {
  const float loss = judge(x, labels, batch);
  parameters_.adam_step(learning_rate, options_);
  return loss;
}

float Network::train_shard(const float* x, const float* labels, std::size_t batch, std::size_t shard, Ranks& ranks) {
  // Every shard begins with the statistics that the step began with.
  const std::vector<BNNSNDArrayDescriptor> moving = statistics();
  if (shard == 0) statistics_before_.clear();
  for (std::size_t i = 0; i < moving.size(); ++i) {
    float* const values = static_cast<float*>(moving[i].data);
    if (shard == 0) {
      statistics_before_.emplace_back(values, values + count_of(moving[i]));
    } else {
      std::copy(statistics_before_[i].begin(), statistics_before_[i].end(), values);
    }
  }
  ranks_ = &ranks, shard_ = shard;
  const float loss = judge(x, labels, batch);
  ranks_ = nullptr;
  ranks.start(Ranks::Reduction::mean, shard, moving);
  return loss;
}

void Network::gradients_ready(std::size_t first, std::size_t count) {
  if (ranks_ == nullptr) return;
  ranks_->start(Ranks::Reduction::mean, shard_, std::span(&parameters_.gradient(first), count));
}

Filter Network::create_last(std::size_t first, std::size_t inputs, BNNSRandomGenerator generator) {
  parameters_.draw(first, inputs, generator);
  BNNSLayerParametersFullyConnected layer{};
  layer.i_desc = vector(inputs);
  layer.w_desc = parameters_[first];
  layer.bias = parameters_[first + 1];
  layer.o_desc = vector(classes_);
  return created("BNNSFilterCreateLayerFullyConnected", BNNSFilterCreateLayerFullyConnected(&layer, &options_));
}

void Network::apply_last(const Filter& last, const float* x, std::size_t inputs, std::size_t batch) {
  check("BNNSFilterApplyBatch", BNNSFilterApplyBatch(last.get(), batch, x, inputs, z_.data(), classes_));
}

void Network::apply_last_backward(const Filter& last, std::size_t first, const float* x, float* dx, std::size_t inputs,
                                  std::size_t batch) {
  BNNSNDArrayDescriptor dz = vector(classes_, dz_.data()), in = vector(inputs, dx);
  check("BNNSFilterApplyBackwardBatch",
        BNNSFilterApplyBackwardBatch(last.get(), batch, x, inputs, &in, inputs, z_.data(), classes_, &dz, classes_,
                                     &parameters_.gradient(first), &parameters_.gradient(first + 1)));
  gradients_ready(first, 2);
}

void Network::predict(const float* x, std::size_t batch, float* probabilities) {
  forward(x, batch, false);
  check("BNNSFilterApplyBatch",
        BNNSFilterApplyBatch(softmax_.get(), batch * steps_of_item_, z_.data(), classes_, probabilities, classes_));
}

Generator make_generator(std::uint64_t seed) {
  Generator generator(BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, seed, nullptr),
                      &BNNSDestroyRandomGenerator);
  if (generator == nullptr) throw LibraryError("BNNSCreateRandomGeneratorWithSeed");
  return generator;
}

}  // namespace bnns::tool
