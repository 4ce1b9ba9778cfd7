// y = scale x + bias and y = (x - bias) / scale with the conversion of x on load and of y on store.
//
// A product and a sum, not a fused multiply-add: SSE4 has none, and a quantized value must not depend on the machine.

#include <type_traits>

#include "src/ops/quantization/quantization.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/quantization/quantization_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/convert-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

template <bool kDequantize, typename X, typename Y>
void Run(const QuantizationBlock& block) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d), n = block.n;
  const X* x = static_cast<const X*>(block.x);
  Y* y = static_cast<Y*>(block.y);
  const float *scale = block.scale, *bias = block.bias;
  const bool per_element = block.per_element;
  auto s = hn::Set(d, scale[0]), b = hn::Set(d, bias[0]);
  const auto map = [&](auto v) HWY_ATTR {
    if constexpr (kDequantize)
      return hn::Div(hn::Sub(v, b), s);
    else
      return hn::Add(hn::Mul(s, v), b);
  };
  size_t i = 0;
  for (; i + N <= n; i += N) {
    if (per_element) s = hn::LoadU(d, scale + i), b = hn::LoadU(d, bias + i);
    StoreFloat(d, map(LoadFloat(d, x + i)), y + i);
  }
  if (i < n) {
    const size_t left = n - i;
    if (per_element) s = LoadPartial(d, scale + i, left), b = LoadPartial(d, bias + i, left);
    StoreFloatPartial(d, map(LoadFloatPartial(d, x + i, left)), y + i, left);
  }
}

// The type that is not f32 (or both are): T of x if kLoad, else of y.
template <bool kLoad, typename T>
void RunFunction(const QuantizationBlock& block) {
  using X = std::conditional_t<kLoad, T, float>;
  using Y = std::conditional_t<kLoad, float, T>;
  block.dequantize ? Run<true, X, Y>(block) : Run<false, X, Y>(block);
}

template <bool kLoad>
void RunType(BNNSDataType type, const QuantizationBlock& block) {
  switch (type) {
    case BNNSDataTypeFloat16:
      return RunFunction<kLoad, hwy::float16_t>(block);
    case BNNSDataTypeBFloat16:
      return RunFunction<kLoad, hwy::bfloat16_t>(block);
    case BNNSDataTypeInt8:
      return RunFunction<kLoad, int8_t>(block);
    case BNNSDataTypeInt16:
      return RunFunction<kLoad, int16_t>(block);
    case BNNSDataTypeInt32:
      return RunFunction<kLoad, int32_t>(block);
    case BNNSDataTypeUInt8:
      return RunFunction<kLoad, uint8_t>(block);
    case BNNSDataTypeUInt16:
      return RunFunction<kLoad, uint16_t>(block);
    case BNNSDataTypeUInt32:
      return RunFunction<kLoad, uint32_t>(block);
    default:
      return RunFunction<kLoad, float>(block);
  }
}

}  // namespace

void QuantizeBlock(const QuantizationBlock& block) {
  if (block.x_type == BNNSDataTypeFloat32)
    RunType<false>(block.y_type, block);
  else
    RunType<true>(block.x_type, block);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void quantize_block(const QuantizationBlock& block) noexcept {
  BNNS_DISPATCH(QuantizeBlock)(block);
}

}  // namespace bnns
#endif
