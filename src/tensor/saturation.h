// The fused IntegerLinearSaturate of fully connected and convolution: an exact integer sum becomes
// saturate((scale * sum + offset) >> shift).
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "bnns/bnns.h"
#include "src/core/error.h"
#include "src/tensor/tensor.h"

namespace bnns {

__extension__ typedef __int128 WideInteger;  // scale times a sum of 32-bit products passes 64 bits

struct IntegerSaturation {
  int32_t scale = 0, offset = 0, shift = 0;

  // Ready for store_saturated, which clamps to the type.
  int64_t operator()(WideInteger sum) const {
    return static_cast<int64_t>(std::clamp<WideInteger>((scale * sum + offset) >> shift, INT64_MIN, INT64_MAX));
  }
};

inline bool is_integer_saturation(BNNSActivationFunction function) {
  return function == BNNSActivationFunctionIntegerLinearSaturate ||
         function == BNNSActivationFunctionIntegerLinearSaturatePerChannel;
}

// Checks activation and the types of input, weights, output and bias (count 0: none).
inline IntegerSaturation make_integer_saturation(const BNNSActivation& activation,
                                                 std::initializer_list<const Tensor*> tensors, const Tensor& bias,
                                                 const char* op) {
  if (activation.function == BNNSActivationFunctionIntegerLinearSaturatePerChannel) {
    fail_unsupported("%s: activation is IntegerLinearSaturatePerChannel; the fused form is IntegerLinearSaturate", op);
  }
  for (const Tensor* t : tensors) {
    if (!is_integer(t->type) || type_bytes(t->type) == 0 || type_bytes(t->type) > 4) {
      fail_unsupported("%s: activation IntegerLinearSaturate with %s data; it takes 8, 16 and 32-bit integers", op,
                       type_name(t->type));
    }
  }
  if (bias.count != 0 && !is_integer(bias.type)) {
    fail_unsupported("%s: activation IntegerLinearSaturate with a %s bias; it takes an integer one", op,
                     type_name(bias.type));
  }
  if (activation.ishift < 0 || activation.ishift > 62) {
    fail_invalid("%s: activation.ishift is %d, expected 0 to 62", op, activation.ishift);
  }
  return {activation.iscale, activation.ioffset, activation.ishift};
}

}  // namespace bnns
