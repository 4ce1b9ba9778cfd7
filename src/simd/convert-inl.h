// Loads and stores that convert between float vectors and arrays of another element type:
//   half, bfloat16 (hwy::float16_t, hwy::bfloat16_t: tags for bit patterns), int8, uint8, int16, uint16, int32, uint32
//
// To 16-bit floats: nearest, ties to even, overflow to inf, NaN quieted with its sign and upper payload, the same bits
// as src/core/half.h on every instruction set. To integers: nearest, ties to even, saturated; NaN becomes 0.
// From int32 and uint32: nearest, ties to even.
//
// Highway 1.0.3 promotes and demotes half by F16C where it exists (AVX2 and AVX-512; imm8 = nearest even), but without
// F16C it truncates and loses inf and NaN, and its bfloat16 demotion truncates everywhere: those are done here.

#if defined(BNNS_SIMD_CONVERT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_SIMD_CONVERT_INL_H_
#undef BNNS_SIMD_CONVERT_INL_H_
#else
#define BNNS_SIMD_CONVERT_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Arrays of bit patterns as arrays of a format. Never read as such: the functions below go through uint16_t vectors.
HWY_INLINE const hwy::float16_t* AsHalf(const uint16_t* p) {
  return reinterpret_cast<const hwy::float16_t*>(p);
}
HWY_INLINE hwy::float16_t* AsHalf(uint16_t* p) {
  return reinterpret_cast<hwy::float16_t*>(p);
}
HWY_INLINE const hwy::bfloat16_t* AsBfloat16(const uint16_t* p) {
  return reinterpret_cast<const hwy::bfloat16_t*>(p);
}
HWY_INLINE hwy::bfloat16_t* AsBfloat16(uint16_t* p) {
  return reinterpret_cast<hwy::bfloat16_t*>(p);
}

namespace detail {

// The element type as it lies in memory.
template <typename T>
struct Stored {
  using type = T;
};
template <>
struct Stored<hwy::float16_t> {
  using type = uint16_t;
};
template <>
struct Stored<hwy::bfloat16_t> {
  using type = uint16_t;
};
template <typename T>
using StoredType = typename Stored<T>::type;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
template <class DF, class V16>
HWY_INLINE hn::Vec<DF> HalfToFloat32(DF df, V16 half) {
  return hn::PromoteTo(df, hn::BitCast(hn::Rebind<hwy::float16_t, DF>(), half));
}
template <class DF>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, DF>> Float32ToHalf(DF /*df*/, hn::Vec<DF> v) {
  return hn::BitCast(hn::Rebind<uint16_t, DF>(), hn::DemoteTo(hn::Rebind<hwy::float16_t, DF>(), v));
}
#else
template <class DF, class V16>
HWY_INLINE hn::Vec<DF> HalfToFloat32(DF df, V16 half) {
  const hn::RebindToUnsigned<DF> du;
  const hn::RebindToSigned<DF> di;
  const auto bits = hn::PromoteTo(du, half);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFu));
  const auto shifted = hn::ShiftLeft<13>(magnitude);
  const auto normal = hn::Add(shifted, hn::Set(du, (127u - 15u) << 23));
  // Exponent 31 becomes 255; a NaN becomes quiet, as F16C does it.
  const auto special = hn::Or(shifted, hn::Set(du, 0x7F800000u));
  const auto quiet = hn::Or(special, hn::Set(du, 0x00400000u));
  // Integer times 2^-24 is exact and never a subnormal float, so FTZ and DAZ do not matter.
  const auto tiny = hn::BitCast(du, hn::Mul(hn::ConvertTo(df, hn::BitCast(di, magnitude)), hn::Set(df, 0x1p-24f)));
  const auto m = hn::BitCast(di, magnitude);  // signed compares, which SSE4 has
  const auto below = [&](int32_t limit) HWY_ATTR { return hn::RebindMask(du, hn::Lt(m, hn::Set(di, limit))); };
  auto out = hn::IfThenElse(below(0x0400), tiny, normal);
  out = hn::IfThenElse(below(0x7C00), out, special);
  out = hn::IfThenElse(below(0x7C01), out, quiet);
  const auto sign = hn::ShiftLeft<16>(hn::Sub(bits, magnitude));
  return hn::BitCast(df, hn::Or(out, sign));
}
template <class DF>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, DF>> Float32ToHalf(DF df, hn::Vec<DF> v) {
  const hn::RebindToUnsigned<DF> du;
  const hn::RebindToSigned<DF> di;
  const auto bits = hn::BitCast(du, v);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7FFFFFFFu));
  const auto sign = hn::ShiftRight<16>(hn::Sub(bits, magnitude));
  // Normal results: half an ulp less one, plus one if the kept part is odd, then cut; 65520 carries into inf.
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1u));
  const auto rounded = hn::Add(hn::Add(magnitude, odd), hn::Set(du, 0xFFFu - ((127u - 15u) << 23)));
  const auto normal = hn::ShiftRight<13>(rounded);
  // Subnormal results: in [0.5, 1) the ulp of a float is 2^-24, that of the result; the addition rounds.
  const auto half = hn::Set(df, 0.5f);
  const auto tiny = hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(df, magnitude), half)), hn::BitCast(du, half));
  const auto nan = hn::Or(hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x3FFu)), hn::Set(du, 0x7E00u));
  const auto m = hn::BitCast(di, magnitude);  // 31 bits: signed compares, which SSE4 has
  const auto below = [&](int32_t limit) HWY_ATTR { return hn::RebindMask(du, hn::Lt(m, hn::Set(di, limit))); };
  auto out = hn::IfThenElse(below(0x38800000), tiny, normal);
  out = hn::IfThenElse(below(0x47800000), out, hn::Set(du, 0x7C00u));
  out = hn::IfThenElse(below(0x7F800001), out, nan);
  return hn::DemoteTo(hn::Rebind<uint16_t, DF>(), hn::BitCast(di, hn::Or(out, sign)));
}
#endif

template <class DF, class V16>
HWY_INLINE hn::Vec<DF> Bfloat16ToFloat32(DF df, V16 value) {
  const hn::RebindToUnsigned<DF> du;
  return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(du, value)));
}
template <class DF>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, DF>> Float32ToBfloat16(DF df, hn::Vec<DF> v) {
  const hn::RebindToUnsigned<DF> du;
  const hn::RebindToSigned<DF> di;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1u));
  const auto rounded = hn::Add(hn::Add(bits, odd), hn::Set(du, 0x7FFFu));
  const auto nan = hn::Or(bits, hn::Set(du, 0x00400000u));
  const auto out = hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), nan, rounded);  // Ne(v, v) is false on AVX2
  (void)df;
  return hn::DemoteTo(hn::Rebind<uint16_t, DF>(), hn::BitCast(di, hn::ShiftRight<16>(out)));
}

}  // namespace detail

// ConvertToFloat(df, v): a vector of T's memory type, as many lanes as df, to float.
template <typename T, class DF, class V>
HWY_INLINE hn::Vec<DF> ConvertToFloat(DF df, V v) {
  const hn::RebindToSigned<DF> di;
  if constexpr (hwy::IsSame<T, hwy::float16_t>()) {
    return detail::HalfToFloat32(df, v);
  } else if constexpr (hwy::IsSame<T, hwy::bfloat16_t>()) {
    return detail::Bfloat16ToFloat32(df, v);
  } else if constexpr (hwy::IsSame<T, float>()) {
    return v;
  } else if constexpr (sizeof(T) == 4) {
    return hn::ConvertTo(df, v);
  } else {
    return hn::ConvertTo(df, hn::PromoteTo(di, v));
  }
}

// ConvertFromFloat<T>(df, v): the inverse.
template <typename T, class DF>
HWY_INLINE hn::Vec<hn::Rebind<detail::StoredType<T>, DF>> ConvertFromFloat(DF df, hn::Vec<DF> v) {
  const hn::RebindToSigned<DF> di;
  const hn::RebindToUnsigned<DF> du;
  if constexpr (hwy::IsSame<T, hwy::float16_t>()) {
    return detail::Float32ToHalf(df, v);
  } else if constexpr (hwy::IsSame<T, hwy::bfloat16_t>()) {
    return detail::Float32ToBfloat16(df, v);
  } else if constexpr (hwy::IsSame<T, float>()) {
    return v;
  } else {
    const auto ordered = hn::IfThenElseZero(hn::Eq(v, v), v);  // NaN to 0
    if constexpr (hwy::IsSame<T, uint32_t>()) {
      // Halves of the range, as conversions are signed; both subtractions are exact.
      const auto r = hn::Max(hn::Round(ordered), hn::Zero(df));
      const auto upper = hn::Ge(r, hn::Set(df, 0x1p31f));
      const auto low = hn::IfThenElse(upper, hn::Sub(r, hn::Set(df, 0x1p31f)), r);
      const auto whole = hn::BitCast(du, hn::ConvertTo(di, low));
      const auto top = hn::IfThenElseZero(hn::RebindMask(du, upper), hn::Set(du, 0x80000000u));
      const auto too_big = hn::RebindMask(du, hn::Ge(r, hn::Set(df, 0x1p32f)));
      return hn::IfThenElse(too_big, hn::Set(du, 0xFFFFFFFFu), hn::Or(whole, top));
    } else if constexpr (hwy::IsSame<T, int32_t>()) {
      return hn::NearestInt(ordered);  // saturates
    } else {
      // Clamped as floats: on AVX2 and AVX-512 Highway 1.0.3 demotes int32 above 32767 to uint8 0, not 255.
      const auto low = hn::Set(df, static_cast<float>(hwy::LimitsMin<T>()));
      const auto high = hn::Set(df, static_cast<float>(hwy::LimitsMax<T>()));
      return hn::DemoteTo(hn::Rebind<T, DF>(), hn::NearestInt(hn::Min(hn::Max(ordered, low), high)));
    }
  }
}

// Lanes(df) elements at p as floats.
template <class DF, typename T>
HWY_INLINE hn::Vec<DF> LoadFloat(DF df, const T* p) {
  using S = detail::StoredType<T>;
  return ConvertToFloat<T>(df, hn::LoadU(hn::Rebind<S, DF>(), reinterpret_cast<const S*>(p)));
}

// The first `count` < Lanes(df) elements, zeros above.
template <class DF, typename T>
HWY_INLINE hn::Vec<DF> LoadFloatPartial(DF df, const T* p, size_t count) {
  using S = detail::StoredType<T>;
  return ConvertToFloat<T>(df, LoadPartial(hn::Rebind<S, DF>(), reinterpret_cast<const S*>(p), count));
}

template <class DF, typename T>
HWY_INLINE void StoreFloat(DF df, hn::Vec<DF> v, T* p) {
  using S = detail::StoredType<T>;
  hn::StoreU(ConvertFromFloat<T>(df, v), hn::Rebind<S, DF>(), reinterpret_cast<S*>(p));
}

template <class DF, typename T>
HWY_INLINE void StoreFloatPartial(DF df, hn::Vec<DF> v, T* p, size_t count) {
  using S = detail::StoredType<T>;
  StorePartial(hn::Rebind<S, DF>(), ConvertFromFloat<T>(df, v), reinterpret_cast<S*>(p), count);
}

// dst[i] = src[i] for n elements.
template <typename T>
HWY_INLINE void ToFloat(const T* src, size_t n, float* dst) {
  const hn::ScalableTag<float> df;
  const size_t N = hn::Lanes(df);
  size_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(LoadFloat(df, src + i), df, dst + i);
  if (i < n) StorePartial(df, LoadFloatPartial(df, src + i, n - i), dst + i, n - i);
}

template <typename T>
HWY_INLINE void FromFloat(const float* src, size_t n, T* dst) {
  const hn::ScalableTag<float> df;
  const size_t N = hn::Lanes(df);
  size_t i = 0;
  for (; i + N <= n; i += N) StoreFloat(df, hn::LoadU(df, src + i), dst + i);
  if (i < n) StoreFloatPartial(df, LoadPartial(df, src + i, n - i), dst + i, n - i);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_SIMD_CONVERT_INL_H_
