// OpenBNNS C++ overlay: fused layers, of one, two and three inputs.
#pragma once

#include "fused_parameters.hpp"

namespace bnns {

/// The calls of a fused layer with one input.
class FusedLayer : public Layer {
 public:
  std::size_t inputCount() const noexcept { return made_.inputs; }
  /// Entries of generatingParameterGradients; fused_parameters.hpp lists their order.
  std::size_t parameterGradientCount() const noexcept { return made_.slots; }

  void apply(std::size_t batchSize, const Input& input, const Output& output, LearningPhase phase) {
    const detail::Where where = call("apply");
    const BNNSFilter filter = live(1, where);
    const detail::Data x = detail::fitting(where, "input", input, made_.input[0].expected, batch(0, batchSize)),
                       y = detail::fitting(where, "output", output, made_.output, batchSize);
    detail::check(::BNNSFusedFilterApplyBatch(filter, batchSize, x.data, x.stride, y.data, y.stride,
                                              phase == LearningPhase::training),
                  where, "BNNSFusedFilterApplyBatch");
  }

  /// Gradients after a training `apply`. generatingParameterGradients is empty (none wanted), or has
  /// parameterGradientCount() entries in the order of the stages; an entry without data is skipped.
  void applyBackward(std::size_t batchSize, const Input& input, const Input& output, const Input& outputGradient,
                     const OptOutput& generatingInputGradient, const ParameterGradients& generatingParameterGradients) {
    const detail::Where where = call("applyBackward");
    const BNNSFilter filter = live(1, where);
    Slots slots(where, generatingParameterGradients, made_);
    const detail::Expected& e = made_.input[0].expected;
    const detail::Data x = detail::fittingIfGiven(where, "input", input, e, batch(0, batchSize)),
                       y = detail::fittingIfGiven(where, "output", output, made_.output, batchSize);
    const auto dx = detail::describedIfGiven(where, "generatingInputGradient", generatingInputGradient, e,
                                             batch(0, batchSize)),
               dy = detail::described(where, "outputGradient", outputGradient, made_.output, batchSize);
    detail::check(::BNNSFusedFilterApplyBackwardBatch(filter, batchSize, x.data, x.stride, dx.descriptor, dx.stride,
                                                      y.data, y.stride, dy.descriptor, dy.stride, slots.pointer()),
                  where, "BNNSFusedFilterApplyBackwardBatch");
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
    OptOutput generatingInputGradient{};
    ParameterGradients generatingParameterGradients{};
  };
  void apply(const Forward& a) { apply(a.batchSize, a.input, a.output, a.learningPhase); }
  void applyBackward(const Backward& a) {
    applyBackward(a.batchSize, a.input, a.output, a.outputGradient, a.generatingInputGradient,
                  a.generatingParameterGradients);
  }

 protected:
  FusedLayer(const char* name, const detail::FusedFilter& made)
      : Layer(made.filter, name, "BNNSFilterCreateFusedLayer"), made_(made) {}
  FusedLayer(FusedLayer&&) noexcept = default;
  FusedLayer& operator=(FusedLayer&&) noexcept = default;

  template <std::size_t N>
  void forwardMany(std::size_t batchSize, const std::array<const Input*, N>& inputs, const Output& output,
                   LearningPhase phase) {
    const detail::Where where = call("apply");
    const BNNSFilter filter = live(N, where);
    detail::ManyInputs<N> x(where, batchSize, made_.input, inputs);
    const detail::Data y = detail::fitting(where, "output", output, made_.output, batchSize);
    detail::check(::BNNSFusedFilterApplyMultiInputBatch(filter, batchSize, N, x.x.data(), x.stride.data(), y.data,
                                                        y.stride, phase == LearningPhase::training),
                  where, "BNNSFusedFilterApplyMultiInputBatch");
  }

  template <std::size_t N>
  void backwardMany(std::size_t batchSize, const std::array<const Input*, N>& inputs, const Input& output,
                    const Input& outputGradient, const std::array<const OptOutput*, N>& inputGradients,
                    const ParameterGradients& parameterGradients) {
    const detail::Where where = call("applyBackward");
    const BNNSFilter filter = live(N, where);
    Slots slots(where, parameterGradients, made_);
    const auto dy = detail::described(where, "outputGradient", outputGradient, made_.output, batchSize);
    // A gradient that is left out is null: our library skips it, Apple's may not.
    detail::ManyInputs<N> x(where, batchSize, made_.input, inputs, inputGradients);
    const detail::Data y = detail::fittingIfGiven(where, "output", output, made_.output, batchSize);
    detail::check(::BNNSFusedFilterApplyBackwardMultiInputBatch(filter, batchSize, N, x.x.data(), x.stride.data(),
                                                                x.gradient.data(), x.gradientStride.data(), y.data,
                                                                y.stride, dy.descriptor, dy.stride, slots.pointer()),
                  where, "BNNSFusedFilterApplyBackwardMultiInputBatch");
  }

 private:
  // Parameter gradients as an array of pointers.
  class Slots {
   public:
    Slots(const detail::Where& where, const ParameterGradients& gradients, const detail::FusedFilter& made)
        : any_(gradients.size() > 0) {
      if (!any_) return;
      if (gradients.size() != made.slots) {  // the C call would read past the array
        detail::mistake(Error::Code::layerApplyFail, where,
                        "expected " + std::to_string(made.slots) +
                            " parameter gradients in the order of the stages, got " + std::to_string(gradients.size()));
      }
      for (std::size_t i = 0; i < made.slots; ++i) {
        const Desc& d = gradients.descriptors_[i];
        const std::size_t count = detail::elementCount(d), expected = made.parameter[i].count;
        if (!d.data) continue;
        if (expected != 0 && count != expected) {
          detail::badArray(where, "generatingParameterGradients[" + std::to_string(i) + "] has " +
                                      std::to_string(count) + " elements, the parameter " + std::to_string(expected));
        }
        pointers_[i] = const_cast<Desc*>(&d);  // only its memory is written
      }
    }
    Slots(const Slots&) = delete;
    Desc** pointer() noexcept { return any_ ? pointers_.data() : nullptr; }

   private:
    bool any_;
    std::array<Desc*, ParameterGradients::most> pointers_{};
  };

  std::size_t batch(std::size_t input, std::size_t batchSize) const { return made_.input[input].batch(batchSize); }
  BNNSFilter live(std::size_t inputs, const detail::Where& where) const {
    if (inputs != made_.inputs) {
      detail::mistake(Error::Code::layerApplyFail, where,
                      "called with " + std::to_string(inputs) + " input(s), but the first stage takes " +
                          std::to_string(made_.inputs));
    }
    return Layer::live(where);
  }

  detail::FusedFilter made_;
};

/// With filterParameters left out it copies its parameters at creation, and an optimizer's steps have no effect: to
/// train, give useClientPointer.
///
/// Two stages in one layer: convolution or fully connected, then normalization or quantization; or arithmetic of one,
/// two or three inputs, then normalization.
class FusedParametersLayer : public FusedLayer {
 public:
  /// {convolution, normalization}, or an array or vector of FusableLayerParameters.
  class Stages : public std::span<const FusableLayerParameters> {
   public:
    template <class R>
    requires std::is_convertible_v<R, std::span<const FusableLayerParameters>> Stages(const R& stages)
        : std::span<const FusableLayerParameters>(stages) {}
    Stages(std::initializer_list<FusableLayerParameters> stages)
        : std::span<const FusableLayerParameters>(stages.begin(), stages.size()) {}
  };

  // One, two and three inputs. The initialisers of Swift, in its order.
  FusedParametersLayer(const Desc& input, const Desc& output, const Stages& fusedLayerParameters,
                       const OptFilterParams& filterParameters = {})
      : FusedLayer(name, detail::makeFused(name, std::array{input}, output, fusedLayerParameters, filterParameters)) {}
  FusedParametersLayer(const Desc& inputA, const Desc& inputB, const Desc& output, const Stages& fusedLayerParameters,
                       const OptFilterParams& filterParameters = {})
      : FusedLayer(
            name, detail::makeFused(name, std::array{inputA, inputB}, output, fusedLayerParameters, filterParameters)) {
  }
  FusedParametersLayer(const Desc& inputA, const Desc& inputB, const Desc& inputC, const Desc& output,
                       const Stages& fusedLayerParameters, const OptFilterParams& filterParameters = {})
      : FusedLayer(name, detail::makeFused(name, std::array{inputA, inputB, inputC}, output, fusedLayerParameters,
                                           filterParameters)) {}

  /// The same with labels: .input, or .inputA and .inputB, or those and .inputC; or .inputs, in order.
  struct Parameters {
    std::vector<Desc> inputs{};
    OptDesc input{}, inputA{}, inputB{}, inputC{};
    Desc output;
    std::vector<FusableLayerParameters> fusedLayerParameters;
    OptFilterParams filterParameters{};
  };
  explicit FusedParametersLayer(const Parameters& p)
      : FusedLayer(name, detail::makeFused(name, inputsOf(p), p.output, p.fusedLayerParameters, p.filterParameters)) {}

  using FusedLayer::apply;  // one input
  using FusedLayer::applyBackward;

  void apply(std::size_t batchSize, const Input& inputA, const Input& inputB, const Output& output,
             LearningPhase phase) {
    forwardMany<2>(batchSize, {&inputA, &inputB}, output, phase);
  }
  void apply(std::size_t batchSize, const Input& inputA, const Input& inputB, const Input& inputC, const Output& output,
             LearningPhase phase) {
    forwardMany<3>(batchSize, {&inputA, &inputB, &inputC}, output, phase);
  }

  void applyBackward(std::size_t batchSize, const Input& inputA, const Input& inputB, const Input& output,
                     const Input& outputGradient, const OptOutput& generatingInputAGradient,
                     const OptOutput& generatingInputBGradient,
                     const ParameterGradients& generatingParameterGradients) {
    backwardMany<2>(batchSize, {&inputA, &inputB}, output, outputGradient,
                    {&generatingInputAGradient, &generatingInputBGradient}, generatingParameterGradients);
  }
  void applyBackward(std::size_t batchSize, const Input& inputA, const Input& inputB, const Input& inputC,
                     const Input& output, const Input& outputGradient, const OptOutput& generatingInputAGradient,
                     const OptOutput& generatingInputBGradient, const OptOutput& generatingInputCGradient,
                     const ParameterGradients& generatingParameterGradients) {
    backwardMany<3>(batchSize, {&inputA, &inputB, &inputC}, output, outputGradient,
                    {&generatingInputAGradient, &generatingInputBGradient, &generatingInputCGradient},
                    generatingParameterGradients);
  }

  // The same calls with Swift's labels, through designated initialisers.
  struct ForwardTwo {
    std::size_t batchSize;
    Input inputA, inputB;
    Output output;
    LearningPhase learningPhase;
  };
  struct ForwardThree {
    std::size_t batchSize;
    Input inputA, inputB, inputC;
    Output output;
    LearningPhase learningPhase;
  };
  struct BackwardTwo {
    std::size_t batchSize;
    Input inputA, inputB, output, outputGradient;
    OptOutput generatingInputAGradient{}, generatingInputBGradient{};
    ParameterGradients generatingParameterGradients{};
  };
  struct BackwardThree {
    std::size_t batchSize;
    Input inputA, inputB, inputC, output, outputGradient;
    OptOutput generatingInputAGradient{}, generatingInputBGradient{}, generatingInputCGradient{};
    ParameterGradients generatingParameterGradients{};
  };
  void apply(const ForwardTwo& a) { apply(a.batchSize, a.inputA, a.inputB, a.output, a.learningPhase); }
  void apply(const ForwardThree& a) { apply(a.batchSize, a.inputA, a.inputB, a.inputC, a.output, a.learningPhase); }
  void applyBackward(const BackwardTwo& a) {
    applyBackward(a.batchSize, a.inputA, a.inputB, a.output, a.outputGradient, a.generatingInputAGradient,
                  a.generatingInputBGradient, a.generatingParameterGradients);
  }
  void applyBackward(const BackwardThree& a) {
    applyBackward(a.batchSize, a.inputA, a.inputB, a.inputC, a.output, a.outputGradient, a.generatingInputAGradient,
                  a.generatingInputBGradient, a.generatingInputCGradient, a.generatingParameterGradients);
  }

 private:
  static constexpr const char* name = "FusedParametersLayer";
  static std::vector<Desc> inputsOf(const Parameters& p) {
    std::vector<Desc> inputs = p.inputs;
    for (const OptDesc* d : {&p.input, &p.inputA, &p.inputB, &p.inputC}) {
      if (*d) inputs.push_back(**d);
    }
    return inputs;
  }
};

/// With filterParameters left out it copies its parameters at creation, and an optimizer's steps have no effect: to
/// train, give useClientPointer.
///
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
      : FusedLayer(name, detail::makeFused(
                             name, std::array{p.input}, p.output,
                             std::array<FusableLayerParameters, 2>{
                                 FusedConvolutionParameters{ConvolutionType::standard, p.convolutionWeights,
                                                            p.convolutionBias, p.convolutionStride,
                                                            p.convolutionDilationStride, 1, p.convolutionPadding},
                                 FusedNormalizationParameters{p.normalization, p.normalizationBeta,
                                                              p.normalizationGamma, p.normalizationMomentum,
                                                              p.normalizationEpsilon, p.normalizationActivation}},
                             p.filterParameters)) {}

 private:
  static constexpr const char* name = "FusedConvolutionNormalizationLayer";
};

/// With filterParameters left out it copies its parameters at creation, and an optimizer's steps have no effect: to
/// train, give useClientPointer.
///
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
      : FusedLayer(name, detail::makeFused(
                             name, std::array{p.input}, p.output,
                             std::array<FusableLayerParameters, 2>{
                                 FusedFullyConnectedParameters{p.fullyConnectedWeights, p.fullyConnectedBias},
                                 FusedNormalizationParameters{p.normalization, p.normalizationBeta,
                                                              p.normalizationGamma, p.normalizationMomentum,
                                                              p.normalizationEpsilon, p.normalizationActivation}},
                             p.filterParameters)) {}

 private:
  static constexpr const char* name = "FusedFullyConnectedNormalizationLayer";
};

}  // namespace bnns
