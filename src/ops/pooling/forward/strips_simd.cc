// Blocks of windows in strips: a vector of windows (pooling/forward/strips-inl.h) goes down the rows of the block.
//
// A row of pixels is first folded along x ("line"), then lines are folded along y. Where 3 x 3 windows overlap
// downwards, with stride 1 or 2, lines stay in registers for the next windows of the strip.
//
// A strip in which the sum of all pixels is NaN (or some maximum is -inf, or some sum of squares leaves the safe range)
// is done again by pooling_window; that is rare.

#include <algorithm>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/forward/strips_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/common/windows-inl.h"
#include "src/ops/pooling/forward/strips-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

// One strip of windows from wx on. kReuse: lines that the next window row needs again, for 3 x 3 windows (3 - stride).
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
  M again = hn::FirstN(d, 0);  // none
  Line<kFold> first, second;   // kept from the window row before
  bool kept = false;
  float* values = block.values + s.first_row * block.pitch;
  int32_t* offsets = block.offsets + (kFold == PoolingFold::arg_max ? s.first_row * block.pitch : 0);
  for (int64_t r = 0; r < s.rows;
       ++r, values += block.pitch, offsets += kFold == PoolingFold::arg_max ? block.pitch : 0) {
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
  const int64_t reads =  // columns that an unmasked strip reads
      kStride == 1 ? (kernel - 1) * (kKernel ? 1 : s.geometry->x.dilation) + N : (kernel - 1) / 2 * 2 + 2 * N;
  const int64_t last = columns.begin + (columns.size() - 1) / N * N;
  for (int64_t wx = last, next = columns.begin; next <= last; wx = next, next += N) {
    const int64_t first = s.geometry->x.start(wx) - s.source_x;
    if (first >= 0 && first + reads <= s.width)
      Strip<kFold, kStride, kKernel, kReuse, true>(s, wx);
    else
      Strip<kFold, kStride, kKernel, kReuse, false>(s, wx);
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
  const Span filled = g.x.windows_inside(block.columns);  // the columns with pixels
  // One strip goes down in one go. Several share their rows of pixels while these are in L1.
  const int64_t N = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t most =
      filled.size() <= N ? kStripRows : std::clamp<int64_t>(kStripPixels / (s.width * g.y.stride), 2, kStripRows);
  const bool narrow = filled.size() != block.columns.size();
  const int64_t reach = g.y.reach();
  const float kernel = static_cast<float>(g.y.kernel);
  for (int64_t wy = block.rows.begin; wy < block.rows.end;) {
    s.first_row = wy - block.rows.begin;
    s.rows = 0;
    int64_t top = g.y.start(wy);
    for (; wy < block.rows.end && s.rows < most; ++wy, top += g.y.stride) {
      StripRow& row = s.row[s.rows];
      if (HWY_LIKELY(top >= 0 && top + reach < g.y.in)) {  // every tap is real
        row = {static_cast<const float*>(source.data) + (top - source.y.begin) * source.row, 0, g.y.kernel, kernel};
      } else {
        const Span taps = g.y.taps(wy);
        if (taps.empty()) break;
        const int64_t first = top + taps.begin * g.y.dilation - source.y.begin;
        row = {static_cast<const float*>(source.data) + first * source.row, taps.begin, taps.end,
               static_cast<float>(g.y.count(wy))};
      }
      ++s.rows;
    }
    if (s.rows == 0) {  // a row of windows above or below the image
      FillEmpty(block, {wy, wy + 1}, block.columns);
      ++wy;
      continue;
    }
    s.ahead = s.row[0].pixels + s.rows * g.y.stride * source.row;
    if (!filled.empty()) RunStrips<kFold, kStride, kKernel, kReuse>(s, filled);
    if (HWY_LIKELY(!narrow)) continue;
    const Span rows{block.rows.begin + s.first_row, block.rows.begin + s.first_row + s.rows};
    FillEmpty(block, rows, {block.columns.begin, std::min(filled.begin, block.columns.end)});
    FillEmpty(block, rows, {std::max(filled.end, block.columns.begin), block.columns.end});
  }
}

template <PoolingFold kFold>
WindowsFunction ChooseFor(const PoolingGeometry& g) {
  const bool three = g.x.kernel == 3 && g.y.kernel == 3 && g.x.dilation == 1 && g.y.dilation == 1;
  if (g.x.stride == 1) {
    return three && g.y.stride == 1 ? WindowBlocks<kFold, 1, 3, 2> : WindowBlocks<kFold, 1, 0, 0>;
  }
  if (g.x.kernel == 2) return WindowBlocks<kFold, 2, 2, 0>;
  return three && g.y.stride == 2 ? WindowBlocks<kFold, 2, 3, 1> : WindowBlocks<kFold, 2, 0, 0>;
}

}  // namespace

WindowsFunction ChooseStrips(const WindowsProblem& problem) {
  switch (problem.fold) {
    case PoolingFold::max:
      return ChooseFor<PoolingFold::max>(problem.geometry);
    case PoolingFold::arg_max:
      return ChooseFor<PoolingFold::arg_max>(problem.geometry);
    case PoolingFold::average:
      return ChooseFor<PoolingFold::average>(problem.geometry);
    case PoolingFold::norm:
      return ChooseFor<PoolingFold::norm>(problem.geometry);
  }
  return nullptr;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_strips(const WindowsProblem& problem) noexcept {
  constexpr int64_t kLargest = 64;  // beyond, taps in the padding cost more than lanes save
  const PoolingAxis& x = problem.geometry.x;
  return x.kernel <= kLargest && (x.stride == 1 || (x.stride == 2 && x.dilation == 1));
}
WindowsFunction pooling_strips(const WindowsProblem& problem) noexcept {
  return BNNS_DISPATCH(ChooseStrips)(problem);
}

}  // namespace bnns
#endif  // HWY_ONCE
