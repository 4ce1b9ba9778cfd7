// What the kernels of depthwise convolution on slabs have in common: rows that share slab rows, and columns of taps.

#if defined(BNNS_CONVOLUTION_DEPTHWISE_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_CONVOLUTION_DEPTHWISE_ROWS_INL_H_
#undef BNNS_CONVOLUTION_DEPTHWISE_ROWS_INL_H_
#else
#define BNNS_CONVOLUTION_DEPTHWISE_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <utility>

#include "src/ops/convolution/depthwise/rows.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr size_t kTileTaps = 7;  // of a column, at a time

// Loops over register tiles are folds over these: g++ 12 unrolls a loop inside another one too late to keep its array
// in registers.
template <size_t kCount>
using Indices = std::make_index_sequence<kCount>;

// Whether slab row kRow of a tile is what tap kTap of some target row reads, and of which one.
template <size_t kRow, size_t kTap, size_t kStep, size_t kRows>
constexpr bool Meets() {
  return kRow >= kTap && (kRow - kTap) % kStep == 0 && (kRow - kTap) / kStep < kRows;
}

// Target rows in classes: those of a class, `rows` apart, share slab rows. Row q of a class and tap ky meet at slab
// row q * step + ky, in units of `unit` floats; step 0: rows share nothing, they are `apart` floats from each other.
struct RowClasses {
  size_t count, step, unit, apart;
  explicit RowClasses(const DepthwiseSlab& s) {
    size_t a = s.step, b = s.tap;
    while (b != 0) {
      const size_t c = a % b;
      a = b, b = c;
    }
    count = s.tap / a, step = s.step / a;
    if (step > 2) step = 0;
    unit = s.tap * s.row_stride, apart = count * s.step * s.row_stride;
  }
};

// Offsets of the columns of taps, one after the other: division by the number of phases would cost more than a tap.
class ColumnWalk {
 public:
  HWY_INLINE explicit ColumnWalk(const DepthwiseSlab& s)
      : phases_(s.phases),
        phase_step_(s.tap_x % s.phases),
        step_(static_cast<ptrdiff_t>(s.tap_x % s.phases * s.length + s.tap_x / s.phases)),
        wrap_(1 - static_cast<ptrdiff_t>(s.phases * s.length)) {}
  HWY_INLINE ptrdiff_t at() const { return at_; }
  HWY_INLINE void Next() {
    phase_ += phase_step_, at_ += step_;
    if (phase_ >= phases_) phase_ -= phases_, at_ += wrap_;
  }

 private:
  size_t phases_, phase_step_, phase_ = 0;
  ptrdiff_t step_, wrap_, at_ = 0;
};

// Calls f with the number of taps of each part of a column and its first.
template <class F>
HWY_INLINE void ForTapParts(size_t taps, size_t most, F&& f) {
  const size_t parts = (taps + most - 1) / most;
  for (size_t k = 0, first = 0; k < parts; ++k) {
    const size_t count = (taps - first + parts - k - 1) / (parts - k);
    f(first, count);
    first += count;
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_CONVOLUTION_DEPTHWISE_ROWS_INL_H_
