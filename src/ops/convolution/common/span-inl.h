// Vectors at the borders of a row: lanes outside it are zero and are not read.

#if defined(BNNS_CONVOLUTION_SPAN_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_CONVOLUTION_SPAN_INL_H_
#undef BNNS_CONVOLUTION_SPAN_INL_H_
#else
#define BNNS_CONVOLUTION_SPAN_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstring>

#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class Tag>
HWY_INLINE ptrdiff_t SignedLanes(Tag d) {
  return static_cast<ptrdiff_t>(hn::Lanes(d));
}

// Loads the lanes whose coordinates first, first + 1, ... lie in [0, end); zeros in the others.
template <class Tag>
class Span {
 public:
  Span() = default;
  HWY_INLINE Span(Tag d, ptrdiff_t first, ptrdiff_t end) {
    const ptrdiff_t lanes = SignedLanes(d), high = HWY_MIN(HWY_MAX(end - first, 0), lanes);
    const ptrdiff_t low = HWY_MIN(HWY_MAX(-first, 0), high);
    if constexpr (MaskedAccessIsExact<float>()) {
      mask_ = hn::FirstN(d, static_cast<size_t>(high));
      if (low > 0) mask_ = hn::AndNot(hn::FirstN(d, static_cast<size_t>(low)), mask_);
    } else {
      low_ = static_cast<size_t>(low), size_ = static_cast<size_t>(high - low);
    }
  }
  HWY_INLINE hn::Vec<Tag> Load(Tag d, const float* at) const {
    if constexpr (MaskedAccessIsExact<float>()) {
      return hn::MaskedLoad(mask_, d, at);
    } else {
      HWY_ALIGN float buffer[hn::MaxLanes(Tag())] = {};
      if (size_) std::memcpy(buffer + low_, at + low_, size_ * sizeof(float));
      return hn::Load(d, buffer);
    }
  }

 private:
  hn::Mask<Tag> mask_;  // one of the two is used
  size_t low_ = 0, size_ = 0;
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_CONVOLUTION_SPAN_INL_H_
