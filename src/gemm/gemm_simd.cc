// The micro-kernel: a tile of C, up to kTileRows rows by two vectors, held in registers over one depth block.
//   tile[r][j] = sum_k a(r, k) * b(k, j)
// Per k: two vector loads of B, one broadcast load of A per row, two FMA per row. Rows are named variables made by
// an X macro rather than arrays: they stay in registers on every compiler, and sizeless vectors (SVE) allow no arrays.

#include <hwy/cache_control.h>

#include "src/gemm/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/gemm/gemm_simd.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// 28 accumulators + 2 of B + 1 of A of 32 registers; 12 + 2 + 1 (+ 1 for the product without FMA) of 16.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
inline constexpr size_t kTileRows = 6;
#else
inline constexpr size_t kTileRows = 14;
#endif

#define BNNS_EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)

struct TileOut {
  float* c;
  size_t c_stride;
  size_t columns;   // valid ones
  bool accumulate, stream;
};

// The tile's columns beyond out.columns must not be touched: it comes through memory, row by row.
HWY_NOINLINE void StorePartial(const float* HWY_RESTRICT tile, size_t tile_stride, size_t rows, const TileOut& out) {
  for (size_t r = 0; r < rows; ++r) {
    const float* from = tile + r * tile_stride;
    float* to = out.c + r * out.c_stride;
    size_t j = 0;
#if HWY_TARGET == HWY_AVX3
    const D d;
    for (; j < out.columns; j += hn::Lanes(d)) {
      const auto mask = hn::FirstN(d, out.columns - j);
      V v = hn::Load(d, from + j);
      if (out.accumulate) v = hn::Add(v, hn::MaskedLoad(mask, d, to + j));
      hn::BlendedStore(v, mask, d, to + j);
    }
#else
    if (out.accumulate) {
      for (; j < out.columns; ++j) to[j] += from[j];
    } else {
      for (; j < out.columns; ++j) to[j] = from[j];
    }
#endif
  }
}

template <size_t kRows, size_t kVectors, bool kDepthContiguous>
HWY_NOINLINE void Tile(size_t depth, const float* HWY_RESTRICT a, ptrdiff_t a_stride, const float* HWY_RESTRICT b,
                       ptrdiff_t b_stride, const TileOut& out) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  // Rows of C are far apart; by the end of the depth loop they have arrived.
  if (out.accumulate) {
    for (size_t r = 0; r < kRows; ++r) {
      hwy::Prefetch(out.c + r * out.c_stride);
      if (kVectors == 2) hwy::Prefetch(out.c + r * out.c_stride + out.columns - 1);
    }
  }
#define BNNS_ZERO(r) [[maybe_unused]] V c##r##_0 = hn::Zero(d), c##r##_1 = hn::Zero(d);
  BNNS_EACH_ROW(BNNS_ZERO)
#undef BNNS_ZERO
  [[maybe_unused]] const float* a5 = a + 5 * a_stride;    // five rows per base pointer: strides 0, s, 2s, 3s, 4s
  [[maybe_unused]] const float* a10 = a + 10 * a_stride;
  for (size_t k = 0; k < depth; ++k) {
    const V b0 = hn::LoadU(d, b);
    [[maybe_unused]] V b1 = b0;
    if constexpr (kVectors == 2) b1 = hn::LoadU(d, b + lanes);
    b += b_stride;
#define BNNS_FMA(r)                                                                                              \
  if constexpr (r < kRows) {                                                                                     \
    const V x = hn::Set(d, !kDepthContiguous ? a[r] : (r < 5 ? a : r < 10 ? a5 : a10)[(r % 5) * a_stride]);      \
    c##r##_0 = hn::MulAdd(x, b0, c##r##_0);                                                                      \
    if constexpr (kVectors == 2) c##r##_1 = hn::MulAdd(x, b1, c##r##_1);                                         \
  }
    BNNS_EACH_ROW(BNNS_FMA)
#undef BNNS_FMA
    if constexpr (kDepthContiguous) {
      ++a, ++a5, ++a10;
    } else {
      a += a_stride;
    }
  }

  float* c = out.c;
  if (out.columns != kVectors * lanes) {
    HWY_ALIGN float tile[kRows * kVectors * HWY_MAX_BYTES / sizeof(float)];
#define BNNS_SPILL(r)                                                                                    \
  if constexpr (r < kRows) {                                                                             \
    hn::Store(c##r##_0, d, tile + r * kVectors * lanes);                                                 \
    if constexpr (kVectors == 2) hn::Store(c##r##_1, d, tile + r * kVectors * lanes + lanes);            \
  }
    BNNS_EACH_ROW(BNNS_SPILL)
#undef BNNS_SPILL
    StorePartial(tile, kVectors * lanes, kRows, out);
  } else if (out.accumulate) {
#define BNNS_ADD(r)                                                                                                \
  if constexpr (r < kRows) {                                                                                       \
    hn::StoreU(hn::Add(hn::LoadU(d, c), c##r##_0), d, c);                                                          \
    if constexpr (kVectors == 2) hn::StoreU(hn::Add(hn::LoadU(d, c + lanes), c##r##_1), d, c + lanes);             \
    c += out.c_stride;                                                                                             \
  }
    BNNS_EACH_ROW(BNNS_ADD)
#undef BNNS_ADD
  } else if (out.stream) {
#define BNNS_STREAM(r)                                                   \
  if constexpr (r < kRows) {                                             \
    hn::Stream(c##r##_0, d, c);                                          \
    if constexpr (kVectors == 2) hn::Stream(c##r##_1, d, c + lanes);     \
    c += out.c_stride;                                                   \
  }
    BNNS_EACH_ROW(BNNS_STREAM)
#undef BNNS_STREAM
  } else {
#define BNNS_STORE(r)                                                    \
  if constexpr (r < kRows) {                                             \
    hn::StoreU(c##r##_0, d, c);                                          \
    if constexpr (kVectors == 2) hn::StoreU(c##r##_1, d, c + lanes);     \
    c += out.c_stride;                                                   \
  }
    BNNS_EACH_ROW(BNNS_STORE)
#undef BNNS_STORE
  }
}

using TileFunction = void (*)(size_t, const float*, ptrdiff_t, const float*, ptrdiff_t, const TileOut&);

// Exact kernels for 1 to kTileRows rows: [vectors - 1][rows - 1].
template <bool kDepthContiguous>
TileFunction FindTile(size_t rows, size_t vectors) {
#define BNNS_ENTRY(r)                                                                        \
  case r + 1:                                                                                \
    if constexpr (r < kTileRows) {                                                           \
      return vectors == 2 ? &Tile<r + 1, 2, kDepthContiguous> : &Tile<r + 1, 1, kDepthContiguous>; \
    }                                                                                        \
    break;
  switch (rows) { BNNS_EACH_ROW(BNNS_ENTRY) }
#undef BNNS_ENTRY
  return nullptr;
}

void Block(const GemmBlock& g) {
  const D d;
  const size_t lanes = hn::Lanes(d), panel = 2 * lanes;
  for (size_t i = 0; i < g.rows; i += g.tile_rows) {
    const size_t rows = HWY_MIN(g.tile_rows, g.rows - i);
    const auto find = g.a_depth_contiguous ? &FindTile<true> : &FindTile<false>;
    const TileFunction wide = find(rows, 2);
    const float* a = g.a + static_cast<ptrdiff_t>(i / g.tile_rows) * g.a_tile_stride;
    const float* b = g.b;
    TileOut out{g.c + i * g.c_stride, g.c_stride, panel, g.accumulate, g.stream};
    size_t left = g.columns;
    for (; left >= panel; left -= panel) {
      wide(g.depth, a, g.a_stride, b, g.b_stride, out);
      b += g.b_panel_stride;
      out.c += panel;
    }
    if (left != 0) {
      out.columns = left;
      const float* tail = g.b_tail ? g.b_tail : b;
      const ptrdiff_t stride = g.b_tail ? static_cast<ptrdiff_t>(panel) : g.b_stride;
      find(rows, left > lanes ? 2 : 1)(g.depth, a, g.a_stride, tail, stride, out);
    }
  }
  if (g.stream) hwy::FlushStream();
}

TileKernels Kernels() {
  return {kTileRows, 2 * hn::Lanes(D()), &Block};
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

TileKernels tile_kernels([[maybe_unused]] Isa isa) noexcept {
#if HWY_ARCH_X86_64
  return isa == Isa::avx512 ? N_AVX3::Kernels() : isa == Isa::avx2 ? N_AVX2::Kernels() : N_SSE4::Kernels();
#else
  return HWY_STATIC_DISPATCH(Kernels)();
#endif
}

}  // namespace bnns
#endif
