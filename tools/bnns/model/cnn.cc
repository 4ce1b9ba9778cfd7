#include "tools/bnns/model/cnn.h"

namespace bnns::tool {
namespace {

constexpr std::size_t kLast = Cnn::kStages * ConvNorm::kParameters;  // the last layer's weights and bias

std::array<ConvNorm::Sizes, Cnn::kStages> stage_sizes(Inputs x) {
  std::array<ConvNorm::Sizes, Cnn::kStages> all;
  for (std::size_t s = 0; s < Cnn::kStages; ++s) {
    all[s] = {x.rows, x.columns, x.channels, Cnn::kChannels[s]};
    x = {x.rows / 2, x.columns / 2, Cnn::kChannels[s]};
  }
  return all;
}

std::size_t pooled(const ConvNorm::Sizes& s) {
  return (s.rows / 2) * (s.columns / 2) * s.out;
}

std::vector<NamedArray> shapes(const Inputs& inputs, std::size_t classes) {
  std::vector<NamedArray> all;
  const auto sizes = stage_sizes(inputs);
  for (std::size_t s = 0; s < Cnn::kStages; ++s) {
    const std::string number = std::to_string(s + 1);
    ConvNorm::add_shapes(all, "conv" + number, "bn" + number, sizes[s]);
  }
  all.push_back({"fc.weight", describe(BNNSDataLayoutRowMajorMatrix, {pooled(sizes.back()), classes})});
  all.push_back({"fc.bias", vector(classes)});
  return all;
}

}  // namespace

Cnn::Cnn(const Inputs& inputs, std::size_t classes, std::size_t max_batch, std::uint64_t seed, std::size_t threads)
    : Network(shapes(inputs, classes), classes, max_batch, threads) {
  const Generator generator = make_generator(seed);
  const auto sizes = stage_sizes(inputs);
  for (std::size_t k = 0; k < kStages; ++k) {
    Stage& s = stages_[k];
    s.layer.create(parameters_, k * ConvNorm::kParameters, sizes[k], "bn" + std::to_string(k + 1), options_,
                   generator.get());
    s.pooled_pixels = pooled(sizes[k]);
    s.y.resize(max_batch * sizes[k].outputs());
    s.dy.resize(max_batch * sizes[k].outputs());
    s.pooled.resize(max_batch * s.pooled_pixels);
    s.dpooled.resize(max_batch * s.pooled_pixels);
    s.indices.resize(max_batch * s.pooled_pixels);
    BNNSLayerParametersPooling pooling{};
    pooling.i_desc = image(sizes[k].columns, sizes[k].rows, sizes[k].out);
    pooling.o_desc = image(sizes[k].columns / 2, sizes[k].rows / 2, sizes[k].out);
    pooling.pooling_function = BNNSPoolingFunctionMax;
    pooling.k_width = pooling.k_height = pooling.x_stride = pooling.y_stride = 2;
    s.pooling = created("BNNSFilterCreateLayerPooling", BNNSFilterCreateLayerPooling(&pooling, &options_));
  }
  last_ = create_last(kLast, stages_[kStages - 1].pooled_pixels, generator.get());
}

std::vector<NamedArray> Cnn::state() {
  std::vector<NamedArray> all = Network::state();
  for (Stage& s : stages_) s.layer.add_moving(all);
  return all;
}

void Cnn::forward(const float* x, std::size_t batch, bool training) {
  for (Stage& s : stages_) {
    s.layer.forward(x, batch, s.y.data(), training);
    check("BNNSPoolingFilterApplyBatch",
          BNNSPoolingFilterApplyBatch(s.pooling.get(), batch, s.y.data(), s.layer.sizes().outputs(), s.pooled.data(),
                                      s.pooled_pixels, training ? s.indices.data() : nullptr, s.pooled_pixels));
    x = s.pooled.data();
  }
  apply_last(last_, x, stages_[kStages - 1].pooled_pixels, batch);
}

void Cnn::backward(const float* x, std::size_t batch) {
  Stage& top = stages_[kStages - 1];
  apply_last_backward(last_, kLast, top.pooled.data(), top.dpooled.data(), top.pooled_pixels, batch);
  for (std::size_t k = kStages; k-- > 0;) {
    Stage& s = stages_[k];
    const ConvNorm::Sizes& size = s.layer.sizes();
    BNNSNDArrayDescriptor dpooled = image(size.columns / 2, size.rows / 2, size.out, s.dpooled.data());
    BNNSNDArrayDescriptor dy = image(size.columns, size.rows, size.out, s.dy.data());
    check("BNNSPoolingFilterApplyBackwardBatch",
          BNNSPoolingFilterApplyBackwardBatch(s.pooling.get(), batch, nullptr, 0, &dy, size.outputs(), nullptr, 0,
                                              &dpooled, s.pooled_pixels, nullptr, s.indices.data(), s.pooled_pixels));
    // The pictures need no gradient.
    s.layer.backward(k == 0 ? x : stages_[k - 1].pooled.data(), batch, s.y.data(), s.dy.data(),
                     k == 0 ? nullptr : stages_[k - 1].dpooled.data());
    gradients_ready(s.layer.first(), ConvNorm::kParameters);
  }
}

std::vector<BNNSNDArrayDescriptor> Cnn::statistics() {
  std::vector<BNNSNDArrayDescriptor> all;
  for (Stage& s : stages_) s.layer.add_moving(all);
  return all;
}

}  // namespace bnns::tool
