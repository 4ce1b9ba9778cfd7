// OpenBNNS C++ overlay: layers that are products: matrices, tensor contraction, Gram.
#pragma once

#include "layer.hpp"

namespace bnns {

/// With filterParameters left out it copies an operand that is weights at creation, and an optimizer's steps have no
/// effect: to train, give useClientPointer.
///
/// output = alpha * A * B, or added to the output. An operand marked as weights is taken from its descriptor when the
/// layer is made; quadratic multiplies A by itself.
class BroadcastMatrixMultiplyLayer : public UnaryLayer {
 public:
  struct Parameters {
    Desc inputA;
    bool aTransposed = false, aIsWeights = false;
    Desc inputB;
    bool bTransposed = false, bIsWeights = false;
    Desc output;
    float alpha = 1;
    bool accumulatesToOutput = false, isQuadratic = false;
    OptFilterParams filterParameters{};
  };
  explicit BroadcastMatrixMultiplyLayer(const Parameters& p)
      : UnaryLayer(create(p), "BroadcastMatrixMultiplyLayer", "BNNSFilterCreateLayerBroadcastMatMul", arrays(p)),
        operands_{p.inputA, p.inputB, p.output},
        read_(p.aIsWeights                    ? Read::b
              : p.bIsWeights || p.isQuadratic ? Read::a
                                              : Read::both) {}

  /// An operand that is weights, or B of a quadratic layer, is not read.
  void apply(std::size_t batchSize, const Input& inputA, const Input& inputB, const Output& output) {
    if (read_ != Read::both) return UnaryLayer::apply(batchSize, read_ == Read::a ? inputA : inputB, output);
    const detail::Where where = call("apply");
    operands_.apply(live(where), where, batchSize, inputA, inputB, output);
  }
  /// The gradient of an operand that is weights is summed over the batch.
  void applyBackward(std::size_t batchSize, const Input& inputA, const Input& inputB, const Input& output,
                     const Input& outputGradient, const OptOutput& generatingInputAGradient,
                     const OptOutput& generatingInputBGradient) {
    if (read_ == Read::a) {
      return backward(batchSize, inputA, output, outputGradient, generatingInputAGradient, generatingInputBGradient,
                      {});
    }
    if (read_ == Read::b) {
      return backward(batchSize, inputB, output, outputGradient, generatingInputBGradient, generatingInputAGradient,
                      {});
    }
    const detail::Where where = call("applyBackward");
    operands_.backward(live(where), where, batchSize, inputA, inputB, output, outputGradient, generatingInputAGradient,
                       generatingInputBGradient);
  }

  // The same calls with Swift's labels.
  void apply(const BinaryLayer::Forward& a) { apply(a.batchSize, a.inputA, a.inputB, a.output); }
  void applyBackward(const BinaryLayer::Backward& a) {
    applyBackward(a.batchSize, a.inputA, a.inputB, a.output, a.outputGradient, a.generatingInputAGradient,
                  a.generatingInputBGradient);
  }

 private:
  enum class Read { both, a, b };

  static Arrays arrays(const Parameters& p) {
    if (p.aIsWeights) return {p.inputB, p.output, p.inputA, {}};
    return {p.inputA, p.output, p.inputB, {}};
  }
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersBroadcastMatMul layer{};
    layer.alpha = p.alpha, layer.beta = p.accumulatesToOutput ? 1.0f : 0.0f;
    layer.transA = p.aTransposed, layer.transB = p.bTransposed, layer.quadratic = p.isQuadratic;
    layer.a_is_weights = p.aIsWeights, layer.b_is_weights = p.bIsWeights;
    layer.iA_desc = p.inputA, layer.iB_desc = p.inputB, layer.o_desc = p.output;
    return ::BNNSFilterCreateLayerBroadcastMatMul(&layer, detail::pointer(p.filterParameters));
  }

  detail::TwoInputs operands_;
  Read read_;
};

/// With filterParameters left out it copies an operand that is weights at creation, and an optimizer's steps have no
/// effect: to train, give useClientPointer.
///
/// A contraction in index notation, such as "a_ip, b_iq -> o_pq" (not in Swift). An operand whose name begins with w is
/// weights; equal names contract an array with itself.
class TensorContractionLayer : public BinaryLayer {
 public:
  struct Parameters {
    std::string operation;
    float alpha = 1;
    bool accumulatesToOutput = false;
    Desc inputA;
    OptDesc inputB{};
    Desc output;
    OptFilterParams filterParameters{};
  };
  explicit TensorContractionLayer(const Parameters& p)
      : BinaryLayer(create(p), "TensorContractionLayer", "BNNSFilterCreateLayerTensorContraction",
                    {p.inputA, p.inputB, p.output}),
        firstIsWeights_(firstLetter(p.operation) == 'w') {}

  // Two inputs.
  using BinaryLayer::apply;
  using BinaryLayer::applyBackward;

  // One input: the other operand is weights, or there is none.
  void apply(std::size_t batchSize, const Input& input, const Output& output) {
    const detail::Where where = call("apply");
    const BNNSFilter filter = live(where);
    const detail::Data x = detail::fitting(where, "input", input, operand(), batchSize),
                       y = detail::fitting(where, "output", output, expected().output, batchSize);
    detail::applyOne(filter, where, batchSize, x, y);
  }
  void applyBackward(std::size_t batchSize, const Input& input, const Input& output, const Input& outputGradient,
                     const OptOutput& generatingInputGradient, const OptOutput& generatingWeightsGradient = {}) {
    const detail::Where where = call("applyBackward");
    const BNNSFilter filter = live(where);
    const detail::Data x = detail::fittingIfGiven(where, "input", input, operand(), batchSize),
                       y = detail::fittingIfGiven(where, "output", output, expected().output, batchSize);
    const auto dy = detail::described(where, "outputGradient", outputGradient, expected().output, batchSize),
               dx = detail::describedIfGiven(where, "generatingInputGradient", generatingInputGradient, operand(),
                                             batchSize),
               dw = detail::describedIfGiven(where, "generatingWeightsGradient", generatingWeightsGradient,
                                             firstIsWeights_ ? expected().a : expected().b);
    detail::applyOneBackward(filter, where, batchSize, x, dx, y, dy, dw, {});
  }

 private:
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersTensorContraction layer{};
    layer.operation = p.operation.c_str(), layer.alpha = p.alpha, layer.beta = p.accumulatesToOutput ? 1.0f : 0.0f;
    layer.iA_desc = p.inputA, layer.iB_desc = detail::orAbsent(p.inputB), layer.o_desc = p.output;
    return ::BNNSFilterCreateLayerTensorContraction(&layer, detail::pointer(p.filterParameters));
  }
  static char firstLetter(const std::string& operation) {
    const std::size_t at = operation.find_first_not_of(" \t\n");
    return at == std::string::npos ? '\0' : operation[at];
  }
  // What the calls with one input take.
  const detail::Expected& operand() const noexcept { return firstIsWeights_ ? expected().b : expected().a; }

  bool firstIsWeights_;
};

/// Products of all pairs of channels: G(f, c) = alpha * sum of x(f) * x(c).
class GramLayer : public UnaryLayer {
 public:
  struct Parameters {
    Desc input, output;
    float alpha;
    OptFilterParams filterParameters{};
  };
  explicit GramLayer(const Parameters& p)
      : UnaryLayer(create(p), "GramLayer", "BNNSFilterCreateLayerGram", {p.input, p.output}) {}

 private:
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersGram layer{};
    layer.alpha = p.alpha, layer.i_desc = p.input, layer.o_desc = p.output;
    return ::BNNSFilterCreateLayerGram(&layer, detail::pointer(p.filterParameters));
  }
};

}  // namespace bnns
