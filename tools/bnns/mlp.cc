#include "tools/bnns/mlp.h"

#include <bnns/bnns_extensions.h>

#include <cmath>

namespace bnns::tool {
namespace {

Filter created(const char* call, BNNSFilter handle) {
  Filter filter(handle);
  if (filter == nullptr) throw LibraryError(call);
  return filter;
}

void check(const char* call, int status) {
  if (status != 0) throw LibraryError(call);
}

}  // namespace

LibraryError::LibraryError(const std::string& call)
    : std::runtime_error(*BNNSExtLastError() != '\0' ? BNNSExtLastError() : call + " failed without a reason") {}

BNNSNDArrayDescriptor Mlp::vector(std::size_t size, float* data) const {
  BNNSNDArrayDescriptor d{};
  d.layout = BNNSDataLayoutVector;
  d.size[0] = size;
  d.data = data;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

BNNSNDArrayDescriptor Mlp::matrix(std::size_t columns, std::size_t rows, float* data) const {
  BNNSNDArrayDescriptor d = vector(columns, data);
  d.layout = BNNSDataLayoutRowMajorMatrix;
  d.size[1] = rows;
  return d;
}

Mlp::Mlp(std::size_t inputs, std::size_t hidden, std::size_t classes, std::size_t max_batch, std::uint64_t seed,
         std::size_t threads)
    : inputs_(inputs), hidden_(hidden), classes_(classes), options_{BNNSFlagsUseClientPtr, threads, nullptr, nullptr} {
  const std::size_t sizes[] = {inputs * hidden, hidden, hidden * classes, classes};
  const std::size_t total = sizes[0] + sizes[1] + sizes[2] + sizes[3];
  parameters_.assign(total, 0.0f);
  gradients_.assign(total, 0.0f);
  moments_.assign(2 * total, 0.0f);
  h_.resize(max_batch * hidden);
  dh_.resize(max_batch * hidden);
  z_.resize(max_batch * classes);
  dz_.resize(max_batch * classes);

  const auto describe = [&](float* base) {
    float *w1 = base, *b1 = w1 + sizes[0], *w2 = b1 + sizes[1], *b2 = w2 + sizes[2];
    return std::vector{matrix(inputs, hidden, w1), vector(hidden, b1), matrix(hidden, classes, w2),
                       vector(classes, b2)};
  };
  parameter_ = describe(parameters_.data());
  gradient_ = describe(gradients_.data());
  moment_ = describe(moments_.data());
  for (const auto& second : describe(moments_.data() + total)) moment_.push_back(second);
  for (auto& d : parameter_) parameter_list_.push_back(&d);
  for (auto& d : gradient_) gradient_list_.push_back(&d);
  for (auto& d : moment_) moment_list_.push_back(&d);

  // He's bound for layers followed by a rectifier: uniform in +-sqrt(6 / inputs). Biases start at 0.
  const auto generator = BNNSCreateRandomGeneratorWithSeed(BNNSRandomGeneratorMethodAES_CTR, seed, nullptr);
  if (generator == nullptr) throw LibraryError("BNNSCreateRandomGeneratorWithSeed");
  const std::unique_ptr<std::remove_pointer_t<BNNSRandomGenerator>, decltype(&BNNSDestroyRandomGenerator)> owner(
      generator, &BNNSDestroyRandomGenerator);
  const float bound1 = std::sqrt(6.0f / static_cast<float>(inputs));
  const float bound2 = std::sqrt(6.0f / static_cast<float>(hidden));
  check("BNNSRandomFillUniformFloat", BNNSRandomFillUniformFloat(generator, &parameter_[0], -bound1, bound1));
  check("BNNSRandomFillUniformFloat", BNNSRandomFillUniformFloat(generator, &parameter_[2], -bound2, bound2));

  // UseClientPtr: the filters read our weights at every call, so an optimizer step is seen by the next forward.
  BNNSLayerParametersFullyConnected layer{};
  layer.i_desc = vector(inputs);
  layer.w_desc = parameter_[0];
  layer.bias = parameter_[1];
  layer.o_desc = vector(hidden);
  layer.activation.function = BNNSActivationFunctionRectifiedLinear;
  first_ = created("BNNSFilterCreateLayerFullyConnected", BNNSFilterCreateLayerFullyConnected(&layer, &options_));
  layer.i_desc = vector(hidden);
  layer.w_desc = parameter_[2];
  layer.bias = parameter_[3];
  layer.o_desc = vector(classes);
  layer.activation.function = BNNSActivationFunctionIdentity;
  second_ = created("BNNSFilterCreateLayerFullyConnected", BNNSFilterCreateLayerFullyConnected(&layer, &options_));

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

  adam_.beta1 = 0.9f;
  adam_.beta2 = 0.999f;
  adam_.epsilon = 1e-8f;
  adam_.gradient_scale = 1.0f;
  adam_.regularization_func = BNNSOptimizerRegularizationNone;
}

void Mlp::forward(const float* x, std::size_t batch) {
  check("BNNSFilterApplyBatch", BNNSFilterApplyBatch(first_.get(), batch, x, inputs_, h_.data(), hidden_));
  check("BNNSFilterApplyBatch", BNNSFilterApplyBatch(second_.get(), batch, h_.data(), hidden_, z_.data(), classes_));
}

float Mlp::train_step(const float* x, const float* labels, std::size_t batch, float learning_rate) {
  forward(x, batch);
  float loss = 0;
  BNNSNDArrayDescriptor dz = vector(classes_, dz_.data()), dh = vector(hidden_, dh_.data());
  check("BNNSLossFilterApplyBatch", BNNSLossFilterApplyBatch(loss_.get(), batch, z_.data(), classes_, labels, classes_,
                                                             nullptr, 0, &loss, &dz, classes_));
  check("BNNSFilterApplyBackwardBatch",
        BNNSFilterApplyBackwardBatch(second_.get(), batch, h_.data(), hidden_, &dh, hidden_, z_.data(), classes_, &dz,
                                     classes_, &gradient_[2], &gradient_[3]));
  // The pictures need no gradient: in_delta is NULL and the library leaves out that product.
  check("BNNSFilterApplyBackwardBatch",
        BNNSFilterApplyBackwardBatch(first_.get(), batch, x, inputs_, nullptr, 0, h_.data(), hidden_, &dh, hidden_,
                                     &gradient_[0], &gradient_[1]));
  adam_.learning_rate = learning_rate;
  adam_.time_step += 1;
  check("BNNSOptimizerStep",
        BNNSOptimizerStep(BNNSOptimizerFunctionAdam, &adam_, parameter_list_.size(), parameter_list_.data(),
                          gradient_list_.data(), moment_list_.data(), &options_));
  return loss;
}

void Mlp::predict(const float* x, std::size_t batch, float* probabilities) {
  forward(x, batch);
  check("BNNSFilterApplyBatch",
        BNNSFilterApplyBatch(softmax_.get(), batch, z_.data(), classes_, probabilities, classes_));
}

}  // namespace bnns::tool
