// Gradients of narrow planes, 2 x 2 windows with stride 2: a vector of windows gives two rows of pixels. Bit-identical
// to pooling/backward/max_2x2_simd.cc (Max) and pooling/backward/small_sums_simd.cc (Average, L2Norm).

#include <algorithm>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/backward/narrow_2x2_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/backward/narrow-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

struct TwoRows {
  V low[2], high[2];  // the vectors of the upper and the lower row
};
// From the taps (0,0) (1,0) (0,1) (1,1) of the windows.
HWY_INLINE TwoRows FromTaps(V t0, V t1, V t2, V t3) {
  TwoRows rows;
  TakeTurns(t0, t1, &rows.low[0], &rows.high[0]);
  TakeTurns(t2, t3, &rows.low[1], &rows.high[1]);
  return rows;
}

template <bool kNaN>
HWY_INLINE TwoRows ToMaxima(V a, V b, V c, V e, V g) {
  V best = EvenLanes(a, b), next = OddLanes(a, b);
  const M first = Takes<kNaN>(next, best);
  best = hn::IfThenElse(first, next, best);
  next = EvenLanes(c, e);
  const M second = Takes<kNaN>(next, best);
  best = hn::IfThenElse(second, next, best);
  const M third = Takes<kNaN>(OddLanes(c, e), best);
  const V g2 = hn::IfThenZeroElse(third, g), g1 = hn::IfThenZeroElse(second, g2);
  return FromTaps(hn::IfThenZeroElse(first, g1), hn::IfThenElseZero(first, g1), hn::IfThenElseZero(second, g2),
                  hn::IfThenElseZero(third, g));
}
struct PairMaxima {
  HWY_INLINE TwoRows operator()(const Plane& p, int64_t wy) const {
    const bool last = 2 * wy + 1 == p.height;  // there is no lower row
    const V a = p.PixelsOr(2 * wy, 0, LowestLanes()), b = p.PixelsOr(2 * wy, 1, LowestLanes());
    V c = LowestLanes(), e = c;
    if (HWY_LIKELY(!last)) c = p.PixelsOr(2 * wy + 1, 0, c), e = p.PixelsOr(2 * wy + 1, 1, e);
    FetchAhead(p.x + 2 * wy * p.width, 4 * kLanes);
    const V check = hn::Add(hn::Add(a, b), hn::Add(c, e)), g = p.Gradients(wy);
    if (HWY_LIKELY(hn::AllFalse(D(), hn::IsNaN(check)))) return ToMaxima<false>(a, b, c, e, g);
    return ToMaxima<true>(a, b, c, e, g);  // a NaN, or inf - inf
  }
};
template <int kWords>
struct PairIndices {
  HWY_INLINE TwoRows operator()(const Plane& p, int64_t wy) const {
    const VI iota = hn::Iota(DI(), 0), first = hn::Add(hn::Add(iota, iota), Number(2 * wy * p.width));
    const VI place = hn::Sub(p.Positions<kWords>(wy), first);
    const V g = p.Gradients(wy);
    return FromTaps(KeepAt(place, Number(0), g), KeepAt(place, Number(1), g), KeepAt(place, Number(p.width), g),
                    KeepAt(place, Number(p.width + 1), g));
  }
};
struct PairAverage {
  V inverse;  // of the taps counted along x: a power of two, so that this is a division
  HWY_INLINE TwoRows operator()(const Plane& p, int64_t wy) const {
    const int64_t count = HWY_LIKELY(2 * wy + 1 < p.height) ? 2 : p.g.y.count(wy);
    const V by = hn::Mul(inverse, hn::Set(D(), 1 / static_cast<float>(count)));
    const V c = Never0Minus(hn::Mul(p.Gradients(wy), by));
    return FromTaps(c, c, c, c);
  }
};

struct PairNorms {
  HWY_INLINE TwoRows operator()(const Plane& p, int64_t wy) const {
    const V a = p.Pixels(2 * wy, 0), b = p.Pixels(2 * wy, 1);
    V c = hn::Zero(D()), e = c;
    if (HWY_LIKELY(2 * wy + 1 < p.height)) c = p.Pixels(2 * wy + 1, 0), e = p.Pixels(2 * wy + 1, 1);
    FetchAhead(p.x + 2 * wy * p.width, 4 * kLanes);
    const V left = hn::MulAdd(c, c, hn::Mul(a, a)), right = hn::MulAdd(e, e, hn::Mul(b, b));  // columns
    const auto bits = [&]() HWY_ATTR {
      const V low = hn::Or(a, c), high = hn::Or(b, e);
      return hn::Or(EvenLanes(low, high), OddLanes(low, high));
    };
    const V norms = Norms(p, wy, hn::Add(EvenLanes(left, right), OddLanes(left, right)), bits);
    const V share = ShareOf(p.window, p.Gradients(wy), norms);
    V low, high;
    TakeTurns(share, share, &low, &high);
    return {{Product(low, a), Product(low, c)}, {Product(high, b), Product(high, e)}};
  }
};

template <class Windows>
HWY_INLINE void Pairs(const Plane& plane, Span rows, const Windows& windows, PixelStream* stream) {
  const D d;
  const Plane p = plane;
  PixelStream to = *stream;
  const int64_t first = std::min(p.width, kLanes), second = p.width - first;
  for (int64_t y = rows.begin; y < rows.end; y += 2) {
    TwoRows pixels{{hn::Zero(d), hn::Zero(d)}, {hn::Zero(d), hn::Zero(d)}};
    if (HWY_LIKELY(y / 2 < p.down)) pixels = windows(p, y / 2);
    for (int r = 0; r < 2 && y + r < rows.end; ++r) {
      to.Append(pixels.low[r], first);
      if (second > 0) to.Append(pixels.high[r], second);
    }
  }
  *stream = to;
}

}  // namespace

void Narrow2x2Planes(const PoolingBackward& call, Range planes, Span rows) {
  if (call.problem.function == PoolingFunction::average) {
    const PairAverage average{hn::Div(hn::Set(D(), 1.0f), Counts(call.problem.geometry.x))};
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR { Pairs(p, rows, average, to); });
  } else if (call.problem.function == PoolingFunction::l2_norm) {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR { Pairs(p, rows, PairNorms(), to); });
  } else if (!call.index.data) {
    ForEach(call, planes, rows, [&](const Plane& p, PixelStream* to) HWY_ATTR { Pairs(p, rows, PairMaxima(), to); });
  } else if (call.index.wide) {
    ForEach(call, planes, rows,
            [&](const Plane& p, PixelStream* to) HWY_ATTR { Pairs(p, rows, PairIndices<2>(), to); });
  } else {
    ForEach(call, planes, rows,
            [&](const Plane& p, PixelStream* to) HWY_ATTR { Pairs(p, rows, PairIndices<1>(), to); });
  }
}

bool AcceptsNarrow2x2(const PoolingBackward& call) {
  const PoolingGeometry& g = call.problem.geometry;
  return g.is_small_stride_2() && g.x.kernel == 2 && g.x.in <= 2 * kLanes && IsPackedF32(call);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_narrow_2x2(const PoolingBackward& call) noexcept {
  return BNNS_DISPATCH(AcceptsNarrow2x2)(call);
}
void pooling_backward_narrow_2x2(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(Narrow2x2Planes)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
