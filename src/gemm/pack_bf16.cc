// Packing of plain bf16 matrices as pairs along the depth (bf16.h): nothing is converted, two neighbours in depth are
// brought into one 32-bit word.
//   depth contiguous   a pair is a word of memory: rows are copied (A), or 16 x 16 words transposed in registers (B)
//   rows contiguous    two rows are interleaved, 32 words of B by two permutations; A transposes what comes of it
//   neither            one by one
// Loads are masked at the end of a row and of the depth: nothing beyond is read, and the words that stand for it are 0.
#include <cstdint>
#include <cstring>

#include "src/gemm/bf16.h"

#if defined(__x86_64__)

#include <algorithm>

#include "src/gemm/intrinsics.h"

namespace bnns {
namespace {

constexpr size_t kLanes = 16, kPanel = 32;
constexpr size_t kPairsAhead = 4;  // of the source, asked for ahead of their use

// The source with its pointers resolved. depth: elements from the first pair on, an odd last one included.
struct Pairs {
  const uint16_t* data;
  ptrdiff_t row_stride, depth_stride;
  size_t rows, depth, pairs, padded;

  explicit Pairs(const PairSource& s)
      : data(static_cast<const uint16_t*>(s.lens.data) + static_cast<ptrdiff_t>(s.rows.begin) * s.lens.row_stride +
             static_cast<ptrdiff_t>(2 * s.pairs.begin) * s.lens.depth_stride),
        row_stride(s.lens.row_stride),
        depth_stride(s.lens.depth_stride),
        rows(s.rows.size()),
        depth(std::min(s.depth, 2 * s.pairs.end) - 2 * s.pairs.begin),
        pairs(s.pairs.size()),
        padded((s.pairs.size() + s.unit - 1) / s.unit * s.unit) {}

  const uint16_t* at(size_t r, size_t k) const {
    return data + static_cast<ptrdiff_t>(r) * row_stride + static_cast<ptrdiff_t>(k) * depth_stride;
  }
  uint32_t pair(size_t r, size_t p) const {
    const uint32_t low = *at(r, 2 * p), high = 2 * p + 1 < depth ? *at(r, 2 * p + 1) : 0u;
    return low | high << 16;
  }
};

// Pairs [p, p + 16) of row r, depth contiguous.
BNNS_TARGET_AVX512 inline __m512i load_depth(const Pairs& s, size_t r, size_t p) {
  return _mm512_maskz_loadu_epi16(first32(s.depth - std::min(s.depth, 2 * p)), s.at(r, 2 * p));
}

// Pair p of rows [r, r + 16), rows contiguous.
BNNS_TARGET_AVX512 inline __m512i load_rows(const Pairs& s, size_t r, size_t p) {
  if (p >= s.pairs) return _mm512_setzero_si512();
  const auto mask = first16(s.rows - r);
  const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, s.at(r, 2 * p)));
  if (2 * p + 1 >= s.depth) return low;
  const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, s.at(r, 2 * p + 1)));
  return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

// A from contiguous depth: the words as they lie.
BNNS_TARGET_AVX512 void rows_from_depth(const Pairs& s, size_t r0, size_t rows, float* to, size_t stride) {
  for (size_t r = 0; r < rows; ++r, to += stride) {
    const uint16_t* from = s.at(r0 + r, 0);
    size_t p = 0;
    for (; 2 * (p + kLanes) <= s.depth; p += kLanes) _mm512_storeu_si512(to + p, _mm512_loadu_si512(from + 2 * p));
    for (; p < s.padded; p += kLanes) {
      const auto mask = first16(s.padded - p);
      _mm512_mask_storeu_epi32(to + p, mask, load_depth(s, r0 + r, p));
    }
  }
}

// A from contiguous rows: 16 pairs of 16 rows at a time.
BNNS_TARGET_AVX512 void rows_from_rows(const Pairs& s, size_t r0, size_t rows, float* to, size_t stride) {
  for (size_t r = 0; r < rows; r += kLanes) {
    const size_t count = std::min(kLanes, rows - r);
    for (size_t p = 0; p < s.padded; p += kLanes) {
      __m512i v[kLanes];
#pragma GCC unroll 16
      for (size_t i = 0; i < kLanes; ++i) v[i] = load_rows(s, r0 + r, p + i);
      transpose16(v);
      const auto mask = first16(s.padded - p);
      float* row = to + r * stride + p;
#pragma GCC unroll 16
      for (size_t i = 0; i < kLanes; ++i, row += stride) {
        if (i < count) _mm512_mask_storeu_epi32(row, mask, v[i]);
      }
    }
  }
}

// B from contiguous depth: 16 x 16 words at a time. Rows that the source does not have are its last one again.
BNNS_TARGET_AVX512 void panel_from_depth(const Pairs& s, size_t r0, size_t rows, float* to) {
  for (size_t half = 0; half < rows; half += kLanes) {
    for (size_t p = 0; p < s.padded; p += kLanes) {
      __m512i v[kLanes];
      if (2 * (p + kLanes) <= s.depth && half + kLanes <= rows) {
        const uint16_t* from = s.at(r0 + half, 2 * p);
#pragma GCC unroll 16
        for (size_t i = 0; i < kLanes; ++i, from += s.row_stride) v[i] = _mm512_loadu_si512(from);
      } else {
#pragma GCC unroll 16
        for (size_t i = 0; i < kLanes; ++i) v[i] = load_depth(s, r0 + std::min(half + i, rows - 1), p);
      }
      transpose16(v);
      const size_t count = std::min(kLanes, s.padded - p);
      float* word = to + p * kPanel + half;
#pragma GCC unroll 16
      for (size_t i = 0; i < kLanes; ++i, word += kPanel) {
        if (i < count) _mm512_storeu_si512(word, v[i]);
      }
    }
  }
}

// Depth outermost over all panels: rows of the source are read from end to end, as the prefetchers like it.
BNNS_TARGET_AVX512 void panels_from_rows(const Pairs& s, const PackedBlock& out) {
  alignas(64) uint16_t order[2][32];  // words 0-15 and 16-31 of low, high interleaved
  for (uint16_t i = 0; i < 32; ++i) {
    order[i / 16][i % 16 * 2] = i;
    order[i / 16][i % 16 * 2 + 1] = static_cast<uint16_t>(i + 32);
  }
  const __m512i first = _mm512_load_si512(order[0]), second = _mm512_load_si512(order[1]);
  // Rows far apart defeat the hardware's prefetchers.
  const bool far = s.depth_stride >= 256 || s.depth_stride <= -256;
  for (size_t p = 0; p < s.padded; ++p) {
    float* to = out.data + p * kPanel;
    const bool ask = far && 2 * (p + kPairsAhead) + 1 < s.depth;
    for (size_t r = 0; r < s.rows; r += kPanel, to += out.panel_stride) {
      if (ask) {
        __builtin_prefetch(s.at(r, 2 * (p + kPairsAhead)));
        __builtin_prefetch(s.at(r, 2 * (p + kPairsAhead) + 1));
      }
      const __mmask32 mask = first32(s.rows - r);
      __m512i low = _mm512_setzero_si512(), high = low;
      if (2 * p < s.depth) low = _mm512_maskz_loadu_epi16(mask, s.at(r, 2 * p));
      if (2 * p + 1 < s.depth) high = _mm512_maskz_loadu_epi16(mask, s.at(r, 2 * p + 1));
      _mm512_storeu_si512(to, _mm512_permutex2var_epi16(low, first, high));
      _mm512_storeu_si512(to + kLanes, _mm512_permutex2var_epi16(low, second, high));
    }
  }
}

// One by one: word(r, p) at to[r * row_stride + p * pair_stride].
void gather(const Pairs& s, size_t r0, size_t rows, float* to, size_t row_stride, size_t pair_stride) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t p = 0; p < s.padded; ++p) {
      const uint32_t word = p < s.pairs ? s.pair(r0 + r, p) : 0;
      std::memcpy(to + r * row_stride + p * pair_stride, &word, sizeof(word));
    }
  }
}

}  // namespace

void pack_pair_rows(const PairSource& source, const PackedBlock& out, size_t row_stride) noexcept {
  const Pairs s(source);
  float* panel = out.data;
  for (size_t r = 0; r < s.rows; r += out.tile, panel += out.panel_stride) {
    const size_t rows = std::min(out.tile, s.rows - r);
    if (s.depth_stride == 1) {
      rows_from_depth(s, r, rows, panel, row_stride);
    } else if (s.row_stride == 1) {
      rows_from_rows(s, r, rows, panel, row_stride);
    } else {
      gather(s, r, rows, panel, row_stride, 1);
    }
  }
}

void pack_pair_panels(const PairSource& source, const PackedBlock& out) noexcept {
  const Pairs s(source);
  if (s.row_stride == 1 && s.depth_stride != 1) return panels_from_rows(s, out);
  float* panel = out.data;
  for (size_t r = 0; r < s.rows; r += kPanel, panel += out.panel_stride) {
    const size_t rows = std::min(kPanel, s.rows - r);
    if (s.depth_stride == 1) {
      panel_from_depth(s, r, rows, panel);
    } else {
      gather(s, r, rows, panel, 1, kPanel);
    }
  }
}

}  // namespace bnns

#else

namespace bnns {
void pack_pair_rows(const PairSource&, const PackedBlock&, size_t) noexcept {}
void pack_pair_panels(const PairSource&, const PackedBlock&) noexcept {}
}  // namespace bnns

#endif
