// Folds along rows of f32: four accumulators of vectors (src/simd/loops-inl.h), joined at the end of a row.

#include "src/ops/reduction/reduction.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/reduction/reduction_rows_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/reduction/reduction_terms-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

void ReduceRows(ReductionTerm term, ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, float epsilon,
                float* y) {
  WithTerm(term, epsilon, [&](auto f) HWY_ATTR {
    using Op = typename decltype(f)::Op;
    for (size_t r = 0; r < rows; ++r) {
      const float* row = x.data + r * x.step;
      y[r] = w.data ? Reduce2(row, w.data + r * w.step, n, Op(), f) : Reduce(row, n, Op(), f);
    }
  });
}

void ExpRows(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, const float* shift, float* y) {
  for (size_t r = 0; r < rows; ++r) {
    const float* row = x.data + r * x.step;
    const float s = shift[r];
    if (w.data) {
      y[r] = Reduce2(row, w.data + r * w.step, n, SumOp(), [s](auto d, auto v, auto u) HWY_ATTR {
        return MaskedTerm()(d, Exp(d, hn::Sub(v, hn::Set(d, s))), u);  // it may be infinite where u is 0
      });
    } else {
      y[r] = Reduce(row, n, SumOp(), [s](auto d, auto v) HWY_ATTR { return Exp(d, hn::Sub(v, hn::Set(d, s))); });
    }
  }
}

// Two accumulators of doubles, lower and upper halves of float vectors.
void ProductRows(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, double* y) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const size_t N = hn::Lanes(dd);
  for (size_t r = 0; r < rows; ++r) {
    const float* xs = x.data + r * x.step;
    const float* ws = w.data ? w.data + r * w.step : nullptr;
    auto product = hn::Set(dd, 1.0), second = product;
    size_t i = 0;
    const auto factor = [&](size_t at) HWY_ATTR {
      const auto v = hn::PromoteTo(dd, hn::LoadU(df, xs + at));
      return ws ? hn::Mul(v, hn::PromoteTo(dd, hn::LoadU(df, ws + at))) : v;
    };
    for (; i + 2 * N <= n; i += 2 * N) {
      product = hn::Mul(product, factor(i));
      second = hn::Mul(second, factor(i + N));
    }
    HWY_ALIGN double lanes[hn::MaxLanes(dd)];
    hn::Store(hn::Mul(product, second), dd, lanes);
    double result = 1;
    for (size_t k = 0; k < N; ++k) result *= lanes[k];
    for (; i < n; ++i)
      result *= ws ? static_cast<double>(xs[i]) * static_cast<double>(ws[i]) : static_cast<double>(xs[i]);
    y[r] = result;
  }
}

size_t FindFirst(const float* x, const float* w, size_t n, float value) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  const bool nan = value != value;
  const auto wanted = hn::Set(d, value);
  for (size_t i = 0; i < n; i += N) {
    const size_t left = n - i;
    auto v = left < N ? LoadPartial(d, x + i, left) : hn::LoadU(d, x + i);
    if (w) v = hn::Mul(left < N ? LoadPartial(d, w + i, left) : hn::LoadU(d, w + i), v);
    const auto hit = nan ? hn::IsNaN(v) : hn::Eq(v, wanted);
    const intptr_t lane = hn::FindFirstTrue(d, hit);
    if (lane >= 0) return i + static_cast<size_t>(lane) < n ? i + static_cast<size_t>(lane) : n;
  }
  return n;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void reduce_rows(ReductionTerm term, ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, float epsilon,
                 float* y) noexcept {
  BNNS_DISPATCH(ReduceRows)(term, x, w, rows, n, epsilon, y);
}
void exp_rows(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, const float* shift, float* y) noexcept {
  BNNS_DISPATCH(ExpRows)(x, w, rows, n, shift, y);
}
void product_rows(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, double* y) noexcept {
  BNNS_DISPATCH(ProductRows)(x, w, rows, n, y);
}
size_t find_first(const float* x, const float* w, size_t n, float value) noexcept {
  return BNNS_DISPATCH(FindFirst)(x, w, n, value);
}

}  // namespace bnns
#endif
