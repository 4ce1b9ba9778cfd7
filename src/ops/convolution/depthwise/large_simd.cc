// Depthwise 3x3 over a stride of 2, rows of the large planes: even and odd columns are sums of their own over small
// pixels, two vectors that are stored interleaved. Borders by masks, rows outside by a row of zeros.

#include "src/ops/convolution/depthwise/tile.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/depthwise/large_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/ops/convolution/common/span-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// E and O in turn: the lower and the upper half of that.
template <class Tag>
class Interleave {
  using V = hn::Vec<Tag>;

 public:
  HWY_INLINE explicit Interleave(Tag d) {
    const hn::RebindToSigned<Tag> di;
    const auto twice = hn::ShiftRight<1>(hn::Iota(di, 0));
    lower_ = hn::IndicesFromVec(d, twice);
    upper_ = hn::IndicesFromVec(d, hn::Add(twice, hn::Set(di, static_cast<int32_t>(hn::Lanes(d) / 2))));
  }
  HWY_INLINE V Lower(V even, V odd) const {
    return hn::OddEven(hn::TableLookupLanes(odd, lower_), hn::TableLookupLanes(even, lower_));
  }
  HWY_INLINE V Upper(V even, V odd) const {
    return hn::OddEven(hn::TableLookupLanes(odd, upper_), hn::TableLookupLanes(even, upper_));
  }

 private:
  decltype(hn::IndicesFromVec(Tag(), hn::Iota(hn::RebindToSigned<Tag>(), 0))) lower_, upper_;
};

template <class Tag>
HWY_INLINE void StoreSome(Tag d, hn::Vec<Tag> v, float* to, ptrdiff_t count) {
  if (count >= SignedLanes(d)) {
    hn::StoreU(v, d, to);
  } else if (count > 0) {
    StorePartial(d, v, to, static_cast<size_t>(count));
  }
}

// kY taps of rows with even numbers and 3 - kY of odd ones, kX and 3 - kX alike for columns.
template <class Tag, size_t kY, size_t kX>
HWY_NOINLINE void LargeRows(const DepthwiseSpread& s, size_t planes, Range rows, const DepthwiseOutput& out) {
  using V = hn::Vec<Tag>;
  const Tag d;
  const Interleave<Tag> interleave(d);
  const ptrdiff_t lanes = SignedLanes(d), pairs = (s.large_width + 1) / 2;
  for (ptrdiff_t q = 0; q < pairs; q += lanes) {
    const ptrdiff_t even = q + s.first_x[0], odd = q + s.first_x[1], left = s.large_width - 2 * q;
    const Span<Tag> spans[3] = {
        Span<Tag>(d, even, s.width),
        kX == 2 ? Span<Tag>(d, even + 1, s.width) : Span<Tag>(d, odd, s.width),
        Span<Tag>(d, kX == 2 ? odd : odd + 1, s.width),
    };
    for (size_t p = 0; p < planes; ++p) {
      V w[9];
      HWY_UNROLL(9)
      for (size_t k = 0; k < 9; ++k) w[k] = hn::Set(d, out.weight[9 * p + k]);
      const V bias = hn::Set(d, out.bias ? out.bias[p] : 0.0f);
      const float* x = s.x + p * s.plane_stride;
      float* to = out.y + p * out.plane_stride + rows.begin * out.row_stride + static_cast<size_t>(2 * q);
      for (size_t l = rows.begin; l < rows.end; l += 2) {
        V sum[4];  // rows l and l + 1, even and odd columns
        HWY_UNROLL(4)
        for (size_t k = 0; k < 4; ++k) sum[k] = hn::Zero(d);
        HWY_UNROLL(3)
        for (size_t t = 0; t < 3; ++t) {
          const size_t phase = t < kY ? 0 : 1;
          // Above the plane wraps.
          const auto at = static_cast<size_t>(static_cast<ptrdiff_t>(l / 2 + (phase ? t - kY : t)) + s.first_y[phase]);
          const float* row = at < static_cast<size_t>(s.height) ? x + at * s.row_stride : s.zeros;
          HWY_UNROLL(3)
          for (size_t k = 0; k < 3; ++k) {
            const float* from = k < kX ? row + even + k : row + odd + (k - kX);
            V& one = sum[2 * phase + (k < kX ? 0 : 1)];
            one = hn::MulAdd(w[3 * t + k], spans[k].Load(d, from), one);
          }
        }
        if (out.bias) {
          HWY_UNROLL(4)
          for (size_t k = 0; k < 4; ++k) sum[k] = hn::Add(sum[k], bias);
        }
        StoreSome(d, interleave.Lower(sum[0], sum[1]), to, left);
        StoreSome(d, interleave.Upper(sum[0], sum[1]), to + lanes, left - lanes);
        to += out.row_stride;
        if (l + 1 == rows.end) break;
        StoreSome(d, interleave.Lower(sum[2], sum[3]), to, left);
        StoreSome(d, interleave.Upper(sum[2], sum[3]), to + lanes, left - lanes);
        to += out.row_stride;
      }
    }
  }
}

template <class Tag>
HWY_INLINE void LargePlanes(const DepthwiseSpread& s, size_t planes, Range rows, const DepthwiseOutput& out) {
  const bool one_y = s.taps_y[0] == 1, one_x = s.taps_x[0] == 1;
  (one_y ? (one_x ? &LargeRows<Tag, 1, 1> : &LargeRows<Tag, 1, 2>)
         : (one_x ? &LargeRows<Tag, 2, 1> : &LargeRows<Tag, 2, 2>))(s, planes, rows, out);
}

void DepthwiseLargeRows(const DepthwiseSpread& s, size_t planes, Range rows, const DepthwiseOutput& out) {
  using Tag = hn::ScalableTag<float>;
  using HalfTag = hn::Half<Tag>;
  if ((s.large_width + 1) / 2 <= SignedLanes(HalfTag())) {
    LargePlanes<HalfTag>(s, planes, rows, out);
  } else {
    LargePlanes<Tag>(s, planes, rows, out);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void depthwise_large_rows(const DepthwiseSpread& source, size_t planes, Range rows,
                          const DepthwiseOutput& out) noexcept {
  BNNS_DISPATCH(DepthwiseLargeRows)(source, planes, rows, out);
}

}  // namespace bnns
#endif
