// Maxima and where they are: 2 x 2 and 3 x 3 windows with stride 2, and 3 x 3 with stride 1 in rows of one vector.
//
// Row by row of windows, one per lane; the rows of pixels are read from front to back. Each row is taken apart into
// the columns of its taps (as in pooling/forward/row_windows_simd.cc), then the taps are compared in raster order, so
// that the first of equal ones stays. What travels with a maximum is a key of 32 bits, its distance from the window's
// first row; the position is made of it once, at the end, and widened on its way out.
//
// A row of the padding is replaced by the next row of the image, with that row's keys: it changes nothing. A column of
// the padding is -inf, which wins only against nothing: a window of -inf. Such a pixel, like a NaN, leaves a mark in
// the sum that is taken of all pixels; then pooling_window looks again.

#include <algorithm>
#include <limits>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/forward/positions_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/common/lanes-inl.h"
#include "src/ops/pooling/common/windows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = DLane;
using V = VLane;
using M = MLane;
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;

constexpr float kLowest = -std::numeric_limits<float>::infinity();

// The largest tap so far and its key.
struct Best {
  V value;
  VI key;

  HWY_INLINE void Take(V v, VI with) {
    const M larger = hn::Gt(v, value);
    value = Larger(v, value);
    key = hn::IfThenElse(hn::RebindMask(DI(), larger), with, key);
  }
};

HWY_INLINE void StorePositions(VI position, uint32_t* to) {
  const hn::RebindToUnsigned<DI> du;
  hn::StoreU(hn::BitCast(du, position), du, to);
}
HWY_INLINE void StorePositions(VI position, uint64_t* to) {
  const hn::RebindToUnsigned<DI> du;
  const hn::Half<decltype(du)> dh;
  const hn::ScalableTag<uint64_t> d64;
  const auto narrow = hn::BitCast(du, position);
  hn::StoreU(hn::PromoteTo(d64, hn::LowerHalf(dh, narrow)), d64, to);
  hn::StoreU(hn::PromoteTo(d64, hn::UpperHalf(dh, narrow)), d64, to + kLanes / 2);
}

// Loaded once for several uses: gcc would read memory for each of them.
HWY_INLINE V InRegister(V v) {
#if HWY_TARGET == HWY_AVX3
  asm("" : "+v"(v.raw));
#endif
  return v;
}

// Windows in which there may be a NaN (all), or that are -inf.
template <typename T>
HWY_NOINLINE void LookAgain(const WindowBlock& block, bool all, T* positions) {
  const PoolingGeometry& g = *block.geometry;
  for (int64_t wy = block.rows.begin; wy < block.rows.end; ++wy) {
    for (int64_t wx = block.columns.begin; wx < block.columns.end; ++wx) {
      const int64_t i = (wy - block.rows.begin) * block.pitch + wx - block.columns.begin;
      if (!all && block.values[i] != kLowest) continue;
      int32_t offset;
      pooling_window(PoolingFold::arg_max, g, block.source, wx, wy, block.values + i, &offset);
      positions[i] = static_cast<T>(g.origin(wx, wy) + offset);
    }
  }
}
template <typename T>
HWY_INLINE void LookAt(const WindowBlock& block, V check, T* positions) {
  const D d;
  if (HWY_LIKELY(hn::AllTrue(d, hn::IsFinite(check)))) return;
  LookAgain(block, !hn::AllFalse(d, hn::IsNaN(check)), positions);
}

// A row of windows with stride 2.
template <int kKernel, typename T>
struct Row {
  const float* pixels[kKernel];  // the first window's first tap; its second one where the padding is odd
  VI keys[kKernel][3];           // of a window's columns
  VI first;                      // the position of key 0 in the lanes of the first vector
  int64_t columns, windows;      // columns that exist from pixels on
  float* values;
  T* positions;
  V check;
  M exist[2];  // columns of the last two vectors

  // Columns of the last two vectors: neutral ones where there are none.
  template <int kPart>
  HWY_INLINE V LoadLast(const float* row, int64_t c) {
    const D d;
    const V v = MaskedAccessIsExact<float>() ? hn::MaskedLoad(exist[kPart], d, row + c)
                                             : LoadLanes(row + c, columns - c, hn::Zero(d));
    check = hn::Add(check, v);
    return hn::IfThenElse(exist[kPart], v, hn::Set(d, kLowest));
  }
  // The even and the odd columns of row t under the windows from i on.
  template <bool kWhole>
  HWY_INLINE void Pair(int t, int64_t i, V* even, V* odd, V* sum) {
    const D d;
    const float* from = pixels[t] + 2 * i;
    if (t >= kKernel - 2) FetchAhead(from, 2 * kLanes);
    const V low = kWhole ? InRegister(hn::LoadU(d, from)) : LoadLast<0>(pixels[t], 2 * i);
    const V high = kWhole ? InRegister(hn::LoadU(d, from + kLanes)) : LoadLast<1>(pixels[t], 2 * i + kLanes);
    if constexpr (kWhole) *sum = t == 0 ? hn::Add(low, high) : hn::Add(*sum, hn::Add(low, high));
    *even = EvenLanes(low, high);
    *odd = OddLanes(low, high);
  }
  HWY_INLINE void Put(int64_t i, const Best& best) {
    hn::StoreU(best.value, D(), values + i);
    const VI here = hn::Add(first, hn::Set(DI(), static_cast<int32_t>(2 * i)));
    StorePositions(hn::Add(here, best.key), positions + i);
  }

  template <bool kWhole>
  HWY_INLINE void Two(int64_t i) {
    V even, odd, sum = hn::Zero(D());
    Pair<kWhole>(0, i, &even, &odd, &sum);
    Best best{even, keys[0][0]};
    best.Take(odd, keys[0][1]);
    Pair<kWhole>(1, i, &even, &odd, &sum);
    best.Take(even, keys[1][0]);
    best.Take(odd, keys[1][1]);
    check = hn::Add(check, sum);
    Put(i, best);
  }
  // `beside`: kAfter: the odd columns of the vectors to the left; else the even ones of those to the right.
  template <bool kWhole, bool kAfter>
  HWY_INLINE void Three(int64_t i, V* beside) {
    Best best;
    V sum = hn::Zero(D());
    for (int t = 0; t < 3; ++t) {
      V even, odd;
      Pair<kWhole>(t, i, &even, &odd, &sum);
      const V taps[3] = {kAfter ? PreviousLanes(beside[t], odd) : even, kAfter ? even : odd,
                         kAfter ? odd : NextLanes(even, beside[t])};
      if (t == 0)
        best = {taps[0], keys[0][0]};
      else
        best.Take(taps[0], keys[t][0]);
      best.Take(taps[1], keys[t][1]);
      best.Take(taps[2], keys[t][2]);
      beside[t] = kAfter ? odd : even;
    }
    check = hn::Add(check, sum);
    Put(i, best);
  }
  HWY_INLINE void AllTwo() {
    const int64_t last = (windows - 1) / kLanes * kLanes;
    for (int64_t i = 0; i < last; i += kLanes) Two<true>(i);
    Two<false>(last);
  }
  HWY_INLINE void AllThree(bool odd, bool before) {
    const D d;
    const int64_t last = (windows - 1) / kLanes * kLanes, after = 2 * (last + kLanes);
    V beside[3];
    for (int t = 0; t < 3; ++t) {
      beside[t] = hn::Set(d, kLowest);
      if (odd && before) beside[t] = hn::Set(d, pixels[t][-1]);
      if (!odd && after < columns) beside[t] = hn::Set(d, pixels[t][after]);
      if ((odd && before) || (!odd && after < columns)) check = hn::Add(check, beside[t]);
    }
    if (odd) {
      for (int64_t i = 0; i < last; i += kLanes) Three<true, true>(i, beside);
      Three<false, true>(last, beside);
    } else {
      Three<false, false>(last, beside);
      for (int64_t i = last - kLanes; i >= 0; i -= kLanes) Three<true, false>(i, beside);
    }
  }
};

template <int kKernel, typename T>
void RowPositions(const WindowBlock& block, void* positions) {
  const D d;
  const DI di;
  const PoolingGeometry& g = *block.geometry;
  const PixelSource& source = block.source;
  Row<kKernel, T> row;
  const int64_t first = g.x.start(block.columns.begin), odd = g.x.pad & 1;
  row.columns = source.x.size() - first - odd;
  row.windows = block.columns.size();
  row.check = hn::Zero(d);
  const int64_t left = row.columns - 2 * ((row.windows - 1) / kLanes * kLanes);  // columns of the last two vectors
  for (int k = 0; k < 2; ++k) {
    row.exist[k] = hn::FirstN(d, static_cast<size_t>(std::clamp<int64_t>(left - k * kLanes, 0, kLanes)));
  }
  const float* data = static_cast<const float*>(source.data) + first + odd;
  const VI lanes = hn::Add(hn::Iota(di, 0), hn::Iota(di, 0));
  int64_t last_key[3] = {-1, -1, -1};  // the same in all rows inside the image
  for (int64_t wy = block.rows.begin; wy < block.rows.end; ++wy) {
    const int64_t top = g.y.start(wy), from = std::clamp<int64_t>(top, 0, g.y.in - 1);
    for (int64_t t = 0; t < kKernel; ++t) {
      const int64_t y = std::clamp<int64_t>(top + t, 0, g.y.in - 1), key = (y - from) * g.x.in;
      row.pixels[t] = data + y * source.row;
      if (HWY_LIKELY(key == last_key[t])) continue;
      last_key[t] = key;
      for (int64_t k = 0; k < 3; ++k) row.keys[t][k] = hn::Set(di, static_cast<int32_t>(key + k));
    }
    row.first = hn::Add(lanes, hn::Set(di, static_cast<int32_t>(from * g.x.in + first)));
    row.values = block.values + (wy - block.rows.begin) * block.pitch;
    row.positions = static_cast<T*>(positions) + (wy - block.rows.begin) * block.pitch;
    if constexpr (kKernel == 2)
      row.AllTwo();
    else
      row.AllThree(odd != 0, first >= 0);
  }
  LookAt(block, row.check, static_cast<T*>(positions));
}

// Stride 1, rows of one vector: what a row gives to its windows stays in registers for the windows below.
template <typename T>
void NarrowPositions(const WindowBlock& block, void* positions) {
  const D d;
  const DI di;
  const PoolingAxis& axis = block.geometry->y;
  const PixelSource& source = block.source;
  const int64_t width = source.x.size();
  const V lowest = hn::Set(d, kLowest);
  const M exist = hn::FirstN(d, static_cast<size_t>(width));
  const VI one = hn::Set(di, 1), two = hn::Set(di, 2), down = hn::Set(di, static_cast<int32_t>(width));
  V check = hn::Zero(d);
  // The best of three columns; its key is the position, which a row of the padding takes from its neighbour.
  VI at =
      hn::Add(hn::Iota(di, -1), hn::Set(di, static_cast<int32_t>(std::max<int64_t>(block.rows.begin - 1, 0) * width)));
  const auto line = [&](int64_t y) HWY_ATTR {
    const float* from = static_cast<const float*>(source.data) + y * source.row;
    FetchAhead(from);
    const V read = MaskedAccessIsExact<float>() ? hn::MaskedLoad(exist, d, from) : LoadLanes(from, width, hn::Zero(d));
    check = hn::Add(check, read);
    const V v = hn::IfThenElse(exist, read, lowest);
    Best best{PreviousLanes(lowest, v), at};
    best.Take(v, hn::Add(at, one));
    best.Take(NextLanes(v, lowest), hn::Add(at, two));
    at = hn::Add(at, down);
    return best;
  };
  const int64_t begin = block.rows.begin;
  Best above = line(std::max<int64_t>(begin - 1, 0)), here = begin > 0 ? line(begin) : above;
  float* values = block.values;
  T* to = static_cast<T*>(positions);
  for (int64_t wy = begin; wy < block.rows.end; ++wy, values += block.pitch, to += block.pitch) {
    const Best below = wy + 1 < axis.in ? line(wy + 1) : here;
    Best best = above;
    best.Take(here.value, here.key);
    best.Take(below.value, below.key);
    hn::StoreU(best.value, d, values);
    StorePositions(best.key, to);
    above = here;
    here = below;
  }
  LookAt(block, check, static_cast<T*>(positions));
}

template <typename T>
PositionsFunction ChooseFor(const PoolingGeometry& g) {
  if (g.is_small_stride_2()) return g.x.kernel == 2 ? RowPositions<2, T> : RowPositions<3, T>;
  return g.is_small_stride_1() && g.x.in <= kLanes ? NarrowPositions<T> : nullptr;
}

}  // namespace

PositionsFunction ChoosePositions(const PoolingGeometry& g, bool wide) {
  return wide ? ChooseFor<uint64_t>(g) : ChooseFor<uint32_t>(g);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
