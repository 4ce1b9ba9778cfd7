// Sums about a shift: what mean and variance are made of.
//
// One pass sums d = x - shift and d^2 with the block's first value as the shift, so that a large common offset costs no
// digits. Where the first value lies so far from the mean that most of sum d^2 would cancel in the variance, a second
// pass over the block, now in L1, takes its mean as the shift. What is left of the shift's distance to the mean is
// corrected when sums are merged and finished in double (MomentSums).

#if defined(BNNS_NORMALIZATION_MOMENTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_NORMALIZATION_MOMENTS_INL_H_
#undef BNNS_NORMALIZATION_MOMENTS_INL_H_
#else
#define BNNS_NORMALIZATION_MOMENTS_INL_H_
#endif

#include <hwy/highway.h>

#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The share of sum d^2 that must survive in the variance: the error of f32 sums grows by 1 / kSurvives at most.
constexpr float kSurvives = 0.2f;

// n values to L2.
HWY_INLINE void Fetch(const float* p, size_t n) {
  for (size_t i = 0; i < n; i += 64 / sizeof(float)) __builtin_prefetch(p + i, 0, 2);
}

// Four accumulators, so that the adds do not wait for each other, joined at the end. The order depends on the block's
// rows and n alone.
template <class D>
struct ShiftedSums {
  using V = hn::Vec<D>;
  D d;
  V shift, e0, e1, e2, e3, f0, f1, f2, f3;

  HWY_ATTR HWY_INLINE ShiftedSums(D tag, float about) : d(tag), shift(hn::Set(tag, about)) {
    e0 = e1 = e2 = e3 = f0 = f1 = f2 = f3 = hn::Zero(d);
  }
  HWY_ATTR HWY_INLINE void Add(const float* p, V& e, V& f) const {
    const V v = hn::Sub(hn::LoadU(d, p), shift);
    e = hn::Add(e, v), f = hn::MulAdd(v, v, f);
  }
  HWY_ATTR HWY_INLINE void AddFour(const float* p) {
    const size_t N = hn::Lanes(d);
    Add(p, e0, f0), Add(p + N, e1, f1), Add(p + 2 * N, e2, f2), Add(p + 3 * N, e3, f3);
  }
  // What is left of a row: less than four vectors.
  HWY_ATTR HWY_INLINE void AddRest(const float* p, size_t n) {
    const size_t N = hn::Lanes(d);
    if (n >= N) Add(p, e0, f0), p += N, n -= N;
    if (n >= N) Add(p, e1, f1), p += N, n -= N;
    if (n >= N) Add(p, e2, f2), p += N, n -= N;
    if (n == 0) return;
    const V v = hn::IfThenElseZero(hn::FirstN(d, n), hn::Sub(LoadPartial(d, p, n), shift));
    e3 = hn::Add(e3, v), f3 = hn::MulAdd(v, v, f3);
  }
  HWY_ATTR HWY_INLINE void Finish(float* sum, float* squares) const {
    *sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(e0, e1), hn::Add(e2, e3))));
    *squares = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(f0, f1), hn::Add(f2, f3))));
  }
};

HWY_INLINE void SumsAbout(const float* x, size_t rows, size_t stride, size_t n, size_t next_rows, float shift,
                          float* sum, float* squares) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  ShiftedSums<decltype(d)> sums(d, shift);
  for (size_t r = 0; r < rows; ++r) {
    const float* p = x + r * stride;
    if (r < next_rows) Fetch(p + rows * stride, n);
    size_t i = 0;
    for (; i + 4 * N <= n; i += 4 * N) sums.AddFour(p + i);
    sums.AddRest(p + i, n - i);
  }
  sums.Finish(sum, squares);
}

// Whether most of the sum of squares of a block cancels: then out[0] becomes its mean, and the sums are to be made
// again.
HWY_INLINE bool MoveShift(size_t count, float out[3]) {
  const float mean = out[1] / static_cast<float>(count);
  if (!(out[2] - out[1] * mean < kSurvives * out[2])) return false;
  out[0] += mean;
  return true;
}

// out: shift, sum, sum of squares.
HWY_INLINE void BlockMoments(const float* x, size_t rows, size_t stride, size_t n, size_t next_rows, float out[3]) {
  out[0] = x[0];
  SumsAbout(x, rows, stride, n, next_rows, out[0], &out[1], &out[2]);
  if (MoveShift(rows * n, out)) SumsAbout(x, rows, stride, n, 0, out[0], &out[1], &out[2]);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_NORMALIZATION_MOMENTS_INL_H_
