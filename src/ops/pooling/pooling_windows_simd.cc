// Blocks of windows, one window per lane.
//
//   column stride 1   the pixels of tap t are one load, shifted by t
//   column stride 2   two loads hold taps t and t + 1 of all lanes, in the even and the odd places
//
// Lanes whose tap lies in the padding read a neutral element (-inf, or 0 for sums), so the windows at the border go
// through the same additions and comparisons as the inner ones. Comparisons alone would drop a NaN: each window also
// sums its pixels, which keeps it, and a window whose sum is NaN (or whose maximum is -inf at the border, or whose
// squares leave the safe range) is done again by pooling_window.

#include <limits>

#include "src/ops/pooling/pooling_kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/pooling_windows_simd.cc"
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

constexpr bool IsMax(PoolingFold fold) {
  return fold == PoolingFold::max || fold == PoolingFold::arg_max;
}

// candidate > best ? candidate : best: ties keep the first. On x86 that is what the instruction does, NaN included.
HWY_INLINE V Larger(V candidate, V best) {
#if HWY_ARCH_X86
  return hn::Max(candidate, best);
#else
  return hn::IfThenElse(hn::Gt(candidate, best), candidate, best);
#endif
}

// The lanes of a load that lie in [0, width) when lane 0 is at `first`.
struct Reach {
  int64_t first, low, high;

  HWY_INLINE Reach(int64_t at, int64_t width) : first(at) {
    const int64_t n = static_cast<int64_t>(hn::Lanes(D()));
    low = HWY_MIN(n, HWY_MAX(-at, 0));
    high = HWY_MAX(low, HWY_MIN(n, width - at));
  }
  HWY_INLINE V Load(const float* row, V neutral) const {
    const D d;
    const size_t n = hn::Lanes(d);
    if (low == 0 && high == static_cast<int64_t>(n)) return hn::LoadU(d, row + first);
    if constexpr (MaskedAccessIsExact<float>()) {
      const M inside = hn::AndNot(hn::FirstN(d, static_cast<size_t>(low)), hn::FirstN(d, static_cast<size_t>(high)));
      return hn::IfThenElse(inside, hn::MaskedLoad(inside, d, row + first), neutral);
    } else {
      HWY_ALIGN float lanes[hn::MaxLanes(D())];
      hn::Store(neutral, d, lanes);
      for (int64_t i = low; i < high; ++i) lanes[i] = row[first + i];
      return hn::Load(d, lanes);
    }
  }
};

// What a lane knows of its window so far.
template <PoolingFold kFold>
struct State {
  V value, row, check;
  VI at;

  HWY_INLINE explicit State(int64_t first_offset) {
    const D d;
    value = IsMax(kFold) ? hn::Set(d, -std::numeric_limits<float>::infinity()) : hn::Zero(d);
    row = check = hn::Zero(d);
    at = hn::Set(DI(), static_cast<int32_t>(first_offset));
  }
  HWY_INLINE void Tap(V v, int64_t offset) {
    const DI di;
    if constexpr (kFold == PoolingFold::max) {
      value = Larger(v, value);
      check = hn::Add(check, v);
    } else if constexpr (kFold == PoolingFold::arg_max) {
      const M larger = hn::Gt(v, value);
      value = hn::IfThenElse(larger, v, value);
      at = hn::IfThenElse(hn::RebindMask(di, larger), hn::Set(di, static_cast<int32_t>(offset)), at);
      check = hn::Add(check, v);
    } else if constexpr (kFold == PoolingFold::average) {
      row = hn::Add(row, v);
    } else {
      row = hn::Add(row, hn::Mul(v, v));
      check = hn::Or(check, v);   // any bit but the sign: some pixel is not 0
    }
  }
  HWY_INLINE void EndRow() {
    if constexpr (!IsMax(kFold)) {
      value = hn::Add(value, row);
      row = hn::Zero(D());
    }
  }
};

// The pixels of the taps of a row of windows.
struct WindowRow {
  const PoolingGeometry* geometry;
  const float* pixels;   // column 0 of the source, row of the first real tap
  int64_t step;          // to the row of the next tap
  Span taps;             // real taps along y
  int64_t width;         // columns of the source
  int64_t readable;      // columns that may be read in every one of these rows, counted from column 0
  int64_t source_x;      // x of column 0
  float count_y;
  const float* count_x;  // taps that an average counts; NULL where it counts every tap of every window
};

// One vector of windows from wx on, the i-th of the block; the first `needed` lanes matter.
template <PoolingFold kFold, int kStride, int kKernel, bool kInside>
HWY_INLINE void Windows(const WindowRow& r, int64_t wx, int64_t wy, int64_t i, int64_t needed,
                        const PixelSource& source, float* values, int32_t* offsets) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  const PoolingGeometry& g = *r.geometry;
  const int64_t kernel = kKernel ? kKernel : g.x.kernel, dilation = kKernel || kStride == 2 ? 1 : g.x.dilation;
  const int64_t first = g.x.start(wx) - r.source_x;
  const V neutral = IsMax(kFold) ? hn::Set(d, -std::numeric_limits<float>::infinity()) : hn::Zero(d);
  const auto load = [&](const float* row, int64_t at) HWY_ATTR {
    if constexpr (kInside) {
      return hn::LoadU(d, row + at);
    } else {
      return Reach(at, r.width).Load(row, neutral);
    }
  };
  State<kFold> state(g.tap_offset(0, r.taps.begin));
  const float* row = r.pixels;
  for (int64_t ty = r.taps.begin; ty < r.taps.end; ++ty, row += r.step) {
    const int64_t offset = g.tap_offset(0, ty);
    if constexpr (kStride == 1) {
      for (int64_t t = 0; t < kernel; ++t) state.Tap(load(row, first + t * dilation), offset + t * dilation);
    } else {
      for (int64_t t = 0; t < kernel; t += 2) {
        const V low = load(row, first + t), high = load(row, first + t + N);
        state.Tap(hn::ConcatEven(d, high, low), offset + t);
        if (t + 1 < kernel) state.Tap(hn::ConcatOdd(d, high, low), offset + t + 1);
      }
    }
    state.EndRow();
  }

  M again = hn::FirstN(d, 0);   // none
  if constexpr (IsMax(kFold)) {
    again = hn::IsNaN(state.check);
    if constexpr (!kInside) again = hn::Or(again, hn::Eq(state.value, neutral));
  } else if constexpr (kFold == PoolingFold::average) {
    const V count_x = kInside || !r.count_x ? hn::Set(d, static_cast<float>(g.x.kernel)) : hn::LoadU(d, r.count_x + i);
    const V count = hn::Mul(count_x, hn::Set(d, r.count_y));
    state.value = hn::Div(state.value, count);
    if constexpr (!kInside) again = hn::Eq(count, hn::Zero(d));
  } else {
    const V sum = state.value;
    state.value = hn::Sqrt(sum);
    const M safe = hn::And(hn::Ge(sum, hn::Set(d, kNormLow)), hn::Le(sum, hn::Set(d, kNormHigh)));
    again = hn::Not(hn::Or(safe, hn::Eq(hn::Abs(state.check), hn::Zero(d))));   // every pixel 0: the norm is 0
  }
  hn::StoreU(state.value, d, values + i);
  if constexpr (kFold == PoolingFold::arg_max) hn::StoreU(state.at, DI(), offsets + i);
  if constexpr (kFold == PoolingFold::average && kInside) return;
  if (HWY_LIKELY(hn::AllFalse(d, again))) return;
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(hn::IfThenElseZero(again, hn::Set(d, 1.0f)), d, lanes);
  for (int64_t l = 0; l < needed; ++l) {
    if (lanes[l] != 0) pooling_window(kFold, g, source, wx + l, wy, values + i + l, offsets ? offsets + i + l : nullptr);
  }
}

template <PoolingFold kFold, int kStride, int kKernel>
void WindowRows(const WindowBlock& block) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  const PoolingGeometry& g = *block.geometry;
  const PixelSource& source = block.source;
  const int64_t kernel = kKernel ? kKernel : g.x.kernel;
  WindowRow r;
  r.geometry = &g;
  r.step = source.row * g.y.dilation;
  r.width = source.x.size();
  r.source_x = source.x.begin;
  r.count_x = nullptr;
  HWY_ALIGN float counts[kChunk + kWindowSlack];
  if (kFold == PoolingFold::average && (g.x.counted.begin > g.x.start(block.columns.begin) ||
                                        g.x.counted.end <= g.x.start(block.columns.end - 1) + g.x.reach())) {
    for (int64_t i = 0; i < block.columns.size() + kWindowSlack; ++i) {
      counts[i] = i < block.columns.size() ? static_cast<float>(g.x.count(block.columns.begin + i)) : 1;
    }
    r.count_x = counts;
  }
  // What a vector reads beyond its first column, and what it needs of it.
  const int64_t reads = kStride == 1 ? (kernel - 1) * (kKernel ? 1 : g.x.dilation) + N : (kernel - 1) / 2 * 2 + 2 * N;
  for (int64_t wy = block.rows.begin; wy < block.rows.end; ++wy) {
    float* values = block.values + (wy - block.rows.begin) * block.pitch;
    int32_t* offsets = block.offsets ? block.offsets + (wy - block.rows.begin) * block.pitch : nullptr;
    r.taps = g.y.taps(wy);
    if (r.taps.empty()) {
      for (int64_t i = 0; i < block.columns.size(); ++i) values[i] = 0;
      for (int64_t i = 0; offsets && i < block.columns.size(); ++i) offsets[i] = kNoPixel;
      continue;
    }
    const int64_t top = g.y.start(wy) + r.taps.begin * g.y.dilation;
    const int64_t last = g.y.start(wy) + (r.taps.end - 1) * g.y.dilation;
    r.pixels = static_cast<const float*>(source.data) + (top - source.y.begin) * source.row;
    // Past the end of a row that has no gap behind it come the next rows: they may be read, their values are not used.
    r.readable = r.width + source.slack;
    if (source.row == r.width) r.readable += (source.y.end - 1 - last) * r.width;
    r.count_y = static_cast<float>(g.y.count(wy));
    for (int64_t wx = block.columns.begin; wx < block.columns.end; wx += N) {
      const int64_t i = wx - block.columns.begin, needed = HWY_MIN(N, block.columns.end - wx);
      const int64_t first = g.x.start(wx) - r.source_x;
      const bool inside = first >= 0 && first + (needed - 1) * kStride + g.x.reach() < r.width && first + reads <= r.readable;
      if (inside) {
        Windows<kFold, kStride, kKernel, true>(r, wx, wy, i, needed, source, values, offsets);
      } else {
        Windows<kFold, kStride, kKernel, false>(r, wx, wy, i, needed, source, values, offsets);
      }
    }
  }
}

template <PoolingFold kFold>
WindowsFunction ChooseFor(const PoolingGeometry& g) {
  constexpr int64_t kLargest = 64;   // beyond, taps in the padding cost more than lanes save
  if (g.x.kernel > kLargest) return nullptr;
  if (g.x.stride == 1 || g.x.out == 1) {
    return g.x.kernel == 3 && g.x.dilation == 1 ? WindowRows<kFold, 1, 3> : WindowRows<kFold, 1, 0>;
  }
  if (g.x.stride != 2 || g.x.dilation != 1) return nullptr;
  if (g.x.kernel == 2) return WindowRows<kFold, 2, 2>;
  return g.x.kernel == 3 ? WindowRows<kFold, 2, 3> : WindowRows<kFold, 2, 0>;
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
