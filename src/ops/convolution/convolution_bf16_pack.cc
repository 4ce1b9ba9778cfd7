// Copies of bf16 rows for convolution: two channels interleaved into words, and runs of pixels. AVX-512 intrinsics, for
// machines that have BF16 besides.
#include <algorithm>
#include <cstring>

#include "src/ops/convolution/convolution_bf16.h"

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

}  // namespace

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

}  // namespace bnns

#else  // never called: has_pair_kernels is false

namespace bnns {
void interleave_rows(const uint16_t*, const uint16_t*, ptrdiff_t, size_t, size_t, float*, size_t) noexcept {}
void copy_halves(const uint16_t*, size_t, uint16_t*, size_t, size_t, size_t) noexcept {}
}  // namespace bnns

#endif
