// Moments of blocks and of columns: sums about a shift, see moments-inl.h.

#include "src/ops/normalization/common/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/normalization/forward/moments_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/normalization/forward/moments-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// out: shift, sum, sum of squares.
void MomentsOfBlock(const float* x, size_t rows, size_t stride, size_t n, size_t next_rows, float out[3]) {
  BlockMoments(x, rows, stride, n, next_rows, out);
}

// The same for one vector of columns; load(row) gives its values. Even and odd rows have accumulators of their own.
template <class D, class Load>
HWY_INLINE void ColumnSums(D d, size_t rows, Load load, hn::Vec<D>& shift, hn::Vec<D>& sum, hn::Vec<D>& squares) {
  using V = hn::Vec<D>;
  shift = load(0);
  for (int pass = 0;; ++pass) {
    const V m = shift;
    V e0 = hn::Zero(d), e1 = e0, f0 = e0, f1 = e0;
    size_t r = 0;
    for (; r + 2 <= rows; r += 2) {
      const V d0 = hn::Sub(load(r), m), d1 = hn::Sub(load(r + 1), m);
      e0 = hn::Add(e0, d0), f0 = hn::MulAdd(d0, d0, f0);
      e1 = hn::Add(e1, d1), f1 = hn::MulAdd(d1, d1, f1);
    }
    if (r < rows) {
      const V d0 = hn::Sub(load(r), m);
      e0 = hn::Add(e0, d0), f0 = hn::MulAdd(d0, d0, f0);
    }
    sum = hn::Add(e0, e1), squares = hn::Add(f0, f1);
    if (pass == 1) return;
    const V mean = hn::Mul(sum, hn::Set(d, 1.0f / static_cast<float>(rows)));
    const auto cancels = hn::Lt(hn::Sub(squares, hn::Mul(sum, mean)), hn::Mul(squares, hn::Set(d, kSurvives)));
    if (hn::AllFalse(d, cancels)) return;
    shift = hn::IfThenElse(cancels, hn::Add(shift, mean), shift);
  }
}

void MomentsOfColumns(const float* x, size_t rows, size_t stride, size_t columns, float* shift, float* sum,
                      float* squares) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t N = hn::Lanes(d);
  V m, e, f;
  size_t j = 0;
  for (; j + N <= columns; j += N) {
    ColumnSums(
        d, rows, [=](size_t r) HWY_ATTR { return hn::LoadU(d, x + r * stride + j); }, m, e, f);
    hn::StoreU(m, d, shift + j);
    hn::StoreU(e, d, sum + j);
    hn::StoreU(f, d, squares + j);
  }
  if (j < columns) {
    const size_t left = columns - j;
    ColumnSums(
        d, rows, [=](size_t r) HWY_ATTR { return LoadPartial(d, x + r * stride + j, left); }, m, e, f);
    StorePartial(d, m, shift + j, left);
    StorePartial(d, e, sum + j, left);
    StorePartial(d, f, squares + j, left);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

MomentSums moments_of_block(const float* x, size_t rows, size_t stride, size_t n, size_t next_rows) noexcept {
  float sums[3];
  BNNS_DISPATCH(MomentsOfBlock)(x, rows, stride, n, next_rows, sums);
  return {static_cast<double>(rows * n), sums[0], sums[1], sums[2]};
}

void merge_channel_moments(const float* x, size_t rows, size_t stride, size_t next_rows, size_t plane, size_t channels,
                           MomentSums* sums) noexcept {
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < plane; i += kMomentBlock) {
      const size_t n = HWY_MIN(kMomentBlock, plane - i);
      sums[c].merge(moments_of_block(x + c * plane + i, rows, stride, n, next_rows));
    }
  }
}

void merge_column_moments(const float* x, size_t rows, size_t stride, size_t columns, MomentSums* sums) noexcept {
  float shift[kColumns], sum[kColumns], squares[kColumns];
  BNNS_DISPATCH(MomentsOfColumns)(x, rows, stride, columns, shift, sum, squares);
  for (size_t j = 0; j < columns; ++j) {
    sums[j].merge({static_cast<double>(rows), shift[j], sum[j], squares[j]});
  }
}

}  // namespace bnns
#endif
