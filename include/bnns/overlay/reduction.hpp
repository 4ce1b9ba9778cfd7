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

/// Reduces the axes of which output has size 1.
class ReductionLayer : public UnaryLayer {
 public:
  struct Parameters {
    ReductionFunction function;
    Desc input, output;
    OptDesc weights{};
    OptFilterParams filterParameters{};
  };
  explicit ReductionLayer(const Parameters& p) : UnaryLayer(create(p), "BNNSFilterCreateLayerReduction") {}

  using UnaryLayer::applyBackward;
  void applyBackward(std::size_t batchSize, const Desc& input, const Desc& output, const Desc& outputGradient,
                     const OptDesc& generatingInputGradient, const OptDesc& generatingWeightsGradient) {
    backward(batchSize, input, output, outputGradient, generatingInputGradient, generatingWeightsGradient, {});
  }

 private:
  static BNNSFilter create(const Parameters& p) {
    const BNNSLayerParametersReduction layer = detail::reductionLayer(p.function, p.input, p.output, p.weights);
    return ::BNNSFilterCreateLayerReduction(&layer, detail::pointer(p.filterParameters));
  }
};

/// Reduces once, without a layer.
inline void applyReduction(const ReductionFunction& function, const Desc& input, const Desc& output,
                           const OptDesc& weights = {}, const OptFilterParams& filterParameters = {}) {
  const BNNSLayerParametersReduction layer = detail::reductionLayer(function, input, output, weights);
  detail::check(::BNNSDirectApplyReduction(&layer, detail::pointer(filterParameters)), "BNNSDirectApplyReduction");
}

/// Swift's BNNS.Norm: p of a p-norm.
struct Norm {
  float rawValue;
  static const Norm taxicab, l1, euclidean, l2, maximum, lInfinity;
};
inline constexpr Norm Norm::taxicab{1}, Norm::l1{1}, Norm::euclidean{2}, Norm::l2{2},
    Norm::maximum{std::numeric_limits<float>::infinity()}, Norm::lInfinity{std::numeric_limits<float>::infinity()};

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
  explicit EmbeddingLayer(const Parameters& p) : Layer(create(p), "BNNSFilterCreateLayerEmbedding") {}

  void apply(std::size_t batchSize, const Desc& input, const Desc& output) {
    constexpr auto function = "BNNSFilterApplyBatch";
    detail::check(::BNNSFilterApplyBatch(live(function), batchSize, detail::requireData(input, "input"),
                                         detail::batchStride(input), detail::requireData(output, "output"),
                                         detail::batchStride(output)),
                  function);
  }
  void applyBackward(std::size_t batchSize, const Desc& input, const Desc& output, const Desc& outputGradient,
                     const Desc& generatingWeightsGradient) {
    constexpr auto function = "BNNSFilterApplyBackwardBatch";
    const BNNSFilter filter = live(function);
    detail::Gradient dw(generatingWeightsGradient, "generatingWeightsGradient");
    detail::requireData(outputGradient, "outputGradient");
    detail::check(::BNNSFilterApplyBackwardBatch(filter, batchSize, input.data, detail::batchStride(input), nullptr, 0,
                                                 output.data, detail::batchStride(output), &outputGradient,
                                                 detail::batchStride(outputGradient), &dw.descriptor, nullptr),
                  function);
  }

 private:
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersEmbedding layer{};
    if (p.scalesGradientByFrequency) layer.flags = BNNSEmbeddingFlagScaleGradientByFrequency;
    layer.i_desc = p.input, layer.o_desc = p.output, layer.dictionary = p.dictionary;
    layer.padding_idx = p.paddingIndex, layer.max_norm = p.maximumNorm, layer.norm_type = p.normType.rawValue;
    return ::BNNSFilterCreateLayerEmbedding(&layer, detail::pointer(p.filterParameters));
  }
};

/// The k largest elements along an axis, largest first, and where they are.
inline void applyTopK(std::size_t k, const Desc& input, const Desc& bestValues, const OptDesc& bestIndices,
                      std::size_t axis, std::size_t batchSize, const OptFilterParams& filterParameters = {}) {
  Desc values = bestValues;
  detail::Gradient indices(bestIndices, "bestIndices");
  detail::check(::BNNSDirectApplyTopK(k, axis, batchSize, &input, detail::batchStride(input), &values,
                                      detail::batchStride(values), indices.pointer(), indices.stride,
                                      detail::pointer(filterParameters)),
                "BNNSDirectApplyTopK");
}
/// Whether the elements that testIndices name are among the k largest along the axis.
inline void applyInTopK(std::size_t k, const Desc& input, const Desc& testIndices, const Desc& output, std::size_t axis,
                        std::size_t batchSize, const OptFilterParams& filterParameters = {}) {
  Desc y = output;
  detail::check(::BNNSDirectApplyInTopK(k, axis, batchSize, &input, detail::batchStride(input), &testIndices,
                                        detail::batchStride(testIndices), &y, detail::batchStride(y),
                                        detail::pointer(filterParameters)),
                "BNNSDirectApplyInTopK");
}

}  // namespace bnns
