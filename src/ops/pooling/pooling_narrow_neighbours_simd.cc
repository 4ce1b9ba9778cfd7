// Gradients of narrow planes, 3 x 3 windows with stride 1. To the bits of pooling_route_simd.cc and
// pooling_route_index_simd.cc (Max) and pooling_doubles_simd.cc (Average, L2Norm), which say what is computed.

#include <algorithm>

#include "src/ops/pooling/pooling_kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/pooling_narrow_neighbours_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/pooling_narrow-inl.h"
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

HWY_INLINE void NeighboursAverage(const Plane& p, Span rows, V counts, PixelStream* stream) {
  const D d;
  PixelStream to = *stream;
  const auto share = [&](int64_t wy) HWY_ATTR {
    if (wy < 0 || wy >= p.g.y.out) return hn::Zero(d);
    return Never0Minus(hn::Div(p.Gradients(wy), hn::Mul(counts, hn::Set(d, static_cast<float>(p.g.y.count(wy))))));
  };
  V above = share(rows.begin - 1), here = share(rows.begin);
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    const V below = share(y + 1), sum = hn::Add(hn::Add(above, here), below);
    to.Append(Beside(sum, sum, sum), p.g.x.in);
    above = here;
    here = below;
  }
  *stream = to;
}

HWY_INLINE void NeighboursNorm(const Plane& p, Span rows, PixelStream* stream) {
  const V zero = hn::Zero(D());
  PixelStream to = *stream;
  V a = p.Pixels(rows.begin - 2, 0, zero), b = p.Pixels(rows.begin - 1, 0, zero);  // rows wy - 1 and wy of pixels
  V above = zero, here = zero;                                                     // rows wy - 2 and wy - 1 of shares
  const auto beside = [&](V v, auto join)
                          HWY_ATTR { return join(join(PreviousLanes(zero, v), v), NextLanes(v, zero)); };
  for (int64_t wy = rows.begin - 1; wy <= rows.end; ++wy) {
    const V c = p.Pixels(wy + 1, 0, zero);
    V below = zero;
    if (HWY_LIKELY(wy >= 0 && wy < p.g.y.out)) {
      FetchAhead(p.x + wy * p.g.x.in);
      const V columns = hn::MulAdd(c, c, hn::MulAdd(b, b, hn::Mul(a, a)));
      const V squares = beside(columns, [](V u, V v) HWY_ATTR { return hn::Add(u, v); });
      below = ShareOfNorm(p, wy, squares, [&]() HWY_ATTR {
        return beside(hn::Or(hn::Or(a, b), c), [](V u, V v) HWY_ATTR { return hn::Or(u, v); });
      });
    }
    if (wy > rows.begin) {
      const V sum = hn::Add(hn::Add(above, here), below);
      to.Append(Product(Beside(sum, sum, sum), a), p.g.x.in);
    }
    a = b, b = c;
    above = here, here = below;
  }
  *stream = to;
}

template <int kWords>
HWY_INLINE void NeighboursByIndex(const Plane& p, Span rows, PixelStream* stream) {
  PixelStream to = *stream;
  const V zero = hn::Zero(D());
  const int64_t width = p.g.x.in;
  const VI one = Number(1), two = Number(2), down = Number(width), down1 = Number(width + 1), down2 = Number(width + 2),
           low = Number(2 * width), low1 = Number(2 * width + 1), low2 = Number(2 * width + 2);
  V a0 = zero, a1 = zero, a2 = zero, b0 = zero, b1 = zero, b2 = zero;  // of rows wy - 1 and wy, by tx
  for (int64_t wy = rows.begin - 1; wy <= rows.end; ++wy) {
    V g = zero;
    VI place = Number(0);
    if (HWY_LIKELY(wy >= 0 && wy < p.g.y.out)) g = p.Gradients(wy), place = p.Places<kWords>(wy);
    a0 = hn::Add(a0, KeepAt(place, Number(0), g));
    a1 = hn::Add(a1, KeepAt(place, one, g));
    a2 = hn::Add(a2, KeepAt(place, two, g));
    if (wy > rows.begin) to.Append(Beside(a2, a1, a0), width);
    a0 = hn::Add(b0, KeepAt(place, down, g));
    a1 = hn::Add(b1, KeepAt(place, down1, g));
    a2 = hn::Add(b2, KeepAt(place, down2, g));
    b0 = KeepAt(place, low, g);
    b1 = KeepAt(place, low1, g);
    b2 = KeepAt(place, low2, g);
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

template <bool kNaN>
HWY_INLINE void NeighboursByPixels(const Plane& p, Span rows, PixelStream* stream) {
  const D d;
  PixelStream to = *stream;
  Line a = MakeLine<kNaN>(p.Pixels(rows.begin - 2, 0, LowestLanes())),
       b = MakeLine<kNaN>(p.Pixels(rows.begin - 1, 0, LowestLanes()));
  a.sum = b.sum = hn::Zero(d);
  for (int64_t wy = rows.begin - 1; wy <= rows.end; ++wy) {
    Line c = MakeLine<kNaN>(p.Pixels(wy + 1, 0, LowestLanes()));
    const V g = p.Gradients(wy);
    const M no_first = hn::FirstN(d, wy <= 0 ? static_cast<size_t>(kLanes) : 0);  // there is no row above
    const M second = hn::Or(Takes<kNaN>(b.largest, a.largest), no_first);
    const M third = Takes<kNaN>(c.largest, hn::IfThenElse(second, b.largest, a.largest));
    const V rest = hn::IfThenZeroElse(third, g);
    c.sum = hn::IfThenElseZero(third, g);
    b.sum = hn::Add(b.sum, hn::IfThenElseZero(second, rest));
    a.sum = hn::Add(a.sum, hn::IfThenZeroElse(second, rest));
    if (wy > rows.begin) {
      const V left = hn::IfThenZeroElse(a.third, a.sum);
      to.Append(Beside(hn::IfThenElseZero(a.third, a.sum), hn::IfThenElseZero(a.second, left),
                       hn::IfThenZeroElse(a.second, left)),
                p.g.x.in);
    }
    a = b;
    b = c;
  }
  *stream = to;
}

}  // namespace

void NarrowNeighbourPlanes(const PoolingBackward& call, Range planes, Span rows) {
  const PoolingGeometry& g = call.problem.geometry;
  const Span seen{std::max<int64_t>(0, rows.begin - 2), std::min(g.y.in, rows.end + 2)};
  if (call.problem.function == PoolingFunction::average) {
    const V counts = Counts(g.x);
    ForEach(call, planes, rows,
            [&](const Plane& p, PixelStream* to) HWY_ATTR { NeighboursAverage(p, rows, counts, to); });
  } else if (call.problem.function == PoolingFunction::l2_norm) {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR { NeighboursNorm(p, rows, to); });
  } else if (!call.index.data) {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR {
      HWY_UNLIKELY(p.MayHaveNaN(seen)) ? NeighboursByPixels<true>(p, rows, to) : NeighboursByPixels<false>(p, rows, to);
    });
  } else if (call.index.wide) {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR { NeighboursByIndex<2>(p, rows, to); });
  } else {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR { NeighboursByIndex<1>(p, rows, to); });
  }
}

bool NarrowFits(const PoolingBackward& call) {
  const PoolingGeometry& g = call.problem.geometry;
  const bool by_index = call.index.data != nullptr;
  const bool shape = (g.halves() && g.x.kernel == 2 && g.x.in <= 2 * kLanes) || (g.neighbours() && g.x.in <= kLanes);
  return shape && call.activation.is_identity() && !call.accumulate && call.dx.is_packed(g.x.in) &&
         call.dy.is_packed(g.x.out) && (!call.x.data || call.x.is_packed(g.x.in)) &&
         (!by_index || (call.index_in_windows && call.index.column == 1 && call.index.row == g.x.out));
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void pooling_backward_narrow_neighbours(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(NarrowNeighbourPlanes)(call, planes, rows);
}
bool pooling_backward_is_narrow(const PoolingBackward& call) noexcept {
  return BNNS_DISPATCH(NarrowFits)(call);
}

}  // namespace bnns
#endif  // HWY_ONCE
