// Folds across rows of f32: y holds the results, which stay in L1 while four rows at a time stream past.

#include "src/ops/reduction/reduction.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/reduction/reduction_columns_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/reduction/reduction_terms-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

// Calls body(load, store, c) for every vector of n columns; load and store leave out what is beyond the tail.
template <class Body>
HWY_INLINE void ForColumns(size_t n, Body body) {
  const hn::ScalableTag<float> d;
  const size_t N = hn::Lanes(d);
  size_t c = 0;
  for (; c + N <= n; c += N) {
    body([d](const float* p) HWY_ATTR { return hn::LoadU(d, p); },
         [d](auto v, float* p) HWY_ATTR { hn::StoreU(v, d, p); }, c);
  }
  if (c < n) {
    const size_t left = n - c;
    body([d, left](const float* p) HWY_ATTR { return LoadPartial(d, p, left); },
         [d, left](auto v, float* p) HWY_ATTR { StorePartial(d, v, p, left); }, c);
  }
}

template <bool kWeighted, class F>
HWY_INLINE void FoldColumns(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, F f, float* y) {
  using Op = typename F::Op;
  const hn::ScalableTag<float> d;
  const Op op;
  for (size_t c = 0; c < n; ++c) y[c] = Op::kIdentity;
  size_t r = 0;
  for (; r + 4 <= rows; r += 4) {
    const float* xs = x.data + r * x.step;
    const float* ws = kWeighted ? w.data + r * w.step : nullptr;
    ForColumns(n, [&](auto load, auto store, size_t c) HWY_ATTR {
      const auto term = [&](size_t k) HWY_ATTR {
        if constexpr (kWeighted) {
          return f(d, load(xs + k * x.step + c), load(ws + k * w.step + c));
        } else {
          return f(d, load(xs + k * x.step + c));
        }
      };
      store(op(d, load(y + c), op(d, op(d, term(0), term(1)), op(d, term(2), term(3)))), y + c);
    });
  }
  for (; r < rows; ++r) {
    const float* xs = x.data + r * x.step;
    const float* ws = kWeighted ? w.data + r * w.step : nullptr;
    ForColumns(n, [&](auto load, auto store, size_t c) HWY_ATTR {
      if constexpr (kWeighted) {
        store(op(d, load(y + c), f(d, load(xs + c), load(ws + c))), y + c);
      } else {
        store(op(d, load(y + c), f(d, load(xs + c))), y + c);
      }
    });
  }
}

void ReduceColumns(ReductionTerm term, ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, float epsilon,
                   float* y) {
  WithTerm(term, epsilon, [&](auto f) HWY_ATTR {
    w.data ? FoldColumns<true>(x, w, rows, n, f, y) : FoldColumns<false>(x, w, rows, n, f, y);
  });
}

void ExpColumns(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, const float* shift, float* y) {
  const hn::ScalableTag<float> d;
  for (size_t c = 0; c < n; ++c) y[c] = 0;
  for (size_t r = 0; r < rows; ++r) {
    const float* xs = x.data + r * x.step;
    const float* ws = w.data ? w.data + r * w.step : nullptr;
    ForColumns(n, [&](auto load, auto store, size_t c) HWY_ATTR {
      auto v = Exp(d, hn::Sub(load(xs + c), load(shift + c)));
      // An element without weight may be so large that its exp is infinite.
      if (ws) v = MaskedTerm()(d, v, load(ws + c));
      store(hn::Add(load(y + c), v), y + c);
    });
  }
}

void ProductColumns(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, double* y) {
  const hn::ScalableTag<double> dd;
  const hn::Rebind<float, decltype(dd)> df;
  const size_t N = hn::Lanes(dd);
  for (size_t c = 0; c < n; ++c) y[c] = 1;
  for (size_t r = 0; r < rows; r += 4) {
    const size_t m = rows - r < 4 ? rows - r : 4;
    size_t c = 0;
    for (; c + N <= n; c += N) {
      auto product = hn::LoadU(dd, y + c);
      for (size_t k = r; k < r + m; ++k) {
        auto v = hn::PromoteTo(dd, hn::LoadU(df, x.data + k * x.step + c));
        if (w.data) v = hn::Mul(v, hn::PromoteTo(dd, hn::LoadU(df, w.data + k * w.step + c)));
        product = hn::Mul(product, v);
      }
      hn::StoreU(product, dd, y + c);
    }
    for (; c < n; ++c) {
      for (size_t k = r; k < r + m; ++k) {
        const double v = static_cast<double>(x.data[k * x.step + c]);
        y[c] *= w.data ? v * static_cast<double>(w.data[k * w.step + c]) : v;
      }
    }
  }
}

// Four rows at a time, so that streams are few and the best ones are read and written once for four.
void ArgColumns(bool largest, ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, float* y, int32_t* row) {
  const hn::ScalableTag<float> d;
  const hn::ScalableTag<int32_t> di;
  const size_t N = hn::Lanes(d);
  for (size_t r = 0; r < rows; r += 4) {
    const size_t m = rows - r < 4 ? rows - r : 4;
    for (size_t c = 0; c < n; c += N) {
      const size_t left = n - c < N ? n - c : N;
      const auto load = [&](const float* p) HWY_ATTR { return left < N ? LoadPartial(d, p, left) : hn::LoadU(d, p); };
      const auto value = [&](size_t k) HWY_ATTR {
        const auto v = load(x.data + k * x.step + c);
        return w.data ? hn::Mul(load(w.data + k * w.step + c), v) : v;
      };
      auto best = r == 0 ? value(0) : load(y + c);
      auto at = hn::Zero(di);
      if (r != 0) at = left < N ? LoadPartial(di, row + c, left) : hn::LoadU(di, row + c);
      for (size_t k = r == 0 ? 1 : r; k < r + m; ++k) {
        const auto v = value(k);
        const auto first = hn::AndNot(hn::IsNaN(v), hn::IsNaN(best));  // the first number after NaN
        const auto wins = hn::Or(largest ? hn::Gt(v, best) : hn::Lt(v, best), first);
        best = hn::IfThenElse(wins, v, best);
        at = hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, static_cast<int32_t>(k)), at);
      }
      if (left < N) {
        StorePartial(d, best, y + c, left);
        StorePartial(di, at, row + c, left);
      } else {
        hn::StoreU(best, d, y + c);
        hn::StoreU(at, di, row + c);
      }
    }
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void reduce_columns(ReductionTerm term, ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, float epsilon,
                    float* y) noexcept {
  BNNS_DISPATCH(ReduceColumns)(term, x, w, rows, n, epsilon, y);
}
void exp_columns(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, const float* shift, float* y) noexcept {
  BNNS_DISPATCH(ExpColumns)(x, w, rows, n, shift, y);
}
void product_columns(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, double* y) noexcept {
  BNNS_DISPATCH(ProductColumns)(x, w, rows, n, y);
}
void arg_columns(bool largest, ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, float* y,
                 int32_t* row) noexcept {
  BNNS_DISPATCH(ArgColumns)(largest, x, w, rows, n, y, row);
}

}  // namespace bnns
#endif
