// x^ = ((x - mean_high) - mean_low) rstd, y = max(floor, gamma x^ + beta), in one pass.
//
// Three kernels share the loop; they differ in where the numbers of a column come from: one set and channel for the
// block, one set with gamma and beta along the row, everything per column. Body and tail run the same vector code.

#include "src/ops/normalization/common/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/normalization/forward/channels_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/normalization/forward/values-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One set of numbers per channel of `plane` columns. Columns are asked for in order. A vector that reaches into the
// next channel takes the numbers of each lane's own one: the channels of a sample are one run of whole, aligned
// vectors, however odd their planes.
template <class D>
struct PerChannel {
  D d;
  const ChannelCoefficients* channel;
  size_t plane, end;
  hn::Vec<D> floor, high, low, rstd, gamma, beta;

  HWY_ATTR HWY_INLINE PerChannel(D tag, const ChannelCoefficients* first, size_t columns, float least)
      : d(tag), channel(first), plane(columns), end(columns), floor(hn::Set(tag, least)) {
    SetNumbers();
  }
  HWY_ATTR HWY_INLINE void SetNumbers() {
    high = hn::Set(d, channel->set.mean_high);
    low = hn::Set(d, channel->set.mean_low);
    rstd = hn::Set(d, channel->set.rstd);
    gamma = hn::Set(d, channel->gamma);
    beta = hn::Set(d, channel->beta);
  }
  HWY_ATTR HWY_INLINE Normalized<hn::Vec<D>> operator()(hn::Vec<D> x, size_t i, size_t count) {
    auto h = high, l = low, r = rstd, g = gamma, b = beta;
    if (HWY_UNLIKELY(i + count > end)) {
      const auto last = hn::FirstN(d, end - i);  // lanes of the channel that ends here
      ++channel, end += plane;
      SetNumbers();
      h = hn::IfThenElse(last, h, high), l = hn::IfThenElse(last, l, low), r = hn::IfThenElse(last, r, rstd);
      g = hn::IfThenElse(last, g, gamma), b = hn::IfThenElse(last, b, beta);
    }
    return Normalize(x, h, l, r, g, b, floor);  // once: gcc 12 passes a value returned in two places through memory
  }
  HWY_ATTR HWY_INLINE Normalized<hn::Vec<D>> operator()(hn::Vec<D> x, size_t i) { return (*this)(x, i, hn::Lanes(d)); }
};

// Every column its own numbers.
template <class D>
struct PerColumn {
  D d;
  const ColumnCoefficients* c;
  hn::Vec<D> floor;
  HWY_ATTR HWY_INLINE Normalized<hn::Vec<D>> operator()(hn::Vec<D> x, size_t i) const {
    return Normalize(x, hn::LoadU(d, c->mean_high + i), hn::LoadU(d, c->mean_low + i), hn::LoadU(d, c->rstd + i),
                     hn::LoadU(d, c->gamma + i), hn::LoadU(d, c->beta + i), floor);
  }
  HWY_ATTR HWY_INLINE Normalized<hn::Vec<D>> operator()(hn::Vec<D> x, size_t i, size_t count) const {
    return Normalize(x, LoadPartial(d, c->mean_high + i, count), LoadPartial(d, c->mean_low + i, count),
                     LoadPartial(d, c->rstd + i, count), LoadPartial(d, c->gamma + i, count),
                     LoadPartial(d, c->beta + i, count), floor);
  }
};

template <class D, class F>
HWY_INLINE void NormalizeRows(D d, const NormalizeBlock& b, const F& f) {
  for (size_t r = 0; r < b.rows; ++r) {
    b.values ? NormalizeRow<true>(d, b, r, f) : NormalizeRow<false>(d, b, r, f);
  }
}

void NormalizeChannels(const NormalizeBlock& b, size_t plane, const ChannelCoefficients* channels) {
  const hn::ScalableTag<float> d;
  NormalizeRows(d, b, PerChannel<decltype(d)>(d, channels, plane, b.floor));
}

void NormalizeAlongRow(const NormalizeBlock& b, const SetCoefficients& s, const float* gamma, const float* beta) {
  const hn::ScalableTag<float> d;
  NormalizeRows(d, b,
                AlongRow<decltype(d)>{d, hn::Set(d, s.mean_high), hn::Set(d, s.mean_low), hn::Set(d, s.rstd),
                                      hn::Set(d, b.floor), gamma, beta});
}

void NormalizePerColumn(const NormalizeBlock& b, const ColumnCoefficients& columns) {
  const hn::ScalableTag<float> d;
  NormalizeRows(d, b, PerColumn<decltype(d)>{d, &columns, hn::Set(d, b.floor)});
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void normalize_channel_block(const NormalizeBlock& block, size_t plane, const ChannelCoefficients* channels) noexcept {
  BNNS_DISPATCH(NormalizeChannels)(block, plane, channels);
}

void normalize_row_block(const NormalizeBlock& block, const SetCoefficients& set, const float* gamma,
                         const float* beta) noexcept {
  BNNS_DISPATCH(NormalizeAlongRow)(block, set, gamma, beta);
}

void normalize_column_block(const NormalizeBlock& block, const ColumnCoefficients& columns) noexcept {
  BNNS_DISPATCH(NormalizePerColumn)(block, columns);
}

}  // namespace bnns
#endif
