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
  explicit LossLayer(const Parameters& p)
      : Layer(create(p), "LossLayer", "BNNSFilterCreateLayerLoss"), input_(p.input), output_(p.output) {
    if (detail::rankOf(p.output.layout) == 0 && output_.type == 0) output_.type = input_.type;
    const BNNSLossFunction f = p.lossFunction.function_;
    const bool perSample = f == BNNSLossFunctionSoftmaxCrossEntropy || f == BNNSLossFunctionCosineDistance ||
                           f == BNNSLossFunctionCategoricalCrossEntropy;
    terms_ = p.lossReduction != LossReduction::none ? 0 : perSample ? 1 : input_.count;
  }

  /// The loss, and the gradient of what was written to output. labels have the shape and the type of input.
  void apply(std::size_t batchSize, const Input& input, const Input& labels, const Output& output,
             const OptOutput& generatingInputGradient) {
    apply(batchSize, input, labels, output, {}, false, generatingInputGradient);
  }
  /// weights: one number if broadcastsWeights, else as many as samples, or as inputs of the whole batch.
  void apply(std::size_t batchSize, const Input& input, const Input& labels, const Output& output,
             const OptInput& weights, bool broadcastsWeights, const OptOutput& generatingInputGradient) {
    const detail::Where where = call("apply");
    const BNNSFilter filter = live(where);
    const detail::Data x = detail::fitting(where, "input", input, input_, batchSize),
                       l = detail::fitting(where, "labels", labels, input_, batchSize);
    const Weights w = weightsOf(where, weights, broadcastsWeights);
    const auto dx =
        detail::describedIfGiven(where, "generatingInputGradient", generatingInputGradient, input_, batchSize);
    detail::check(::BNNSLossFilterApplyBatch(filter, batchSize, x.data, x.stride, l.data, l.stride, w.data, w.count,
                                             losses(where, output, batchSize), dx.descriptor, dx.stride),
                  where, "BNNSLossFilterApplyBatch");
  }

  /// The gradient of the input, given that of the output (BNNSLossFilterApplyBackwardBatch; not in Swift).
  void applyBackward(std::size_t batchSize, const Input& input, const Input& labels, const Input& outputGradient,
                     const Output& generatingInputGradient, const OptInput& weights = {},
                     bool broadcastsWeights = false) {
    const detail::Where where = call("applyBackward");
    const BNNSFilter filter = live(where);
    const detail::Data x = detail::fitting(where, "input", input, input_, batchSize),
                       l = detail::fitting(where, "labels", labels, input_, batchSize);
    const Weights w = weightsOf(where, weights, broadcastsWeights);
    const auto dx = detail::described(where, "generatingInputGradient", generatingInputGradient, input_, batchSize),
               dy = detail::described(where, "outputGradient", outputGradient, {}, terms_ == 0 ? 1 : batchSize);
    detail::check(::BNNSLossFilterApplyBackwardBatch(filter, batchSize, x.data, x.stride, dx.descriptor, dx.stride,
                                                     l.data, l.stride, w.data, w.count, dy.descriptor, dy.stride),
                  where, "BNNSLossFilterApplyBackwardBatch");
  }

  // The same calls with Swift's labels.
  struct Forward {
    std::size_t batchSize;
    Input input, labels;
    Output output;
    OptInput weights{};
    bool broadcastsWeights = false;
    OptOutput generatingInputGradient{};
  };
  struct Backward {
    std::size_t batchSize;
    Input input, labels, outputGradient;
    Output generatingInputGradient;
    OptInput weights{};
    bool broadcastsWeights = false;
  };
  void apply(const Forward& a) {
    apply(a.batchSize, a.input, a.labels, a.output, a.weights, a.broadcastsWeights, a.generatingInputGradient);
  }
  void applyBackward(const Backward& a) {
    applyBackward(a.batchSize, a.input, a.labels, a.outputGradient, a.generatingInputGradient, a.weights,
                  a.broadcastsWeights);
  }

 private:
  struct Weights {
    const void* data = nullptr;
    std::size_t count = 0;
  };
  // All numbers of an array, whether they are one shape or samples of it; the C call says how many it takes.
  Weights weightsOf(const detail::Where& where, const OptInput& weights, bool broadcasts) const {
    if (!weights) return {};
    detail::Expected e = weights->descriptor();
    e.type = input_.type;
    const detail::Data w = detail::fitting(where, "weights", *weights, e, weights->batchSize());
    if (e.count != e.span) detail::badArray(where, "weights have gaps, expected numbers one after the other");
    return {w.data, broadcasts ? 1 : e.count * weights->batchSize()};
  }
  // The losses are written one after the other: one number, or the terms of every sample.
  void* losses(const detail::Where& where, const Output& output, std::size_t batchSize) const {
    void* y = detail::requireData(where, "output", output);
    detail::Expected e = output.descriptor();
    e.type = output_.type;
    detail::fit(where, "output", output, e, 0);
    const std::size_t needed = terms_ == 0 ? 1 : terms_ * batchSize;
    if (output.capacity() != detail::anyCapacity && e.count * output.capacity() < needed) {
      detail::badArray(where, "output holds " + std::to_string(e.count * output.capacity()) +
                                  " losses, the batch has " + std::to_string(needed));
    }
    return y;
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

  detail::Expected input_, output_;
  std::size_t terms_ = 0;  // losses of a sample that are written; 0: they are reduced to one number
};

}  // namespace bnns
