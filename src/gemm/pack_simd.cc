// Packing of plain matrices: element (r, k) at data[r * row_stride + k * depth_stride], f32, f16, bf16 or bytes, into
// panels of `tile` rows, f32 (pack.h). Three algorithms:
//   rows contiguous    whole vectors are copied
//   depth contiguous   lanes x lanes blocks are transposed in registers; whole cache lines are read, because rows a
//   power
//                      of two apart share a cache set and a line may be gone when it is asked for again
//   neither            elements are gathered one by one
// A store may run past the row it writes, into the next k (written later) or the slack behind the panel. Where a panel
// row takes several vectors, the last goes first, so that its overhang is overwritten too.

#include <hwy/cache_control.h>

#include <cstdint>

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
  const T* data;  // element (rows.begin, depth.begin)
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

// Rows of the source that are prefetched: with 2 KB rows, 16 KB are on their way.
inline constexpr ptrdiff_t kRowsAhead = 8;

// k outermost: a row of the source is read from end to end, as the prefetchers like it.
template <class T>
void PackRows(const Source<T>& s, const PackedBlock& out) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const size_t last = (out.tile - 1) / lanes * lanes;
  // Panels whose vectors, overhang included, lie within the source.
  size_t whole = 0;
  while ((whole + 1) * out.tile <= s.rows && whole * out.tile + last + lanes <= s.rows) ++whole;
  const uintptr_t ahead_bytes = static_cast<uintptr_t>(s.depth_stride * kRowsAhead * static_cast<ptrdiff_t>(sizeof(T)));
  for (size_t k = 0; k < s.depth; ++k) {
    const T* from = s.data + static_cast<ptrdiff_t>(k) * s.depth_stride;
    float* to = out.data + k * out.tile;
    // Short rows defeat the hardware's prefetchers; running past the matrix is harmless.
    const char* ahead = reinterpret_cast<const char*>(reinterpret_cast<uintptr_t>(from) + ahead_bytes);
    if (out.tile == 2 * lanes) {
      for (size_t g = 0; g < whole; ++g) {
        hwy::Prefetch(ahead);
        if (out.tile * sizeof(T) > 64) hwy::Prefetch(ahead + 64);
        ahead += out.tile * sizeof(T);
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
      // Prefetches what a caller who packs a tile at a time reads next, when this one is used up: a line of each of
      // many pages. To L2: rows that are powers of 2 apart would push each other out of L1.
      __builtin_prefetch(from, 0, 2);
      __builtin_prefetch(from + out.tile, 0, 2);
    }
  }
  // Panels at the edge: the last vector, or two, of a row are partial.
  for (size_t g = whole; g * out.tile < s.rows; ++g) {
    const size_t rows = HWY_MIN(out.tile, s.rows - g * out.tile);
    float* panel = out.data + g * out.panel_stride;
    for (size_t k = 0; k < s.depth; ++k, panel += out.tile) {
      const T* from = s.data + g * out.tile + static_cast<ptrdiff_t>(k) * s.depth_stride;
      for (size_t r = (rows - 1) / lanes * lanes + lanes; r != 0;) {
        r -= lanes;
        const size_t left = s.rows - g * out.tile - r;
        hn::StoreU(left >= lanes ? LoadFloats(d, from + r) : LoadFirst(d, from + r, left), d, panel + r);
      }
    }
  }
}

#if !HWY_HAVE_SCALABLE
// A 4 x 4 transpose in every 128-bit block.
HWY_INLINE void TransposeBlocks(D d, V& v0, V& v1, V& v2, V& v3) {
  const hn::Repartition<double, D> d64;
  const auto p0 = hn::BitCast(d64, hn::InterleaveLower(d, v0, v1)),
             p1 = hn::BitCast(d64, hn::InterleaveLower(d, v2, v3));
  const auto p2 = hn::BitCast(d64, hn::InterleaveUpper(d, v0, v1)),
             p3 = hn::BitCast(d64, hn::InterleaveUpper(d, v2, v3));
  v0 = hn::BitCast(d, hn::InterleaveLower(d64, p0, p1));
  v1 = hn::BitCast(d, hn::InterleaveUpper(d64, p0, p1));
  v2 = hn::BitCast(d, hn::InterleaveLower(d64, p2, p3));
  v3 = hn::BitCast(d, hn::InterleaveUpper(d64, p2, p3));
}

// to[j * stride] for j < count <= lanes is column j of the block whose row i begins at rows[i] + k. Stores go upwards
// in j (see the overhang above). load(d, p) reads a vector.
template <class T, class Load>
HWY_INLINE void TransposeStore(D d, const T* const* rows, size_t k, size_t count, size_t stride, float* to, Load load) {
#define BNNS_LOAD4(name, i)                                                                                 \
  V name##0 = load(d, rows[i] + k), name##1 = load(d, rows[i + 1] + k), name##2 = load(d, rows[i + 2] + k), \
    name##3 = load(d, rows[i + 3] + k);                                                                     \
  TransposeBlocks(d, name##0, name##1, name##2, name##3);
#define BNNS_STORE4(v0, v1, v2, v3, j)                         \
  if (j + 0 < count) hn::StoreU(v0, d, to + (j + 0) * stride); \
  if (j + 1 < count) hn::StoreU(v1, d, to + (j + 1) * stride); \
  if (j + 2 < count) hn::StoreU(v2, d, to + (j + 2) * stride); \
  if (j + 3 < count) hn::StoreU(v3, d, to + (j + 3) * stride);
#if HWY_TARGET == HWY_AVX3
  // Block b of an a_j, b_j, c_j, e_j holds column 4 b + j of four rows: a 4 x 4 transpose of blocks is left.
  BNNS_LOAD4(a, 0)
  BNNS_LOAD4(b, 4)
  BNNS_LOAD4(c, 8)
  BNNS_LOAD4(e, 12)
#define BNNS_BLOCKS(j)                                                                            \
  const V l##j = hn::ConcatLowerLower(d, c##j, a##j), m##j = hn::ConcatLowerLower(d, e##j, b##j); \
  const V u##j = hn::ConcatUpperUpper(d, c##j, a##j), w##j = hn::ConcatUpperUpper(d, e##j, b##j); \
  a##j = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(m##j), l##j);                                   \
  b##j = hn::OddEvenBlocks(m##j, hn::SwapAdjacentBlocks(l##j));                                   \
  c##j = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(w##j), u##j);                                   \
  e##j = hn::OddEvenBlocks(w##j, hn::SwapAdjacentBlocks(u##j));
  BNNS_BLOCKS(0)
  BNNS_BLOCKS(1)
  BNNS_BLOCKS(2)
  BNNS_BLOCKS(3)
#undef BNNS_BLOCKS
  // clang-format off: it never settles on lines of macro calls that follow a directive
  BNNS_STORE4(a0, a1, a2, a3, 0)
  BNNS_STORE4(b0, b1, b2, b3, 4)
  BNNS_STORE4(c0, c1, c2, c3, 8)
  BNNS_STORE4(e0, e1, e2, e3, 12)
  // clang-format on
#elif HWY_TARGET == HWY_AVX2
  BNNS_LOAD4(a, 0)
  BNNS_LOAD4(b, 4)
  BNNS_STORE4(hn::ConcatLowerLower(d, b0, a0), hn::ConcatLowerLower(d, b1, a1), hn::ConcatLowerLower(d, b2, a2),
              hn::ConcatLowerLower(d, b3, a3), 0)
  BNNS_STORE4(hn::ConcatUpperUpper(d, b0, a0), hn::ConcatUpperUpper(d, b1, a1), hn::ConcatUpperUpper(d, b2, a2),
              hn::ConcatUpperUpper(d, b3, a3), 4)
#else  // 128-bit vectors
  BNNS_LOAD4(a, 0)
  BNNS_STORE4(a0, a1, a2, a3, 0)
#endif
#undef BNNS_LOAD4
#undef BNNS_STORE4
}

template <class T>
void PackDepth(const Source<T>& s, const PackedBlock& out) {
  const D d;
  constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(float);
  const size_t lanes = hn::Lanes(d);
  float* panel = out.data;
  for (size_t g = 0; g < s.rows; g += out.tile, panel += out.panel_stride) {
    const size_t rows = HWY_MIN(out.tile, s.rows - g);
    for (size_t r = (rows - 1) / lanes * lanes + lanes; r != 0;) {
      r -= lanes;
      // Rows that the source does not have are read from its last one; nobody looks at the result.
      const T* row[kLanes];
      for (size_t i = 0; i < lanes; ++i) {
        row[i] = s.data + static_cast<ptrdiff_t>(HWY_MIN(g + r + i, s.rows - 1)) * s.row_stride;
      }
      float* to = panel + r;
      size_t k = 0;
      for (; k + lanes <= s.depth; k += lanes) {
        TransposeStore(d, row, k, lanes, out.tile, to + k * out.tile,
                       [](D d, const T* p) HWY_ATTR { return LoadFloats(d, p); });
      }
      if (const size_t left = s.depth - k) {
        TransposeStore(d, row, k, left, out.tile, to + k * out.tile,
                       [left](D d, const T* p) HWY_ATTR { return LoadFirst(d, p, left); });
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
    if (k < s.depth) hn::StoreU(LoadFirst(d, from + k, s.depth - k), d, to + k);  // the slack takes the overhang
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
  WithElement(lens.type, [&](auto element) { PackTyped<decltype(element)>(lens, rows, depth, out); });
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
