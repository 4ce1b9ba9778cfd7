// OpenBNNS C++ overlay: dropout, padding, permutation of axes, resizing, and crop-and-resize.
#pragma once

#include <cmath>

#include "layer.hpp"

namespace bnns {

/// Drops elements and scales those that stay by 1 / (1 - rate), differently at every call. There is no inference mode.
class DropoutLayer : public UnaryLayer {
 public:
  struct Parameters {
    Desc input, output;
    float rate;
    std::uint32_t seed;        ///< 0: not seeded
    std::uint8_t control = 0;  ///< bit k: one decision for all elements along axis k
    OptFilterParams filterParameters{};
  };
  explicit DropoutLayer(const Parameters& p)
      : UnaryLayer(create(p), "DropoutLayer", "BNNSFilterCreateLayerDropout", {p.input, p.output}) {}

 private:
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersDropout layer{};
    layer.i_desc = p.input, layer.o_desc = p.output, layer.rate = p.rate, layer.seed = p.seed;
    layer.control = p.control;
    return ::BNNSFilterCreateLayerDropout(&layer, detail::pointer(p.filterParameters));
  }
};

/// Swift's BNNS.PaddingMode.
class PaddingMode {
 public:
  /// The number, in whatever type the layer has; one that the type cannot hold is refused at creation.
  static PaddingMode constantScalar(float value) {
    return {BNNSPaddingModeConstant, std::bit_cast<std::uint32_t>(value), true};
  }
  /// The leading bytes are the fill of shorter elements.
  static PaddingMode constantBitPattern(std::uint32_t bits) { return {BNNSPaddingModeConstant, bits, false}; }
  static PaddingMode reflect() { return {BNNSPaddingModeReflect, 0, false}; }      ///< the edge is not repeated
  static PaddingMode symmetric() { return {BNNSPaddingModeSymmetric, 0, false}; }  ///< the edge is repeated

  BNNSPaddingMode bnnsPaddingMode() const noexcept { return mode_; }
  /// 0 for reflect and symmetric.
  std::uint32_t paddingBitPattern() const noexcept { return bits_; }
  /// The same for a layer of another type than Float32.
  std::uint32_t paddingBitPattern(BNNSDataType type) const {
    const float value = std::bit_cast<float>(bits_);
    if (!scalar_ || type == BNNSDataTypeFloat32) return bits_;
    if (type == BNNSDataTypeFloat16) return Float16(value).bits;
    if (type == BNNSDataTypeBFloat16) return BFloat16(value).bits;
    const std::uint32_t width = static_cast<std::uint32_t>(type) & 0xffu;
    const bool isSigned = (static_cast<std::uint32_t>(type) & ~0xffu) == BNNSDataTypeIntBit;
    const double range = std::ldexp(1.0, static_cast<int>(width) - (isSigned ? 1 : 0));
    const double lowest = isSigned ? -range : 0;
    // Of 64 bits the pattern has the lower half: not enough for a negative number.
    const bool fits = value == std::trunc(value) && double(value) >= (width > 32 ? 0 : lowest) &&
                      double(value) < (width > 32 ? 0x1p32 : range);
    if (type != BNNSDataTypeBoolean && !fits) {
      detail::mistake(Error::Code::unableToCreateLayer, "PaddingLayer",
                      "the constant " + std::to_string(value) + " is no value of " + detail::typeName(type) +
                          ": constantBitPattern takes the bytes of any element");
    }
    if (type == BNNSDataTypeBoolean) return value != 0;
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(value));
  }

 private:
  PaddingMode(BNNSPaddingMode mode, std::uint32_t bits, bool scalar) : mode_(mode), bits_(bits), scalar_(scalar) {}
  BNNSPaddingMode mode_;
  std::uint32_t bits_;
  bool scalar_;
};

class PaddingLayer : public UnaryLayer {
 public:
  struct Parameters {
    Desc input, output;
    PaddingMode mode;
    std::vector<XY> size;  ///< elements before (x) and after (y), for each axis
    OptFilterParams filterParameters{};
  };
  explicit PaddingLayer(const Parameters& p)
      : UnaryLayer(create(p), "PaddingLayer", "BNNSFilterCreateLayerPadding", {p.input, p.output}) {}

 private:
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersPadding layer{};
    layer.i_desc = p.input, layer.o_desc = p.output;
    layer.padding_mode = p.mode.bnnsPaddingMode(), layer.padding_value = p.mode.paddingBitPattern(p.input.data_type);
    if (p.size.size() > 8) {
      detail::mistake(Error::Code::unableToCreateLayer, "PaddingLayer",
                      "size has " + std::to_string(p.size.size()) + " entries, an array at most 8 axes");
    }
    for (std::size_t k = 0; k < p.size.size(); ++k) {
      layer.padding_size[k][0] = p.size[k].x, layer.padding_size[k][1] = p.size[k].y;
    }
    return ::BNNSFilterCreateLayerPadding(&layer, detail::pointer(p.filterParameters));
  }
};

/// Output axis k is input axis permutation[k].
class PermuteLayer : public UnaryLayer {
 public:
  struct Parameters {
    Desc input, output;
    std::vector<std::size_t> permutation;
    OptFilterParams filterParameters{};
  };
  explicit PermuteLayer(const Parameters& p)
      : UnaryLayer(create(p), "PermuteLayer", "BNNSFilterCreateLayerPermute", {p.input, p.output}) {}

  /// input and output are not read.
  void applyBackward(std::size_t batchSize, [[maybe_unused]] const Input& input, [[maybe_unused]] const Input& output,
                     const Input& outputGradient, const Output& generatingInputGradient) {
    const detail::Where where = call("applyBackward");
    const BNNSFilter filter = live(where);
    const auto dx = detail::described(where, "generatingInputGradient", generatingInputGradient, expectedInput(),
                                      batchSize),
               dy = detail::described(where, "outputGradient", outputGradient, expectedOutput(), batchSize);
    detail::check(
        ::BNNSPermuteFilterApplyBackwardBatch(filter, batchSize, dx.descriptor, dx.stride, dy.descriptor, dy.stride),
        where, "BNNSPermuteFilterApplyBackwardBatch");
  }
  /// The same call with Swift's labels.
  struct Backward {
    std::size_t batchSize;
    Input input, output, outputGradient;
    Output generatingInputGradient;
  };
  void applyBackward(const Backward& a) {
    applyBackward(a.batchSize, a.input, a.output, a.outputGradient, a.generatingInputGradient);
  }

 private:
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersPermute layer{};
    layer.i_desc = p.input, layer.o_desc = p.output;
    if (const std::size_t axes = detail::rankOf(p.input.layout); p.permutation.size() != axes) {
      detail::mistake(Error::Code::unableToCreateLayer, "PermuteLayer",
                      "permutation has " + std::to_string(p.permutation.size()) + " entries, the rank of input is " +
                          std::to_string(axes));
    }
    for (std::size_t k = 0; k < p.permutation.size(); ++k) layer.permutation[k] = p.permutation[k];
    return ::BNNSFilterCreateLayerPermute(&layer, detail::pointer(p.filterParameters));
  }
};

enum class InterpolationMethod : std::uint32_t {
  linear = BNNSInterpolationMethodLinear,
  nearestNeighbor = BNNSInterpolationMethodNearest,
};

class ResizeLayer : public UnaryLayer {
 public:
  struct Parameters {
    InterpolationMethod interpolationMethod;
    Desc input, output;
    bool alignsCorners;
    OptFilterParams filterParameters{};
  };
  explicit ResizeLayer(const Parameters& p)
      : UnaryLayer(create(p), "ResizeLayer", "BNNSFilterCreateLayerResize", {p.input, p.output}) {}

 private:
  static BNNSFilter create(const Parameters& p) {
    BNNSLayerParametersResize layer{};
    layer.method = static_cast<BNNSInterpolationMethod>(p.interpolationMethod);
    layer.i_desc = p.input, layer.o_desc = p.output, layer.align_corners = p.alignsCorners;
    return ::BNNSFilterCreateLayerResize(&layer, detail::pointer(p.filterParameters));
  }
};

/// Crops boxes and resizes each, bilinearly. Parameters only: there is no filter behind it, and it may be copied.
class CropResizeLayer {
 public:
  enum class LinearSamplingMode : std::uint32_t {
    default_ = BNNSLinearSamplingDefault,
    alignCorners = BNNSLinearSamplingAlignCorners,
    unalignCorners = BNNSLinearSamplingUnalignCorners,
    strictAlignCorners = BNNSLinearSamplingStrictAlignCorners,
    offsetCorners = BNNSLinearSamplingOffsetCorners,
  };
  enum class BoxCoordinateMode : std::uint32_t {
    cornersHeightFirst = BNNSCornersHeightFirst,
    cornersWidthFirst = BNNSCornersWidthFirst,
    centerSizeHeightFirst = BNNSCenterSizeHeightFirst,
    centerSizeWidthFirst = BNNSCenterSizeWidthFirst,
  };
  struct Parameters {
    bool coordinatesAreNormalized;
    float spatialScale;
    float extrapolationValue = 0;
    LinearSamplingMode samplingMode = LinearSamplingMode::default_;
    BoxCoordinateMode boxCoordinateMode;
  };
  explicit CropResizeLayer(const Parameters& p) {
    layer_.normalized_coordinates = p.coordinatesAreNormalized, layer_.spatial_scale = p.spatialScale;
    layer_.extrapolation_value = p.extrapolationValue, layer_.method = BNNSInterpolationMethodLinear;
    layer_.sampling_mode = static_cast<BNNSLinearSamplingMode>(p.samplingMode);
    layer_.box_coordinate_mode = static_cast<BNNSBoxCoordinateMode>(p.boxCoordinateMode);
  }

  void apply(const Input& input, const Input& regionOfInterest, const Output& output,
             const OptFilterParams& filterParameters = {}) const {
    constexpr auto where = "CropResizeLayer::apply";
    detail::requireOneSample(where, {{"input", input}, {"regionOfInterest", regionOfInterest}, {"output", output}});
    Desc y = output.descriptor();
    detail::check(::BNNSCropResize(&layer_, &input.descriptor(), &regionOfInterest.descriptor(), &y,
                                   detail::pointer(filterParameters)),
                  where, "BNNSCropResize");
  }
  void applyBackward(const Input& regionOfInterest, const Input& outputGradient, const Output& generatingInputGradient,
                     const OptFilterParams& filterParameters = {}) const {
    constexpr auto where = "CropResizeLayer::applyBackward";
    detail::requireOneSample(where, {{"regionOfInterest", regionOfInterest},
                                     {"outputGradient", outputGradient},
                                     {"generatingInputGradient", generatingInputGradient}});
    Desc dx = generatingInputGradient.descriptor();
    detail::check(::BNNSCropResizeBackward(&layer_, &dx, &regionOfInterest.descriptor(), &outputGradient.descriptor(),
                                           detail::pointer(filterParameters)),
                  where, "BNNSCropResizeBackward");
  }

 private:
  BNNSLayerParametersCropResize layer_{};
};

}  // namespace bnns
