// Copies of bf16 rows for convolution: two channels interleaved into words, and runs of pixels. AVX-512 intrinsics, for
// machines that have BF16 besides.
#include <algorithm>
#include <cstring>

#include "src/ops/convolution/bf16/bf16.h"

#if defined(__x86_64__)

#include "src/gemm/intrinsics.h"

namespace bnns {
namespace {

constexpr size_t kLanes = 16, kHalves = 32;

// Words 0-15 and 16-31 of two vectors of halves, interleaved.
struct Interleave {
  alignas(64) uint16_t low[kHalves], high[kHalves];
  constexpr Interleave() : low(), high() {
    for (uint16_t i = 0; i < kLanes; ++i) {
      low[2 * i] = i, low[2 * i + 1] = static_cast<uint16_t>(i + kHalves);
      high[2 * i] = static_cast<uint16_t>(i + kLanes), high[2 * i + 1] = static_cast<uint16_t>(i + kLanes + kHalves);
    }
  }
};
constexpr Interleave kInterleave;

template <class T>
BNNS_TARGET_AVX512 void scatter(const TapSums& s, bool accumulate, T* to) {
  const __mmask16 taps = first16(s.taps);
  for (size_t j = 0; j < s.count; j += kLanes) {
    const __mmask16 mask = first16(s.count - j);
    const size_t count = std::min(kLanes, s.count - j);
    __m512i v[kLanes];
#pragma GCC unroll 16
    for (size_t t = 0; t < kLanes; ++t) {
      v[t] = _mm512_setzero_si512();
      if (t >= s.taps) continue;
      const float* from = s.from + t / s.taps_x * s.sample + t % s.taps_x * s.line + j;
      __m512 sum = _mm512_maskz_loadu_ps(mask, from);
      for (size_t i = 1; i < s.slices; ++i) {
        sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(mask, from + i * s.slice_stride));
      }
      v[t] = _mm512_castps_si512(sum);
    }
    transpose16(v);
    T* row = to + j * s.taps;
#pragma GCC unroll 16
    for (size_t c = 0; c < kLanes; ++c, row += s.taps) {
      if (c >= count) continue;
      const __m512 sum = _mm512_castsi512_ps(v[c]);
      store_first(row, taps, accumulate ? _mm512_add_ps(load_first(row, taps), sum) : sum);
    }
  }
}

}  // namespace

BNNS_TARGET_AVX512 void transpose_pixels(const PixelRow& r, float* to, size_t to_stride) noexcept {
  for (size_t at = 0; at < r.width; at += kHalves, to += kLanes * to_stride) {
    const ptrdiff_t first = r.first + static_cast<ptrdiff_t>(at), left = static_cast<ptrdiff_t>(r.width - at);
    const auto low = static_cast<size_t>(std::clamp<ptrdiff_t>(-first, 0, 32));
    const auto high = static_cast<size_t>(
        std::clamp<ptrdiff_t>(static_cast<ptrdiff_t>(r.extent) - first, 0, std::min<ptrdiff_t>(left, 32)));
    const __mmask32 mask = first32(high) & ~first32(low);
    const auto from = reinterpret_cast<uintptr_t>(r.from) + static_cast<uintptr_t>(first) * sizeof(uint16_t);
    __m512i v[kLanes];
#pragma GCC unroll 16
    for (size_t c = 0; c < kLanes; ++c) {
      const auto* row = reinterpret_cast<const uint16_t*>(from + c * r.channel_stride * sizeof(uint16_t));
      v[c] = c < r.channels ? _mm512_maskz_loadu_epi16(mask, row) : _mm512_setzero_si512();
    }
    transpose16(v);
    const size_t pairs = std::min(kLanes, (r.width - at + 1) / 2);
    float* word = to;
#pragma GCC unroll 16
    for (size_t q = 0; q < kLanes; ++q, word += to_stride) {
      if (q < pairs) _mm512_storeu_si512(word, v[q]);
    }
  }
}

void scatter_taps(const TapSums& sums, bool accumulate, uint16_t* to) noexcept {
  scatter(sums, accumulate, to);
}
void scatter_taps(const TapSums& sums, bool accumulate, float* to) noexcept {
  scatter(sums, accumulate, to);
}

BNNS_TARGET_AVX512 void interleave_rows(const uint16_t* a, const uint16_t* b, ptrdiff_t from_stride, size_t rows,
                                        size_t count, float* to, size_t to_stride) noexcept {
  const __m512i low_order = _mm512_load_si512(kInterleave.low), high_order = _mm512_load_si512(kInterleave.high);
  const ptrdiff_t b_stride = b ? from_stride : 0;
  if (count <= kLanes) {
    const __mmask16 mask = first16(count), b_mask = b ? mask : __mmask16{0};
    for (size_t r = 0; r < rows; ++r, a += from_stride, b += b_stride, to += to_stride) {
      const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, a));
      const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(b_mask, b));
      _mm512_mask_storeu_epi32(to, mask, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
    }
    return;
  }
  for (size_t r = 0; r < rows; ++r, a += from_stride, b += b_stride, to += to_stride) {
    size_t i = 0;
    for (; i + kHalves <= count; i += kHalves) {
      const __m512i low = _mm512_loadu_si512(a + i), high = b ? _mm512_loadu_si512(b + i) : _mm512_setzero_si512();
      _mm512_storeu_si512(to + i, _mm512_permutex2var_epi16(low, low_order, high));
      _mm512_storeu_si512(to + i + kLanes, _mm512_permutex2var_epi16(low, high_order, high));
    }
    if (i == count) continue;
    const __mmask32 mask = first32(count - i), b_mask = b ? mask : __mmask32{0};
    const __m512i low = _mm512_maskz_loadu_epi16(mask, a + i), high = _mm512_maskz_loadu_epi16(b_mask, b + i);
    _mm512_mask_storeu_epi32(to + i, first16(count - i), _mm512_permutex2var_epi16(low, low_order, high));
    if (count - i <= kLanes) continue;
    _mm512_mask_storeu_epi32(to + i + kLanes, first16(count - i - kLanes),
                             _mm512_permutex2var_epi16(low, high_order, high));
  }
}

BNNS_TARGET_AVX512 void pad_rows(const uint16_t* from, size_t from_stride, size_t rows, size_t width, uint16_t* to,
                                 size_t to_stride) noexcept {
  for (size_t r = 0; r < rows; ++r, from += from_stride, to += to_stride) {
    for (size_t i = 0; i < width; i += kHalves) {
      _mm512_storeu_si512(to + i, _mm512_maskz_loadu_epi16(first32(width - i), from + i));
    }
  }
}

BNNS_TARGET_AVX512 void copy_steps(const uint16_t* from, size_t pairs, float* to, size_t to_step,
                                   float* rest) noexcept {
  for (; pairs >= kLanes; pairs -= kLanes, from += kHalves, to += to_step) {
    _mm512_storeu_si512(to, _mm512_loadu_si512(from));
  }
  if (pairs) _mm512_storeu_si512(rest, _mm512_maskz_loadu_epi16(first32(2 * pairs), from));
}

BNNS_TARGET_AVX512 void split_halves(const uint16_t* from, size_t lead, size_t count, size_t length,
                                     uint16_t* row) noexcept {
  if (lead % 2 && count) row[length + lead / 2] = *from++, ++lead, --count;
  uint16_t *even = row + lead / 2, *odd = even + length;
  for (size_t i = 0; i < count; i += kHalves, even += kLanes, odd += kLanes) {
    const size_t left = count - i;
    const __m512i words = _mm512_maskz_loadu_epi16(first32(left), from + i);
    _mm256_mask_storeu_epi16(even, first16((left + 1) / 2), _mm512_cvtepi32_epi16(words));
    _mm256_mask_storeu_epi16(odd, first16(left / 2), _mm512_cvtepi32_epi16(_mm512_srli_epi32(words, 16)));
  }
}

BNNS_TARGET_AVX512 void copy_halves(const uint16_t* from, size_t from_stride, uint16_t* to, size_t to_stride,
                                    size_t count, size_t length) noexcept {
  if (length <= kHalves) {
    for (size_t i = 0; i < count; ++i, from += from_stride, to += to_stride) {
      _mm512_storeu_si512(to, _mm512_loadu_si512(from));
    }
    return;
  }
  for (size_t i = 0; i < count; ++i, from += from_stride, to += to_stride) {
    for (size_t j = 0; j < length; j += kHalves) _mm512_storeu_si512(to + j, _mm512_loadu_si512(from + j));
  }
}

BNNS_TARGET_AVX512 void gather_taps(const uint16_t* from, ptrdiff_t stride, size_t channels, size_t taps, float* to,
                                    size_t to_step) noexcept {
  const __mmask16 mask = first16(taps);
  __m512i v[kLanes];
#pragma GCC unroll 16
  for (size_t p = 0; p < kLanes; ++p, from += 2 * stride) {
    v[p] = _mm512_setzero_si512();
    if (2 * p >= channels) continue;
    v[p] = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from));
    if (2 * p + 1 >= channels) continue;
    const __m512i high = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from + stride));
    v[p] = _mm512_or_si512(v[p], _mm512_slli_epi32(high, 16));
  }
  transpose16(v);
#pragma GCC unroll 16
  for (size_t t = 0; t < kLanes; ++t) {
    if (t < taps) _mm512_storeu_si512(to + t * to_step, v[t]);
  }
}

BNNS_TARGET_AVX512 void round_rows(const float* from, size_t from_stride, size_t rows, size_t count, uint16_t* to,
                                   size_t to_stride) noexcept {
  for (size_t r = 0; r < rows; ++r, from += from_stride, to += to_stride) {
    size_t i = 0;
    for (; i + kHalves <= count; i += kHalves) {
      const __m512i low = _mm512_castsi256_si512(round_to_bf16(_mm512_loadu_ps(from + i)));
      const __m256i high = round_to_bf16(_mm512_loadu_ps(from + i + kLanes));
      _mm512_storeu_si512(to + i, _mm512_inserti64x4(low, high, 1));
    }
    for (; i < count; i += kLanes)
      store_first(to + i, first16(count - i), _mm512_maskz_loadu_ps(first16(count - i), from + i));
  }
}

}  // namespace bnns

#else  // never called: has_pair_kernels is false

namespace bnns {
void interleave_rows(const uint16_t*, const uint16_t*, ptrdiff_t, size_t, size_t, float*, size_t) noexcept {}
void pad_rows(const uint16_t*, size_t, size_t, size_t, uint16_t*, size_t) noexcept {}
void copy_steps(const uint16_t*, size_t, float*, size_t, float*) noexcept {}
void split_halves(const uint16_t*, size_t, size_t, size_t, uint16_t*) noexcept {}
void gather_taps(const uint16_t*, ptrdiff_t, size_t, size_t, float*, size_t) noexcept {}
void round_rows(const float*, size_t, size_t, size_t, uint16_t*, size_t) noexcept {}
void transpose_pixels(const PixelRow&, float*, size_t) noexcept {}
void scatter_taps(const TapSums&, bool, uint16_t*) noexcept {}
void scatter_taps(const TapSums&, bool, float*) noexcept {}
void copy_halves(const uint16_t*, size_t, uint16_t*, size_t, size_t, size_t) noexcept {}
}  // namespace bnns

#endif
