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
    first_ = base - x.reach();  // on a column the window with the largest tap comes first
    // Column stride 2: tap k is on even columns of the tile if base - k is even.
    const int64_t k_even = taps_ - 1 - ((base - taps_ + 1) & 1), k_odd = taps_ - 1 - ((base - taps_) & 1);
    evens_ = (k_even + 2) >> 1;
    odds_ = (k_odd + 2) >> 1;
    even_ = (base - k_even) >> 1;
    odd_ = (base + 1 - k_odd) >> 1;
  }

  // count is 1, 2 or 3.
  HWY_INLINE void Row(const float* const* rows, int64_t count, const Target& target) const {
    if (count == 1)
      Spread<1>(rows, target);
    else if (count == 2)
      Spread<2>(rows, target);
    else
      Spread<3>(rows, target);
  }

 private:
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

  int64_t stride_, step_, taps_;
  int64_t first_, evens_, odds_, even_, odd_;
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_SPREAD_INL_H_
