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

// An input of an arithmetic function: constants and parameters are one array for all samples.
struct Operand {
  Expected expected{};
  bool shared = false;

  Operand() = default;
  Operand(const Desc& d, DescriptorType type) : expected(d), shared(type != DescriptorType::sample) {}
  std::size_t batch(std::size_t batchSize) const noexcept { return shared && batchSize > 1 ? 1 : batchSize; }
};

// The arrays of a call with N inputs and their gradients, as the C calls take them.
template <std::size_t N>
struct ManyInputs {
  std::array<const void*, N> x;
  std::array<std::size_t, N> stride, gradientStride{};
  std::array<Desc*, N> gradient{};
  bool any = false;  // none has data: the function's gradient does not read its inputs

  static const char* label(std::size_t i) {
    constexpr const char* names[] = {"inputA", "inputB", "inputC"};
    return N == 1 ? "input" : names[i];
  }
  static const char* gradientLabel(std::size_t i) {
    constexpr const char* names[] = {"generatingInputAGradient", "generatingInputBGradient",
                                     "generatingInputCGradient"};
    return N == 1 ? "generatingInputGradient" : names[i];
  }

  ManyInputs(const Where& where, std::size_t batchSize, std::span<const Operand> operands,
             const std::array<const Input*, N>& inputs) {
    for (std::size_t i = 0; i < N; ++i) {
      const Data d = fitting(where, label(i), *inputs[i], operands[i].expected, operands[i].batch(batchSize));
      x[i] = d.data, stride[i] = d.stride;
    }
  }
  ManyInputs(const Where& where, std::size_t batchSize, std::span<const Operand> operands,
             const std::array<const Input*, N>& inputs, const std::array<const OptOutput*, N>& gradients) {
    for (std::size_t i = 0; i < N; ++i) {
      const Expected& e = operands[i].expected;
      const std::size_t batch = operands[i].batch(batchSize);
      const Data d = fittingIfGiven(where, label(i), *inputs[i], e, batch);
      const Described g = describedIfGiven(where, gradientLabel(i), *gradients[i], e, batch);
      x[i] = d.data, stride[i] = d.stride, gradient[i] = g.descriptor, gradientStride[i] = g.stride;
      any = any || d.data;
    }
  }
};

// The calls of an arithmetic filter with N inputs.
template <std::size_t N>
class ArithmeticLayer : public Layer {
 protected:
  ArithmeticLayer(const char* name, auto function, auto& fields, const ActivationFunction& activation,
                  const OptFilterParams& options, const std::array<Operand, N>& inputs, const Desc& output)
      : Layer(create(static_cast<BNNSArithmeticFunction>(function), &fields, activation, options), name,
              "BNNSFilterCreateLayerArithmetic"),
        inputs_(inputs),
        output_(output) {}
  ArithmeticLayer(ArithmeticLayer&&) noexcept = default;
  ArithmeticLayer& operator=(ArithmeticLayer&&) noexcept = default;

  void forward(std::size_t batchSize, const std::array<const Input*, N>& inputs, const Output& output) {
    const Where where = call("apply");
    const BNNSFilter filter = live(where);
    ManyInputs<N> x(where, batchSize, inputs_, inputs);
    const Data y = fitting(where, "output", output, output_, batchSize);
    check(::BNNSArithmeticFilterApplyBatch(filter, batchSize, N, x.x.data(), x.stride.data(), y.data, y.stride), where,
          "BNNSArithmeticFilterApplyBatch");
  }

  void backward(std::size_t batchSize, const std::array<const Input*, N>& inputs, const Input& output,
                const Input& outputGradient, const std::array<const OptOutput*, N>& gradients) {
    const Where where = call("applyBackward");
    const BNNSFilter filter = live(where);
    ManyInputs<N> x(where, batchSize, inputs_, inputs, gradients);
    const Data y = fittingIfGiven(where, "output", output, output_, batchSize);
    const Described dy = described(where, "outputGradient", outputGradient, output_, batchSize);
    check(::BNNSArithmeticFilterApplyBackwardBatch(filter, batchSize, N, x.any ? x.x.data() : nullptr,
                                                   x.any ? x.stride.data() : nullptr, x.gradient.data(),
                                                   x.gradientStride.data(), y.data, y.stride, dy.descriptor, dy.stride),
          where, "BNNSArithmeticFilterApplyBackwardBatch");
  }

 private:
  static BNNSFilter create(BNNSArithmeticFunction function, void* fields, const ActivationFunction& activation,
                           const OptFilterParams& options) {
    BNNSLayerParametersArithmetic layer{};
    layer.arithmetic_function = function, layer.arithmetic_function_fields = fields;
    layer.activation = activation.bnnsActivation();
    return ::BNNSFilterCreateLayerArithmetic(&layer, pointer(options));
  }

  std::array<Operand, N> inputs_;
  Expected output_;
};

}  // namespace detail

class UnaryArithmeticLayer : public detail::ArithmeticLayer<1> {
 public:
  struct Parameters {
    Desc input;
    DescriptorType inputDescriptorType = DescriptorType::sample;
    Desc output;
    DescriptorType outputDescriptorType = DescriptorType::sample;
    ArithmeticUnaryFunction function;
    ActivationFunction activation{};
    OptFilterParams filterParameters{};
  };
  explicit UnaryArithmeticLayer(const Parameters& p) : UnaryArithmeticLayer(p, fields(p)) {}

  void apply(std::size_t batchSize, const Input& input, const Output& output) { forward(batchSize, {&input}, output); }
  void applyBackward(std::size_t batchSize, const Input& input, const Input& output, const Input& outputGradient,
                     const OptOutput& generatingInputGradient) {
    backward(batchSize, {&input}, output, outputGradient, {&generatingInputGradient});
  }

  // The same calls with Swift's labels.
  void apply(const UnaryLayer::Forward& a) { apply(a.batchSize, a.input, a.output); }
  void applyBackward(const UnaryLayer::Backward& a) {
    applyBackward(a.batchSize, a.input, a.output, a.outputGradient, a.generatingInputGradient);
  }

 private:
  static BNNSArithmeticUnary fields(const Parameters& p) {
    return {p.input, detail::role(p.inputDescriptorType), p.output, detail::role(p.outputDescriptorType)};
  }
  UnaryArithmeticLayer(const Parameters& p, BNNSArithmeticUnary fields)
      : ArithmeticLayer("UnaryArithmeticLayer", p.function, fields, p.activation, p.filterParameters,
                        {detail::Operand(p.input, p.inputDescriptorType)}, p.output) {}
};

class BinaryArithmeticLayer : public detail::ArithmeticLayer<2> {
 public:
  struct Parameters {
    Desc inputA;
    DescriptorType inputADescriptorType = DescriptorType::sample;
    Desc inputB;
    DescriptorType inputBDescriptorType = DescriptorType::sample;
    Desc output;
    DescriptorType outputDescriptorType = DescriptorType::sample;
    ArithmeticBinaryFunction function;
    ActivationFunction activation{};
    OptFilterParams filterParameters{};
  };
  explicit BinaryArithmeticLayer(const Parameters& p) : BinaryArithmeticLayer(p, fields(p)) {}

  void apply(std::size_t batchSize, const Input& inputA, const Input& inputB, const Output& output) {
    forward(batchSize, {&inputA, &inputB}, output);
  }
  /// All gradients come from one call; that of a constant may be left out.
  void applyBackward(std::size_t batchSize, const Input& inputA, const Input& inputB, const Input& output,
                     const Input& outputGradient, const OptOutput& generatingInputAGradient,
                     const OptOutput& generatingInputBGradient) {
    backward(batchSize, {&inputA, &inputB}, output, outputGradient,
             {&generatingInputAGradient, &generatingInputBGradient});
  }

  // The same calls with Swift's labels.
  void apply(const BinaryLayer::Forward& a) { apply(a.batchSize, a.inputA, a.inputB, a.output); }
  void applyBackward(const BinaryLayer::Backward& a) {
    applyBackward(a.batchSize, a.inputA, a.inputB, a.output, a.outputGradient, a.generatingInputAGradient,
                  a.generatingInputBGradient);
  }

 private:
  static BNNSArithmeticBinary fields(const Parameters& p) {
    return {p.inputA, detail::role(p.inputADescriptorType), p.inputB, detail::role(p.inputBDescriptorType),
            p.output, detail::role(p.outputDescriptorType)};
  }
  BinaryArithmeticLayer(const Parameters& p, BNNSArithmeticBinary fields)
      : ArithmeticLayer(
            "BinaryArithmeticLayer", p.function, fields, p.activation, p.filterParameters,
            {detail::Operand(p.inputA, p.inputADescriptorType), detail::Operand(p.inputB, p.inputBDescriptorType)},
            p.output) {}
};

class TernaryArithmeticLayer : public detail::ArithmeticLayer<3> {
 public:
  struct Parameters {
    Desc inputA;
    DescriptorType inputADescriptorType = DescriptorType::sample;
    Desc inputB;
    DescriptorType inputBDescriptorType = DescriptorType::sample;
    Desc inputC;
    DescriptorType inputCDescriptorType = DescriptorType::sample;
    Desc output;
    DescriptorType outputDescriptorType = DescriptorType::sample;
    ArithmeticTernaryFunction function;
    ActivationFunction activation{};
    OptFilterParams filterParameters{};
  };
  explicit TernaryArithmeticLayer(const Parameters& p) : TernaryArithmeticLayer(p, fields(p)) {}

  void apply(std::size_t batchSize, const Input& inputA, const Input& inputB, const Input& inputC,
             const Output& output) {
    forward(batchSize, {&inputA, &inputB, &inputC}, output);
  }
  void applyBackward(std::size_t batchSize, const Input& inputA, const Input& inputB, const Input& inputC,
                     const Input& output, const Input& outputGradient, const OptOutput& generatingInputAGradient,
                     const OptOutput& generatingInputBGradient, const OptOutput& generatingInputCGradient) {
    backward(batchSize, {&inputA, &inputB, &inputC}, output, outputGradient,
             {&generatingInputAGradient, &generatingInputBGradient, &generatingInputCGradient});
  }

  // The same calls with Swift's labels.
  struct Forward {
    std::size_t batchSize;
    Input inputA, inputB, inputC;
    Output output;
  };
  struct Backward {
    std::size_t batchSize;
    Input inputA, inputB, inputC, output, outputGradient;
    OptOutput generatingInputAGradient{}, generatingInputBGradient{}, generatingInputCGradient{};
  };
  void apply(const Forward& a) { apply(a.batchSize, a.inputA, a.inputB, a.inputC, a.output); }
  void applyBackward(const Backward& a) {
    applyBackward(a.batchSize, a.inputA, a.inputB, a.inputC, a.output, a.outputGradient, a.generatingInputAGradient,
                  a.generatingInputBGradient, a.generatingInputCGradient);
  }

 private:
  static BNNSArithmeticTernary fields(const Parameters& p) {
    return {p.inputA, detail::role(p.inputADescriptorType), p.inputB, detail::role(p.inputBDescriptorType),
            p.inputC, detail::role(p.inputCDescriptorType), p.output, detail::role(p.outputDescriptorType)};
  }
  TernaryArithmeticLayer(const Parameters& p, BNNSArithmeticTernary fields)
      : ArithmeticLayer(
            "TernaryArithmeticLayer", p.function, fields, p.activation, p.filterParameters,
            {detail::Operand(p.inputA, p.inputADescriptorType), detail::Operand(p.inputB, p.inputBDescriptorType),
             detail::Operand(p.inputC, p.inputCDescriptorType)},
            p.output) {}
};

}  // namespace bnns
