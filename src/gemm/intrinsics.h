// <immintrin.h> for the files that need instructions Highway 1.0.3 has no target for, and the vector pieces they share.
#pragma once

#if defined(__x86_64__)
#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 warns of _mm512_undefined_epi32 in its own header wherever that is inlined (GCC bug 105593).
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#define BNNS_TARGET_AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

namespace bnns {

// The first `count` bits of 32 or 16, all of them where it is more.
BNNS_TARGET_AVX512 inline __mmask32 first32(size_t count) {
  return count >= 32 ? ~__mmask32{0} : static_cast<__mmask32>((uint32_t{1} << count) - 1);
}
BNNS_TARGET_AVX512 inline __mmask16 first16(size_t count) {
  return static_cast<__mmask16>(count >= 16 ? 0xffff : (1u << count) - 1);
}

// To nearest even by integers, as float_to_bfloat16 does it: vcvtneps2bf16 would flush subnormals.
BNNS_TARGET_AVX512 inline __m256i round_to_bf16(__m512 v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));  // quiet, the payload's top bits
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

// f32 values of the type in memory, those of the mask.
BNNS_TARGET_AVX512 inline __m512 load_first(const float* from, __mmask16 mask) {
  return _mm512_maskz_loadu_ps(mask, from);
}
BNNS_TARGET_AVX512 inline __m512 load_first(const uint16_t* from, __mmask16 mask) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, from)), 16));
}
BNNS_TARGET_AVX512 inline void store_first(float* to, __mmask16 mask, __m512 v) {
  _mm512_mask_storeu_ps(to, mask, v);
}
BNNS_TARGET_AVX512 inline void store_first(uint16_t* to, __mmask16 mask, __m512 v) {
  _mm256_mask_storeu_epi16(to, mask, round_to_bf16(v));
}

// v[i] word j becomes v[j] word i.
BNNS_TARGET_AVX512 inline void transpose16(__m512i (&v)[16]) {
  __m512i t[16];
#pragma GCC unroll 16
  for (size_t i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < 16; i += 4) {  // v[i + c]: column c of every block of four rows
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  // What is left is a 4 x 4 transpose of 128-bit blocks.
#pragma GCC unroll 16
  for (size_t c = 0; c < 4; ++c) {
    const __m512i a = _mm512_shuffle_i32x4(v[c], v[c + 4], 0x88), b = _mm512_shuffle_i32x4(v[c + 8], v[c + 12], 0x88);
    const __m512i e = _mm512_shuffle_i32x4(v[c], v[c + 4], 0xdd), f = _mm512_shuffle_i32x4(v[c + 8], v[c + 12], 0xdd);
    t[c] = _mm512_shuffle_i32x4(a, b, 0x88);
    t[c + 4] = _mm512_shuffle_i32x4(e, f, 0x88);
    t[c + 8] = _mm512_shuffle_i32x4(a, b, 0xdd);
    t[c + 12] = _mm512_shuffle_i32x4(e, f, 0xdd);
  }
#pragma GCC unroll 16
  for (size_t i = 0; i < 16; ++i) v[i] = t[i];
}

}  // namespace bnns
#endif
