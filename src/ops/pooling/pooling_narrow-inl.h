// Planes of plain f32 that are narrow: a row of 2 x 2 windows with stride 2, or of 3 x 3 windows with stride 1, is one
// vector. Rows go from register to register, without a ring of rows in memory and its loops around one vector.

#if defined(BNNS_OPS_POOLING_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_POOLING_NARROW_INL_H_
#undef BNNS_OPS_POOLING_NARROW_INL_H_
#else
#define BNNS_OPS_POOLING_NARROW_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/ops/pooling/pooling_kernels.h"
#include "src/ops/pooling/pooling_lanes-inl.h"
#include "src/ops/pooling/pooling_stream-inl.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = DLane;
using V = VLane;
using M = MLane;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;

HWY_INLINE V Never0Minus(V v) {  // as a sum from 0
  return hn::Add(v, hn::Zero(D()));
}

// The rows of one plane. Rows of windows that do not exist hand down 0.
struct Plane {
  const PoolingGeometry& g;
  const float *x, *dy;
  const int32_t* index;

  HWY_INLINE V Gradients(int64_t wy) const {
    const float* row = dy + wy * g.x.out;
    if (wy < 0 || wy >= g.y.out) return hn::Zero(D());
    FetchAhead(row);
    return Never0Minus(LoadLanes(row, g.x.out, hn::Zero(D())));
  }
  // Vector k of a row of pixels, `other` outside.
  HWY_INLINE V Pixels(int64_t y, int64_t k, V other) const {
    if (y < 0 || y >= g.y.in) return other;
    return LoadLanes(x + y * g.x.in + k * kLanes, g.x.in - k * kLanes, other);
  }
  // Indices less the positions of their windows: ty width + tx. kWords: an index's.
  template <int kWords>
  HWY_INLINE VI Places(int64_t wy) const {
    const DI di;
    const int64_t n = kWords * g.x.out;
    const int32_t* words = index + wy * n;
    const auto load = [&](int64_t at) HWY_ATTR {
      if (n - at >= kLanes) return hn::LoadU(di, words + at);
      return n > at ? LoadPartial(di, words + at, static_cast<size_t>(n - at)) : hn::Zero(di);
    };
    VI low = load(0);
    FetchAhead(reinterpret_cast<const float*>(words), kWords * kLanes);
    if constexpr (kWords == 2) low = hn::ConcatEven(di, load(kLanes), low);  // little-endian
    VI first = hn::Iota(di, 0);
    if (g.x.stride == 2) first = hn::Add(first, first);
    return hn::Sub(low, hn::Add(first, hn::Set(di, static_cast<int32_t>(g.origin(0, wy)))));
  }
  // Whether there may be a NaN that > drops. Brings the plane to L1, too.
  HWY_INLINE bool MayHaveNaN(Span rows) const {
    const D d;
    const float* from = x + rows.begin * g.x.in;
    const int64_t n = rows.size() * g.x.in;
    V check = hn::Zero(d);
    for (int64_t i = 0; i < n; i += kLanes) {
      FetchAhead(from + i, kLanes);
      check = hn::Add(check, LoadLanes(from + i, n - i, hn::Zero(d)));
    }
    return !hn::AllFalse(d, hn::IsNaN(check));
  }
};

HWY_INLINE V KeepAt(VI place, VI at, V g) {
  return hn::IfThenElseZero(hn::RebindMask(D(), hn::Eq(place, at)), g);
}
HWY_INLINE VI Number(int64_t n) {
  return hn::Set(DI(), static_cast<int32_t>(n));
}

// The norms of a row of windows from their sums of squares, which are again made in double where they are not in the
// range of f32.
HWY_NOINLINE V NormsOneByOne(const Plane& p, int64_t wy) {
  HWY_ALIGN float norms[hn::MaxLanes(D())] = {};
  const PixelSource source{p.x, BNNSDataTypeFloat32, 1, p.g.x.in, {0, p.g.x.in}, {0, p.g.y.in}};
  for (int64_t i = 0; i < p.g.x.out; ++i) pooling_window(PoolingFold::norm, p.g, source, i, wy, norms + i, nullptr);
  return hn::Load(D(), norms);
}
// bits() are all bits of the windows' pixels: 0 is told from an underflow.
template <class Bits>
HWY_INLINE V ShareOfNorm(const Plane& p, int64_t wy, V squares, const Bits& bits) {
  const D d;
  const M safe = hn::And(hn::Ge(squares, hn::Set(d, kNormLow)), hn::Le(squares, hn::Set(d, kNormHigh)));
  V norms = hn::Sqrt(squares);
  M unsafe = hn::AndNot(safe, hn::FirstN(d, static_cast<size_t>(p.g.x.out)));
  if (HWY_UNLIKELY(!hn::AllFalse(d, unsafe))) {
    unsafe = hn::AndNot(hn::Eq(hn::Abs(bits()), hn::Zero(d)), unsafe);
    if (!hn::AllFalse(d, unsafe)) norms = hn::IfThenElse(unsafe, NormsOneByOne(p, wy), norms);
  }
  return hn::IfThenZeroElse(hn::Eq(norms, hn::Zero(d)), Never0Minus(hn::Div(p.Gradients(wy), norms)));
}
HWY_INLINE V Product(V sum, V pixel) {  // 0 also where the pixel is inf
  return hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(D())), hn::Mul(pixel, sum));
}
// Calls kernel(plane, stream) for every plane.
template <class Kernel>
HWY_INLINE void ForEach(const PoolingBackward& call, Range planes, Span rows, const Kernel& kernel) {
  PixelStream stream(call.stream);
  PlaneNumber at(planes.begin, call.problem.channels);
  for (size_t i = planes.begin; i < planes.end; ++i, at.next()) {
    Plane p{call.problem.geometry, nullptr, static_cast<const float*>(call.dy.at(at.sample, at.channel)), nullptr};
    if (call.x.data) p.x = static_cast<const float*>(call.x.at(at.sample, at.channel));
    if (call.index.data) p.index = static_cast<const int32_t*>(call.index.at(at.sample, at.channel));
    stream.Start(static_cast<float*>(call.dx.at(at.sample, at.channel)) + rows.begin * p.g.x.in);
    kernel(p, &stream);
  }
  stream.Finish();
}

// What windows divide by along x; lanes without a window have any number but 0.
HWY_INLINE V Counts(const PoolingAxis& x) {
  HWY_ALIGN float counts[hn::MaxLanes(D())];
  for (int64_t i = 0; i < kLanes; ++i) counts[i] = static_cast<float>(i < x.out ? x.count(i) : 1);
  return hn::Load(D(), counts);
}

}  // namespace
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_NARROW_INL_H_
