// Average and L2 of small planes in 3x3 stride 1 windows (mps_pooling_cpu_small-inl.h). Texels (L2: their squares) are
// brought into scratch as f32 once; a row of three is summed once and shared by the three windows above each other; what
// windows send is summed the same way for texels.

#if defined(BNNS_OPS_MPS_POOLING_CPU_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_SUMS_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_SUMS_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_SUMS_INL_H_
#endif

#include "src/ops/mps_pooling/mps_pooling_cpu_small-inl.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

template <typename T, PoolKind kKind, bool kBackward>
class SumPlane : public SmallPlane<T, kKind, kBackward> {
  using Base = SmallPlane<T, kKind, kBackward>;
  using Base::At, Base::columns_, Base::kept_, Base::line_, Base::p_, Base::pitch_, Base::results_;
  static constexpr bool kAverage = kKind == PoolKind::average;
  static constexpr int kTexels = 0, kSent = 1;  // boxes

 public:
  using Base::kReads;

  HWY_NOINLINE SumPlane(const DirectPlan& p, float* scratch)
      : Base(p, scratch,
             (kReads ? Base::Columns(p.x.size) : 0) + Base::Columns(p.x.windows) +
                 (kBackward ? Base::Columns(p.x.size) : 0)) {
    Base::Fill(kTexels, _mm512_setzero_si512()), Base::Fill(kSent, _mm512_setzero_si512());
    divisors_ = reinterpret_cast<int32_t*>(At(2, 0, 0));
    for (int64_t v = 0; kAverage && v < p.y.windows; ++v) {
      divisors_[v] = static_cast<int32_t>((Base::CountedRows(v) - 1) * line_);
    }
    for (int64_t i = 0; kAverage && !kBackward && i < 3 * line_; ++i) kept_[i] = 1.0f / columns_[i];
  }

  // As DirectPlane::Run.
  HWY_INLINE bool Run(const T* x, const T* g, T* to, TexelStream<T>* out) {
    Base::Begin(x, g);
    for (int64_t i = 0; kReads && i < p_.x.size; i += 4) Base::Ask(), EnterColumn(Base::Inward(i, p_.x.size), x);
    if (!kBackward) Base::Finish(out);
    for (int64_t w = 0; w < p_.x.windows; w += 4) {
      Base::Ask();
      const int64_t begin = Base::Inward(w, p_.x.windows);
      kReads ? SumColumn(begin, g) : SendColumn(begin, g);
    }
    if (kBackward) Base::Finish(out);
    for (int64_t i = 0; kBackward && i < p_.x.size; i += 4) Base::Ask(), GatherColumn(Base::Inward(i, p_.x.size), x);
    Base::End(to);
    return true;
  }

 private:
  HWY_INLINE void EnterColumn(int64_t i, const T* x) const {
    float* to = At(kTexels, 0, i);
    x += 4 * i;
    for (int64_t y = 0; y < p_.y.size; ++y, x += p_.source_row, to += 4 * pitch_) {
      const __m512 t = LoadTexels4(x);
      _mm512_storeu_ps(to, kAverage ? t : _mm512_mul_ps(t, t));
    }
  }

  // A sum over the number of taps, as a division rounds it, without one: of the quotient by the rounded reciprocal the
  // remainder is exact, and what it adds is rounded once (all sums over 1 to 9 taps give the division's bits; those of
  // f16 are too large and too small for neither). An infinite sum has no remainder. A sum of -0 becomes 0.
  static HWY_INLINE __m512 Quotient(__m512 sum, __m512 n, __m512 r) {
    const __m512 q = _mm512_mul_ps(sum, r), rest = _mm512_fnmadd_ps(q, n, sum);
    return _mm512_mask3_fmadd_ps(rest, r, q, _mm512_cmp_ps_mask(rest, rest, _CMP_ORD_Q));
  }

  // A sum in the units that multiply, which some cores have beside those that add; the same bits.
  static HWY_INLINE __m512 FusedAdd(__m512 a, __m512 b) { return _mm512_fmadd_ps(a, _mm512_set1_ps(1.0f), b); }

  // 4 windows side by side from w on: what they give, or send.
  HWY_INLINE void SumColumn(int64_t w, const T* g) const {
    const float* at = At(kTexels, p_.y.first, p_.x.first + w);
    const auto row = [&]() HWY_ATTR {
      const __m512 t0 = _mm512_loadu_ps(at), t1 = _mm512_loadu_ps(at + 4), t2 = _mm512_loadu_ps(at + 8);
      at += 4 * pitch_;
      return _mm512_add_ps(_mm512_add_ps(t0, t1), t2);
    };
    __m512 r0 = row(), r1 = row();
    T* to = results_ + 4 * w;
    float* sent = At(kSent, 0, w);
    g += 4 * w;
    int32_t d = -1;  // divisors change with the first and the last rows only
    __m512 divisor = _mm512_setzero_ps(), reciprocal = divisor;
    for (int64_t v = 0; v < p_.y.windows; ++v) {
      const __m512 r2 = row(), sum = _mm512_add_ps(_mm512_add_ps(r0, r1), r2);
      r0 = r1, r1 = r2;
      if constexpr (kBackward) {
        const __mmask16 some = _mm512_cmp_ps_mask(sum, _mm512_setzero_ps(), _CMP_NEQ_UQ);
        _mm512_storeu_ps(sent, _mm512_maskz_div_ps(some, LoadTexels4(g), _mm512_sqrt_ps(sum)));
        sent += 4 * pitch_, g += p_.gradient_row;
      } else {
        if (kAverage && d != divisors_[v]) {
          d = divisors_[v];
          divisor = _mm512_loadu_ps(columns_ + d + 4 * w), reciprocal = _mm512_loadu_ps(kept_ + d + 4 * w);
        }
        StoreTexels4(to, kAverage ? Quotient(sum, divisor, reciprocal) : _mm512_sqrt_ps(sum));
        to += 4 * p_.x.windows;
      }
    }
  }

  // Average: what 4 windows from w on send. -0 becomes 0, as when added to a sum.
  HWY_INLINE void SendColumn(int64_t w, const T* g) const {
    float* sent = At(kSent, 0, w);
    g += 4 * w;
    int32_t d = -1;
    __m512 share = _mm512_setzero_ps();
    for (int64_t v = 0; v < p_.y.windows; ++v, g += p_.gradient_row, sent += 4 * pitch_) {
      if (d != divisors_[v]) d = divisors_[v], share = _mm512_loadu_ps(columns_ + d + 4 * w);
      _mm512_storeu_ps(sent, _mm512_fmadd_ps(LoadTexels4(g), share, _mm512_setzero_ps()));
    }
  }

  // 4 texels side by side from i on: what the windows send, row by row of windows.
  HWY_INLINE void GatherColumn(int64_t i, const T* x) const {
    const __m512 zero = _mm512_setzero_ps();
    __m512 later = zero, last = zero;  // so far for the rows one and two below
    T* to = results_ + 4 * (p_.y.first * p_.x.size + i);
    x += p_.y.first * p_.source_row + 4 * i;
    for (int64_t y = p_.y.first, v = 0; y < p_.y.size; ++y, ++v, to += 4 * p_.x.size, x += p_.source_row) {
      const float* at = At(kSent, HWY_MIN(v, p_.y.windows), i - p_.x.first - 2);
      const __m512 s0 = _mm512_loadu_ps(at), s1 = _mm512_loadu_ps(at + 4), s2 = _mm512_loadu_ps(at + 8);
      const __m512 row = FusedAdd(s2, _mm512_add_ps(s0, s1));
      __m512 sum = _mm512_add_ps(later, row);
      later = FusedAdd(last, row), last = row;
      if (y < 0) continue;
      if (!kAverage) {  // times the texel itself
        sum = _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(sum, zero, _CMP_NEQ_UQ), sum, LoadTexels4(x));
      }
      StoreTexels4(to, sum);
    }
  }

  int32_t* divisors_;  // average: where the divisors of a row of windows begin
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_SUMS_INL_H_
