// The kernels of depthwise convolution of any window, on slabs.
//
// A register tile is seven rows of one vector: the networks' planes (7, 14, 28, 56, 112) are multiples of seven. A row
// of the slab is loaded once for a column of taps and serves all target rows that see it, with the weights of that
// column, up to seven, in registers too. The last tile of a plane repeats rows of the one before. Planes of one to
// three rows take tiles of one row, eight vectors wide. Both add the terms of a sum in the same order.

#include "src/ops/convolution/depthwise/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/depthwise/rows_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/ops/convolution/common/split-inl.h"
#include "src/ops/convolution/depthwise/rows-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr size_t kTileRows = 7, kLeastRows = 4, kTileVectors = 8;

// All zeros first, then the rows between them: a call for each short run of zeros would cost more.
void SplitRows(const SlabRows& s, size_t planes, float* HWY_RESTRICT slab) {
  const D d;
  const size_t lanes = hn::Lanes(d), row = s.phases * s.length, all = planes * s.rows * row;
  for (size_t i = 0; i < all; i += lanes) hn::StoreU(hn::Zero(d), d, slab + i);  // past the end: see SlabPlan::floats
  const ptrdiff_t first = HWY_MAX(-s.low, 0), end = HWY_MIN(s.height - s.low, static_cast<ptrdiff_t>(s.rows));
  if (s.count == 0 || first >= end) return;
  for (size_t p = 0; p < planes; ++p, slab += s.rows * row) {
    const float* from = s.from + p * s.plane_stride + static_cast<size_t>(s.low + first) * s.row_stride;
    for (ptrdiff_t r = first; r < end; ++r, from += s.row_stride) {
      float* to = slab + static_cast<size_t>(r) * row;
      if (s.step > 1) {
        SplitValues(from, s.lead, s.count, s.step, s.phases, s.length, to);
        continue;
      }
      size_t i = 0;
      for (to += s.lead; i + lanes <= s.count; i += lanes) hn::StoreU(hn::LoadU(d, from + i), d, to + i);
      if (i < s.count) StorePartial(d, LoadPartial(d, from + i, s.count - i), to + i, s.count - i);
    }
  }
}

// ---- sums -----------------------------------------------------------------------------------------------------------

template <size_t kRow, size_t kStep, size_t kTaps, size_t... kTap>
HWY_INLINE void AddRow(std::index_sequence<kTap...>, V t, const V (&weight)[kTaps], V (&sum)[kTileRows]) {
  const auto add = [&](auto tap) HWY_ATTR {
    constexpr size_t k = decltype(tap)::value;
    if constexpr (Meets<kRow, k, kStep, kTileRows>()) {
      sum[(kRow - k) / kStep] = hn::MulAdd(weight[k], t, sum[(kRow - k) / kStep]);
    }
  };
  (add(std::integral_constant<size_t, kTap>()), ...);
}

template <size_t kStep, size_t kTaps, size_t... kRow>
HWY_INLINE void AddRows(std::index_sequence<kRow...>, const float* at, size_t unit, const V (&weight)[kTaps],
                        V (&sum)[kTileRows]) {
  ((AddRow<kRow, kStep>(Indices<kTaps>(), hn::LoadU(D(), at), weight, sum), at += unit), ...);
}

template <size_t... kTap>
HWY_INLINE void SetWeights(std::index_sequence<kTap...>, const float* w, ptrdiff_t stride,
                           V (&weight)[sizeof...(kTap)]) {
  ((weight[kTap] = hn::Set(D(), w[static_cast<ptrdiff_t>(kTap) * stride])), ...);
}

template <size_t... kRow>
HWY_INLINE void Copy(std::index_sequence<kRow...>, const V (&from)[sizeof...(kRow)], V (&to)[sizeof...(kRow)]) {
  ((to[kRow] = from[kRow]), ...);
}

// One column after the other of kTaps rows of taps. kStep 0: one row of taps, and targets share no slab row.
template <size_t kTaps, size_t kStep>
HWY_INLINE void AddTaps(const DepthwiseSlab& s, const RowClasses& c, const float* HWY_RESTRICT from,
                        const float* HWY_RESTRICT w, const DepthwiseWeights& strides, V (&sums)[kTileRows]) {
  V sum[kTileRows];  // of its own: what a branch leads to would else stay in memory
  Copy(Indices<kTileRows>(), sums, sum);
  ColumnWalk column(s);
  for (size_t kx = 0; kx < s.taps_x; ++kx, column.Next(), w += strides.x) {
    V weight[kTaps];
    SetWeights(Indices<kTaps>(), w, strides.y, weight);
    if constexpr (kStep == 0) {
      AddRows<1, 1>(Indices<kTileRows>(), from + column.at(), c.apart, weight, sum);
    } else {
      AddRows<kStep, kTaps>(Indices<(kTileRows - 1) * kStep + kTaps>(), from + column.at(), c.unit, weight, sum);
    }
  }
  Copy(Indices<kTileRows>(), sum, sums);
}

template <size_t kStep>
HWY_NOINLINE void SumTile(const DepthwiseSlab& s, const RowClasses& c, const float* from, const DepthwiseWeights& w,
                          const float* bias, float* HWY_RESTRICT y, size_t y_stride, size_t rows, size_t pixels) {
  const D d;
  V sum[kTileRows];
  for (V& one : sum) one = hn::Zero(d);
  ForTapParts(s.taps_y, kStep == 0 ? 1 : kTileTaps, [&](size_t first, size_t count) HWY_ATTR {
    const float* at = from + first * c.unit;
    const float* weight = w.data + static_cast<ptrdiff_t>(first) * w.y;
    if constexpr (kStep == 0) {
      static_cast<void>(count);
      AddTaps<1, 0>(s, c, at, weight, w, sum);
    } else {
      switch (count) {
        case 1:
          return AddTaps<1, kStep>(s, c, at, weight, w, sum);
        case 2:
          return AddTaps<2, kStep>(s, c, at, weight, w, sum);
        case 3:
          return AddTaps<3, kStep>(s, c, at, weight, w, sum);
        case 4:
          return AddTaps<4, kStep>(s, c, at, weight, w, sum);
        case 5:
          return AddTaps<5, kStep>(s, c, at, weight, w, sum);
        case 6:
          return AddTaps<6, kStep>(s, c, at, weight, w, sum);
        default:
          return AddTaps<7, kStep>(s, c, at, weight, w, sum);
      }
    }
  });
  if (bias) {
    const V b = hn::Set(d, *bias);
    HWY_UNROLL(7)
    for (size_t r = 0; r < kTileRows; ++r) sum[r] = hn::Add(sum[r], b);
  }
  HWY_UNROLL(7)
  for (size_t r = 0; r < kTileRows; ++r, y += y_stride) {
    if (r == rows) return;
    if (pixels >= hn::Lanes(d)) {
      hn::StoreU(sum[r], d, y);
    } else {
      StorePartial(d, sum[r], y, pixels);
    }
  }
}

// kVectors vectors of one row, the last of which may be partial.
template <size_t kVectors>
HWY_NOINLINE void SumLine(const DepthwiseSlab& s, size_t unit, size_t most, const float* from,
                          const DepthwiseWeights& w, const float* bias, float* HWY_RESTRICT y, size_t pixels) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V sum[kVectors];
  HWY_UNROLL(8)
  for (size_t v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  ForTapParts(s.taps_y, most, [&](size_t first, size_t count) HWY_ATTR {
    ColumnWalk column(s);
    for (size_t kx = 0; kx < s.taps_x; ++kx, column.Next()) {
      const float* at = from + first * unit + column.at();
      const float* weight = w.data + static_cast<ptrdiff_t>(first) * w.y + static_cast<ptrdiff_t>(kx) * w.x;
      for (size_t ky = 0; ky < count; ++ky, at += unit, weight += w.y) {
        const V one = hn::Set(d, *weight);
        HWY_UNROLL(8)
        for (size_t v = 0; v < kVectors; ++v) sum[v] = hn::MulAdd(one, hn::LoadU(d, at + v * lanes), sum[v]);
      }
    }
  });
  const V b = hn::Set(d, bias ? *bias : 0.0f);
  HWY_UNROLL(8)
  for (size_t v = 0; v < kVectors; ++v) {
    if (bias) sum[v] = hn::Add(sum[v], b);
    const size_t left = pixels - v * lanes;
    if (v + 1 < kVectors || left >= lanes) {
      hn::StoreU(sum[v], d, y + v * lanes);
    } else {
      StorePartial(d, sum[v], y + v * lanes, left);
    }
  }
}

HWY_INLINE void SumLines(const DepthwiseSlab& s, const RowClasses& c, const float* from, const DepthwiseWeights& w,
                         const float* bias, float* y) {
  const size_t lanes = hn::Lanes(D()), wide = kTileVectors * lanes, most = c.step == 0 ? 1 : kTileTaps;
  if (s.pixels >= wide) {
    for (size_t v = 0; v < s.pixels; v += wide) {
      const size_t at = HWY_MIN(v, s.pixels - wide);
      SumLine<kTileVectors>(s, c.unit, most, from + at, w, bias, y + at, wide);
    }
    return;
  }
  for (size_t v = 0; v < s.pixels;) {
    const size_t left = s.pixels - v, vectors = (left + lanes - 1) / lanes;
    const size_t some = vectors >= 4 ? 4 : vectors >= 2 ? 2 : 1, pixels = HWY_MIN(left, some * lanes);
    (some == 4   ? &SumLine<4>
     : some == 2 ? &SumLine<2>
                 : &SumLine<1>)(s, c.unit, most, from + v, w, bias, y + v, pixels);
    v += pixels;
  }
}

void SumRows(const DepthwiseSlab& s, size_t planes, const DepthwiseWeights& weights, const DepthwiseSums& out) {
  const RowClasses c(s);
  const auto tile = c.step == 0 ? &SumTile<0> : c.step == 1 ? &SumTile<1> : &SumTile<2>;
  const size_t lanes = hn::Lanes(D());
  DepthwiseWeights w = weights;
  for (size_t p = 0; p < planes; ++p, w.data += w.plane) {
    const float* bias = out.bias ? out.bias + p : nullptr;
    for (size_t k = 0; k < HWY_MIN(c.count, s.rows); ++k) {
      const float* from = s.data + p * s.plane_stride + k * s.step * s.row_stride;
      float* y = out.y + p * out.plane_stride + k * out.row_stride;
      const size_t rows = (s.rows - k + c.count - 1) / c.count, y_stride = c.count * out.row_stride;
      if (rows < kLeastRows) {
        for (size_t q = 0; q < rows; ++q) SumLines(s, c, from + q * c.apart, w, bias, y + q * y_stride);
        continue;
      }
      for (size_t q = 0; q < rows; q += kTileRows) {
        const size_t u = rows < kTileRows ? 0 : HWY_MIN(q, rows - kTileRows), some = HWY_MIN(rows, kTileRows);
        for (size_t v = 0; v < s.pixels; v += lanes) {
          tile(s, c, from + u * c.apart + v, w, bias, y + u * y_stride + v, y_stride, some, s.pixels - v);
        }
      }
    }
  }
}

// ---- phases of a stride
// -----------------------------------------------------------------------------------------------

template <size_t kPhases>
HWY_INLINE void Interleave(const float* from, size_t stride, float* HWY_RESTRICT to) {
  const D d;
  const V a = hn::LoadU(d, from), b = hn::LoadU(d, from + stride);
  if constexpr (kPhases == 2) {
    hn::StoreInterleaved2(a, b, d, to);
  } else if constexpr (kPhases == 3) {
    hn::StoreInterleaved3(a, b, hn::LoadU(d, from + 2 * stride), d, to);
  } else {
    hn::StoreInterleaved4(a, b, hn::LoadU(d, from + 2 * stride), hn::LoadU(d, from + 3 * stride), d, to);
  }
}

template <size_t kPhases>
HWY_INLINE void MergeRow(const float* from, size_t stride, size_t width, float* HWY_RESTRICT to) {
  const D d;
  const size_t lanes = hn::Lanes(d), wide = kPhases * lanes;
  size_t x = 0;
  for (; x + wide <= width; x += wide, from += lanes) Interleave<kPhases>(from, stride, to + x);
  if (x == width) return;
  HWY_ALIGN float last[kPhases * hn::MaxLanes(D())];
  Interleave<kPhases>(from, stride, last);
  size_t i = 0;
  for (; x + i + lanes <= width; i += lanes) hn::StoreU(hn::Load(d, last + i), d, to + x + i);
  if (x + i < width) StorePartial(d, hn::Load(d, last + i), to + x + i, width - x - i);
}

void MergePhases(const DepthwisePhases& s, size_t planes, size_t rows, size_t width, float* HWY_RESTRICT to,
                 size_t to_plane_stride, size_t to_row_stride) {
  for (size_t p = 0; p < planes; ++p) {
    for (size_t r = 0; r < rows; ++r) {
      const float* from = s.data + p * s.plane_stride + r * s.row_stride;
      float* row = to + p * to_plane_stride + r * to_row_stride;
      switch (s.count) {
        case 1:
          std::memcpy(row, from, width * sizeof(float));
          break;
        case 2:
          MergeRow<2>(from, s.phase_stride, width, row);
          break;
        case 3:
          MergeRow<3>(from, s.phase_stride, width, row);
          break;
        case 4:
          MergeRow<4>(from, s.phase_stride, width, row);
          break;
        default:
          for (size_t k = 0; k < s.count; ++k) {
            const float* pixel = from + k * s.phase_stride;
            for (size_t v = k; v < width; v += s.count) row[v] = *pixel++;
          }
      }
    }
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void depthwise_split(const SlabRows& rows, size_t planes, float* slab) noexcept {
  BNNS_DISPATCH(SplitRows)(rows, planes, slab);
}
void depthwise_sums(const DepthwiseSlab& slab, size_t planes, const DepthwiseWeights& w,
                    const DepthwiseSums& out) noexcept {
  BNNS_DISPATCH(SumRows)(slab, planes, w, out);
}
void depthwise_merge(const DepthwisePhases& phases, size_t planes, size_t rows, size_t width, float* to,
                     size_t to_plane_stride, size_t to_row_stride) noexcept {
  BNNS_DISPATCH(MergePhases)(phases, planes, rows, width, to, to_plane_stride, to_row_stride);
}

}  // namespace bnns
#endif
