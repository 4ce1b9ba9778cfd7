// OpenBNNS C++ overlay: batch, instance, layer and group normalization.
#pragma once

#include "activation.hpp"

namespace bnns {

/// Swift's BNNS.NormalizationType.
struct NormalizationType {
  BNNSFilterType filterType = BNNSBatchNorm;
  OptDesc movingMean{}, movingVariance{};
  std::size_t groupCount = 0, axis = 0;

  static NormalizationType batch(const OptDesc& movingMean, const OptDesc& movingVariance) {
    return {BNNSBatchNorm, movingMean, movingVariance};
  }
  static NormalizationType instance(const OptDesc& movingMean, const OptDesc& movingVariance) {
    return {BNNSInstanceNorm, movingMean, movingVariance};
  }
  static NormalizationType group(std::size_t groupCount) { return {BNNSGroupNorm, {}, {}, groupCount, 0}; }
  /// 0 normalizes over channels, height and width; 1 over height and width; 2 over width.
  static NormalizationType layer(std::size_t normalizationAxis) {
    return {BNNSLayerNorm, {}, {}, 0, normalizationAxis};
  }
};

namespace detail {
inline BNNSLayerParametersNormalization normalizationLayer(const NormalizationType& type, const Desc& input,
                                                           const Desc& output, const OptDesc& beta,
                                                           const OptDesc& gamma, float momentum, float epsilon,
                                                           const ActivationFunction& activation) {
  BNNSLayerParametersNormalization layer{};
  layer.i_desc = input, layer.o_desc = output;
  layer.beta_desc = orAbsent(beta), layer.gamma_desc = orAbsent(gamma);
  layer.moving_mean_desc = orAbsent(type.movingMean), layer.moving_variance_desc = orAbsent(type.movingVariance);
  layer.momentum = momentum, layer.epsilon = epsilon, layer.activation = activation.bnnsActivation();
  layer.num_groups = type.groupCount, layer.normalization_axis = type.axis;
  return layer;
}
}  // namespace detail

class NormalizationLayer : public Layer {
 public:
  struct Parameters {
    NormalizationType type;
    Desc input, output;
    OptDesc beta{}, gamma{};  ///< absent: 0 and 1
    float momentum = 0;
    float epsilon;
    ActivationFunction activation{};
    OptFilterParams filterParameters{};
  };
  explicit NormalizationLayer(const Parameters& p) : Layer(create(p), "BNNSFilterCreateLayerNormalization") {}

  void apply(std::size_t batchSize, const Desc& input, const Desc& output, LearningPhase phase) {
    constexpr auto function = "BNNSNormalizationFilterApplyBatch";
    detail::check(::BNNSNormalizationFilterApplyBatch(live(function), batchSize, detail::requireData(input, "input"),
                                                      detail::batchStride(input), detail::requireData(output, "output"),
                                                      detail::batchStride(output), phase == LearningPhase::training),
                  function);
  }

  /// The gradient of the last training `apply`, which the layer remembers: `input` is not read. `output` is read where
  /// the layer has an activation. Apple's library may overwrite outputGradient.
  void applyBackward(std::size_t batchSize, [[maybe_unused]] const Desc& input, const Desc& output,
                     const Desc& outputGradient, const OptDesc& generatingInputGradient,
                     const OptDesc& generatingBetaGradient = {}, const OptDesc& generatingGammaGradient = {}) {
    constexpr auto function = "BNNSNormalizationFilterApplyBackwardBatch";
    detail::Gradient dx(generatingInputGradient, "generatingInputGradient"),
        dbeta(generatingBetaGradient, "generatingBetaGradient"),
        dgamma(generatingGammaGradient, "generatingGammaGradient"), dy(outputGradient, "outputGradient");
    detail::check(::BNNSNormalizationFilterApplyBackwardBatch(live(function), batchSize, dx.pointer(), dx.stride,
                                                              output.data, detail::batchStride(output), &dy.descriptor,
                                                              dy.stride, dbeta.pointer(), dgamma.pointer()),
                  function);
  }

 private:
  static BNNSFilter create(const Parameters& p) {
    const BNNSLayerParametersNormalization layer =
        detail::normalizationLayer(p.type, p.input, p.output, p.beta, p.gamma, p.momentum, p.epsilon, p.activation);
    return ::BNNSFilterCreateLayerNormalization(p.type.filterType, &layer, detail::pointer(p.filterParameters));
  }
};

}  // namespace bnns
