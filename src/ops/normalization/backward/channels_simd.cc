// Backward: dx = scale g + slope x^ + offset.
//
// Three kernels share the loop, as in forward/channels_simd.cc: numbers per channel, gamma along the row, everything
// per column.

#include "src/ops/normalization/common/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/normalization/backward/channels_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/normalization/backward/gradient-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What multiplies g, multiplies x^, and is added, for the vector at i. As PerChannel of forward/channels_simd.cc;
// kMask: g is dy until gamma x^ + beta has told where ReLU was 0.
template <bool kMask, class D>
struct PerChannelGradient {
  D d;
  const GradientCoefficients* channel;
  const float* next_gamma;
  const float* next_beta;
  size_t plane, end;
  hn::Vec<D> scale, slope, offset, gamma, beta;

  HWY_ATTR HWY_INLINE PerChannelGradient(D tag, const GradientCoefficients* first, const GradientBlock& b,
                                         size_t columns)
      : d(tag), channel(first), next_gamma(b.gamma), next_beta(b.beta), plane(columns), end(columns) {
    SetNumbers();
  }
  HWY_ATTR HWY_INLINE void SetNumbers() {
    scale = hn::Set(d, channel->scale), slope = hn::Set(d, channel->slope), offset = hn::Set(d, channel->offset);
    if (kMask) gamma = hn::Set(d, *next_gamma++), beta = hn::Set(d, *next_beta++);
  }
  HWY_ATTR HWY_INLINE hn::Vec<D> operator()(hn::Vec<D> g, hn::Vec<D> x, size_t i, size_t count) {
    auto a = scale, b = slope, c = offset, m = gamma, s = beta;
    if (HWY_UNLIKELY(i + count > end)) {
      const auto last = hn::FirstN(d, end - i);
      ++channel, end += plane;
      SetNumbers();
      a = hn::IfThenElse(last, a, scale), b = hn::IfThenElse(last, b, slope), c = hn::IfThenElse(last, c, offset);
      if (kMask) m = hn::IfThenElse(last, m, gamma), s = hn::IfThenElse(last, s, beta);
    }
    if (kMask) g = ReluGradient(d, hn::MulAdd(m, x, s), g);
    return hn::MulAdd(a, g, hn::MulAdd(b, x, c));
  }
  HWY_ATTR HWY_INLINE hn::Vec<D> operator()(hn::Vec<D> g, hn::Vec<D> x, size_t i) {
    return (*this)(g, x, i, hn::Lanes(d));
  }
};

template <class D>
struct PerColumnGradient {
  D d;
  const ColumnGradientCoefficients* c;
  HWY_ATTR HWY_INLINE hn::Vec<D> operator()(hn::Vec<D> g, hn::Vec<D> x, size_t i) const {
    return hn::MulAdd(hn::LoadU(d, c->scale + i), g,
                      hn::MulAdd(hn::LoadU(d, c->slope + i), x, hn::LoadU(d, c->offset + i)));
  }
  HWY_ATTR HWY_INLINE hn::Vec<D> operator()(hn::Vec<D> g, hn::Vec<D> x, size_t i, size_t count) const {
    return hn::MulAdd(LoadPartial(d, c->scale + i, count), g,
                      hn::MulAdd(LoadPartial(d, c->slope + i, count), x, LoadPartial(d, c->offset + i, count)));
  }
};

template <class D, class Row, class F>
HWY_INLINE void GradientPart(D d, const Row& row, float* dx, size_t i, size_t count, bool add, F& f) {
  auto out = f(row.G(i, count), row.X(i, count), i, count);
  if (add) out = hn::Add(LoadPartial(d, dx + i, count), out);
  StorePartial(d, out, dx + i, count);
}

// The whole vectors from i on; returns where they end.
template <bool kStream, class D, class Row, class F>
HWY_INLINE size_t GradientVectors(D d, const Row& row, float* dx, size_t i, size_t n, const Row* ahead, F& f) {
  const size_t N = hn::Lanes(d);
  for (; i + N <= n; i += N) {
    if (ahead) ahead->Fetch(i);
    const auto out = f(row.G(i), row.X(i), i);
    kStream ? hn::Stream(out, d, dx + i) : hn::StoreU(out, d, dx + i);
  }
  return i;
}

template <class D, class Row, class F>
HWY_INLINE void GradientOfRow(D d, const Row& row, float* dx, size_t n, const GradientTarget& to, const Row* ahead,
                              F f) {
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  if (to.add) {
    for (; i + N <= n; i += N) hn::StoreU(hn::Add(hn::LoadU(d, dx + i), f(row.G(i), row.X(i), i)), d, dx + i);
  } else if (n >= 4 * N) {  // streaming stores need their alignment, others are faster there
    const size_t past = reinterpret_cast<uintptr_t>(dx) / sizeof(float) % N;
    if (past) GradientPart(d, row, dx, 0, i = N - past, false, f);
    i = to.stream ? GradientVectors<true>(d, row, dx, i, n, ahead, f)
                  : GradientVectors<false>(d, row, dx, i, n, ahead, f);
  }
  if (!to.add) i = GradientVectors<false>(d, row, dx, i, n, ahead, f);
  if (i < n) GradientPart(d, row, dx, i, n - i, to.add, f);
}

template <class D, class F>
HWY_INLINE void GradientRows(D d, const GradientBlock& b, const GradientTarget& to, const F& f) {
  for (size_t r = 0; r < b.rows; ++r) {
    float* dx = to.dx + r * to.dx_stride;
    if (b.y) {
      const auto row = RowAt<Relu::from_y>(d, b, r), ahead = row.Behind(b);
      GradientOfRow(d, row, dx, b.n, to, b.ahead ? &ahead : nullptr, f);
    } else {
      const auto row = RowAt<Relu::none>(d, b, r), ahead = row.Behind(b);
      GradientOfRow(d, row, dx, b.n, to, b.ahead ? &ahead : nullptr, f);
    }
  }
}

void GradientOfChannels(const GradientBlock& b, size_t plane, const GradientCoefficients* channels,
                        const GradientTarget& to) {
  const hn::ScalableTag<float> d;
  if (b.gamma) return GradientRows(d, b, to, PerChannelGradient<true, decltype(d)>(d, channels, b, plane));
  GradientRows(d, b, to, PerChannelGradient<false, decltype(d)>(d, channels, b, plane));
}

void GradientAlongRow(const GradientBlock& b, const GradientCoefficients& s, const float* gamma,
                      const GradientTarget& to) {
  const hn::ScalableTag<float> d;
  GradientRows(d, b, to,
               AlongRowGradient<decltype(d)>{d, hn::Set(d, s.scale), hn::Set(d, s.slope), hn::Set(d, s.offset), gamma});
}

void GradientPerColumn(const GradientBlock& b, const ColumnGradientCoefficients& columns, const GradientTarget& to) {
  const hn::ScalableTag<float> d;
  GradientRows(d, b, to, PerColumnGradient<decltype(d)>{d, &columns});
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void gradient_channel_block(const GradientBlock& block, size_t plane, const GradientCoefficients* channels,
                            const GradientTarget& to) noexcept {
  BNNS_DISPATCH(GradientOfChannels)(block, plane, channels, to);
}

void gradient_row_block(const GradientBlock& block, const GradientCoefficients& set, const float* gamma,
                        const GradientTarget& to) noexcept {
  BNNS_DISPATCH(GradientAlongRow)(block, set, gamma, to);
}

void gradient_column_block(const GradientBlock& block, const ColumnGradientCoefficients& columns,
                           const GradientTarget& to) noexcept {
  BNNS_DISPATCH(GradientPerColumn)(block, columns, to);
}

}  // namespace bnns
#endif
