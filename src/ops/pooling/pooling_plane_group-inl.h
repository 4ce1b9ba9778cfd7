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

#include "src/ops/pooling/pooling_lanes-inl.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DIndex = hn::RebindToSigned<DLane>;
using VIndex = hn::Vec<DIndex>;

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

// The largest pixels in the lanes, and the first of each lane. A lane that found nothing above -inf has its own number.
// check becomes NaN if there is one.
struct MaximumLanes {
  VLane best, check;
  VIndex at;

  HWY_INLINE MaximumLanes(const float* x, int64_t n) {
    const DLane d;
    const DIndex di;
    const VLane lowest = hn::Set(d, kLowestPixel);
    const VIndex step = hn::Set(di, static_cast<int32_t>(kLanes));
    best = lowest;
    check = hn::Zero(d);
    at = hn::Iota(di, 0);
    VIndex here = at;
    const auto take = [&](VLane v) HWY_ATTR {
      const MLane larger = hn::Gt(v, best);
      best = Larger(v, best);
      at = hn::IfThenElse(hn::RebindMask(di, larger), here, at);
      check = hn::Add(check, v);
    };
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes, here = hn::Add(here, step)) take(hn::LoadU(d, x + i));
    if (i < n) take(LoadLanes(x + i, n - i, lowest));
  }
};

struct Maximum {
  float value;
  int64_t position = 0;
};

// The first largest pixel of a run, or the first NaN.
HWY_INLINE Maximum MaximumOfRun(const float* x, int64_t n) {
  const DLane d;
  const DIndex di;
  const MaximumLanes lanes(x, n);
  // Of the lanes that have the maximum, the smallest position. A lane that found nothing above -inf has its first one,
  // which is past the end only if the run is shorter than a vector; then another lane's is smaller.
  const VLane most = hn::MaxOfLanes(d, lanes.best);
  const auto last = hn::Set(di, std::numeric_limits<int32_t>::max());
  const auto candidates = hn::IfThenElse(hn::RebindMask(di, hn::Eq(lanes.best, most)), lanes.at, last);
  int64_t position = hn::GetLane(hn::MinOfLanes(di, candidates));
  if (HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(lanes.check)))) {  // a NaN, or inf - inf
    position = 0;
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
  // Where the first largest pixels are. False if there may be a NaN: then nothing else is said.
  HWY_INLINE bool Positions(VIndex* positions) const {
    const DLane d;
    const DIndex di;
    VLane best[kLanes], check = hn::Zero(d);
    VIndex at[kLanes];
    for (int64_t p = planes; p < kLanes; ++p) best[p] = check, at[p] = hn::Zero(di);
    for (int64_t p = 0; p < planes; ++p) {
      Fetch(p);
      const MaximumLanes lanes(x[p], n);
      best[p] = lanes.best;
      at[p] = lanes.at;
      check = hn::Add(check, lanes.check);
    }
    HWY_ALIGN float most[hn::MaxLanes(DLane())];
    hn::Store(FoldGroup(best, [](VLane a, VLane b) HWY_ATTR { return Larger(b, a); }), d, most);
    const VIndex last = hn::Set(di, std::numeric_limits<int32_t>::max());  // as in MaximumOfRun
    for (int64_t p = 0; p < kLanes; ++p) {
      at[p] = hn::IfThenElse(hn::RebindMask(di, hn::Eq(best[p], hn::Set(d, most[p]))), at[p], last);
    }
    *positions = FoldGroup(at, [](VIndex a, VIndex b) HWY_ATTR { return hn::Min(a, b); });
    return hn::AllFalse(d, hn::IsNaN(check));
  }
  // The largest pixels; false as above.
  HWY_INLINE bool Maxima(VLane* most) const {
    const DLane d;
    VLane best[kLanes], check = hn::Zero(d);
    for (int64_t p = planes; p < kLanes; ++p) best[p] = check;
    for (int64_t p = 0; p < planes; ++p) {
      Fetch(p);
      const MaximumLanes lanes(x[p], n);
      best[p] = lanes.best;
      check = hn::Add(check, lanes.check);
    }
    *most = FoldGroup(best, [](VLane a, VLane b) HWY_ATTR { return Larger(b, a); });
    return hn::AllFalse(d, hn::IsNaN(check));
  }
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_PLANE_GROUP_INL_H_
