// Rows that are sets of their own (layer normalization): moments, x^ and y in one go.
//
// While a row is written, the moments of the one after the next are summed: memory is read and written at the same time
// all along, and the divisions and the root of a row have a whole row's time. 512 rows of 768 from memory, two cores of
// a Zen 4: 1.2 times as fast as row by row.

#include "src/ops/normalization/common/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/normalization/forward/rows_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/normalization/forward/moments-inl.h"
#include "src/ops/normalization/forward/values-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void MergeBlock(const float block[3], size_t n, MomentSums* sums) {
  sums->merge({static_cast<double>(n), block[0], block[1], block[2]});
}

MomentSums MomentsOfRow(const float* x, size_t length) {
  MomentSums sums;
  for (size_t i = 0; i < length; i += kMomentBlock) {
    const size_t n = HWY_MIN(kMomentBlock, length - i);
    float block[3];
    BlockMoments(x + i, 1, 0, n, 0, block);
    MergeBlock(block, n, &sums);
  }
  return sums;
}

// Writes row r and returns the moments of the row at `next`. Vectors of x^ and y are aligned where they are streamed.
template <bool kKeep, bool kStreamValues, bool kStreamY, class D, class F>
HWY_INLINE MomentSums NormalizeAndSum(D d, const NormalizeBlock& b, size_t r, const F& f, const float* next) {
  const size_t N = hn::Lanes(d);
  const float* x = b.x + r * b.x_stride;
  float* values = kKeep ? b.values + r * b.values_stride : nullptr;
  float* y = b.y + r * b.y_stride;
  MomentSums moments;
  for (size_t first = 0; first < b.n; first += kMomentBlock) {
    const size_t end = HWY_MIN(b.n, first + kMomentBlock);
    float block[3] = {next[first]};
    ShiftedSums<D> sums(d, block[0]);
    size_t i = first;
    for (; i + 4 * N <= end; i += 4 * N) {
      Fetch(next + i + kFetchAhead, 4 * N);
      sums.AddFour(next + i);
      NormalizeVectors<kKeep, kStreamValues, kStreamY>(d, x, values, y, i, i + 4 * N, nullptr, f);
    }
    sums.AddRest(next + i, end - i);
    i = NormalizeVectors<kKeep, kStreamValues, kStreamY>(d, x, values, y, i, end, nullptr, f);
    if (i < end) NormalizePart<kKeep>(d, x, values, y, i, end - i, f);
    sums.Finish(&block[1], &block[2]);
    const size_t n = end - first;
    if (MoveShift(n, block)) SumsAbout(next + first, 1, 0, n, 0, block[0], &block[1], &block[2]);
    MergeBlock(block, n, &moments);
  }
  return moments;
}

template <bool kKeep, bool kStreamValues, bool kStreamY>
HWY_INLINE void NormalizeEachRowOf(const NormalizeBlock& b, bool aligned, float epsilon, const float* gamma,
                                   const float* beta, float* rstd) {
  constexpr size_t kAhead = 2;
  const hn::ScalableTag<float> d;
  SetCoefficients sets[kAhead];
  for (size_t r = 0; r < HWY_MIN(kAhead, b.rows); ++r) {
    const MomentSums moments = MomentsOfRow(b.x + r * b.x_stride, b.n);
    sets[r] = make_set_coefficients(moments, epsilon);
  }
  for (size_t r = 0; r < b.rows; ++r) {
    SetCoefficients& s = sets[r % kAhead];
    const AlongRow<decltype(d)> f{
        d, hn::Set(d, s.mean_high), hn::Set(d, s.mean_low), hn::Set(d, s.rstd), hn::Set(d, b.floor), gamma, beta};
    if (rstd) rstd[r] = s.rstd;
    const float* next = b.x + (r + kAhead) * b.x_stride;
    if (r + kAhead >= b.rows) {
      NormalizeRow<kKeep>(d, b, r, f);
    } else if (aligned) {
      s = make_set_coefficients(NormalizeAndSum<kKeep, kStreamValues, kStreamY>(d, b, r, f, next), epsilon);
    } else {
      NormalizeRow<kKeep>(d, b, r, f);
      s = make_set_coefficients(MomentsOfRow(next, b.n), epsilon);
    }
  }
}

void NormalizeEachRow(const NormalizeBlock& b, float epsilon, const float* gamma, const float* beta, float* rstd) {
  const size_t N = hn::Lanes(hn::ScalableTag<float>());
  const auto whole = [N](const float* p, size_t stride) {
    return reinterpret_cast<uintptr_t>(p) / sizeof(float) % N == 0 && stride % N == 0;
  };
  const bool aligned = whole(b.y, b.y_stride) && (!b.values || whole(b.values, b.values_stride));
  if (!b.values) {
    b.stream_y ? NormalizeEachRowOf<false, false, true>(b, aligned, epsilon, gamma, beta, rstd)
               : NormalizeEachRowOf<false, false, false>(b, aligned, epsilon, gamma, beta, rstd);
  } else if (b.stream_values) {
    b.stream_y ? NormalizeEachRowOf<true, true, true>(b, aligned, epsilon, gamma, beta, rstd)
               : NormalizeEachRowOf<true, true, false>(b, aligned, epsilon, gamma, beta, rstd);
  } else {
    b.stream_y ? NormalizeEachRowOf<true, false, true>(b, aligned, epsilon, gamma, beta, rstd)
               : NormalizeEachRowOf<true, false, false>(b, aligned, epsilon, gamma, beta, rstd);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void normalize_each_row(const NormalizeBlock& block, float epsilon, const float* gamma, const float* beta,
                        float* rstd) noexcept {
  BNNS_DISPATCH(NormalizeEachRow)(block, epsilon, gamma, beta, rstd);
}

}  // namespace bnns
#endif
