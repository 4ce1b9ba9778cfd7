// The names of the enumerators of bnns_constants.h, in its order: the first of two names of one value is the one in
// messages. enum_name_test.cc compares the tables with the header.

#include "src/core/enum_name.h"

#include <cstdio>

namespace bnns {
namespace {

// clang-format off
#define NAME(enumerator) {enumerator, #enumerator}
constexpr EnumName kDataType[] = {
    NAME(BNNSDataTypeFloatBit), NAME(BNNSDataTypeFloat16), NAME(BNNSDataTypeFloat32), NAME(BNNSDataTypeBFloat16),
    NAME(BNNSDataTypeIntBit), NAME(BNNSDataTypeInt1), NAME(BNNSDataTypeInt2), NAME(BNNSDataTypeInt4),
    NAME(BNNSDataTypeInt8), NAME(BNNSDataTypeInt16), NAME(BNNSDataTypeInt32), NAME(BNNSDataTypeInt64),
    NAME(BNNSDataTypeUIntBit), NAME(BNNSDataTypeUInt1), NAME(BNNSDataTypeUInt2), NAME(BNNSDataTypeUInt3),
    NAME(BNNSDataTypeUInt4), NAME(BNNSDataTypeUInt6), NAME(BNNSDataTypeUInt8), NAME(BNNSDataTypeUInt16),
    NAME(BNNSDataTypeUInt32), NAME(BNNSDataTypeUInt64), NAME(BNNSDataTypeIndexedBit), NAME(BNNSDataTypeIndexed1),
    NAME(BNNSDataTypeIndexed2), NAME(BNNSDataTypeIndexed4), NAME(BNNSDataTypeIndexed8),
    NAME(BNNSDataTypeMiscellaneousBit), NAME(BNNSDataTypeBoolean)};
constexpr EnumName kPoolingFunction[] = {
    NAME(BNNSPoolingFunctionMax), NAME(BNNSPoolingFunctionAverageCountIncludePadding),
    NAME(BNNSPoolingFunctionAverageCountExcludePadding), NAME(BNNSPoolingFunctionUnMax),
    NAME(BNNSPoolingFunctionL2Norm), NAME(BNNSPoolingFunctionAverage)};
constexpr EnumName kActivationFunction[] = {
    NAME(BNNSActivationFunctionIdentity), NAME(BNNSActivationFunctionRectifiedLinear),
    NAME(BNNSActivationFunctionLeakyRectifiedLinear), NAME(BNNSActivationFunctionSigmoid),
    NAME(BNNSActivationFunctionTanh), NAME(BNNSActivationFunctionScaledTanh), NAME(BNNSActivationFunctionAbs),
    NAME(BNNSActivationFunctionLinear), NAME(BNNSActivationFunctionClamp),
    NAME(BNNSActivationFunctionIntegerLinearSaturate), NAME(BNNSActivationFunctionIntegerLinearSaturatePerChannel),
    NAME(BNNSActivationFunctionSoftmax), NAME(BNNSActivationFunctionGELUApproximation),
    NAME(BNNSActivationFunctionGumbel), NAME(BNNSActivationFunctionGumbelMax), NAME(BNNSActivationFunctionHardSigmoid),
    NAME(BNNSActivationFunctionSoftplus), NAME(BNNSActivationFunctionSoftsign), NAME(BNNSActivationFunctionELU),
    NAME(BNNSActivationFunctionClampedLeakyRectifiedLinear), NAME(BNNSActivationFunctionLinearWithBias),
    NAME(BNNSActivationFunctionLogSoftmax), NAME(BNNSActivationFunctionLogSigmoid), NAME(BNNSActivationFunctionSELU),
    NAME(BNNSActivationFunctionCELU), NAME(BNNSActivationFunctionHardShrink), NAME(BNNSActivationFunctionSoftShrink),
    NAME(BNNSActivationFunctionTanhShrink), NAME(BNNSActivationFunctionThreshold),
    NAME(BNNSActivationFunctionPReLUPerChannel), NAME(BNNSActivationFunctionGELUApproximation2),
    NAME(BNNSActivationFunctionHardSwish), NAME(BNNSActivationFunctionSiLU), NAME(BNNSActivationFunctionReLU6),
    NAME(BNNSActivationFunctionErf), NAME(BNNSActivationFunctionGELU),
    NAME(BNNSActivationFunctionGELUApproximationSigmoid)};
constexpr EnumName kFlags[] = {NAME(BNNSFlagsUseClientPtr)};
constexpr EnumName kLossFunction[] = {
    NAME(BNNSLossFunctionSoftmaxCrossEntropy), NAME(BNNSLossFunctionSigmoidCrossEntropy),
    NAME(BNNSLossFunctionMeanSquareError), NAME(BNNSLossFunctionHuber), NAME(BNNSLossFunctionYolo),
    NAME(BNNSLossFunctionLog), NAME(BNNSLossFunctionCosineDistance), NAME(BNNSLossFunctionHinge),
    NAME(BNNSLossFunctionMeanAbsoluteError), NAME(BNNSLossFunctionCategoricalCrossEntropy)};
constexpr EnumName kLossReductionFunction[] = {
    NAME(BNNSLossReductionNone), NAME(BNNSLossReductionSum), NAME(BNNSLossReductionWeightedMean),
    NAME(BNNSLossReductionMean), NAME(BNNSLossReductionNonZeroWeightMean)};
constexpr EnumName kArithmeticFunction[] = {
    NAME(BNNSArithmeticAdd), NAME(BNNSArithmeticSubtract), NAME(BNNSArithmeticMultiply), NAME(BNNSArithmeticDivide),
    NAME(BNNSArithmeticSquareRoot), NAME(BNNSArithmeticReciprocalSquareRoot), NAME(BNNSArithmeticCeil),
    NAME(BNNSArithmeticFloor), NAME(BNNSArithmeticRound), NAME(BNNSArithmeticSin), NAME(BNNSArithmeticCos),
    NAME(BNNSArithmeticTan), NAME(BNNSArithmeticAsin), NAME(BNNSArithmeticAcos), NAME(BNNSArithmeticAtan),
    NAME(BNNSArithmeticSinh), NAME(BNNSArithmeticCosh), NAME(BNNSArithmeticTanh), NAME(BNNSArithmeticAsinh),
    NAME(BNNSArithmeticAcosh), NAME(BNNSArithmeticAtanh), NAME(BNNSArithmeticPow), NAME(BNNSArithmeticExp),
    NAME(BNNSArithmeticExp2), NAME(BNNSArithmeticLog), NAME(BNNSArithmeticLog2), NAME(BNNSArithmeticMultiplyNoNaN),
    NAME(BNNSArithmeticDivideNoNaN), NAME(BNNSArithmeticMultiplyAdd), NAME(BNNSArithmeticMinimum),
    NAME(BNNSArithmeticMaximum), NAME(BNNSArithmeticSelect), NAME(BNNSArithmeticAbs), NAME(BNNSArithmeticSign),
    NAME(BNNSArithmeticNegate), NAME(BNNSArithmeticReciprocal), NAME(BNNSArithmeticSquare),
    NAME(BNNSArithmeticFloorDivide), NAME(BNNSArithmeticTruncDivide), NAME(BNNSArithmeticTruncRemainder),
    NAME(BNNSArithmeticErf)};
constexpr EnumName kDescriptorType[] = {NAME(BNNSConstant), NAME(BNNSSample), NAME(BNNSParameter)};
constexpr EnumName kOptimizerFunction[] = {
    NAME(BNNSOptimizerFunctionSGDMomentum), NAME(BNNSOptimizerFunctionAdam), NAME(BNNSOptimizerFunctionRMSProp),
    NAME(BNNSOptimizerFunctionAdamW), NAME(BNNSOptimizerFunctionAdamAMSGrad), NAME(BNNSOptimizerFunctionAdamWAMSGrad),
    NAME(BNNSOptimizerFunctionSGDMomentumWithClipping), NAME(BNNSOptimizerFunctionAdamWithClipping),
    NAME(BNNSOptimizerFunctionRMSPropWithClipping), NAME(BNNSOptimizerFunctionAdamWWithClipping),
    NAME(BNNSOptimizerFunctionAdamAMSGradWithClipping), NAME(BNNSOptimizerFunctionAdamWAMSGradWithClipping)};
constexpr EnumName kOptimizerRegularizationFunction[] = {
    NAME(BNNSOptimizerRegularizationNone), NAME(BNNSOptimizerRegularizationL1), NAME(BNNSOptimizerRegularizationL2)};
constexpr EnumName kOptimizerSGDMomentumVariant[] = {
    NAME(BNNSSGDMomentumVariant0), NAME(BNNSSGDMomentumVariant1), NAME(BNNSSGDMomentumVariant2)};
constexpr EnumName kOptimizerClippingFunction[] = {
    NAME(BNNSOptimizerClippingNone), NAME(BNNSOptimizerClippingByValue), NAME(BNNSOptimizerClippingByNorm),
    NAME(BNNSOptimizerClippingByGlobalNorm)};
constexpr EnumName kNormType[] = {NAME(BNNSL2Norm)};
constexpr EnumName kFilterType[] = {
    NAME(BNNSConvolution), NAME(BNNSFullyConnected), NAME(BNNSBatchNorm), NAME(BNNSInstanceNorm), NAME(BNNSLayerNorm),
    NAME(BNNSGroupNorm), NAME(BNNSTransposedConvolution), NAME(BNNSQuantization), NAME(BNNSArithmetic)};
constexpr EnumName kReduceFunction[] = {
    NAME(BNNSReduceFunctionMax), NAME(BNNSReduceFunctionMin), NAME(BNNSReduceFunctionArgMax),
    NAME(BNNSReduceFunctionArgMin), NAME(BNNSReduceFunctionMean), NAME(BNNSReduceFunctionMeanNonZero),
    NAME(BNNSReduceFunctionSum), NAME(BNNSReduceFunctionSumSquare), NAME(BNNSReduceFunctionSumLog),
    NAME(BNNSReduceFunctionL1Norm), NAME(BNNSReduceFunctionLogicalOr), NAME(BNNSReduceFunctionLogicalAnd),
    NAME(BNNSReduceFunctionL2Norm), NAME(BNNSReduceFunctionLogSumExp), NAME(BNNSReduceFunctionProduct),
    NAME(BNNSReduceFunctionNone), NAME(BNNSReduceFunctionLogSum), NAME(BNNSReduceFunctionAny),
    NAME(BNNSReduceFunctionAll)};
constexpr EnumName kLayerFlags[] = {NAME(BNNSLayerFlagsLSTMBidirectional), NAME(BNNSLayerFlagsLSTMDefaultActivations)};
constexpr EnumName kDataLayout[] = {
    NAME(BNNSDataLayoutVector), NAME(BNNSDataLayout1DLastMajor), NAME(BNNSDataLayout1DFirstMajor),
    NAME(BNNSDataLayoutRowMajorMatrix), NAME(BNNSDataLayoutColumnMajorMatrix), NAME(BNNSDataLayout2DLastMajor),
    NAME(BNNSDataLayout2DFirstMajor), NAME(BNNSDataLayoutFullyConnectedSparse), NAME(BNNSDataLayoutImageCHW),
    NAME(BNNSDataLayoutSNE), NAME(BNNSDataLayoutNSE), NAME(BNNSDataLayoutMHA_DHK), NAME(BNNSDataLayout3DLastMajor),
    NAME(BNNSDataLayout3DFirstMajor), NAME(BNNSDataLayoutConvolutionWeightsOIHW),
    NAME(BNNSDataLayoutConvolutionWeightsOIHrWr), NAME(BNNSDataLayoutConvolutionWeightsIOHrWr),
    NAME(BNNSDataLayoutConvolutionWeightsOIHW_Pack32), NAME(BNNSDataLayout4DLastMajor),
    NAME(BNNSDataLayout4DFirstMajor), NAME(BNNSDataLayout5DLastMajor), NAME(BNNSDataLayout5DFirstMajor),
    NAME(BNNSDataLayout6DLastMajor), NAME(BNNSDataLayout6DFirstMajor), NAME(BNNSDataLayout7DLastMajor),
    NAME(BNNSDataLayout7DFirstMajor), NAME(BNNSDataLayout8DLastMajor), NAME(BNNSDataLayout8DFirstMajor)};
constexpr EnumName kInterpolationMethod[] = {
    NAME(BNNSInterpolationMethodNearest), NAME(BNNSInterpolationMethodLinear)};
constexpr EnumName kLinearSamplingMode[] = {
    NAME(BNNSLinearSamplingDefault), NAME(BNNSLinearSamplingAlignCorners), NAME(BNNSLinearSamplingUnalignCorners),
    NAME(BNNSLinearSamplingStrictAlignCorners), NAME(BNNSLinearSamplingOffsetCorners)};
constexpr EnumName kBoxCoordinateMode[] = {
    NAME(BNNSCornersHeightFirst), NAME(BNNSCornersWidthFirst), NAME(BNNSCenterSizeHeightFirst),
    NAME(BNNSCenterSizeWidthFirst)};
constexpr EnumName kPaddingMode[] = {
    NAME(BNNSPaddingModeConstant), NAME(BNNSPaddingModeReflect), NAME(BNNSPaddingModeSymmetric)};
constexpr EnumName kRelationalOperator[] = {
    NAME(BNNSRelationalOperatorEqual), NAME(BNNSRelationalOperatorLess), NAME(BNNSRelationalOperatorLessEqual),
    NAME(BNNSRelationalOperatorGreater), NAME(BNNSRelationalOperatorGreaterEqual),
    NAME(BNNSRelationalOperatorNotEqual), NAME(BNNSRelationalOperatorLogicalAND),
    NAME(BNNSRelationalOperatorLogicalOR), NAME(BNNSRelationalOperatorLogicalNOT),
    NAME(BNNSRelationalOperatorLogicalNAND), NAME(BNNSRelationalOperatorLogicalNOR),
    NAME(BNNSRelationalOperatorLogicalXOR)};
constexpr EnumName kPointerSpecifier[] = {NAME(BNNSPointerSpecifierAlpha), NAME(BNNSPointerSpecifierBeta)};
constexpr EnumName kNDArrayFlags[] = {NAME(BNNSNDArrayFlagBackpropSet), NAME(BNNSNDArrayFlagBackpropAccumulate)};
constexpr EnumName kEmbeddingFlags[] = {NAME(BNNSEmbeddingFlagScaleGradientByFrequency)};
constexpr EnumName kQuantizerFunction[] = {NAME(BNNSQuantizerFunctionQuantize), NAME(BNNSQuantizerFunctionDequantize)};
constexpr EnumName kRandomGeneratorMethod[] = {NAME(BNNSRandomGeneratorMethodAES_CTR)};
constexpr EnumName kSparsityType[] = {NAME(BNNSSparsityTypeUnstructured)};
constexpr EnumName kTargetSystem[] = {NAME(BNNSTargetSystemGeneric)};
constexpr EnumName kShuffleType[] = {
    NAME(BNNSShuffleTypePixelShuffleNCHW), NAME(BNNSShuffleTypePixelUnshuffleNCHW),
    NAME(BNNSShuffleTypeDepthToSpaceNCHW), NAME(BNNSShuffleTypeSpaceToDepthNCHW)};
#undef NAME

// Values of the hexadecimal ones are composed of bits.
constexpr EnumTable kDataTypeTable{"BNNSDataType", kDataType, true};
constexpr EnumTable kPoolingFunctionTable{"BNNSPoolingFunction", kPoolingFunction, false};
constexpr EnumTable kActivationFunctionTable{"BNNSActivationFunction", kActivationFunction, false};
constexpr EnumTable kFlagsTable{"BNNSFlags", kFlags, true};
constexpr EnumTable kLossFunctionTable{"BNNSLossFunction", kLossFunction, false};
constexpr EnumTable kLossReductionFunctionTable{"BNNSLossReductionFunction", kLossReductionFunction, false};
constexpr EnumTable kArithmeticFunctionTable{"BNNSArithmeticFunction", kArithmeticFunction, false};
constexpr EnumTable kDescriptorTypeTable{"BNNSDescriptorType", kDescriptorType, false};
constexpr EnumTable kOptimizerFunctionTable{"BNNSOptimizerFunction", kOptimizerFunction, false};
constexpr EnumTable kOptimizerRegularizationFunctionTable{"BNNSOptimizerRegularizationFunction", kOptimizerRegularizationFunction, false};
constexpr EnumTable kOptimizerSGDMomentumVariantTable{"BNNSOptimizerSGDMomentumVariant", kOptimizerSGDMomentumVariant, false};
constexpr EnumTable kOptimizerClippingFunctionTable{"BNNSOptimizerClippingFunction", kOptimizerClippingFunction, false};
constexpr EnumTable kNormTypeTable{"BNNSNormType", kNormType, false};
constexpr EnumTable kFilterTypeTable{"BNNSFilterType", kFilterType, false};
constexpr EnumTable kReduceFunctionTable{"BNNSReduceFunction", kReduceFunction, false};
constexpr EnumTable kLayerFlagsTable{"BNNSLayerFlags", kLayerFlags, true};
constexpr EnumTable kDataLayoutTable{"BNNSDataLayout", kDataLayout, true};
constexpr EnumTable kInterpolationMethodTable{"BNNSInterpolationMethod", kInterpolationMethod, false};
constexpr EnumTable kLinearSamplingModeTable{"BNNSLinearSamplingMode", kLinearSamplingMode, false};
constexpr EnumTable kBoxCoordinateModeTable{"BNNSBoxCoordinateMode", kBoxCoordinateMode, false};
constexpr EnumTable kPaddingModeTable{"BNNSPaddingMode", kPaddingMode, false};
constexpr EnumTable kRelationalOperatorTable{"BNNSRelationalOperator", kRelationalOperator, false};
constexpr EnumTable kPointerSpecifierTable{"BNNSPointerSpecifier", kPointerSpecifier, false};
constexpr EnumTable kNDArrayFlagsTable{"BNNSNDArrayFlags", kNDArrayFlags, false};
constexpr EnumTable kEmbeddingFlagsTable{"BNNSEmbeddingFlags", kEmbeddingFlags, true};
constexpr EnumTable kQuantizerFunctionTable{"BNNSQuantizerFunction", kQuantizerFunction, false};
constexpr EnumTable kRandomGeneratorMethodTable{"BNNSRandomGeneratorMethod", kRandomGeneratorMethod, false};
constexpr EnumTable kSparsityTypeTable{"BNNSSparsityType", kSparsityType, false};
constexpr EnumTable kTargetSystemTable{"BNNSTargetSystem", kTargetSystem, false};
constexpr EnumTable kShuffleTypeTable{"BNNSShuffleType", kShuffleType, false};

constexpr const EnumTable* kTables[] = {
    &kDataTypeTable, &kPoolingFunctionTable, &kActivationFunctionTable, &kFlagsTable, &kLossFunctionTable,
    &kLossReductionFunctionTable, &kArithmeticFunctionTable, &kDescriptorTypeTable, &kOptimizerFunctionTable,
    &kOptimizerRegularizationFunctionTable, &kOptimizerSGDMomentumVariantTable, &kOptimizerClippingFunctionTable,
    &kNormTypeTable, &kFilterTypeTable, &kReduceFunctionTable, &kLayerFlagsTable, &kDataLayoutTable,
    &kInterpolationMethodTable, &kLinearSamplingModeTable, &kBoxCoordinateModeTable, &kPaddingModeTable,
    &kRelationalOperatorTable, &kPointerSpecifierTable, &kNDArrayFlagsTable, &kEmbeddingFlagsTable,
    &kQuantizerFunctionTable, &kRandomGeneratorMethodTable, &kSparsityTypeTable, &kTargetSystemTable,
    &kShuffleTypeTable};
// clang-format on

EnumText text_of(const EnumTable& table, uint32_t value) noexcept {
  const char* format = table.hexadecimal ? "%s (0x%x)" : "%s (%u)";
  EnumText result;
  for (const EnumName& entry : table.names) {
    if (entry.value != value) continue;
    std::snprintf(result.text, sizeof result.text, format, entry.name, value);
    return result;
  }
  format = table.hexadecimal ? "0x%x, which is no %s" : "%u, which is no %s";
  std::snprintf(result.text, sizeof result.text, format, value, table.type);
  return result;
}

}  // namespace

std::span<const EnumTable* const> enum_tables() noexcept {
  return kTables;
}

EnumText enum_text(BNNSDataType value) noexcept {
  return text_of(kDataTypeTable, value);
}
EnumText enum_text(BNNSPoolingFunction value) noexcept {
  return text_of(kPoolingFunctionTable, value);
}
EnumText enum_text(BNNSActivationFunction value) noexcept {
  return text_of(kActivationFunctionTable, value);
}
EnumText enum_text(BNNSFlags value) noexcept {
  return text_of(kFlagsTable, value);
}
EnumText enum_text(BNNSLossFunction value) noexcept {
  return text_of(kLossFunctionTable, value);
}
EnumText enum_text(BNNSLossReductionFunction value) noexcept {
  return text_of(kLossReductionFunctionTable, value);
}
EnumText enum_text(BNNSArithmeticFunction value) noexcept {
  return text_of(kArithmeticFunctionTable, value);
}
EnumText enum_text(BNNSDescriptorType value) noexcept {
  return text_of(kDescriptorTypeTable, value);
}
EnumText enum_text(BNNSOptimizerFunction value) noexcept {
  return text_of(kOptimizerFunctionTable, value);
}
EnumText enum_text(BNNSOptimizerRegularizationFunction value) noexcept {
  return text_of(kOptimizerRegularizationFunctionTable, value);
}
EnumText enum_text(BNNSOptimizerSGDMomentumVariant value) noexcept {
  return text_of(kOptimizerSGDMomentumVariantTable, value);
}
EnumText enum_text(BNNSOptimizerClippingFunction value) noexcept {
  return text_of(kOptimizerClippingFunctionTable, value);
}
EnumText enum_text(BNNSNormType value) noexcept {
  return text_of(kNormTypeTable, value);
}
EnumText enum_text(BNNSFilterType value) noexcept {
  return text_of(kFilterTypeTable, value);
}
EnumText enum_text(BNNSReduceFunction value) noexcept {
  return text_of(kReduceFunctionTable, value);
}
EnumText enum_text(BNNSLayerFlags value) noexcept {
  return text_of(kLayerFlagsTable, value);
}
EnumText enum_text(BNNSDataLayout value) noexcept {
  return text_of(kDataLayoutTable, value);
}
EnumText enum_text(BNNSInterpolationMethod value) noexcept {
  return text_of(kInterpolationMethodTable, value);
}
EnumText enum_text(BNNSLinearSamplingMode value) noexcept {
  return text_of(kLinearSamplingModeTable, value);
}
EnumText enum_text(BNNSBoxCoordinateMode value) noexcept {
  return text_of(kBoxCoordinateModeTable, value);
}
EnumText enum_text(BNNSPaddingMode value) noexcept {
  return text_of(kPaddingModeTable, value);
}
EnumText enum_text(BNNSRelationalOperator value) noexcept {
  return text_of(kRelationalOperatorTable, value);
}
EnumText enum_text(BNNSPointerSpecifier value) noexcept {
  return text_of(kPointerSpecifierTable, value);
}
EnumText enum_text(BNNSNDArrayFlags value) noexcept {
  return text_of(kNDArrayFlagsTable, value);
}
EnumText enum_text(BNNSEmbeddingFlags value) noexcept {
  return text_of(kEmbeddingFlagsTable, value);
}
EnumText enum_text(BNNSQuantizerFunction value) noexcept {
  return text_of(kQuantizerFunctionTable, value);
}
EnumText enum_text(BNNSRandomGeneratorMethod value) noexcept {
  return text_of(kRandomGeneratorMethodTable, value);
}
EnumText enum_text(BNNSSparsityType value) noexcept {
  return text_of(kSparsityTypeTable, value);
}
EnumText enum_text(BNNSTargetSystem value) noexcept {
  return text_of(kTargetSystemTable, value);
}
EnumText enum_text(BNNSShuffleType value) noexcept {
  return text_of(kShuffleTypeTable, value);
}

}  // namespace bnns
