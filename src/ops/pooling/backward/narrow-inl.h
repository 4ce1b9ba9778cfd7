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

#include "src/ops/pooling/common/kernels.h"
#include "src/ops/pooling/common/lanes-inl.h"
#include "src/ops/pooling/common/stream-inl.h"
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

// The rows of one plane. Kernels keep a copy: gcc would read the numbers again after every store of a vector.
struct Plane {
  const PoolingGeometry& g;
  int64_t width, height, across, down;  // pixels; windows
  M pixel[2], window, word[2];  // lanes of vectors of a row in memory: of pixels, of windows, of words of indices
  const float *x = nullptr, *dy = nullptr;
  const int32_t* index = nullptr;

  explicit HWY_INLINE Plane(const PoolingBackward& call)
      : g(call.problem.geometry), width(g.x.in), height(g.y.in), across(g.x.out), down(g.y.out) {
    const int64_t words = across * (call.index.wide ? 2 : 1);
    window = Lanes(across);
    for (int k = 0; k < 2; ++k) pixel[k] = Lanes(width - k * kLanes), word[k] = Lanes(words - k * kLanes);
  }
  static HWY_INLINE M Lanes(int64_t n) {
    return hn::FirstN(D(), static_cast<size_t>(std::clamp<int64_t>(n, 0, kLanes)));
  }
  // The lanes `some`, of which n may be left, 0 in others.
  template <class DT>
  static HWY_INLINE hn::Vec<DT> Load(DT d, const hn::TFromD<DT>* from, M some, int64_t n) {
    if constexpr (MaskedAccessIsExact<float>()) return hn::MaskedLoad(hn::RebindMask(d, some), d, from);
    if (n >= kLanes) return hn::LoadU(d, from);
    return n > 0 ? LoadPartial(d, from, static_cast<size_t>(n)) : hn::Zero(d);
  }

  // The rows wy of windows and y of pixels are there.
  HWY_INLINE V Gradients(int64_t wy) const {
    const float* row = dy + wy * across;
    FetchAhead(row);
    return Never0Minus(Load(D(), row, window, across));
  }
  // Vector k of a row of pixels.
  HWY_INLINE V Pixels(int64_t y, int k) const {
    return Load(D(), x + y * width + k * kLanes, pixel[k], width - k * kLanes);
  }
  HWY_INLINE V PixelsOr(int64_t y, int k, V other) const { return hn::IfThenElse(pixel[k], Pixels(y, k), other); }
  // Positions of maxima. kWords: an index's.
  template <int kWords>
  HWY_INLINE VI Positions(int64_t wy) const {
    const DI di;
    const int64_t n = kWords * across;
    const int32_t* words = index + wy * n;
    FetchAhead(reinterpret_cast<const float*>(words), kWords * kLanes);
    const VI low = Load(di, words, word[0], n);
    if constexpr (kWords == 1) return low;
    return hn::ConcatEven(di, Load(di, words + kLanes, word[1], n - kLanes), low);  // little-endian
  }
};

HWY_INLINE V KeepAt(VI place, VI at, V g) {
  return hn::IfThenElseZero(hn::RebindMask(D(), hn::Eq(place, at)), g);
}
// sum + (place == at ? g : 0); no sum is -0.
HWY_INLINE V AddAt(V sum, VI place, VI at, V g) {
#if HWY_TARGET == HWY_AVX3
  return V{_mm512_mask_add_ps(sum.raw, _mm512_cmpeq_epi32_mask(place.raw, at.raw), sum.raw, g.raw)};
#else
  return hn::Add(sum, KeepAt(place, at, g));
#endif
}
HWY_INLINE VI Number(int64_t n) {
  return hn::Set(DI(), static_cast<int32_t>(n));
}

// Positions of up to n windows from memory, 0 past them. kWords: an index's.
template <int kWords>
HWY_INLINE VI LoadPositions(const int32_t* words, int64_t n) {
  const DI di;
  const auto load = [&](int64_t at) HWY_ATTR {
    const int64_t left = kWords * n - at;
    if (HWY_LIKELY(left >= kLanes)) return hn::LoadU(di, words + at);
    return left > 0 ? LoadPartial(di, words + at, static_cast<size_t>(left)) : hn::Zero(di);
  };
  if constexpr (kWords == 1) return load(0);
  return hn::ConcatEven(di, load(kLanes), load(0));  // little-endian
}

// The norms of a row of windows from their sums of squares, which are again made in double where they are not in the
// range of f32.
HWY_MAYBE_UNUSED HWY_NOINLINE V NormsOneByOne(const Plane& p, int64_t wy) {
  HWY_ALIGN float norms[hn::MaxLanes(D())] = {};
  const PixelSource source{p.x, BNNSDataTypeFloat32, 1, p.g.x.in, {0, p.g.x.in}, {0, p.g.y.in}};
  for (int64_t i = 0; i < p.g.x.out; ++i) pooling_window(PoolingFold::norm, p.g, source, i, wy, norms + i, nullptr);
  return hn::Load(D(), norms);
}
// bits() are all bits of the windows' pixels: 0 is told from an underflow.
template <class Bits>
HWY_INLINE V Norms(const Plane& p, int64_t wy, V squares, const Bits& bits) {
  const D d;
  const hn::RebindToUnsigned<D> du;
  // Positive numbers have the order of their bits: one comparison, which a NaN fails, too.
  const auto low = hn::BitCast(du, hn::Set(d, kNormLow)), high = hn::BitCast(du, hn::Set(d, kNormHigh));
  const M out = hn::RebindMask(d, hn::Gt(hn::Sub(hn::BitCast(du, squares), low), hn::Sub(high, low)));
  V norms = hn::Sqrt(squares);
  M unsafe = hn::And(out, p.window);
  if (HWY_UNLIKELY(!hn::AllFalse(d, unsafe))) {
    unsafe = hn::AndNot(hn::Eq(hn::Abs(bits()), hn::Zero(d)), unsafe);
    if (!hn::AllFalse(d, unsafe)) norms = hn::IfThenElse(unsafe, NormsOneByOne(p, wy), norms);
  }
  return norms;
}
// 0 where there is no window, whatever the pixels there are.
HWY_INLINE V ShareOf(M window, V gradients, V norms) {
  return hn::IfThenElseZero(hn::AndNot(hn::Eq(norms, hn::Zero(D())), window), Never0Minus(hn::Div(gradients, norms)));
}
HWY_INLINE V Product(V sum, V pixel) {  // 0 also where the pixel is inf
  return hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(D())), hn::Mul(pixel, sum));
}
// What all narrow kernels take: packed f32, plain dy, indices in their windows.
HWY_INLINE bool IsPackedF32(const PoolingBackward& call) {
  const PoolingGeometry& g = call.problem.geometry;
  return call.activation.is_identity() && !call.accumulate && call.dx.is_packed(g.x.in) && call.dy.is_packed(g.x.out) &&
         (!call.x.data || call.x.is_packed(g.x.in)) &&
         (!call.has_index() || (call.index_in_windows && call.index.column == 1 && call.index.row == g.x.out));
}
// Calls kernel(plane, stream) for every plane.
template <class Kernel>
HWY_INLINE void ForEach(const PoolingBackward& call, Range planes, Span rows, const Kernel& kernel) {
  PixelStream stream(call.stream);
  PlaneNumber at(planes.begin, call.problem.channels);
  Plane p(call);
  for (size_t i = planes.begin; i < planes.end; ++i, at.next()) {
    p.dy = static_cast<const float*>(call.dy.at(at.sample, at.channel));
    if (call.x.data) p.x = static_cast<const float*>(call.x.at(at.sample, at.channel));
    if (call.index.data) p.index = static_cast<const int32_t*>(call.index.at(at.sample, at.channel));
    stream.Start(static_cast<float*>(call.dx.at(at.sample, at.channel)) + rows.begin * p.width);
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
