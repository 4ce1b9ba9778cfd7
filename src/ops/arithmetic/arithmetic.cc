// What is known about each function, and every check that creation makes.

#include "src/ops/arithmetic/arithmetic.h"

#include <cstdio>

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kOp = "arithmetic";
using Info = ArithmeticFunction;
constexpr auto kNever = Info::InPlace::never, kIfIdentity = Info::InPlace::with_identity,
               kAlways = Info::InPlace::always;
constexpr uint8_t kA = 1, kB = 2, kC = 4;  // bits of the first, second and third input

// clang-format off
// In the order of BNNSArithmeticFunction.
//   name            inputs in place  gradient costly  gradient reads         y   is g
constexpr Info kFunctions[] = {
    {"add",             2, kAlways,     true,  false, {0, 0, 0},              0,  kA | kB},
    {"subtract",        2, kAlways,     true,  false, {0, 0, 0},              0,  kA},
    {"multiply",        2, kNever,      true,  false, {kB, kA, 0},            0,  0},
    {"divide",          2, kNever,      true,  false, {kB, kA | kB, 0},       0,  0},
    {"sqrt",            1, kIfIdentity, true,  false, {0, 0, 0},              kA, 0},
    {"rsqrt",           1, kIfIdentity, true,  false, {0, 0, 0},              kA, 0},
    {"ceil",            1, kAlways,     true,  false, {0, 0, 0},              0,  0},
    {"floor",           1, kAlways,     true,  false, {0, 0, 0},              0,  0},
    {"round",           1, kAlways,     true,  false, {0, 0, 0},              0,  0},
    {"sin",             1, kNever,      true,  true,  {kA, 0, 0},             0,  0},
    {"cos",             1, kNever,      true,  true,  {kA, 0, 0},             0,  0},
    {"tan",             1, kNever,      true,  true,  {0, 0, 0},              kA, 0},
    {"asin",            1, kNever,      true,  true,  {kA, 0, 0},             0,  0},
    {"acos",            1, kNever,      true,  true,  {kA, 0, 0},             0,  0},
    {"atan",            1, kNever,      true,  true,  {kA, 0, 0},             0,  0},
    {"sinh",            1, kNever,      true,  true,  {kA, 0, 0},             0,  0},
    {"cosh",            1, kNever,      true,  true,  {kA, 0, 0},             0,  0},
    {"tanh",            1, kIfIdentity, true,  true,  {0, 0, 0},              kA, 0},
    {"asinh",           1, kNever,      true,  true,  {kA, 0, 0},             0,  0},
    {"acosh",           1, kNever,      true,  true,  {kA, 0, 0},             0,  0},
    {"atanh",           1, kNever,      true,  true,  {kA, 0, 0},             0,  0},
    {"pow",             2, kNever,      true,  true,  {kA | kB, kA | kB, 0},  kB, 0},
    {"exp",             1, kIfIdentity, true,  true,  {0, 0, 0},              kA, 0},
    {"exp2",            1, kIfIdentity, true,  true,  {0, 0, 0},              kA, 0},
    {"log",             1, kNever,      true,  true,  {kA, 0, 0},             0,  0},
    {"log2",            1, kNever,      true,  true,  {kA, 0, 0},             0,  0},
    {"multiply_no_nan", 2, kNever,      true,  false, {kB, kA | kB, 0},       0,  0},
    {"divide_no_nan",   2, kNever,      true,  false, {kB, kA | kB, 0},       0,  0},
    {"multiply_add",    3, kNever,      true,  false, {kB, kA, 0},            0,  kC},
    {"minimum",         2, kNever,      true,  false, {kA | kB, kA | kB, 0},  0,  0},
    {"maximum",         2, kNever,      true,  false, {kA | kB, kA | kB, 0},  0,  0},
    {"select",          3, kNever,      true,  false, {0, kA, kA},            0,  0},
    {"abs",             1, kNever,      true,  false, {kA, 0, 0},             0,  0},
    {"sign",            1, kAlways,     true,  false, {0, 0, 0},              0,  0},
    {"negate",          1, kAlways,     true,  false, {0, 0, 0},              0,  0},
    {"reciprocal",      1, kIfIdentity, true,  false, {0, 0, 0},              kA, 0},
    {"square",          1, kNever,      true,  false, {kA, 0, 0},             0,  0},
    {"floor_divide",    2, kNever,      false, true,  {0, 0, 0},              0,  0},
    {"trunc_divide",    2, kNever,      false, true,  {0, 0, 0},              0,  0},
    {"trunc_remainder", 2, kNever,      false, true,  {0, 0, 0},              0,  0},
    {"erf",             1, kNever,      true,  true,  {kA, 0, 0},             0,  0},
};
// clang-format on
static_assert(sizeof kFunctions / sizeof kFunctions[0] == BNNSArithmeticErf + 1);

const char* role_name(BNNSDescriptorType type) {
  return type == BNNSConstant ? "constant" : type == BNNSSample ? "sample" : "parameter";
}

// The operands of the three structs, as one list.
struct Fields {
  const BNNSNDArrayDescriptor* in[kArithmeticInputs] = {};
  BNNSDescriptorType in_type[kArithmeticInputs] = {};
  const BNNSNDArrayDescriptor* out = nullptr;
  BNNSDescriptorType out_type = {};
};

Fields read_fields(const void* fields, size_t inputs) {
  if (inputs == 1) {
    const auto& u = *static_cast<const BNNSArithmeticUnary*>(fields);
    return {{&u.in}, {u.in_type}, &u.out, u.out_type};
  }
  if (inputs == 2) {
    const auto& b = *static_cast<const BNNSArithmeticBinary*>(fields);
    return {{&b.in1, &b.in2}, {b.in1_type, b.in2_type}, &b.out, b.out_type};
  }
  const auto& t = *static_cast<const BNNSArithmeticTernary*>(fields);
  return {{&t.in1, &t.in2, &t.in3}, {t.in1_type, t.in2_type, t.in3_type}, &t.out, t.out_type};
}

void check_role(BNNSDescriptorType type, const char* field) {
  if (static_cast<uint32_t>(type) > BNNSParameter) {
    fail_invalid("%s: %s_type is %s, expected BNNSConstant, BNNSSample or BNNSParameter", kOp, field,
                 enum_text(type).text);
  }
}

void check_input(const Tensor& in, const Tensor& out, const char* field) {
  if (in.layout != out.layout) {
    fail_invalid("%s: %s.layout is %s, expected %s as in out: all operands have one layout", kOp, field,
                 enum_text(in.layout).text, enum_text(out.layout).text);
  }
  for (size_t k = 0; k < out.rank; ++k) {
    if (in.size[k] != out.size[k] && in.size[k] != 1) {
      fail_invalid("%s: %s.size[%zu] is %zu, expected out.size[%zu] = %zu or 1", kOp, field, k, in.size[k], k,
                   out.size[k]);
    }
  }
  if (is_indexed(in.type) || type_bytes(in.type) == 0) {
    fail_unsupported("%s: %s.data_type is %s: not offered; expected floats, whole-byte integers or booleans", kOp,
                     field, type_name(in.type));
  }
}

}  // namespace

const ArithmeticFunction* arithmetic_function(BNNSArithmeticFunction function) noexcept {
  const auto index = static_cast<uint32_t>(function);
  return index <= BNNSArithmeticErf ? &kFunctions[index] : nullptr;
}

ArithmeticProblem make_arithmetic_problem(const BNNSLayerParametersArithmetic* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersArithmetic", kOp);
  const ArithmeticFunction* info = arithmetic_function(layer->arithmetic_function);
  if (!info) {
    fail_invalid("%s: arithmetic_function is %s", kOp, enum_text(layer->arithmetic_function).text);
  }
  if (!layer->arithmetic_function_fields) {
    fail_invalid("%s: arithmetic_function_fields is NULL, expected the %u operands of %s", kOp, info->inputs,
                 info->name);
  }
  const Fields fields = read_fields(layer->arithmetic_function_fields, info->inputs);

  ArithmeticProblem p;
  p.function = layer->arithmetic_function;
  check_role(fields.out_type, "out");
  p.out = resolve(*fields.out, kOp, "out");
  check_distinct(p.out, kOp, "out");
  if (p.out.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    fail_unsupported("%s: out.layout is OIHW_Pack32: not offered", kOp);
  }
  if (!is_float(p.out.type)) {
    fail_unsupported("%s: out.data_type is %s: not offered; expected f32, f16 or bf16", kOp, type_name(p.out.type));
  }
  for (size_t k = 0; k < info->inputs; ++k) {
    char field[8];
    std::snprintf(field, sizeof field, info->inputs == 1 ? "in" : "in%zu", k + 1);
    check_role(fields.in_type[k], field);
    p.in_type[k] = fields.in_type[k];
    p.in[k] = resolve(*fields.in[k], kOp, field);
    check_input(p.in[k], p.out, field);
  }
  p.activation = make_fused_activation(layer->activation, kOp);
  return p;
}

std::string ArithmeticProblem::text() const {
  std::string result = std::string(kOp) + " " + info().name + "(";
  for (size_t k = 0; k < inputs(); ++k) {
    result += (k ? ", " : "") + std::string(role_name(in_type[k])) + " " + in[k].text();
  }
  result += ") -> " + out.text();
  if (!activation.is_identity()) result += std::string(" ") + activation_name(activation.function);
  return result;
}

}  // namespace bnns
