// Packing of plain matrices: element (r, k) at data[r * row_stride + k * depth_stride], f32, f16 or bf16, into panels of
// `tile` rows, f32 (pack.h). Three ways:
//   rows contiguous    whole vectors are copied
//   depth contiguous   4 x lanes blocks are transposed in registers
//   neither            elements are gathered one by one
// A store may run past the row it writes, into the next k (written later) or the slack behind the panel. Where a panel
// row takes several vectors, the last goes first, so that its overhang is overwritten too.

#include <cstring>

#include "src/gemm/pack.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/gemm/pack_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
#include "src/gemm/load-inl.h"
#include "src/simd/dispatch.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <class T>
struct Source {
  const T* data;   // element (rows.begin, depth.begin)
  ptrdiff_t row_stride, depth_stride;
  size_t rows, depth;
};

// Rows [r, r + count) at depth k, gathered; lanes beyond them are zero.
template <class T>
HWY_INLINE V Gather(D d, const Source<T>& s, size_t r, size_t count, size_t k) {
  T some[HWY_MAX_BYTES / sizeof(float)] = {};
  for (size_t i = 0; i < count; ++i) {
    some[i] = s.data[static_cast<ptrdiff_t>(r + i) * s.row_stride + static_cast<ptrdiff_t>(k) * s.depth_stride];
  }
  return LoadFloats(d, some);
}

template <class T>
void PackGather(const Source<T>& s, const PackedBlock& out) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  float* panel = out.data;
  for (size_t g = 0; g < s.rows; g += out.tile, panel += out.panel_stride) {
    for (size_t k = 0; k < s.depth; ++k) {
      for (size_t r = (out.tile - 1) / lanes * lanes + lanes; r != 0;) {
        r -= lanes;
        const size_t count = g + r < s.rows ? HWY_MIN(lanes, s.rows - g - r) : 0;
        hn::StoreU(Gather(d, s, g + r, count, k), d, panel + k * out.tile + r);
      }
    }
  }
}

// k outermost: a row of the source is read from end to end, as the prefetchers like it.
template <class T>
void PackRows(const Source<T>& s, const PackedBlock& out) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const size_t last = (out.tile - 1) / lanes * lanes;
  // Panels whose vectors, overhang included, lie within the source.
  size_t whole = 0;
  while ((whole + 1) * out.tile <= s.rows && whole * out.tile + last + lanes <= s.rows) ++whole;
  for (size_t k = 0; k < s.depth; ++k) {
    const T* from = s.data + static_cast<ptrdiff_t>(k) * s.depth_stride;
    float* to = out.data + k * out.tile;
    if (out.tile == 2 * lanes) {
      for (size_t g = 0; g < whole; ++g) {
        const V v0 = LoadFloats(d, from), v1 = LoadFloats(d, from + lanes);
        hn::StoreU(v0, d, to);
        hn::StoreU(v1, d, to + lanes);
        from += out.tile;
        to += out.panel_stride;
      }
    } else {
      for (size_t g = 0; g < whole; ++g) {
        for (size_t r = last + lanes; r != 0;) {
          r -= lanes;
          hn::StoreU(LoadFloats(d, from + r), d, to + r);
        }
        from += out.tile;
        to += out.panel_stride;
      }
    }
  }
  if (whole * out.tile < s.rows) {
    const size_t done = whole * out.tile;
    const Source<T> rest{s.data + done, s.row_stride, s.depth_stride, s.rows - done, s.depth};
    PackGather(rest, {out.data + whole * out.panel_stride, out.tile, out.panel_stride});
  }
}

#if !HWY_HAVE_SCALABLE
// Four consecutive elements from each of `lanes` rows: 128-bit block b of the result holds row 4 * b.
template <class T, class DF>
HWY_INLINE hn::Vec<DF> LoadBlocks(DF d, const T* const* rows, size_t k) {
  if constexpr (hn::MaxLanes(DF()) <= 4) {
    return LoadFloats(d, rows[0] + k);
  } else {
    const hn::Half<DF> half;
    return hn::Combine(d, LoadBlocks(half, rows + hn::Lanes(half), k), LoadBlocks(half, rows, k));
  }
}

template <class T>
void PackDepth(const Source<T>& s, const PackedBlock& out) {
  const D d;
  const hn::RepartitionToWide<decltype(hn::RebindToSigned<D>())> d64;
  const size_t lanes = hn::Lanes(d);
  const size_t depth4 = s.depth / 4 * 4;
  float* panel = out.data;
  for (size_t g = 0; g < s.rows; g += out.tile, panel += out.panel_stride) {
    const size_t rows = HWY_MIN(out.tile, s.rows - g);
    for (size_t r = (rows - 1) / lanes * lanes + lanes; r != 0;) {
      r -= lanes;
      // Rows that the source does not have are read from its last one; nobody looks at the result.
      const T* row[HWY_MAX_BYTES / sizeof(float)];
      for (size_t i = 0; i < lanes; ++i) {
        row[i] = s.data + static_cast<ptrdiff_t>(HWY_MIN(g + r + i, s.rows - 1)) * s.row_stride;
      }
      float* to = panel + r;
      for (size_t k = 0; k < depth4; k += 4) {
        const V v0 = LoadBlocks<T>(d, row, k), v1 = LoadBlocks<T>(d, row + 1, k);
        const V v2 = LoadBlocks<T>(d, row + 2, k), v3 = LoadBlocks<T>(d, row + 3, k);
        // 4 x 4 transposes in each 128-bit block: of 32-bit pairs, then of 64-bit pairs.
        const auto p0 = hn::BitCast(d64, hn::InterleaveLower(d, v0, v1)), p1 = hn::BitCast(d64, hn::InterleaveLower(d, v2, v3));
        const auto p2 = hn::BitCast(d64, hn::InterleaveUpper(d, v0, v1)), p3 = hn::BitCast(d64, hn::InterleaveUpper(d, v2, v3));
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, p0, p1)), d, to + (k + 0) * out.tile);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, p0, p1)), d, to + (k + 1) * out.tile);
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, p2, p3)), d, to + (k + 2) * out.tile);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, p2, p3)), d, to + (k + 3) * out.tile);
      }
      for (size_t k = depth4; k < s.depth; ++k) {
        hn::StoreU(Gather(d, s, g + r, HWY_MIN(lanes, s.rows - g - r), k), d, to + k * out.tile);
      }
    }
  }
}
#else
template <class T>
void PackDepth(const Source<T>& s, const PackedBlock& out) {
  PackGather(s, out);
}
#endif

// tile 1, depth contiguous: a conversion (or copy) of each row.
template <class T>
void PackVectors(const Source<T>& s, const PackedBlock& out) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  for (size_t r = 0; r < s.rows; ++r) {
    const T* from = s.data + static_cast<ptrdiff_t>(r) * s.row_stride;
    float* to = out.data + r * out.panel_stride;
    size_t k = 0;
    for (; k + lanes <= s.depth; k += lanes) hn::StoreU(LoadFloats(d, from + k), d, to + k);
    if (k < s.depth) hn::StoreU(LoadFirst(d, from + k, s.depth - k), d, to + k);   // the slack takes the overhang
  }
}

template <class T>
void PackTyped(const Lens& lens, Range rows, Range depth, const PackedBlock& out) {
  const T* data = static_cast<const T*>(lens.data) + static_cast<ptrdiff_t>(rows.begin) * lens.row_stride +
                  static_cast<ptrdiff_t>(depth.begin) * lens.depth_stride;
  const Source<T> s{data, lens.row_stride, lens.depth_stride, rows.size(), depth.size()};
  if (s.rows == 0 || s.depth == 0) return;
  if (out.tile == 1 && lens.depth_stride == 1) {
    PackVectors(s, out);
  } else if (lens.row_stride == 1) {
    PackRows(s, out);
  } else if (lens.depth_stride == 1) {
    PackDepth(s, out);
  } else {
    PackGather(s, out);
  }
}

void Pack(const Lens& lens, Range rows, Range depth, const PackedBlock& out) {
  switch (lens.type) {
    case FloatType::f32: return PackTyped<float>(lens, rows, depth, out);
    case FloatType::f16: return PackTyped<hwy::float16_t>(lens, rows, depth, out);
    case FloatType::bf16: return PackTyped<hwy::bfloat16_t>(lens, rows, depth, out);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void pack_strided(const Lens& lens, Range rows, Range depth, const PackedBlock& out) noexcept {
  BNNS_DISPATCH(Pack)(lens, rows, depth, out);
}

}  // namespace bnns
#endif
