// The micro-kernel: a tile of C, up to kTileRows rows by two vectors, held in registers over one depth block.
//   tile[r][j] = sum_k a(r, k) * b(k, j)
// Per k: two vector loads of B, one broadcast load of A per row, two FMA per row. Rows are named variables made by
// an X macro rather than arrays: they stay in registers on every compiler, and sizeless vectors (SVE) allow no arrays.
// Included once per target.
#if defined(BNNS_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_GEMM_TILE_INL_H_
#undef BNNS_GEMM_TILE_INL_H_
#else
#define BNNS_GEMM_TILE_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "src/simd/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
#if HWY_TARGET == HWY_AVX3
// Zen 4 runs two 256-bit operations in the time of one of 512 bits: eight columns or fewer take half as long.
using NarrowD = hn::CappedTag<float, 8>;
#else
using NarrowD = D;
#endif

// Whether loads of a part of a vector leave the rest of memory alone. Else the last panel of B must be a padded copy.
inline constexpr bool kHasMasks = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;

// 28 accumulators + 2 of B + 1 of A of 32 registers; 12 + 2 + 1 (+ 1 for the product without FMA) of 16.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_SSE4
inline constexpr size_t kTileRows = 6;
#else
inline constexpr size_t kTileRows = 14;
#endif

// The next panel of B, of 48 KB or more, is wanted when this one is done: L2 is where it can wait. Requests for L1
// would also hold one of the few fill buffers until memory answers: 32 x 4096 x 4096 takes 13 ms with them on two cores
// of an Emerald Rapids, and 10 without; Zen 4 does not care.
HWY_INLINE void FetchToL2(const char* line) {
  __builtin_prefetch(line, 0, 2);
}

#define BNNS_EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)

// What one call of the micro-kernel needs.
struct TileArgs {
  size_t depth;
  const float* a;
  ptrdiff_t a_stride;
  const float* b;
  ptrdiff_t b_stride;
  float* c;
  size_t c_stride;
  size_t columns;  // valid ones
  bool accumulate, stream;
  bool fetch_c;  // this tile of C is prefetched before the sums begin

  // The depth is walked in chunks of so many steps. Extra::none: with each of the first, a row of the tile of C that
  // comes next is asked for, or none where next_c is null. All at once, its lines would fill the queue of misses, and B
  // would wait behind them: on Zen 4, 32 deep, 1024 x 479 takes 0.9 of the time so.
  size_t chunk;
  const float* next_c;

  // Extra::prefetch and Extra::copy: step k of chunk i prefetches the lines at prefetch + i * chunk_step + k * step,
  // and `second` bytes further.
  const char* prefetch;
  ptrdiff_t chunk_step, step, second;
  float* copy;  // Extra::copy: the panel of B, packed
};

enum class Extra { none, prefetch, copy };

// The tile's columns beyond t.columns must not be touched: it comes through memory, row by row.
HWY_NOINLINE void StorePartial(const float* HWY_RESTRICT tile, size_t tile_stride, size_t rows, const TileArgs& t) {
  for (size_t r = 0; r < rows; ++r) {
    const float* from = tile + r * tile_stride;
    float* to = t.c + r * t.c_stride;
    if (t.accumulate) {
      for (size_t j = 0; j < t.columns; ++j) to[j] += from[j];
    } else {
      for (size_t j = 0; j < t.columns; ++j) to[j] = from[j];
    }
  }
}

// kPartial: the last of the vectors has fewer than its lanes of valid columns.
template <class DT, size_t kRows, size_t kVectors, bool kDepthContiguous, bool kPartial, Extra kExtra>
HWY_NOINLINE void Tile(const TileArgs& t) {
  const DT d;
  using V = hn::Vec<DT>;
  const size_t lanes = hn::Lanes(d);
  float* c = t.c;
  const size_t c_stride = t.c_stride;
  // Rows of C are far apart; by the end of the depth loop they have arrived.
  if (t.fetch_c) {
    for (size_t r = 0; r < kRows; ++r) {
      prefetch_to_write(c + r * c_stride);
      if (kVectors == 2) prefetch_to_write(c + r * c_stride + lanes);
      if (kVectors == 2)
        prefetch_to_write(c + r * c_stride + t.columns - 1);  // a third line of rows that are not aligned
    }
  }
  [[maybe_unused]] const auto mask = hn::FirstN(d, kPartial ? t.columns - (kVectors - 1) * lanes : lanes);
#define BNNS_ZERO(r) [[maybe_unused]] V c##r##_0 = hn::Zero(d), c##r##_1 = hn::Zero(d);
  BNNS_EACH_ROW(BNNS_ZERO)
#undef BNNS_ZERO
  const float* HWY_RESTRICT a = t.a;
  const float* HWY_RESTRICT b = t.b;
  const ptrdiff_t a_stride = t.a_stride, b_stride = t.b_stride;
  [[maybe_unused]] const float* HWY_RESTRICT a5 = a + 5 * a_stride;  // five rows per base: 0, s, 2s, 3s, 4s
  [[maybe_unused]] const float* HWY_RESTRICT a10 = a + 10 * a_stride;
  [[maybe_unused]] float* HWY_RESTRICT copy = t.copy;
  [[maybe_unused]] const char* chunk_start = t.prefetch;
  [[maybe_unused]] const ptrdiff_t step = t.step, second = t.second;
  [[maybe_unused]] const float* next_c = t.next_c;
  [[maybe_unused]] size_t next_rows = next_c ? kRows : 0;
  size_t left = t.depth;
  while (left != 0) {
    const size_t steps = HWY_MIN(left, t.chunk);
    if constexpr (kExtra == Extra::none) {
      if (next_rows != 0) {
        prefetch_to_write(next_c);
        if (kVectors == 2) prefetch_to_write(next_c + lanes);
        if (kVectors == 2) prefetch_to_write(next_c + 2 * lanes - 1);
        next_c += c_stride;
        --next_rows;
      }
    }
    [[maybe_unused]] const char* ahead = chunk_start;
    for (size_t k = 0; k < steps; ++k) {
      [[maybe_unused]] V b0, b1;
      if constexpr (kPartial && kHasMasks) {
        b0 = kVectors == 2 ? hn::LoadU(d, b) : hn::MaskedLoad(mask, d, b);
        if constexpr (kVectors == 2) b1 = hn::MaskedLoad(mask, d, b + lanes);
      } else {
        b0 = hn::LoadU(d, b);
        if constexpr (kVectors == 2) b1 = hn::LoadU(d, b + lanes);
      }
      b += b_stride;
      if constexpr (kExtra != Extra::none) {
        if constexpr (kExtra == Extra::copy) {
          // A few steps ahead of its use. Rows that are not aligned take a third line.
          hwy::Prefetch(ahead);
          hwy::Prefetch(ahead + second);
          hwy::Prefetch(ahead + 2 * lanes * sizeof(float) - 1);
        } else {
          FetchToL2(ahead);
          FetchToL2(ahead + second);
        }
        ahead += step;
      }
      if constexpr (kExtra == Extra::copy) {
        hn::Store(b0, d, copy);
        hn::Store(b1, d, copy + lanes);
        copy += 2 * lanes;
      }
#define BNNS_FMA(r)                                                                                         \
  if constexpr (r < kRows) {                                                                                \
    const V x = hn::Set(d, !kDepthContiguous ? a[r] : (r < 5 ? a : r < 10 ? a5 : a10)[(r % 5) * a_stride]); \
    c##r##_0 = hn::MulAdd(x, b0, c##r##_0);                                                                 \
    if constexpr (kVectors == 2) c##r##_1 = hn::MulAdd(x, b1, c##r##_1);                                    \
  }
      BNNS_EACH_ROW(BNNS_FMA)
#undef BNNS_FMA
      if constexpr (kDepthContiguous) {
        ++a, ++a5, ++a10;
      } else {
        a += a_stride;
      }
    }
    left -= steps;
    if constexpr (kExtra != Extra::none) chunk_start += t.chunk_step;
  }

  // The end, for each row r: BNNS_END(r) with row c and its sums c##r##_0, c##r##_1.
#define BNNS_ROW(r)                                 \
  if constexpr (r < kRows) {                        \
    BNNS_END(c##r##_0, c, kPartial&& kVectors == 1) \
    if constexpr (kVectors == 2) {                  \
      BNNS_END(c##r##_1, c + lanes, kPartial)       \
    }                                               \
    c += c_stride;                                  \
  }
  if constexpr (kPartial && HWY_TARGET != HWY_AVX3) {
    HWY_ALIGN float tile[kRows * kVectors * HWY_MAX_BYTES / sizeof(float)];
#define BNNS_SPILL(r)                                                                         \
  if constexpr (r < kRows) {                                                                  \
    hn::Store(c##r##_0, d, tile + r * kVectors * lanes);                                      \
    if constexpr (kVectors == 2) hn::Store(c##r##_1, d, tile + r * kVectors * lanes + lanes); \
  }
    BNNS_EACH_ROW(BNNS_SPILL)
#undef BNNS_SPILL
    StorePartial(tile, kVectors * lanes, kRows, t);
  } else if (t.accumulate) {
#define BNNS_END(v, to, partial)                                            \
  if constexpr (partial) {                                                  \
    hn::BlendedStore(hn::Add(hn::MaskedLoad(mask, d, to), v), mask, d, to); \
  } else {                                                                  \
    hn::StoreU(hn::Add(hn::LoadU(d, to), v), d, to);                        \
  }
    BNNS_EACH_ROW(BNNS_ROW)
#undef BNNS_END
  } else if (t.stream && !kPartial) {
#define BNNS_END(v, to, partial) hn::Stream(v, d, to);
    BNNS_EACH_ROW(BNNS_ROW)
#undef BNNS_END
  } else {
#define BNNS_END(v, to, partial)      \
  if constexpr (partial) {            \
    hn::BlendedStore(v, mask, d, to); \
  } else {                            \
    hn::StoreU(v, d, to);             \
  }
    BNNS_EACH_ROW(BNNS_ROW)
#undef BNNS_END
  }
#undef BNNS_ROW
}

using TileFunction = void (*)(const TileArgs&);

// The kernel for exactly `rows` rows, 1 to kTileRows.
template <class DT, size_t kVectors, bool kDepthContiguous, bool kPartial, Extra kExtra>
TileFunction FindTile(size_t rows) {
#define BNNS_ENTRY(r)                                                                                   \
  case r + 1:                                                                                           \
    if constexpr (r < kTileRows) return &Tile<DT, r + 1, kVectors, kDepthContiguous, kPartial, kExtra>; \
    break;
  switch (rows) { BNNS_EACH_ROW(BNNS_ENTRY) }
#undef BNNS_ENTRY
  return nullptr;
}

// The kernel for `columns` columns, of one panel, with no extra work.
template <bool kDepthContiguous>
TileFunction FindPlainTile(size_t rows, size_t columns) {
  const size_t lanes = hn::Lanes(D());
  if (columns == 2 * lanes) return FindTile<D, 2, kDepthContiguous, false, Extra::none>(rows);
  if (columns > lanes) return FindTile<D, 2, kDepthContiguous, true, Extra::none>(rows);
  if (columns > hn::Lanes(NarrowD())) return FindTile<D, 1, kDepthContiguous, true, Extra::none>(rows);
  return FindTile<NarrowD, 1, kDepthContiguous, true, Extra::none>(rows);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
