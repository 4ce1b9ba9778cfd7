// Values of the public enumerations as messages show them: "BNNSDataLayoutVector (0x10000)", and for a value that has
// no name "7, which is no BNNSPoolingFunction".
//   fail_invalid("%s: layout is %s, expected ...", op, enum_text(layout).text);
#pragma once

#include <cstdint>
#include <span>

#include "bnns/bnns.h"

namespace bnns {

struct EnumText {
  char text[96];
};

EnumText enum_text(BNNSDataType value) noexcept;
EnumText enum_text(BNNSPoolingFunction value) noexcept;
EnumText enum_text(BNNSActivationFunction value) noexcept;
EnumText enum_text(BNNSFlags value) noexcept;
EnumText enum_text(BNNSLossFunction value) noexcept;
EnumText enum_text(BNNSLossReductionFunction value) noexcept;
EnumText enum_text(BNNSArithmeticFunction value) noexcept;
EnumText enum_text(BNNSDescriptorType value) noexcept;
EnumText enum_text(BNNSOptimizerFunction value) noexcept;
EnumText enum_text(BNNSOptimizerRegularizationFunction value) noexcept;
EnumText enum_text(BNNSOptimizerSGDMomentumVariant value) noexcept;
EnumText enum_text(BNNSOptimizerClippingFunction value) noexcept;
EnumText enum_text(BNNSNormType value) noexcept;
EnumText enum_text(BNNSFilterType value) noexcept;
EnumText enum_text(BNNSReduceFunction value) noexcept;
EnumText enum_text(BNNSLayerFlags value) noexcept;
EnumText enum_text(BNNSDataLayout value) noexcept;
EnumText enum_text(BNNSInterpolationMethod value) noexcept;
EnumText enum_text(BNNSLinearSamplingMode value) noexcept;
EnumText enum_text(BNNSBoxCoordinateMode value) noexcept;
EnumText enum_text(BNNSPaddingMode value) noexcept;
EnumText enum_text(BNNSRelationalOperator value) noexcept;
EnumText enum_text(BNNSPointerSpecifier value) noexcept;
EnumText enum_text(BNNSNDArrayFlags value) noexcept;
EnumText enum_text(BNNSEmbeddingFlags value) noexcept;
EnumText enum_text(BNNSQuantizerFunction value) noexcept;
EnumText enum_text(BNNSRandomGeneratorMethod value) noexcept;
EnumText enum_text(BNNSSparsityType value) noexcept;
EnumText enum_text(BNNSTargetSystem value) noexcept;
EnumText enum_text(BNNSShuffleType value) noexcept;

struct EnumName {
  uint32_t value;
  const char* name;
};
struct EnumTable {
  const char* type;
  std::span<const EnumName> names;
  bool hexadecimal;
};
std::span<const EnumTable* const> enum_tables() noexcept;  // for the test

}  // namespace bnns
