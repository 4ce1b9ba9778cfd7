// OpenBNNS C++ overlay: layers that are products: matrices, tensor contraction, Gram.
#pragma once

#include "layer.hpp"

namespace bnns {

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
      : UnaryLayer(create(p), "BNNSFilterCreateLayerBroadcastMatMul"),
        oneInput_(p.aIsWeights    ? Input::b
                  : p.bIsWeights  ? Input::a
                  : p.isQuadratic ? Input::a
                                  : Input::both) {}

  /// An operand that is weights, or B of a quadratic layer, is not read.
  void apply(std::size_t batchSize, const Desc& inputA, const Desc& inputB, const Desc& output) {
    if (oneInput_ != Input::both) return UnaryLayer::apply(batchSize, oneInput_ == Input::a ? inputA : inputB, output);
    constexpr auto function = "BNNSFilterApplyTwoInputBatch";
    detail::check(::BNNSFilterApplyTwoInputBatch(live(function), batchSize, detail::requireData(inputA, "inputA"),
                                                 detail::batchStride(inputA), detail::requireData(inputB, "inputB"),
                                                 detail::batchStride(inputB), detail::requireData(output, "output"),
                                                 detail::batchStride(output)),
                  function);
  }
  /// The gradient of an operand that is weights is summed over the batch.
  void applyBackward(std::size_t batchSize, const Desc& inputA, const Desc& inputB, const Desc& output,
                     const Desc& outputGradient, const OptDesc& generatingInputAGradient,
                     const OptDesc& generatingInputBGradient) {
    if (oneInput_ == Input::a) {
      return backward(batchSize, inputA, output, outputGradient, generatingInputAGradient, generatingInputBGradient,
                      {});
    }
    if (oneInput_ == Input::b) {
      return backward(batchSize, inputB, output, outputGradient, generatingInputBGradient, generatingInputAGradient,
                      {});
    }
    constexpr auto function = "BNNSFilterApplyBackwardTwoInputBatch";
    const BNNSFilter filter = live(function);
    detail::Gradient da(generatingInputAGradient, "generatingInputAGradient"),
        db(generatingInputBGradient, "generatingInputBGradient");
    detail::requireData(outputGradient, "outputGradient");
    detail::check(::BNNSFilterApplyBackwardTwoInputBatch(
                      filter, batchSize, inputA.data, detail::batchStride(inputA), da.pointer(), da.stride, inputB.data,
                      detail::batchStride(inputB), db.pointer(), db.stride, output.data, detail::batchStride(output),
                      &outputGradient, detail::batchStride(outputGradient), nullptr, nullptr),
                  function);
  }

 private:
  enum class Input { both, a, b };

  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersBroadcastMatMul layer{};
    layer.alpha = p.alpha, layer.beta = p.accumulatesToOutput ? 1.0f : 0.0f;
    layer.transA = p.aTransposed, layer.transB = p.bTransposed, layer.quadratic = p.isQuadratic;
    layer.a_is_weights = p.aIsWeights, layer.b_is_weights = p.bIsWeights;
    layer.iA_desc = p.inputA, layer.iB_desc = p.inputB, layer.o_desc = p.output;
    return ::BNNSFilterCreateLayerBroadcastMatMul(&layer, detail::pointer(p.filterParameters));
  }

  Input oneInput_;
};

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
      : BinaryLayer(create(p), "BNNSFilterCreateLayerTensorContraction") {}

  // Two inputs.
  using BinaryLayer::apply;
  using BinaryLayer::applyBackward;

  // One input: the other operand is weights, or there is none.
  void apply(std::size_t batchSize, const Desc& input, const Desc& output) {
    constexpr auto function = "BNNSFilterApplyBatch";
    detail::check(::BNNSFilterApplyBatch(live(function), batchSize, detail::requireData(input, "input"),
                                         detail::batchStride(input), detail::requireData(output, "output"),
                                         detail::batchStride(output)),
                  function);
  }
  void applyBackward(std::size_t batchSize, const Desc& input, const Desc& output, const Desc& outputGradient,
                     const OptDesc& generatingInputGradient, const OptDesc& generatingWeightsGradient = {}) {
    constexpr auto function = "BNNSFilterApplyBackwardBatch";
    const BNNSFilter filter = live(function);
    detail::Gradient dx(generatingInputGradient, "generatingInputGradient"),
        dw(generatingWeightsGradient, "generatingWeightsGradient");
    detail::requireData(outputGradient, "outputGradient");
    detail::check(
        ::BNNSFilterApplyBackwardBatch(filter, batchSize, input.data, detail::batchStride(input), dx.pointer(),
                                       dx.stride, output.data, detail::batchStride(output), &outputGradient,
                                       detail::batchStride(outputGradient), dw.pointer(), nullptr),
        function);
  }

 private:
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersTensorContraction layer{};
    layer.operation = p.operation.c_str(), layer.alpha = p.alpha, layer.beta = p.accumulatesToOutput ? 1.0f : 0.0f;
    layer.iA_desc = p.inputA, layer.iB_desc = detail::orAbsent(p.inputB), layer.o_desc = p.output;
    return ::BNNSFilterCreateLayerTensorContraction(&layer, detail::pointer(p.filterParameters));
  }
};

/// Products of all pairs of channels: G(f, c) = alpha * sum of x(f) * x(c).
class GramLayer : public UnaryLayer {
 public:
  struct Parameters {
    Desc input, output;
    float alpha;
    OptFilterParams filterParameters{};
  };
  explicit GramLayer(const Parameters& p) : UnaryLayer(create(p), "BNNSFilterCreateLayerGram") {}

 private:
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersGram layer{};
    layer.alpha = p.alpha, layer.i_desc = p.input, layer.o_desc = p.output;
    return ::BNNSFilterCreateLayerGram(&layer, detail::pointer(p.filterParameters));
  }
};

}  // namespace bnns
