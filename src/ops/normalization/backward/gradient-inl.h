// g and x^ of one row of a GradientBlock, for the kernels of backward.
//
// g is dy, or dy (y > 0) where ReLU is fused: the product is taken as IEEE has it and a NaN in y stays, as in the
// activation's own kernel. y is read, or taken for gamma x^ + beta, which has its sign and its NaN.

#if defined(BNNS_NORMALIZATION_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_NORMALIZATION_GRADIENT_INL_H_
#undef BNNS_NORMALIZATION_GRADIENT_INL_H_
#else
#define BNNS_NORMALIZATION_GRADIENT_INL_H_
#endif

#include <hwy/highway.h>

#include "src/ops/normalization/common/kernels.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

enum class Relu { none, from_y, from_values };

template <class D>
HWY_INLINE hn::Vec<D> ReluGradient(D d, hn::Vec<D> y, hn::Vec<D> dy) {
  const auto slope = hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), hn::Set(d, 1.0f));
  return hn::Mul(dy, hn::IfThenElse(hn::IsNaN(y), y, slope));
}

// One row of a block; lanes beyond `count` are 0. Relu::from_values: a block of one channel.
template <Relu kRelu, class D>
struct RowOfGradients {
  D d;
  const float* dy;
  const float* y;
  const float* values;
  hn::Vec<D> gamma, beta;

  HWY_ATTR HWY_INLINE hn::Vec<D> G(size_t i) const {
    const auto vdy = hn::LoadU(d, dy + i);
    if constexpr (kRelu == Relu::from_y) return ReluGradient(d, hn::LoadU(d, y + i), vdy);
    if constexpr (kRelu == Relu::from_values) return ReluGradient(d, hn::MulAdd(gamma, X(i), beta), vdy);
    return vdy;
  }
  HWY_ATTR HWY_INLINE hn::Vec<D> G(size_t i, size_t count) const {
    const auto vdy = LoadPartial(d, dy + i, count);
    if constexpr (kRelu == Relu::from_y) return ReluGradient(d, LoadPartial(d, y + i, count), vdy);
    if constexpr (kRelu == Relu::from_values) {
      const auto g = ReluGradient(d, hn::MulAdd(gamma, X(i, count), beta), vdy);
      return hn::IfThenElseZero(hn::FirstN(d, count), g);  // an infinite gamma makes NaN of the 0 beyond
    }
    return vdy;
  }
  HWY_ATTR HWY_INLINE void Fetch(size_t i) const {  // to L2
    __builtin_prefetch(dy + i, 0, 2);
    __builtin_prefetch(values + i, 0, 2);
    if (kRelu == Relu::from_y) __builtin_prefetch(y + i, 0, 2);
  }
  // What the caller of b reads next.
  HWY_ATTR HWY_INLINE RowOfGradients Behind(const GradientBlock& b) const {
    RowOfGradients next = *this;
    const auto by = [&b](size_t stride) {
      return static_cast<ptrdiff_t>(b.ahead) + b.ahead_rows * static_cast<ptrdiff_t>(stride);
    };
    next.dy += by(b.dy_stride), next.values += by(b.values_stride);
    if (kRelu == Relu::from_y) next.y += by(b.y_stride);
    return next;
  }
  HWY_ATTR HWY_INLINE void FetchRow(size_t i, size_t n) const {
    for (size_t k = 0; k < n; k += 64 / sizeof(float)) Fetch(i + k);
  }
  HWY_ATTR HWY_INLINE hn::Vec<D> X(size_t i) const { return hn::LoadU(d, values + i); }
  HWY_ATTR HWY_INLINE hn::Vec<D> X(size_t i, size_t count) const { return LoadPartial(d, values + i, count); }
};

template <Relu kRelu, class D>
HWY_INLINE RowOfGradients<kRelu, D> RowAt(D d, const GradientBlock& b, size_t r) {
  constexpr bool kAffine = kRelu == Relu::from_values;
  return {d,
          b.dy + r * b.dy_stride,
          kRelu == Relu::from_y ? b.y + r * b.y_stride : nullptr,
          b.values + r * b.values_stride,
          hn::Set(d, kAffine ? *b.gamma : 0.0f),
          hn::Set(d, kAffine ? *b.beta : 0.0f)};
}

// One row: the sums of gamma[i] g and gamma[i] g x^ (gamma may be NULL: 1), bit-identical to BlockGradientSums, and g
// and g x^ added to sums over rows.
template <Relu kRelu, class D>
struct RowSums {
  using V = hn::Vec<D>;
  D d;
  RowOfGradients<kRelu, D> row;
  const float* gamma;
  float* sum_g;
  float* sum_gx;
  V a0, a1, a2, a3, b0, b1, b2, b3;

  HWY_ATTR HWY_INLINE RowSums(D tag, const RowOfGradients<kRelu, D>& of, const float* gammas, float* g, float* gx)
      : d(tag), row(of), gamma(gammas), sum_g(g), sum_gx(gx) {
    a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = hn::Zero(d);
  }
  HWY_ATTR HWY_INLINE void Add(size_t i, V& a, V& ax) const {
    const V g = row.G(i), x = row.X(i);
    hn::StoreU(hn::Add(hn::LoadU(d, sum_g + i), g), d, sum_g + i);
    hn::StoreU(hn::MulAdd(g, x, hn::LoadU(d, sum_gx + i)), d, sum_gx + i);
    const V h = gamma ? hn::Mul(hn::LoadU(d, gamma + i), g) : g;
    a = hn::Add(a, h);
    ax = hn::MulAdd(h, x, ax);
  }
  HWY_ATTR HWY_INLINE void AddFour(size_t i) {
    const size_t N = hn::Lanes(d);
    Add(i, a0, b0), Add(i + N, a1, b1), Add(i + 2 * N, a2, b2), Add(i + 3 * N, a3, b3);
  }
  // The last n values: less than four vectors.
  HWY_ATTR HWY_INLINE void AddRest(size_t i, size_t n) {
    const size_t N = hn::Lanes(d);
    if (n >= N) Add(i, a0, b0), i += N, n -= N;
    if (n >= N) Add(i, a1, b1), i += N, n -= N;
    if (n >= N) Add(i, a2, b2), i += N, n -= N;
    if (n == 0) return;
    const V g = row.G(i, n), x = row.X(i, n);
    StorePartial(d, hn::Add(LoadPartial(d, sum_g + i, n), g), sum_g + i, n);
    StorePartial(d, hn::MulAdd(g, x, LoadPartial(d, sum_gx + i, n)), sum_gx + i, n);
    const V h = gamma ? hn::Mul(LoadPartial(d, gamma + i, n), g) : g;
    a3 = hn::Add(a3, h);
    b3 = hn::MulAdd(h, x, b3);
  }
  HWY_ATTR HWY_INLINE void Finish(float out[2]) const {
    out[0] = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a0, a1), hn::Add(a2, a3))));
    out[1] = hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(b0, b1), hn::Add(b2, b3))));
  }
};

// dx = scale gamma[i] g + slope x^ + offset.
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

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_NORMALIZATION_GRADIENT_INL_H_
