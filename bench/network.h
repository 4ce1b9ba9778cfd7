// A network on the public C interface, built layer by layer, and one training step of it: forward, loss, backward,
// optimizer. What the step rows of the table time and tests/small_step_test.cc proves free of allocation, locks and
// wake-ups.
//
//   Data data;                                  // holds the parameters, p00, p01, ... in the order of their making
//   Network net(data, 32, Optimizer::sgd);
//   net.loss(net.full(net.full(net.input(784), 128, true), 10, false));
//   float loss = net.step(x, labels);           // x[32][784], labels[32][10]
#pragma once

#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "bench/row.h"

namespace bnns::bench {

enum class Optimizer { sgd, adam };

class Network {
 public:
  using Value = size_t;  // the output of a layer

  Network(Data& data, size_t batch, Optimizer optimizer, size_t threads = 0)
      : data_(data), batch_(batch), optimizer_(optimizer), options_(options(threads)) {}

  Value input(size_t channels, size_t size = 1) { return make(channels, size, false); }

  // Convolution with a bias, and ReLU if wanted.
  Value convolution(Value in, size_t channels, size_t k, size_t stride, size_t pad, bool relu) {
    const Value out = make(channels, (values_[in].size + 2 * pad - k) / stride + 1);
    BNNSLayerParametersConvolution p = convolution_layer(in, out, k, stride, pad);
    p.w_desc.data = parameter({channels, values_[in].channels, k, k}, p.w_desc);
    p.bias = describe(BNNSDataLayoutVector, {channels});
    p.bias.data = parameter({channels}, p.bias);
    if (relu) p.activation.function = BNNSActivationFunctionRectifiedLinear;
    return generic(in, out, own(BNNSFilterCreateLayerConvolution(&p, &options_)));
  }
  // Convolution, batch normalization and, if wanted, ReLU in one filter.
  Value convolution_norm(Value in, size_t channels, size_t k, size_t stride, size_t pad, bool relu) {
    const Value out = make(channels, (values_[in].size + 2 * pad - k) / stride + 1);
    BNNSLayerParametersConvolution p = convolution_layer(in, out, k, stride, pad);
    const size_t first = parameters_.size();
    p.w_desc.data = parameter({channels, values_[in].channels, k, k}, p.w_desc);
    BNNSLayerParametersNormalization n;
    std::memset(&n, 0, sizeof n);
    n.i_desc = n.o_desc = p.o_desc;
    n.gamma_desc = n.beta_desc = describe(BNNSDataLayoutVector, {channels});
    n.gamma_desc.data = parameter({channels}, n.gamma_desc, 1);
    n.beta_desc.data = parameter({channels}, n.beta_desc);
    n.epsilon = 1e-5f, n.momentum = 0.9f;
    moving_.emplace_back(2 * channels, 0.0f);
    n.moving_mean_desc = describe(BNNSDataLayoutVector, {channels}, Type::f32, moving_.back().data());
    n.moving_variance_desc = describe(BNNSDataLayoutVector, {channels}, Type::f32, moving_.back().data() + channels);
    if (relu) n.activation.function = BNNSActivationFunctionRectifiedLinear;
    const BNNSFilterType types[] = {BNNSConvolution, BNNSBatchNorm};
    const void* layers[] = {&p, &n};
    const Filter filter = own(BNNSFilterCreateFusedLayer(2, types, layers, &options_));
    return add_layer(
        {in}, out, [=, this] { return BNNSFusedFilterApplyBatch(filter.get(), batch_, y(in), 0, y(out), 0, true); },
        [=, this](BNNSNDArrayDescriptor** dx) {
          BNNSNDArrayDescriptor* deltas[] = {&gradients_[first], nullptr, &gradients_[first + 2],
                                             &gradients_[first + 1]};
          return BNNSFusedFilterApplyBackwardBatch(filter.get(), batch_, y(in), 0, dx[0], 0, y(out), 0,
                                                   &values_[out].delta, 0, deltas);
        });
  }
  Value max_pool(Value in, size_t k) { return pool(in, k, BNNSPoolingFunctionMax); }
  Value average_pool(Value in) { return pool(in, values_[in].size, BNNSPoolingFunctionAverageCountExcludePadding); }
  // max(a + b, 0)
  Value add_relu(Value a, Value b) {
    const Value out = make(values_[a].channels, values_[a].size);
    BNNSArithmeticBinary operands;
    std::memset(&operands, 0, sizeof operands);
    operands.in1 = operands.in2 = operands.out = image(out);
    operands.in1_type = operands.in2_type = operands.out_type = BNNSSample;
    BNNSLayerParametersArithmetic p;
    std::memset(&p, 0, sizeof p);
    p.arithmetic_function = BNNSArithmeticAdd;
    p.arithmetic_function_fields = &operands;
    p.activation.function = BNNSActivationFunctionRectifiedLinear;
    const Filter filter = own(BNNSFilterCreateLayerArithmetic(&p, &options_));
    const size_t stride = values_[a].count();
    return add_layer(
        {a, b}, out,
        [=, this] {
          const void* in[] = {y(a), y(b)};
          const size_t strides[] = {stride, stride};
          return BNNSArithmeticFilterApplyBatch(filter.get(), batch_, 2, in, strides, y(out), stride);
        },
        [=, this](BNNSNDArrayDescriptor** dx) {
          const void* in[] = {y(a), y(b)};
          const size_t strides[] = {stride, stride};
          return BNNSArithmeticFilterApplyBackwardBatch(filter.get(), batch_, 2, in, strides, dx, strides, y(out),
                                                        stride, &values_[out].delta, stride);
        });
  }
  Value full(Value in, size_t out_size, bool relu) {
    const Value out = make(out_size, 1);
    const size_t in_size = values_[in].count();
    BNNSLayerParametersFullyConnected p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = describe(BNNSDataLayoutVector, {in_size});
    p.o_desc = describe(BNNSDataLayoutVector, {out_size});
    p.w_desc = describe(BNNSDataLayoutRowMajorMatrix, {in_size, out_size});
    p.w_desc.data = parameter({out_size, in_size}, p.w_desc);
    p.bias = describe(BNNSDataLayoutVector, {out_size});
    p.bias.data = parameter({out_size}, p.bias);
    if (relu) p.activation.function = BNNSActivationFunctionRectifiedLinear;
    return generic(in, out, own(BNNSFilterCreateLayerFullyConnected(&p, &options_)));
  }
  // Mean softmax cross-entropy of the last value against one-hot rows. Ends the building.
  void loss(Value logits) {
    BNNSLayerParametersLossSoftmaxCrossEntropy p;
    std::memset(&p, 0, sizeof p);
    p.function = BNNSLossFunctionSoftmaxCrossEntropy;
    p.i_desc = describe(BNNSDataLayoutVector, {values_[logits].count()});
    p.o_desc = describe(BNNSDataLayoutVector, {1});
    p.reduction = BNNSLossReductionMean;
    loss_ = own(BNNSFilterCreateLayerLoss(&p, &options_));
    logits_ = logits;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      moment_memory_.emplace_back(2 * parameter_counts_[i], 0.0f);
      for (const size_t second : {0, 1}) {
        moments_.push_back(describe(BNNSDataLayoutVector, {parameter_counts_[i]}, Type::f32,
                                    moment_memory_.back().data() + second * parameter_counts_[i]));
      }
    }
    for (size_t i = 0; i < parameters_.size(); ++i) {
      parameter_pointers_.push_back(&parameters_[i]), gradient_pointers_.push_back(&gradients_[i]);
      moment_pointers_.push_back(&moments_[2 * i]);
    }
    for (size_t i = 0; i < parameters_.size(); ++i) moment_pointers_.push_back(&moments_[2 * i + 1]);
    sgd_.learning_rate = 0.01f, sgd_.gradient_scale = 1;
    adam_.learning_rate = 1e-3f, adam_.beta1 = 0.9f, adam_.beta2 = 0.999f, adam_.epsilon = 1e-8f;
    adam_.gradient_scale = 1;
    // A value that several layers read gathers their gradients: the first to arrive, the last layer, overwrites.
    std::vector<bool> written(values_.size());
    for (size_t k = layers_.size(); k-- > 0;) {
      Layer& layer = layers_[k];
      for (const Value in : layer.in) {
        BNNSNDArrayDescriptor d = values_[in].delta;
        if (written[in]) d.flags = BNNSNDArrayFlagBackpropAccumulate;
        written[in] = true;
        layer.deltas.push_back(d);
      }
    }
  }

  float step(const float* x, const float* labels) {
    float loss = 0;
    x_ = x;
    for (Layer& layer : layers_) check(layer.forward());
    const size_t classes = values_[logits_].count();
    check(BNNSLossFilterApplyBatch(loss_.get(), batch_, y(logits_), classes, labels, classes, nullptr, 0, &loss,
                                   &values_[logits_].delta, classes));
    for (size_t k = layers_.size(); k-- > 0;) {
      Layer& layer = layers_[k];
      BNNSNDArrayDescriptor* dx[2] = {};
      for (size_t i = 0; i < layer.in.size(); ++i) dx[i] = values_[layer.in[i]].wanted ? &layer.deltas[i] : nullptr;
      check(layer.backward(dx));
    }
    adam_.time_step += 1;
    const bool sgd = optimizer_ == Optimizer::sgd;
    check(BNNSOptimizerStep(sgd ? BNNSOptimizerFunctionSGDMomentum : BNNSOptimizerFunctionAdam,
                            sgd ? static_cast<const void*>(&sgd_) : &adam_, parameters_.size(),
                            parameter_pointers_.data(), gradient_pointers_.data(),
                            sgd ? nullptr : moment_pointers_.data(), &options_));
    return loss;
  }

 private:
  struct Output {
    size_t channels, size;
    bool wanted;  // its gradient
    std::vector<float> y, dy;
    BNNSNDArrayDescriptor delta;
    size_t count() const { return channels * size * size; }
  };
  struct Layer {
    std::vector<Value> in;
    std::function<int()> forward;
    std::function<int(BNNSNDArrayDescriptor**)> backward;
    std::vector<BNNSNDArrayDescriptor> deltas;
  };

  Value make(size_t channels, size_t size, bool wanted = true) {
    Output& o = values_.emplace_back();
    o.channels = channels, o.size = size, o.wanted = wanted;
    if (wanted) o.y.resize(batch_ * o.count()), o.dy.resize(batch_ * o.count());
    o.delta = image(values_.size() - 1);
    o.delta.data = o.dy.data();
    return values_.size() - 1;
  }
  BNNSNDArrayDescriptor image(Value v) const {
    const Output& o = values_[v];
    return o.size == 1 ? describe(BNNSDataLayoutVector, {o.channels})
                       : describe(BNNSDataLayoutImageCHW, {o.size, o.size, o.channels});
  }
  BNNSNDArrayDescriptor picture(Value v) const {
    const Output& o = values_[v];
    return describe(BNNSDataLayoutImageCHW, {o.size, o.size, o.channels});
  }
  float* y(Value v) { return values_[v].wanted ? values_[v].y.data() : const_cast<float*>(x_); }

  // Memory for a parameter and its gradient; the optimizer sees both as vectors.
  void* parameter(const std::vector<size_t>& shape, BNNSNDArrayDescriptor gradient, float value = 0) {
    std::string name("p");
    if (parameters_.size() < 10) name += '0';
    Array& array = data_.add(name += std::to_string(parameters_.size()), shape);
    const size_t count = array.count();
    if (shape.size() > 1) {
      array.fill(std::sqrt(3.0f / float(count / shape[0])), uint32_t(parameters_.size() + 1));
    } else {
      for (size_t i = 0; i < count; ++i) array.set(i, value);
    }
    gradient_memory_.emplace_back(count, 0.0f);
    gradient.data = gradient_memory_.back().data();
    gradients_.push_back(gradient);
    parameters_.push_back(describe(BNNSDataLayoutVector, {count}, Type::f32, array.data()));
    parameter_counts_.push_back(count);
    return array.data();
  }

  BNNSLayerParametersConvolution convolution_layer(Value in, Value out, size_t k, size_t stride, size_t pad) const {
    BNNSLayerParametersConvolution p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = picture(in), p.o_desc = picture(out);
    p.w_desc = describe(BNNSDataLayoutConvolutionWeightsOIHW, {k, k, values_[in].channels, values_[out].channels});
    p.x_stride = p.y_stride = stride, p.x_padding = p.y_padding = pad;
    return p;
  }
  // A filter with weights and a bias, which are the last two parameters made.
  Value generic(Value in, Value out, const Filter& filter) {
    const size_t weights = parameters_.size() - 2, n_in = values_[in].count(), n_out = values_[out].count();
    return add_layer(
        {in}, out, [=, this] { return BNNSFilterApplyBatch(filter.get(), batch_, y(in), n_in, y(out), n_out); },
        [=, this](BNNSNDArrayDescriptor** dx) {
          return BNNSFilterApplyBackwardBatch(filter.get(), batch_, y(in), n_in, dx[0], n_in, y(out), n_out,
                                              &values_[out].delta, n_out, &gradients_[weights],
                                              &gradients_[weights + 1]);
        });
  }
  Value pool(Value in, size_t k, BNNSPoolingFunction function) {
    const Value out = make(values_[in].channels, values_[in].size / k);
    BNNSLayerParametersPooling p;
    std::memset(&p, 0, sizeof p);
    p.i_desc = picture(in), p.o_desc = picture(out);
    p.pooling_function = function;
    p.k_width = p.k_height = p.x_stride = p.y_stride = k;
    const Filter filter = own(BNNSFilterCreateLayerPooling(&p, &options_));
    const bool max = function == BNNSPoolingFunctionMax;
    size_t* index = max ? index_memory_.emplace_back(batch_ * values_[out].count()).data() : nullptr;
    return add_layer(
        {in}, out,
        [=, this] { return BNNSPoolingFilterApplyBatch(filter.get(), batch_, y(in), 0, y(out), 0, index, 0); },
        [=, this](BNNSNDArrayDescriptor** dx) {
          BNNSNDArrayDescriptor dy = values_[out].delta;
          dy.layout = BNNSDataLayoutImageCHW;
          dy.size[0] = dy.size[1] = values_[out].size, dy.size[2] = values_[out].channels;
          return BNNSPoolingFilterApplyBackwardBatch(filter.get(), batch_, nullptr, 0, dx[0], 0, nullptr, 0, &dy, 0,
                                                     nullptr, index, 0);
        });
  }
  Value add_layer(std::vector<Value> in, Value out, std::function<int()> forward,
                  std::function<int(BNNSNDArrayDescriptor**)> backward) {
    layers_.push_back({std::move(in), std::move(forward), std::move(backward), {}});
    return out;
  }

  Data& data_;
  size_t batch_;
  Optimizer optimizer_;
  BNNSFilterParameters options_;
  const float* x_ = nullptr;
  std::deque<Output> values_;
  std::vector<Layer> layers_;
  std::deque<BNNSNDArrayDescriptor> parameters_, gradients_, moments_;
  std::vector<size_t> parameter_counts_;
  std::deque<std::vector<float>> gradient_memory_, moment_memory_, moving_;
  std::deque<std::vector<size_t>> index_memory_;
  std::vector<BNNSNDArrayDescriptor*> parameter_pointers_, moment_pointers_;
  std::vector<const BNNSNDArrayDescriptor*> gradient_pointers_;
  Filter loss_;
  Value logits_ = 0;
  BNNSOptimizerSGDMomentumFields sgd_ = {};
  BNNSOptimizerAdamFields adam_ = {};
};

}  // namespace bnns::bench
