// OpenBNNS C++ overlay: the stages of a fused layer, their gradients, and how they become the structures of the C call.
//
// Swift's protocol FusableLayerParameters is a closed variant here. Parameter gradients are listed stage by stage:
//   convolution, transposed convolution, fully connected: weights, bias     normalization: beta, gamma
//   arithmetic, quantization: none (the gradients of arithmetic are the input gradients)
#pragma once

#include <variant>

#include "arithmetic.hpp"
#include "convolution.hpp"
#include "normalization.hpp"

namespace bnns {

struct FusedConvolutionParameters {
  ConvolutionType type = ConvolutionType::standard;
  Desc weights;
  OptDesc bias{};
  XY stride{};
  XY dilationStride{};
  std::size_t groupSize = 1;
  ConvolutionPadding padding{};
};
struct FusedFullyConnectedParameters {
  Desc weights;
  OptDesc bias{};
};
struct FusedNormalizationParameters {
  NormalizationType type;
  OptDesc beta{}, gamma{};
  float momentum = 0;
  float epsilon;
  ActivationFunction activation{};
};
struct FusedQuantizationParameters {
  OptDesc scale{}, bias{};
  std::optional<std::size_t> axis{};  ///< none: one scale and bias for the whole array
};
struct FusedDequantizationParameters {
  OptDesc scale{}, bias{};
  std::optional<std::size_t> axis{};
};
struct FusedUnaryArithmeticParameters {
  DescriptorType inputDescriptorType = DescriptorType::sample, outputDescriptorType = DescriptorType::sample;
  ArithmeticUnaryFunction function;
};
struct FusedBinaryArithmeticParameters {
  DescriptorType inputADescriptorType = DescriptorType::sample, inputBDescriptorType = DescriptorType::sample,
                 outputDescriptorType = DescriptorType::sample;
  ArithmeticBinaryFunction function;
};
struct FusedTernaryArithmeticParameters {
  DescriptorType inputADescriptorType = DescriptorType::sample, inputBDescriptorType = DescriptorType::sample,
                 inputCDescriptorType = DescriptorType::sample, outputDescriptorType = DescriptorType::sample;
  ArithmeticTernaryFunction function;
};
using FusableLayerParameters =
    std::variant<FusedConvolutionParameters, FusedFullyConnectedParameters, FusedNormalizationParameters,
                 FusedQuantizationParameters, FusedDequantizationParameters, FusedUnaryArithmeticParameters,
                 FusedBinaryArithmeticParameters, FusedTernaryArithmeticParameters>;

/// The gradients of a fused layer's parameters, in the order of its stages: {dw, db, dbeta, dgamma}, or an array or
/// vector of NDArray, of pointers to NDArray, or of descriptors. An entry of std::nullopt or without data is skipped.
class ParameterGradients {
 public:
  ParameterGradients() = default;
  ParameterGradients(std::initializer_list<OptOutput> list) {
    for (const OptOutput& gradient : list) add(gradient.descriptor());
  }
  template <class R>
  requires detail::ListOf<R, Output> ParameterGradients(R&& list) {
    const Outputs outputs(list);
    for (std::size_t i = 0; i < outputs.size(); ++i) add(*outputs[i].descriptor);
  }
  ParameterGradients(const ParameterGradients& o) { *this = o; }
  ParameterGradients& operator=(const ParameterGradients& o) {
    size_ = o.size_;
    for (std::size_t i = 0; i < size_ && i < most; ++i) descriptors_[i] = o.descriptors_[i];
    return *this;
  }

  std::size_t size() const noexcept { return size_; }

 private:
  friend class FusedLayer;
  static constexpr std::size_t most = 4;  // two stages of at most two
  void add(const Desc& d) {
    if (size_ < most) descriptors_[size_] = d;
    ++size_;  // too many are counted, and refused by the call
  }

  std::size_t size_ = 0;
  Desc descriptors_[most];
};

namespace detail {

// One stage as the C call wants it. The structures live until that call returns.
struct FusedStage {
  BNNSFilterType type{};
  const void* parameters = nullptr;
  std::size_t slots = 0;                // entries of generatingParameterGradients
  std::size_t arity = 1;                // inputs
  std::array<Expected, 2> parameter{};  // what those entries are gradients of
  std::array<DescriptorType, 3> role = {DescriptorType::sample, DescriptorType::sample, DescriptorType::sample};

  void fill(const FusedConvolutionParameters& p, std::span<const Desc> in, const Desc& out) {
    convolution.i_desc = in[0], convolution.w_desc = p.weights, convolution.o_desc = out;
    convolution.bias = orAbsent(p.bias);
    convolution.x_stride = p.stride.x, convolution.y_stride = p.stride.y;
    convolution.x_dilation_stride = p.dilationStride.x, convolution.y_dilation_stride = p.dilationStride.y;
    convolution.groups = p.groupSize;
    setPadding(p.padding, convolution);
    type = p.type == ConvolutionType::standard ? BNNSConvolution : BNNSTransposedConvolution;
    parameters = &convolution, slots = 2, parameter = {p.weights, p.bias};
  }
  void fill(const FusedFullyConnectedParameters& p, std::span<const Desc> in, const Desc& out) {
    dense.i_desc = in[0], dense.w_desc = p.weights, dense.o_desc = out, dense.bias = orAbsent(p.bias);
    type = BNNSFullyConnected, parameters = &dense, slots = 2, parameter = {p.weights, p.bias};
  }
  void fill(const FusedNormalizationParameters& p, std::span<const Desc> in, const Desc& out) {
    normalization = normalizationLayer(p.type, in[0], out, p.beta, p.gamma, p.momentum, p.epsilon, p.activation);
    type = p.type.filterType, parameters = &normalization, slots = 2, parameter = {p.beta, p.gamma};
  }
  void fill(const FusedQuantizationParameters& p, std::span<const Desc> in, const Desc& out) {
    quantize(BNNSQuantizerFunctionQuantize, p.scale, p.bias, p.axis, in[0], out);
  }
  void fill(const FusedDequantizationParameters& p, std::span<const Desc> in, const Desc& out) {
    quantize(BNNSQuantizerFunctionDequantize, p.scale, p.bias, p.axis, in[0], out);
  }
  void fill(const FusedUnaryArithmeticParameters& p, std::span<const Desc> in, const Desc& out) {
    one = {in[0], detail::role(p.inputDescriptorType), out, detail::role(p.outputDescriptorType)};
    role = {p.inputDescriptorType};
    compute(static_cast<BNNSArithmeticFunction>(p.function), &one, 1);
  }
  void fill(const FusedBinaryArithmeticParameters& p, std::span<const Desc> in, const Desc& out) {
    two = {in[0], detail::role(p.inputADescriptorType), input(in, 1), detail::role(p.inputBDescriptorType),
           out,   detail::role(p.outputDescriptorType)};
    role = {p.inputADescriptorType, p.inputBDescriptorType};
    compute(static_cast<BNNSArithmeticFunction>(p.function), &two, 2);
  }
  void fill(const FusedTernaryArithmeticParameters& p, std::span<const Desc> in, const Desc& out) {
    three = {in[0],        detail::role(p.inputADescriptorType), input(in, 1), detail::role(p.inputBDescriptorType),
             input(in, 2), detail::role(p.inputCDescriptorType), out,          detail::role(p.outputDescriptorType)};
    role = {p.inputADescriptorType, p.inputBDescriptorType, p.inputCDescriptorType};
    compute(static_cast<BNNSArithmeticFunction>(p.function), &three, 3);
  }

 private:
  static Desc input(std::span<const Desc> in, std::size_t i) { return i < in.size() ? in[i] : Desc{}; }
  void quantize(BNNSQuantizerFunction function, const OptDesc& scale, const OptDesc& bias,
                std::optional<std::size_t> axis, const Desc& in, const Desc& out) {
    quantization.function = function;
    quantization.axis_mask =
        axis ? axisMask(std::span(&*axis, 1), "FusedParametersLayer", Error::Code::unableToCreateLayer) : 0;
    quantization.i_desc = in, quantization.o_desc = out;
    quantization.scale = orAbsent(scale), quantization.bias = orAbsent(bias);
    type = BNNSQuantization, parameters = &quantization;
  }
  void compute(BNNSArithmeticFunction function, void* fields, std::size_t inputs) {
    arithmetic.arithmetic_function = function, arithmetic.arithmetic_function_fields = fields;
    type = BNNSArithmetic, parameters = &arithmetic, arity = inputs;
  }

  BNNSLayerParametersConvolution convolution{};
  BNNSLayerParametersFullyConnected dense{};
  BNNSLayerParametersNormalization normalization{};
  BNNSLayerParametersQuantization quantization{};
  BNNSLayerParametersArithmetic arithmetic{};
  BNNSArithmeticUnary one{};
  BNNSArithmeticBinary two{};
  BNNSArithmeticTernary three{};
};

// A fused filter, and what its calls take.
struct FusedFilter {
  BNNSFilter filter;
  std::size_t inputs, slots;
  std::array<Operand, 3> input{};
  Expected output{};
  std::array<Expected, 4> parameter{};
};

// Both stages, with a middle array of the output's shape between them: the caller gives none.
inline FusedFilter makeFused(const char* layer, std::span<const Desc> inputs, const Desc& output,
                             std::span<const FusableLayerParameters> stages, const OptFilterParams& options) {
  constexpr auto code = Error::Code::unableToCreateLayer;
  if (stages.size() != 2) {
    mistake(code, layer, "a fused layer has 2 stages, got " + std::to_string(stages.size()));
  }
  if (inputs.empty()) mistake(code, layer, "a fused layer has 1 to 3 inputs, got none");
  Desc middle = output;
  middle.data = nullptr;
  if (std::holds_alternative<FusedQuantizationParameters>(stages[1])) middle.data_type = BNNSDataTypeFloat32;
  FusedStage first, second;
  std::visit([&](const auto& p) { first.fill(p, inputs, middle); }, stages[0]);
  std::visit([&](const auto& p) { second.fill(p, std::span<const Desc>(&middle, 1), output); }, stages[1]);
  if (first.arity != inputs.size()) {
    mistake(code, layer,
            "the first stage takes " + std::to_string(first.arity) + " input(s), got " + std::to_string(inputs.size()));
  }
  const BNNSFilterType types[] = {first.type, second.type};
  const void* parameters[] = {first.parameters, second.parameters};
  FusedFilter made{::BNNSFilterCreateFusedLayer(2, types, parameters, pointer(options)), inputs.size(),
                   first.slots + second.slots};
  for (std::size_t i = 0; i < inputs.size(); ++i) made.input[i] = Operand(inputs[i], first.role[i]);
  made.output = output;
  for (std::size_t i = 0; i < first.slots; ++i) made.parameter[i] = first.parameter[i];
  for (std::size_t i = 0; i < second.slots; ++i) made.parameter[first.slots + i] = second.parameter[i];
  return made;
}

}  // namespace detail
}  // namespace bnns
