// x^ and y of one row, shared by the kernels of forward: what a kernel brings along is a body f that has the numbers of
// the vector at i.

#if defined(BNNS_NORMALIZATION_VALUES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_NORMALIZATION_VALUES_INL_H_
#undef BNNS_NORMALIZATION_VALUES_INL_H_
#else
#define BNNS_NORMALIZATION_VALUES_INL_H_
#endif

#include <hwy/highway.h>

#include "src/ops/normalization/common/kernels.h"
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

template <bool kKeep, class D, class F>
HWY_INLINE void NormalizePart(D d, const float* x, float* values, float* y, size_t i, size_t count, F& f) {
  const auto out = f(LoadPartial(d, x + i, count), i, count);
  if (kKeep) StorePartial(d, out.values, values + i, count);
  StorePartial(d, out.y, y + i, count);
}

template <bool kStream, class D>
HWY_INLINE void Put(D d, hn::Vec<D> v, float* to) {
  kStream ? hn::Stream(v, d, to) : hn::StoreU(v, d, to);
}

// The whole vectors from i on; returns where they end.
template <bool kKeep, bool kStreamValues, bool kStreamY, class D, class F>
HWY_INLINE size_t NormalizeVectors(D d, const float* x, float* values, float* y, size_t i, size_t n, const float* ahead,
                                   F& f) {
  const size_t N = hn::Lanes(d);
  for (; i + N <= n; i += N) {
    if (ahead) __builtin_prefetch(ahead + i, 0, 2);  // to L2, whose next reader sums it up
    const auto out = f(hn::LoadU(d, x + i), i);
    if (kKeep) Put<kStreamValues>(d, out.values, values + i);
    Put<kStreamY>(d, out.y, y + i);
  }
  return i;
}

template <bool kKeep, class D, class F>
HWY_INLINE void NormalizeRow(D d, const NormalizeBlock& b, size_t row, F f) {
  const float* x = b.x + row * b.x_stride;
  float* values = kKeep ? b.values + row * b.values_stride : nullptr;
  float* y = b.y + row * b.y_stride;
  const float* ahead = b.ahead ? x + b.ahead + b.ahead_rows * static_cast<ptrdiff_t>(b.x_stride) : nullptr;
  const size_t n = b.n;
  const bool stream_values = kKeep && b.stream_values;
  const size_t N = hn::Lanes(d);
  const auto past = [N](const float* p) { return reinterpret_cast<uintptr_t>(p) / sizeof(float) % N; };
  size_t i = 0;
  if (stream_values || b.stream_y || n >= 4 * N) {
    // Streaming stores need whole vectors at their alignment, and others are faster there: a partial one first takes x^
    // there, or y. The state keeps x^ at the alignment of y, so that both arrive.
    const float* lead = stream_values ? values : y;
    const size_t head = past(lead) ? N - past(lead) : 0;
    if (n >= head + N) {
      if (head) NormalizePart<kKeep>(d, x, values, y, 0, head, f);
      const bool stream_y = b.stream_y && past(y + head) == 0;
      i = !stream_values ? stream_y ? NormalizeVectors<kKeep, false, true>(d, x, values, y, head, n, ahead, f) : head
          : stream_y     ? NormalizeVectors<kKeep, true, true>(d, x, values, y, head, n, ahead, f)
                         : NormalizeVectors<kKeep, true, false>(d, x, values, y, head, n, ahead, f);
    }
  }
  i = NormalizeVectors<kKeep, false, false>(d, x, values, y, i, n, ahead, f);
  if (i < n) NormalizePart<kKeep>(d, x, values, y, i, n - i, f);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_NORMALIZATION_VALUES_INL_H_
