// Maxima of f16 (mps_pooling_cpu_halves-inl.h) as 16-bit integers in the same order: twice as many to a register as
// f32, and nothing to convert.

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
  // What is outside: forward zeros take part as taps, backward as MaxColumn says.
  static HWY_INLINE __m512i Border(bool zeros) { return _mm512_set1_epi16(zeros && !kBackward ? 0 : kMinusInf); }

  // Keys of 8 texels.
  HWY_INLINE __m512i Enter(__m512i v) {
    if (kBackward) return _mm512_mask_sub_epi16(v, _mm512_movepi16_mask(v), _mm512_set1_epi16(INT16_MIN), v);
    const __m512i key = Turned(v);
    negative_zero_ = _mm512_max_epu16(negative_zero_, key);
    return key;
  }
  // Forward: all but the sign of negative ones turned over. Its own inverse.
  static HWY_INLINE __m512i Turned(__m512i v) {
    return _mm512_ternarylogic_epi32(v, _mm512_srai_epi16(v, 15), _mm512_set1_epi16(INT16_MAX), 0x78);
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

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_KEYS_INL_H_
