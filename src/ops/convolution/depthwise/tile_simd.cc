// Depthwise 3x3 kernels that read planes where they lie: no slab, borders by masks, rows outside by a row of zeros.
//
// A block is seven rows of targets times one vector: the networks' planes (7, 14, 28, 56, 112) are multiples of seven,
// and seven sums hide the latency of the multiply-adds. Nine rows of the source, three loads each, serve 63 of them.
// Pixels that fit half a vector run on half vectors, which Zen 4 executes two at a time.

#include "src/ops/convolution/depthwise/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/depthwise/tile_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/ops/convolution/depthwise/planes-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using HalfD = hn::Half<D>;

template <class Work>
HWY_INLINE void WidePlanesOf(const DepthwiseWindow& s, size_t planes, Range rows, size_t pixels, const Work& work) {
  const bool one = s.step == 1, ahead = s.far && s.width >= kLeastWidthAhead;
  (ahead ? (one ? &WidePlanes<D, 1, true, Work> : &WidePlanes<D, 2, true, Work>)
         : (one ? &WidePlanes<D, 1, false, Work> : &WidePlanes<D, 2, false, Work>))(s, planes, rows, pixels, work);
}

// ---- sums of shifted rows -------------------------------------------------------------------------------------------

template <class Tag>
struct RowSums {
  static constexpr bool kHalves = true, kWrites = true;
  const DepthwiseOutput& out;
  float* y = nullptr;           // where row 0 of the plane would be
  const float* bias = nullptr;  // of the plane
  hn::Vec<Tag> weight[9] = {};

  DepthwisePlanes planes() const { return {out.y, out.plane_stride, out.row_stride, nullptr}; }
  HWY_INLINE void Begin(size_t p) {
    bias = out.bias ? out.bias + p : nullptr;
    HWY_UNROLL(9)
    for (size_t k = 0; k < 9; ++k) weight[k] = hn::Set(Tag(), out.weight[9 * p + k]);
  }
  HWY_INLINE void Plane(size_t p, size_t) { y = out.y + p * out.plane_stride; }
  HWY_INLINE void AskRows(size_t) const {}
  HWY_INLINE void End(size_t) {}

  template <class T, class Reader, class Rows>
  HWY_INLINE void Block(T d, const Reader& reader, const Rows& rows, size_t u, ptrdiff_t v, ptrdiff_t pixels) const {
    using V = hn::Vec<T>;
    constexpr size_t kStep = Rows::kStep, kCount = Rows::kCount;
    V w[9], sum[kCount];
    HWY_UNROLL(9)
    for (size_t k = 0; k < 9; ++k) {
      if constexpr (hwy::IsSame<T, Tag>()) {
        w[k] = weight[k];
      } else {
        w[k] = hn::LowerHalf(d, weight[k]);
      }
    }
    HWY_UNROLL(7)
    for (size_t r = 0; r < kCount; ++r) sum[r] = hn::Zero(d);
    HWY_UNROLL(15)
    for (size_t i = 0; i < Rows::kSize; ++i) {
      V t0, t1, t2;
      reader.Read(d, rows.row[i], t0, t1, t2);
      HWY_UNROLL(3)
      for (size_t ky = 0; ky < 3; ++ky) {
        if (i < ky || (i - ky) % kStep != 0 || (i - ky) / kStep >= kCount) continue;
        V& s = sum[(i - ky) / kStep];
        s = hn::MulAdd(w[3 * ky + 2], t2, hn::MulAdd(w[3 * ky + 1], t1, hn::MulAdd(w[3 * ky], t0, s)));
      }
    }
    if (bias) {
      const V b = hn::Set(d, *bias);
      HWY_UNROLL(7)
      for (size_t r = 0; r < kCount; ++r) sum[r] = hn::Add(sum[r], b);
    }
    float* to = y + u * out.row_stride + v;
    HWY_UNROLL(7)
    for (size_t r = 0; r < kCount; ++r, to += out.row_stride) {
      if (pixels == SignedLanes(d)) {
        hn::StoreU(sum[r], d, to);
      } else {
        StorePartial(d, sum[r], to, static_cast<size_t>(pixels));
      }
    }
  }
};

void DepthwiseRows(const DepthwiseWindow& s, size_t planes, Range rows, size_t pixels, const DepthwiseOutput& out) {
  if (pixels <= hn::Lanes(HalfD())) {
    using Work = RowSums<HalfD>;
    (s.step == 1 ? &NarrowPlanes<HalfD, 1, Work> : &NarrowPlanes<HalfD, 2, Work>)(s, planes, rows, pixels, Work{out});
    return;
  }
  using Work = RowSums<D>;
  if (pixels <= hn::Lanes(D())) {
    (s.step == 1 ? &NarrowPlanes<D, 1, Work> : &NarrowPlanes<D, 2, Work>)(s, planes, rows, pixels, Work{out});
  } else {
    WidePlanesOf(s, planes, rows, pixels, Work{out});
  }
}

// ---- dot products of shifted rows -----------------------------------------------------------------------------------

template <class Tag>
struct Dots {
  static constexpr bool kHalves = false, kWrites = false;
  const DepthwiseGradient& gradient;
  const float* g = nullptr;  // where row 0 would be
  hn::Vec<Tag> sum[9] = {};

  DepthwisePlanes planes() const { return {gradient.g, gradient.plane_stride, gradient.row_stride, gradient.next}; }
  HWY_INLINE void Begin(size_t p) {
    const Tag d;
    HWY_UNROLL(9)
    for (size_t k = 0; k < 9; ++k) sum[k] = hn::Load(d, gradient.lanes + (9 * p + k) * kDepthwiseLanes);
  }
  HWY_INLINE void Plane(size_t p, size_t sample) {
    g = gradient.g + sample * gradient.sample_stride + p * gradient.plane_stride;
  }
  HWY_INLINE void AskRows(size_t u) const {
    HWY_NAMESPACE::AskRows<kBlockRows>(g + kReadAhead + u * gradient.row_stride,
                                       static_cast<ptrdiff_t>(gradient.row_stride));
  }
  HWY_INLINE void End(size_t p) {
    const Tag d;
    HWY_UNROLL(9)
    for (size_t k = 0; k < 9; ++k) hn::Store(sum[k], d, gradient.lanes + (9 * p + k) * kDepthwiseLanes);
  }

  template <class Reader, class Rows>
  HWY_INLINE void Block(Tag d, const Reader& reader, const Rows& rows, size_t u, ptrdiff_t v, ptrdiff_t pixels) {
    using V = hn::Vec<Tag>;
    constexpr size_t kStep = Rows::kStep, kCount = Rows::kCount;
    V gs[kCount];
    const float* from = g + u * gradient.row_stride + v;
    HWY_UNROLL(7)
    for (size_t r = 0; r < kCount; ++r, from += gradient.row_stride) {
      gs[r] = pixels == SignedLanes(d) ? hn::LoadU(d, from) : LoadPartial(d, from, static_cast<size_t>(pixels));
    }
    HWY_UNROLL(15)
    for (size_t i = 0; i < Rows::kSize; ++i) {
      V t0, t1, t2;
      reader.Read(d, rows.row[i], t0, t1, t2);
      HWY_UNROLL(3)
      for (size_t ky = 0; ky < 3; ++ky) {
        if (i < ky || (i - ky) % kStep != 0 || (i - ky) / kStep >= kCount) continue;
        const V& x = gs[(i - ky) / kStep];
        sum[3 * ky] = hn::MulAdd(x, t0, sum[3 * ky]);
        sum[3 * ky + 1] = hn::MulAdd(x, t1, sum[3 * ky + 1]);
        sum[3 * ky + 2] = hn::MulAdd(x, t2, sum[3 * ky + 2]);
      }
    }
  }
};

void DepthwiseDots(const DepthwiseWindow& s, size_t planes, Range rows, size_t pixels, const DepthwiseGradient& out) {
  if (pixels <= hn::Lanes(HalfD())) {
    using Work = Dots<HalfD>;
    (s.step == 1 ? &NarrowPlanes<HalfD, 1, Work> : &NarrowPlanes<HalfD, 2, Work>)(s, planes, rows, pixels, Work{out});
    return;
  }
  using Work = Dots<D>;
  if (pixels <= hn::Lanes(D())) {
    (s.step == 1 ? &NarrowPlanes<D, 1, Work> : &NarrowPlanes<D, 2, Work>)(s, planes, rows, pixels, Work{out});
  } else {
    WidePlanesOf(s, planes, rows, pixels, Work{out});
  }
}

void DepthwiseDotSums(float* lanes, double* sum) {
  const D d;
  for (size_t k = 0; k < 9; ++k) {
    sum[k] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Load(d, lanes + k * kDepthwiseLanes))));
    hn::Store(hn::Zero(d), d, lanes + k * kDepthwiseLanes);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void depthwise_rows(const DepthwiseWindow& source, size_t planes, Range rows, size_t pixels,
                    const DepthwiseOutput& out) noexcept {
  BNNS_DISPATCH(DepthwiseRows)(source, planes, rows, pixels, out);
}
void depthwise_dots(const DepthwiseWindow& source, size_t planes, Range rows, size_t pixels,
                    const DepthwiseGradient& gradient) noexcept {
  BNNS_DISPATCH(DepthwiseDots)(source, planes, rows, pixels, gradient);
}
void depthwise_dot_sums(float* lanes, double* sum) noexcept {
  BNNS_DISPATCH(DepthwiseDotSums)(lanes, sum);
}

}  // namespace bnns
#endif
