// g and x^ of one row of a GradientBlock, for the kernels of backward.
//
// g is dy, or dy (y > 0) where ReLU is fused: the product is taken as IEEE has it and a NaN in y stays, as in the
// activation's own kernel.

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

// One row of a block; lanes beyond `count` are 0.
template <bool kRelu, class D>
struct RowOfGradients {
  D d;
  const float* dy;
  const float* y;
  const float* values;

  HWY_ATTR HWY_INLINE hn::Vec<D> Relu(hn::Vec<D> vy, hn::Vec<D> vdy) const {
    const auto slope = hn::IfThenElseZero(hn::Gt(vy, hn::Zero(d)), hn::Set(d, 1.0f));
    return hn::Mul(vdy, hn::IfThenElse(hn::IsNaN(vy), vy, slope));
  }
  HWY_ATTR HWY_INLINE hn::Vec<D> G(size_t i) const {
    const auto vdy = hn::LoadU(d, dy + i);
    if constexpr (kRelu) return Relu(hn::LoadU(d, y + i), vdy);
    return vdy;
  }
  HWY_ATTR HWY_INLINE hn::Vec<D> G(size_t i, size_t count) const {
    const auto vdy = LoadPartial(d, dy + i, count);
    if constexpr (kRelu) return Relu(LoadPartial(d, y + i, count), vdy);
    return vdy;
  }
  HWY_ATTR HWY_INLINE void Fetch(size_t i) const {  // to L2
    __builtin_prefetch(dy + i, 0, 2);
    __builtin_prefetch(values + i, 0, 2);
    if (kRelu) __builtin_prefetch(y + i, 0, 2);
  }
  HWY_ATTR HWY_INLINE void FetchRow(size_t i, size_t n) const {
    for (size_t k = 0; k < n; k += 64 / sizeof(float)) Fetch(i + k);
  }
  HWY_ATTR HWY_INLINE hn::Vec<D> X(size_t i) const { return hn::LoadU(d, values + i); }
  HWY_ATTR HWY_INLINE hn::Vec<D> X(size_t i, size_t count) const { return LoadPartial(d, values + i, count); }
};

template <bool kRelu, class D>
HWY_INLINE RowOfGradients<kRelu, D> RowAt(D d, const GradientBlock& b, size_t r) {
  return {d, b.dy + r * b.dy_stride, kRelu ? b.y + r * b.y_stride : nullptr, b.values + r * b.values_stride};
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_NORMALIZATION_GRADIENT_INL_H_
