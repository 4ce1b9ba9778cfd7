// Indices of either width as vectors of 32-bit words.

#if defined(BNNS_OPS_POOLING_INDEX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_POOLING_INDEX_INL_H_
#undef BNNS_OPS_POOLING_INDEX_INL_H_
#else
#define BNNS_OPS_POOLING_INDEX_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>

#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class V>
struct IndexWords {
  V low, high;
};

// The low and high words of `count` >= 1 indices (at most one per lane); zeros in the other lanes.
template <class D, typename T>
HWY_INLINE IndexWords<hn::Vec<D>> LoadIndices(D d, const T* indices, size_t count) {
  const size_t N = hn::Lanes(d);
  const int32_t* words = reinterpret_cast<const int32_t*>(indices);
  const auto load = [&](size_t first, size_t end) HWY_ATTR {
    if (end >= first + N) return hn::LoadU(d, words + first);
    return end > first ? LoadPartial(d, words + first, end - first) : hn::Zero(d);
  };
  if constexpr (sizeof(T) == 4) {
    return {load(0, count), hn::Zero(d)};
  } else {   // little-endian: the even words are the low ones
    const auto first = load(0, 2 * count), second = load(N, 2 * count);
    return {hn::ConcatEven(d, second, first), hn::ConcatOdd(d, second, first)};
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_INDEX_INL_H_
