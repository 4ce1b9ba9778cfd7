// The micro-kernel on pairs of bf16, AVX-512 BF16: a tile of C, up to 14 rows by two vectors, held in registers.
//   tile[r][j] = sum_p a(r, 2p) b(2p, j) + a(r, 2p+1) b(2p+1, j)
// Per pair: two vector loads of B, one broadcast of 32 bits of A per row, two vdpbf16ps per row: 28 of them hide their
// latency, and they run at the rate of f32 FMA, so twice the multiply-adds (225 of 228 GFLOP/s on a core of Zen 4).
// Intrinsics: Highway 1.0.3 has no such target.
#include "src/gemm/bf16.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "src/gemm/intrinsics.h"

#define BNNS_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")))

namespace bnns {
namespace {

constexpr size_t kTileRows = 14, kLanes = 16, kPanel = 2 * kLanes;
constexpr ptrdiff_t kPairsAhead = 8;  // of B's rows in memory, asked for ahead of their use
constexpr size_t kChunk = 16;         // pairs between two looks at what to prefetch: a cache line of each row of A

struct TileArgs {
  size_t depth = 0;
  const float *a = nullptr, *b = nullptr;
  ptrdiff_t a_stride = 0;
  float* c = nullptr;
  uint16_t* c_bf16 = nullptr;
  size_t c_stride = 0, columns = kPanel;
  bool accumulate = false, stream = false, fetch_c = false;
};

// Words 0-15 and 16-31 of two vectors of halves, interleaved.
struct Interleave {
  alignas(64) uint16_t low[32], high[32];
  constexpr Interleave() : low(), high() {
    for (uint16_t i = 0; i < 16; ++i) {
      low[2 * i] = i, low[2 * i + 1] = static_cast<uint16_t>(i + 32);
      high[2 * i] = static_cast<uint16_t>(i + 16), high[2 * i + 1] = static_cast<uint16_t>(i + 48);
    }
  }
};
constexpr Interleave kInterleave;

// The lines of the next panel of B, a few per chunk.
class Prefetcher {
 public:
  Prefetcher(const Ahead& ahead, size_t chunks) : ahead_(ahead), lines_((ahead.bytes + 63) / 64) {
    if (ahead.data && chunks) step_ = (lines_ * ahead.rows + chunks - 1) / chunks;
  }
  void run() {
    for (size_t i = 0; i < step_ && row_ < ahead_.rows; ++i) {
      __builtin_prefetch(static_cast<const char*>(ahead_.data) + static_cast<ptrdiff_t>(row_) * ahead_.row_bytes +
                         line_ * 64);
      if (++line_ == lines_) line_ = 0, ++row_;
    }
  }

 private:
  const Ahead& ahead_;
  size_t lines_, step_ = 0, row_ = 0, line_ = 0;
};

BNNS_TARGET inline __m512bh load_pairs(const float* p) {
  return (__m512bh)_mm512_loadu_ps(p);
}
BNNS_TARGET inline __m512bh broadcast_pair(const float* p) {  // a row of bf16 in place may begin at any even address
  float pair;
  std::memcpy(&pair, p, sizeof(pair));
  return (__m512bh)_mm512_set1_ps(pair);
}

// The end of a tile: its sums to C.
template <size_t kRows, size_t kVectors>
BNNS_TARGET inline __attribute__((always_inline)) void finish(const TileArgs& t, const __m512 (&sum)[kRows][kVectors]) {
  const __mmask16 all = 0xffff;
  const size_t last = t.columns - (kVectors - 1) * kLanes;
  const __mmask16 mask = static_cast<__mmask16>((1u << last) - 1);  // of the last vector
  // The sums are no subnormals, so the instruction rounds them as float_to_bfloat16 does.
  if (t.c_bf16) {
    uint16_t* c = t.c_bf16;
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r, c += t.c_stride) {
      if constexpr (kVectors == 2) {
        const auto rounded = (__m512i)_mm512_cvtne2ps_pbh(sum[r][1], sum[r][0]);
        if (t.stream && mask == all) {
          _mm512_stream_si512((__m512i*)c, rounded);
        } else {
          _mm512_mask_storeu_epi16(c, static_cast<__mmask32>(mask) << kLanes | all, rounded);
        }
      } else {
        _mm256_mask_storeu_epi16(c, mask, (__m256i)_mm512_cvtneps_pbh(sum[r][0]));
      }
    }
    return;
  }
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) {
    float* c = t.c + r * t.c_stride;
#pragma GCC unroll 2
    for (size_t v = 0; v < kVectors; ++v, c += kLanes) {
      const __mmask16 m = v + 1 == kVectors ? mask : all;
      if (t.stream && m == all) {
        _mm512_stream_ps(c, sum[r][v]);
        continue;
      }
      const __m512 value = t.accumulate ? _mm512_add_ps(_mm512_maskz_loadu_ps(m, c), sum[r][v]) : sum[r][v];
      _mm512_mask_storeu_ps(c, m, value);
    }
  }
}

// Arrays whose indices are known after unrolling stay in registers (checked in the code of g++ 12 and clang 14).
template <size_t kRows, size_t kVectors>
BNNS_TARGET __attribute__((noinline)) void tile(const TileArgs& t, Prefetcher& prefetcher) {
  if (t.fetch_c && !t.c_bf16) {
    for (size_t r = 0; r < kRows; ++r) {
      __builtin_prefetch(t.c + r * t.c_stride, 1);
      if (kVectors == 2) __builtin_prefetch(t.c + r * t.c_stride + t.columns - 1, 1);
    }
  }
  __m512 sum[kRows][kVectors];
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) sum[r][v] = _mm512_setzero_ps();
  }
  const float *a = t.a, *b = t.b;
  const ptrdiff_t s = t.a_stride;
  for (size_t left = t.depth; left != 0;) {
    const size_t steps = std::min(left, kChunk);
    for (size_t p = 0; p < steps; ++p, ++a, b += kPanel) {
      const __m512bh b0 = load_pairs(b);
      [[maybe_unused]] const __m512bh b1 = kVectors == 2 ? load_pairs(b + kLanes) : b0;
#pragma GCC unroll 16
      for (size_t r = 0; r < kRows; ++r) {
        const __m512bh x = broadcast_pair(a + static_cast<ptrdiff_t>(r) * s);
        sum[r][0] = _mm512_dpbf16_ps(sum[r][0], x, b0);
        if constexpr (kVectors == 2) sum[r][1] = _mm512_dpbf16_ps(sum[r][1], x, b1);
      }
    }
    left -= steps;
    prefetcher.run();
  }
  finish(t, sum);
}

// The first tile of rows against a panel that lies in memory as rows of bf16: pairs of rows are interleaved as they are
// read, and left packed for the other tiles. Two permutations and two stores beside 28 products, whose time also hides
// the latency of memory.
template <size_t kRows>
BNNS_TARGET __attribute__((noinline)) void copy_tile(const TileArgs& t, float* copy, const uint16_t* low_row,
                                                     ptrdiff_t row_stride, bool odd) {
  __m512 sum[kRows][2];
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
  const __m512i first = _mm512_load_si512(kInterleave.low), second = _mm512_load_si512(kInterleave.high);
  const float* a = t.a;
  const ptrdiff_t s = t.a_stride, step = 2 * row_stride;
  for (size_t p = 0; p < t.depth; ++p, ++a, copy += kPanel, low_row += step) {
    const bool last_is_half = odd && p + 1 == t.depth;
    const __m512i low = _mm512_loadu_si512(low_row);
    const __m512i high = last_is_half ? _mm512_setzero_si512() : _mm512_loadu_si512(low_row + row_stride);
    // Beyond the matrix this is harmless.
    const auto ahead =
        reinterpret_cast<uintptr_t>(low_row) + static_cast<uintptr_t>(kPairsAhead * step) * sizeof(uint16_t);
    __builtin_prefetch(reinterpret_cast<const char*>(ahead));
    __builtin_prefetch(reinterpret_cast<const char*>(ahead + static_cast<uintptr_t>(row_stride) * sizeof(uint16_t)));
    const __m512i w0 = _mm512_permutex2var_epi16(low, first, high), w1 = _mm512_permutex2var_epi16(low, second, high);
    _mm512_storeu_si512(copy, w0);
    _mm512_storeu_si512(copy + kLanes, w1);
    const auto b0 = (__m512bh)w0, b1 = (__m512bh)w1;
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
      const __m512bh x = broadcast_pair(a + static_cast<ptrdiff_t>(r) * s);
      sum[r][0] = _mm512_dpbf16_ps(sum[r][0], x, b0);
      sum[r][1] = _mm512_dpbf16_ps(sum[r][1], x, b1);
    }
  }
  finish(t, sum);
}

using TileFunction = void (*)(const TileArgs&, Prefetcher&);

// The kernel for exactly `rows` rows, 1 to kTileRows.
template <size_t kVectors>
TileFunction find_tile(size_t rows) {
  static constexpr TileFunction kTiles[kTileRows] = {
      tile<1, kVectors>,  tile<2, kVectors>,  tile<3, kVectors>,  tile<4, kVectors>, tile<5, kVectors>,
      tile<6, kVectors>,  tile<7, kVectors>,  tile<8, kVectors>,  tile<9, kVectors>, tile<10, kVectors>,
      tile<11, kVectors>, tile<12, kVectors>, tile<13, kVectors>, tile<14, kVectors>};
  return kTiles[rows - 1];
}

using CopyFunction = void (*)(const TileArgs&, float*, const uint16_t*, ptrdiff_t, bool);

CopyFunction find_copy_tile(size_t rows) {
  static constexpr CopyFunction kTiles[kTileRows] = {
      copy_tile<1>, copy_tile<2>, copy_tile<3>,  copy_tile<4>,  copy_tile<5>,  copy_tile<6>,  copy_tile<7>,
      copy_tile<8>, copy_tile<9>, copy_tile<10>, copy_tile<11>, copy_tile<12>, copy_tile<13>, copy_tile<14>};
  return kTiles[rows - 1];
}

}  // namespace

void detail::pair_block_avx512(const GemmBlock& g) {
  const size_t tiles = (g.rows + g.tile_rows - 1) / g.tile_rows, panels = (g.columns + kPanel - 1) / kPanel;
  const size_t chunks = (tiles - (g.b_rows && tiles > 1 ? 1 : 0)) * panels * ((g.depth + kChunk - 1) / kChunk);
  Prefetcher prefetcher(g.ahead, chunks);
  TileArgs t;
  t.depth = g.depth, t.a_stride = g.a_stride, t.c_stride = g.c_stride;
  t.accumulate = g.accumulate, t.stream = g.stream, t.fetch_c = g.c_far && !g.stream;
  for (size_t i = 0; i < tiles; ++i) {
    const size_t rows = std::min(g.tile_rows, g.rows - i * g.tile_rows);
    t.a = g.a + static_cast<ptrdiff_t>(i) * g.a_tile_stride;
    for (size_t j = 0; j < panels; ++j) {
      t.b = g.b_rows ? g.b_copy : g.b + static_cast<ptrdiff_t>(j) * g.b_panel_stride;
      const size_t at = i * g.tile_rows * g.c_stride + j * kPanel;
      if (g.c_bf16) {
        t.c_bf16 = g.c_bf16 + at;
      } else {
        t.c = g.c + at;
      }
      t.columns = std::min(kPanel, g.columns - j * kPanel);
      if (g.b_rows && i == 0) {
        find_copy_tile(rows)(t, g.b_copy, g.b_rows, g.b_row_stride, g.odd_depth);
        continue;
      }
      (t.columns > kLanes ? find_tile<2>(rows) : find_tile<1>(rows))(t, prefetcher);
    }
  }
  if (g.stream) _mm_sfence();
}

PairKernels pair_kernels(Isa isa) noexcept {
  // AMX is done with B sooner than memory delivers it: all panels of a task are packed in one go, from long pieces of
  // rows that the hardware's prefetchers follow, into half a megabyte of L2.
  if (isa >= Isa::amx) return {{32, kPanel, true, &detail::pair_block_amx}, 16, false, 256, 16};
  return {{kTileRows, kPanel, true, &detail::pair_block_avx512}, 1, true, 512, 4};
}

PairStepsKernel pair_steps_kernel(Isa isa) noexcept {
  return isa >= Isa::amx ? &detail::pair_steps_amx : nullptr;
}

}  // namespace bnns

#else

namespace bnns {
PairKernels pair_kernels(Isa) noexcept {
  return {};
}
PairStepsKernel pair_steps_kernel(Isa) noexcept {
  return nullptr;
}
}  // namespace bnns

#endif
