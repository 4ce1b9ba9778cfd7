#include "tools/bnns/model/conv_norm.h"

namespace bnns::tool {
namespace {

enum : std::size_t { kWeights, kBeta, kGamma };

}  // namespace

void ConvNorm::add_shapes(std::vector<NamedArray>& all, const std::string& convolution, const std::string& norm,
                          const Sizes& s) {
  all.push_back(
      {convolution + ".weight", describe(BNNSDataLayoutConvolutionWeightsOIHW, {s.kernel, s.kernel, s.in, s.out})});
  all.push_back({norm + ".bias", vector(s.out)});
  all.push_back({norm + ".weight", vector(s.out)});
}

void ConvNorm::create(Parameters& parameters, std::size_t first, const Sizes& s, const std::string& norm,
                      const BNNSFilterParameters& options, BNNSRandomGenerator generator) {
  sizes_ = s, parameters_ = &parameters, first_ = first, norm_ = norm;
  parameters.draw(first + kWeights, s.kernel * s.kernel * s.in, generator);
  parameters.fill(first + kGamma, 1.0f);
  moving_mean_.assign(s.out, 0.0f);
  moving_variance_.assign(s.out, 1.0f);

  BNNSLayerParametersConvolution convolution{};
  convolution.i_desc = image(s.columns, s.rows, s.in);
  convolution.w_desc = parameters[first + kWeights];
  convolution.o_desc = image(s.out_columns(), s.out_rows(), s.out);
  convolution.x_stride = convolution.y_stride = s.stride;
  convolution.x_padding = convolution.y_padding = s.kernel / 2;
  BNNSLayerParametersNormalization normalization{};
  normalization.i_desc = normalization.o_desc = convolution.o_desc;
  normalization.beta_desc = parameters[first + kBeta];
  normalization.gamma_desc = parameters[first + kGamma];
  normalization.moving_mean_desc = vector(s.out, moving_mean_.data());
  normalization.moving_variance_desc = vector(s.out, moving_variance_.data());
  normalization.momentum = 0.9f;
  normalization.epsilon = 1e-5f;
  normalization.activation.function =
      s.rectified ? BNNSActivationFunctionRectifiedLinear : BNNSActivationFunctionIdentity;
  const BNNSFilterType types[] = {BNNSConvolution, BNNSBatchNorm};
  const void* layers[] = {&convolution, &normalization};
  fused_ = created("BNNSFilterCreateFusedLayer", BNNSFilterCreateFusedLayer(2, types, layers, &options));
}

void ConvNorm::forward(const float* x, std::size_t batch, float* y, bool training) {
  check("BNNSFusedFilterApplyBatch",
        BNNSFusedFilterApplyBatch(fused_.get(), batch, x, sizes_.inputs(), y, sizes_.outputs(), training));
}

void ConvNorm::backward(const float* x, std::size_t batch, const float* y, float* dy, float* dx, bool add) {
  BNNSNDArrayDescriptor* deltas[] = {&parameters_->gradient(first_ + kWeights), nullptr,
                                     &parameters_->gradient(first_ + kBeta), &parameters_->gradient(first_ + kGamma)};
  BNNSNDArrayDescriptor in = image(sizes_.columns, sizes_.rows, sizes_.in, dx);
  BNNSNDArrayDescriptor out = image(sizes_.out_columns(), sizes_.out_rows(), sizes_.out, dy);
  if (add) in.flags = BNNSNDArrayFlagBackpropAccumulate;
  check("BNNSFusedFilterApplyBackwardBatch",
        BNNSFusedFilterApplyBackwardBatch(fused_.get(), batch, x, sizes_.inputs(), dx == nullptr ? nullptr : &in,
                                          sizes_.inputs(), y, sizes_.outputs(), &out, sizes_.outputs(), deltas));
}

void ConvNorm::add_moving(std::vector<NamedArray>& all) {
  all.push_back({norm_ + ".running_mean", vector(sizes_.out, moving_mean_.data())});
  all.push_back({norm_ + ".running_var", vector(sizes_.out, moving_variance_.data())});
}

void ConvNorm::add_moving(std::vector<BNNSNDArrayDescriptor>& all) {
  all.push_back(vector(sizes_.out, moving_mean_.data()));
  all.push_back(vector(sizes_.out, moving_variance_.data()));
}

}  // namespace bnns::tool
