// OpenBNNS C++ overlay: pooling and unpooling.
#pragma once

#include "convolution.hpp"

namespace bnns {

/// Swift's BNNS.PoolingType: what is computed over a window, and where max pooling keeps the positions of its maxima.
class PoolingType {
 public:
  /// `indices` has one entry for each output element of the batch, laid out as the output is (gaps count too), and
  /// outlives the layer; empty: backward looks for the maxima again.
  static PoolingType max(std::span<std::size_t> indices = {}, std::size_t xDilationStride = 0,
                         std::size_t yDilationStride = 0) {
    return {BNNSPoolingFunctionMax, indices, xDilationStride, yDilationStride};
  }
  /// `indices`: one entry for each input element, as max pooling wrote them.
  static PoolingType unMax(std::span<std::size_t> indices, std::size_t xDilationStride = 0,
                           std::size_t yDilationStride = 0) {
    return {BNNSPoolingFunctionUnMax, indices, xDilationStride, yDilationStride};
  }
  /// The same with 32- or 64-bit indices, signed or not, in a descriptor of one sample.
  static PoolingType maxEx(const OptOutput& indicesDescriptor = {}, std::size_t xDilationStride = 0,
                           std::size_t yDilationStride = 0) {
    return {BNNSPoolingFunctionMax, indicesDescriptor, xDilationStride, yDilationStride,
            static_cast<bool>(indicesDescriptor)};
  }
  static PoolingType unMaxEx(const Input& indicesDescriptor, std::size_t xDilationStride = 0,
                             std::size_t yDilationStride = 0) {
    return {BNNSPoolingFunctionUnMax, indicesDescriptor, xDilationStride, yDilationStride, true};
  }
  static PoolingType average(bool countIncludesPadding) {
    return {countIncludesPadding ? BNNSPoolingFunctionAverageCountIncludePadding
                                 : BNNSPoolingFunctionAverageCountExcludePadding,
            std::span<std::size_t>(), 0, 0};
  }
  static PoolingType l2Norm() { return {BNNSPoolingFunctionL2Norm, std::span<std::size_t>(), 0, 0}; }

  BNNSPoolingFunction bnnsPoolingFunction() const noexcept { return function_; }

 private:
  friend class PoolingLayer;
  PoolingType(BNNSPoolingFunction function, std::span<std::size_t> indices, std::size_t x, std::size_t y)
      : function_(function), indices_(indices), xDilation_(x), yDilation_(y) {}
  PoolingType(BNNSPoolingFunction function, const detail::Argument& indices, std::size_t x, std::size_t y, bool given)
      : function_(function), extended_(true), xDilation_(x), yDilation_(y) {
    if (given) indicesDescriptor_ = View{indices.descriptor(), indices.batchSize(), indices.capacity()};
  }

  BNNSPoolingFunction function_;
  bool extended_ = false;  // the Ex calls
  std::span<std::size_t> indices_{};
  std::optional<View> indicesDescriptor_{};
  std::size_t xDilation_, yDilation_;
};

/// With filterParameters left out it copies bias at creation, and an optimizer's steps have no effect: to train it,
/// give useClientPointer.
class PoolingLayer : public Layer {
 public:
  struct Parameters {
    PoolingType type;
    Desc input, output;
    OptDesc bias{};
    ActivationFunction activation{};
    Extent kernelSize;
    XY stride{};
    ConvolutionPadding padding{};
    OptFilterParams filterParameters{};
  };
  explicit PoolingLayer(const Parameters& p)
      : Layer(create(p), "PoolingLayer", "BNNSFilterCreateLayerPooling"),
        type_(p.type),
        indexStride_(detail::batchStride(p.type.function_ == BNNSPoolingFunctionUnMax ? p.input : p.output)),
        input_(p.input),
        output_(p.output),
        bias_(p.bias) {}

  void apply(std::size_t batchSize, const Input& input, const Output& output) {
    const detail::Where where = call("apply");
    const BNNSFilter filter = live(where);
    const detail::Data x = detail::fitting(where, "input", input, input_, batchSize),
                       y = detail::fitting(where, "output", output, output_, batchSize);
    const Indices at = indices(where, batchSize);
    detail::check(type_.extended_ ? ::BNNSPoolingFilterApplyBatchEx(filter, batchSize, x.data, x.stride, y.data,
                                                                    y.stride, at.type, at.data, at.stride)
                                  : ::BNNSPoolingFilterApplyBatch(filter, batchSize, x.data, x.stride, y.data, y.stride,
                                                                  static_cast<std::size_t*>(at.data), at.stride),
                  where, type_.extended_ ? "BNNSPoolingFilterApplyBatchEx" : "BNNSPoolingFilterApplyBatch");
  }

  /// input may be without data where the layer has indices, output where it has no activation.
  void applyBackward(std::size_t batchSize, const Input& input, const Input& output, const Input& outputGradient,
                     const OptOutput& generatingInputGradient, const OptOutput& generatingBiasGradient = {}) {
    const detail::Where where = call("applyBackward");
    const BNNSFilter filter = live(where);
    const detail::Data x = detail::fittingIfGiven(where, "input", input, input_, batchSize),
                       y = detail::fittingIfGiven(where, "output", output, output_, batchSize);
    const auto dx = detail::describedIfGiven(where, "generatingInputGradient", generatingInputGradient, input_,
                                             batchSize),
               db = detail::describedIfGiven(where, "generatingBiasGradient", generatingBiasGradient, bias_),
               dy = detail::described(where, "outputGradient", outputGradient, output_, batchSize);
    const Indices at = indices(where, batchSize);
    detail::check(
        type_.extended_
            ? ::BNNSPoolingFilterApplyBackwardBatchEx(filter, batchSize, x.data, x.stride, dx.descriptor, dx.stride,
                                                      y.data, y.stride, dy.descriptor, dy.stride, db.descriptor,
                                                      at.type, at.data, at.stride)
            : ::BNNSPoolingFilterApplyBackwardBatch(filter, batchSize, x.data, x.stride, dx.descriptor, dx.stride,
                                                    y.data, y.stride, dy.descriptor, dy.stride, db.descriptor,
                                                    static_cast<const std::size_t*>(at.data), at.stride),
        where, type_.extended_ ? "BNNSPoolingFilterApplyBackwardBatchEx" : "BNNSPoolingFilterApplyBackwardBatch");
  }

  // The same calls with Swift's labels.
  struct Backward {
    std::size_t batchSize;
    Input input, output, outputGradient;
    OptOutput generatingInputGradient{}, generatingBiasGradient{};
  };
  void apply(const UnaryLayer::Forward& a) { apply(a.batchSize, a.input, a.output); }
  void applyBackward(const Backward& a) {
    applyBackward(a.batchSize, a.input, a.output, a.outputGradient, a.generatingInputGradient,
                  a.generatingBiasGradient);
  }

 private:
  struct Indices {
    BNNSDataType type;
    void* data;
    std::size_t stride;
  };
  // The C calls cannot know how many entries there are; a span and a descriptor do.
  Indices indices(const detail::Where& where, std::size_t batchSize) const {
    if (type_.extended_) {
      if (!type_.indicesDescriptor_) return {BNNSDataTypeUInt64, nullptr, 0};
      const View& d = *type_.indicesDescriptor_;
      const auto [count, span, stride] = detail::sampleSize(d);
      const std::size_t needed = type_.function_ == BNNSPoolingFunctionUnMax ? input_.span : output_.span;
      if (d.data && (span < needed || stride < indexStride_)) {
        detail::badArray(where, "indicesDescriptor has " + std::to_string(count) + " indices a sample over " +
                                    std::to_string(span) + ", the layer takes " + std::to_string(needed));
      }
      if (d.data && d.capacity < batchSize) detail::tooFewSamples(where, "indicesDescriptor", d.capacity, batchSize);
      return {d.data_type, d.data, stride};
    }
    if (type_.indices_.empty()) return {BNNSDataTypeUInt64, nullptr, 0};
    if (batchSize > 0 && type_.indices_.size() < detail::times(indexStride_, batchSize, where)) {
      detail::badArray(where, "indices hold " + std::to_string(type_.indices_.size()) + " entries, the batch has " +
                                  std::to_string(indexStride_ * batchSize));
    }
    return {BNNSDataTypeUInt64, type_.indices_.data(), indexStride_};
  }

  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersPooling layer{};
    layer.i_desc = p.input, layer.o_desc = p.output, layer.bias = detail::orAbsent(p.bias);
    layer.activation = p.activation.bnnsActivation(), layer.pooling_function = p.type.bnnsPoolingFunction();
    layer.k_width = p.kernelSize.width, layer.k_height = p.kernelSize.height;
    layer.x_stride = p.stride.x, layer.y_stride = p.stride.y;
    layer.x_dilation_stride = p.type.xDilation_, layer.y_dilation_stride = p.type.yDilation_;
    detail::setPadding(p.padding, layer);
    return ::BNNSFilterCreateLayerPooling(&layer, detail::pointer(p.filterParameters));
  }

  PoolingType type_;
  std::size_t indexStride_;
  detail::Expected input_, output_, bias_;
};

}  // namespace bnns
