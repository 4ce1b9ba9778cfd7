// Transposed stores: sums that were made with rows and columns exchanged go to their place, f32 or rounded to bf16.
#include "src/gemm/bf16.h"

#if defined(__x86_64__)

#include <algorithm>

#include "src/gemm/intrinsics.h"

namespace bnns {
namespace {

constexpr size_t kLanes = 16;

template <class T>
BNNS_TARGET_AVX512 void transposed(const float* from, size_t from_stride, size_t slices, size_t slice_stride,
                                   size_t rows, size_t columns, bool accumulate, T* to, size_t to_stride) {
  for (size_t j = 0; j < columns; j += kLanes) {
    const __mmask16 column_mask = first16(columns - j);
    const size_t count = std::min(kLanes, columns - j);
    for (size_t i = 0; i < rows; i += kLanes) {
      __m512i v[kLanes];
#pragma GCC unroll 16
      for (size_t r = 0; r < kLanes; ++r) {
        const float* at = from + std::min(i + r, rows - 1) * from_stride + j;
        __m512 sum = _mm512_maskz_loadu_ps(column_mask, at);
        for (size_t s = 1; s < slices; ++s) {
          sum = _mm512_add_ps(sum, _mm512_maskz_loadu_ps(column_mask, at + s * slice_stride));
        }
        v[r] = _mm512_castps_si512(sum);
      }
      transpose16(v);
      const __mmask16 row_mask = first16(rows - i);
      T* row = to + j * to_stride + i;
#pragma GCC unroll 16
      for (size_t c = 0; c < kLanes; ++c, row += to_stride) {
        if (c >= count) continue;
        const __m512 sum = _mm512_castsi512_ps(v[c]);
        store_first(row, row_mask, accumulate ? _mm512_add_ps(load_first(row, row_mask), sum) : sum);
      }
    }
  }
}

}  // namespace

void store_transposed(const TransposedSums& s, bool accumulate, uint16_t* to, size_t to_stride) noexcept {
  transposed(s.data, s.stride, s.slices, s.slice_stride, s.rows, s.columns, accumulate, to, to_stride);
}
void store_transposed(const TransposedSums& s, bool accumulate, float* to, size_t to_stride) noexcept {
  transposed(s.data, s.stride, s.slices, s.slice_stride, s.rows, s.columns, accumulate, to, to_stride);
}

}  // namespace bnns

#else

namespace bnns {
void store_transposed(const TransposedSums&, bool, uint16_t*, size_t) noexcept {}
void store_transposed(const TransposedSums&, bool, float*, size_t) noexcept {}
}  // namespace bnns

#endif
