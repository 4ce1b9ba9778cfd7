// The span conversions of convert.h: one call of src/simd/convert-inl.h each.

#include "src/simd/convert.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/convert_simd.cc"
#include <hwy/foreach_target.h>  // compiles this file once per instruction set
#include <hwy/highway.h>

#include "src/simd/convert-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
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

}  // namespace bnns
#endif
