// Sums about a shift: what mean and variance are made of.
//
// Two passes over a block that stays in L1. The first finds a centre m, from differences to the first value so that a
// large common offset costs no digits; the second sums d = x - m and d^2. Both sums are corrected for m not being the
// mean when they are merged and finished in double (MomentSums), so m need not be exact.

#include "src/ops/normalization/normalization.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/normalization/normalization_moments_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct BlockSums {
  float centre, sum, squares;
};

// Four accumulators, so that the adds do not wait for each other, joined at the end. The order depends on the block's
// rows and n alone.
BlockSums MomentsOfBlock(const float* x, size_t rows, size_t stride, size_t n) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t N = hn::Lanes(d);
  const auto tail = hn::FirstN(d, n % N);
  const float count = static_cast<float>(rows * n);

  const V first = hn::Set(d, x[0]);
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  for (size_t r = 0; r < rows; ++r) {
    const float* p = x + r * stride;
    size_t i = 0;
    for (; i + 4 * N <= n; i += 4 * N) {
      s0 = hn::Add(s0, hn::Sub(hn::LoadU(d, p + i), first));
      s1 = hn::Add(s1, hn::Sub(hn::LoadU(d, p + i + N), first));
      s2 = hn::Add(s2, hn::Sub(hn::LoadU(d, p + i + 2 * N), first));
      s3 = hn::Add(s3, hn::Sub(hn::LoadU(d, p + i + 3 * N), first));
    }
    if (i + N <= n) s0 = hn::Add(s0, hn::Sub(hn::LoadU(d, p + i), first)), i += N;
    if (i + N <= n) s1 = hn::Add(s1, hn::Sub(hn::LoadU(d, p + i), first)), i += N;
    if (i + N <= n) s2 = hn::Add(s2, hn::Sub(hn::LoadU(d, p + i), first)), i += N;
    if (i < n) s3 = hn::Add(s3, hn::IfThenElseZero(tail, hn::Sub(LoadPartial(d, p + i, n - i), first)));
  }
  const V s = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
  const float centre = x[0] + hn::GetLane(hn::SumOfLanes(d, s)) / count;

  const V m = hn::Set(d, centre);
  V e0 = hn::Zero(d), e1 = e0, e2 = e0, e3 = e0, f0 = e0, f1 = e0, f2 = e0, f3 = e0;
  for (size_t r = 0; r < rows; ++r) {
    const float* p = x + r * stride;
    size_t i = 0;
    for (; i + 4 * N <= n; i += 4 * N) {
      const V d0 = hn::Sub(hn::LoadU(d, p + i), m), d1 = hn::Sub(hn::LoadU(d, p + i + N), m);
      const V d2 = hn::Sub(hn::LoadU(d, p + i + 2 * N), m), d3 = hn::Sub(hn::LoadU(d, p + i + 3 * N), m);
      e0 = hn::Add(e0, d0), f0 = hn::MulAdd(d0, d0, f0);
      e1 = hn::Add(e1, d1), f1 = hn::MulAdd(d1, d1, f1);
      e2 = hn::Add(e2, d2), f2 = hn::MulAdd(d2, d2, f2);
      e3 = hn::Add(e3, d3), f3 = hn::MulAdd(d3, d3, f3);
    }
    if (i + N <= n) {
      const V d0 = hn::Sub(hn::LoadU(d, p + i), m);
      e0 = hn::Add(e0, d0), f0 = hn::MulAdd(d0, d0, f0), i += N;
    }
    if (i + N <= n) {
      const V d1 = hn::Sub(hn::LoadU(d, p + i), m);
      e1 = hn::Add(e1, d1), f1 = hn::MulAdd(d1, d1, f1), i += N;
    }
    if (i + N <= n) {
      const V d2 = hn::Sub(hn::LoadU(d, p + i), m);
      e2 = hn::Add(e2, d2), f2 = hn::MulAdd(d2, d2, f2), i += N;
    }
    if (i < n) {
      const V d3 = hn::IfThenElseZero(tail, hn::Sub(LoadPartial(d, p + i, n - i), m));
      e3 = hn::Add(e3, d3), f3 = hn::MulAdd(d3, d3, f3);
    }
  }
  const V e = hn::Add(hn::Add(e0, e1), hn::Add(e2, e3)), f = hn::Add(hn::Add(f0, f1), hn::Add(f2, f3));
  return {centre, hn::GetLane(hn::SumOfLanes(d, e)), hn::GetLane(hn::SumOfLanes(d, f))};
}

struct ColumnBlockSums {
  float centre[kColumns], sum[kColumns], squares[kColumns];
};

// One vector of columns: load(row) gives its values.
template <class D, class Load>
HWY_INLINE void ColumnVector(D d, size_t rows, Load load, hn::Vec<D>* m, hn::Vec<D>* e, hn::Vec<D>* f) {
  const auto first = load(0);
  auto s = hn::Zero(d);
  for (size_t r = 1; r < rows; ++r) s = hn::Add(s, hn::Sub(load(r), first));
  *m = hn::MulAdd(s, hn::Set(d, 1.0f / static_cast<float>(rows)), first);
  *e = *f = hn::Zero(d);
  for (size_t r = 0; r < rows; ++r) {
    const auto v = hn::Sub(load(r), *m);
    *e = hn::Add(*e, v);
    *f = hn::MulAdd(v, v, *f);
  }
}

void MomentsOfColumns(const float* x, size_t rows, size_t stride, size_t columns, ColumnBlockSums* out) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t N = hn::Lanes(d);
  V m, e, f;
  size_t j = 0;
  for (; j + N <= columns; j += N) {
    ColumnVector(d, rows, [&](size_t r) HWY_ATTR { return hn::LoadU(d, x + r * stride + j); }, &m, &e, &f);
    hn::StoreU(m, d, out->centre + j);
    hn::StoreU(e, d, out->sum + j);
    hn::StoreU(f, d, out->squares + j);
  }
  if (j < columns) {
    const size_t left = columns - j;
    ColumnVector(d, rows, [&](size_t r) HWY_ATTR { return LoadPartial(d, x + r * stride + j, left); }, &m, &e, &f);
    StorePartial(d, m, out->centre + j, left);
    StorePartial(d, e, out->sum + j, left);
    StorePartial(d, f, out->squares + j, left);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

MomentSums moments_of_block(const float* x, size_t rows, size_t stride, size_t n) noexcept {
  const auto sums = BNNS_DISPATCH(MomentsOfBlock)(x, rows, stride, n);
  return {static_cast<double>(rows * n), sums.centre, sums.sum, sums.squares};
}

void merge_column_moments(const float* x, size_t rows, size_t stride, size_t columns, MomentSums* sums) noexcept {
  ColumnBlockSums block;
  BNNS_DISPATCH(MomentsOfColumns)(x, rows, stride, columns, &block);
  for (size_t j = 0; j < columns; ++j) {
    sums[j].merge({static_cast<double>(rows), block.centre[j], block.sum[j], block.squares[j]});
  }
}

}  // namespace bnns
#endif
