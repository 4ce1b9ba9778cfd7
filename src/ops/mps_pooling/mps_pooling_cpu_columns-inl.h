// Forward encodes of small planes of f32 in 3x3 stride 1 windows (mps_pooling_cpu_small-inl.h) and their L2 gradients,
// 4 windows side by side from top to bottom, straight from the image: the edges of a row cost nothing, since a column's
// masks do not change.

#if defined(BNNS_OPS_MPS_POOLING_CPU_COLUMNS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_COLUMNS_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_COLUMNS_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_COLUMNS_INL_H_
#endif

#include "src/ops/mps_pooling/mps_pooling_cpu_small-inl.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

template <PoolKind kKind, bool kBackward>
class ColumnPlane : public SmallPlane<float, kKind, kBackward> {
  static_assert(!kBackward || kKind == PoolKind::l2_norm);
  using T = float;
  using Base = SmallPlane<T, kKind, kBackward>;
  using Base::columns_, Base::divisors_, Base::kMax, Base::lowest_, Base::masks_, Base::outside_, Base::p_,
      Base::results_;

 public:
  HWY_NOINLINE ColumnPlane(const DirectPlan& p, float* scratch) : Base(p, scratch, p.blocks) {}

  // As DirectPlane::Run.
  HWY_INLINE bool Run(const T* x, const T* g, T* to, TexelStream<T>* out) {
    Base::Begin(x, g);
    Base::Finish(out);
    lowest_ = _mm512_set1_ps(HUGE_VALF);
    for (int64_t q = 0; q < p_.blocks; ++q) Base::Ask(), Column(q, x, g);
    if (!Base::Good()) return false;
    Base::End(to);
    return true;
  }

 private:
  static HWY_INLINE __m512 Enter(__m512 v) {
    if (kMax) return Larger(v, _mm512_set1_ps(-HUGE_VALF));  // NaN is no maximum; -inf of NaNs alone
    return kKind == PoolKind::l2_norm ? _mm512_mul_ps(v, v) : v;
  }
  // The larger of two, the first of equals; the sum.
  static HWY_INLINE __m512 Join(__m512 first, __m512 v) { return kMax ? Larger(v, first) : _mm512_add_ps(first, v); }

  HWY_INLINE void Column(int64_t q, const T* x, const T* g) {
    const uint16_t* masks = masks_ + Base::kMasks * q;
    const __mmask16 m0 = masks[0], m1 = masks[1], windows = masks[3], zeros_inside = masks[4];
    const int64_t column = 4 * (p_.x.first + 4 * q);
    const __m512 zero = _mm512_setzero_ps();
    int64_t next = p_.y.first;
    const auto row = [&](__m512& own) HWY_ATTR {
      const T* from = (next < 0 || next >= p_.y.size ? outside_ : x + next * p_.source_row) + column;
      ++next;
      const auto texels = [&](int i) HWY_ATTR { return LoadTexels4(from + 4 * i, i == 0 ? m0 : m1, kMax); };
      __m512 t[3];
      TakeTaps<3, 1>(texels, texels, t);
      own = t[0];
      return Join(Join(Enter(t[0]), kMax ? t[1] : Enter(t[1])), kMax ? t[2] : Enter(t[2]));
    };
    __m512 own0, own1, own2;  // the first taps of three rows
    __m512 r0 = row(own0), r1 = row(own1);
    __m512 later = zero, last = zero;  // a gradient's texels one and two rows below so far
    const int64_t width = kBackward ? p_.x.size : p_.x.windows;
    T* to = results_ + (kBackward ? 4 * p_.y.first * width + column : 16 * q);
    for (int64_t v = 0; v < (kBackward ? p_.y.size - p_.y.first : p_.y.windows); ++v, to += 4 * width) {
      const int64_t y = p_.y.first + v;
      const __mmask16 real = v < p_.y.windows ? windows : 0;
      const __m512 r2 = row(own2);
      __m512 result = Join(Join(r0, r1), r2);
      r0 = r1, r1 = r2;
      if (kMax) {
        if (p_.edge == PoolEdge::zero) {  // zeros outside take part, as in DirectPlane
          result = _mm512_mask_max_ps(result, y >= 0 && y + 3 <= p_.y.size ? zeros_inside : 0xffff, zero, result);
        }
        lowest_ = _mm512_mask_min_ps(lowest_, real, result, lowest_);
      } else if (kKind == PoolKind::average) {  // a sum of -0 becomes 0
        result = _mm512_div_ps(_mm512_add_ps(result, zero), _mm512_load_ps(columns_ + divisors_[v] + 16 * q));
      } else {
        result = _mm512_sqrt_ps(result);
      }
      if constexpr (kBackward) {
        const __mmask16 some = _mm512_mask_cmp_ps_mask(real, result, zero, _CMP_NEQ_UQ);
        const __m512 from = LoadTexels4(g + v * p_.gradient_row + 16 * q, real, false);
        const __m512 sent = _mm512_maskz_div_ps(some, from, result);
        // What the windows to the left send is here from the columns before.
        float* before = Base::At(0, 0, 0) + 16 * v;
        DirectSenders<kKind, 3, 1> senders;
        if (q > 0) senders.last_sent = _mm512_load_ps(before);
        senders.Next(sent, _mm512_setzero_si512());
        _mm512_store_ps(before, sent);
        const __m512 got = senders.Part(0, 0, nullptr);
        __m512 sum = _mm512_add_ps(later, got);
        later = _mm512_add_ps(last, got), last = got;
        // Times the texel itself.
        sum = _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(sum, zero, _CMP_NEQ_UQ), sum, own0);
        own0 = own1, own1 = own2;
        if (y >= 0) _mm512_mask_storeu_ps(to, m0, sum);
      } else {
        _mm512_mask_storeu_ps(to, real, result);
      }
    }
  }
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_COLUMNS_INL_H_
