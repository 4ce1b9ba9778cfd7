// Gradient of Max over 3 x 3 windows with stride 2 of planes up to four vectors wide, by indices that lie in their
// windows. To the bits of pooling_route_index_simd.cc, which says what is computed.
//
// A row of windows hands its first row of pixels, together with what the row above left, to memory, then its second;
// the third waits in registers for the next row of windows.

#include <algorithm>
#include <type_traits>

#include "src/ops/pooling/pooling_kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/pooling_narrow_halves_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/pooling_narrow-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr int kVectors = 2;  // of a row of windows

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
  const Span windows{p.g.y.windows(rows.begin).begin, p.g.y.windows(rows.end - 1).end};
  const VI iota = hn::Iota(di, 0), step = Number(2 * p.width), further = Number(2 * kLanes);
  VI origin = hn::Add(hn::Add(iota, iota), Number(p.g.origin(0, windows.begin)));
  int64_t y = p.g.y.start(windows.begin);  // the next row of pixels
  if (windows.empty()) y = rows.begin;
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

}  // namespace

void NarrowHalfPlanes(const PoolingBackward& call, Range planes, Span rows) {
  const auto run = [&](auto odd, auto words) HWY_ATTR {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR {
      HalvesByIndex<decltype(odd)::value, decltype(words)::value>(p, rows, to);
    });
  };
  constexpr std::integral_constant<int, 1> kNarrow;
  constexpr std::integral_constant<int, 2> kWide;
  if (call.problem.geometry.x.pad & 1)
    call.index.wide ? run(std::true_type(), kWide) : run(std::true_type(), kNarrow);
  else
    call.index.wide ? run(std::false_type(), kWide) : run(std::false_type(), kNarrow);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void pooling_backward_narrow_halves(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(NarrowHalfPlanes)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
