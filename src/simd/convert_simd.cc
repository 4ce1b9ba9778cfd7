// The span conversions of convert.h: of floats, one call of src/simd/convert-inl.h each; of integers, here.

#include "src/simd/convert.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/convert_simd.cc"
#include <hwy/foreach_target.h>  // compiles this file once per instruction set
#include <hwy/highway.h>

#include "src/simd/convert-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

namespace {  // these names stay inside this file

void HalfToFloat(const uint16_t* src, float* dst, size_t n) {
  ToFloat(AsHalf(src), n, dst);
}
void FloatToHalf(const float* src, uint16_t* dst, size_t n) {
  FromFloat(src, n, AsHalf(dst));
}
void Bfloat16ToFloat(const uint16_t* src, float* dst, size_t n) {
  ToFloat(AsBfloat16(src), n, dst);
}
void FloatToBfloat16(const float* src, uint16_t* dst, size_t n) {
  FromFloat(src, n, AsBfloat16(dst));
}

template <class T>
void IntegersToFloat(const T* src, float* dst, size_t n, float scale, float bias) {
  const hn::ScalableTag<float> d;
  const hn::Rebind<T, decltype(d)> from;
  const size_t lanes = hn::Lanes(d);
  const auto s = hn::Set(d, scale), b = hn::Set(d, bias);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<decltype(d)>(), hn::LoadU(from, src + i)));
    hn::StoreU(hn::Add(hn::Mul(s, x), b), d, dst + i);
  }
  for (; i < n; ++i) dst[i] = scale * static_cast<float>(src[i]) + bias;
}

}  // namespace
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void half_to_float(const uint16_t* src, float* dst, size_t n) noexcept {
  BNNS_DISPATCH(HalfToFloat)(src, dst, n);
}
void float_to_half(const float* src, uint16_t* dst, size_t n) noexcept {
  BNNS_DISPATCH(FloatToHalf)(src, dst, n);
}
void bfloat16_to_float(const uint16_t* src, float* dst, size_t n) noexcept {
  BNNS_DISPATCH(Bfloat16ToFloat)(src, dst, n);
}
void float_to_bfloat16(const float* src, uint16_t* dst, size_t n) noexcept {
  BNNS_DISPATCH(FloatToBfloat16)(src, dst, n);
}

void integers_to_float(const int8_t* src, float* dst, size_t n, float scale, float bias) noexcept {
  BNNS_DISPATCH(IntegersToFloat<int8_t>)(src, dst, n, scale, bias);
}
void integers_to_float(const uint8_t* src, float* dst, size_t n, float scale, float bias) noexcept {
  BNNS_DISPATCH(IntegersToFloat<uint8_t>)(src, dst, n, scale, bias);
}
void integers_to_float(const int16_t* src, float* dst, size_t n, float scale, float bias) noexcept {
  BNNS_DISPATCH(IntegersToFloat<int16_t>)(src, dst, n, scale, bias);
}
void integers_to_float(const uint16_t* src, float* dst, size_t n, float scale, float bias) noexcept {
  BNNS_DISPATCH(IntegersToFloat<uint16_t>)(src, dst, n, scale, bias);
}

}  // namespace bnns
#endif
