// One training step of a 784-128-10 network through the public C interface: what bench/step_bench.cc times and
// tests/small_step_test.cc proves free of allocation, locks and thread wake-ups.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "bnns/bnns.h"
#include "bnns/bnns_extensions.h"

namespace bnns::bench {

class MlpStep {
 public:
  static constexpr size_t kIn = 784, kHidden = 128, kOut = 10;
  enum class Optimizer { sgd, adam };

  MlpStep(size_t batch, Optimizer optimizer) : batch_(batch), optimizer_(optimizer) {
    const size_t counts[] = {kIn * kHidden, kHidden, kHidden * kOut, kOut};
    for (size_t p = 0; p < 4; ++p) {
      values_[p].resize(counts[p]);
      gradients_[p].resize(counts[p]);
      moments_[p].resize(counts[p]);
      moments_[p + 4].resize(counts[p]);
      value_desc_[p] = vector(counts[p], values_[p]);
      gradient_desc_[p] = vector(counts[p], gradients_[p]);
      moment_desc_[p] = vector(counts[p], moments_[p]);
      moment_desc_[p + 4] = vector(counts[p], moments_[p + 4]);
      value_pointers_[p] = &value_desc_[p];
      gradient_pointers_[p] = &gradient_desc_[p];
      moment_pointers_[p] = &moment_desc_[p];
      moment_pointers_[p + 4] = &moment_desc_[p + 4];
      for (size_t i = 0; i < counts[p]; ++i) values_[p][i] = 0.05f * std::sin(float(i * (p + 1)));
    }
    x_.resize(batch * kIn);
    for (size_t i = 0; i < x_.size(); ++i) x_[i] = i % 5 ? 0.0f : 0.5f + 0.5f * std::cos(float(i));
    labels_.resize(batch * kOut);
    for (size_t n = 0; n < batch; ++n) labels_[n * kOut + n % kOut] = 1;
    for (auto* v : {&h_, &dh_}) v->resize(batch * kHidden);
    for (auto* v : {&y_, &dy_}) v->resize(batch * kOut);
    hidden_ = layer(kIn, kHidden, 0, BNNSActivationFunctionRectifiedLinear);
    output_ = layer(kHidden, kOut, 2, BNNSActivationFunctionIdentity);
    BNNSLayerParametersLossSoftmaxCrossEntropy loss;
    std::memset(&loss, 0, sizeof loss);
    loss.function = BNNSLossFunctionSoftmaxCrossEntropy;
    loss.i_desc = vector(kOut);
    loss.o_desc = vector(1);
    loss.reduction = BNNSLossReductionMean;
    loss_ = require(BNNSFilterCreateLayerLoss(&loss, nullptr));
    std::memset(&sgd_, 0, sizeof sgd_);
    sgd_.learning_rate = 0.01f, sgd_.gradient_scale = 1;
    std::memset(&adam_, 0, sizeof adam_);
    adam_.learning_rate = 0.001f, adam_.beta1 = 0.9f, adam_.beta2 = 0.999f, adam_.epsilon = 1e-8f;
    adam_.gradient_scale = 1;
  }
  ~MlpStep() {
    for (BNNSFilter filter : {hidden_, output_, loss_}) BNNSFilterDestroy(filter);
  }
  MlpStep(const MlpStep&) = delete;
  MlpStep& operator=(const MlpStep&) = delete;

  // Forward, loss, backward, update. Returns the loss.
  float run() {
    BNNSNDArrayDescriptor dh = vector(kHidden, dh_), dy = vector(kOut, dy_);
    BNNSNDArrayDescriptor dw1 = matrix(kIn, kHidden, gradients_[0]), dw2 = matrix(kHidden, kOut, gradients_[2]);
    float loss = 0;
    int status = BNNSFilterApplyBatch(hidden_, batch_, x_.data(), kIn, h_.data(), kHidden);
    status |= BNNSFilterApplyBatch(output_, batch_, h_.data(), kHidden, y_.data(), kOut);
    status |=
        BNNSLossFilterApplyBatch(loss_, batch_, y_.data(), kOut, labels_.data(), kOut, nullptr, 0, &loss, &dy, kOut);
    status |= BNNSFilterApplyBackwardBatch(output_, batch_, h_.data(), kHidden, &dh, kHidden, y_.data(), kOut, &dy,
                                           kOut, &dw2, &gradient_desc_[3]);
    status |= BNNSFilterApplyBackwardBatch(hidden_, batch_, x_.data(), kIn, nullptr, 0, h_.data(), kHidden, &dh,
                                           kHidden, &dw1, &gradient_desc_[1]);
    if (optimizer_ == Optimizer::sgd) {
      status |= BNNSOptimizerStep(BNNSOptimizerFunctionSGDMomentum, &sgd_, 4, value_pointers_, gradient_pointers_,
                                  nullptr, nullptr);
    } else {
      adam_.time_step += 1;
      status |= BNNSOptimizerStep(BNNSOptimizerFunctionAdam, &adam_, 4, value_pointers_, gradient_pointers_,
                                  moment_pointers_, nullptr);
    }
    if (status) fail();
    return loss;
  }

 private:
  static BNNSNDArrayDescriptor vector(size_t n) {
    BNNSNDArrayDescriptor d;
    std::memset(&d, 0, sizeof d);
    d.layout = BNNSDataLayoutVector;
    d.size[0] = n;
    d.data_type = BNNSDataTypeFloat32;
    return d;
  }
  static BNNSNDArrayDescriptor vector(size_t n, std::vector<float>& data) {
    BNNSNDArrayDescriptor d = vector(n);
    d.data = data.data();
    return d;
  }
  static BNNSNDArrayDescriptor matrix(size_t in, size_t out, std::vector<float>& data) {
    BNNSNDArrayDescriptor d = vector(in, data);
    d.layout = BNNSDataLayoutRowMajorMatrix;
    d.size[1] = out;
    return d;
  }
  BNNSFilter layer(size_t in, size_t out, size_t parameter, BNNSActivationFunction activation) {
    BNNSLayerParametersFullyConnected p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = vector(in);
    p.o_desc = vector(out);
    p.w_desc = matrix(in, out, values_[parameter]);
    p.bias = vector(out, values_[parameter + 1]);
    p.activation.function = activation;
    BNNSFilterParameters options;
    std::memset(&options, 0, sizeof options);
    options.flags = BNNSFlagsUseClientPtr;
    return require(BNNSFilterCreateLayerFullyConnected(&p, &options));
  }
  static BNNSFilter require(BNNSFilter filter) {
    if (!filter) fail();
    return filter;
  }
  [[noreturn]] static void fail() {
    std::fprintf(stderr, "%s\n", BNNSExtLastError());
    std::exit(1);
  }

  size_t batch_;
  Optimizer optimizer_;
  std::vector<float> values_[4], gradients_[4], moments_[8];
  BNNSNDArrayDescriptor value_desc_[4], gradient_desc_[4], moment_desc_[8];
  BNNSNDArrayDescriptor *value_pointers_[4], *moment_pointers_[8];
  const BNNSNDArrayDescriptor* gradient_pointers_[4];
  std::vector<float> x_, labels_, h_, y_, dh_, dy_;
  BNNSFilter hidden_, output_, loss_;
  BNNSOptimizerSGDMomentumFields sgd_;
  BNNSOptimizerAdamFields adam_;
};

}  // namespace bnns::bench
