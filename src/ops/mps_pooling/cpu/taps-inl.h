// Blocks of windows of one plane of the one-pass kernels (mps_pooling/cpu/direct.h): from taps to what windows give or
// send. Sums are made in the plain loops' order: the same bits.

#if defined(BNNS_OPS_MPS_POOLING_CPU_TAPS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_TAPS_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_TAPS_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_TAPS_INL_H_
#endif

#include "src/ops/mps_pooling/cpu/keys-inl.h"
#include "src/ops/mps_pooling/cpu/scratch-inl.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

template <typename T, PoolKind kKind, int K, int S, bool kBackward>
class DirectWindows : public PlaneScratch<T, kKind, K, S, kBackward> {
  using Base = PlaneScratch<T, kKind, K, S, kBackward>;
  using P = Packed<T>;
  // Forward, average and L2: sums begin with those of their first row, which were made when it was another's last.
  static constexpr bool kFirstRow = !kBackward && kKind != PoolKind::max && K - S == 1;

 public:
  using Base::kReads;

 protected:
  HWY_INLINE DirectWindows(const DirectPlan& p, float* scratch) : Base(p, scratch) {}

  using Base::kept_, Base::line_, Base::lowest_, Base::masks_;
  using Base::kMasks, Base::kMax, Base::outside_, Base::p_;
  static constexpr int kGroups = P::kGroups;
  static constexpr int64_t kBlock = P::kTexels;  // windows of a block
  // f16, backward: which tap has the maximum is found for all 8 windows of a block at once.
  static constexpr bool kKeys = kMax && kBackward && sizeof(T) == 2;

  // What the blocks of a row of windows share.
  struct Line {
    const T* row[K];
    const T* from;  // gradients
    const T* ahead;
    const float* column;
    float* kept[2];
    int64_t windows;
    bool inside;  // all of its taps' rows exist
    bool wanted[2];
  };

  HWY_INLINE const T* Row(int64_t y) const { return y < 0 || y >= p_.y.size ? outside_ : x_ + y * p_.source_row; }
  // Maxima of the rows of source that windows to come share with this one: one row for stride 2, two for stride 1.
  HWY_INLINE float* Kept(int64_t row) const { return kept_ + (S == 1 ? row % 2 : 0) * 2 * line_; }
  HWY_INLINE void Keep(float* to, __m512 best, __m512i code) const {
    _mm512_store_ps(to, best);
    if (kBackward) _mm512_store_si512(to + line_, code);
  }

  // Taps of the 4 windows of group q, straight from the image. kFull: all of them exist.
  template <bool kFull>
  HWY_INLINE void Taps(const T* row, int64_t q, __m512* t) const {
    row += 4 * (p_.x.first + 4 * S * q);
    const uint16_t* masks = masks_ + kMasks * q;
    TakeTaps<K, S>(
        [&](int i) HWY_ATTR {
          return kFull ? LoadTexels4(row + 4 * i) : LoadTexels4(row + 4 * i, masks[i == 0 ? 0 : 1], kMax);
        },
        [&](int i) HWY_ATTR { return kFull ? LoadTexel(row + 4 * i) : LoadTexels4(row + 4 * i, masks[2], kMax); }, t);
  }

  template <bool kFull>
  HWY_INLINE void BestOfWindow(const Line& l, int64_t q, const __m512 (*t)[K], __mmask16 real, __m512& best,
                               __m512i& code) {
    best = _mm512_setzero_ps(), code = _mm512_setzero_si512();
    for (int r = 0; r < K; ++r) {
      __m512 row;
      __m512i at = _mm512_setzero_si512();
      if (r < K - S) {
        row = _mm512_load_ps(l.kept[r] + 16 * q);
        if (kBackward) at = _mm512_load_si512(l.kept[r] + line_ + 16 * q);
      } else {
        BestOfRow<K>(t[r], row, at);
      }
      if (r == 0) {
        best = row, code = at;
      } else {
        if (kBackward) code = _mm512_mask_add_epi32(code, IsLarger(row, best), at, _mm512_set1_epi32(r * K));
        best = Larger(row, best);
      }
      if (r == 2) Keep(l.kept[0] + 16 * q, row, at);  // in place of row 0, the next windows do without that
    }
    if (kFull) {
      lowest_ = _mm512_min_ps(best, lowest_);
      return;
    }
    // Zeros outside take part: one that is greater than all pixels takes the gradient away.
    const __mmask16 zeros = p_.edge == PoolEdge::zero ? (l.inside ? masks_[kMasks * q + 4] : 0xffff) : 0;
    const __m512 zero = _mm512_setzero_ps();
    const __mmask16 lost = _mm512_mask_cmp_ps_mask(zeros, best, zero, _CMP_LT_OQ);
    code = _mm512_mask_mov_epi32(code, lost, _mm512_set1_epi32(-1));
    best = _mm512_mask_max_ps(best, zeros, zero, best);
    lowest_ = _mm512_mask_min_ps(lowest_, real, best, lowest_);
  }

  HWY_INLINE void KeepKeys(float* to, __m512i best, __m512i code) const {
    _mm512_store_si512(to, best), _mm512_store_si512(to + line_, code);
  }
  template <bool kFull>
  HWY_INLINE void RowOfKeys(const T* row, int64_t b, __m512i& best, __m512i& code) const {
    const int64_t x = p_.x.first + kBlock * S * b;
    row += 4 * x;
    const auto load = [&](int i, int n) HWY_ATTR {  // of n texels those that exist
      const auto first = [](int64_t m) { return m >= 8 ? 0xff : m <= 0 ? 0 : (1 << m) - 1; };
      const auto mask = static_cast<__mmask8>(first(HWY_MIN(n, p_.x.size - x - i)) & ~first(-x - i));
      const __m512i none = _mm512_set1_epi16(static_cast<int16_t>(0xfc00));  // -inf
      return HalfKeys<kBackward>::Key(_mm512_mask_loadu_epi64(none, mask, row + 4 * i));
    };
    const auto texels = [&](int i) HWY_ATTR {
      return kFull ? HalfKeys<kBackward>::Key(_mm512_loadu_si512(row + 4 * i)) : load(i, 8);
    };
    const auto texel = [&](int i) HWY_ATTR {
      if (!kFull) return load(i, 1);
      const __m128i v = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + 4 * i));
      return HalfKeys<kBackward>::Key(_mm512_castsi128_si512(v));
    };
    __m512i t[K];
    TakeKeys<K, S>(texels, texel, t);
    LargestOfRow<K>(t, best, code);
  }
  // As BestOfWindow, for the two groups of a block.
  template <bool kFull>
  HWY_INLINE void BestOfBlock(const Line& l, int64_t b, __m512i* codes) {
    using Keys = HalfKeys<kBackward>;
    __m512i best = _mm512_setzero_si512(), code = best;
    for (int r = 0; r < K; ++r) {
      __m512i row, at;
      if (r < K - S) {
        row = _mm512_load_si512(l.kept[r] + 32 * b), at = _mm512_load_si512(l.kept[r] + line_ + 32 * b);
      } else {
        RowOfKeys<kFull>(l.row[r], b, row, at);
      }
      if (r == 0) {
        best = row, code = at;
      } else {
        AddRowOfKeys<K>(r, row, at, best, code);
      }
      if (r == 2) KeepKeys(l.kept[0] + 32 * b, row, at);
    }
    __mmask32 real = ~__mmask32{0};
    if (!kFull) {
      const int64_t w = kBlock * b;
      real = Keys::First(l.windows - w);
      const __mmask32 over = Keys::First((p_.x.first < 0 ? 1 : 0) - w) | ~Keys::First(Base::Inside() - w);
      const __mmask32 zeros = p_.edge != PoolEdge::zero ? 0 : l.inside ? over : real;
      code = _mm512_mask_mov_epi16(code, Keys::Lose(zeros, best), _mm512_set1_epi16(-1));
    }
    keys_.See(best, real);
    codes[0] = _mm512_cvtepi16_epi32(_mm512_castsi512_si256(code));
    codes[1] = _mm512_cvtepi16_epi32(_mm512_extracti64x4_epi64(code, 1));
  }

  // One tap at a time, row by row. The square of an f16 is exact: fused, sums are rounded as often.
  static HWY_INLINE __m512 AddRow(__m512 sum, const __m512* t) {
    for (int c = 0; c < K; ++c) {
      if (kKind == PoolKind::l2_norm && sizeof(T) == 2) {
        sum = _mm512_fmadd_ps(t[c], t[c], sum);
      } else {
        sum = _mm512_add_ps(sum, kKind == PoolKind::l2_norm ? _mm512_mul_ps(t[c], t[c]) : t[c]);
      }
    }
    return sum;
  }
  HWY_INLINE __m512 SumOfWindow(const Line& l, int64_t q, const __m512 (*t)[K]) const {
    const __m512 zero = _mm512_setzero_ps();
    __m512 sum = kFirstRow ? _mm512_load_ps(l.kept[0] + 16 * q) : AddRow(zero, t[0]);
    for (int r = 1; r < K; ++r) sum = AddRow(sum, t[r]);
    if (kFirstRow) _mm512_store_ps(l.kept[0] + 16 * q, AddRow(zero, t[K - 1]));
    return sum;
  }

  // Begins a plane: what its first row of windows would have from rows of windows before.
  HWY_INLINE void Start(const T* x) {
    x_ = x, lowest_ = _mm512_set1_ps(HUGE_VALF), keys_ = HalfKeys<kBackward>();
    for (int r = 0; kKeys && r < K - S; ++r) {
      for (int64_t b = 0; b < p_.blocks; ++b) {
        __m512i best, code;
        RowOfKeys<false>(Row(p_.y.first + r), b, best, code);
        KeepKeys(Kept(r) + 32 * b, best, code);
      }
    }
    for (int r = 0; ((kMax && !kKeys) || kFirstRow) && r < K - S; ++r) {
      for (int64_t q = 0; q < kGroups * p_.blocks; ++q) {
        __m512 t[K], best;
        __m512i code;
        Taps<false>(Row(p_.y.first + r), q, t);
        if constexpr (kMax) {
          BestOfRow<K>(t, best, code);
          Keep(Kept(r) + 16 * q, best, code);
        } else {
          _mm512_store_ps(Kept(r) + 16 * q, AddRow(_mm512_setzero_ps(), t));
        }
      }
    }
  }
  // No maximum is -inf or of NaNs alone.
  HWY_INLINE bool Good() const { return kKeys ? keys_.Good() : Base::Good(); }

  // What the 4 windows of group q give (forward) or send. kFull: all of the block's windows, their taps and the
  // target's texels under them exist. code: which taps have the maxima, if that is known. own: the first S by S taps.
  template <bool kFull>
  HWY_INLINE __m512 Give(const Line& l, int64_t q, __m512i& code, __m512 (&own)[S][S]) {
    const __m512 zero = _mm512_setzero_ps();
    const __mmask16 real = kFull ? 0xffff : l.windows == 0 ? 0 : masks_[kMasks * q + 3];
    __m512 t[K][K], best = zero;
    for (int r = kMax || kFirstRow ? K - S : 0; kReads && !kKeys && r < K; ++r) Taps<kFull>(l.row[r], q, t[r]);
    if (kMax && !kKeys) BestOfWindow<kFull>(l, q, t, real, best, code);
    const __m512 sum = kMax || !kReads ? zero : SumOfWindow(l, q, t);
    if constexpr (!kBackward) {
      if (kKind == PoolKind::l2_norm) return _mm512_sqrt_ps(sum);
      if (kMax) return best;
      const __m512 column = _mm512_load_ps(l.column + 16 * q);
      return K == 2 ? _mm512_mul_ps(sum, column) : _mm512_div_ps(sum, column);
    }
    const T* from = l.from + 16 * q;
    const __m512 sent = kFull ? LoadTexels4(from) : LoadTexels4(from, real, false);
    if (kMax) return _mm512_add_ps(sent, zero);  // -0 becomes 0, as when added to a sum
    if (kKind == PoolKind::average) {
      return _mm512_add_ps(_mm512_mul_ps(sent, _mm512_load_ps(l.column + 16 * q)), zero);
    }
    for (int row = 0; row < S; ++row) {
      for (int c = 0; c < S; ++c) own[row][c] = t[row][c];
    }
    const __mmask16 some = _mm512_mask_cmp_ps_mask(real, sum, zero, _CMP_NEQ_UQ);
    return _mm512_maskz_div_ps(some, sent, _mm512_sqrt_ps(sum));
  }

 private:
  const T* x_ = nullptr;
  HalfKeys<kBackward> keys_;  // kKeys: the maxima so far
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_TAPS_INL_H_
