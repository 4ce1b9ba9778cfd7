// The micro-kernel on pairs of bf16, AMX: 32 x 32 of C in four tile registers, two tiles of A, two of B.
//   C0 C1   A0 x B0 B1     A: 16 rows x 16 pairs, B: 16 pairs x 16 columns, 64 bytes a row each; 16 pairs per step
//   C2 C3   A1 x B0 B1
// Four tdpbf16ps for four tile loads, which the first cache can serve at that rate. The last rows of C are a shorter
// tile configuration. Palette 1 is assumed, not asked for (isa.cc). Every thread loads the configuration at the start
// of a block and releases the tiles at its end, so that context switches stay cheap in between.
#include "src/gemm/bf16.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstdint>

#include "src/gemm/intrinsics.h"

#define BNNS_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16,amx-tile,amx-bf16")))

namespace bnns {
namespace {

constexpr size_t kSide = 16, kPanel = 2 * kSide, kRowBytes = 64;

// The 64 bytes that ldtilecfg takes.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// Tiles 0 to 3: C0 C1 C2 C3; 4, 5: A0 A1; 6, 7: B0 B1. A second tile of no rows is not allowed, nor used.
// pairs: the depth of a step.
BNNS_TARGET void configure(size_t rows, size_t pairs = kSide) {
  TileConfig config;
  const auto upper = static_cast<uint8_t>(std::min(rows, kSide));
  const auto lower = static_cast<uint8_t>(rows > kSide ? rows - kSide : 1);
  const auto depth = static_cast<uint8_t>(pairs);
  const uint8_t counts[8] = {upper, upper, lower, lower, upper, lower, depth, depth};
  for (size_t i = 0; i < 8; ++i) config.rows[i] = counts[i], config.row_bytes[i] = kRowBytes;
  config.row_bytes[4] = config.row_bytes[5] = static_cast<uint16_t>(pairs * sizeof(float));
  // GCC's _tile_loadconfig names 8 of the 64 bytes that it reads: it would not wait for the stores to the others.
  asm volatile("ldtilecfg %0" ::"m"(config));
}

// GCC's _tile_loadd does not say that it reads memory: what was stored before must not come later.
inline void finish_stores() {
  asm volatile("" ::: "memory");
}

struct TileArgs {
  size_t steps = 0;  // of 16 pairs
  const float *a = nullptr, *b = nullptr;
  size_t a_row_bytes = 0;
};

// Sums of `rows` x `columns` of C into the tile registers, then to `to`.
template <bool kLowerRows, bool kRightColumns>
BNNS_TARGET void multiply(const TileArgs& t, float* to, size_t to_row_bytes) {
  finish_stores();
  _tile_zero(0);
  if constexpr (kRightColumns) _tile_zero(1);
  if constexpr (kLowerRows) _tile_zero(2);
  if constexpr (kLowerRows && kRightColumns) _tile_zero(3);
  const char *a = reinterpret_cast<const char*>(t.a), *b = reinterpret_cast<const char*>(t.b);
  for (size_t i = 0; i < t.steps; ++i, a += kRowBytes, b += kSide * kPanel * sizeof(float)) {
    _tile_loadd(4, a, t.a_row_bytes);
    _tile_loadd(6, b, kPanel * sizeof(float));
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kRightColumns) {
      _tile_loadd(7, b + kRowBytes, kPanel * sizeof(float));
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kLowerRows) {
      _tile_loadd(5, a + kSide * t.a_row_bytes, t.a_row_bytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kRightColumns) _tile_dpbf16ps(3, 5, 7);
    }
  }
  char* const c = reinterpret_cast<char*>(to);
  _tile_stored(0, c, to_row_bytes);
  if constexpr (kRightColumns) _tile_stored(1, c + kRowBytes, to_row_bytes);
  if constexpr (kLowerRows) _tile_stored(2, c + kSide * to_row_bytes, to_row_bytes);
  if constexpr (kLowerRows && kRightColumns) _tile_stored(3, c + kSide * to_row_bytes + kRowBytes, to_row_bytes);
}

// C = or += the sums, `columns` valid ones.
BNNS_TARGET void add_tile(const float* sums, size_t rows, size_t columns, bool accumulate, float* c, size_t c_stride) {
  const auto low = static_cast<__mmask16>((1u << std::min(columns, kSide)) - 1);
  const auto high = static_cast<__mmask16>((1u << (columns > kSide ? columns - kSide : 0)) - 1);
  for (size_t r = 0; r < rows; ++r, sums += kPanel, c += c_stride) {
    __m512 v0 = _mm512_load_ps(sums), v1 = _mm512_load_ps(sums + kSide);
    if (accumulate) {
      v0 = _mm512_add_ps(_mm512_maskz_loadu_ps(low, c), v0);
      v1 = _mm512_add_ps(_mm512_maskz_loadu_ps(high, c + kSide), v1);
    }
    _mm512_mask_storeu_ps(c, low, v0);
    if (high) _mm512_mask_storeu_ps(c + kSide, high, v1);
  }
}

// The sums, rounded: no subnormals are among them.
BNNS_TARGET void round_tile(const float* sums, size_t rows, size_t columns, bool stream, uint16_t* c, size_t c_stride) {
  const auto mask = static_cast<__mmask32>((uint64_t{1} << columns) - 1);
  if (stream && columns == kPanel) {
    for (size_t r = 0; r < rows; ++r, sums += kPanel, c += c_stride) {
      const auto rounded = (__m512i)_mm512_cvtne2ps_pbh(_mm512_load_ps(sums + kSide), _mm512_load_ps(sums));
      _mm512_stream_si512((__m512i*)c, rounded);
    }
    return;
  }
  for (size_t r = 0; r < rows; ++r, sums += kPanel, c += c_stride) {
    const __m512 v0 = _mm512_load_ps(sums), v1 = columns > kSide ? _mm512_load_ps(sums + kSide) : v0;
    _mm512_mask_storeu_epi16(c, mask, (__m512i)_mm512_cvtne2ps_pbh(v1, v0));
  }
}

// One tile of PairSteps. Lines of B that begin anywhere are split between two cache lines: 48 cycles of loads then, for
// 64 of products.
template <bool kLowerRows, bool kRightColumns>
BNNS_TARGET void multiply_steps(const PairSteps& g, const float* a, const float* b, float* c) {
  const size_t b_bytes = g.b_stride * sizeof(float), c_bytes = g.c_stride * sizeof(float);
  float* const lower = c + kSide * g.c_stride;
  finish_stores();
  if (g.accumulate) {
    _tile_loadd(0, c, c_bytes);
    if constexpr (kRightColumns) _tile_loadd(1, c + kSide, c_bytes);
    if constexpr (kLowerRows) _tile_loadd(2, lower, c_bytes);
    if constexpr (kLowerRows && kRightColumns) _tile_loadd(3, lower + kSide, c_bytes);
  } else {
    _tile_zero(0);
    if constexpr (kRightColumns) _tile_zero(1);
    if constexpr (kLowerRows) _tile_zero(2);
    if constexpr (kLowerRows && kRightColumns) _tile_zero(3);
  }
  for (size_t s = 0; s < g.steps; ++s, a += 2 * kSide * kSide) {
    const float* from = b + g.offsets[s];
    _tile_loadd(6, from, b_bytes);
    _tile_loadd(4, a, kRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kRightColumns) {
      _tile_loadd(7, from + kSide, b_bytes);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kLowerRows) {
      _tile_loadd(5, a + kSide * kSide, kRowBytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kRightColumns) _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_stored(0, c, c_bytes);
  if constexpr (kRightColumns) _tile_stored(1, c + kSide, c_bytes);
  if constexpr (kLowerRows) _tile_stored(2, lower, c_bytes);
  if constexpr (kLowerRows && kRightColumns) _tile_stored(3, lower + kSide, c_bytes);
}

}  // namespace

// Tiles of rows outermost: the A of a tile, 2 KB a step, stays in the first cache.
BNNS_TARGET void detail::pair_steps_amx(const PairSteps& g) {
  const size_t tiles = (g.rows + kPanel - 1) / kPanel, panels = (g.columns + kPanel - 1) / kPanel;
  const size_t all = tiles * panels * g.samples * g.lines;
  const char* ahead = static_cast<const char*>(g.ahead.data);
  const size_t ahead_lines = (g.ahead.bytes + kRowBytes - 1) / kRowBytes;
  const size_t ahead_step = ahead ? (ahead_lines * g.ahead.rows + all - 1) / all : 0;
  size_t ahead_row = 0, ahead_line = 0;
  // Large weights come from the third cache, or from that of another core which has packed them.
  const size_t a_lines = g.steps * 2 * kSide, a_step = (a_lines * tiles + all - 1) / all;
  configure(kPanel, g.pairs);
  for (size_t i = 0; i < tiles; ++i) {
    const float* a = g.a + i * g.a_tile_stride;
    const auto* next_a = reinterpret_cast<const char*>(i + 1 < tiles ? a + g.a_tile_stride : g.next_a);
    size_t next_lines = next_a ? a_lines : 0;
    const bool lower = g.rows - i * kPanel > kSide;
    for (size_t line = 0; line < g.samples * g.lines; ++line) {
      const size_t n = line / g.lines, u = line % g.lines;
      const float* b = g.b + n * g.sample_b + u * g.line_b;
      float* c = g.c + i * kPanel * g.c_stride + n * g.sample_c + u * g.line_c;
      for (size_t j = 0; j < g.columns; j += kPanel) {
        for (size_t k = 0; k < ahead_step && ahead_row < g.ahead.rows; ++k) {
          const char* row = ahead + static_cast<ptrdiff_t>(ahead_row) * g.ahead.row_bytes;
          __builtin_prefetch(row + ahead_line * kRowBytes, 0, 2);  // to the second cache: the first one is in use
          if (++ahead_line == ahead_lines) ahead_line = 0, ++ahead_row;
        }
        for (size_t k = 0; k < a_step && next_lines; ++k, --next_lines, next_a += kRowBytes) {
          __builtin_prefetch(next_a, 0, 2);
        }
        if (g.columns - j > kSide) {
          lower ? multiply_steps<true, true>(g, a, b + j, c + j) : multiply_steps<false, true>(g, a, b + j, c + j);
        } else {
          lower ? multiply_steps<true, false>(g, a, b + j, c + j) : multiply_steps<false, false>(g, a, b + j, c + j);
        }
      }
    }
  }
  _tile_release();
}

BNNS_TARGET void detail::pair_block_amx(const GemmBlock& g) {
  alignas(64) float sums[kPanel * kPanel];
  TileArgs t;
  t.steps = (g.depth + kSide - 1) / kSide;
  t.a_row_bytes = static_cast<size_t>(g.a_stride) * sizeof(float);
  size_t configured = 0;
  const size_t tiles = (g.rows + g.tile_rows - 1) / g.tile_rows, panels = (g.columns + kPanel - 1) / kPanel;
  for (size_t i = 0; i < tiles; ++i) {
    const size_t rows = std::min(g.tile_rows, g.rows - i * g.tile_rows);
    if (rows != configured) configure(configured = rows);
    t.a = g.a + static_cast<ptrdiff_t>(i) * g.a_tile_stride;
    for (size_t j = 0; j < panels; ++j) {
      const size_t columns = std::min(kPanel, g.columns - j * kPanel);
      t.b = g.b + static_cast<ptrdiff_t>(j) * g.b_panel_stride;
      const size_t at = i * g.tile_rows * g.c_stride + j * kPanel;
      float* c = g.c_bf16 ? nullptr : g.c + at;
      const bool direct = columns == kPanel && !g.accumulate && c;
      float* to = direct ? c : sums;
      const size_t to_row_bytes = (direct ? g.c_stride : kPanel) * sizeof(float);
      if (columns > kSide) {
        rows > kSide ? multiply<true, true>(t, to, to_row_bytes) : multiply<false, true>(t, to, to_row_bytes);
      } else {
        rows > kSide ? multiply<true, false>(t, to, to_row_bytes) : multiply<false, false>(t, to, to_row_bytes);
      }
      if (g.c_bf16) {
        round_tile(sums, rows, columns, g.stream, g.c_bf16 + at, g.c_stride);
      } else if (!direct) {
        add_tile(sums, rows, columns, g.accumulate, c, g.c_stride);
      }
    }
  }
  if (g.stream) _mm_sfence();
  _tile_release();
}

}  // namespace bnns

#endif
