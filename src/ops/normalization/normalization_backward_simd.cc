// Backward: dx = scale g + slope x^ + offset.
//
// Three kernels share the loop, as in normalization_simd.cc: one set for the block, gamma along the row, everything per
// column.

#include "src/ops/normalization/normalization_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/normalization/normalization_backward_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/normalization/normalization_gradient-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// What multiplies g, multiplies x^, and is added, for the vector at i.
template <class D>
struct OneSetGradient {
  D d;
  hn::Vec<D> scale, slope, offset;
  HWY_ATTR HWY_INLINE hn::Vec<D> operator()(hn::Vec<D> g, hn::Vec<D> x, size_t) const {
    return hn::MulAdd(scale, g, hn::MulAdd(slope, x, offset));
  }
  HWY_ATTR HWY_INLINE hn::Vec<D> operator()(hn::Vec<D> g, hn::Vec<D> x, size_t, size_t) const {
    return hn::MulAdd(scale, g, hn::MulAdd(slope, x, offset));
  }
};

template <class D>
struct AlongRowGradient {
  D d;
  hn::Vec<D> scale, slope, offset;
  const float* gamma;
  HWY_ATTR HWY_INLINE hn::Vec<D> operator()(hn::Vec<D> g, hn::Vec<D> x, size_t i) const {
    return hn::MulAdd(scale, hn::Mul(hn::LoadU(d, gamma + i), g), hn::MulAdd(slope, x, offset));
  }
  HWY_ATTR HWY_INLINE hn::Vec<D> operator()(hn::Vec<D> g, hn::Vec<D> x, size_t i, size_t count) const {
    return hn::MulAdd(scale, hn::Mul(LoadPartial(d, gamma + i, count), g), hn::MulAdd(slope, x, offset));
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
HWY_INLINE void GradientPart(D d, const Row& row, float* dx, size_t i, size_t count, bool add, const F& f) {
  auto out = f(row.G(i, count), row.X(i, count), i, count);
  if (add) out = hn::Add(LoadPartial(d, dx + i, count), out);
  StorePartial(d, out, dx + i, count);
}

template <class D, class Row, class F>
HWY_INLINE void GradientOfRow(D d, const Row& row, float* dx, size_t n, bool add, bool stream, const F& f) {
  const size_t N = hn::Lanes(d);
  size_t i = 0;
  if (add) {
    for (; i + N <= n; i += N) hn::StoreU(hn::Add(hn::LoadU(d, dx + i), f(row.G(i), row.X(i), i)), d, dx + i);
  } else if (stream) {
    const size_t past = reinterpret_cast<uintptr_t>(dx) / sizeof(float) % N, head = past ? N - past : 0;
    if (n >= head + N) {
      if (head) GradientPart(d, row, dx, 0, head, false, f);
      for (i = head; i + N <= n; i += N) hn::Stream(f(row.G(i), row.X(i), i), d, dx + i);
    }
  }
  for (; i + N <= n; i += N) hn::StoreU(f(row.G(i), row.X(i), i), d, dx + i);
  if (i < n) GradientPart(d, row, dx, i, n - i, add, f);
}

template <class D, class F>
HWY_INLINE void GradientRows(D d, const GradientBlock& b, const GradientTarget& to, const F& f) {
  for (size_t r = 0; r < b.rows; ++r) {
    float* dx = to.dx + r * to.dx_stride;
    if (b.y) {
      GradientOfRow(d, RowAt<true>(d, b, r), dx, b.n, to.add, to.stream, f);
    } else {
      GradientOfRow(d, RowAt<false>(d, b, r), dx, b.n, to.add, to.stream, f);
    }
  }
}

void GradientOneSet(const GradientBlock& b, const GradientCoefficients& s, const GradientTarget& to) {
  const hn::ScalableTag<float> d;
  GradientRows(d, b, to,
               OneSetGradient<decltype(d)>{d, hn::Set(d, s.scale), hn::Set(d, s.slope), hn::Set(d, s.offset)});
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

void gradient_block(const GradientBlock& block, const GradientCoefficients& set, const GradientTarget& to) noexcept {
  BNNS_DISPATCH(GradientOneSet)(block, set, to);
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
