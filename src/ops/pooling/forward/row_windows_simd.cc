// Windows of 2 x 2 and 3 x 3 pixels with stride 2, of 3 x 3 with stride 1: row by row of windows, one per lane.
//
// The two or three rows of pixels are first folded downwards, as they lie in memory, then the columns are taken apart
// and folded along x: so that the costly moves of lanes are made once per row of windows and not once per row of
// pixels, and memory is read from front to back.
//   2 wide             fold(even columns, odd columns)
//   3 wide, pad 1      fold(odd columns moved up by one, even columns, odd columns), from left to right
//   3 wide, no pad     fold(even columns, odd columns, even columns moved down by one), from right to left
//   3 wide, stride 1   fold(columns moved up by one, columns, columns moved down by one)
// Sums are therefore over columns first, then over rows of three. Comparisons would drop a NaN: each block also sums
// its pixels, which keeps it; such a block, and norms out of the safe range, are done again by pooling_window.

#include <algorithm>
#include <limits>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/forward/row_windows_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/common/lanes-inl.h"
#include "src/ops/pooling/common/windows-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = DLane;
using V = VLane;
using M = MLane;

// Rows above and below the image, for sums.
alignas(64) constexpr float kZeroRow[2 * kChunk + 64] = {};

template <PoolingFold kFold, int kKernel>
struct Row {
  static constexpr bool kMax = kFold == PoolingFold::max;

  const float* pixels[kKernel];  // the first window's first tap; its second one where the padding is odd
  int64_t columns;               // that exist from there on
  int64_t windows;
  // What an average is divided by, or multiplied with where that is exact: counts of 2 x 2 taps are powers of 2.
  V count;
  const float* count_x;  // along x, where windows differ; else NULL
  float count_y;
  float* to;
  V check;
  M exist[2];  // columns of the last two vectors
  M needed;    // windows of the last vector
  M again;     // norms out of range

  static HWY_INLINE V Neutral() {
    const D d;
    return kMax ? hn::Set(d, -std::numeric_limits<float>::infinity()) : hn::Zero(d);
  }
  // Of sums that already went down the rows, or of pixels for Max.
  static HWY_INLINE V Join(V a, V b) { return kMax ? Larger(b, a) : hn::Add(a, b); }

  static HWY_INLINE V Down(V a, V b) {
    if constexpr (kFold == PoolingFold::norm) return hn::MulAdd(b, b, a);
    return Join(a, b);
  }
  // Vector kPart of the last ones of a row: the columns that exist.
  template <int kPart>
  HWY_INLINE V LoadLast(const float* row, int64_t c, V neutral) const {
    if constexpr (MaskedAccessIsExact<float>()) {
      return hn::IfThenElse(exist[kPart], hn::MaskedLoad(exist[kPart], D(), row + c), neutral);
    } else {
      return LoadLanes(row + c, columns - c, neutral);
    }
  }
  // N columns from c on, folded over the rows.
  template <bool kWhole, int kPart>
  HWY_INLINE V Columns(int64_t c) {
    const D d;
    const V neutral = Neutral();
    V v[kKernel];
    for (int t = 0; t < kKernel; ++t) {
      v[t] = kWhole ? hn::LoadU(d, pixels[t] + c) : LoadLast<kPart>(pixels[t], c, neutral);
    }
    V sum = kFold == PoolingFold::norm ? hn::Mul(v[0], v[0]) : v[0];
    for (int t = 1; t < kKernel; ++t) sum = Down(sum, v[t]);
    if constexpr (kMax && kKernel == 2) check = hn::Add(check, hn::Add(v[0], v[1]));
    if constexpr (kMax && kKernel == 3) check = hn::Add(check, hn::Add(hn::Add(v[0], v[1]), v[2]));
    return sum;
  }
  // The same of one column in all lanes.
  HWY_INLINE V Column(int64_t c) const {
    const D d;
    V sum = hn::Set(d, pixels[0][c]);
    if constexpr (kFold == PoolingFold::norm) sum = hn::Mul(sum, sum);
    for (int t = 1; t < kKernel; ++t) sum = Down(sum, hn::Set(d, pixels[t][c]));
    return sum;
  }
  template <bool kWhole>
  HWY_INLINE void Pair(int64_t i, V* even, V* odd) {
    for (int t = kKernel - 2; t < kKernel; ++t) FetchAhead(pixels[t] + 2 * i, 2 * kLanes);
    const V low = Columns<kWhole, 0>(2 * i), high = Columns<kWhole, 1>(2 * i + kLanes);
    *even = EvenLanes(low, high);
    *odd = OddLanes(low, high);
  }
  template <bool kLast>
  HWY_INLINE void Put(int64_t i, V value) {
    const D d;
    if constexpr (kFold == PoolingFold::average) {
      value = hn::Add(value, hn::Zero(d));  // never -0
      const V by = HWY_UNLIKELY(count_x) ? hn::Mul(hn::LoadU(d, count_x + i), hn::Set(d, count_y)) : count;
      value = kKernel == 2 ? hn::Mul(value, by) : hn::Div(value, by);
    } else if constexpr (kFold == PoolingFold::norm) {
      const M safe = hn::And(hn::Ge(value, hn::Set(d, kNormLow)), hn::Le(value, hn::Set(d, kNormHigh)));
      again = hn::Or(again, kLast ? hn::AndNot(safe, needed) : hn::Not(safe));
      value = hn::Sqrt(value);
    }
    hn::StoreU(value, d, to + i);
  }

  HWY_INLINE void Two() {
    const int64_t last = (windows - 1) / kLanes * kLanes;
    V even, odd;
    for (int64_t i = 0; i < last; i += kLanes) {
      Pair<true>(i, &even, &odd);
      Put<false>(i, Join(even, odd));
    }
    Pair<false>(last, &even, &odd);
    Put<true>(last, Join(even, odd));
  }
  // With the column before, if there is one.
  HWY_INLINE void ThreeAfter(bool before) {
    const int64_t last = (windows - 1) / kLanes * kLanes;
    V even, odd, previous = before ? Column(-1) : Neutral();
    for (int64_t i = 0; i < last; i += kLanes) {
      Pair<true>(i, &even, &odd);
      Put<false>(i, Join(Join(PreviousLanes(previous, odd), even), odd));
      previous = odd;
    }
    Pair<false>(last, &even, &odd);
    Put<true>(last, Join(Join(PreviousLanes(previous, odd), even), odd));
  }
  HWY_INLINE void ThreeFrom() {
    const int64_t last = (windows - 1) / kLanes * kLanes, after = 2 * (last + kLanes);
    V even, odd, next = after < columns ? Column(after) : Neutral();
    Pair<false>(last, &even, &odd);
    Put<true>(last, Join(Join(even, odd), NextLanes(even, next)));
    next = even;
    for (int64_t i = last - kLanes; i >= 0; i -= kLanes) {
      Pair<true>(i, &even, &odd);
      Put<false>(i, Join(Join(even, odd), NextLanes(even, next)));
      next = even;
    }
  }
  HWY_INLINE void Neighbours(bool before) {
    const int64_t last = (windows - 1) / kLanes * kLanes, after = last + kLanes;
    V previous = before ? Column(-1) : Neutral(), here = previous, next;
    const auto load = [&](int64_t i) HWY_ATTR {
      FetchAhead(pixels[kKernel - 1] + i, kLanes);
      return i == last ? Columns<false, 0>(i) : Columns<true, 0>(i);
    };
    here = load(0);
    for (int64_t i = 0; i < last; i += kLanes) {
      next = load(i + kLanes);
      Put<false>(i, Join(Join(PreviousLanes(previous, here), here), NextLanes(here, next)));
      previous = here;
      here = next;
    }
    next = after < columns ? Column(after) : Neutral();
    Put<true>(last, Join(Join(PreviousLanes(previous, here), here), NextLanes(here, next)));
  }
};

// Windows in which a NaN may be, or norms that f32 squares do not give.
template <PoolingFold kFold>
HWY_NOINLINE void DoAgain(const WindowBlock& block, Span rows) {
  const PoolingGeometry& g = *block.geometry;
  for (int64_t wy = rows.begin; wy < rows.end; ++wy) {
    float* values = block.values + (wy - block.rows.begin) * block.pitch;
    for (int64_t i = 0; i < block.columns.size(); ++i) {
      if (kFold == PoolingFold::norm && values[i] >= 0x1p-45f && values[i] <= 0x1p63f) continue;
      float value;
      pooling_window(kFold, g, block.source, block.columns.begin + i, wy, &value, nullptr);
      if (kFold == PoolingFold::norm || value != value) values[i] = value;  // others are right, to the sign of 0
    }
  }
}

// Norms of some rows of windows are not in the safe range. Where all pixels are 0, they are right.
HWY_NOINLINE void NormsAgain(const WindowBlock& block, Span rows) {
  const PoolingAxis& axis = block.geometry->y;
  const PixelSource& source = block.source;
  const int64_t y0 = std::max<int64_t>(axis.start(rows.begin), 0);
  const int64_t y1 = std::min(axis.start(rows.end - 1) + axis.kernel, axis.in);
  const float* from = static_cast<const float*>(source.data) + (y0 - source.y.begin) * source.row;
  if (!AllZero(from, source.row, y1 - y0, source.x.size())) DoAgain<PoolingFold::norm>(block, rows);
}

template <int kKernel>
float Factor(int64_t count) {
  return kKernel == 2 ? 1 / static_cast<float>(count) : static_cast<float>(count);
}

// Stride 1, rows of one vector: they stay in registers on their way through three rows of windows.
template <PoolingFold kFold>
HWY_INLINE void Narrow(const WindowBlock& block, Row<kFold, 3>& row, const float* data) {
  const D d;
  const PoolingAxis& axis = block.geometry->y;
  const int64_t pitch = block.source.row;
  const V neutral = row.Neutral();
  row.again = hn::FirstN(d, 0);
  const float count_x = static_cast<float>(block.geometry->x.kernel);
  const auto load = [&](int64_t y) HWY_ATTR {
    if (HWY_UNLIKELY(y < 0 || y >= axis.in)) return neutral;
    const float* from = data + y * pitch;
    FetchAhead(from);
    const V v = row.template LoadLast<0>(from, 0, neutral);
    if constexpr (kFold == PoolingFold::max) row.check = hn::Add(row.check, v);
    return v;
  };
  V above = load(block.rows.begin - 1), here = load(block.rows.begin);
  row.to = block.values;
  for (int64_t wy = block.rows.begin; wy < block.rows.end; ++wy, row.to += block.pitch) {
    const V below = load(wy + 1);
    if constexpr (kFold == PoolingFold::average) {
      row.count_y = wy > 0 && wy + 1 < axis.in ? 3 : static_cast<float>(axis.count(wy));
      row.count = hn::Set(d, count_x * row.count_y);
    }
    const V first = kFold == PoolingFold::norm ? hn::Mul(above, above) : above;
    const V sum = row.Down(row.Down(first, here), below);
    row.template Put<true>(0, row.Join(row.Join(PreviousLanes(neutral, sum), sum), NextLanes(sum, neutral)));
    above = here;
    here = below;
  }
  if (kFold == PoolingFold::norm && HWY_UNLIKELY(!hn::AllFalse(d, row.again))) NormsAgain(block, block.rows);
  if (kFold == PoolingFold::max && HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(row.check)))) {
    DoAgain<kFold>(block, block.rows);
  }
}

template <PoolingFold kFold, int kKernel, int kStride>
void RowBlocks(const WindowBlock& block) {
  const D d;
  const PoolingGeometry& g = *block.geometry;
  const PixelSource& source = block.source;
  Row<kFold, kKernel> row;
  const int64_t first = g.x.start(block.columns.begin) - source.x.begin, odd = g.x.pad & 1;
  row.columns = source.x.size() - first - odd;
  row.windows = block.columns.size();
  row.check = hn::Zero(d);
  row.needed = hn::FirstN(d, static_cast<size_t>((row.windows - 1) % kLanes + 1));
  const int64_t left = row.columns - kStride * ((row.windows - 1) / kLanes * kLanes);  // columns of the last vectors
  for (int k = 0; k < 2; ++k) {
    row.exist[k] = hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(left - k * kLanes, 0, kLanes)));
  }
  row.count_x = nullptr;
  alignas(64) float counts[kChunk + kWindowSlack];
  if (kFold == PoolingFold::average && (g.x.counted.begin > g.x.start(block.columns.begin) ||
                                        g.x.counted.end <= g.x.start(block.columns.end - 1) + g.x.reach())) {
    for (int64_t i = 0; i < row.windows + kLanes; i += kLanes) {
      hn::Store(hn::Set(d, Factor<kKernel>(kKernel)), d, counts + i);
    }
    for (int64_t i : {int64_t{0}, row.windows - 1}) {  // the others are inside
      counts[i] = Factor<kKernel>(g.x.count(block.columns.begin + i));
    }
    row.count_x = counts;
  }
  // Column `first` of row 0 of the plane; one further where the padding is odd.
  const float* data = static_cast<const float*>(source.data) - source.y.begin * source.row + first + odd;
  if constexpr (kStride == 1) {
    if (first < 0 && source.x.size() <= kLanes) return Narrow<kFold>(block, row, data);
  }
  for (int64_t wy = block.rows.begin; wy < block.rows.end; ++wy) {
    const int64_t top = g.y.start(wy);
    if (HWY_LIKELY(top >= 0 && top + kKernel <= g.y.in)) {
      for (int64_t t = 0; t < kKernel; ++t) row.pixels[t] = data + (top + t) * source.row;
      row.count_y = Factor<kKernel>(kKernel);
    } else {
      for (int64_t t = 0; t < kKernel; ++t) {
        int64_t y = top + t;
        // A row of the padding: for Max another row of the window a second time.
        if (kFold == PoolingFold::max) y = std::clamp<int64_t>(y, 0, g.y.in - 1);
        row.pixels[t] = y >= 0 && y < g.y.in ? data + y * source.row : kZeroRow + 16;
      }
      row.count_y = Factor<kKernel>(g.y.count(wy));
    }
    if constexpr (kFold == PoolingFold::average) row.count = hn::Set(d, Factor<kKernel>(kKernel) * row.count_y);
    row.to = block.values + (wy - block.rows.begin) * block.pitch;
    row.again = hn::FirstN(d, 0);
    if constexpr (kStride == 1)
      row.Neighbours(first >= 0);
    else if constexpr (kKernel == 2)
      row.Two();
    else if (odd)
      row.ThreeAfter(first >= 0);
    else
      row.ThreeFrom();
    if (kFold == PoolingFold::norm && HWY_UNLIKELY(!hn::AllFalse(d, row.again))) NormsAgain(block, {wy, wy + 1});
  }
  if (kFold == PoolingFold::max && HWY_UNLIKELY(!hn::AllFalse(d, hn::IsNaN(row.check)))) {
    DoAgain<kFold>(block, block.rows);
  }
}

template <PoolingFold kFold>
WindowsFunction ChooseFor(const PoolingGeometry& g) {
  if (g.x.stride == 1) return RowBlocks<kFold, 3, 1>;
  return g.x.kernel == 2 ? RowBlocks<kFold, 2, 2> : RowBlocks<kFold, 3, 2>;
}

}  // namespace

WindowsFunction ChooseRowWindows(const WindowsProblem& problem) {
  switch (problem.fold) {
    case PoolingFold::average:
      return ChooseFor<PoolingFold::average>(problem.geometry);
    case PoolingFold::norm:
      return ChooseFor<PoolingFold::norm>(problem.geometry);
    default:
      return ChooseFor<PoolingFold::max>(problem.geometry);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_row_windows(const WindowsProblem& problem) noexcept {
  return problem.fold != PoolingFold::arg_max &&
         (problem.geometry.is_small_stride_2() || problem.geometry.is_small_stride_1());
}
WindowsFunction pooling_row_windows(const WindowsProblem& problem) noexcept {
  return BNNS_DISPATCH(ChooseRowWindows)(problem);
}

}  // namespace bnns
#endif  // HWY_ONCE
