// The kernels of depthwise weight gradients of any window, on slabs: dot products of g with shifted rows.
//
// The sums of up to seven by three taps stay in registers over a whole plane; a tile of g, some rows of one vector,
// multiplies each row of the slab that its taps meet, which is loaded once for all of them.

#include "src/ops/convolution/depthwise/rows.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/depthwise/products_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/ops/convolution/depthwise/rows-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Sums for a part of a window in registers: kTaps rows by kColumns columns of taps, for target rows kRows at a time.
constexpr bool kManyRegisters = HWY_TARGET == HWY_AVX3;
constexpr size_t kDotRows = kManyRegisters ? 7 : 3;
constexpr size_t ColumnsOf(size_t taps) {
  return kManyRegisters ? (taps <= 5 ? 3 : 2) : taps <= 3 ? 3 : taps <= 5 ? 2 : 1;
}

template <size_t... kRow>
HWY_INLINE void LoadGradients(std::index_sequence<kRow...>, const float* g, size_t stride, size_t pixels,
                              V (&gs)[sizeof...(kRow)]) {
  const D d;
  if (pixels >= hn::Lanes(d)) {
    ((gs[kRow] = hn::LoadU(d, g + kRow * stride)), ...);
  } else {
    ((gs[kRow] = LoadPartial(d, g + kRow * stride, pixels)), ...);
  }
}

// One row of the slab, read at one column of taps: kPlace in sum.
template <size_t kRow, size_t kStep, size_t kPlace, size_t kColumns, size_t kRows, size_t kSums, size_t... kTap>
HWY_INLINE void AddProducts(std::index_sequence<kTap...>, V t, const V (&gs)[kRows], V (&sum)[kSums]) {
  const auto add = [&](auto tap) HWY_ATTR {
    constexpr size_t k = decltype(tap)::value;
    if constexpr (Meets<kRow, k, kStep, kRows>()) {
      sum[k * kColumns + kPlace] = hn::MulAdd(gs[(kRow - k) / kStep], t, sum[k * kColumns + kPlace]);
    }
  };
  (add(std::integral_constant<size_t, kTap>()), ...);
}

template <size_t kRow, size_t kStep, size_t kTaps, size_t kRows, size_t kSums, size_t... kColumn>
HWY_INLINE void AddColumns(std::index_sequence<kColumn...>, hn::Mask<D> mask,
                           const ptrdiff_t (&column)[sizeof...(kColumn)], const float* at, const V (&gs)[kRows],
                           V (&sum)[kSums]) {
  const D d;
  (AddProducts<kRow, kStep, kColumn, sizeof...(kColumn)>(
       Indices<kTaps>(), hn::IfThenElseZero(mask, hn::LoadU(d, at + column[kColumn])), gs, sum),
   ...);
}

template <size_t kStep, size_t kTaps, size_t kColumns, size_t kRows, size_t... kRow>
HWY_INLINE void DotTile(std::index_sequence<kRow...>, const ptrdiff_t (&column)[kColumns], const float* at, size_t unit,
                        size_t pixels, const V (&gs)[kRows], V (&sum)[kTaps * kColumns]) {
  const D d;
  const auto mask = hn::FirstN(d, HWY_MIN(pixels, hn::Lanes(d)));  // the other lanes may hold anything
  ((AddColumns<kRow, kStep, kTaps>(Indices<kColumns>(), mask, column, at, gs, sum), at += unit), ...);
}

// kRows target rows, all vectors of them. kStep 0: one row of taps, and targets share no slab row.
template <size_t kTaps, size_t kColumns, size_t kStep, size_t kRows>
HWY_INLINE void DotRows(const DepthwiseSlab& s, const RowClasses& c, const ptrdiff_t (&column)[kColumns],
                        const float* from, const float* g, size_t g_stride, V (&sum)[kTaps * kColumns]) {
  for (size_t v = 0; v < s.pixels; v += hn::Lanes(D())) {
    V gs[kRows];
    LoadGradients(Indices<kRows>(), g + v, g_stride, s.pixels - v, gs);
    if constexpr (kStep == 0) {
      DotTile<1, 1>(Indices<kRows>(), column, from + v, c.apart, s.pixels - v, gs, sum);
    } else {
      DotTile<kStep, kTaps>(Indices<(kRows - 1) * kStep + kTaps>(), column, from + v, c.unit, s.pixels - v, gs, sum);
    }
  }
}

// Taps (first + ky, kx + j) of one class of rows.
template <size_t kTaps, size_t kColumns, size_t kStep>
HWY_NOINLINE void DotColumns(const DepthwiseSlab& s, const RowClasses& c, const float* from, size_t kx, const float* g,
                             size_t g_stride, size_t rows, float* HWY_RESTRICT lanes_of) {
  const D d;
  V sum[kTaps * kColumns];
  ptrdiff_t column[kColumns];
  for (size_t j = 0; j < kColumns; ++j) column[j] = static_cast<ptrdiff_t>(s.column(kx + j));
  for (size_t k = 0; k < kTaps * kColumns; ++k) {
    sum[k] = hn::Load(d, lanes_of + (k / kColumns * s.taps_x + kx + k % kColumns) * kSumLanes);
  }
  size_t q = 0;
  for (; q + kDotRows <= rows; q += kDotRows) {
    DotRows<kTaps, kColumns, kStep, kDotRows>(s, c, column, from + q * c.apart, g + q * g_stride, g_stride, sum);
  }
  for (; q < rows; ++q) {
    DotRows<kTaps, kColumns, kStep, 1>(s, c, column, from + q * c.apart, g + q * g_stride, g_stride, sum);
  }
  for (size_t k = 0; k < kTaps * kColumns; ++k) {
    hn::Store(sum[k], d, lanes_of + (k / kColumns * s.taps_x + kx + k % kColumns) * kSumLanes);
  }
}

template <size_t kTaps, size_t kStep>
HWY_INLINE void DotTaps(const DepthwiseSlab& s, const RowClasses& c, const float* from, const float* g, size_t g_stride,
                        size_t rows, float* lanes_of) {
  constexpr size_t kColumns = ColumnsOf(kTaps);
  size_t kx = 0;
  for (; kx + kColumns <= s.taps_x; kx += kColumns) {
    DotColumns<kTaps, kColumns, kStep>(s, c, from, kx, g, g_stride, rows, lanes_of);
  }
  for (; kx < s.taps_x; ++kx) DotColumns<kTaps, 1, kStep>(s, c, from, kx, g, g_stride, rows, lanes_of);
}

template <size_t kStep>
HWY_INLINE void DotPart(size_t taps, const DepthwiseSlab& s, const RowClasses& c, const float* from, const float* g,
                        size_t g_stride, size_t rows, float* lanes_of) {
  if constexpr (kStep == 0) {
    static_cast<void>(taps);
    return DotTaps<1, 0>(s, c, from, g, g_stride, rows, lanes_of);
  } else {
    switch (taps) {
      case 1:
        return DotTaps<1, kStep>(s, c, from, g, g_stride, rows, lanes_of);
      case 2:
        return DotTaps<2, kStep>(s, c, from, g, g_stride, rows, lanes_of);
      case 3:
        return DotTaps<3, kStep>(s, c, from, g, g_stride, rows, lanes_of);
      case 4:
        return DotTaps<4, kStep>(s, c, from, g, g_stride, rows, lanes_of);
      case 5:
        return DotTaps<5, kStep>(s, c, from, g, g_stride, rows, lanes_of);
      case 6:
        return DotTaps<6, kStep>(s, c, from, g, g_stride, rows, lanes_of);
      default:
        return DotTaps<7, kStep>(s, c, from, g, g_stride, rows, lanes_of);
    }
  }
}

void Products(const DepthwiseSlab& s, size_t planes, const float* g, size_t g_plane_stride, size_t g_row_stride,
              float* lanes) {
  const RowClasses c(s);
  for (size_t p = 0; p < planes; ++p, g += g_plane_stride, lanes += s.taps_y * s.taps_x * kSumLanes) {
    for (size_t k = 0; k < HWY_MIN(c.count, s.rows); ++k) {
      const float* from = s.data + p * s.plane_stride + k * s.step * s.row_stride;
      const size_t rows = (s.rows - k + c.count - 1) / c.count;
      ForTapParts(s.taps_y, c.step == 0 ? 1 : kTileTaps, [&](size_t first, size_t count) HWY_ATTR {
        (c.step == 0   ? &DotPart<0>
         : c.step == 1 ? &DotPart<1>
                       : &DotPart<2>)(count, s, c, from + first * c.unit, g + k * g_row_stride, c.count * g_row_stride,
                                      rows, lanes + first * s.taps_x * kSumLanes);
      });
    }
  }
}

void Fold(float* lanes, size_t count, double* sum) {
  const D d;
  for (size_t i = 0; i < count; ++i, lanes += kSumLanes) {
    sum[i] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Load(d, lanes))));
    hn::Store(hn::Zero(d), d, lanes);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void depthwise_products(const DepthwiseSlab& slab, size_t planes, const float* g, size_t g_plane_stride,
                        size_t g_row_stride, float* lanes) noexcept {
  BNNS_DISPATCH(Products)(slab, planes, g, g_plane_stride, g_row_stride, lanes);
}
void depthwise_fold(float* lanes, size_t count, double* sum) noexcept {
  BNNS_DISPATCH(Fold)(lanes, count, sum);
}

}  // namespace bnns
#endif
