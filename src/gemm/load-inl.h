// Loads of f32, f16, bf16 and bytes as f32 vectors, and of the last few elements of a row. Included once per target.
#if defined(BNNS_GEMM_LOAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_GEMM_LOAD_INL_H_
#undef BNNS_GEMM_LOAD_INL_H_
#else
#define BNNS_GEMM_LOAD_INL_H_
#endif

#include <hwy/highway.h>

#include "src/gemm/pack.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// f(element) with an element of the type.
template <class F>
HWY_INLINE void WithElement(FloatType type, const F& f) {
  switch (type) {
    case FloatType::f32:
      return f(float());
    case FloatType::f16:
      return f(hwy::float16_t());
    case FloatType::bf16:
      return f(hwy::bfloat16_t());
    case FloatType::i8:
      return f(int8_t());
    case FloatType::u8:
      return f(uint8_t());
  }
}

template <class DF>
HWY_INLINE hn::Vec<DF> LoadFloats(DF d, const float* p) {
  return hn::LoadU(d, p);
}
template <class DF, class T>
HWY_INLINE hn::Vec<DF> LoadFloats(DF d, const T* p) {
  if constexpr (sizeof(T) == 1) {
    return hn::ConvertTo(d, hn::PromoteTo(hn::RebindToSigned<DF>(), hn::LoadU(hn::Rebind<T, DF>(), p)));
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, DF>(), p));
  }
}

// The first count < Lanes(d) elements, then zeros; nothing beyond them is read.
template <class DF, class T>
HWY_INLINE hn::Vec<DF> LoadFirst(DF d, const T* p, size_t count) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3  // SSE4 and NEON have no load that suppresses faults
  if constexpr (sizeof(T) == sizeof(float)) return hn::MaskedLoad(hn::FirstN(d, count), d, p);
#endif
  T some[HWY_MAX_BYTES / sizeof(float)] = {};
  for (size_t i = 0; i < count; ++i) some[i] = p[i];
  return LoadFloats(d, some);
}

template <class DF>
HWY_INLINE void StoreFirst(hn::Vec<DF> v, DF d, float* p, size_t count) {
#if HWY_TARGET == HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(d, count), d, p);
#else
  HWY_ALIGN float some[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, some);
  for (size_t i = 0; i < count; ++i) p[i] = some[i];
#endif
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
