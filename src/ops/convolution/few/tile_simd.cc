// The kernels of few channels: a register tile of target channels by vectors of pixels, and copies of rows.

#include "src/ops/convolution/few/few.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/convolution/few/tile_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/ops/convolution/common/span-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// kRows channels by kVectors vectors from number j on. A load of pixels serves kRows multiply-adds, a weight kVectors.
template <size_t kRows, size_t kVectors, FewStore kStore>
HWY_NOINLINE void Tile(FewTile& t, size_t j) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V sum[kRows * kVectors];
  HWY_UNROLL(32)
  for (size_t i = 0; i < kRows * kVectors; ++i) sum[i] = hn::Zero(d);
  for (size_t c = 0; c < t.channels; ++c) {
    const float* HWY_RESTRICT x = t.x + c * t.channel_stride + j;
    const float* HWY_RESTRICT a = t.a + c * t.a_stride;
    prefetch_ahead(t);
    for (size_t k = 0; k < t.taps; ++k, a += kRows) {
      const float* HWY_RESTRICT at = x + t.offset[k];
      V b[kVectors];
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) b[v] = hn::LoadU(d, at + v * lanes);
      HWY_UNROLL(13)
      for (size_t r = 0; r < kRows; ++r) {
        const V w = hn::Set(d, a[r]);
        HWY_UNROLL(8)
        for (size_t v = 0; v < kVectors; ++v) sum[r * kVectors + v] = hn::MulAdd(w, b[v], sum[r * kVectors + v]);
      }
    }
  }
  HWY_UNROLL(13)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) {
      float* to = t.y + r * t.y_stride + j + v * lanes;
      const V value = sum[r * kVectors + v];
      if constexpr (kStore == FewStore::non_temporal) {
        hn::Stream(t.bias ? hn::Add(value, hn::Set(d, t.bias[r])) : value, d, to);
      } else if constexpr (kStore == FewStore::plain) {
        hn::StoreU(value, d, to);
      } else if (j + (v + 1) * lanes <= t.flat) {
        hn::StoreU(hn::Add(hn::LoadU(d, to), value), d, to);
      } else if (j + v * lanes < t.flat) {
        const size_t left = t.flat - j - v * lanes;
        StorePartial(d, hn::Add(LoadPartial(d, to, left), value), to, left);
      }
    }
  }
}

// As many vectors as the registers hold beside a weight: their pixels, and the sums of each row.
constexpr size_t VectorsFor(size_t rows) {
  constexpr size_t kRegisters = HWY_TARGET == HWY_AVX3 ? 32 : 16;
  return HWY_MAX(size_t{1}, HWY_MIN(size_t{8}, (kRegisters - 1) / (rows + 1)));
}

template <size_t kRows, size_t kVectors, FewStore kStore>
HWY_INLINE void TileOf(size_t vectors, FewTile& t, size_t j) {
  if constexpr (kVectors > 1) {
    if (vectors < kVectors) return TileOf<kRows, kVectors - 1, kStore>(vectors, t, j);
  }
  Tile<kRows, kVectors, kStore>(t, j);
}

// As few tiles as there can be, of almost one size.
template <size_t kRows, FewStore kStore>
HWY_NOINLINE void Tiles(FewTile& t) {
  constexpr size_t kMost = VectorsFor(kRows);
  const size_t lanes = hn::Lanes(D());
  size_t j = 0, left = (t.flat + lanes - 1) / lanes;
  for (size_t tiles = (left + kMost - 1) / kMost; tiles > 0; --tiles) {
    const size_t vectors = (left + tiles - 1) / tiles;
    TileOf<kRows, kMost, kStore>(vectors, t, j);
    j += vectors * lanes, left -= vectors;
  }
}

template <size_t kRows, FewStore kStore>
HWY_INLINE void TileRows(FewTile& t) {
  if constexpr (kRows > 1) {
    if (t.rows < kRows) return TileRows<kRows - 1, kStore>(t);
  }
  Tiles<kRows, kStore>(t);
}

void FewTileRows(FewTile& t) {
  switch (t.store) {
    case FewStore::plain:
      return TileRows<kFewTallRows, FewStore::plain>(t);
    case FewStore::add:
      return TileRows<kFewTallRows, FewStore::add>(t);
    case FewStore::non_temporal:
      return TileRows<kFewTallRows, FewStore::non_temporal>(t);
  }
}

void FewFoldRows(const FewFold& f) {
  const D d;
  const ptrdiff_t lanes = SignedLanes(d), end = static_cast<ptrdiff_t>(f.to_width);
  for (ptrdiff_t v = 0; v < end; v += lanes) {
    Span<D> span[kFewRows];
    for (size_t k = 0; k < f.copies; ++k) {
      span[k] = Span<D>(d, v + f.first - static_cast<ptrdiff_t>(k), static_cast<ptrdiff_t>(f.width));
    }
    const float* from = f.x + v + f.first;
    float* to = f.to + v;
    for (size_t u = 0; u < f.rows; ++u, from += f.row_stride, to += f.to_stride) {
      V sum = span[0].Load(d, from);
      for (size_t k = 1; k < f.copies; ++k) sum = hn::Add(sum, span[k].Load(d, from + k * f.copy_stride - k));
      if (end - v >= lanes) {
        hn::StoreU(sum, d, to);
      } else {
        StorePartial(d, sum, to, static_cast<size_t>(end - v));
      }
    }
  }
}

template <bool kBias>
HWY_INLINE void CopyRows(const float* HWY_RESTRICT from, size_t from_stride, size_t rows, size_t width, V b,
                         float* HWY_RESTRICT to, size_t to_stride) {
  const D d;
  const size_t lanes = hn::Lanes(d), whole = width / lanes * lanes, rest = width - whole;
  for (size_t u = 0; u < rows; ++u, from += from_stride, to += to_stride) {
    for (size_t v = 0; v < whole; v += lanes) {
      const V x = hn::LoadU(d, from + v);
      hn::StoreU(kBias ? hn::Add(x, b) : x, d, to + v);
    }
    if (rest) {
      const V x = LoadPartial(d, from + whole, rest);
      StorePartial(d, kBias ? hn::Add(x, b) : x, to + whole, rest);
    }
  }
}

void FewCopyRows(const float* from, size_t from_stride, size_t rows, size_t width, const float* bias, float* to,
                 size_t to_stride) {
  const D d;
  if (bias) {
    CopyRows<true>(from, from_stride, rows, width, hn::Set(d, *bias), to, to_stride);
  } else {
    CopyRows<false>(from, from_stride, rows, width, hn::Zero(d), to, to_stride);
  }
}

void FewPadRows(const float* HWY_RESTRICT from, size_t from_stride, size_t rows, size_t lead, size_t count,
                float* HWY_RESTRICT to, size_t width) {
  const D d;
  const ptrdiff_t lanes = SignedLanes(d), first = -static_cast<ptrdiff_t>(lead), end = static_cast<ptrdiff_t>(count);
  const size_t left = (width - 1) % hn::Lanes(d) + 1;
  const auto last = static_cast<ptrdiff_t>(width - left);
  const Span<D> left_span(d, first, end), right_span(d, last + first, end);
  for (size_t u = 0; u < rows; ++u, from += from_stride, to += width) {
    const float* at = from + first;
    if (last > 0) hn::StoreU(left_span.Load(d, at), d, to);
    for (ptrdiff_t v = lanes; v < last; v += lanes) {
      const bool whole = v + first >= 0 && v + first + lanes <= end;
      hn::StoreU(whole ? hn::LoadU(d, at + v) : Span<D>(d, v + first, end).Load(d, at + v), d, to + v);
    }
    StorePartial(d, right_span.Load(d, at + last), to + last, left);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void few_tile(FewTile& tile) noexcept {
  BNNS_DISPATCH(FewTileRows)(tile);
}
void few_copy_rows(const float* from, size_t from_stride, size_t rows, size_t width, const float* bias, float* to,
                   size_t to_stride) noexcept {
  BNNS_DISPATCH(FewCopyRows)(from, from_stride, rows, width, bias, to, to_stride);
}
void few_pad_rows(const float* from, size_t from_stride, size_t rows, size_t lead, size_t count, float* to,
                  size_t width) noexcept {
  BNNS_DISPATCH(FewPadRows)(from, from_stride, rows, lead, count, to, width);
}
void few_fold_rows(const FewFold& fold) noexcept {
  BNNS_DISPATCH(FewFoldRows)(fold);
}

}  // namespace bnns
#endif
