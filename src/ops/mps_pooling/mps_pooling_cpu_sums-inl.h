// Average and L2 of small planes of f16 in 3x3 stride 1 windows (mps_pooling_cpu_small-inl.h). Texels (L2: their
// squares) are brought into scratch as f32 once; a row of three is summed once and shared by the three windows above
// each other; what windows send is summed the same way for texels. Texels of a plane gather in the same loop in which
// the windows of the next plane divide and take roots: the unit that does that is slow, and the others are free
// meanwhile.

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

template <PoolKind kKind, bool kBackward>
class SumPlane : public SmallPlane<hwy::float16_t, kKind, kBackward> {
  using T = hwy::float16_t;
  using Base = SmallPlane<T, kKind, kBackward>;
  using Base::At, Base::columns_, Base::divisors_, Base::kept_, Base::line_, Base::p_, Base::pitch_, Base::results_;
  static constexpr bool kAverage = kKind == PoolKind::average;
  static constexpr bool kPaired = kBackward && !kAverage;  // a plane's texels with the next one's windows

 public:
  using Base::kReads;

  HWY_NOINLINE SumPlane(const DirectPlan& p, float* scratch)
      : Base(p, scratch, (kReads ? Base::Columns(p.x.size) : 0) + Base::Columns(p.x.windows)) {
    for (int i = 0; i < 3; ++i) Base::Fill(i, _mm512_setzero_si512());
    sent_ = At(1, 0, 0), before_ = At(2, 0, 0);
    for (int64_t i = 0; kAverage && !kBackward && i < 3 * line_; ++i) kept_[i] = 1.0f / columns_[i];
  }

  // As DirectPlane::Run.
  HWY_INLINE bool Run(const T* x, const T* g, T* to, TexelStream<T>* out) {
    Base::Begin(x, g);
    for (int64_t i = 0; kReads && i < p_.x.size; i += 4) Base::Ask(), EnterColumn(Base::Inward(i, p_.x.size), x);
    if (!kBackward || kPaired) Base::Finish(out);
    int64_t i = 0;
    for (; i < p_.x.windows; i += 4) {
      const int64_t w = Base::Inward(i, p_.x.windows);
      Base::Ask();
      if (kPaired && to_ != nullptr && i < p_.x.size) {
        Column<true, kPaired>(w, Base::Inward(i, p_.x.size), g);
      } else {
        Column<true, false>(w, 0, g);
      }
    }
    if (!kBackward) return Base::End(to), true;
    if (kPaired && to_ != nullptr) GatherFrom(i);
    x_ = x, to_ = to;
    float* const sent = sent_;
    sent_ = before_, before_ = sent;
    if (!kPaired) Gather(out);
    return true;
  }
  HWY_INLINE void Finish(TexelStream<T>* out) {
    if (kPaired && to_ != nullptr) Gather(out);
    Base::Finish(out);
  }

 private:
  HWY_INLINE void Gather(TexelStream<T>* out) {
    Base::Finish(out);
    GatherFrom(0);
    to_ = nullptr;
  }
  // The last plane's texels from column i on, and where they go.
  HWY_INLINE void GatherFrom(int64_t i) {
    for (; i < p_.x.size; i += 4) Column<false, true>(0, Base::Inward(i, p_.x.size), nullptr);
    Base::End(to_);
  }

  HWY_INLINE void EnterColumn(int64_t i, const T* x) const {
    float* to = At(0, 0, i);
    x += 4 * i;
    for (int64_t y = 0; y < p_.y.size; ++y, x += p_.source_row, to += 4 * pitch_) {
      const __m512 t = LoadTexels4(x);
      _mm512_storeu_ps(to, kAverage ? t : _mm512_mul_ps(t, t));
    }
  }

  // A sum over the number of taps, as a division rounds it, without one: of the product with the rounded
  // reciprocal the remainder is exact, and what it adds is rounded once (for 1 to 9 taps the quotient's bits, whatever
  // the sum; sums of f16 are too large and too small for neither). An infinite sum has no remainder. -0 becomes 0.
  static HWY_INLINE __m512 Quotient(__m512 sum, __m512 n, __m512 reciprocal) {
    const __m512 q = _mm512_mul_ps(sum, reciprocal), rest = _mm512_fnmadd_ps(q, n, sum);
    return _mm512_mask3_fmadd_ps(rest, reciprocal, q, _mm512_cmp_ps_mask(rest, rest, _CMP_ORD_Q));
  }

  // The root of a sum of squares as good as one that is rounded correctly, once it is rounded to f16. Its
  // relative error before it is rounded to f32 is at most 2^-37 (2^-24 of the last approximation times 2^-14 of the
  // reciprocal root's, which its instruction promises); and since midpoints m of two f16 have 12 bits, roots of f32 are
  // no closer than 2^-35 to the only places where that could matter, half an ulp beside an m.
  static HWY_INLINE __m512 Root(__m512 s) {
    const __m512 y = _mm512_rsqrt14_ps(s), half = _mm512_set1_ps(0.5f), g0 = _mm512_mul_ps(s, y);
    const __m512 h = _mm512_mul_ps(half, y), g1 = _mm512_fmadd_ps(g0, _mm512_fnmadd_ps(g0, h, half), g0);
    const __m512 g2 = _mm512_fmadd_ps(_mm512_fnmadd_ps(g1, g1, s), h, g1);
    return _mm512_mask_mov_ps(g2, _mm512_fpclass_ps_mask(s, 0x0a), s);  // 0 and infinity are their own
  }

  // A sum in the units that multiply, which some cores have beside those that add; the same bits.
  static HWY_INLINE __m512 FusedAdd(__m512 a, __m512 b) { return _mm512_fmadd_ps(a, _mm512_set1_ps(1.0f), b); }

  // kWindows: 4 windows side by side from w on, from top to bottom: what they give, or send. kTexels: 4 texels of the
  // plane before from i on: what its windows sent, row by row of windows.
  template <bool kWindows, bool kTexels>
  HWY_INLINE void Column(int64_t w, int64_t i, const T* g) const {
    const __m512 zero = _mm512_setzero_ps();
    const float* at = At(0, p_.y.first, p_.x.first + w);
    const auto row = [&]() HWY_ATTR {
      const __m512 t0 = _mm512_loadu_ps(at), t1 = _mm512_loadu_ps(at + 4), t2 = _mm512_loadu_ps(at + 8);
      at += 4 * pitch_;
      return _mm512_add_ps(_mm512_add_ps(t0, t1), t2);
    };
    __m512 r0 = zero, r1 = zero;
    if (kWindows && kReads) r0 = row(), r1 = row();
    T* to = results_ + 4 * w;
    float* sent = sent_ + 4 * w;
    g += 4 * w;
    int32_t d = -1;  // divisors change with the first and the last rows only
    __m512 divisor = zero, reciprocal = zero;

    __m512 later = zero, last = zero;  // so far for the rows one and two below
    const int64_t texel = p_.y.first * p_.x.size + i;
    T* texels = results_ + 4 * texel;
    const T* own = kAverage ? nullptr : x_ + p_.y.first * p_.source_row + 4 * i;
    const float *from = before_ + 4 * (i - p_.x.first - 2), *none = from + 4 * p_.y.windows * pitch_;

    const int64_t windows = kWindows ? p_.y.windows : 0, rows = kTexels ? p_.y.size - p_.y.first : 0;
    for (int64_t v = 0; v < HWY_MAX(windows, rows); ++v) {
      if (kWindows && v < windows) {
        if (kAverage && d != divisors_[v]) {
          d = divisors_[v];
          divisor = _mm512_loadu_ps(columns_ + d + 4 * w);
          if (!kBackward) reciprocal = _mm512_loadu_ps(kept_ + d + 4 * w);
        }
        __m512 sum = zero;
        if (kReads) {
          const __m512 r2 = row();
          sum = _mm512_add_ps(_mm512_add_ps(r0, r1), r2);
          r0 = r1, r1 = r2;
        }
        if (!kBackward) {
          // Every other root without the unit for roots, which is busy with the one before.
          const __m512 root = kAverage ? zero : v % 2 == 0 ? _mm512_sqrt_ps(sum) : Root(sum);
          StoreTexels4(to, kAverage ? Quotient(sum, divisor, reciprocal) : root);
          to += 4 * p_.x.windows;
        } else {
          const __mmask16 some = _mm512_cmp_ps_mask(sum, zero, _CMP_NEQ_UQ);
          const __m512 given = LoadTexels4(g);  // average: -0 becomes 0, as when added to a sum
          _mm512_storeu_ps(sent, kAverage ? _mm512_fmadd_ps(given, divisor, zero)
                                          : _mm512_maskz_div_ps(some, given, _mm512_sqrt_ps(sum)));
          sent += 4 * pitch_, g += p_.gradient_row;
        }
      }
      if (kTexels && v < rows) {
        const __m512 s0 = _mm512_loadu_ps(from), s1 = _mm512_loadu_ps(from + 4), s2 = _mm512_loadu_ps(from + 8);
        from = from == none ? none : from + 4 * pitch_;  // after the last row of windows one that sends nothing
        const __m512 got = FusedAdd(s2, _mm512_add_ps(s0, s1));
        __m512 sum = _mm512_add_ps(later, got);
        later = FusedAdd(last, got), last = got;
        if (v >= -p_.y.first) {
          if (!kAverage) {  // times the texel itself
            sum = _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(sum, zero, _CMP_NEQ_UQ), sum, LoadTexels4(own));
          }
          StoreTexels4(texels, sum);
        }
        texels += 4 * p_.x.size;
        if (!kAverage) own += p_.source_row;
      }
    }
  }

  float *sent_, *before_;  // what window 0 sends, of this plane and of the last
  // Backward: the last plane, whose windows have sent what its texels have yet to gather.
  const T* x_ = nullptr;
  T* to_ = nullptr;
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_SUMS_INL_H_
