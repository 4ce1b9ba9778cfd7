#include <algorithm>

#include "src/simd/sums.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/simd/sums_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {  // these names stay inside this file

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using DD = hn::ScalableTag<double>;
using VD = hn::Vec<DD>;

// The sum of kSumRows rows, by pairs; load(r) gives row r.
template <class Load>
HWY_INLINE V SumByPairs(const Load& load) {
  const V low = hn::Add(hn::Add(load(0), load(1)), hn::Add(load(2), load(3)));
  const V high = hn::Add(hn::Add(load(4), load(5)), hn::Add(load(6), load(7)));
  return hn::Add(low, high);
}
// The sum of less than kSumRows rows, in order.
template <class Load>
HWY_INLINE V SumInOrder(size_t count, const Load& load) {
  V sum = load(0);
  for (size_t r = 1; r < count; ++r) sum = hn::Add(sum, load(r));
  return sum;
}

HWY_INLINE void AddTo(V v, VD* low, VD* high) {
  const hn::Half<D> half;
  *low = hn::Add(*low, hn::PromoteTo(DD(), hn::LowerHalf(half, v)));
  *high = hn::Add(*high, hn::PromoteTo(DD(), hn::UpperHalf(half, v)));
}

// One vector of columns with its sums in registers; load(n) gives that of row n.
template <class Load>
HWY_INLINE void SumColumn(size_t count, double* sums, const Load& load) {
  const DD dd;
  const size_t N = hn::Lanes(dd);
  VD low = hn::LoadU(dd, sums), high = hn::LoadU(dd, sums + N);
  size_t n = 0;
  for (; n + kSumRows <= count; n += kSumRows) {
    AddTo(SumByPairs([&](size_t r) HWY_ATTR { return load(n + r); }), &low, &high);
  }
  if (n < count) AddTo(SumInOrder(count - n, [&](size_t r) HWY_ATTR { return load(n + r); }), &low, &high);
  hn::StoreU(low, dd, sums), hn::StoreU(high, dd, sums + N);
}

}  // namespace

void AddColumnSums(const float* rows, size_t count, size_t stride, size_t columns, double* sums) {
  const D d;
  const DD dd;
  const size_t N = hn::Lanes(d), whole = columns / N * N, left = columns - whole;
  if (whole > 2 * N) {  // eight rows side by side from end to end, as the prefetcher likes it
    const auto for_columns = [&](auto&& sum_at) HWY_ATTR {
      for (size_t c = 0; c < whole; c += N) {
        VD low = hn::LoadU(dd, sums + c), high = hn::LoadU(dd, sums + c + N / 2);
        AddTo(sum_at(c), &low, &high);
        hn::StoreU(low, dd, sums + c), hn::StoreU(high, dd, sums + c + N / 2);
      }
    };
    size_t n = 0;
    for (; n + kSumRows <= count; n += kSumRows) {
      const float* row = rows + n * stride;
      for_columns([&](size_t c) HWY_ATTR {
        return SumByPairs([&](size_t r) HWY_ATTR { return hn::LoadU(d, row + r * stride + c); });
      });
    }
    if (n < count) {
      const float* row = rows + n * stride;
      for_columns([&](size_t c) HWY_ATTR {
        return SumInOrder(count - n, [&](size_t r) HWY_ATTR { return hn::LoadU(d, row + r * stride + c); });
      });
    }
  } else {  // sums in memory would wait for each other
    for (size_t c = 0; c < whole; c += N) {
      SumColumn(count, sums + c, [&](size_t n) HWY_ATTR { return hn::LoadU(d, rows + n * stride + c); });
    }
  }
  if (left == 0) return;
  double total[hn::MaxLanes(D())] = {};
  std::copy_n(sums + whole, left, total);
  SumColumn(count, total, [&](size_t n) HWY_ATTR { return LoadPartial(d, rows + n * stride + whole, left); });
  std::copy_n(total, left, sums + whole);
}

void AddRow(const float* x, size_t n, float* run) {
  Transform2(x, run, run, n, [](auto /*d*/, auto v, auto sum) HWY_ATTR { return hn::Add(sum, v); });
}

void MoveSums(float* run, size_t n, double* sums) {
  const DD dd;
  const hn::Rebind<float, DD> df;
  const size_t N = hn::Lanes(dd);
  size_t i = 0;
  for (; i + N <= n; i += N) {
    hn::StoreU(hn::Add(hn::LoadU(dd, sums + i), hn::PromoteTo(dd, hn::LoadU(df, run + i))), dd, sums + i);
    hn::StoreU(hn::Zero(df), df, run + i);
  }
  for (; i < n; ++i) sums[i] += static_cast<double>(run[i]), run[i] = 0;
}

void RoundSums(const double* sums, size_t n, float* to) {
  const DD dd;
  const hn::Rebind<float, DD> df;
  const size_t N = hn::Lanes(dd);
  size_t i = 0;
  for (; i + N <= n; i += N) hn::StoreU(hn::DemoteTo(df, hn::LoadU(dd, sums + i)), df, to + i);
  for (; i < n; ++i) to[i] = static_cast<float>(sums[i]);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void add_column_sums(const float* rows, size_t count, size_t stride, size_t columns, double* sums) noexcept {
  BNNS_DISPATCH(AddColumnSums)(rows, count, stride, columns, sums);
}

void column_sums(const float* rows, size_t count, size_t stride, size_t columns, bool accumulate, float* to) noexcept {
  constexpr size_t kColumns = 512;
  double sums[kColumns];
  for (size_t c = 0; c < columns; c += kColumns) {
    const size_t n = std::min(kColumns, columns - c);
    accumulate ? static_cast<void>(std::copy_n(to + c, n, sums)) : static_cast<void>(std::fill_n(sums, n, 0.0));
    if (count) add_column_sums(rows + c, count, stride, n, sums);
    round_sums(sums, n, to + c);
  }
}

void add_row(const float* x, size_t n, float* run) noexcept {
  BNNS_DISPATCH(AddRow)(x, n, run);
}
void move_sums(float* run, size_t n, double* sums) noexcept {
  BNNS_DISPATCH(MoveSums)(run, n, sums);
}
void round_sums(const double* sums, size_t n, float* to) noexcept {
  BNNS_DISPATCH(RoundSums)(sums, n, to);
}

}  // namespace bnns
#endif
