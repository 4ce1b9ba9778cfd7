// OpenBNNS C++ overlay: reductions, embedding, and the largest elements along an axis.
#pragma once

#include "layer.hpp"

namespace bnns {

/// Swift's BNNS.ReductionFunction.
class ReductionFunction {
 public:
  static ReductionFunction max() { return {BNNSReduceFunctionMax}; }
  static ReductionFunction min() { return {BNNSReduceFunctionMin}; }
  static ReductionFunction argMax() { return {BNNSReduceFunctionArgMax}; }
  static ReductionFunction argMin() { return {BNNSReduceFunctionArgMin}; }
  static ReductionFunction maxIndex() { return argMax(); }  ///< the old name
  static ReductionFunction minIndex() { return argMin(); }  ///< the old name
  static ReductionFunction mean() { return {BNNSReduceFunctionMean}; }
  static ReductionFunction meanNonZero() { return {BNNSReduceFunctionMeanNonZero}; }
  static ReductionFunction sum() { return {BNNSReduceFunctionSum}; }
  static ReductionFunction product() { return {BNNSReduceFunctionProduct}; }
  static ReductionFunction sumOfSquares() { return {BNNSReduceFunctionSumSquare}; }
  static ReductionFunction sumOfAbsolutes() { return {BNNSReduceFunctionL1Norm}; }
  static ReductionFunction l2Norm() { return {BNNSReduceFunctionL2Norm}; }
  static ReductionFunction logSumExp() { return {BNNSReduceFunctionLogSumExp}; }
  static ReductionFunction sumOfLogs(float epsilon) { return {BNNSReduceFunctionSumLog, epsilon}; }
  static ReductionFunction logicalAnd() { return {BNNSReduceFunctionLogicalAnd}; }
  static ReductionFunction logicalOr() { return {BNNSReduceFunctionLogicalOr}; }
  static ReductionFunction all() { return {BNNSReduceFunctionAll}; }
  static ReductionFunction any() { return {BNNSReduceFunctionAny}; }
  static ReductionFunction logOfSum() { return {BNNSReduceFunctionLogSum}; }  ///< not in Swift
  static ReductionFunction none() { return {BNNSReduceFunctionNone}; }        ///< overwrite, of scatter

  BNNSReduceFunction bnnsReduceFunction() const noexcept { return function_; }
  float epsilon() const noexcept { return epsilon_; }

 private:
  ReductionFunction(BNNSReduceFunction function, float epsilon = 0) : function_(function), epsilon_(epsilon) {}
  BNNSReduceFunction function_;
  float epsilon_;
};

namespace detail {
inline BNNSLayerParametersReduction reductionLayer(const ReductionFunction& function, const Desc& input,
                                                   const Desc& output, const OptDesc& weights) {
  BNNSLayerParametersReduction layer{};
  layer.i_desc = input, layer.o_desc = output, layer.w_desc = orAbsent(weights);
  layer.reduce_func = function.bnnsReduceFunction(), layer.epsilon = function.epsilon();
  return layer;
}
}  // namespace detail

/// With filterParameters left out it copies weights at creation, and an optimizer's steps have no effect: to train
/// them, give useClientPointer.
///
/// Reduces the axes of which output has size 1.
class ReductionLayer : public UnaryLayer {
 public:
  struct Parameters {
    ReductionFunction function;
    Desc input, output;
    OptDesc weights{};
    OptFilterParams filterParameters{};
  };
  explicit ReductionLayer(const Parameters& p)
      : UnaryLayer(create(p), "ReductionLayer", "BNNSFilterCreateLayerReduction", {p.input, p.output, p.weights}) {}

  void applyBackward(std::size_t batchSize, const Input& input, const Input& output, const Input& outputGradient,
                     const OptOutput& generatingInputGradient, const OptOutput& generatingWeightsGradient = {}) {
    backward(batchSize, input, output, outputGradient, generatingInputGradient, generatingWeightsGradient, {});
  }
  /// The same call with Swift's labels.
  struct Backward {
    std::size_t batchSize;
    Input input, output, outputGradient;
    OptOutput generatingInputGradient{}, generatingWeightsGradient{};
  };
  void applyBackward(const Backward& a) {
    applyBackward(a.batchSize, a.input, a.output, a.outputGradient, a.generatingInputGradient,
                  a.generatingWeightsGradient);
  }

 private:
  static BNNSFilter create(const Parameters& p) {
    const BNNSLayerParametersReduction layer = detail::reductionLayer(p.function, p.input, p.output, p.weights);
    return ::BNNSFilterCreateLayerReduction(&layer, detail::pointer(p.filterParameters));
  }
};

/// Reduces once, without a layer: each sample of the arrays.
inline void applyReduction(const ReductionFunction& function, const Input& input, const Output& output,
                           const OptInput& weights = {}, const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "applyReduction";
  const std::size_t batch = detail::commonBatch(where, {{"input", input}, {"output", output}});
  if (weights) detail::requireOneSample(where, "weights", weights->batchSize());
  const OptDesc w = weights ? OptDesc(weights->descriptor()) : std::nullopt;
  for (std::size_t i = 0; i < batch; ++i) {
    const BNNSLayerParametersReduction layer =
        detail::reductionLayer(function, detail::sample(input, i), detail::sample(output, i), w);
    detail::check(::BNNSDirectApplyReduction(&layer, detail::pointer(filterParameters)), where,
                  "BNNSDirectApplyReduction");
  }
}

/// Swift's BNNS.Norm: p of a p-norm.
struct Norm {
  float rawValue;
  static const Norm taxicab, l1, euclidean, l2, maximum, lInfinity;
};
inline constexpr Norm Norm::taxicab{1}, Norm::l1{1}, Norm::euclidean{2}, Norm::l2{2},
    Norm::maximum{std::numeric_limits<float>::infinity()}, Norm::lInfinity{std::numeric_limits<float>::infinity()};

/// With filterParameters left out it copies the dictionary at creation, and an optimizer's steps have no effect: to
/// train, give useClientPointer.
///
/// A table lookup: input holds integers, output the items of the dictionary they name.
class EmbeddingLayer : public Layer {
 public:
  struct Parameters {
    Desc input, output, dictionary;
    std::size_t paddingIndex = static_cast<std::size_t>(-1);  ///< reads as zeros; the largest size_t: none does
    float maximumNorm = 0;                                    ///< longer items are scaled to this; 0: not
    Norm normType = Norm::l2;
    bool scalesGradientByFrequency = false;
    OptFilterParams filterParameters{};
  };
  explicit EmbeddingLayer(const Parameters& p)
      : Layer(create(p), "EmbeddingLayer", "BNNSFilterCreateLayerEmbedding"),
        input_(p.input),
        output_(p.output),
        dictionary_(p.dictionary) {}

  void apply(std::size_t batchSize, const Input& input, const Output& output) {
    const detail::Where where = call("apply");
    const BNNSFilter filter = live(where);
    const detail::Data x = detail::fitting(where, "input", input, input_, batchSize),
                       y = detail::fitting(where, "output", output, output_, batchSize);
    detail::applyOne(filter, where, batchSize, x, y);
  }
  void applyBackward(std::size_t batchSize, const Input& input, const Input& output, const Input& outputGradient,
                     const Output& generatingWeightsGradient) {
    const detail::Where where = call("applyBackward");
    const BNNSFilter filter = live(where);
    const detail::Data x = detail::fittingIfGiven(where, "input", input, input_, batchSize),
                       y = detail::fittingIfGiven(where, "output", output, output_, batchSize);
    const auto dy = detail::described(where, "outputGradient", outputGradient, output_, batchSize),
               dw = detail::described(where, "generatingWeightsGradient", generatingWeightsGradient, dictionary_);
    detail::applyOneBackward(filter, where, batchSize, x, {}, y, dy, dw, {});
  }

  // The same calls with Swift's labels.
  struct Backward {
    std::size_t batchSize;
    Input input, output, outputGradient;
    Output generatingWeightsGradient;
  };
  void apply(const UnaryLayer::Forward& a) { apply(a.batchSize, a.input, a.output); }
  void applyBackward(const Backward& a) {
    applyBackward(a.batchSize, a.input, a.output, a.outputGradient, a.generatingWeightsGradient);
  }

 private:
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersEmbedding layer{};
    if (p.scalesGradientByFrequency) layer.flags = BNNSEmbeddingFlagScaleGradientByFrequency;
    layer.i_desc = p.input, layer.o_desc = p.output, layer.dictionary = p.dictionary;
    layer.padding_idx = p.paddingIndex, layer.max_norm = p.maximumNorm, layer.norm_type = p.normType.rawValue;
    return ::BNNSFilterCreateLayerEmbedding(&layer, detail::pointer(p.filterParameters));
  }

  detail::Expected input_, output_, dictionary_;
};

/// The k largest elements along an axis, largest first, and where they are.
inline void applyTopK(std::size_t k, const Input& input, const Output& bestValues, const OptOutput& bestIndices,
                      std::size_t axis, std::size_t batchSize, const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "applyTopK";
  const auto x = detail::described(where, "input", input, {}, batchSize),
             y = detail::described(where, "bestValues", bestValues, {}, batchSize),
             at = detail::describedIfGiven(where, "bestIndices", bestIndices, {}, batchSize);
  detail::check(::BNNSDirectApplyTopK(k, axis, batchSize, x.descriptor, x.stride, y.descriptor, y.stride, at.descriptor,
                                      at.stride, detail::pointer(filterParameters)),
                where, "BNNSDirectApplyTopK");
}
/// Whether the elements that testIndices name are among the k largest along the axis.
inline void applyInTopK(std::size_t k, const Input& input, const Input& testIndices, const Output& output,
                        std::size_t axis, std::size_t batchSize, const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "applyInTopK";
  const auto x = detail::described(where, "input", input, {}, batchSize),
             at = detail::described(where, "testIndices", testIndices, {}, batchSize),
             y = detail::described(where, "output", output, {}, batchSize);
  detail::check(::BNNSDirectApplyInTopK(k, axis, batchSize, x.descriptor, x.stride, at.descriptor, at.stride,
                                        y.descriptor, y.stride, detail::pointer(filterParameters)),
                where, "BNNSDirectApplyInTopK");
}

}  // namespace bnns
