// OpenBNNS C++ overlay: activation functions, and the activation layer.
#pragma once

#include "layer.hpp"

namespace bnns {

/// Swift's BNNS.ActivationFunction: one factory for each case, and below the line those that only C has.
class ActivationFunction {
 public:
  /// The identity.
  ActivationFunction() = default;
  /// Any activation of the C interface, the integer ones included.
  explicit ActivationFunction(const BNNSActivation& activation) : activation_(activation) {}

  using Self = ActivationFunction;
  static Self identity() { return {}; }
  static Self rectifiedLinear() { return of(BNNSActivationFunctionRectifiedLinear); }
  static Self leakyRectifiedLinear(float alpha) { return of(BNNSActivationFunctionLeakyRectifiedLinear, alpha); }
  static Self sigmoid() { return of(BNNSActivationFunctionSigmoid); }
  static Self tanh() { return of(BNNSActivationFunctionTanh); }
  static Self scaledTanh(float alpha, float beta) { return of(BNNSActivationFunctionScaledTanh, alpha, beta); }
  static Self abs() { return of(BNNSActivationFunctionAbs); }
  static Self linear(float alpha) { return of(BNNSActivationFunctionLinear, alpha); }
  static Self clamp(Bounds bounds) { return of(BNNSActivationFunctionClamp, bounds.lower, bounds.upper); }
  static Self softmax() { return of(BNNSActivationFunctionSoftmax); }
  static Self logSoftmax() { return of(BNNSActivationFunctionLogSoftmax); }
  static Self logSigmoid() { return of(BNNSActivationFunctionLogSigmoid); }
  static Self softsign() { return of(BNNSActivationFunctionSoftsign); }
  static Self selu() { return of(BNNSActivationFunctionSELU); }
  static Self silu() { return of(BNNSActivationFunctionSiLU); }
  static Self tanhShrink() { return of(BNNSActivationFunctionTanhShrink); }
  static Self elu(float alpha) { return of(BNNSActivationFunctionELU, alpha); }
  static Self celu(float alpha) { return of(BNNSActivationFunctionCELU, alpha); }
  static Self hardShrink(float alpha) { return of(BNNSActivationFunctionHardShrink, alpha); }
  static Self softShrink(float alpha) { return of(BNNSActivationFunctionSoftShrink, alpha); }
  static Self linearWithBias(float alpha, float beta) { return of(BNNSActivationFunctionLinearWithBias, alpha, beta); }
  static Self clampedLeakyRectifiedLinear(float alpha, float beta) {
    return of(BNNSActivationFunctionClampedLeakyRectifiedLinear, alpha, beta);
  }
  static Self softplus(float alpha, float beta) { return of(BNNSActivationFunctionSoftplus, alpha, beta); }
  static Self threshold(float alpha, float beta) { return of(BNNSActivationFunctionThreshold, alpha, beta); }
  static Self hardSigmoid(float alpha, float beta) { return of(BNNSActivationFunctionHardSigmoid, alpha, beta); }
  static Self hardSwish(float alpha = 0, float beta = 0) { return of(BNNSActivationFunctionHardSwish, alpha, beta); }
  static Self gumbel(float alpha, float beta) { return of(BNNSActivationFunctionGumbel, alpha, beta); }
  static Self gumbelMax(float alpha, float beta) { return of(BNNSActivationFunctionGumbelMax, alpha, beta); }
  static Self geluApproximation(float alpha, float beta) {
    return of(BNNSActivationFunctionGELUApproximation, alpha, beta);
  }
  static Self geluApproximation2(float alpha = 0, float beta = 0) {
    return of(BNNSActivationFunctionGELUApproximation2, alpha, beta);
  }
  // ---- not in Swift
  static Self preluPerChannel(float alpha) { return of(BNNSActivationFunctionPReLUPerChannel, alpha); }
  static Self relu6() { return of(BNNSActivationFunctionReLU6); }
  static Self erf() { return of(BNNSActivationFunctionErf); }
  static Self gelu() { return of(BNNSActivationFunctionGELU); }
  static Self geluApproximationSigmoid() { return of(BNNSActivationFunctionGELUApproximationSigmoid); }

  const BNNSActivation& bnnsActivation() const noexcept { return activation_; }

 private:
  static Self of(BNNSActivationFunction function, float alpha = 0, float beta = 0) {
    Self f;
    f.activation_.function = function, f.activation_.alpha = alpha, f.activation_.beta = beta;
    return f;
  }

  BNNSActivation activation_{};
};

namespace detail {
inline BNNSLayerParametersActivation activationLayer(const ActivationFunction& function, const Desc& input,
                                                     const Desc& output, std::uint32_t axes) {
  BNNSLayerParametersActivation layer{};
  layer.i_desc = input, layer.o_desc = output, layer.activation = function.bnnsActivation();
  layer.axis_flags = axes;
  return layer;
}
}  // namespace detail

/// A function of each element, or softmax and its kind along axes. Identity between data types converts.
class ActivationLayer : public UnaryLayer {
 public:
  struct Parameters {
    ActivationFunction function;
    Desc input, output;
    std::vector<std::size_t> axes{};  ///< of softmax-like functions; none: axis 0
    OptFilterParams filterParameters{};
  };
  explicit ActivationLayer(const Parameters& p)
      : UnaryLayer(create(p), "ActivationLayer", "BNNSFilterCreateLayerActivation", {p.input, p.output}) {}

  using UnaryLayer::applyBackward;
  /// With the gradient of alpha, of leaky ReLU and PReLU per channel (not in Swift).
  void applyBackward(std::size_t batchSize, const Input& input, const Input& output, const Input& outputGradient,
                     const OptOutput& generatingInputGradient, const OptOutput& generatingAlphaGradient) {
    backward(batchSize, input, output, outputGradient, generatingInputGradient, generatingAlphaGradient, {},
             "generatingAlphaGradient");
  }

  /// The layer's own alpha or beta, which may be read and written (BNNSGetPointer; not in Swift).
  Desc parameter(BNNSPointerSpecifier which) const {
    const detail::Where where = call("parameter");
    const Desc d = ::BNNSGetPointer(live(where), which);
    if (!d.data) detail::refused(-1, where, "BNNSGetPointer", Error::Code::layerApplyFail);
    return d;
  }

 private:
  static BNNSFilter create(const Parameters& p) {
    const BNNSLayerParametersActivation layer = detail::activationLayer(
        p.function, p.input, p.output, detail::axisMask(p.axes, "ActivationLayer", Error::Code::unableToCreateLayer));
    return ::BNNSFilterCreateLayerActivation(&layer, detail::pointer(p.filterParameters));
  }
};

/// Runs an activation once, without a layer, along given axes.
inline void applyActivation(const ActivationFunction& activation, std::span<const std::size_t> axes, const Input& input,
                            const Output& output, std::size_t batchSize, const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "applyActivation";
  detail::requireCapacity(where, "input", input, batchSize);
  detail::requireCapacity(where, "output", output, batchSize);
  const BNNSLayerParametersActivation layer =
      detail::activationLayer(activation, input.descriptor(), output.descriptor(), detail::axisMask(axes, where));
  detail::check(::BNNSDirectApplyActivationBatch(&layer, detail::pointer(filterParameters), batchSize,
                                                 detail::batchStride(layer.i_desc), detail::batchStride(layer.o_desc)),
                where, "BNNSDirectApplyActivationBatch");
}
/// The same without axes.
inline void applyActivation(const ActivationFunction& activation, const Input& input, const Output& output,
                            std::size_t batchSize, const OptFilterParams& filterParameters = {}) {
  applyActivation(activation, std::span<const std::size_t>(), input, output, batchSize, filterParameters);
}

}  // namespace bnns
