// x^ = ((x - mean_high) - mean_low) rstd, y = max(floor, gamma x^ + beta), in one pass.
//
// Three kernels share the loop; they differ in where the numbers of a column come from: one set and channel for the
// block, one set with gamma and beta along the row, everything per column. Body and tail run the same vector code.

#include "src/ops/normalization/normalization_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/normalization/normalization_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct Normalized {
  V values, y;
};

// In hn::Max the second argument is the one whose NaN survives, as in the activation's ReLU.
template <class V>
HWY_INLINE Normalized<V> Normalize(V x, V high, V low, V rstd, V gamma, V beta, V floor) {
  const V values = hn::Mul(hn::Sub(hn::Sub(x, high), low), rstd);
  return {values, hn::Max(floor, hn::MulAdd(gamma, values, beta))};
}

// Same numbers for every value.
template <class D>
struct OneSet {
  D d;
  hn::Vec<D> high, low, rstd, gamma, beta, floor;
  HWY_ATTR HWY_INLINE Normalized<hn::Vec<D>> operator()(hn::Vec<D> x, size_t) const {
    return Normalize(x, high, low, rstd, gamma, beta, floor);
  }
  HWY_ATTR HWY_INLINE Normalized<hn::Vec<D>> operator()(hn::Vec<D> x, size_t, size_t) const {
    return Normalize(x, high, low, rstd, gamma, beta, floor);
  }
};

// gamma and beta along the row.
template <class D>
struct AlongRow {
  D d;
  hn::Vec<D> high, low, rstd, floor;
  const float* gamma;
  const float* beta;
  HWY_ATTR HWY_INLINE Normalized<hn::Vec<D>> operator()(hn::Vec<D> x, size_t i) const {
    return Normalize(x, high, low, rstd, hn::LoadU(d, gamma + i), hn::LoadU(d, beta + i), floor);
  }
  HWY_ATTR HWY_INLINE Normalized<hn::Vec<D>> operator()(hn::Vec<D> x, size_t i, size_t count) const {
    return Normalize(x, high, low, rstd, LoadPartial(d, gamma + i, count), LoadPartial(d, beta + i, count), floor);
  }
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

template <bool kKeep, class D, class F>
HWY_INLINE void NormalizePart(D d, const float* x, float* values, float* y, size_t i, size_t count, const F& f) {
  const auto out = f(LoadPartial(d, x + i, count), i, count);
  if (kKeep) StorePartial(d, out.values, values + i, count);
  StorePartial(d, out.y, y + i, count);
}

template <bool kKeep, class D, class F>
HWY_INLINE void NormalizeRow(D d, const float* x, float* values, float* y, size_t n, bool stream, const F& f) {
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  if (stream) {
    // Streaming stores need whole vectors at their alignment: a partial one first takes x^ there. y follows if it can.
    const size_t past = reinterpret_cast<uintptr_t>(kKeep ? values : y) / sizeof(float) % N;
    const size_t head = past ? N - past : 0;
    if (n >= head + N) {
      if (head) NormalizePart<kKeep>(d, x, values, y, 0, head, f);
      i = head;
      if (reinterpret_cast<uintptr_t>(y + i) % (N * sizeof(float)) == 0) {
        for (; i + N <= n; i += N) {
          const auto out = f(hn::LoadU(d, x + i), i);
          if (kKeep) hn::Stream(out.values, d, values + i);
          hn::Stream(out.y, d, y + i);
        }
      } else {
        for (; i + N <= n; i += N) {
          const auto out = f(hn::LoadU(d, x + i), i);
          if (kKeep) hn::Stream(out.values, d, values + i);
          hn::StoreU(out.y, d, y + i);
        }
      }
    }
  }
  for (; i + N <= n; i += N) {
    const auto out = f(hn::LoadU(d, x + i), i);
    if (kKeep) hn::StoreU(out.values, d, values + i);
    hn::StoreU(out.y, d, y + i);
  }
  if (i < n) NormalizePart<kKeep>(d, x, values, y, i, n - i, f);
}

template <class D, class F>
HWY_INLINE void NormalizeRows(D d, const NormalizeBlock& b, const F& f) {
  for (size_t r = 0; r < b.rows; ++r) {
    const float* x = b.x + r * b.x_stride;
    float* y = b.y + r * b.y_stride;
    if (b.values) {
      NormalizeRow<true>(d, x, b.values + r * b.values_stride, y, b.n, b.stream, f);
    } else {
      NormalizeRow<false>(d, x, nullptr, y, b.n, b.stream, f);
    }
  }
}

void NormalizeOneSet(const NormalizeBlock& b, const SetCoefficients& s, float gamma, float beta) {
  const hn::ScalableTag<float> d;
  NormalizeRows(d, b,
                OneSet<decltype(d)>{d, hn::Set(d, s.mean_high), hn::Set(d, s.mean_low), hn::Set(d, s.rstd),
                                    hn::Set(d, gamma), hn::Set(d, beta), hn::Set(d, b.floor)});
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

void normalize_block(const NormalizeBlock& block, const SetCoefficients& set, float gamma, float beta) noexcept {
  BNNS_DISPATCH(NormalizeOneSet)(block, set, gamma, beta);
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
