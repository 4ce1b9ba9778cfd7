// Moves of lanes between neighbouring vectors of a row, one instruction each on AVX-512, and loads at the ends of rows.

#if defined(BNNS_OPS_POOLING_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_POOLING_LANES_INL_H_
#undef BNNS_OPS_POOLING_LANES_INL_H_
#else
#define BNNS_OPS_POOLING_LANES_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "src/ops/pooling/common/geometry.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DLane = hn::ScalableTag<float>;
using VLane = hn::Vec<DLane>;
using MLane = hn::Mask<DLane>;

constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(DLane()));  // our vectors have a fixed length

// Prefetches the line of memory at p + kAhead. A page ahead, since the hardware's own prefetching ends with the page;
// to L2, since prefetches to L1 wait for each other (on a Zen 4 a third slower).
constexpr int64_t kAhead = 1024;
HWY_INLINE void FetchAhead(const float* p) {
  __builtin_prefetch(p + kAhead, 0, 2);
}
// The lines of n floats.
HWY_INLINE void FetchAhead(const float* p, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) FetchAhead(p + i);
}

// Prefetches the rows of pixels under some rows of windows, line by line, before a kernel reads several of them side by
// side: of rows of many lines it would read two or three streams at a time, which a Zen 4 reads more slowly than one
// (L2 backward, rows of 224: 36 instead of 43 GB/s). Few rows at a time: they must not fill the queue to L2.
constexpr int64_t kLongRow = 96;
HWY_INLINE void FetchRows(const PoolingGeometry& g, const float* plane, int64_t pitch, Span windows) {
  const int64_t bottom = std::min(g.y.in, g.y.start(windows.end - 1) + g.y.kernel);
  for (int64_t y = std::max<int64_t>(0, g.y.start(windows.begin)); y < bottom; ++y) {
    for (int64_t i = 0; i < g.x.in; i += 16) __builtin_prefetch(plane + y * pitch + i, 0, 3);
  }
}

// candidate > best ? candidate : best: ties keep the first. On x86 that is what the instruction does.
HWY_INLINE VLane Larger(VLane candidate, VLane best) {
#if HWY_ARCH_X86
  return hn::Max(candidate, best);
#else
  return hn::IfThenElse(hn::Gt(candidate, best), candidate, best);
#endif
}

HWY_INLINE VLane EvenLanes(VLane low, VLane high) {
  return hn::ConcatEven(DLane(), high, low);
}
HWY_INLINE VLane OddLanes(VLane low, VLane high) {
  return hn::ConcatOdd(DLane(), high, low);
}

// The row `low`, `high` moved by one place: without the first element of low, with the first of high.
HWY_INLINE VLane NextLanes(VLane low, VLane high) {
#if HWY_TARGET == HWY_AVX3
  return VLane{
      _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(high.raw), _mm512_castps_si512(low.raw), 1))};
#else
  const DLane d;
  HWY_ALIGN static constexpr int32_t kPlaces[8] = {1, 2, 3, kLanes == 4 ? 0 : 4, 5, 6, 7, 0};
  return hn::TableLookupLanes(hn::IfThenElse(hn::FirstN(d, 1), high, low), hn::SetTableIndices(d, kPlaces));
#endif
}
// The other way: `high` with the last element of low before it, without its own last one.
HWY_INLINE VLane PreviousLanes(VLane low, VLane high) {
#if HWY_TARGET == HWY_AVX3
  return VLane{
      _mm512_castsi512_ps(_mm512_alignr_epi32(_mm512_castps_si512(high.raw), _mm512_castps_si512(low.raw), 15))};
#else
  const DLane d;
  HWY_ALIGN static constexpr int32_t kPlaces[8] = {kLanes - 1, 0, 1, 2, 3, 4, 5, 6};
  return hn::TableLookupLanes(hn::IfThenElse(hn::FirstN(d, kLanes - 1), high, low), hn::SetTableIndices(d, kPlaces));
#endif
}

// The elements of two vectors taking turns.
HWY_INLINE void TakeTurns(VLane even, VLane odd, VLane* low, VLane* high) {
#if HWY_TARGET == HWY_AVX3
  const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i second = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  *low = VLane{_mm512_permutex2var_ps(even.raw, first, odd.raw)};
  *high = VLane{_mm512_permutex2var_ps(even.raw, second, odd.raw)};
#else
  const DLane d;
  const VLane a = hn::InterleaveLower(d, even, odd), b = hn::InterleaveUpper(d, even, odd);
#if HWY_TARGET == HWY_AVX2
  *low = hn::ConcatLowerLower(d, b, a), *high = hn::ConcatUpperUpper(d, b, a);
#else
  static_assert(kLanes == 4);
  *low = a, *high = b;
#endif
#endif
}

// Lanes [0, n) of p, `other` elsewhere; n may be anything.
HWY_INLINE VLane LoadLanes(const float* p, int64_t n, VLane other) {
  const DLane d;
  if (HWY_LIKELY(n >= kLanes)) return hn::LoadU(d, p);
  if (n <= 0) return other;
  return hn::IfThenElse(hn::FirstN(d, static_cast<size_t>(n)), LoadPartial(d, p, static_cast<size_t>(n)), other);
}

// Whether all pixels of some rows are 0, which subnormal numbers count as: then norms are, too.
inline bool AllZero(const float* row, int64_t pitch, int64_t rows, int64_t columns) {
  const DLane d;
  VLane bits = hn::Zero(d);
  for (; rows > 0; --rows, row += pitch) {
    for (int64_t c = 0; c < columns; c += kLanes) bits = hn::Or(bits, LoadLanes(row + c, columns - c, hn::Zero(d)));
  }
  return hn::AllTrue(d, hn::Eq(hn::Abs(bits), hn::Zero(d)));
}

// Two vectors straight to memory; by non-temporal stores where that is a whole line, or two.
template <bool kStream>
HWY_INLINE void PutWhole(VLane low, VLane high, float* to) {
  const DLane d;
  if constexpr (kStream) {
    hn::Stream(low, d, to), hn::Stream(high, d, to + kLanes);
  } else {
    hn::StoreU(low, d, to), hn::StoreU(high, d, to + kLanes);
  }
}
// The end of a row, n < 2 * kLanes.
template <bool kStream>
HWY_INLINE void PutEnd(VLane low, VLane high, float* to, int64_t n) {
  const DLane d;
  if (kStream && n == kLanes) {
    hn::Stream(low, d, to);
  } else if (n >= kLanes) {
    hn::StoreU(low, d, to);
    if (n > kLanes) StorePartial(d, high, to + kLanes, static_cast<size_t>(n - kLanes));
  } else {
    StorePartial(d, low, to, static_cast<size_t>(n));
  }
}

// For maxima: no pixel.
HWY_INLINE VLane LowestLanes() {
  return hn::Set(DLane(), -std::numeric_limits<float>::infinity());
}
// Whether v replaces the best so far; kNaN: the first NaN stays.
template <bool kNaN>
HWY_INLINE MLane Takes(VLane v, VLane best) {
  if constexpr (kNaN) return hn::Or(hn::Gt(v, best), hn::AndNot(hn::IsNaN(best), hn::IsNaN(v)));
  return hn::Gt(v, best);
}

// Masks in memory, two bytes each.
HWY_INLINE void SaveMask(MLane mask, uint8_t* to) {
#if HWY_TARGET == HWY_AVX3
  std::memcpy(to, &mask.raw, 2);  // StoreMaskBits and LoadMaskBits go through wider words, which wait for each other
#else
  hn::StoreMaskBits(DLane(), mask, to);
#endif
}
HWY_INLINE MLane LoadMask(const uint8_t* from) {
#if HWY_TARGET == HWY_AVX3
  MLane mask;
  std::memcpy(&mask.raw, from, 2);
  return mask;
#else
  return hn::LoadMaskBits(DLane(), from);
#endif
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_LANES_INL_H_
