// Depthwise 3x3 kernels that read planes where they lie: no slab, borders by masks, rows outside by a row of zeros.
//
// A block is seven rows of targets times one vector: the networks' planes (7, 14, 28, 56, 112) are multiples of seven,
// and seven sums hide the latency of the multiply-adds. Nine rows of the source, three loads each, serve 63 of them.
// Pixels that fit half a vector run on half vectors, which Zen 4 executes two at a time.

#include "src/ops/convolution/convolution_depthwise_tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/convolution_depthwise_tile_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/ops/convolution/convolution_span-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using HalfD = hn::Half<D>;

constexpr size_t kBlockRows = 7;

// Reads the three taps of a source row for one vector of pixels: lane j of tap k is column + kStep * j + k. Only the
// first `pixels` lanes count; the others are zero, and so is what lies outside the row.
template <class Tag, int kStep, bool kMasked>
class TapReader {
  using V = hn::Vec<Tag>;

 public:
  HWY_INLINE TapReader(Tag d, ptrdiff_t column, ptrdiff_t width, ptrdiff_t pixels) : column_(column) {
    if constexpr (kMasked && kStep == 1) {
      for (int k = 0; k < 3; ++k) span_[k] = Span<Tag>(d, column + k, HWY_MIN(width, column + k + pixels));
    } else if constexpr (kMasked) {
      const ptrdiff_t lanes = SignedLanes(d);
      for (int k = 0; k < 2; ++k) {
        const ptrdiff_t first = column + 2 * k, end = HWY_MIN(width, first + 2 * pixels);
        span_[2 * k] = Span<Tag>(d, first, end), span_[2 * k + 1] = Span<Tag>(d, first + lanes, end);
      }
    }
  }
  HWY_INLINE void Read(Tag d, const float* row, V& t0, V& t1, V& t2) const {
    const float* at = row + column_;
    if constexpr (kStep == 1) {
      t0 = Load(d, at, 0), t1 = Load(d, at + 1, 1), t2 = Load(d, at + 2, 2);
    } else {
      const ptrdiff_t lanes = SignedLanes(d);
      const V a = Load(d, at, 0), b = Load(d, at + lanes, 1);
      t0 = hn::ConcatEven(d, b, a), t1 = hn::ConcatOdd(d, b, a);
      t2 = hn::ConcatEven(d, Load(d, at + 2 + lanes, 3), Load(d, at + 2, 2));
    }
  }

 private:
  HWY_INLINE V Load(Tag d, const float* at, int k) const {
    if constexpr (kMasked) {
      return span_[k].Load(d, at);
    } else {
      return hn::LoadU(d, at);
    }
  }
  ptrdiff_t column_;
  Span<Tag> span_[4];
};

// Rows of the source that target rows [u, u + kCount) read.
template <int kStepRows, size_t kTargets>
struct SourceRows {
  static constexpr size_t kStep = kStepRows, kCount = kTargets, kSize = (kCount - 1) * kStep + 3;
  const float* row[kSize];
  HWY_INLINE SourceRows(const DepthwiseWindow& s, const float* x, size_t u) {
    const ptrdiff_t first = static_cast<ptrdiff_t>(u * kStep) + s.top;
    const float* at = x + first * s.row_stride;
    HWY_UNROLL(15)
    for (size_t i = 0; i < kSize; ++i, at += s.row_stride) {
      row[i] = static_cast<size_t>(first) + i < static_cast<size_t>(s.height) ? at : s.zeros;  // above the plane wraps
    }
  }
};

// Cuts rows into blocks and hands them to the pass. Whole vectors away from the borders need no masks.
template <class Tag, int kStep, size_t kCount, class Work>
HWY_INLINE void ForEachColumn(const DepthwiseWindow& s, const float* x, size_t u, size_t pixels, Work& work) {
  const Tag d;
  const hn::Half<Tag> half;
  const ptrdiff_t lanes = SignedLanes(d), end = static_cast<ptrdiff_t>(pixels);
  const SourceRows<kStep, kCount> rows(s, x, u);
  for (ptrdiff_t v = 0; v < end; v += lanes) {
    const ptrdiff_t column = v * kStep + s.left, left = end - v;
    if (left >= lanes && column >= 0 && column + kStep * lanes + 2 <= s.width) {
      work.Block(d, TapReader<Tag, kStep, false>(d, column, s.width, lanes), rows, u, v, lanes);
    } else if (left > lanes / 2 || !Work::kHalves) {
      const ptrdiff_t some = HWY_MIN(left, lanes);
      work.Block(d, TapReader<Tag, kStep, true>(d, column, s.width, some), rows, u, v, some);
    } else if constexpr (Work::kHalves) {
      work.Block(half, TapReader<hn::Half<Tag>, kStep, true>(half, column, s.width, left), rows, u, v, left);
    }
  }
}

template <class Tag, int kStep, class Work>
HWY_NOINLINE void WidePlanes(const DepthwiseWindow& s, size_t planes, Range rows, size_t pixels, Work work) {
  for (size_t p = 0; p < planes; ++p) {
    const float* x = s.x + p * s.plane_stride;
    work.Begin(p);
    size_t u = rows.begin;
    for (; u + kBlockRows <= rows.end; u += kBlockRows) ForEachColumn<Tag, kStep, kBlockRows>(s, x, u, pixels, work);
    for (; u < rows.end; ++u) ForEachColumn<Tag, kStep, 1>(s, x, u, pixels, work);
    work.End(p);
  }
}

// Rows of one vector: its masks serve all planes.
template <class Tag, int kStep, class Work>
HWY_NOINLINE void NarrowPlanes(const DepthwiseWindow& s, size_t planes, Range rows, size_t pixels, Work work) {
  const Tag d;
  const auto count = static_cast<ptrdiff_t>(pixels);
  const TapReader<Tag, kStep, true> reader(d, s.left, s.width, count);
  for (size_t p = 0; p < planes; ++p) {
    const float* x = s.x + p * s.plane_stride;
    work.Begin(p);
    size_t u = rows.begin;
    for (; u + kBlockRows <= rows.end; u += kBlockRows) {
      work.Block(d, reader, SourceRows<kStep, kBlockRows>(s, x, u), u, 0, count);
    }
    for (; u < rows.end; ++u) work.Block(d, reader, SourceRows<kStep, 1>(s, x, u), u, 0, count);
    work.End(p);
  }
}

// ---- sums of shifted rows -------------------------------------------------------------------------------------------

template <class Tag>
struct RowSums {
  static constexpr bool kHalves = true;
  const DepthwiseOutput& out;
  float* y = nullptr;           // where row 0 of the plane would be
  const float* bias = nullptr;  // of the plane
  hn::Vec<Tag> weight[9] = {};

  HWY_INLINE void Begin(size_t p) {
    bias = out.bias ? out.bias + p : nullptr;
    y = out.y + p * out.plane_stride;
    HWY_UNROLL(9)
    for (size_t k = 0; k < 9; ++k) weight[k] = hn::Set(Tag(), out.weight[9 * p + k]);
  }
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
    (s.step == 1 ? &WidePlanes<D, 1, Work> : &WidePlanes<D, 2, Work>)(s, planes, rows, pixels, Work{out});
  }
}

// ---- dot products of shifted rows -----------------------------------------------------------------------------------

template <class Tag>
struct Dots {
  static constexpr bool kHalves = false;
  const DepthwiseGradient& gradient;
  const float* g = nullptr;  // where row 0 would be
  hn::Vec<Tag> sum[9] = {};

  HWY_INLINE void Begin(size_t p) {
    const Tag d;
    g = gradient.g + p * gradient.plane_stride;
    HWY_UNROLL(9)
    for (size_t k = 0; k < 9; ++k) sum[k] = hn::Load(d, gradient.lanes + (9 * p + k) * kDepthwiseLanes);
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
  } else {
    using Work = Dots<D>;
    if (pixels <= hn::Lanes(D())) {
      (s.step == 1 ? &NarrowPlanes<D, 1, Work> : &NarrowPlanes<D, 2, Work>)(s, planes, rows, pixels, Work{out});
    } else {
      (s.step == 1 ? &WidePlanes<D, 1, Work> : &WidePlanes<D, 2, Work>)(s, planes, rows, pixels, Work{out});
    }
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
