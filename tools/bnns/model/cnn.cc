#include "tools/bnns/model/cnn.h"

namespace bnns::tool {
namespace {

// Parameters of stage s: weights, beta, gamma at 3 s; then the last layer's weights and bias. The convolutions have no
// bias: beta does its work.
enum : std::size_t { kWeights, kBeta, kGamma, kPerStage };
constexpr std::size_t kLast = Cnn::kStages * kPerStage;

std::vector<NamedArray> shapes(std::size_t rows, std::size_t columns, std::size_t classes) {
  std::vector<NamedArray> all;
  std::size_t in = 1;
  for (std::size_t s = 0; s < Cnn::kStages; ++s) {
    const std::size_t out = Cnn::kChannels[s];
    const std::string number = std::to_string(s + 1);
    all.push_back({"conv" + number + ".weight", describe(BNNSDataLayoutConvolutionWeightsOIHW, {3, 3, in, out})});
    all.push_back({"bn" + number + ".bias", vector(out)});
    all.push_back({"bn" + number + ".weight", vector(out)});
    in = out, rows /= 2, columns /= 2;
  }
  all.push_back({"fc.weight", describe(BNNSDataLayoutRowMajorMatrix, {in * rows * columns, classes})});
  all.push_back({"fc.bias", vector(classes)});
  return all;
}

}  // namespace

Cnn::Cnn(std::size_t rows, std::size_t columns, std::size_t classes, std::size_t max_batch, std::uint64_t seed,
         std::size_t threads)
    : Network(shapes(rows, columns, classes), classes, max_batch, threads) {
  const Generator generator = make_generator(seed);
  std::size_t in = 1;
  for (std::size_t s = 0; s < kStages; ++s) {
    Stage& stage = stages_[s];
    stage.rows = rows, stage.columns = columns, stage.in = in, stage.out = kChannels[s];
    parameters_.draw(s * kPerStage + kWeights, 9 * in, generator.get());
    parameters_.fill(s * kPerStage + kGamma, 1.0f);
    make_stage(stage, s * kPerStage, max_batch);
    in = stage.out, rows /= 2, columns /= 2;
  }
  const std::size_t inputs = stages_[kStages - 1].pooled_pixels();
  parameters_.draw(kLast, inputs, generator.get());
  BNNSLayerParametersFullyConnected layer{};
  layer.i_desc = vector(inputs);
  layer.w_desc = parameters_[kLast];
  layer.bias = parameters_[kLast + 1];
  layer.o_desc = vector(classes);
  last_ = created("BNNSFilterCreateLayerFullyConnected", BNNSFilterCreateLayerFullyConnected(&layer, &options_));
}

void Cnn::make_stage(Stage& s, std::size_t first_parameter, std::size_t max_batch) {
  s.y.resize(max_batch * s.pixels());
  s.dy.resize(max_batch * s.pixels());
  s.pooled.resize(max_batch * s.pooled_pixels());
  s.dpooled.resize(max_batch * s.pooled_pixels());
  s.indices.resize(max_batch * s.pooled_pixels());
  s.moving_mean.assign(s.out, 0.0f);
  s.moving_variance.assign(s.out, 1.0f);

  const BNNSNDArrayDescriptor middle = image(s.columns, s.rows, s.out);
  BNNSLayerParametersConvolution convolution{};
  convolution.i_desc = image(s.columns, s.rows, s.in);
  convolution.w_desc = parameters_[first_parameter + kWeights];
  convolution.o_desc = middle;
  convolution.x_stride = convolution.y_stride = convolution.x_padding = convolution.y_padding = 1;
  BNNSLayerParametersNormalization normalization{};
  normalization.i_desc = normalization.o_desc = middle;
  normalization.beta_desc = parameters_[first_parameter + kBeta];
  normalization.gamma_desc = parameters_[first_parameter + kGamma];
  normalization.moving_mean_desc = vector(s.out, s.moving_mean.data());
  normalization.moving_variance_desc = vector(s.out, s.moving_variance.data());
  normalization.momentum = 0.9f;
  normalization.epsilon = 1e-5f;
  normalization.activation.function = BNNSActivationFunctionRectifiedLinear;
  const BNNSFilterType types[] = {BNNSConvolution, BNNSBatchNorm};
  const void* layers[] = {&convolution, &normalization};
  s.fused = created("BNNSFilterCreateFusedLayer", BNNSFilterCreateFusedLayer(2, types, layers, &options_));

  BNNSLayerParametersPooling pooling{};
  pooling.i_desc = middle;
  pooling.o_desc = image(s.columns / 2, s.rows / 2, s.out);
  pooling.pooling_function = BNNSPoolingFunctionMax;
  pooling.k_width = pooling.k_height = pooling.x_stride = pooling.y_stride = 2;
  s.pooling = created("BNNSFilterCreateLayerPooling", BNNSFilterCreateLayerPooling(&pooling, &options_));
}

std::vector<NamedArray> Cnn::state() {
  std::vector<NamedArray> all = Network::state();
  for (std::size_t k = 0; k < kStages; ++k) {
    Stage& s = stages_[k];
    const std::string name = "bn" + std::to_string(k + 1);
    all.push_back({name + ".running_mean", vector(s.out, s.moving_mean.data())});
    all.push_back({name + ".running_var", vector(s.out, s.moving_variance.data())});
  }
  return all;
}

void Cnn::forward(const float* x, std::size_t batch, bool training) {
  std::size_t in_size = stages_[0].rows * stages_[0].columns;
  for (Stage& s : stages_) {
    const std::size_t out = s.pooled_pixels();
    check("BNNSFusedFilterApplyBatch",
          BNNSFusedFilterApplyBatch(s.fused.get(), batch, x, in_size, s.y.data(), s.pixels(), training));
    check("BNNSPoolingFilterApplyBatch",
          BNNSPoolingFilterApplyBatch(s.pooling.get(), batch, s.y.data(), s.pixels(), s.pooled.data(), out,
                                      training ? s.indices.data() : nullptr, out));
    x = s.pooled.data(), in_size = out;
  }
  check("BNNSFilterApplyBatch", BNNSFilterApplyBatch(last_.get(), batch, x, in_size, z_.data(), classes_));
}

void Cnn::backward(const float* x, std::size_t batch) {
  Stage& top = stages_[kStages - 1];
  const std::size_t inputs = top.pooled_pixels();
  BNNSNDArrayDescriptor dz = vector(classes_, dz_.data()), dp = vector(inputs, top.dpooled.data());
  check("BNNSFilterApplyBackwardBatch",
        BNNSFilterApplyBackwardBatch(last_.get(), batch, top.pooled.data(), inputs, &dp, inputs, z_.data(), classes_,
                                     &dz, classes_, &parameters_.gradient(kLast), &parameters_.gradient(kLast + 1)));
  gradients_ready(kLast, 2);
  for (std::size_t k = kStages; k-- > 0;) {
    Stage& s = stages_[k];
    const std::size_t out = s.pooled_pixels();
    BNNSNDArrayDescriptor dpooled = image(s.columns / 2, s.rows / 2, s.out, s.dpooled.data());
    BNNSNDArrayDescriptor dy = image(s.columns, s.rows, s.out, s.dy.data());
    check("BNNSPoolingFilterApplyBackwardBatch",
          BNNSPoolingFilterApplyBackwardBatch(s.pooling.get(), batch, nullptr, 0, &dy, s.pixels(), nullptr, 0, &dpooled,
                                              out, nullptr, s.indices.data(), out));
    // The pictures need no gradient; the convolution has no bias.
    BNNSNDArrayDescriptor* deltas[] = {&parameters_.gradient(k * kPerStage + kWeights), nullptr,
                                       &parameters_.gradient(k * kPerStage + kBeta),
                                       &parameters_.gradient(k * kPerStage + kGamma)};
    const float* in = k == 0 ? x : stages_[k - 1].pooled.data();
    const std::size_t in_size = s.rows * s.columns * s.in;
    BNNSNDArrayDescriptor dx = image(s.columns, s.rows, s.in, k == 0 ? nullptr : stages_[k - 1].dpooled.data());
    check("BNNSFusedFilterApplyBackwardBatch",
          BNNSFusedFilterApplyBackwardBatch(s.fused.get(), batch, in, in_size, k == 0 ? nullptr : &dx, in_size,
                                            s.y.data(), s.pixels(), &dy, s.pixels(), deltas));
    gradients_ready(k * kPerStage, kPerStage);
  }
}

std::vector<BNNSNDArrayDescriptor> Cnn::statistics() {
  std::vector<BNNSNDArrayDescriptor> all;
  for (Stage& s : stages_) {
    all.push_back(vector(s.out, s.moving_mean.data()));
    all.push_back(vector(s.out, s.moving_variance.data()));
  }
  return all;
}

}  // namespace bnns::tool
