// The parts of a strip of windows, one window per lane: loads, folds along x and y, and what a window makes of its sum.
//
//   column stride 1   the pixels of tap t are one load, shifted by t
//   column stride 2   two loads hold taps t and t + 1 of all lanes, in the even and the odd places
//
// Lanes whose tap lies in the padding read a neutral element (-inf, or 0 for sums), so the windows at the border go
// through the same additions and comparisons as the inner ones. Comparisons would drop a NaN: each strip also sums its
// pixels, which keeps it.

#if defined(BNNS_OPS_POOLING_STRIPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_POOLING_STRIPS_INL_H_
#undef BNNS_OPS_POOLING_STRIPS_INL_H_
#else
#define BNNS_OPS_POOLING_STRIPS_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <limits>

#include "src/ops/pooling/common/kernels.h"
#include "src/ops/pooling/common/lanes-inl.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;
using M = hn::Mask<D>;

constexpr int64_t kStripRows = 32;      // window rows that a strip goes down
constexpr int64_t kStripPixels = 4096;  // or as many as keep their pixels in half of L1

constexpr bool IsMax(PoolingFold fold) {
  return fold == PoolingFold::max || fold == PoolingFold::arg_max;
}
template <PoolingFold kFold>
HWY_INLINE V Neutral() {
  const D d;
  return IsMax(kFold) ? hn::Set(d, -std::numeric_limits<float>::infinity()) : hn::Zero(d);
}

// The window rows of a block, looked up once for all strips.
struct StripRow {
  const float* pixels;  // column 0 of the source, row of the first real tap
  int64_t first, last;  // real taps along y
  float count;          // taps that an average counts along y
};

struct Strips {
  const WindowBlock* block;
  const PoolingGeometry* geometry;
  int64_t step;          // from the row of a tap to the row of the next, in floats
  int64_t width;         // columns of the source
  int64_t source_x;      // x of column 0
  const float* count_x;  // taps that an average counts; NULL where it counts every tap of every window
  int64_t first_row, rows;
  const float* ahead;  // the pixels after this block: fetched, in order, while its strips are done
  StripRow row[kStripRows];
};

// One load of a strip: the lanes that lie in [0, width) when lane 0 is at `first`, neutral elements elsewhere.
template <bool kInside>
struct Lanes {
  int64_t first, low, high;
  M inside;

  HWY_INLINE Lanes() {}
  HWY_INLINE Lanes(int64_t at, int64_t width) : first(at) {
    if constexpr (!kInside) {
      const D d;
      const int64_t n = static_cast<int64_t>(hn::Lanes(d));
      low = HWY_MIN(n, HWY_MAX(-at, 0));
      high = HWY_MAX(low, HWY_MIN(n, width - at));
      inside = hn::AndNot(hn::FirstN(d, static_cast<size_t>(low)), hn::FirstN(d, static_cast<size_t>(high)));
    }
  }
  HWY_INLINE V Load(const float* row, V neutral) const {
    const D d;
    if constexpr (kInside) {
      return hn::LoadU(d, row + first);
    } else if constexpr (MaskedAccessIsExact<float>()) {
      return hn::IfThenElse(inside, hn::MaskedLoad(inside, d, row + first), neutral);
    } else {
      HWY_ALIGN float lanes[hn::MaxLanes(D())];
      hn::Store(neutral, d, lanes);
      for (int64_t i = low; i < high; ++i) lanes[i] = row[first + i];
      return hn::Load(d, lanes);
    }
  }
};

// What a row of pixels, or all rows so far, give to the windows of a strip.
template <PoolingFold kFold>
struct Line {
  V value;  // maximum, sum or sum of squares
  VI at;    // arg_max: offset of the maximum
  V bits;   // norm: all bits that occur, so that 0 is told from an underflow

  HWY_INLINE void First(V v, int64_t offset) {
    value = kFold == PoolingFold::norm ? hn::Mul(v, v) : v;
    if constexpr (kFold == PoolingFold::arg_max) at = hn::Set(DI(), static_cast<int32_t>(offset));
    if constexpr (kFold == PoolingFold::norm) bits = v;
  }
  HWY_INLINE void Next(V v, int64_t offset) {
    if constexpr (kFold == PoolingFold::max) {
      value = Larger(v, value);
    } else if constexpr (kFold == PoolingFold::arg_max) {
      const M larger = hn::Gt(v, value);
      value = hn::IfThenElse(larger, v, value);
      at = hn::IfThenElse(hn::RebindMask(DI(), larger), hn::Set(DI(), static_cast<int32_t>(offset)), at);
    } else if constexpr (kFold == PoolingFold::average) {
      value = hn::Add(value, v);
    } else {
      value = hn::Add(value, hn::Mul(v, v));
      bits = hn::Or(bits, v);
    }
  }
  // The line of a row further down; `below` is its distance in offsets.
  HWY_INLINE void Under(const Line& line, VI below) {
    if constexpr (kFold == PoolingFold::arg_max) {
      const M larger = hn::Gt(line.value, value);
      value = hn::IfThenElse(larger, line.value, value);
      at = hn::IfThenElse(hn::RebindMask(DI(), larger), hn::Add(line.at, below), at);
    } else if constexpr (kFold == PoolingFold::max) {
      value = Larger(line.value, value);
    } else {
      value = hn::Add(value, line.value);
      if constexpr (kFold == PoolingFold::norm) bits = hn::Or(bits, line.bits);
    }
  }
};

// The loads of a strip, made once and used in every row.
template <PoolingFold kFold, int kStride, int kKernel, bool kInside>
struct Taps {
  static constexpr int kLoads = kKernel == 0 ? 1 : kStride == 1 ? kKernel : (kKernel + 1) / 2 * 2;
  Lanes<kInside> loads[kLoads];
  int64_t first, width, kernel, dilation;

  HWY_INLINE Taps(const Strips& s, int64_t wx) : first(s.geometry->x.start(wx) - s.source_x), width(s.width) {
    const int64_t N = static_cast<int64_t>(hn::Lanes(D()));
    kernel = kKernel ? kKernel : s.geometry->x.kernel;
    dilation = kKernel || kStride == 2 ? 1 : s.geometry->x.dilation;
    for (int k = 0; k < kLoads && kKernel != 0; ++k) {
      loads[k] = Lanes<kInside>(first + (kStride == 1 ? k : k / 2 * 2 + k % 2 * N), width);
    }
  }
  // Folds a row of pixels. check gets the sum of the pixels, for Max.
  HWY_INLINE Line<kFold> Fold(const float* row, V* check, const float** ahead) const {
    const D d;
    const int64_t N = static_cast<int64_t>(hn::Lanes(d));
    for (int64_t i = 0; i < kStride * N; i += 16) hwy::Prefetch(*ahead + i);
    *ahead += kStride * N;
    const V neutral = Neutral<kFold>();
    Line<kFold> line;
    const auto tap = [&](int64_t t, V v) HWY_ATTR { t == 0 ? line.First(v, 0) : line.Next(v, t * dilation); };
    if constexpr (kStride == 1) {
      for (int64_t t = 0; t < kernel; ++t) {
        const V v = kKernel ? loads[kKernel ? t : 0].Load(row, neutral)
                            : Lanes<kInside>(first + t * dilation, width).Load(row, neutral);
        tap(t, v);
        if constexpr (IsMax(kFold)) *check = hn::Add(*check, v);
      }
    } else {
      for (int64_t t = 0; t < kernel; t += 2) {
        V low, high;
        if constexpr (kKernel != 0) {
          low = loads[t].Load(row, neutral);
          high = loads[t + 1].Load(row, neutral);
        } else {
          low = Lanes<kInside>(first + t, width).Load(row, neutral);
          high = Lanes<kInside>(first + t + N, width).Load(row, neutral);
        }
        tap(t, hn::ConcatEven(d, high, low));
        if (t + 1 < kernel) tap(t + 1, hn::ConcatOdd(d, high, low));
        if constexpr (IsMax(kFold)) *check = hn::Add(*check, hn::Add(low, high));
      }
    }
    return line;
  }
};

// Turns what was folded into the value of the windows; collects the lanes that need another look.
template <PoolingFold kFold, bool kInside>
HWY_INLINE void Finish(const Strips& s, const StripRow& row, const Line<kFold>& window, int64_t column, M needed,
                       float* values, int32_t* offsets, M* again) {
  const D d;
  V value = window.value;
  if constexpr (IsMax(kFold)) {
    if constexpr (!kInside) *again = hn::Or(*again, hn::And(needed, hn::Eq(value, Neutral<kFold>())));
  } else if constexpr (kFold == PoolingFold::average) {
    const float kernel = static_cast<float>(s.geometry->x.kernel);
    const V count_x = kInside || !s.count_x ? hn::Set(d, kernel) : hn::LoadU(d, s.count_x + column);
    const V count = hn::Mul(count_x, hn::Set(d, row.count));
    value = hn::Div(hn::Add(value, hn::Zero(d)), count);  // + 0: never -0
    // Dilation may leave a window of the border without a pixel.
    if constexpr (!kInside) value = hn::IfThenZeroElse(hn::Eq(count, hn::Zero(d)), value);
  } else {
    const M safe = hn::And(hn::Ge(value, hn::Set(d, kNormLow)), hn::Le(value, hn::Set(d, kNormHigh)));
    const M good = hn::Or(safe, hn::Eq(hn::Abs(window.bits), hn::Zero(d)));  // every pixel 0: the norm is 0
    *again = hn::Or(*again, hn::AndNot(good, needed));
    value = hn::Sqrt(value);
  }
  hn::StoreU(value, d, values + column);
  if constexpr (kFold == PoolingFold::arg_max) hn::StoreU(window.at, DI(), offsets + column);
}

}  // namespace
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_OPS_POOLING_STRIPS_INL_H_
