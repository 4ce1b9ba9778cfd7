// OpenBNNS C++ overlay: functions without a layer. BNNS.f(...) of Swift is bnns::f(...).
//
// A function of elements, or of one array after the other, acts on all samples of a batched NDArray; all its arrays
// hold the same number. Where several samples have no meaning, an array of more than one is refused.
#pragma once

#include "optimizer.hpp"
#include "reduction.hpp"

namespace bnns {

// ---- Matrices

/// output = alpha * op(A) * op(B), with broadcasting. Without a workspace the library allocates one.
inline void applyMatrixMultiplication(const Input& inputA, bool aTransposed, const Input& inputB, bool bTransposed,
                                      const Output& output, float alpha, std::span<std::byte> workspace = {},
                                      const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "applyMatrixMultiplication";
  detail::requireOneSample(where, {{"inputA", inputA}, {"inputB", inputB}, {"output", output}});
  const BNNSFilterParameters* options = detail::pointer(filterParameters);
  const Desc &a = inputA.descriptor(), &b = inputB.descriptor(), &y = output.descriptor();
  if (!workspace.empty()) {  // the C call takes no size
    const ssize_t needed = ::BNNSMatMulWorkspaceSize(aTransposed, bTransposed, alpha, &a, &b, &y, options);
    if (needed > 0 && workspace.size() < static_cast<std::size_t>(needed)) {
      detail::mistake(
          Error::Code::layerApplyFail, where,
          "the workspace has " + std::to_string(workspace.size()) + " bytes, expected " + std::to_string(needed));
    }
  }
  detail::check(::BNNSMatMul(aTransposed, bTransposed, alpha, &a, &b, &y,
                             workspace.empty() ? nullptr : workspace.data(), options),
                where, "BNNSMatMul");
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

inline void clip(Bounds to, const Input& input, const Output& output) {
  constexpr auto where = "clip";
  detail::eachElement(where, {"input", input}, {"output", output}, [&](const Desc& x, Desc y) {
    detail::check(::BNNSClipByValue(&y, &x, to.lower, to.upper), where, "BNNSClipByValue");
  });
}
inline void clipByNorm(float threshold, const Input& input, const Output& output,
                       std::span<const std::size_t> axes = {}) {
  constexpr auto where = "clipByNorm";
  detail::requireOneSample(where, {{"input", input}, {"output", output}});
  Desc y = output.descriptor();
  detail::check(::BNNSClipByNorm(&y, &input.descriptor(), threshold, detail::axisMask(axes, where)), where,
                "BNNSClipByNorm");
}
/// globalNorm 0: compute it.
inline void clipByGlobalNorm(float threshold, const Inputs& inputs, const Outputs& outputs, float globalNorm = 0) {
  constexpr auto where = "clipByGlobalNorm";
  if (inputs.size() != outputs.size()) {
    detail::mistake(Error::Code::layerApplyFail, where,
                    std::to_string(inputs.size()) + " inputs, but " + std::to_string(outputs.size()) + " outputs");
  }
  detail::Pointers x(where, "inputs", inputs), y(where, "outputs", outputs);
  detail::check(::BNNSClipByGlobalNorm(y.mutables(), x.constants(), inputs.size(), threshold, globalNorm), where,
                "BNNSClipByGlobalNorm");
}
/// The L2 norm over axes.
inline void computeNorm(const Input& input, const Output& output, std::span<const std::size_t> axes = {}) {
  constexpr auto where = "computeNorm";
  detail::requireOneSample(where, {{"input", input}, {"output", output}});
  Desc y = output.descriptor();
  detail::check(::BNNSComputeNorm(&y, &input.descriptor(), BNNSL2Norm, detail::axisMask(axes, where)), where,
                "BNNSComputeNorm");
}
inline void computeNormBackward(const Input& input, const Input& output, const Input& outputGradient,
                                const Output& generatingInputGradient, std::span<const std::size_t> axes = {}) {
  constexpr auto where = "computeNormBackward";
  detail::requireOneSample(where, {{"input", input},
                                   {"output", output},
                                   {"outputGradient", outputGradient},
                                   {"generatingInputGradient", generatingInputGradient}});
  // The C call knows input and output by their data: they are of the shapes of their gradients.
  Desc dx = generatingInputGradient.descriptor();
  const Desc& dy = outputGradient.descriptor();
  const detail::Data x = detail::fitting(where, "input", input, dx, 1),
                     y = detail::fitting(where, "output", output, dy, 1);
  detail::check(::BNNSComputeNormBackward(x.data, &dx, y.data, &dy, BNNSL2Norm, detail::axisMask(axes, where)), where,
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
inline void compare(const Input& first, const Input& second, RelationalOperator relation, const Output& output) {
  constexpr auto where = "compare";
  const std::size_t batch = detail::commonBatch(where, {{"first", first}, {"second", second}, {"output", output}});
  for (std::size_t i = 0; i < batch; ++i) {
    const Desc a = detail::sample(first, i), b = detail::sample(second, i);
    Desc y = detail::sample(output, i);
    detail::check(::BNNSCompareTensor(&a, &b, static_cast<BNNSRelationalOperator>(relation), &y), where,
                  "BNNSCompareTensor");
  }
}
/// Layouts, strides and data types may differ.
inline void copy(const Input& source, const Output& to, const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "copy";
  detail::eachElement(where, {"source", source}, {"to", to}, [&](const Desc& x, Desc y) {
    detail::check(::BNNSCopy(&y, &x, detail::pointer(filterParameters)), where, "BNNSCopy");
  });
}
/// No count: the whole triangle.
inline void copyBandPart(const Input& source, const Output& to, std::optional<int> lowerBandCount,
                         std::optional<int> upperBandCount, const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "copyBandPart";
  detail::eachSample(where, {"source", source}, {"to", to}, [&](const Desc& x, Desc y) {
    detail::check(::BNNSBandPart(lowerBandCount.value_or(-1), upperBandCount.value_or(-1), &x, &y,
                                 detail::pointer(filterParameters)),
                  where, "BNNSBandPart");
  });
}
inline void transpose(const Input& input, const Output& output, std::size_t firstTransposeAxis,
                      std::size_t secondTransposeAxis, const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "transpose";
  detail::eachSample(where, {"input", input}, {"output", output}, [&](const Desc& x, Desc y) {
    detail::check(::BNNSTranspose(&y, &x, firstTransposeAxis, secondTransposeAxis, detail::pointer(filterParameters)),
                  where, "BNNSTranspose");
  });
}
inline void tile(const Input& input, const Output& output, const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "tile";
  detail::eachSample(where, {"input", input}, {"output", output}, [&](const Desc& x, Desc y) {
    detail::check(::BNNSTile(&x, &y, detail::pointer(filterParameters)), where, "BNNSTile");
  });
}
inline void tileBackward(const Input& outputGradient, const Output& generatingInputGradient,
                         const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "tileBackward";
  detail::eachSample(where, {"outputGradient", outputGradient}, {"generatingInputGradient", generatingInputGradient},
                     [&](const Desc& dy, Desc dx) {
                       detail::check(::BNNSTileBackward(&dx, &dy, detail::pointer(filterParameters)), where,
                                     "BNNSTileBackward");
                     });
}
enum class ShuffleType : std::uint32_t {
  depthToSpaceNCHW = BNNSShuffleTypeDepthToSpaceNCHW,
  spaceToDepthNCHW = BNNSShuffleTypeSpaceToDepthNCHW,
  pixelShuffleNCHW = BNNSShuffleTypePixelShuffleNCHW,      ///< not in Swift
  pixelUnshuffleNCHW = BNNSShuffleTypePixelUnshuffleNCHW,  ///< not in Swift
};
inline void shuffle(ShuffleType type, const Input& input, const Output& output,
                    const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "shuffle";
  detail::eachSample(where, {"input", input}, {"output", output}, [&](const Desc& x, Desc y) {
    detail::check(::BNNSShuffle(static_cast<BNNSShuffleType>(type), &x, &y, detail::pointer(filterParameters)), where,
                  "BNNSShuffle");
  });
}

// ---- Gathering and scattering. A reduction other than none() and sum() is refused.

inline void gather(const Input& input, const Input& indices, const Output& output, std::size_t axis,
                   const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "gather";
  detail::requireOneSample(where, {{"input", input}, {"indices", indices}, {"output", output}});
  Desc y = output.descriptor();
  detail::check(::BNNSGather(axis, &input.descriptor(), &indices.descriptor(), &y, detail::pointer(filterParameters)),
                where, "BNNSGather");
}
inline void gatherND(const Input& input, const Input& indices, const Output& output,
                     const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "gatherND";
  detail::requireOneSample(where, {{"input", input}, {"indices", indices}, {"output", output}});
  Desc y = output.descriptor();
  detail::check(::BNNSGatherND(&input.descriptor(), &indices.descriptor(), &y, detail::pointer(filterParameters)),
                where, "BNNSGatherND");
}
inline void scatter(const Input& input, const Input& indices, const Output& output, std::size_t axis,
                    const ReductionFunction& reductionFunction = ReductionFunction::none(),
                    const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "scatter";
  detail::requireOneSample(where, {{"input", input}, {"indices", indices}, {"output", output}});
  Desc y = output.descriptor();
  detail::check(::BNNSScatter(axis, reductionFunction.bnnsReduceFunction(), &input.descriptor(), &indices.descriptor(),
                              &y, detail::pointer(filterParameters)),
                where, "BNNSScatter");
}
inline void scatterND(const Input& input, const Input& indices, const Output& output,
                      const ReductionFunction& reductionFunction = ReductionFunction::none(),
                      const OptFilterParams& filterParameters = {}) {
  constexpr auto where = "scatterND";
  detail::requireOneSample(where, {{"input", input}, {"indices", indices}, {"output", output}});
  Desc y = output.descriptor();
  detail::check(::BNNSScatterND(reductionFunction.bnnsReduceFunction(), &input.descriptor(), &indices.descriptor(), &y,
                                detail::pointer(filterParameters)),
                where, "BNNSScatterND");
}

// ---- Quantization

namespace detail {
inline void applyQuantizer(const char* where, BNNSQuantizerFunction function, std::size_t batchSize, const Input& input,
                           const Output& output, std::optional<std::size_t> axis, const OptDesc& scale,
                           const OptDesc& bias, const OptFilterParams& options) {
  requireCapacity(where, "input", input, batchSize);
  requireCapacity(where, "output", output, batchSize);
  BNNSLayerParametersQuantization layer{};
  layer.function = function, layer.axis_mask = axis ? axisMask(std::span(&*axis, 1), where) : 0;
  layer.i_desc = input.descriptor(), layer.o_desc = output.descriptor();
  layer.scale = orAbsent(scale), layer.bias = orAbsent(bias);
  check(::BNNSDirectApplyQuantizer(&layer, pointer(options), batchSize, batchStride(layer.i_desc),
                                   batchStride(layer.o_desc)),
        where, "BNNSDirectApplyQuantizer");
}
}  // namespace detail

/// output = scale * input + bias. No axis: one scale and bias.
inline void quantize(std::size_t batchSize, const Input& input, const Output& output, std::optional<std::size_t> axis,
                     const OptDesc& scale, const OptDesc& bias, const OptFilterParams& filterParameters = {}) {
  detail::applyQuantizer("quantize", BNNSQuantizerFunctionQuantize, batchSize, input, output, axis, scale, bias,
                         filterParameters);
}
/// output = (input - bias) / scale.
inline void dequantize(std::size_t batchSize, const Input& input, const Output& output, std::optional<std::size_t> axis,
                       const OptDesc& scale, const OptDesc& bias, const OptFilterParams& filterParameters = {}) {
  detail::applyQuantizer("dequantize", BNNSQuantizerFunctionDequantize, batchSize, input, output, axis, scale, bias,
                         filterParameters);
}

}  // namespace bnns
