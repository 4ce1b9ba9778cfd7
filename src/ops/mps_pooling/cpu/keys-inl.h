// Maxima of f16 in the one-pass kernels (mps_pooling/cpu/direct.h) as 16-bit integers in the same order: twice as many
// to a register as f32, and nothing to convert.

#if defined(BNNS_OPS_MPS_POOLING_CPU_KEYS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_KEYS_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_KEYS_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_KEYS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstdint>

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

// Negative NaN < -inf < ... < -0 < +0 < ... < +inf < positive NaN. Backward the zeros are equal, so that the first has
// the gradient. Forward they must differ, or the sign would be lost; where a -0 may have come before the +0 that is the
// maximum here, and where a maximum is -inf or NaN, keys do not tell which tap it is: not Good.
template <bool kBackward>
class HalfKeys {
  static constexpr int16_t kInf = 0x7c00, kMinusInf = kBackward ? -kInf : -kInf - 1;

 public:
  HWY_INLINE HalfKeys()
      : lowest_(_mm512_set1_epi16(INT16_MAX)),
        highest_(_mm512_set1_epi16(INT16_MIN)),
        zero_(_mm512_set1_epi16(-1)),
        negative_zero_(_mm512_setzero_si512()) {}

  // The first n of 8 texels.
  static HWY_INLINE __mmask32 First(int64_t n) {
    return n >= 8 ? ~__mmask32{0} : n <= 0 ? 0 : (__mmask32{1} << (4 * n)) - 1;
  }
  // What is outside: forward zeros take part as taps, backward by Lose.
  static HWY_INLINE __m512i Border(bool zeros) { return _mm512_set1_epi16(zeros && !kBackward ? 0 : kMinusInf); }

  // Keys of 8 texels.
  static HWY_INLINE __m512i Key(__m512i v) {
    if (!kBackward) return Turned(v);
    return _mm512_mask_sub_epi16(v, _mm512_movepi16_mask(v), _mm512_set1_epi16(INT16_MIN), v);
  }
  // Keys that decide what is Good.
  HWY_INLINE __m512i Enter(__m512i v) {
    const __m512i key = Key(v);
    if (!kBackward) negative_zero_ = _mm512_max_epu16(negative_zero_, key);
    return key;
  }
  // Forward: all but the sign of negative ones turned over. Its own inverse.
  static HWY_INLINE __m512i Turned(__m512i v) {
    return _mm512_ternarylogic_epi32(v, _mm512_srai_epi16(v, 15), _mm512_set1_epi16(INT16_MAX), 0x78);
  }

  // Backward: zeros outside take part in some maxima; where one is greater than all pixels it takes the gradient away.
  static HWY_INLINE __mmask32 Lose(__mmask32 zeros, __m512i& best) {
    const __mmask32 lost = _mm512_mask_cmplt_epi16_mask(zeros, best, _mm512_setzero_si512());
    best = _mm512_mask_mov_epi16(best, lost, _mm512_setzero_si512());
    return lost;
  }

  // Remembers the maxima of 8 windows.
  HWY_INLINE void See(__m512i v, __mmask32 real) {
    lowest_ = _mm512_mask_min_epi16(lowest_, real, v, lowest_);
    highest_ = _mm512_mask_max_epi16(highest_, real, v, highest_);
    if (!kBackward) zero_ = _mm512_mask_min_epu16(zero_, real, v, zero_);
  }
  HWY_INLINE bool Good() const {
    const __mmask32 out_of_range = _mm512_cmpgt_epi16_mask(highest_, _mm512_set1_epi16(kInf)) |
                                   _mm512_cmple_epi16_mask(lowest_, _mm512_set1_epi16(kMinusInf));
    if (kBackward || out_of_range != 0) return out_of_range == 0;
    return _mm512_cmpeq_epi16_mask(zero_, _mm512_setzero_si512()) == 0 ||
           _mm512_cmpeq_epi16_mask(negative_zero_, _mm512_set1_epi16(-1)) == 0;
  }

 private:
  __m512i lowest_, highest_;      // maxima
  __m512i zero_, negative_zero_;  // forward: 0 where a maximum is +0; 0xffff where a texel is -0
};

// Of one row's taps the largest and which it is, the first of equals.
template <int K>
HWY_INLINE void LargestOfRow(const __m512i* t, __m512i& best, __m512i& code) {
  code = _mm512_maskz_mov_epi16(_mm512_cmpgt_epi16_mask(t[1], t[0]), _mm512_set1_epi16(1));
  best = _mm512_max_epi16(t[1], t[0]);
  if (K == 3) {
    code = _mm512_mask_mov_epi16(code, _mm512_cmpgt_epi16_mask(t[2], best), _mm512_set1_epi16(2));
    best = _mm512_max_epi16(t[2], best);
  }
}
// Adds row r of windows of K columns to the largest of the rows before.
template <int K>
HWY_INLINE void AddRowOfKeys(int r, __m512i row, __m512i row_code, __m512i& best, __m512i& code) {
  const auto first = _mm512_set1_epi16(static_cast<int16_t>(r * K));
  code = _mm512_mask_add_epi16(code, _mm512_cmpgt_epi16_mask(row, best), row_code, first);
  best = _mm512_max_epi16(row, best);
}
// The taps of 8 windows side by side in one row: keys(i) gives those of the 8 texels from i on, key(i) of one, counted
// from the first tap.
template <int K, int S, class Keys8, class Key>
HWY_INLINE void TakeKeys(Keys8&& keys, Key&& key, __m512i* t) {
  if constexpr (S == 1) {
    t[0] = keys(0), t[2] = keys(2);
    t[1] = _mm512_permutex2var_epi64(t[0], _mm512_setr_epi64(1, 2, 3, 4, 5, 6, 7, 14), t[2]);
  } else {
    const __m512i a = keys(0), b = keys(8);
    t[0] = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), b);
    t[1] = _mm512_permutex2var_epi64(a, _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15), b);
    if constexpr (K == 3) t[2] = _mm512_alignr_epi64(key(16), t[0], 1);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_KEYS_INL_H_
