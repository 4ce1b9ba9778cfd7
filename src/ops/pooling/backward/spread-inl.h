// From rows of windows to a row of pixels: dx(x) = sum over the windows wx that reach x, in order, of t(wx), where t is
// the sum of up to three rows.

#if defined(BNNS_OPS_POOLING_SPREAD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_POOLING_SPREAD_INL_H_
#undef BNNS_OPS_POOLING_SPREAD_INL_H_
#else
#define BNNS_OPS_POOLING_SPREAD_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "src/ops/pooling/backward/gather_tile.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE void FillZeros(int64_t n, float* to) {  // whole vectors: there is slack behind
  const D d;
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(d))) hn::StoreU(hn::Zero(d), d, to + i);
}

HWY_INLINE void SumRows(const float* const* rows, int64_t count, int64_t n, float* to) {
  const D d;
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(d))) {
    V sum = hn::LoadU(d, rows[0] + i);
    for (int64_t j = 1; j < count; ++j) sum = hn::Add(sum, hn::LoadU(d, rows[j] + i));
    hn::StoreU(sum, d, to + i);
  }
}

// Where a row of dx goes: to `copies` rows that lie `pitch` apart; L2Norm multiplies it by a row of pixels first. Whole
// vectors are written: there is slack behind, or the next row comes later.
struct Target {
  float* to;
  int64_t n, copies, pitch;
  const float* pixels;  // or NULL

  HWY_INLINE V Times(V sum, int64_t i) const {
    const D d;
    const int64_t N = static_cast<int64_t>(hn::Lanes(d));
    V pixel = hn::Zero(d);
    if (HWY_LIKELY(i + N <= n))
      pixel = hn::LoadU(d, pixels + i);
    else if (i < n)
      pixel = LoadPartial(d, pixels + i, static_cast<size_t>(n - i));
    return hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d)), hn::Mul(pixel, sum));  // 0 also where the pixel is inf
  }
};

// The places of a tile's windows, worked out once: the rows it is given begin at the tile's first window.
class Spreader {
 public:
  Spreader(const PoolingAxis& x, const GatherTile& tile) : stride_(x.stride), step_(x.dilation), taps_(x.kernel) {
    const int64_t base = tile.columns.begin + x.pad - tile.windows.begin * x.stride;
    if (wants_sums()) PrepareAny(base, std::min(x.stride, tile.columns.size()));
    first_ = base - x.reach();  // on a column the window with the largest tap comes first
    // Column stride 2: tap k is on even columns of the tile if base - k is even.
    const int64_t k_even = taps_ - 1 - ((base - taps_ + 1) & 1), k_odd = taps_ - 1 - ((base - taps_) & 1);
    evens_ = (k_even + 2) >> 1;
    odds_ = (k_odd + 2) >> 1;
    even_ = (base - k_even) >> 1;
    odd_ = (base + 1 - k_odd) >> 1;
  }

  // Whether rows come summed: count is 1 then.
  bool wants_sums() const { return stride_ > 2 || (stride_ == 2 && step_ > 1); }
  // count is 1, 2 or 3.
  HWY_INLINE void Row(const float* const* rows, int64_t count, const Target& target) const {
    if (wants_sums())
      StepAny(rows[0], target);
    else if (count == 1)
      Spread<1>(rows, target);
    else if (count == 2)
      Spread<2>(rows, target);
    else
      Spread<3>(rows, target);
  }

 private:
  // Column r is `base + r` pixels after the first tap of the tile's first window.
  void PrepareAny(int64_t base, int64_t columns) {
    const int64_t common = std::gcd(stride_, step_), apart = stride_ / common;  // between taps of one column
    hop_ = step_ / common;
    for (int64_t r = 0; r < columns; ++r) {
      const int64_t window = floor_div(base + r, stride_), rest = base + r - window * stride_;
      int64_t first = 0;  // its smallest tap, from the last window over it
      while (first < std::min(taps_, apart) && first * step_ % stride_ != rest) ++first;
      if (first >= std::min(taps_, apart)) {
        count_[r] = begin_[r] = 0;
        continue;
      }
      const int64_t last = first + (taps_ - 1 - first) / apart * apart;
      count_[r] = static_cast<int32_t>((last - first) / apart + 1);
      begin_[r] = static_cast<int32_t>(window - last * step_ / stride_);
    }
  }

  template <int kRows>
  HWY_INLINE static V At(const float* const* rows, int64_t i) {
    const D d;
    V sum = hn::LoadU(d, rows[0] + i);
    if constexpr (kRows > 1) sum = hn::Add(sum, hn::LoadU(d, rows[1] + i));
    if constexpr (kRows > 2) sum = hn::Add(sum, hn::LoadU(d, rows[2] + i));
    return sum;
  }

  template <int kRows>
  HWY_INLINE void Spread(const float* const* rows, const Target& target) const {
    if (stride_ == 1 && taps_ == 3)
      Step1<kRows, 3>(rows, target);
    else if (stride_ == 1)
      Step1<kRows, 0>(rows, target);
    else if (taps_ == 2)
      Step2<kRows, 1, 1>(rows, target);
    else if (taps_ == 3 && evens_ == 2)
      Step2<kRows, 2, 1>(rows, target);
    else if (taps_ == 3)
      Step2<kRows, 1, 2>(rows, target);
    else
      Step2<kRows, -1, -1>(rows, target);
  }

  template <int kRows, int kTaps>
  HWY_INLINE void Step1(const float* const* rows, const Target& target) const {
    const D d;
    const int64_t N = static_cast<int64_t>(hn::Lanes(d)), taps = kTaps ? kTaps : taps_;
    for (int64_t i = 0; i < target.n; i += N) {
      V sum = At<kRows>(rows, first_ + i);
      for (int64_t k = 1; k < taps; ++k) sum = hn::Add(sum, At<kRows>(rows, first_ + i + k * step_));
      if (target.pixels) sum = target.Times(sum, i);
      hn::StoreU(sum, d, target.to + i);
    }
  }

  // From right to left, since the last vector of a row may go past its end, into the row's copy.
  template <int kRows, int kEven, int kOdd>
  HWY_INLINE void Step2(const float* const* rows, const Target& target) const {
    const D d;
    const int64_t N = static_cast<int64_t>(hn::Lanes(d));
    const int64_t evens = kEven >= 0 ? kEven : evens_, odds = kOdd >= 0 ? kOdd : odds_;
    for (int64_t i = (target.n - 1) / (2 * N) * N; i >= 0; i -= N) {
      V first = hn::Zero(d), second = hn::Zero(d);
      if (evens > 0) first = At<kRows>(rows, even_ + i);
      for (int64_t k = 1; k < evens; ++k) first = hn::Add(first, At<kRows>(rows, even_ + i + k));
      if (odds > 0) second = At<kRows>(rows, odd_ + i);
      for (int64_t k = 1; k < odds; ++k) second = hn::Add(second, At<kRows>(rows, odd_ + i + k));
      float* to = target.to + 2 * i;
      if (!target.pixels) {
        hn::StoreInterleaved2(first, second, d, to);
        if (target.copies == 2) hn::StoreInterleaved2(first, second, d, to + target.pitch);
      } else {
        HWY_ALIGN float both[2 * hn::MaxLanes(D())];
        hn::StoreInterleaved2(first, second, d, both);
        hn::StoreU(target.Times(hn::Load(d, both), 2 * i), d, to);
        hn::StoreU(target.Times(hn::Load(d, both + N), 2 * i + N), d, to + N);
      }
    }
  }

  // Any stride and dilation: columns r, r + stride, ... of the tile have the same taps; their sums are made side by
  // side.
  HWY_NOINLINE void StepAny(const float* sums, const Target& target) const {
    const D d;
    const int64_t N = static_cast<int64_t>(hn::Lanes(d));
    HWY_ALIGN float row[kTileColumns + 2 * hn::MaxLanes(D())];
    for (int64_t r = 0; r < std::min(stride_, target.n); ++r) {
      const int64_t windows = count_[r], n = (target.n - r + stride_ - 1) / stride_;
      float* to = target.to + r;
      if (windows == 0) {
        for (int64_t k = 0; k < n; ++k) to[k * stride_] = 0;
        continue;
      }
      const float* from = sums + begin_[r];
      for (int64_t k = 0; k < n; k += N) {
        V sum = hn::LoadU(d, from + k);
        for (int64_t j = 1; j < windows; ++j) sum = hn::Add(sum, hn::LoadU(d, from + k + j * hop_));
        hn::StoreU(sum, d, row + k);
      }
      for (int64_t k = 0; k < n; ++k) to[k * stride_] = row[k];
    }
    for (int64_t i = 0; target.pixels && i < target.n; i += N) {
      hn::StoreU(target.Times(hn::LoadU(d, target.to + i), i), d, target.to + i);
    }
    for (int64_t c = 1; c < target.copies; ++c) {
      std::memcpy(target.to + c * target.pitch, target.to, static_cast<size_t>(target.n) * sizeof(float));
    }
  }

  int64_t stride_, step_, taps_;
  // Of StepAny: the first window over column r, how many there are, and from one to the next.
  int32_t begin_[kTileStride], count_[kTileStride];
  int64_t hop_ = 0;
  int64_t first_, evens_, odds_, even_, odd_;
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_SPREAD_INL_H_
