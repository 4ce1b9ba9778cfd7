// Sums and maxima of several small planes at once, one plane per lane of the result.
//
// Each plane is reduced to one vector, as many planes as a vector has lanes; then neighbouring lanes of these vectors
// are folded, two vectors into one at a time: about two moves of lanes a plane, where a plane on its own takes eight
// that wait for each other.

#if defined(BNNS_OPS_POOLING_PLANE_GROUP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_POOLING_PLANE_GROUP_INL_H_
#undef BNNS_OPS_POOLING_PLANE_GROUP_INL_H_
#else
#define BNNS_OPS_POOLING_PLANE_GROUP_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "src/ops/pooling/common/lanes-inl.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr float kLowestPixel = -std::numeric_limits<float>::infinity();

// Sums of map(x[i]) in the lanes: vector k goes to accumulator k mod 4, so the order depends on n alone.
template <class Map>
HWY_INLINE VLane SumLanes(const float* x, int64_t n, Map map) {
  const DLane d;
  VLane a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    a0 = hn::Add(a0, map(hn::LoadU(d, x + i)));
    a1 = hn::Add(a1, map(hn::LoadU(d, x + i + kLanes)));
    a2 = hn::Add(a2, map(hn::LoadU(d, x + i + 2 * kLanes)));
    a3 = hn::Add(a3, map(hn::LoadU(d, x + i + 3 * kLanes)));
  }
  if (i + kLanes <= n) a0 = hn::Add(a0, map(hn::LoadU(d, x + i))), i += kLanes;
  if (i + kLanes <= n) a1 = hn::Add(a1, map(hn::LoadU(d, x + i))), i += kLanes;
  if (i + kLanes <= n) a2 = hn::Add(a2, map(hn::LoadU(d, x + i))), i += kLanes;
  if (i < n) a3 = hn::Add(a3, map(LoadPartial(d, x + i, static_cast<size_t>(n - i))));
  return hn::Add(hn::Add(a0, a1), hn::Add(a2, a3));
}

// The largest pixels in the lanes; check becomes NaN if there is one.
HWY_INLINE VLane MaximaInLanes(const float* x, int64_t n, VLane* check) {
  const DLane d;
  VLane best = hn::Set(d, kLowestPixel), sum = hn::Zero(d);  // a sum of its own: planes do not wait for each other
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const VLane v = hn::LoadU(d, x + i);
    best = Larger(v, best);
    sum = hn::Add(sum, v);
  }
  if (i < n) {
    const VLane v = LoadLanes(x + i, n - i, hn::Set(d, kLowestPixel));
    best = Larger(v, best);
    sum = hn::Add(sum, v);
  }
  *check = hn::Add(*check, sum);
  return best;
}

HWY_INLINE uint64_t BitsOf(MLane mask) {
#if HWY_TARGET == HWY_AVX3
  return mask.raw;
#else
  uint8_t bits[8] = {};
  hn::StoreMaskBits(DLane(), mask, bits);
  return bits[0];
#endif
}
// The first of the pixels that is `most`, as one of them is. Up to 64 of them, without a branch on the data.
HWY_INLINE int64_t FirstEqual(const float* x, int64_t n, VLane most) {
  const DLane d;
  for (int64_t first = 0; first < n; first += 64) {
    const float* from = x + first;
    const int64_t count = n - first < 64 ? n - first : 64;
    uint64_t bits = 0;
    int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) bits |= BitsOf(hn::Eq(hn::LoadU(d, from + i), most)) << i;
    if (i < count) {
      const size_t left = static_cast<size_t>(count - i);
      bits |= BitsOf(hn::And(hn::Eq(LoadPartial(d, from + i, left), most), hn::FirstN(d, left))) << i;
    }
    if (bits) return first + __builtin_ctzll(bits);
  }
  return 0;
}

struct Maximum {
  float value;
  int64_t position = 0;
};

// The first largest pixel of a run, or the first NaN.
HWY_INLINE Maximum MaximumOfRun(const float* x, int64_t n) {
  const DLane d;
  VLane check = hn::Zero(d);
  const VLane most = hn::MaxOfLanes(d, MaximaInLanes(x, n, &check));
  int64_t position = 0;
  if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(check)))) {
    position = FirstEqual(x, n, most);
  } else {  // a NaN, or inf - inf
    for (int64_t k = 1; k < n && !std::isnan(x[position]); ++k) {
      if (x[k] > x[position] || std::isnan(x[k])) position = k;
    }
  }
  return {x[position], position};  // the pixel itself: of +0 and -0 the first
}

// Lane p of the result: all lanes of v[p] folded.
template <class Vector, class Fold>
HWY_INLINE Vector FoldGroup(const Vector* v, Fold fold) {
  const hn::DFromV<Vector> d;
  Vector half[kLanes / 2];
  for (int64_t k = 0; k < kLanes / 2; ++k) {
    half[k] = fold(hn::ConcatEven(d, v[2 * k + 1], v[2 * k]), hn::ConcatOdd(d, v[2 * k + 1], v[2 * k]));
  }
  for (int64_t n = kLanes / 4; n > 0; n /= 2) {
    for (int64_t k = 0; k < n; ++k) {
      half[k] = fold(hn::ConcatEven(d, half[2 * k + 1], half[2 * k]), hn::ConcatOdd(d, half[2 * k + 1], half[2 * k]));
    }
  }
  return half[0];
}

// Up to kLanes planes of n pixels each.
struct PlaneGroup {
  int64_t n, planes;
  const float* x[kLanes];

  // Fetches ahead of plane p: every line once, where planes follow each other in memory.
  HWY_INLINE void Fetch(int64_t p) const {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(x[p]), end = begin + static_cast<uintptr_t>(n) * 4;
    for (uintptr_t line = (begin + 127) / 128 * 128; line < end; line += 128) {
      FetchAhead(reinterpret_cast<const float*>(line), 32);
    }
  }
  template <class Map>
  HWY_INLINE VLane Sums(Map map) const {
    VLane sums[kLanes];
    for (int64_t p = planes; p < kLanes; ++p) sums[p] = hn::Zero(DLane());
    for (int64_t p = 0; p < planes; ++p) {
      Fetch(p);
      sums[p] = SumLanes(x[p], n, map);
    }
    return FoldGroup(sums, [](VLane a, VLane b) HWY_ATTR { return hn::Add(a, b); });
  }
  // The largest pixels. False if there may be a NaN: then nothing else is said.
  HWY_INLINE bool Maxima(VLane* most) const {
    const DLane d;
    VLane best[kLanes], check = hn::Zero(d);
    for (int64_t p = planes; p < kLanes; ++p) best[p] = check;
    for (int64_t p = 0; p < planes; ++p) {
      Fetch(p);
      best[p] = MaximaInLanes(x[p], n, &check);
    }
    *most = FoldGroup(best, [](VLane a, VLane b) HWY_ATTR { return Larger(b, a); });
    return hn::AllFalse(d, hn::IsNaN(check));
  }
  // Where the first largest pixels are, or the first NaNs.
  HWY_INLINE void Positions(int32_t* positions) const {
    const DLane d;
    VLane most;
    HWY_ALIGN float each[hn::MaxLanes(DLane())];
    const bool found = Maxima(&most);
    hn::Store(most, d, each);
    for (int64_t p = 0; p < planes; ++p) {
      const int64_t at = HWY_LIKELY(found) ? FirstEqual(x[p], n, hn::Set(d, each[p])) : MaximumOfRun(x[p], n).position;
      positions[p] = static_cast<int32_t>(at);
    }
  }
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_PLANE_GROUP_INL_H_
