// Blocks of windows, one window per lane, in strips: a vector of windows goes down the rows of the block.
//
//   column stride 1   the pixels of tap t are one load, shifted by t
//   column stride 2   two loads hold taps t and t + 1 of all lanes, in the even and the odd places
//
// A row of pixels is first folded along x ("line"), then lines are folded along y. Where windows overlap downwards, 3 x 3
// with stride 1 or 2, lines stay in registers for the next windows of the strip.
//
// Lanes whose tap lies in the padding read a neutral element (-inf, or 0 for sums), so the windows at the border go
// through the same additions and comparisons as the inner ones. Comparisons would drop a NaN: each strip also sums its
// pixels, which keeps it. A strip in which that sum is NaN (or some maximum is -inf, or some sum of squares leaves the
// safe range) is done again by pooling_window; that is rare.

#include <algorithm>
#include <limits>
#include <cstdlib>

#include "src/ops/pooling/pooling_kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/pooling_windows_simd.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/pooling_windows-inl.h"
#include "src/simd/dispatch.h"
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

constexpr int64_t kStripRows = 32;         // window rows that a strip goes down
constexpr int64_t kStripPixels = 4096;     // or as many as keep their pixels in half of L1

constexpr bool IsMax(PoolingFold fold) {
  return fold == PoolingFold::max || fold == PoolingFold::arg_max;
}
template <PoolingFold kFold>
HWY_INLINE V Neutral() {
  const D d;
  return IsMax(kFold) ? hn::Set(d, -std::numeric_limits<float>::infinity()) : hn::Zero(d);
}

// candidate > best ? candidate : best: ties keep the first. On x86 that is what the instruction does.
HWY_INLINE V Larger(V candidate, V best) {
#if HWY_ARCH_X86
  return hn::Max(candidate, best);
#else
  return hn::IfThenElse(hn::Gt(candidate, best), candidate, best);
#endif
}

// The window rows of a block, looked up once for all strips.
struct StripRow {
  const float* pixels;   // column 0 of the source, row of the first real tap
  int64_t first, last;   // real taps along y
  float count;           // taps that an average counts along y
};

struct Strips {
  const WindowBlock* block;
  const PoolingGeometry* geometry;
  int64_t step;          // from the row of a tap to the row of the next, in floats
  int64_t width;         // columns of the source
  int64_t source_x;      // x of column 0
  const float* count_x;  // taps that an average counts; NULL where it counts every tap of every window
  int64_t first_row, rows;
  const float* ahead;    // the pixels after this block: fetched, in order, while its strips are done
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
  V value;    // maximum, sum or sum of squares
  VI at;      // arg_max: offset of the maximum
  V bits;     // norm: all bits that occur, so that 0 is told from an underflow

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
    value = hn::Div(hn::Add(value, hn::Zero(d)), count);   // + 0: never -0
    // Dilation may leave a window of the border without a pixel.
    if constexpr (!kInside) value = hn::IfThenZeroElse(hn::Eq(count, hn::Zero(d)), value);
  } else {
    const M safe = hn::And(hn::Ge(value, hn::Set(d, kNormLow)), hn::Le(value, hn::Set(d, kNormHigh)));
    const M good = hn::Or(safe, hn::Eq(hn::Abs(window.bits), hn::Zero(d)));   // every pixel 0: the norm is 0
    *again = hn::Or(*again, hn::AndNot(good, needed));
    value = hn::Sqrt(value);
  }
  hn::StoreU(value, d, values + column);
  if constexpr (kFold == PoolingFold::arg_max) hn::StoreU(window.at, DI(), offsets + column);
}

// One strip of windows from wx on. kReuse: lines that the next window row needs again (3 x 3 windows, kReuse = 3 - stride).
template <PoolingFold kFold, int kStride, int kKernel, int kReuse, bool kInside>
HWY_NOINLINE void Strip(Strips& s, int64_t wx) {
  const D d;
  const DI di;
  const WindowBlock& block = *s.block;
  const int64_t column = wx - block.columns.begin;
  const int64_t lanes = HWY_MIN(static_cast<int64_t>(hn::Lanes(d)), block.columns.end - wx);
  const M needed = hn::FirstN(d, static_cast<size_t>(lanes));
  const Taps<kFold, kStride, kKernel, kInside> taps(s, wx);
  const int64_t down = s.geometry->tap_offset(0, 1);
  const VI one = hn::Set(di, static_cast<int32_t>(down)), two = hn::Add(one, one);
  V check = hn::Zero(d);
  const float* ahead = s.ahead;
  M again = hn::FirstN(d, 0);   // none
  Line<kFold> first, second;    // kept from the window row before
  bool kept = false;
  float* values = block.values + s.first_row * block.pitch;
  int32_t* offsets = block.offsets + (kFold == PoolingFold::arg_max ? s.first_row * block.pitch : 0);
  for (int64_t r = 0; r < s.rows; ++r, values += block.pitch, offsets += kFold == PoolingFold::arg_max ? block.pitch : 0) {
    const StripRow& row = s.row[r];
    Line<kFold> window;
    if (kReuse != 0 && row.first == 0 && row.last == 3) {
      if (!kept) first = taps.Fold(row.pixels, &check, &ahead);
      if (kReuse == 1 || !kept) second = taps.Fold(row.pixels + s.step, &check, &ahead);
      const Line<kFold> third = taps.Fold(row.pixels + 2 * s.step, &check, &ahead);
      window = first;
      window.Under(second, one);
      window.Under(third, two);
      first = kReuse == 1 ? third : second;
      if (kReuse == 2) second = third;
      kept = true;
    } else {
      const float* pixels = row.pixels;
      VI below = hn::Set(di, static_cast<int32_t>(row.first * down));
      window = taps.Fold(pixels, &check, &ahead);
      if constexpr (kFold == PoolingFold::arg_max) window.at = hn::Add(window.at, below);
      for (int64_t t = row.first + 1; t < row.last; ++t) {
        below = hn::Add(below, one);
        window.Under(taps.Fold(pixels += s.step, &check, &ahead), below);
      }
      kept = false;
    }
    Finish<kFold, kInside>(s, row, window, column, needed, values, offsets, &again);
  }
  s.ahead = ahead;
  if constexpr (IsMax(kFold)) again = hn::Or(again, hn::IsNaN(check));
  if constexpr (kFold != PoolingFold::average) {
    if (HWY_LIKELY(hn::AllFalse(d, again))) return;
    for (int64_t r = 0; r < s.rows; ++r) {
      const int64_t at = (s.first_row + r) * block.pitch + column;
      for (int64_t i = 0; i < lanes; ++i) {
        pooling_window(kFold, *s.geometry, block.source, wx + i, block.rows.begin + s.first_row + r,
                       block.values + at + i, block.offsets ? block.offsets + at + i : nullptr);
      }
    }
  }
}

// Windows without pixels along y, or along x: value 0.
void FillEmpty(const WindowBlock& block, Span rows, Span columns) {
  for (int64_t wy = rows.begin; wy < rows.end; ++wy) {
    const int64_t row = (wy - block.rows.begin) * block.pitch - block.columns.begin;
    for (int64_t wx = columns.begin; wx < columns.end; ++wx) {
      block.values[row + wx] = 0;
      if (block.offsets) block.offsets[row + wx] = kNoPixel;
    }
  }
}

// The last strip comes first: it may write past the end of its rows, into columns that are written later.
template <PoolingFold kFold, int kStride, int kKernel, int kReuse>
void RunStrips(Strips& s, Span columns) {
  const int64_t N = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t kernel = kKernel ? kKernel : s.geometry->x.kernel;
  const int64_t reads =   // columns that an unmasked strip reads
      kStride == 1 ? (kernel - 1) * (kKernel ? 1 : s.geometry->x.dilation) + N : (kernel - 1) / 2 * 2 + 2 * N;
  const int64_t last = columns.begin + (columns.size() - 1) / N * N;
  for (int64_t wx = last, next = columns.begin; next <= last; wx = next, next += N) {
    const int64_t first = s.geometry->x.start(wx) - s.source_x;
    if (first >= 0 && first + reads <= s.width) Strip<kFold, kStride, kKernel, kReuse, true>(s, wx);
    else Strip<kFold, kStride, kKernel, kReuse, false>(s, wx);
  }
}

template <PoolingFold kFold, int kStride, int kKernel, int kReuse>
void WindowBlocks(const WindowBlock& block) {
  const PoolingGeometry& g = *block.geometry;
  const PixelSource& source = block.source;
  Strips s;
  s.block = &block;
  s.geometry = &g;
  s.step = source.row * g.y.dilation;
  s.width = source.x.size();
  s.source_x = source.x.begin;
  s.count_x = nullptr;
  HWY_ALIGN float counts[kChunk + kWindowSlack];
  if (kFold == PoolingFold::average && (g.x.counted.begin > g.x.start(block.columns.begin) ||
                                        g.x.counted.end <= g.x.start(block.columns.end - 1) + g.x.reach())) {
    for (int64_t i = 0; i < block.columns.size() + kWindowSlack; ++i) {
      counts[i] = i < block.columns.size() ? static_cast<float>(g.x.count(block.columns.begin + i)) : 1;
    }
    s.count_x = counts;
  }
  const Span filled = g.x.windows_inside(block.columns);   // the columns with pixels
  static const int64_t tune = getenv("POOL_ROWS") ? atol(getenv("POOL_ROWS")) : 8;
  const int64_t most = block.columns.size() <= 2 * static_cast<int64_t>(hn::Lanes(D())) ? kStripRows : std::max<int64_t>(2, tune / g.y.stride);
  int64_t wy = block.rows.begin;
  while (wy < block.rows.end) {
    s.first_row = wy - block.rows.begin;
    s.rows = 0;
    for (; wy < block.rows.end && s.rows < most; ++wy) {
      const Span taps = g.y.taps(wy);
      if (taps.empty()) {
        if (s.rows == 0) s.first_row = wy + 1 - block.rows.begin;
        FillEmpty(block, {wy, wy + 1}, block.columns);
        if (s.rows == 0) continue;
        ++wy;
        break;
      }
      const int64_t top = g.y.start(wy) + taps.begin * g.y.dilation;
      s.row[s.rows++] = {static_cast<const float*>(source.data) + (top - source.y.begin) * source.row, taps.begin, taps.end,
                         static_cast<float>(g.y.count(wy))};
    }
    if (s.rows == 0) break;
    s.ahead = s.row[0].pixels + s.rows * g.y.stride * source.row;
    if (!filled.empty()) RunStrips<kFold, kStride, kKernel, kReuse>(s, filled);
    const Span rows{block.rows.begin + s.first_row, block.rows.begin + s.first_row + s.rows};
    FillEmpty(block, rows, {block.columns.begin, std::min(filled.begin, block.columns.end)});
    FillEmpty(block, rows, {std::max(filled.end, block.columns.begin), block.columns.end});
  }
}

template <PoolingFold kFold>
WindowsFunction ChooseFor(const PoolingGeometry& g) {
  constexpr int64_t kLargest = 64;   // beyond, taps in the padding cost more than lanes save
  if (g.x.kernel > kLargest) return nullptr;
  const bool three = g.x.kernel == 3 && g.y.kernel == 3 && g.x.dilation == 1 && g.y.dilation == 1;
  if (g.x.stride == 1) {
    return three && g.y.stride == 1 ? WindowBlocks<kFold, 1, 3, 2> : WindowBlocks<kFold, 1, 0, 0>;
  }
  if (g.x.stride != 2 || g.x.dilation != 1) return nullptr;
  if (g.x.kernel == 2) return WindowBlocks<kFold, 2, 2, 0>;
  return three && g.y.stride == 2 ? WindowBlocks<kFold, 2, 3, 1> : WindowBlocks<kFold, 2, 0, 0>;
}

}  // namespace

WindowsFunction ChooseWindows(PoolingFold fold, const PoolingGeometry& geometry) {
  switch (fold) {
    case PoolingFold::max: return ChooseFor<PoolingFold::max>(geometry);
    case PoolingFold::arg_max: return ChooseFor<PoolingFold::arg_max>(geometry);
    case PoolingFold::average: return ChooseFor<PoolingFold::average>(geometry);
    case PoolingFold::norm: return ChooseFor<PoolingFold::norm>(geometry);
  }
  return nullptr;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void pooling_windows(PoolingFold fold, const WindowBlock& block) noexcept {
  const PixelSource& source = block.source;
  if (source.type == BNNSDataTypeFloat32 && source.column == 1) {
    if (const auto windows = BNNS_DISPATCH(ChooseWindows)(fold, *block.geometry)) return windows(block);
  }
  for (int64_t wy = block.rows.begin; wy < block.rows.end; ++wy) {
    for (int64_t wx = block.columns.begin; wx < block.columns.end; ++wx) {
      const int64_t i = (wy - block.rows.begin) * block.pitch + wx - block.columns.begin;
      pooling_window(fold, *block.geometry, source, wx, wy, block.values + i,
                     block.offsets ? block.offsets + i : nullptr);
    }
  }
}

}  // namespace bnns
#endif  // HWY_ONCE
