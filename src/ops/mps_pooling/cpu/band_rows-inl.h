// Rows of texels between images (f32 or f16) and the slot arrays of the band kernels (mps_pooling/cpu/band.h).

#if defined(BNNS_OPS_MPS_POOLING_CPU_BAND_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_BAND_ROWS_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_BAND_ROWS_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_BAND_ROWS_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cmath>
#include <cstring>

#include "src/simd/convert-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;
using DTexel = hn::FixedTag<float, 4>;
constexpr size_t kLanes = hn::MaxLanes(DF());  // all our targets have fixed vectors

// a > b ? a : b. The second for NaN and for zeros of both signs: x86's instruction.
template <class D>
HWY_INLINE hn::Vec<D> Greater(D /*d*/, hn::Vec<D> a, hn::Vec<D> b) {
#if HWY_ARCH_X86
  return hn::Max(a, b);
#else
  return hn::IfThenElse(hn::Gt(a, b), a, b);
#endif
}

// Texels 0, 2, 4, ... and 1, 3, 5, ... of two vectors that follow each other.
HWY_INLINE void Deinterleave(VF a, VF b, VF& even, VF& odd) {
  const DF d;
#if HWY_TARGET == HWY_AVX3
  // One instruction each; Highway has no name for it.
  even = VF{_mm512_shuffle_f32x4(a.raw, b.raw, _MM_SHUFFLE(2, 0, 2, 0))};
  odd = VF{_mm512_shuffle_f32x4(a.raw, b.raw, _MM_SHUFFLE(3, 1, 3, 1))};
  (void)d;
#elif HWY_TARGET == HWY_AVX2
  even = hn::ConcatLowerLower(d, b, a), odd = hn::ConcatUpperUpper(d, b, a);
#else
  static_assert(kLanes == 4);
  even = a, odd = b;
  (void)d;
#endif
}

// The inverse: texels of even and odd columns in turn.
HWY_INLINE void Interleave(VF even, VF odd, VF& low, VF& high) {
  const DF d;
#if HWY_TARGET == HWY_AVX3
  const __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i second = _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
  low = VF{_mm512_permutex2var_ps(even.raw, first, odd.raw)};
  high = VF{_mm512_permutex2var_ps(even.raw, second, odd.raw)};
  (void)d;
#elif HWY_TARGET == HWY_AVX2
  low = hn::ConcatLowerLower(d, odd, even), high = hn::ConcatUpperUpper(d, odd, even);
#else
  low = even, high = odd;
  (void)d;
#endif
}
HWY_INLINE void StoreInterleaved(VF even, VF odd, float* to) {
  const DF d;
  VF low, high;
  Interleave(even, odd, low, high);
  hn::Store(low, d, to), hn::Store(high, d, to + kLanes);
}

// To whole lines of an image, with non-temporal stores (DirectRange: only with vectors of a line).
HWY_INLINE void StreamInterleaved(VF even, VF odd, float* to) {
  const DF d;
  VF low, high;
  Interleave(even, odd, low, high);
  hn::Stream(low, d, to), hn::Stream(high, d, to + kLanes);
}
HWY_INLINE void StreamInterleaved(VF even, VF odd, hwy::float16_t* to) {
  const DF d;
  VF low, high;
  Interleave(even, odd, low, high);
#if HWY_TARGET == HWY_AVX3
  const hn::ScalableTag<uint16_t> whole;
  hn::Stream(hn::Combine(whole, ConvertFromFloat<hwy::float16_t>(d, high), ConvertFromFloat<hwy::float16_t>(d, low)),
             whole, reinterpret_cast<uint16_t*>(to));
#else
  StoreFloat(d, low, to), StoreFloat(d, high, to + kLanes);
#endif
}

// What happens to a value on its way in. A gradient's -0 becomes 0, as when it is added to a sum. Of a maximum NaN
// becomes -inf, so that comparisons need not think of it (band_task tells when that was not enough).
enum class OnLoad { keep, no_negative_zero, no_nan };
template <OnLoad kOn, class D>
HWY_INLINE hn::Vec<D> Loaded(D d, hn::Vec<D> v) {
  if constexpr (kOn == OnLoad::no_negative_zero) return hn::Add(v, hn::Zero(d));
  if constexpr (kOn == OnLoad::no_nan) return Greater(d, v, hn::Set(d, -HUGE_VALF));
  return v;
}

template <typename T>
HWY_INLINE void PrefetchLines(const T* from, size_t n) {
  for (size_t k = 0; k < n; k += 64 / sizeof(T)) hwy::Prefetch(from + k);
}

// n texels from `from`, one after the other. `ahead` elements on, if not 0, is what will be wanted soon.
template <OnLoad kOn, typename T>
HWY_INLINE void LoadTexels(const T* from, size_t n, float* to, ptrdiff_t ahead) {
  const DF d;
  const DTexel d4;
  size_t i = 0;
  if (ahead != 0) PrefetchLines(from + ahead, 4 * n);
  for (n *= 4; i + kLanes <= n; i += kLanes) hn::StoreU(Loaded<kOn>(d, LoadFloat(d, from + i)), d, to + i);
  if (i == n) return;
  if constexpr (HWY_TARGET == HWY_AVX3) {  // masks are exact and cheap
    StorePartial(d, Loaded<kOn>(d, LoadFloatPartial(d, from + i, n - i)), to + i, n - i);
  } else {
    for (; i < n; i += 4) hn::StoreU(Loaded<kOn>(d4, LoadFloat(d4, from + i)), d4, to + i);
  }
}

// n texels, in turn to `first` and to `second`.
template <OnLoad kOn, typename T>
HWY_INLINE void LoadPairs(const T* from, size_t n, float* first, float* second, ptrdiff_t ahead) {
  const DF d;
  const DTexel d4;
  if (ahead != 0) PrefetchLines(from + ahead, 4 * n);
  size_t i = 0, o = 0;
  for (n *= 4; i + 2 * kLanes <= n; i += 2 * kLanes, o += kLanes) {
    VF even, odd;
    Deinterleave(Loaded<kOn>(d, LoadFloat(d, from + i)), Loaded<kOn>(d, LoadFloat(d, from + i + kLanes)), even, odd);
    hn::StoreU(even, d, first + o), hn::StoreU(odd, d, second + o);
  }
  for (; i < n; i += 8, o += 4) {
    hn::StoreU(Loaded<kOn>(d4, LoadFloat(d4, from + i)), d4, first + o);
    if (i + 4 < n) hn::StoreU(Loaded<kOn>(d4, LoadFloat(d4, from + i + 4)), d4, second + o);
  }
}

// Where the rows of a plane go. Rows that follow each other in memory leave as whole cache lines, with non-temporal
// stores if asked; what is left of a line waits here for the next row.
template <typename T>
struct alignas(64) RowCarry {
  static constexpr size_t kLine = 64 / sizeof(T);
  T data[kLine];
  T* line;             // the cache line that data is for
  size_t begin, fill;  // elements [begin, fill) of it wait
  const T* source;     // the plane in the three images
  const T* gradient;
  T* target;

  HWY_NOINLINE void Spill() {
    if (fill > begin) std::memcpy(line + begin, data + begin, (fill - begin) * sizeof(T));
    begin = fill = 0, line = nullptr;
  }
  // The line is full.
  HWY_INLINE void Send() {
    if (begin == 0) {
      const hn::ScalableTag<uint32_t> d;
      const auto* from = reinterpret_cast<const uint32_t*>(data);
      auto* to = reinterpret_cast<uint32_t*>(line);
      for (size_t i = 0; i < 16; i += hn::Lanes(d)) hn::Stream(hn::Load(d, from + i), d, to + i);
    } else {  // elements before it are not ours
      std::memcpy(line + begin, data + begin, (kLine - begin) * sizeof(T));
    }
    begin = fill = 0, line += kLine;
  }
};

HWY_INLINE void StreamLine(const float* from, float* to) {
  const DF d;
  for (size_t i = 0; i < 16; i += kLanes) hn::Stream(hn::LoadU(d, from + i), d, to + i);
}
HWY_INLINE void StreamLine(const float* from, hwy::float16_t* to) {
  const DF d;
  const hn::ScalableTag<uint16_t> whole;
  (void)whole;
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  for (size_t i = 0; i < 32; i += 2 * kLanes) {
    const auto low = ConvertFromFloat<hwy::float16_t>(d, hn::LoadU(d, from + i));
    const auto high = ConvertFromFloat<hwy::float16_t>(d, hn::LoadU(d, from + i + kLanes));
    hn::Stream(hn::Combine(whole, high, low), whole, reinterpret_cast<uint16_t*>(to) + i);
  }
#else
  for (size_t i = 0; i < 32; i += kLanes) StoreFloat(d, hn::LoadU(d, from + i), to + i);
#endif
}

// n floats of `row` to `to`.
template <typename T>
HWY_INLINE void StoreRow(const float* row, size_t n, T* to, bool stream, RowCarry<T>& carry) {
  if (!stream) return FromFloat(row, n, to);
  constexpr size_t kLine = RowCarry<T>::kLine;
  if (carry.line == nullptr || to != carry.line + carry.fill) {
    carry.Spill();
    carry.begin = carry.fill = reinterpret_cast<uintptr_t>(to) % 64 / sizeof(T);
    carry.line = to - carry.fill;
  }
  if (carry.fill != 0) {
    const size_t part = HWY_MIN(n, kLine - carry.fill);
    FromFloat(row, part, carry.data + carry.fill);
    carry.fill += part, row += part, n -= part;
    if (carry.fill != kLine) return;
    carry.Send();
  }
  for (; n >= kLine; n -= kLine, row += kLine, carry.line += kLine) StreamLine(row, carry.line);
  FromFloat(row, n, carry.data);
  carry.fill = n;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_MPS_POOLING_CPU_BAND_ROWS_INL_H_
