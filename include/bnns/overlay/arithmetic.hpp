// OpenBNNS C++ overlay: element-wise arithmetic of one, two and three inputs.
#pragma once

#include "activation.hpp"

namespace bnns {

enum class ArithmeticUnaryFunction : std::uint32_t {
  abs = BNNSArithmeticAbs,
  acos = BNNSArithmeticAcos,
  acosh = BNNSArithmeticAcosh,
  asin = BNNSArithmeticAsin,
  asinh = BNNSArithmeticAsinh,
  atan = BNNSArithmeticAtan,
  atanh = BNNSArithmeticAtanh,
  ceil = BNNSArithmeticCeil,
  cos = BNNSArithmeticCos,
  cosh = BNNSArithmeticCosh,
  erf = BNNSArithmeticErf,
  exp = BNNSArithmeticExp,
  exp2 = BNNSArithmeticExp2,
  floor = BNNSArithmeticFloor,
  log = BNNSArithmeticLog,
  log2 = BNNSArithmeticLog2,
  negate = BNNSArithmeticNegate,
  reciprocal = BNNSArithmeticReciprocal,
  reciprocalSquareRoot = BNNSArithmeticReciprocalSquareRoot,
  round = BNNSArithmeticRound,
  sign = BNNSArithmeticSign,
  sin = BNNSArithmeticSin,
  sinh = BNNSArithmeticSinh,
  square = BNNSArithmeticSquare,
  squareRoot = BNNSArithmeticSquareRoot,
  tan = BNNSArithmeticTan,
  tanh = BNNSArithmeticTanh,
};
enum class ArithmeticBinaryFunction : std::uint32_t {
  add = BNNSArithmeticAdd,
  subtract = BNNSArithmeticSubtract,
  multiply = BNNSArithmeticMultiply,
  multiplyNoNaN = BNNSArithmeticMultiplyNoNaN,
  divide = BNNSArithmeticDivide,
  divideNoNaN = BNNSArithmeticDivideNoNaN,
  flooringDivide = BNNSArithmeticFloorDivide,
  truncatingDivide = BNNSArithmeticTruncDivide,
  truncatingRemainder = BNNSArithmeticTruncRemainder,
  pow = BNNSArithmeticPow,
  min = BNNSArithmeticMinimum,
  max = BNNSArithmeticMaximum,
};
enum class ArithmeticTernaryFunction : std::uint32_t {
  multiplyAdd = BNNSArithmeticMultiplyAdd,
  select = BNNSArithmeticSelect,  ///< not in Swift
};

/// Swift's allCases.
inline constexpr std::array allArithmeticUnaryFunctions{ArithmeticUnaryFunction::abs,
                                                        ArithmeticUnaryFunction::acos,
                                                        ArithmeticUnaryFunction::acosh,
                                                        ArithmeticUnaryFunction::asin,
                                                        ArithmeticUnaryFunction::asinh,
                                                        ArithmeticUnaryFunction::atan,
                                                        ArithmeticUnaryFunction::atanh,
                                                        ArithmeticUnaryFunction::ceil,
                                                        ArithmeticUnaryFunction::cos,
                                                        ArithmeticUnaryFunction::cosh,
                                                        ArithmeticUnaryFunction::erf,
                                                        ArithmeticUnaryFunction::exp,
                                                        ArithmeticUnaryFunction::exp2,
                                                        ArithmeticUnaryFunction::floor,
                                                        ArithmeticUnaryFunction::log,
                                                        ArithmeticUnaryFunction::log2,
                                                        ArithmeticUnaryFunction::negate,
                                                        ArithmeticUnaryFunction::reciprocal,
                                                        ArithmeticUnaryFunction::reciprocalSquareRoot,
                                                        ArithmeticUnaryFunction::round,
                                                        ArithmeticUnaryFunction::sign,
                                                        ArithmeticUnaryFunction::sin,
                                                        ArithmeticUnaryFunction::sinh,
                                                        ArithmeticUnaryFunction::square,
                                                        ArithmeticUnaryFunction::squareRoot,
                                                        ArithmeticUnaryFunction::tan,
                                                        ArithmeticUnaryFunction::tanh};
inline constexpr std::array allArithmeticBinaryFunctions{ArithmeticBinaryFunction::add,
                                                         ArithmeticBinaryFunction::subtract,
                                                         ArithmeticBinaryFunction::multiply,
                                                         ArithmeticBinaryFunction::multiplyNoNaN,
                                                         ArithmeticBinaryFunction::divide,
                                                         ArithmeticBinaryFunction::divideNoNaN,
                                                         ArithmeticBinaryFunction::flooringDivide,
                                                         ArithmeticBinaryFunction::truncatingDivide,
                                                         ArithmeticBinaryFunction::truncatingRemainder,
                                                         ArithmeticBinaryFunction::pow,
                                                         ArithmeticBinaryFunction::min,
                                                         ArithmeticBinaryFunction::max};

namespace detail {

inline BNNSDescriptorType role(DescriptorType type) {
  return static_cast<BNNSDescriptorType>(type);
}

// The calls of an arithmetic filter with N inputs.
template <std::size_t N>
class ArithmeticLayer : public Layer {
 protected:
  ArithmeticLayer(auto function, auto& fields, const ActivationFunction& activation, const OptFilterParams& options)
      : Layer(create(static_cast<BNNSArithmeticFunction>(function), &fields, activation, options),
              "BNNSFilterCreateLayerArithmetic") {}
  ArithmeticLayer(ArithmeticLayer&&) noexcept = default;
  ArithmeticLayer& operator=(ArithmeticLayer&&) noexcept = default;

  void forward(std::size_t batchSize, const std::array<const Desc*, N>& inputs, const Desc& output) {
    constexpr auto function = "BNNSArithmeticFilterApplyBatch";
    const BNNSFilter filter = live(function);
    std::array<const void*, N> x;
    std::array<std::size_t, N> stride;
    for (std::size_t i = 0; i < N; ++i) x[i] = requireData(*inputs[i], "input"), stride[i] = batchStride(*inputs[i]);
    check(::BNNSArithmeticFilterApplyBatch(filter, batchSize, N, x.data(), stride.data(), requireData(output, "output"),
                                           batchStride(output)),
          function);
  }

  void backward(std::size_t batchSize, const std::array<const Desc*, N>& inputs, const Desc& output,
                const Desc& outputGradient, const std::array<const OptDesc*, N>& gradients) {
    constexpr auto function = "BNNSArithmeticFilterApplyBackwardBatch";
    const BNNSFilter filter = live(function);
    std::array<const void*, N> x;
    std::array<std::size_t, N> stride, deltaStride{};
    std::array<Desc, N> copies;
    std::array<Desc*, N> delta{};
    bool anyInput = false;  // no data at all: the function's gradient does not read its inputs
    for (std::size_t i = 0; i < N; ++i) {
      x[i] = inputs[i]->data, stride[i] = batchStride(*inputs[i]);
      anyInput = anyInput || x[i];
      if (!*gradients[i]) continue;
      copies[i] = **gradients[i];
      requireData(copies[i], "generatingInputGradient");
      delta[i] = &copies[i], deltaStride[i] = batchStride(copies[i]);
    }
    Gradient dy(outputGradient, "outputGradient");
    check(::BNNSArithmeticFilterApplyBackwardBatch(filter, batchSize, N, anyInput ? x.data() : nullptr,
                                                   anyInput ? stride.data() : nullptr, delta.data(), deltaStride.data(),
                                                   output.data, batchStride(output), &dy.descriptor, dy.stride),
          function);
  }

 private:
  static BNNSFilter create(BNNSArithmeticFunction function, void* fields, const ActivationFunction& activation,
                           const OptFilterParams& options) {
    BNNSLayerParametersArithmetic layer{};
    layer.arithmetic_function = function, layer.arithmetic_function_fields = fields;
    layer.activation = activation.bnnsActivation();
    return ::BNNSFilterCreateLayerArithmetic(&layer, pointer(options));
  }
};

}  // namespace detail

class UnaryArithmeticLayer : public detail::ArithmeticLayer<1> {
 public:
  struct Parameters {
    Desc input;
    DescriptorType inputDescriptorType;
    Desc output;
    DescriptorType outputDescriptorType;
    ArithmeticUnaryFunction function;
    ActivationFunction activation{};
    OptFilterParams filterParameters{};
  };
  explicit UnaryArithmeticLayer(const Parameters& p) : UnaryArithmeticLayer(p, fields(p)) {}

  void apply(std::size_t batchSize, const Desc& input, const Desc& output) { forward(batchSize, {&input}, output); }
  void applyBackward(std::size_t batchSize, const Desc& input, const Desc& output, const Desc& outputGradient,
                     const OptDesc& generatingInputGradient) {
    backward(batchSize, {&input}, output, outputGradient, {&generatingInputGradient});
  }

 private:
  static BNNSArithmeticUnary fields(const Parameters& p) {
    return {p.input, detail::role(p.inputDescriptorType), p.output, detail::role(p.outputDescriptorType)};
  }
  UnaryArithmeticLayer(const Parameters& p, BNNSArithmeticUnary fields)
      : ArithmeticLayer(p.function, fields, p.activation, p.filterParameters) {}
};

class BinaryArithmeticLayer : public detail::ArithmeticLayer<2> {
 public:
  struct Parameters {
    Desc inputA;
    DescriptorType inputADescriptorType;
    Desc inputB;
    DescriptorType inputBDescriptorType;
    Desc output;
    DescriptorType outputDescriptorType;
    ArithmeticBinaryFunction function;
    ActivationFunction activation{};
    OptFilterParams filterParameters{};
  };
  explicit BinaryArithmeticLayer(const Parameters& p) : BinaryArithmeticLayer(p, fields(p)) {}

  void apply(std::size_t batchSize, const Desc& inputA, const Desc& inputB, const Desc& output) {
    forward(batchSize, {&inputA, &inputB}, output);
  }
  /// All gradients come from one call; that of a constant may be left out.
  void applyBackward(std::size_t batchSize, const Desc& inputA, const Desc& inputB, const Desc& output,
                     const Desc& outputGradient, const OptDesc& generatingInputAGradient,
                     const OptDesc& generatingInputBGradient) {
    backward(batchSize, {&inputA, &inputB}, output, outputGradient,
             {&generatingInputAGradient, &generatingInputBGradient});
  }

 private:
  static BNNSArithmeticBinary fields(const Parameters& p) {
    return {p.inputA, detail::role(p.inputADescriptorType), p.inputB, detail::role(p.inputBDescriptorType),
            p.output, detail::role(p.outputDescriptorType)};
  }
  BinaryArithmeticLayer(const Parameters& p, BNNSArithmeticBinary fields)
      : ArithmeticLayer(p.function, fields, p.activation, p.filterParameters) {}
};

class TernaryArithmeticLayer : public detail::ArithmeticLayer<3> {
 public:
  struct Parameters {
    Desc inputA;
    DescriptorType inputADescriptorType;
    Desc inputB;
    DescriptorType inputBDescriptorType;
    Desc inputC;
    DescriptorType inputCDescriptorType;
    Desc output;
    DescriptorType outputDescriptorType;
    ArithmeticTernaryFunction function;
    ActivationFunction activation{};
    OptFilterParams filterParameters{};
  };
  explicit TernaryArithmeticLayer(const Parameters& p) : TernaryArithmeticLayer(p, fields(p)) {}

  void apply(std::size_t batchSize, const Desc& inputA, const Desc& inputB, const Desc& inputC, const Desc& output) {
    forward(batchSize, {&inputA, &inputB, &inputC}, output);
  }
  void applyBackward(std::size_t batchSize, const Desc& inputA, const Desc& inputB, const Desc& inputC,
                     const Desc& output, const Desc& outputGradient, const OptDesc& generatingInputAGradient,
                     const OptDesc& generatingInputBGradient, const OptDesc& generatingInputCGradient) {
    backward(batchSize, {&inputA, &inputB, &inputC}, output, outputGradient,
             {&generatingInputAGradient, &generatingInputBGradient, &generatingInputCGradient});
  }

 private:
  static BNNSArithmeticTernary fields(const Parameters& p) {
    return {p.inputA, detail::role(p.inputADescriptorType), p.inputB, detail::role(p.inputBDescriptorType),
            p.inputC, detail::role(p.inputCDescriptorType), p.output, detail::role(p.outputDescriptorType)};
  }
  TernaryArithmeticLayer(const Parameters& p, BNNSArithmeticTernary fields)
      : ArithmeticLayer(p.function, fields, p.activation, p.filterParameters) {}
};

}  // namespace bnns
