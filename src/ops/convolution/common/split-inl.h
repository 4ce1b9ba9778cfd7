// Rows of a source as rows of a slab: zeros around, and phases of a step side by side.

#if defined(BNNS_CONVOLUTION_SPLIT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_CONVOLUTION_SPLIT_INL_H_
#undef BNNS_CONVOLUTION_SPLIT_INL_H_
#else
#define BNNS_CONVOLUTION_SPLIT_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstring>

#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Phases of two: even and odd lanes of two vectors, partial ones at the end of the row.
HWY_INLINE void SplitEvenOdd(const float* HWY_RESTRICT from, size_t count, float* HWY_RESTRICT even,
                             float* HWY_RESTRICT odd) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto low = hn::LoadU(d, from + i), high = hn::LoadU(d, from + i + lanes);
    hn::StoreU(hn::ConcatEven(d, high, low), d, even + i / 2);
    if (odd) hn::StoreU(hn::ConcatOdd(d, high, low), d, odd + i / 2);
  }
  const size_t left = count - i;
  if (left == 0) return;
  const auto low = left >= lanes ? hn::LoadU(d, from + i) : LoadPartial(d, from + i, left);
  const auto high = left > lanes ? LoadPartial(d, from + i + lanes, left - lanes) : hn::Zero(d);
  const auto store = [&](auto v, float* to, size_t some) HWY_ATTR {
    if (some == lanes) {
      hn::StoreU(v, d, to);
    } else if (some != 0) {
      StorePartial(d, v, to, some);
    }
  };
  store(hn::ConcatEven(d, high, low), even + i / 2, (left + 1) / 2);
  if (odd) store(hn::ConcatOdd(d, high, low), odd + i / 2, left / 2);
}

// The values of split_row for a step of more than 1: the zeros around them are there.
HWY_INLINE void SplitValues(const float* HWY_RESTRICT from, size_t lead, size_t count, size_t step, size_t phases,
                            size_t length, float* HWY_RESTRICT row) {
  if (step == 2) {
    float* first = row + lead % 2 * length + lead / 2;  // where from[0] goes
    float* second = lead % 2 == 0 ? row + length + lead / 2 : row + (lead + 1) / 2;
    if (phases == 2) return SplitEvenOdd(from, count, first, second);
    if (lead % 2 == 0) return SplitEvenOdd(from, count, first, nullptr);
    if (count > 1) SplitEvenOdd(from + 1, count - 1, second, nullptr);
    return;
  }
  size_t phase = lead % step, at = lead / step;
  for (size_t i = 0; i < count; ++i) {
    if (phase < phases) row[phase * length + at] = from[i];
    if (++phase == step) phase = 0, ++at;
  }
}

// See split_row in convolution/common/kernels.h.
HWY_INLINE void SplitRow(const float* HWY_RESTRICT from, size_t lead, size_t count, size_t step, size_t phases,
                         size_t length, float* HWY_RESTRICT row) {
  if (step == 1) {
    // Rows are short: calls of memcpy and memset would cost more than the copy.
    const hn::ScalableTag<float> d;
    const size_t lanes = hn::Lanes(d);
    for (size_t i = 0; i < lead; ++i) row[i] = 0.0f;
    size_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, row + lead + i);
    if (i < count) StorePartial(d, LoadPartial(d, from + i, count - i), row + lead + i, count - i);
    for (i = lead + count; i < length; ++i) row[i] = 0.0f;
    return;
  }
  // Zeros on both sides of each phase: its values begin with the first coordinate from lead on.
  for (size_t phase = 0; phase < phases; ++phase) {
    const size_t first = phase >= lead ? 0 : (lead - phase + step - 1) / step;
    const size_t end = phase >= lead + count ? first : (lead + count - phase + step - 1) / step;
    float* to = row + phase * length;
    std::memset(to, 0, first * sizeof(float));
    if (end < length) std::memset(to + end, 0, (length - end) * sizeof(float));
  }
  SplitValues(from, lead, count, step, phases, length, row);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_CONVOLUTION_SPLIT_INL_H_
