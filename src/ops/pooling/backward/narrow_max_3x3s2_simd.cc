// Gradient of Max over 3 x 3 windows with stride 2 of planes up to four vectors wide. Bit-identical to
// pooling/backward/max_3x3_simd.cc and pooling/backward/max_3x3_index_simd.cc (indices that lie in their windows),
// which say what is computed.
//
// A row of windows hands its first row of pixels, together with what the row above left, to memory, then its second;
// the third waits in registers for the next row of windows.

#include <algorithm>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/backward/narrow_max_3x3s2_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/backward/narrow-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr int kVectors = 2;  // of a row of windows: more would not stay in registers

// What windows hand to a row of pixels, by tx.
struct Shares {
  V of[kVectors][3];
};

// kOdd: the padding is odd, so that odd columns have two windows; else even columns have.
template <bool kOdd>
HWY_INLINE void AppendRow(const Shares& s, int64_t width, PixelStream* to) {
  const V zero = hn::Zero(D());
  for (int k = 0; k < kVectors; ++k) {
    V half[2];
    if constexpr (kOdd) {
      const V next = k + 1 < kVectors ? s.of[k + 1][0] : zero;
      TakeTurns(s.of[k][1], hn::Add(s.of[k][2], NextLanes(s.of[k][0], next)), &half[0], &half[1]);
    } else {
      const V before = k > 0 ? s.of[k - 1][2] : zero;
      TakeTurns(hn::Add(PreviousLanes(before, s.of[k][2]), s.of[k][0]), s.of[k][1], &half[0], &half[1]);
    }
    for (int h = 0; h < 2; ++h) {
      const int64_t left = width - (2 * k + h) * kLanes;
      if (left >= kLanes)
        to->Append(half[h]);
      else if (left > 0)
        to->Append(half[h], left);
    }
  }
}

// Rows of windows over some rows of pixels, and the first row of pixels that they or the pixels need.
struct HalfRows {
  Span windows;
  int64_t y;
  HWY_INLINE HalfRows(const PoolingAxis& axis, Span rows)
      : windows{axis.windows(rows.begin).begin, axis.windows(rows.end - 1).end} {
    y = windows.empty() ? rows.begin : axis.start(windows.begin);
  }
};

template <bool kOdd, int kWords>
HWY_INLINE void HalvesByIndex(const Plane& plane, Span rows, PixelStream* stream) {
  const DI di;
  const Plane p = plane;
  PixelStream to = *stream;
  const V zero = hn::Zero(D());
  VI at[3][3];  // places of taps
  for (int ty = 0; ty < 3; ++ty) {
    for (int tx = 0; tx < 3; ++tx) at[ty][tx] = Number(ty * p.width + tx);
  }
  const HalfRows over(p.g.y, rows);
  const Span windows = over.windows;
  const VI iota = hn::Iota(di, 0), step = Number(2 * p.width), further = Number(2 * kLanes);
  VI origin = hn::Add(hn::Add(iota, iota), Number(p.g.origin(0, windows.begin)));
  int64_t y = over.y;  // the next row of pixels
  Shares last, s;
  for (int k = 0; k < kVectors; ++k) last.of[k][0] = last.of[k][1] = last.of[k][2] = zero;
  for (int64_t wy = windows.begin; wy < windows.end; ++wy, y += 2, origin = hn::Add(origin, step)) {
    VI place[kVectors];
    V g[kVectors];
    VI first = origin;
    for (int k = 0; k < kVectors; ++k, first = hn::Add(first, further)) {
      const int64_t left = p.across - k * kLanes;
      const float* row = p.dy + wy * p.across + k * kLanes;
      g[k] = Never0Minus(LoadLanes(row, left, zero));
      FetchAhead(row, kLanes);
      const int32_t* words = p.index + kWords * (wy * p.across + k * kLanes);
      FetchAhead(reinterpret_cast<const float*>(words), kWords * kLanes);
      place[k] = hn::Sub(LoadPositions<kWords>(words, left), first);
    }
    if (HWY_LIKELY(y >= rows.begin && y < rows.end)) {
      for (int k = 0; k < kVectors; ++k) {
        for (int t = 0; t < 3; ++t) s.of[k][t] = AddAt(last.of[k][t], place[k], at[0][t], g[k]);
      }
      AppendRow<kOdd>(s, p.width, &to);
    }
    if (HWY_LIKELY(y + 1 >= rows.begin && y + 1 < rows.end)) {
      for (int k = 0; k < kVectors; ++k) {
        for (int t = 0; t < 3; ++t) s.of[k][t] = KeepAt(place[k], at[1][t], g[k]);
      }
      AppendRow<kOdd>(s, p.width, &to);
    }
    for (int k = 0; k < kVectors; ++k) {
      for (int t = 0; t < 3; ++t) last.of[k][t] = KeepAt(place[k], at[2][t], g[k]);
    }
  }
  for (; y < rows.end; ++y) {  // under the last windows, and below them
    if (y >= rows.begin) AppendRow<kOdd>(last, p.width, &to);
    for (int k = 0; k < kVectors; ++k) last.of[k][0] = last.of[k][1] = last.of[k][2] = zero;
  }
  *stream = to;
}

// A row of pixels as the windows above and below see it: the largest of three, where it is, and what it was handed.
struct Lines {
  V largest[kVectors], sum[kVectors];
  M second[kVectors], third[kVectors];
};

template <bool kOdd>
HWY_INLINE void AppendRow(const Lines& line, int64_t width, PixelStream* to) {
  Shares s;
  for (int k = 0; k < kVectors; ++k) {
    const V rest = hn::IfThenZeroElse(line.third[k], line.sum[k]);
    s.of[k][0] = hn::IfThenZeroElse(line.second[k], rest);
    s.of[k][1] = hn::IfThenElseZero(line.second[k], rest);
    s.of[k][2] = hn::IfThenElseZero(line.third[k], line.sum[k]);
  }
  AppendRow<kOdd>(s, width, to);
}

// Returns false, and what was written is wrong, if there may be a NaN that the comparisons drop.
template <bool kOdd, bool kNaN>
HWY_INLINE bool HalvesByPixels(const Plane& plane, Span rows, PixelStream* stream) {
  const D d;
  const Plane p = plane;
  PixelStream to = *stream;
  const V zero = hn::Zero(d), lowest = LowestLanes();
  const M none = hn::FirstN(d, 0), begins = hn::FirstN(d, 1);
  V check = zero;
  const auto make = [&](int64_t y, Lines* line) HWY_ATTR {
    for (int k = 0; k < kVectors; ++k)
      line->largest[k] = lowest, line->sum[k] = zero, line->second[k] = line->third[k] = none;
    if (HWY_UNLIKELY(y < 0 || y >= p.height)) return;
    const float* row = p.x + y * p.width;
    V even[kVectors + 1], odd[kVectors + 1];
    even[kVectors] = odd[kVectors] = lowest;
    for (int k = 0; k < kVectors; ++k) {
      const int64_t c = 2 * k * kLanes;
      const V low = LoadLanes(row + c, p.width - c, lowest),
              high = LoadLanes(row + c + kLanes, p.width - c - kLanes, lowest);
      FetchAhead(row + c, 2 * kLanes);
      if constexpr (!kNaN) check = hn::Add(check, hn::Add(low, high));
      even[k] = EvenLanes(low, high), odd[k] = OddLanes(low, high);
    }
    for (int k = 0; k < kVectors; ++k) {
      const V first = kOdd ? PreviousLanes(k > 0 ? odd[k - 1] : lowest, odd[k]) : even[k];
      const V second = kOdd ? even[k] : odd[k], third = kOdd ? odd[k] : NextLanes(even[k], even[k + 1]);
      M takes = Takes<kNaN>(second, first);
      if (kOdd && k == 0) takes = hn::Or(takes, begins);  // the first window has no first pixel
      const V larger = hn::IfThenElse(takes, second, first);
      line->second[k] = takes;
      line->third[k] = Takes<kNaN>(third, larger);
      line->largest[k] = hn::IfThenElse(line->third[k], third, larger);
    }
  };
  const HalfRows over(p.g.y, rows);
  int64_t y = over.y;
  Lines a, b, c;
  make(over.windows.empty() ? -1 : y, &a);
  for (int64_t wy = over.windows.begin; wy < over.windows.end; ++wy, y += 2) {
    make(y + 1, &b);
    make(y + 2, &c);
    const bool no_first = y < 0;  // there is no row above
    for (int k = 0; k < kVectors; ++k) {
      const float* row = p.dy + wy * p.across + k * kLanes;
      const V g = Never0Minus(LoadLanes(row, p.across - k * kLanes, zero));
      FetchAhead(row, kLanes);
      M second = Takes<kNaN>(b.largest[k], a.largest[k]);
      if (HWY_UNLIKELY(no_first)) second = hn::Not(none);
      const M third = Takes<kNaN>(c.largest[k], hn::IfThenElse(second, b.largest[k], a.largest[k]));
      const V rest = hn::IfThenZeroElse(third, g);
      c.sum[k] = hn::IfThenElseZero(third, g);
      b.sum[k] = hn::IfThenElseZero(second, rest);
      a.sum[k] = hn::Add(a.sum[k], hn::IfThenZeroElse(second, rest));
    }
    if (HWY_LIKELY(y >= rows.begin && y < rows.end)) AppendRow<kOdd>(a, p.width, &to);
    if (HWY_LIKELY(y + 1 >= rows.begin && y + 1 < rows.end)) AppendRow<kOdd>(b, p.width, &to);
    a = c;
  }
  for (; y < rows.end; ++y) {  // under the last windows, and below them
    if (y >= rows.begin) AppendRow<kOdd>(a, p.width, &to);
    for (int k = 0; k < kVectors; ++k) a.sum[k] = zero;
  }
  if (!kNaN && HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(check)))) return false;
  *stream = to;
  return true;
}

template <bool kOdd>
void HalfPlanes(const PoolingBackward& call, Range planes, Span rows) {
  if (!call.index.data) {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR {
      const bool done = HalvesByPixels<kOdd, false>(p, rows, to);
      if (HWY_UNLIKELY(!done)) HalvesByPixels<kOdd, true>(p, rows, to);
    });
  } else if (call.index.wide) {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR { HalvesByIndex<kOdd, 2>(p, rows, to); });
  } else {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR { HalvesByIndex<kOdd, 1>(p, rows, to); });
  }
}

}  // namespace

void NarrowMax3x3s2Planes(const PoolingBackward& call, Range planes, Span rows) {
  call.problem.geometry.x.pad & 1 ? HalfPlanes<true>(call, planes, rows) : HalfPlanes<false>(call, planes, rows);
}

bool AcceptsNarrowMax3x3s2(const PoolingBackward& call) {
  const PoolingGeometry& g = call.problem.geometry;
  return call.is_max() && g.is_small_stride_2() && g.x.kernel == 3 && g.x.in <= 4 * kLanes && g.x.out <= 2 * kLanes &&
         IsPackedF32(call);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_narrow_max_3x3s2(const PoolingBackward& call) noexcept {
  return BNNS_DISPATCH(AcceptsNarrowMax3x3s2)(call);
}
void pooling_backward_narrow_max_3x3s2(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(NarrowMax3x3s2Planes)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
