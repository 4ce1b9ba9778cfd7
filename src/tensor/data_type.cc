#include "src/tensor/data_type.h"

namespace bnns {
namespace {

struct Named {
  BNNSDataType type;
  const char* name;
};

constexpr Named kTypes[] = {
    {BNNSDataTypeFloat16, "f16"},       {BNNSDataTypeFloat32, "f32"},       {BNNSDataTypeBFloat16, "bf16"},
    {BNNSDataTypeInt1, "i1"},           {BNNSDataTypeInt2, "i2"},           {BNNSDataTypeInt4, "i4"},
    {BNNSDataTypeInt8, "i8"},           {BNNSDataTypeInt16, "i16"},         {BNNSDataTypeInt32, "i32"},
    {BNNSDataTypeInt64, "i64"},         {BNNSDataTypeUInt1, "u1"},          {BNNSDataTypeUInt2, "u2"},
    {BNNSDataTypeUInt3, "u3"},          {BNNSDataTypeUInt4, "u4"},          {BNNSDataTypeUInt6, "u6"},
    {BNNSDataTypeUInt8, "u8"},          {BNNSDataTypeUInt16, "u16"},        {BNNSDataTypeUInt32, "u32"},
    {BNNSDataTypeUInt64, "u64"},        {BNNSDataTypeIndexed1, "indexed1"}, {BNNSDataTypeIndexed2, "indexed2"},
    {BNNSDataTypeIndexed4, "indexed4"}, {BNNSDataTypeIndexed8, "indexed8"}, {BNNSDataTypeBoolean, "bool"},
};

}  // namespace

const char* type_name(BNNSDataType type) noexcept {
  for (const Named& entry : kTypes) {
    if (entry.type == type) return entry.name;
  }
  return "unknown";
}

bool is_known_type(BNNSDataType type) noexcept {
  for (const Named& entry : kTypes) {
    if (entry.type == type) return true;
  }
  return false;
}

}  // namespace bnns
