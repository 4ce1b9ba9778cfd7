// OpenBNNS C++ overlay: functions without a layer. BNNS.f(...) of Swift is bnns::f(...).
#pragma once

#include "optimizer.hpp"
#include "reduction.hpp"

namespace bnns {

// ---- Matrices

/// output = alpha * op(A) * op(B), with broadcasting. Without a workspace the library allocates one.
inline void applyMatrixMultiplication(const Desc& inputA, bool aTransposed, const Desc& inputB, bool bTransposed,
                                      const Desc& output, float alpha, std::span<std::byte> workspace = {},
                                      const OptFilterParams& filterParameters = {}) {
  constexpr auto function = "BNNSMatMul";
  const BNNSFilterParameters* options = detail::pointer(filterParameters);
  if (!workspace.empty()) {  // the C call takes no size
    const ssize_t needed =
        ::BNNSMatMulWorkspaceSize(aTransposed, bTransposed, alpha, &inputA, &inputB, &output, options);
    if (needed > 0 && workspace.size() < static_cast<std::size_t>(needed)) {
      detail::mistake(
          Error::Code::layerApplyFail, function,
          "the workspace has " + std::to_string(workspace.size()) + " bytes, expected " + std::to_string(needed));
    }
  }
  detail::check(::BNNSMatMul(aTransposed, bTransposed, alpha, &inputA, &inputB, &output,
                             workspace.empty() ? nullptr : workspace.data(), options),
                function);
}
/// Bytes of that workspace; nothing where the product is refused.
inline std::optional<std::size_t> matrixMultiplicationWorkspaceSize(const Desc& inputA, bool aTransposed,
                                                                    const Desc& inputB, bool bTransposed,
                                                                    const Desc& output, float alpha,
                                                                    const OptFilterParams& filterParameters = {}) {
  const ssize_t bytes = ::BNNSMatMulWorkspaceSize(aTransposed, bTransposed, alpha, &inputA, &inputB, &output,
                                                  detail::pointer(filterParameters));
  if (bytes < 0) return std::nullopt;
  return static_cast<std::size_t>(bytes);
}

// ---- Clipping and norms. No axes: all of them.

inline void clip(Bounds to, const Desc& input, const Desc& output) {
  Desc y = output;
  detail::check(::BNNSClipByValue(&y, &input, to.lower, to.upper), "BNNSClipByValue");
}
inline void clipByNorm(float threshold, const Desc& input, const Desc& output, std::span<const std::size_t> axes = {}) {
  Desc y = output;
  detail::check(::BNNSClipByNorm(&y, &input, threshold, detail::axisMask(axes, "clipByNorm")), "BNNSClipByNorm");
}
/// globalNorm 0: compute it.
inline void clipByGlobalNorm(float threshold, std::span<const Desc> inputs, std::span<const Desc> outputs,
                             float globalNorm = 0) {
  constexpr auto function = "BNNSClipByGlobalNorm";
  if (inputs.size() != outputs.size()) {
    detail::mistake(Error::Code::layerApplyFail, function,
                    std::to_string(inputs.size()) + " inputs, but " + std::to_string(outputs.size()) + " outputs");
  }
  detail::Pointers x(inputs), y(outputs);
  detail::check(::BNNSClipByGlobalNorm(y.mutables(), x.constants(), inputs.size(), threshold, globalNorm), function);
}
/// The L2 norm over axes.
inline void computeNorm(const Desc& input, const Desc& output, std::span<const std::size_t> axes = {}) {
  Desc y = output;
  detail::check(::BNNSComputeNorm(&y, &input, BNNSL2Norm, detail::axisMask(axes, "computeNorm")), "BNNSComputeNorm");
}
inline void computeNormBackward(const Desc& input, const Desc& output, const Desc& outputGradient,
                                const Desc& generatingInputGradient, std::span<const std::size_t> axes = {}) {
  Desc dx = generatingInputGradient;
  detail::check(
      ::BNNSComputeNormBackward(detail::requireData(input, "input"), &dx, detail::requireData(output, "output"),
                                &outputGradient, BNNSL2Norm, detail::axisMask(axes, "computeNormBackward")),
      "BNNSComputeNormBackward");
}

// ---- Comparing, copying, moving

/// The names that C++ reserves end in an underscore.
enum class RelationalOperator : std::uint32_t {
  equal = BNNSRelationalOperatorEqual,
  notEqual = BNNSRelationalOperatorNotEqual,
  less = BNNSRelationalOperatorLess,
  lessEqual = BNNSRelationalOperatorLessEqual,
  greater = BNNSRelationalOperatorGreater,
  greaterEqual = BNNSRelationalOperatorGreaterEqual,
  and_ = BNNSRelationalOperatorLogicalAND,
  or_ = BNNSRelationalOperatorLogicalOR,
  not_ = BNNSRelationalOperatorLogicalNOT,
  nand = BNNSRelationalOperatorLogicalNAND,
  nor = BNNSRelationalOperatorLogicalNOR,
  xor_ = BNNSRelationalOperatorLogicalXOR,
};
/// `using:` of Swift is relation. output is Boolean.
inline void compare(const Desc& first, const Desc& second, RelationalOperator relation, const Desc& output) {
  Desc y = output;
  detail::check(::BNNSCompareTensor(&first, &second, static_cast<BNNSRelationalOperator>(relation), &y),
                "BNNSCompareTensor");
}
/// Layouts, strides and data types may differ.
inline void copy(const Desc& source, const Desc& to, const OptFilterParams& filterParameters = {}) {
  Desc y = to;
  detail::check(::BNNSCopy(&y, &source, detail::pointer(filterParameters)), "BNNSCopy");
}
/// No count: the whole triangle.
inline void copyBandPart(const Desc& source, const Desc& to, std::optional<int> lowerBandCount,
                         std::optional<int> upperBandCount, const OptFilterParams& filterParameters = {}) {
  Desc y = to;
  detail::check(::BNNSBandPart(lowerBandCount.value_or(-1), upperBandCount.value_or(-1), &source, &y,
                               detail::pointer(filterParameters)),
                "BNNSBandPart");
}
inline void transpose(const Desc& input, const Desc& output, std::size_t firstTransposeAxis,
                      std::size_t secondTransposeAxis, const OptFilterParams& filterParameters = {}) {
  Desc y = output;
  detail::check(::BNNSTranspose(&y, &input, firstTransposeAxis, secondTransposeAxis, detail::pointer(filterParameters)),
                "BNNSTranspose");
}
inline void tile(const Desc& input, const Desc& output, const OptFilterParams& filterParameters = {}) {
  Desc y = output;
  detail::check(::BNNSTile(&input, &y, detail::pointer(filterParameters)), "BNNSTile");
}
inline void tileBackward(const Desc& outputGradient, const Desc& generatingInputGradient,
                         const OptFilterParams& filterParameters = {}) {
  Desc dx = generatingInputGradient;
  detail::check(::BNNSTileBackward(&dx, &outputGradient, detail::pointer(filterParameters)), "BNNSTileBackward");
}
enum class ShuffleType : std::uint32_t {
  depthToSpaceNCHW = BNNSShuffleTypeDepthToSpaceNCHW,
  spaceToDepthNCHW = BNNSShuffleTypeSpaceToDepthNCHW,
  pixelShuffleNCHW = BNNSShuffleTypePixelShuffleNCHW,      ///< not in Swift
  pixelUnshuffleNCHW = BNNSShuffleTypePixelUnshuffleNCHW,  ///< not in Swift
};
inline void shuffle(ShuffleType type, const Desc& input, const Desc& output,
                    const OptFilterParams& filterParameters = {}) {
  Desc y = output;
  detail::check(::BNNSShuffle(static_cast<BNNSShuffleType>(type), &input, &y, detail::pointer(filterParameters)),
                "BNNSShuffle");
}

// ---- Gathering and scattering. A reduction other than none() and sum() is refused.

inline void gather(const Desc& input, const Desc& indices, const Desc& output, std::size_t axis,
                   const OptFilterParams& filterParameters = {}) {
  Desc y = output;
  detail::check(::BNNSGather(axis, &input, &indices, &y, detail::pointer(filterParameters)), "BNNSGather");
}
inline void gatherND(const Desc& input, const Desc& indices, const Desc& output,
                     const OptFilterParams& filterParameters = {}) {
  Desc y = output;
  detail::check(::BNNSGatherND(&input, &indices, &y, detail::pointer(filterParameters)), "BNNSGatherND");
}
inline void scatter(const Desc& input, const Desc& indices, const Desc& output, std::size_t axis,
                    const ReductionFunction& reductionFunction = ReductionFunction::none(),
                    const OptFilterParams& filterParameters = {}) {
  Desc y = output;
  detail::check(::BNNSScatter(axis, reductionFunction.bnnsReduceFunction(), &input, &indices, &y,
                              detail::pointer(filterParameters)),
                "BNNSScatter");
}
inline void scatterND(const Desc& input, const Desc& indices, const Desc& output,
                      const ReductionFunction& reductionFunction = ReductionFunction::none(),
                      const OptFilterParams& filterParameters = {}) {
  Desc y = output;
  detail::check(
      ::BNNSScatterND(reductionFunction.bnnsReduceFunction(), &input, &indices, &y, detail::pointer(filterParameters)),
      "BNNSScatterND");
}

// ---- Quantization

namespace detail {
inline void applyQuantizer(BNNSQuantizerFunction function, std::size_t batchSize, const Desc& input, const Desc& output,
                           std::optional<std::size_t> axis, const OptDesc& scale, const OptDesc& bias,
                           const OptFilterParams& options) {
  BNNSLayerParametersQuantization layer{};
  layer.function = function, layer.axis_mask = axis ? axisMask(std::span(&*axis, 1), "axis") : 0;
  layer.i_desc = input, layer.o_desc = output, layer.scale = orAbsent(scale), layer.bias = orAbsent(bias);
  check(::BNNSDirectApplyQuantizer(&layer, pointer(options), batchSize, batchStride(input), batchStride(output)),
        "BNNSDirectApplyQuantizer");
}
}  // namespace detail

/// output = scale * input + bias. No axis: one scale and bias.
inline void quantize(std::size_t batchSize, const Desc& input, const Desc& output, std::optional<std::size_t> axis,
                     const OptDesc& scale, const OptDesc& bias, const OptFilterParams& filterParameters = {}) {
  detail::applyQuantizer(BNNSQuantizerFunctionQuantize, batchSize, input, output, axis, scale, bias, filterParameters);
}
/// output = (input - bias) / scale.
inline void dequantize(std::size_t batchSize, const Desc& input, const Desc& output, std::optional<std::size_t> axis,
                       const OptDesc& scale, const OptDesc& bias, const OptFilterParams& filterParameters = {}) {
  detail::applyQuantizer(BNNSQuantizerFunctionDequantize, batchSize, input, output, axis, scale, bias,
                         filterParameters);
}

}  // namespace bnns
