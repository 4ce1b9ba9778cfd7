// OpenBNNS C++ overlay: losses.
#pragma once

#include "layer.hpp"

namespace bnns {

/// Swift's BNNS.LossFunction.YoloParameters.
struct YoloParameters {
  float huberDelta;
  std::size_t gridColumnCount, gridRowsCount, anchorBoxCount, anchorBoxSize;
  bool rescore;
  float xyScale, whScale, objectScale, noObjectScale, classificationScale, objectMinimumIoU, noObjectMaximumIoU;
  float* anchorsData;  ///< width and height of each anchor box
};

/// Swift's BNNS.LossFunction.
class LossFunction {
 public:
  using YoloParameters = bnns::YoloParameters;

  static LossFunction softmaxCrossEntropy(float labelSmoothing) {
    return {BNNSLossFunctionSoftmaxCrossEntropy, labelSmoothing};
  }
  static LossFunction sigmoidCrossEntropy(float labelSmoothing) {
    return {BNNSLossFunctionSigmoidCrossEntropy, labelSmoothing};
  }
  static LossFunction meanSquareError() { return {BNNSLossFunctionMeanSquareError}; }
  static LossFunction huber(float huberDelta) { return {BNNSLossFunctionHuber, huberDelta}; }
  static LossFunction yolo(const YoloParameters& parameters) {
    LossFunction f{BNNSLossFunctionYolo};
    f.yolo_ = parameters;
    return f;
  }
  static LossFunction log() { return {BNNSLossFunctionLog}; }
  static LossFunction cosineDistance() { return {BNNSLossFunctionCosineDistance}; }
  static LossFunction hinge() { return {BNNSLossFunctionHinge}; }
  static LossFunction meanAbsoluteError() { return {BNNSLossFunctionMeanAbsoluteError}; }
  static LossFunction categoricalCrossEntropy() { return {BNNSLossFunctionCategoricalCrossEntropy}; }

  BNNSLossFunction bnnsLossFunction() const noexcept { return function_; }

 private:
  friend class LossLayer;
  LossFunction(BNNSLossFunction function, float number = 0) : function_(function), number_(number) {}

  BNNSLossFunction function_;
  float number_;  // label smoothing, or the delta of Huber
  YoloParameters yolo_{};
};

enum class LossReduction : std::uint32_t {
  none = BNNSLossReductionNone,
  sum = BNNSLossReductionSum,
  weightedMean = BNNSLossReductionWeightedMean,
  reductionMean = BNNSLossReductionMean,
  zeroWeightMean = BNNSLossReductionNonZeroWeightMean,
};

class LossLayer : public Layer {
 public:
  struct Parameters {
    Desc input, output;
    LossFunction lossFunction;
    LossReduction lossReduction;
    OptFilterParams filterParameters{};
  };
  explicit LossLayer(const Parameters& p) : Layer(create(p), "BNNSFilterCreateLayerLoss") {}

  /// The loss, and the gradient of what was written to output.
  void apply(std::size_t batchSize, const Desc& input, const Desc& labels, const Desc& output,
             const OptDesc& generatingInputGradient) {
    apply(batchSize, input, labels, output, {}, false, generatingInputGradient);
  }
  /// weights: one number if broadcastsWeights, else as many as samples, or as inputs of the whole batch.
  void apply(std::size_t batchSize, const Desc& input, const Desc& labels, const Desc& output, const OptDesc& weights,
             bool broadcastsWeights, const OptDesc& generatingInputGradient) {
    constexpr auto function = "BNNSLossFilterApplyBatch";
    const BNNSFilter filter = live(function);
    detail::Gradient dx(generatingInputGradient, "generatingInputGradient");
    detail::check(::BNNSLossFilterApplyBatch(
                      filter, batchSize, detail::requireData(input, "input"), detail::batchStride(input),
                      detail::requireData(labels, "labels"), detail::batchStride(labels),
                      weights ? detail::requireData(*weights, "weights") : nullptr, count(weights, broadcastsWeights),
                      detail::requireData(output, "output"), dx.pointer(), dx.stride),
                  function);
  }

  /// The gradient of the input, given that of the output (BNNSLossFilterApplyBackwardBatch; not in Swift).
  void applyBackward(std::size_t batchSize, const Desc& input, const Desc& labels, const Desc& outputGradient,
                     const Desc& generatingInputGradient, const OptDesc& weights = {}, bool broadcastsWeights = false) {
    constexpr auto function = "BNNSLossFilterApplyBackwardBatch";
    const BNNSFilter filter = live(function);
    detail::Gradient dx(generatingInputGradient, "generatingInputGradient");
    detail::requireData(outputGradient, "outputGradient");
    detail::check(::BNNSLossFilterApplyBackwardBatch(
                      filter, batchSize, detail::requireData(input, "input"), detail::batchStride(input),
                      &dx.descriptor, dx.stride, detail::requireData(labels, "labels"), detail::batchStride(labels),
                      weights ? detail::requireData(*weights, "weights") : nullptr, count(weights, broadcastsWeights),
                      &outputGradient, detail::batchStride(outputGradient)),
                  function);
  }

 private:
  static std::size_t count(const OptDesc& weights, bool broadcasts) {
    return !weights ? 0 : broadcasts ? 1 : detail::elementCount(*weights);
  }

  // Every structure begins with the same four fields; only the function tells how it goes on.
  template <class Structure>
  static Structure begin(const Parameters& p) {
    Structure layer{};
    layer.function = p.lossFunction.function_, layer.i_desc = p.input, layer.o_desc = p.output;
    layer.reduction = static_cast<BNNSLossReductionFunction>(p.lossReduction);
    return layer;
  }
  static BNNSFilter create(const Parameters& p) {
    const BNNSFilterParameters* options = detail::pointer(p.filterParameters);
    switch (p.lossFunction.function_) {
      case BNNSLossFunctionSoftmaxCrossEntropy: {
        auto layer = begin<BNNSLayerParametersLossSoftmaxCrossEntropy>(p);
        layer.label_smooth = p.lossFunction.number_;
        return ::BNNSFilterCreateLayerLoss(&layer, options);
      }
      case BNNSLossFunctionSigmoidCrossEntropy: {
        auto layer = begin<BNNSLayerParametersLossSigmoidCrossEntropy>(p);
        layer.label_smooth = p.lossFunction.number_;
        return ::BNNSFilterCreateLayerLoss(&layer, options);
      }
      case BNNSLossFunctionHuber: {
        auto layer = begin<BNNSLayerParametersLossHuber>(p);
        layer.huber_delta = p.lossFunction.number_;
        return ::BNNSFilterCreateLayerLoss(&layer, options);
      }
      case BNNSLossFunctionYolo: {
        auto layer = begin<BNNSLayerParametersLossYolo>(p);
        const YoloParameters& y = p.lossFunction.yolo_;
        layer.huber_delta = y.huberDelta, layer.rescore = y.rescore, layer.anchors_data = y.anchorsData;
        layer.number_of_grid_columns = y.gridColumnCount, layer.number_of_grid_rows = y.gridRowsCount;
        layer.number_of_anchor_boxes = y.anchorBoxCount, layer.anchor_box_size = y.anchorBoxSize;
        layer.scale_xy = y.xyScale, layer.scale_wh = y.whScale, layer.scale_object = y.objectScale;
        layer.scale_no_object = y.noObjectScale, layer.scale_classification = y.classificationScale;
        layer.object_minimum_iou = y.objectMinimumIoU, layer.no_object_maximum_iou = y.noObjectMaximumIoU;
        return ::BNNSFilterCreateLayerLoss(&layer, options);
      }
      default: {
        auto layer = begin<BNNSLayerParametersLossBase>(p);
        return ::BNNSFilterCreateLayerLoss(&layer, options);
      }
    }
  }
};

}  // namespace bnns
