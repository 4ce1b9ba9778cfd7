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

/// With filterParameters left out it copies beta and gamma at creation, and an optimizer's steps have no effect: to
/// train, give useClientPointer.
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
  explicit NormalizationLayer(const Parameters& p)
      : Layer(create(p), "NormalizationLayer", "BNNSFilterCreateLayerNormalization"),
        input_(p.input),
        output_(p.output),
        beta_(p.beta),
        gamma_(p.gamma) {}

  void apply(std::size_t batchSize, const Input& input, const Output& output, LearningPhase phase) {
    const detail::Where where = call("apply");
    const BNNSFilter filter = live(where);
    const detail::Data x = detail::fitting(where, "input", input, input_, batchSize),
                       y = detail::fitting(where, "output", output, output_, batchSize);
    detail::check(::BNNSNormalizationFilterApplyBatch(filter, batchSize, x.data, x.stride, y.data, y.stride,
                                                      phase == LearningPhase::training),
                  where, "BNNSNormalizationFilterApplyBatch");
  }

  /// The gradient of the last training `apply`, which the layer remembers: `input` is not read. `output` is read where
  /// the layer has an activation. Apple's library may overwrite outputGradient.
  void applyBackward(std::size_t batchSize, [[maybe_unused]] const Input& input, const Input& output,
                     const Input& outputGradient, const OptOutput& generatingInputGradient,
                     const OptOutput& generatingBetaGradient = {}, const OptOutput& generatingGammaGradient = {}) {
    const detail::Where where = call("applyBackward");
    const BNNSFilter filter = live(where);
    const detail::Data y = detail::fittingIfGiven(where, "output", output, output_, batchSize);
    const auto dx = detail::describedIfGiven(where, "generatingInputGradient", generatingInputGradient, input_,
                                             batchSize),
               dy = detail::described(where, "outputGradient", outputGradient, output_, batchSize),
               dbeta = detail::describedIfGiven(where, "generatingBetaGradient", generatingBetaGradient, beta_),
               dgamma = detail::describedIfGiven(where, "generatingGammaGradient", generatingGammaGradient, gamma_);
    detail::check(
        ::BNNSNormalizationFilterApplyBackwardBatch(filter, batchSize, dx.descriptor, dx.stride, y.data, y.stride,
                                                    dy.descriptor, dy.stride, dbeta.descriptor, dgamma.descriptor),
        where, "BNNSNormalizationFilterApplyBackwardBatch");
  }

  // The same calls with Swift's labels; learningPhase is Swift's `for:`.
  struct Forward {
    std::size_t batchSize;
    Input input;
    Output output;
    LearningPhase learningPhase;
  };
  struct Backward {
    std::size_t batchSize;
    Input input, output, outputGradient;
    OptOutput generatingInputGradient{}, generatingBetaGradient{}, generatingGammaGradient{};
  };
  void apply(const Forward& a) { apply(a.batchSize, a.input, a.output, a.learningPhase); }
  void applyBackward(const Backward& a) {
    applyBackward(a.batchSize, a.input, a.output, a.outputGradient, a.generatingInputGradient, a.generatingBetaGradient,
                  a.generatingGammaGradient);
  }

 private:
  static BNNSFilter create(const Parameters& p) {
    const BNNSLayerParametersNormalization layer =
        detail::normalizationLayer(p.type, p.input, p.output, p.beta, p.gamma, p.momentum, p.epsilon, p.activation);
    return ::BNNSFilterCreateLayerNormalization(p.type.filterType, &layer, detail::pointer(p.filterParameters));
  }

  detail::Expected input_, output_, beta_, gamma_;
};

}  // namespace bnns
