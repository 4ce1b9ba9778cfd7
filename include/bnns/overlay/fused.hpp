// OpenBNNS C++ overlay: fused layers, of one, two and three inputs.
#pragma once

#include "fused_parameters.hpp"

namespace bnns {

/// The calls of a fused layer with one input.
class FusedLayer : public Layer {
 public:
  std::size_t inputCount() const noexcept { return inputCount_; }
  /// Entries of generatingParameterGradients; fused_parameters.hpp lists their order.
  std::size_t parameterGradientCount() const noexcept { return slotCount_; }

  void apply(std::size_t batchSize, const Desc& input, const Desc& output, LearningPhase phase) {
    constexpr auto function = "BNNSFusedFilterApplyBatch";
    const BNNSFilter filter = live(1, function);
    detail::check(::BNNSFusedFilterApplyBatch(filter, batchSize, detail::requireData(input, "input"),
                                              detail::batchStride(input), detail::requireData(output, "output"),
                                              detail::batchStride(output), phase == LearningPhase::training),
                  function);
  }

  /// Gradients after a training `apply`. generatingParameterGradients is empty (none wanted), or has
  /// parameterGradientCount() entries in the order of the stages; an entry without data is skipped.
  void applyBackward(std::size_t batchSize, const Desc& input, const Desc& output, const Desc& outputGradient,
                     const OptDesc& generatingInputGradient, std::span<const Desc> generatingParameterGradients) {
    constexpr auto function = "BNNSFusedFilterApplyBackwardBatch";
    const BNNSFilter filter = live(1, function);
    Slots slots(generatingParameterGradients, slotCount_, function);
    detail::Gradient dx(generatingInputGradient, "generatingInputGradient"), dy(outputGradient, "outputGradient");
    detail::check(::BNNSFusedFilterApplyBackwardBatch(filter, batchSize, input.data, detail::batchStride(input),
                                                      dx.pointer(), dx.stride, output.data, detail::batchStride(output),
                                                      &dy.descriptor, dy.stride, slots.pointer()),
                  function);
  }

  /// The same call with Swift's labels.
  struct Backward {
    std::size_t batchSize;
    const Desc &input, &output, &outputGradient;
    OptDesc generatingInputGradient{};
    std::span<const Desc> generatingParameterGradients{};
  };
  void applyBackward(const Backward& a) {
    applyBackward(a.batchSize, a.input, a.output, a.outputGradient, a.generatingInputGradient,
                  a.generatingParameterGradients);
  }

 protected:
  explicit FusedLayer(const detail::FusedFilter& made)
      : Layer(made.filter, "BNNSFilterCreateFusedLayer"), inputCount_(made.inputs), slotCount_(made.slots) {}
  FusedLayer(FusedLayer&&) noexcept = default;
  FusedLayer& operator=(FusedLayer&&) noexcept = default;

  template <std::size_t N>
  void forwardMany(std::size_t batchSize, const std::array<const Desc*, N>& inputs, const Desc& output,
                   LearningPhase phase) {
    constexpr auto function = "BNNSFusedFilterApplyMultiInputBatch";
    const BNNSFilter filter = live(N, function);
    std::array<const void*, N> x;
    std::array<std::size_t, N> stride;
    for (std::size_t i = 0; i < N; ++i) {
      x[i] = detail::requireData(*inputs[i], "input"), stride[i] = detail::batchStride(*inputs[i]);
    }
    detail::check(::BNNSFusedFilterApplyMultiInputBatch(filter, batchSize, N, x.data(), stride.data(),
                                                        detail::requireData(output, "output"),
                                                        detail::batchStride(output), phase == LearningPhase::training),
                  function);
  }

  template <std::size_t N>
  void backwardMany(std::size_t batchSize, const std::array<const Desc*, N>& inputs, const Desc& output,
                    const Desc& outputGradient, const std::array<const OptDesc*, N>& inputGradients,
                    std::span<const Desc> parameterGradients) {
    constexpr auto function = "BNNSFusedFilterApplyBackwardMultiInputBatch";
    const BNNSFilter filter = live(N, function);
    Slots slots(parameterGradients, slotCount_, function);
    detail::Gradient dy(outputGradient, "outputGradient");
    std::array<const void*, N> x;
    std::array<std::size_t, N> stride, deltaStride{};
    std::array<Desc, N> copies;
    std::array<Desc*, N> delta{};
    for (std::size_t i = 0; i < N; ++i) {
      x[i] = inputs[i]->data, stride[i] = detail::batchStride(*inputs[i]);
      if (!*inputGradients[i]) continue;  // null: our library skips it, Apple's may not
      copies[i] = **inputGradients[i];
      detail::requireData(copies[i], "generatingInputGradient");
      delta[i] = &copies[i], deltaStride[i] = detail::batchStride(copies[i]);
    }
    detail::check(::BNNSFusedFilterApplyBackwardMultiInputBatch(
                      filter, batchSize, N, x.data(), stride.data(), delta.data(), deltaStride.data(), output.data,
                      detail::batchStride(output), &dy.descriptor, dy.stride, slots.pointer()),
                  function);
  }

 private:
  // Parameter gradients as an array of pointers: two stages of at most two slots each.
  class Slots {
   public:
    Slots(std::span<const Desc> gradients, std::size_t expected, const char* function) : any_(!gradients.empty()) {
      if (!any_) return;
      if (gradients.size() != expected) {  // the C call would read past the array
        detail::mistake(Error::Code::layerApplyFail, function,
                        "expected " + std::to_string(expected) +
                            " parameter gradients in the order of the stages, got " + std::to_string(gradients.size()));
      }
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        copies_[i] = gradients[i];
        pointers_[i] = gradients[i].data ? &copies_[i] : nullptr;
      }
    }
    Slots(const Slots&) = delete;
    Desc** pointer() noexcept { return any_ ? pointers_.data() : nullptr; }

   private:
    bool any_;
    std::array<Desc, 4> copies_;
    std::array<Desc*, 4> pointers_{};
  };

  BNNSFilter live(std::size_t inputs, const char* function) const {
    if (inputs != inputCount_) {
      detail::mistake(Error::Code::layerApplyFail, function,
                      "called with " + std::to_string(inputs) + " input(s), but the first stage takes " +
                          std::to_string(inputCount_));
    }
    return Layer::live(function);
  }

  std::size_t inputCount_, slotCount_;
};

/// Two stages in one layer: convolution or fully connected, then normalization or quantization; or arithmetic of one,
/// two or three inputs, then normalization.
class FusedParametersLayer : public FusedLayer {
 public:
  using Stages = std::span<const FusableLayerParameters>;

  // One, two and three inputs. The initialisers of Swift, in its order.
  FusedParametersLayer(const Desc& input, const Desc& output, Stages fusedLayerParameters,
                       const OptFilterParams& filterParameters = {})
      : FusedLayer(detail::makeFused(std::array{input}, output, fusedLayerParameters, filterParameters)) {}
  FusedParametersLayer(const Desc& inputA, const Desc& inputB, const Desc& output, Stages fusedLayerParameters,
                       const OptFilterParams& filterParameters = {})
      : FusedLayer(detail::makeFused(std::array{inputA, inputB}, output, fusedLayerParameters, filterParameters)) {}
  FusedParametersLayer(const Desc& inputA, const Desc& inputB, const Desc& inputC, const Desc& output,
                       Stages fusedLayerParameters, const OptFilterParams& filterParameters = {})
      : FusedLayer(
            detail::makeFused(std::array{inputA, inputB, inputC}, output, fusedLayerParameters, filterParameters)) {}

  /// The same with labels; one to three inputs, in order.
  struct Parameters {
    std::vector<Desc> inputs;
    Desc output;
    std::vector<FusableLayerParameters> fusedLayerParameters;
    OptFilterParams filterParameters{};
  };
  explicit FusedParametersLayer(const Parameters& p)
      : FusedLayer(detail::makeFused(p.inputs, p.output, p.fusedLayerParameters, p.filterParameters)) {}

  using FusedLayer::apply;  // one input
  using FusedLayer::applyBackward;

  void apply(std::size_t batchSize, const Desc& inputA, const Desc& inputB, const Desc& output, LearningPhase phase) {
    forwardMany<2>(batchSize, {&inputA, &inputB}, output, phase);
  }
  void apply(std::size_t batchSize, const Desc& inputA, const Desc& inputB, const Desc& inputC, const Desc& output,
             LearningPhase phase) {
    forwardMany<3>(batchSize, {&inputA, &inputB, &inputC}, output, phase);
  }

  void applyBackward(std::size_t batchSize, const Desc& inputA, const Desc& inputB, const Desc& output,
                     const Desc& outputGradient, const OptDesc& generatingInputAGradient,
                     const OptDesc& generatingInputBGradient, std::span<const Desc> generatingParameterGradients) {
    backwardMany<2>(batchSize, {&inputA, &inputB}, output, outputGradient,
                    {&generatingInputAGradient, &generatingInputBGradient}, generatingParameterGradients);
  }
  void applyBackward(std::size_t batchSize, const Desc& inputA, const Desc& inputB, const Desc& inputC,
                     const Desc& output, const Desc& outputGradient, const OptDesc& generatingInputAGradient,
                     const OptDesc& generatingInputBGradient, const OptDesc& generatingInputCGradient,
                     std::span<const Desc> generatingParameterGradients) {
    backwardMany<3>(batchSize, {&inputA, &inputB, &inputC}, output, outputGradient,
                    {&generatingInputAGradient, &generatingInputBGradient, &generatingInputCGradient},
                    generatingParameterGradients);
  }

  // The same calls with Swift's labels, through designated initialisers.
  struct BackwardTwo {
    std::size_t batchSize;
    const Desc &inputA, &inputB, &output, &outputGradient;
    OptDesc generatingInputAGradient{}, generatingInputBGradient{};
    std::span<const Desc> generatingParameterGradients{};
  };
  struct BackwardThree {
    std::size_t batchSize;
    const Desc &inputA, &inputB, &inputC, &output, &outputGradient;
    OptDesc generatingInputAGradient{}, generatingInputBGradient{}, generatingInputCGradient{};
    std::span<const Desc> generatingParameterGradients{};
  };
  void applyBackward(const BackwardTwo& a) {
    applyBackward(a.batchSize, a.inputA, a.inputB, a.output, a.outputGradient, a.generatingInputAGradient,
                  a.generatingInputBGradient, a.generatingParameterGradients);
  }
  void applyBackward(const BackwardThree& a) {
    applyBackward(a.batchSize, a.inputA, a.inputB, a.inputC, a.output, a.outputGradient, a.generatingInputAGradient,
                  a.generatingInputBGradient, a.generatingInputCGradient, a.generatingParameterGradients);
  }
};

/// A convolution without activation, then a normalization. Four parameter gradients: weights, bias, beta, gamma.
class FusedConvolutionNormalizationLayer : public FusedLayer {
 public:
  struct Parameters {
    Desc input, output, convolutionWeights;
    OptDesc convolutionBias{};
    XY convolutionStride{}, convolutionDilationStride{};
    ConvolutionPadding convolutionPadding{};
    NormalizationType normalization;
    OptDesc normalizationBeta{}, normalizationGamma{};
    float normalizationMomentum, normalizationEpsilon;
    ActivationFunction normalizationActivation{};
    OptFilterParams filterParameters{};
  };
  explicit FusedConvolutionNormalizationLayer(const Parameters& p)
      : FusedLayer(detail::makeFused(
            std::array{p.input}, p.output,
            std::array<FusableLayerParameters, 2>{
                FusedConvolutionParameters{ConvolutionType::standard, p.convolutionWeights, p.convolutionBias,
                                           p.convolutionStride, p.convolutionDilationStride, 1, p.convolutionPadding},
                FusedNormalizationParameters{p.normalization, p.normalizationBeta, p.normalizationGamma,
                                             p.normalizationMomentum, p.normalizationEpsilon,
                                             p.normalizationActivation}},
            p.filterParameters)) {}
};

/// A fully connected layer without activation, then a normalization. Parameter gradients as above.
class FusedFullyConnectedNormalizationLayer : public FusedLayer {
 public:
  struct Parameters {
    Desc input, output, fullyConnectedWeights;
    OptDesc fullyConnectedBias{};
    NormalizationType normalization;
    OptDesc normalizationBeta{}, normalizationGamma{};
    float normalizationMomentum, normalizationEpsilon;
    ActivationFunction normalizationActivation{};
    OptFilterParams filterParameters{};
  };
  explicit FusedFullyConnectedNormalizationLayer(const Parameters& p)
      : FusedLayer(
            detail::makeFused(std::array{p.input}, p.output,
                              std::array<FusableLayerParameters, 2>{
                                  FusedFullyConnectedParameters{p.fullyConnectedWeights, p.fullyConnectedBias},
                                  FusedNormalizationParameters{p.normalization, p.normalizationBeta,
                                                               p.normalizationGamma, p.normalizationMomentum,
                                                               p.normalizationEpsilon, p.normalizationActivation}},
                              p.filterParameters)) {}
};

}  // namespace bnns
