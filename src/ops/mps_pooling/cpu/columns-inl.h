// Small planes of f32 in 3x3 stride 1 windows (mps_pooling/cpu/direct.h), 4 columns of windows at a time from top to
// bottom: what windows share with those above stays in registers, and the edges of a row cost nothing, since a column's
// masks do not change. The results of a plane lie in scratch until all are there, then leave as whole lines.

#if defined(BNNS_OPS_MPS_POOLING_CPU_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_COLUMNS_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_COLUMNS_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_COLUMNS_INL_H_
#endif

#include "src/ops/mps_pooling/cpu/scratch-inl.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

template <PoolKind kKind, bool kBackward>
class ColumnPlane : PlaneScratch<float, kKind, 3, 1, kBackward> {
  using T = float;
  using Base = PlaneScratch<T, kKind, 3, 1, kBackward>;
  using P = Packed<T>;
  using Base::codes_, Base::columns_, Base::kMax, Base::line_, Base::lowest_, Base::masks_, Base::outside_, Base::p_;

 public:
  using Base::kReads;

  HWY_INLINE ColumnPlane(const DirectPlan& p, float* scratch)
      : Base(p, scratch), before_(scratch + p.row_scratch_bytes() / sizeof(float)) {
    divisors_ = reinterpret_cast<int32_t*>(before_ + 32 * (p.y.size + 1));
    for (int64_t v = 0; kKind == PoolKind::average && v <= p.y.size; ++v) {
      divisors_[v] = static_cast<int32_t>(v < p.y.windows ? (Base::CountedRows(v) - 1) * line_ : 0);
    }
    flat_ = before_ + p.column_floats();
    width_ = kBackward ? p.x.size : p.x.windows;
  }

  // As DirectPlane::Run.
  HWY_INLINE bool Run(const T* x, const T* g, T* to, TexelStream<T>* out) {
    const int64_t groups = P::kGroups * p_.blocks, part = (4 * p_.x.size * p_.y.size) / groups + 1;
    lowest_ = _mm512_set1_ps(HUGE_VALF);
    for (int64_t q = 0; q < groups; ++q) {
      constexpr int64_t kLineElements = 64 / sizeof(T);
      const int64_t ahead = HWY_MAX(p_.x.size * p_.y.size * 4, static_cast<int64_t>(kAhead / sizeof(T)));
      for (int64_t i = q * part; i < (q + 1) * part; i += kLineElements) {
        if (kReads) hwy::Prefetch(x + ahead + i);
        if (kBackward) hwy::Prefetch(g + ahead + i);
      }
      Column(q, x, g);
    }
    Base::PutPlane(flat_, to, out[0]);
    return Base::Good();
  }
  HWY_INLINE void Finish(TexelStream<T>*) {}

 private:
  HWY_INLINE void Column(int64_t q, const T* x, const T* g) {
    const uint16_t* masks = masks_ + Base::kMasks * q;
    const __mmask16 m0 = masks[0], m1 = masks[1], windows = masks[3], zeros_inside = masks[4];
    const int64_t column = 4 * (p_.x.first + 4 * q);
    const __m512 zero = _mm512_setzero_ps();
    const auto take = [&](int64_t y, __m512* t) HWY_ATTR {
      const T* row = (y < 0 || y >= p_.y.size ? outside_ : x + y * p_.source_row) + column;
      const auto texels = [&](int i) HWY_ATTR { return LoadTexels4(row + 4 * i, i == 0 ? m0 : m1, kMax); };
      TakeTaps<3, 1>(texels, texels, t);
    };
    // Of the rows of taps of a window: the maxima and where; the taps or, for L2, their squares; the first taps.
    __m512 best[3], term[3][3], own[3];
    __m512i code[3];
    const auto next_row = [&](int64_t y, int r) HWY_ATTR {
      __m512 t[3];
      take(y, t);
      own[r] = t[0];
      if (kMax) return BestOfRow<3>(t, best[r], code[r]);
      for (int c = 0; c < 3; ++c) term[r][c] = kKind == PoolKind::l2_norm ? _mm512_mul_ps(t[c], t[c]) : t[c];
    };
    const auto move_up = [&](int r) HWY_ATTR {
      own[r] = own[r + 1], best[r] = best[r + 1], code[r] = code[r + 1];
      for (int c = 0; c < 3; ++c) term[r][c] = term[r + 1][c];
    };
    if (kReads) next_row(p_.y.first, 0), next_row(p_.y.first + 1, 1);
    __m512 later[2] = {zero, zero};
    const int64_t end = kBackward ? p_.y.size - p_.y.first : p_.y.windows;
    for (int64_t v = 0; v < end; ++v) {
      const int64_t y = p_.y.first + v;
      const __mmask16 real = v < p_.y.windows ? windows : 0;
      if (kReads) next_row(y + 2, 2);
      __m512 result = zero;
      __m512i at = _mm512_setzero_si512();
      if (kMax) {
        result = best[0], at = code[0];
        for (int r = 1; r < 3; ++r) {
          if (kBackward) at = _mm512_mask_add_epi32(at, IsLarger(best[r], result), code[r], _mm512_set1_epi32(3 * r));
          result = Larger(best[r], result);
        }
        if (p_.edge == PoolEdge::zero) {  // zeros outside take part, as in DirectPlane
          const __mmask16 zeros = y >= 0 && y + 3 <= p_.y.size ? zeros_inside : 0xffff;
          at = _mm512_mask_mov_epi32(at, _mm512_mask_cmp_ps_mask(zeros, result, zero, _CMP_LT_OQ),
                                     _mm512_set1_epi32(-1));
          result = _mm512_mask_max_ps(result, zeros, zero, result);
        }
        lowest_ = _mm512_mask_min_ps(lowest_, real, result, lowest_);
      } else if (kReads) {
        for (int i = 0; i < 9; ++i) result = _mm512_add_ps(result, term[i / 3][i % 3]);
      }
      if constexpr (!kBackward) {
        if (kKind == PoolKind::average) {
          result = _mm512_div_ps(result, _mm512_load_ps(columns_ + divisors_[v] + 16 * q));
        }
        if (kKind == PoolKind::l2_norm) result = _mm512_sqrt_ps(result);
        _mm512_mask_storeu_ps(flat_ + 4 * (v * width_ + 4 * q), real, result);
      } else {
        __m512 sent = _mm512_add_ps(LoadTexels4(g + v * p_.gradient_row + 16 * q, real, false), zero);
        if (kKind == PoolKind::average) {
          sent = _mm512_mul_ps(sent, _mm512_load_ps(columns_ + divisors_[v] + 16 * q));
          sent = _mm512_add_ps(sent, zero);
        } else if (kKind == PoolKind::l2_norm) {
          const __mmask16 some = _mm512_mask_cmp_ps_mask(real, result, zero, _CMP_NEQ_UQ);
          sent = _mm512_maskz_mov_ps(some, _mm512_add_ps(_mm512_div_ps(sent, _mm512_sqrt_ps(result)), zero));
        }
        // What the windows to the left send is here from the columns before.
        float* before = before_ + 32 * v;
        DirectSenders<kKind, 3, 1> senders;
        if (q > 0) {
          senders.last_sent = _mm512_load_ps(before);
          if (kMax) senders.last_code = _mm512_load_si512(before + 16);
        }
        senders.Next(sent, at);
        _mm512_store_ps(before, sent);
        if (kMax) _mm512_store_si512(before + 16, at);
        __m512 sum = _mm512_add_ps(later[0], senders.Part(0, 0, codes_));
        later[0] = _mm512_add_ps(later[1], senders.Part(1, 0, codes_)), later[1] = senders.Part(2, 0, codes_);
        if (kKind == PoolKind::l2_norm) {  // times the texel itself
          sum = _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(sum, zero, _CMP_NEQ_UQ), sum, own[0]);
        }
        if (y >= 0) _mm512_mask_storeu_ps(flat_ + 4 * y * width_ + column, m0, sum);
      }
      move_up(0), move_up(1);
    }
  }

  float* before_;      // what the column before sends, row by row
  int32_t* divisors_;  // average: where a row's divisors lie in columns_
  T* flat_;            // a plane of results
  int64_t width_;
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_COLUMNS_INL_H_
