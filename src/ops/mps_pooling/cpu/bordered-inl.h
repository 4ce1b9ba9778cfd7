// Small planes of f16 in 3x3 stride 1 windows (mps_pooling/cpu/direct.h), in passes that never meet an edge: a plane is
// copied into scratch with a border around it; windows are walked some columns at a time from top to bottom, so that
// what they share with those above stays in registers; the last columns overlap those before instead of ending early. A
// gradient's windows leave what they send in scratch, with a border too, and texels gather it there. The results of a
// plane lie in scratch until all are there, then leave as whole lines.

#if defined(BNNS_OPS_MPS_POOLING_CPU_BORDERED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_BORDERED_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_BORDERED_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_BORDERED_INL_H_
#endif

#include "src/ops/mps_pooling/cpu/keys-inl.h"
#include "src/ops/mps_pooling/cpu/rows-inl.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

template <PoolKind kKind, bool kBackward>
class BorderedPlane : PlaneScratch<hwy::float16_t, kKind, 3, 1, kBackward> {
  using T = hwy::float16_t;
  using Base = PlaneScratch<T, kKind, 3, 1, kBackward>;
  using Base::columns_, Base::kMax, Base::line_, Base::p_;
  using Keys = HalfKeys<kBackward>;
  static constexpr bool kAverage = kKind == PoolKind::average;

 public:
  using Base::kReads;

  HWY_NOINLINE BorderedPlane(const DirectPlan& p, float* scratch)
      : Base(p, scratch), plan_(&p), scratch_(scratch), pitch_(p.half_pitch()) {
    const __m512i border = kMax ? Keys::Border(p.edge == PoolEdge::zero) : _mm512_setzero_si512();
    float* at = scratch + p.row_scratch_bytes() / sizeof(float);
    for (int64_t i = 0; i < p.half_texel_floats(); i += 16) _mm512_store_si512(at + i, border);
    in_ = reinterpret_cast<T*>(at) + 4 * (pitch_ + 1);
    at += p.half_texel_floats();
    const int64_t n = p.half_window_floats();
    for (int64_t i = 0; i < n; i += 16) {
      _mm512_store_ps(at + i, _mm512_setzero_ps()), _mm512_store_si512(at + n + i, _mm512_set1_epi32(-1));
    }
    sent_ = at + 16;
    code_ = reinterpret_cast<int16_t*>(at + n) + 16;
    divisors_ = reinterpret_cast<int32_t*>(at + 2 * n);
    for (int64_t v = 0; kAverage && v < p.y.windows; ++v) {
      divisors_[v] = static_cast<int32_t>((Base::CountedRows(v) - 1) * line_);
    }
    flat_ = reinterpret_cast<T*>(at + 2 * n + (p.y.windows + 15) / 16 * 16);
  }

  // As DirectPlane::Run.
  HWY_INLINE bool Run(const T* x, const T* g, T* to, TexelStream<T>* out) {
    Keys keys;
    if (kReads) Copy(x, keys);
    Finish(out);
    for (int64_t w = 0; kMax && w < p_.x.windows; w += 8) {
      PrefetchPart(x, p_.x.size * p_.y.size, w, 8, p_.x.windows);
      MaxColumn(HWY_MAX(0, HWY_MIN(w, p_.x.windows - 8)), keys);
    }
    if (kMax && !keys.Good()) return kBackward ? false : RunFloats(*plan_, scratch_, x, to, out);
    for (int64_t w = 0; (kBackward || !kMax) && w < p_.x.windows; w += 4) {
      if (kReads && !kMax) PrefetchPart(x, p_.x.size * p_.y.size, w, 4, p_.x.windows);
      if (kBackward) PrefetchPart(g, p_.x.windows * p_.y.windows, w, 4, p_.x.windows);
      const int64_t begin = HWY_MIN(w, p_.x.windows - 4);
      kKind == PoolKind::l2_norm || !kBackward ? SumColumn(begin, g) : SendColumn(begin, g);
    }
    for (int64_t i = 0; kBackward && i < p_.x.size; i += 4) GatherColumn(HWY_MIN(i, p_.x.size - 4));
    pending_ = to;
    return true;
  }
  // Writes the last plane. Run does that for the one before, once its own is copied: non-temporal stores keep
  // those after them waiting, and loads of what is copied wait for these.
  HWY_INLINE void Finish(TexelStream<T>* out) {
    if (pending_ == nullptr) return;
    Base::PutPlane(flat_, pending_, out[0]);
    pending_ = nullptr;
  }

 private:
  // Prefetches what belongs to columns [w, w + n) of `columns`, some planes ahead.
  static HWY_INLINE void PrefetchPart(const T* plane, int64_t texels, int64_t w, int64_t n, int64_t columns) {
    const int64_t ahead = HWY_MAX(4 * texels, static_cast<int64_t>(kAhead / sizeof(T)));
    const int64_t part = 4 * texels * n / columns + 1, begin = part * (w / n);
    for (int64_t i = begin; i < begin + part; i += 32) hwy::Prefetch(plane + ahead + i);
  }

  HWY_INLINE const T* At(int64_t y, int64_t x) const { return in_ + 4 * (y * pitch_ + x); }

  HWY_INLINE void Copy(const T* x, Keys& keys) {
    const int64_t width = p_.x.size;
    for (int64_t y = 0; y < p_.y.size; ++y, x += p_.source_row) {
      T* to = in_ + 4 * y * pitch_;
      for (int64_t i = 0; i < width && width >= 8; i += 8) {
        const int64_t at = 4 * HWY_MIN(i, width - 8);
        __m512i v = _mm512_loadu_si512(x + at);
        if (kMax) v = keys.Enter(v);
        _mm512_storeu_si512(to + at, v);
      }
      for (int64_t i = 0; i < width && width < 8; i += 4) {
        const int64_t at = 4 * HWY_MIN(i, width - 4);
        __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + at));
        if (kMax) v = _mm512_castsi512_si256(keys.Enter(_mm512_zextsi256_si512(v)));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at), v);
      }
    }
  }

  // 8 windows side by side from w on: forward the maxima, backward which tap has them. Of fewer windows those that do
  // not exist are overwritten by the next row's.
  HWY_INLINE void MaxColumn(int64_t w, Keys& keys) {
    const __mmask32 real = Keys::First(p_.x.windows - w);
    __mmask32 over = 0;  // windows that reach outside, where zeros take part
    if (p_.edge == PoolEdge::zero) over = Keys::First(w == 0 ? -p_.x.first : 0) | ~Keys::First(Base::Inside() - w);
    const auto row = [&](int64_t y, __m512i& best, __m512i& code) HWY_ATTR {
      const T* at = At(y, p_.x.first + w);
      const auto load = [&](int i) HWY_ATTR { return _mm512_loadu_si512(at + 4 * i); };
      __m512i t[3];
      TakeKeys<3, 1>(load, load, t);
      LargestOfRow<3>(t, best, code);
    };
    __m512i b0, b1, b2, c0, c1, c2;
    row(p_.y.first, b0, c0), row(p_.y.first + 1, b1, c1);
    for (int64_t v = 0; v < p_.y.windows; ++v) {
      const int64_t y = p_.y.first + v;
      row(y + 2, b2, c2);
      __m512i best = b0, code = c0;
      AddRowOfKeys<3>(1, b1, c1, best, code), AddRowOfKeys<3>(2, b2, c2, best, code);
      if constexpr (kBackward) {
        const bool outside = p_.edge == PoolEdge::zero && (y < 0 || y + 3 > p_.y.size);
        const __mmask32 lost = Keys::Lose(outside ? ~__mmask32{0} : over, best);
        code = _mm512_mask_mov_epi16(_mm512_set1_epi16(-1), real & ~lost, code);
        _mm512_storeu_si512(code_ + 4 * (v * pitch_ + w), code);
      } else {
        _mm512_storeu_si512(flat_ + 4 * (v * p_.x.windows + w), Keys::Turned(best));
      }
      keys.See(best, real);
      b0 = b1, b1 = b2, c0 = c1, c1 = c2;
    }
  }

  // Adds a tap to a sum. The square of an f16 is exact: the fused sum is rounded as often as the plain loops'.
  template <bool kFused>
  static HWY_INLINE __m512 Add(__m512 sum, __m512 t) {
    if (!kAverage) return _mm512_fmadd_ps(t, t, sum);
    return kFused ? FusedAdd(t, sum) : _mm512_add_ps(sum, t);
  }

  // 4 windows side by side from w on, average and L2: what they give, or send.
  HWY_INLINE void SumColumn(int64_t w, const T* g) {
    const __m512 zero = _mm512_setzero_ps();
    __m512 sum = zero, two_rows = zero, one_row = zero;  // of the windows that end here, one and two rows below
    const auto row = [&](int64_t y) HWY_ATTR {
      const T* at = At(y, p_.x.first + w);
      const __m512 t0 = LoadTexels4(at), t1 = LoadTexels4(at + 4), t2 = LoadTexels4(at + 8);
      sum = Add<false>(Add<false>(Add<false>(two_rows, t0), t1), t2);
      two_rows = Add<true>(Add<true>(Add<true>(one_row, t0), t1), t2);
      one_row = Add<false>(Add<true>(Add<true>(zero, t0), t1), t2);
    };
    row(p_.y.first), row(p_.y.first + 1);
    for (int64_t v = 0; v < p_.y.windows; ++v) {
      row(p_.y.first + v + 2);
      if constexpr (kBackward) {
        const __mmask16 some = _mm512_cmp_ps_mask(sum, zero, _CMP_NEQ_UQ);
        const __m512 from = LoadTexels4(g + v * p_.gradient_row + 4 * w);
        _mm512_storeu_ps(sent_ + 4 * (v * pitch_ + w), _mm512_maskz_div_ps(some, from, _mm512_sqrt_ps(sum)));
      } else {
        const __m512 result =
            kAverage ? _mm512_div_ps(sum, _mm512_loadu_ps(columns_ + divisors_[v] + 4 * w)) : _mm512_sqrt_ps(sum);
        StoreTexels4(flat_ + 4 * (v * p_.x.windows + w), result);
      }
    }
  }

  // 4 windows side by side from w on, maxima and average: what they send. -0 becomes 0, as when added to a sum.
  HWY_INLINE void SendColumn(int64_t w, const T* g) {
    for (int64_t v = 0; v < p_.y.windows; ++v) {
      __m512 sent = LoadTexels4(g + v * p_.gradient_row + 4 * w);
      if (kAverage) sent = _mm512_mul_ps(sent, _mm512_loadu_ps(columns_ + divisors_[v] + 4 * w));
      _mm512_storeu_ps(sent_ + 4 * (v * pitch_ + w), _mm512_add_ps(sent, _mm512_setzero_ps()));
    }
  }

  // 4 texels side by side from x on: what the windows send, row by row of windows.
  HWY_INLINE void GatherColumn(int64_t x) {
    const __m512 zero = _mm512_setzero_ps(), one = _mm512_set1_ps(1.0f);
    __m512 later = zero, last = zero;  // so far for the rows one and two below
    T* to = flat_ + 4 * x;
    for (int64_t y = p_.y.first, v = 0; y < p_.y.size; ++y, ++v) {
      const int64_t at = 4 * (HWY_MIN(v, p_.y.windows) * pitch_ + x - p_.x.first - 2);
      const __m512 s0 = _mm512_loadu_ps(sent_ + at), s1 = _mm512_loadu_ps(sent_ + at + 4),
                   s2 = _mm512_loadu_ps(sent_ + at + 8);
      const auto hit = [&](int c, int code) HWY_ATTR {
        const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(code_ + at + 4 * c));
        return _mm256_cmpeq_epi16_mask(codes, _mm256_set1_epi16(static_cast<int16_t>(code)));
      };
      const auto part = [&](int r) HWY_ATTR {  // of the windows that have the texels under tap row r
        if (!kMax) return FusedAdd(_mm512_add_ps(s0, s1), s2);
        __m512 sum = _mm512_maskz_mov_ps(hit(0, 3 * r + 2), s0);
        sum = _mm512_mask3_fmadd_ps(s1, one, sum, hit(1, 3 * r + 1));
        return _mm512_mask_add_ps(sum, hit(2, 3 * r), sum, s2);
      };
      __m512 sum = _mm512_add_ps(later, part(0));
      later = FusedAdd(last, part(1)), last = part(2);
      if (y < 0) continue;
      if (kKind == PoolKind::l2_norm) {  // times the texel itself
        sum = _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(sum, zero, _CMP_NEQ_UQ), sum, LoadTexels4(At(y, x)));
      }
      StoreTexels4(to + 4 * y * p_.x.size, sum);
    }
  }

  // Forward, where keys do not tell: f32 taps.
  static HWY_NOINLINE bool RunFloats(const DirectPlan& p, float* scratch, const T* x, T* to, TexelStream<T>* out) {
    DirectPlane<T, kKind, 3, 1, kBackward> run(p, scratch);
    return run.Run(x, nullptr, to, out);
  }

  const DirectPlan* plan_;
  float* scratch_;
  int64_t pitch_;         // texels or windows from row to row
  T* in_;                 // texel 0 of the plane
  float* sent_;           // what window 0 sends
  int16_t* code_;         // and to which tap
  int32_t* divisors_;     // average: where the divisors of a row of windows begin
  T* flat_;               // a plane of results
  T* pending_ = nullptr;  // where they go
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_BORDERED_INL_H_
