#include "tools/bnns/model/mlp.h"

namespace bnns::tool {
namespace {

enum : std::size_t { kW1, kB1, kW2, kB2 };

std::vector<NamedArray> shapes(std::size_t inputs, std::size_t hidden, std::size_t classes) {
  return {{"fc1.weight", describe(BNNSDataLayoutRowMajorMatrix, {inputs, hidden})},
          {"fc1.bias", vector(hidden)},
          {"fc2.weight", describe(BNNSDataLayoutRowMajorMatrix, {hidden, classes})},
          {"fc2.bias", vector(classes)}};
}

}  // namespace

Mlp::Mlp(std::size_t inputs, std::size_t hidden, std::size_t classes, std::size_t max_batch, std::uint64_t seed,
         std::size_t threads)
    : Network(shapes(inputs, hidden, classes), classes, max_batch, threads),
      inputs_(inputs),
      hidden_(hidden),
      h_(max_batch * hidden),
      dh_(max_batch * hidden) {
  const Generator generator = make_generator(seed);  // biases start at 0
  parameters_.draw(kW1, inputs, generator.get());

  BNNSLayerParametersFullyConnected layer{};
  layer.i_desc = vector(inputs);
  layer.w_desc = parameters_[kW1];
  layer.bias = parameters_[kB1];
  layer.o_desc = vector(hidden);
  layer.activation.function = BNNSActivationFunctionRectifiedLinear;
  first_ = created("BNNSFilterCreateLayerFullyConnected", BNNSFilterCreateLayerFullyConnected(&layer, &options_));
  second_ = create_last(kW2, hidden, generator.get());
}

void Mlp::forward(const float* x, std::size_t batch, bool) {
  check("BNNSFilterApplyBatch", BNNSFilterApplyBatch(first_.get(), batch, x, inputs_, h_.data(), hidden_));
  apply_last(second_, h_.data(), hidden_, batch);
}

void Mlp::backward(const float* x, std::size_t batch) {
  apply_last_backward(second_, kW2, h_.data(), dh_.data(), hidden_, batch);
  BNNSNDArrayDescriptor dh = vector(hidden_, dh_.data());
  // The inputs need no gradient: in_delta is NULL and the library leaves out that product.
  check("BNNSFilterApplyBackwardBatch",
        BNNSFilterApplyBackwardBatch(first_.get(), batch, x, inputs_, nullptr, 0, h_.data(), hidden_, &dh, hidden_,
                                     &parameters_.gradient(kW1), &parameters_.gradient(kB1)));
  gradients_ready(kW1, 2);
}

}  // namespace bnns::tool
