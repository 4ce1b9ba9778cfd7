// Names of the functions, and what a fused layer asks about them.

#include "src/engine/activation/activation.h"

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/core/half.h"

namespace bnns {
namespace {

constexpr const char* kNames[] = {"identity",
                                  "relu",
                                  "leaky_relu",
                                  "sigmoid",
                                  "tanh",
                                  "scaled_tanh",
                                  "abs",
                                  "linear",
                                  "clamp",
                                  "integer_linear_saturate",
                                  "integer_linear_saturate_per_channel",
                                  "softmax",
                                  "gelu_approximation",
                                  "gumbel",
                                  "gumbel_max",
                                  "hard_sigmoid",
                                  "softplus",
                                  "softsign",
                                  "elu",
                                  "clamped_leaky_relu",
                                  "linear_with_bias",
                                  "log_softmax",
                                  "log_sigmoid",
                                  "selu",
                                  "celu",
                                  "hard_shrink",
                                  "soft_shrink",
                                  "tanh_shrink",
                                  "threshold",
                                  "prelu_per_channel",
                                  "hard_swish",
                                  "silu",
                                  "relu6",
                                  "erf",
                                  "gelu",
                                  "gelu_approximation_sigmoid"};
constexpr size_t kFunctions = sizeof kNames / sizeof kNames[0];
static_assert(kFunctions == BNNSActivationFunctionGELUApproximationSigmoid + 1);

}  // namespace

const char* activation_name(BNNSActivationFunction function) noexcept {
  const size_t index = static_cast<size_t>(function);
  return index < kFunctions ? kNames[index] : "unknown";
}

void check_activation_function(BNNSActivationFunction function, const char* op) {
  if (static_cast<size_t>(function) >= kFunctions) {
    fail_invalid("%s: activation.function is %s", op, enum_text(function).text);
  }
}

Activation make_fused_activation(const BNNSActivation& activation, const char* op) {
  check_activation_function(activation.function, op);
  switch (activation.function) {
    case BNNSActivationFunctionIntegerLinearSaturate:
    case BNNSActivationFunctionIntegerLinearSaturatePerChannel:
    case BNNSActivationFunctionGumbel:
    case BNNSActivationFunctionGumbelMax:
      fail_unsupported("%s: activation %s cannot be fused into a float layer", op,
                       activation_name(activation.function));
    case BNNSActivationFunctionPReLUPerChannel:
      return {BNNSActivationFunctionLeakyRectifiedLinear, activation.alpha, activation.beta};
    default:
      return {activation.function, activation.alpha, activation.beta};
  }
}

bool has_derivative_from_output(const Activation& activation) noexcept {
  switch (activation.function) {
    case BNNSActivationFunctionIdentity:
    case BNNSActivationFunctionRectifiedLinear:
    case BNNSActivationFunctionSigmoid:
    case BNNSActivationFunctionTanh:
    case BNNSActivationFunctionLinear:
    case BNNSActivationFunctionClamp:
    case BNNSActivationFunctionSoftmax:
    case BNNSActivationFunctionGumbel:
    case BNNSActivationFunctionHardSigmoid:
    case BNNSActivationFunctionSoftsign:
    case BNNSActivationFunctionLinearWithBias:
    case BNNSActivationFunctionLogSoftmax:
    case BNNSActivationFunctionLogSigmoid:
    case BNNSActivationFunctionSELU:
    case BNNSActivationFunctionThreshold:
    case BNNSActivationFunctionReLU6:
      return true;
    // The sign of y tells the branch only while alpha x and x have the same sign.
    case BNNSActivationFunctionLeakyRectifiedLinear:
    case BNNSActivationFunctionELU:
    case BNNSActivationFunctionClampedLeakyRectifiedLinear:
    case BNNSActivationFunctionPReLUPerChannel:
      return activation.alpha > 0;
    // y is divided by alpha, or is zero on the whole band |x| < |alpha| and nowhere else.
    case BNNSActivationFunctionScaledTanh:
    case BNNSActivationFunctionSoftplus:
    case BNNSActivationFunctionCELU:
    case BNNSActivationFunctionHardShrink:
    case BNNSActivationFunctionSoftShrink:
      return activation.alpha != 0;
    default:
      return false;
  }
}

Activation as_stored(const Activation& activation, BNNSDataType type) noexcept {
  const auto rounded = [type](float value) {
    return type == BNNSDataTypeFloat16    ? half_to_float(float_to_half(value))
           : type == BNNSDataTypeBFloat16 ? bfloat16_to_float(float_to_bfloat16(value))
                                          : value;
  };
  Activation stored = activation;
  switch (activation.function) {
    case BNNSActivationFunctionClamp:
      stored.alpha = rounded(activation.alpha);
      [[fallthrough]];
    case BNNSActivationFunctionClampedLeakyRectifiedLinear:
    case BNNSActivationFunctionThreshold:
      stored.beta = rounded(activation.beta);
      break;
    default:
      break;
  }
  return stored;
}

}  // namespace bnns
