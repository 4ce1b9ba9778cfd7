// OpenBNNS C++ overlay: pooling and unpooling.
#pragma once

#include "convolution.hpp"

namespace bnns {

/// Swift's BNNS.PoolingType: what is computed over a window, and where max pooling keeps the positions of its maxima.
class PoolingType {
 public:
  /// `indices` has one entry for each output element of the batch and outlives the layer; empty: backward looks for the
  /// maxima again.
  static PoolingType max(std::span<std::size_t> indices = {}, std::size_t xDilationStride = 0,
                         std::size_t yDilationStride = 0) {
    return {BNNSPoolingFunctionMax, indices, xDilationStride, yDilationStride};
  }
  /// `indices`: one entry for each input element, as max pooling wrote them.
  static PoolingType unMax(std::span<std::size_t> indices, std::size_t xDilationStride = 0,
                           std::size_t yDilationStride = 0) {
    return {BNNSPoolingFunctionUnMax, indices, xDilationStride, yDilationStride};
  }
  /// The same with 32- or 64-bit unsigned indices in a descriptor, of one sample.
  static PoolingType maxEx(const OptDesc& indicesDescriptor = {}, std::size_t xDilationStride = 0,
                           std::size_t yDilationStride = 0) {
    return {BNNSPoolingFunctionMax, indicesDescriptor, xDilationStride, yDilationStride};
  }
  static PoolingType unMaxEx(const Desc& indicesDescriptor, std::size_t xDilationStride = 0,
                             std::size_t yDilationStride = 0) {
    return {BNNSPoolingFunctionUnMax, OptDesc(indicesDescriptor), xDilationStride, yDilationStride};
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
  PoolingType(BNNSPoolingFunction function, const OptDesc& indices, std::size_t x, std::size_t y)
      : function_(function), extended_(true), indicesDescriptor_(indices), xDilation_(x), yDilation_(y) {}

  BNNSPoolingFunction function_;
  bool extended_ = false;  // the Ex calls
  std::span<std::size_t> indices_{};
  OptDesc indicesDescriptor_{};
  std::size_t xDilation_, yDilation_;
};

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
      : Layer(create(p), "BNNSFilterCreateLayerPooling"),
        type_(p.type),
        indexStride_(detail::batchStride(p.type.function_ == BNNSPoolingFunctionUnMax ? p.input : p.output)) {}

  void apply(std::size_t batchSize, const Desc& input, const Desc& output) {
    const char* function = type_.extended_ ? "BNNSPoolingFilterApplyBatchEx" : "BNNSPoolingFilterApplyBatch";
    const BNNSFilter filter = live(function);
    const void* x = detail::requireData(input, "input");
    void* y = detail::requireData(output, "output");
    const Indices at = indices(batchSize);
    const std::size_t dx = detail::batchStride(input), dy = detail::batchStride(output);
    detail::check(type_.extended_
                      ? ::BNNSPoolingFilterApplyBatchEx(filter, batchSize, x, dx, y, dy, at.type, at.data, at.stride)
                      : ::BNNSPoolingFilterApplyBatch(filter, batchSize, x, dx, y, dy,
                                                      static_cast<std::size_t*>(at.data), at.stride),
                  function);
  }

  /// input may be without data where the layer has indices, output where it has no activation.
  void applyBackward(std::size_t batchSize, const Desc& input, const Desc& output, const Desc& outputGradient,
                     const OptDesc& generatingInputGradient, const OptDesc& generatingBiasGradient = {}) {
    const char* function =
        type_.extended_ ? "BNNSPoolingFilterApplyBackwardBatchEx" : "BNNSPoolingFilterApplyBackwardBatch";
    const BNNSFilter filter = live(function);
    detail::Gradient dx(generatingInputGradient, "generatingInputGradient"),
        db(generatingBiasGradient, "generatingBiasGradient"), dy(outputGradient, "outputGradient");
    const Indices at = indices(batchSize);
    const std::size_t xStride = detail::batchStride(input), yStride = detail::batchStride(output);
    detail::check(type_.extended_ ? ::BNNSPoolingFilterApplyBackwardBatchEx(
                                        filter, batchSize, input.data, xStride, dx.pointer(), dx.stride, output.data,
                                        yStride, &dy.descriptor, dy.stride, db.pointer(), at.type, at.data, at.stride)
                                  : ::BNNSPoolingFilterApplyBackwardBatch(
                                        filter, batchSize, input.data, xStride, dx.pointer(), dx.stride, output.data,
                                        yStride, &dy.descriptor, dy.stride, db.pointer(),
                                        static_cast<const std::size_t*>(at.data), at.stride),
                  function);
  }

 private:
  struct Indices {
    BNNSDataType type;
    void* data;
    std::size_t stride;
  };
  // The C calls cannot know how many entries there are; a span and a descriptor do.
  Indices indices(std::size_t batchSize) const {
    if (type_.extended_) {
      if (!type_.indicesDescriptor_) return {BNNSDataTypeUInt64, nullptr, 0};
      const Desc& d = *type_.indicesDescriptor_;
      if (d.data && detail::batchStride(d) < indexStride_) {
        detail::badArray("indicesDescriptor", "a sample has " + std::to_string(indexStride_) +
                                                  " indices, the descriptor " + std::to_string(detail::batchStride(d)));
      }
      return {d.data_type, d.data, detail::batchStride(d)};
    }
    if (type_.indices_.empty()) return {BNNSDataTypeUInt64, nullptr, 0};
    if (batchSize > 0 && type_.indices_.size() < detail::times(indexStride_, batchSize, "indices")) {
      detail::badArray("indices", "the batch has " + std::to_string(indexStride_ * batchSize) +
                                      " indices, the memory " + std::to_string(type_.indices_.size()));
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
};

}  // namespace bnns
