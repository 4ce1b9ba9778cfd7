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

#include "src/ops/normalization/normalization_kernels.h"
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
    if constexpr (kRelu == Relu::from_values) return ReluGradient(d, hn::MulAdd(gamma, X(i, count), beta), vdy);
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

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_NORMALIZATION_GRADIENT_INL_H_
