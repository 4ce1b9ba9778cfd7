// Gradients of narrow planes, 3 x 3 windows with stride 1. Bit-identical to pooling/backward/max_3x3_simd.cc and
// pooling/backward/max_3x3_index_simd.cc (Max) and pooling/backward/small_sums_simd.cc (Average, L2Norm), which say
// what is computed.

#include <algorithm>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/backward/narrow_3x3_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/backward/narrow-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// dx of a row from the shares of its windows' columns.
HWY_INLINE V Beside(V third, V second, V first) {
  const V zero = hn::Zero(D());
  return hn::Add(hn::Add(PreviousLanes(zero, third), second), NextLanes(first, zero));
}

HWY_INLINE void NeighboursAverage(const Plane& plane, Span rows, V counts, PixelStream* stream) {
  const D d;
  const Plane p = plane;
  PixelStream to = *stream;
  const V inside = hn::Mul(counts, hn::Set(d, 3.0f));
  const auto share = [&](int64_t wy) HWY_ATTR {
    if (HWY_UNLIKELY(wy < 0 || wy >= p.down)) return hn::Zero(d);
    V by = inside;
    if (HWY_UNLIKELY(wy == 0 || wy + 1 >= p.height)) {
      by = hn::Mul(counts, hn::Set(d, static_cast<float>(p.g.y.count(wy))));
    }
    return Never0Minus(hn::Div(p.Gradients(wy), by));
  };
  V above = share(rows.begin - 1), here = share(rows.begin);
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    const V below = share(y + 1), sum = hn::Add(hn::Add(above, here), below);
    to.Append(Beside(sum, sum, sum), p.width);
    above = here;
    here = below;
  }
  *stream = to;
}

// Three rows are under way: sums of squares and their root of row wy, the division of row wy - 1, and the pixels that
// wait for row wy - 2. In one go what waits for roots and divisions fills the scheduler, and little is under way.
HWY_INLINE void NeighboursNorm(const Plane& plane, Span rows, PixelStream* stream) {
  const V zero = hn::Zero(D());
  const Plane p = plane;
  PixelStream to = *stream;
  const auto pixels = [&](int64_t y)
                          HWY_ATTR { return HWY_LIKELY(y >= 0 && y < p.height) ? p.Pixels(y, 0) : hn::Zero(D()); };
  const auto beside = [&](V v, auto join)
                          HWY_ATTR { return join(join(PreviousLanes(zero, v), v), NextLanes(v, zero)); };
  const int64_t first = std::max<int64_t>(0, rows.begin - 1), end = std::min(p.down, rows.end + 1);
  V a = pixels(first - 1), b = pixels(first);  // rows wy - 1 and wy of pixels
  V norms = zero;                              // of row wy - 1
  V above = zero, here = zero, below = zero;   // rows wy - 4, wy - 3 and wy - 2 of shares
  for (int64_t wy = first; wy < rows.end + 3; ++wy) {
    if (HWY_LIKELY(wy > rows.begin + 2)) {
      const V sum = hn::Add(hn::Add(above, here), below);
      to.Append(Product(Beside(sum, sum, sum), p.Pixels(wy - 3, 0)), p.width);
    }
    above = here, here = below, below = zero;
    if (HWY_LIKELY(wy > first && wy <= end)) below = ShareOf(p.window, p.Gradients(wy - 1), norms);
    if (HWY_UNLIKELY(wy >= end)) continue;
    FetchAhead(p.x + wy * p.width);
    const V c = pixels(wy + 1);
    const V columns = hn::MulAdd(c, c, hn::MulAdd(b, b, hn::Mul(a, a)));
    const V squares = beside(columns, [](V u, V v) HWY_ATTR { return hn::Add(u, v); });
    norms = Norms(p, wy, squares, [&]() HWY_ATTR {
      return beside(hn::Or(hn::Or(a, b), c), [](V u, V v) HWY_ATTR { return hn::Or(u, v); });
    });
    a = b, b = c;
  }
  *stream = to;
}

template <int kWords>
HWY_INLINE void NeighboursByIndex(const Plane& plane, Span rows, PixelStream* stream) {
  const Plane p = plane;
  PixelStream to = *stream;
  const V zero = hn::Zero(D());
  const VI zeroth = Number(0), one = Number(1), two = Number(2), down = Number(p.width), down1 = Number(p.width + 1),
           down2 = Number(p.width + 2), low = Number(2 * p.width), low1 = Number(2 * p.width + 1),
           low2 = Number(2 * p.width + 2);
  V a0 = zero, a1 = zero, a2 = zero, b0 = zero, b1 = zero, b2 = zero;  // of rows wy - 1 and wy, by tx
  int64_t wy = std::max<int64_t>(0, rows.begin - 1);
  VI first = hn::Add(hn::Iota(DI(), 0), Number((wy - 1) * p.width - 1));  // pixels of the windows
  for (const int64_t end = std::min(p.down, rows.end + 1); wy < end; ++wy, first = hn::Add(first, down)) {
    const V g = p.Gradients(wy);
    const VI place = hn::Sub(p.Positions<kWords>(wy), first);
    if (HWY_LIKELY(wy > rows.begin)) {
      a0 = AddAt(a0, place, zeroth, g);
      a1 = AddAt(a1, place, one, g);
      a2 = AddAt(a2, place, two, g);
      to.Append(Beside(a2, a1, a0), p.width);
    }
    a0 = AddAt(b0, place, down, g);
    a1 = AddAt(b1, place, down1, g);
    a2 = AddAt(b2, place, down2, g);
    b0 = KeepAt(place, low, g);
    b1 = KeepAt(place, low1, g);
    b2 = KeepAt(place, low2, g);
  }
  for (; wy <= rows.end; ++wy) {  // rows under the last windows, and those below
    if (wy > rows.begin) to.Append(Beside(a2, a1, a0), p.width);
    a0 = b0, a1 = b1, a2 = b2;
    b0 = b1 = b2 = zero;
  }
  *stream = to;
}

// A row of pixels as the windows above and below see it: the largest of three, where it is, and what it was handed.
struct Line {
  V largest, sum;
  M second, third;
};
template <bool kNaN>
HWY_INLINE Line MakeLine(V pixels) {
  Line line;
  line.second = hn::Or(Takes<kNaN>(pixels, PreviousLanes(LowestLanes(), pixels)), hn::FirstN(D(), 1));
  line.largest = hn::IfThenElse(line.second, pixels, PreviousLanes(LowestLanes(), pixels));
  const V right = NextLanes(pixels, LowestLanes());
  line.third = Takes<kNaN>(right, line.largest);
  line.largest = hn::IfThenElse(line.third, right, line.largest);
  return line;
}

// Whether that is right: not if it is not for NaN and there may be one.
template <bool kNaN>
HWY_INLINE bool NeighboursByPixels(const Plane& plane, Span rows, PixelStream* stream) {
  const D d;
  const Plane p = plane;
  PixelStream to = *stream;
  V check = hn::Zero(d);
  const auto line = [&](int64_t y) HWY_ATTR {
    if (HWY_UNLIKELY(y < 0 || y >= p.height)) return MakeLine<kNaN>(LowestLanes());
    const V pixels = p.Pixels(y, 0);
    FetchAhead(p.x + y * p.width);
    if constexpr (!kNaN) check = hn::Add(check, pixels);
    return MakeLine<kNaN>(hn::IfThenElse(p.pixel[0], pixels, LowestLanes()));
  };
  int64_t wy = std::max<int64_t>(0, rows.begin - 1);
  Line a = line(wy - 1), b = line(wy);
  a.sum = b.sum = hn::Zero(d);
  M no_first = hn::FirstN(d, wy == 0 ? static_cast<size_t>(kLanes) : 0);  // there is no row above
  for (; wy <= rows.end; ++wy) {
    Line c = line(wy + 1);
    const V g = HWY_LIKELY(wy < p.down) ? p.Gradients(wy) : hn::Zero(d);
    const M second = hn::Or(Takes<kNaN>(b.largest, a.largest), no_first);
    const M third = Takes<kNaN>(c.largest, hn::IfThenElse(second, b.largest, a.largest));
    const V rest = hn::IfThenZeroElse(third, g);
    c.sum = hn::IfThenElseZero(third, g);
    b.sum = hn::Add(b.sum, hn::IfThenElseZero(second, rest));
    a.sum = hn::Add(a.sum, hn::IfThenZeroElse(second, rest));
    if (HWY_LIKELY(wy > rows.begin)) {
      const V left = hn::IfThenZeroElse(a.third, a.sum);
      to.Append(Beside(hn::IfThenElseZero(a.third, a.sum), hn::IfThenElseZero(a.second, left),
                       hn::IfThenZeroElse(a.second, left)),
                p.width);
    }
    no_first = hn::FirstN(d, 0);
    a = b;
    b = c;
  }
  if (!kNaN && HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(check)))) return false;
  *stream = to;
  return true;
}

}  // namespace

void Narrow3x3Planes(const PoolingBackward& call, Range planes, Span rows) {
  const PoolingGeometry& g = call.problem.geometry;
  if (call.problem.function == PoolingFunction::average) {
    const V counts = Counts(g.x);
    ForEach(call, planes, rows,
            [&](const Plane& p, PixelStream* to) HWY_ATTR { NeighboursAverage(p, rows, counts, to); });
  } else if (call.problem.function == PoolingFunction::l2_norm) {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR { NeighboursNorm(p, rows, to); });
  } else if (!call.index.data) {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR {
      if (HWY_UNLIKELY(!NeighboursByPixels<false>(p, rows, to))) NeighboursByPixels<true>(p, rows, to);
    });
  } else if (call.index.wide) {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR { NeighboursByIndex<2>(p, rows, to); });
  } else {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR { NeighboursByIndex<1>(p, rows, to); });
  }
}

bool AcceptsNarrow3x3(const PoolingBackward& call) {
  const PoolingGeometry& g = call.problem.geometry;
  return g.is_small_stride_1() && g.x.in <= kLanes && IsPackedF32(call);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_narrow_3x3(const PoolingBackward& call) noexcept {
  return BNNS_DISPATCH(AcceptsNarrow3x3)(call);
}
void pooling_backward_narrow_3x3(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(Narrow3x3Planes)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
