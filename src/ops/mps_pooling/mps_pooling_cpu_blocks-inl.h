// Blocks of 4 windows of the one-pass kernels (mps_pooling_cpu_direct.h) in registers: K by K windows, stride S.

#if defined(BNNS_OPS_MPS_POOLING_CPU_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_BLOCKS_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_BLOCKS_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_BLOCKS_INL_H_
#endif

#include "src/ops/mps_pooling/mps_pooling.h"
#include "src/ops/mps_pooling/mps_pooling_cpu_stream-inl.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
using mps::PoolKind;

// A block's taps in one row: t[c] holds tap c of 4 windows.
template <int K, int S>
HWY_INLINE void LoadTaps(const float* row, int64_t block, __m512* t) {
  const float* from = row + 16 * S * block;
  if constexpr (S == 1) {
    for (int c = 0; c < K; ++c) t[c] = _mm512_loadu_ps(from + 4 * c);
  } else {
    const __m512 a = _mm512_loadu_ps(from), b = _mm512_loadu_ps(from + 16);
    t[0] = _mm512_shuffle_f32x4(a, b, _MM_SHUFFLE(2, 0, 2, 0));
    t[1] = _mm512_shuffle_f32x4(a, b, _MM_SHUFFLE(3, 1, 3, 1));
    if constexpr (K == 3) t[2] = ShiftIn(t[0], _mm512_loadu_ps(from + 32), 1);
  }
}

// The larger; `best` for equals.
HWY_INLINE __m512 Larger(__m512 v, __m512 best) {
  return _mm512_max_ps(v, best);
}
HWY_INLINE __mmask16 IsLarger(__m512 v, __m512 best) {
  return _mm512_cmp_ps_mask(v, best, _CMP_GT_OQ);
}

// Maxima of one row's taps and which tap it is, the first of equals.
template <int K>
HWY_INLINE void BestOfRow(const __m512* t, __m512& best, __m512i& code) {
  best = t[0], code = _mm512_setzero_si512();
  for (int c = 1; c < K; ++c) {
    code = _mm512_mask_mov_epi32(code, IsLarger(t[c], best), _mm512_set1_epi32(c));
    best = Larger(t[c], best);
  }
}

// What the windows that reach a slot's texels send: window 0, 1, ... slots back. Slot i holds the texels under the
// first S taps of window i.
template <PoolKind kKind, int K, int S>
struct DirectSenders {
  static constexpr int kReach = (K - 1) / S;
  __m512 sent[kReach + 1];
  __m512i code[kReach + 1];
  __m512 last_sent;  // of the block before
  __m512i last_code;

  HWY_INLINE DirectSenders() : last_sent(_mm512_setzero_ps()), last_code(_mm512_set1_epi32(-1)) {}

  HWY_INLINE void Next(__m512 s, __m512i c) {
    sent[0] = s, code[0] = c;
    for (int back = 1; back <= kReach; ++back) {
      sent[back] = ShiftIn(last_sent, s, 4 - back);
      if (kKind != PoolKind::max) continue;
      code[back] = _mm512_castps_si512(ShiftIn(_mm512_castsi512_ps(last_code), _mm512_castsi512_ps(c), 4 - back));
    }
    last_sent = s, last_code = c;
  }
  // What texels on column c of a slot get from the windows that have them under tap row r, windows in order.
  HWY_INLINE __m512 Part(int r, int c) const {
    __m512 sum = _mm512_setzero_ps();
    for (int back = (K - 1 - c) / S; back >= 0; --back) {
      const bool first = back == (K - 1 - c) / S;
      if (kKind == PoolKind::max) {
        const __mmask16 hit = _mm512_cmpeq_epi32_mask(code[back], _mm512_set1_epi32(r * K + c + S * back));
        sum = first ? _mm512_maskz_mov_ps(hit, sent[back]) : _mm512_mask_add_ps(sum, hit, sum, sent[back]);
      } else {
        sum = first ? sent[back] : _mm512_add_ps(sum, sent[back]);
      }
    }
    return sum;
  }
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_BLOCKS_INL_H_
