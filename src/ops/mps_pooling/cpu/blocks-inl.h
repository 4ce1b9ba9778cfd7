// Blocks of 4 windows of the one-pass kernels (mps_pooling/cpu/direct.h) in registers: K by K windows, stride S.

#if defined(BNNS_OPS_MPS_POOLING_CPU_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_BLOCKS_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_BLOCKS_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_BLOCKS_INL_H_
#endif

#include "src/ops/mps_pooling/cpu/stream-inl.h"
#include "src/ops/mps_pooling/mps_pooling.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
using mps::PoolKind;

// Taps 0 to K - 1 of 4 windows side by side in one row: texels(i) gives the 4 texels from i on, texel(i) one, counted
// from the first tap. Asks for none after the last window's last tap.
template <int K, int S, class Texels, class Texel>
HWY_INLINE void TakeTaps(Texels&& texels, Texel&& texel, __m512* t) {
  if constexpr (S == 1) {
    static_assert(K == 3);
    const __m512i middle = _mm512_setr_epi32(4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27);
    t[0] = texels(0), t[2] = texels(2);
    t[1] = _mm512_permutex2var_ps(t[0], middle, t[2]);
  } else {
    const __m512 a = texels(0), b = texels(4);
    t[0] = _mm512_shuffle_f32x4(a, b, _MM_SHUFFLE(2, 0, 2, 0));
    t[1] = _mm512_shuffle_f32x4(a, b, _MM_SHUFFLE(3, 1, 3, 1));
    if constexpr (K == 3) t[2] = ShiftIn<1>(t[0], texel(8));
  }
}

// Sums in the units that multiply, which some cores have beside those that add; the same bits.
HWY_INLINE __m512 FusedAdd(__m512 a, __m512 b) {
  return _mm512_fmadd_ps(a, _mm512_set1_ps(1.0f), b);
}

// The larger; `best` for equals.
HWY_INLINE __m512 Larger(__m512 v, __m512 best) {
  return _mm512_max_ps(v, best);
}
HWY_INLINE __mmask16 IsLarger(__m512 v, __m512 best) {
  return _mm512_cmp_ps_mask(v, best, _CMP_GT_OQ);
}

// Maxima of one row's taps and which tap it is, the first of equals. NaN never is a maximum; -inf of NaNs alone.
template <int K>
HWY_INLINE void BestOfRow(const __m512* t, __m512& best, __m512i& code) {
  best = Larger(t[0], _mm512_set1_ps(-HUGE_VALF)), code = _mm512_setzero_si512();
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
    const __m512 at = _mm512_castsi512_ps(c), last = _mm512_castsi512_ps(last_code);
    if constexpr (kReach >= 1) {
      sent[1] = ShiftIn<3>(last_sent, s);
      if (kKind == PoolKind::max) code[1] = _mm512_castps_si512(ShiftIn<3>(last, at));
    }
    if constexpr (kReach >= 2) {
      sent[2] = ShiftIn<2>(last_sent, s);
      if (kKind == PoolKind::max) code[2] = _mm512_castps_si512(ShiftIn<2>(last, at));
    }
    last_sent = s, last_code = c;
  }
  // What texels on column c of a slot get from the windows that have them under tap row r, windows in order.
  // codes: 16 times 0, 16 times 1, ... in memory, where a comparison takes them from without a register.
  HWY_INLINE __m512 Part(int r, int c, const int32_t* codes) const {
    __m512 sum = _mm512_setzero_ps();
    for (int back = (K - 1 - c) / S; back >= 0; --back) {
      const bool first = back == (K - 1 - c) / S;
      if (kKind == PoolKind::max) {
        const __mmask16 hit =
            _mm512_cmpeq_epi32_mask(code[back], _mm512_load_si512(codes + 16 * (r * K + c + S * back)));
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
