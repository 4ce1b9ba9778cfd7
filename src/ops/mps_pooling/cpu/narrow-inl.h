// Averages of narrow planes of f16 in 3x3 stride 1 windows (mps_pooling/cpu/direct.h): a whole row with its border is
// kN registers of 4 texels. Rows are walked from top to bottom; neighbours come from shifting registers, what windows
// share with those above stays in registers, and nothing goes through memory but texels in and results out. Slot i of a
// row is the texel under the first tap of window i.

#if defined(BNNS_OPS_MPS_POOLING_CPU_NARROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_NARROW_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_NARROW_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_NARROW_INL_H_
#endif

#include <utility>

#include "src/ops/mps_pooling/cpu/scratch-inl.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

template <bool kBackward>
class NarrowPlane : PlaneScratch<hwy::float16_t, PoolKind::average, 3, 1, kBackward> {
  using T = hwy::float16_t;
  using Base = PlaneScratch<T, PoolKind::average, 3, 1, kBackward>;
  using Base::columns_, Base::kept_, Base::line_, Base::outside_, Base::p_;
  static constexpr int kN = 4;  // registers of a row
  using Row = __m512[kN];

 public:
  using Base::kReads;

  HWY_NOINLINE NarrowPlane(const DirectPlan& p, float* scratch) : Base(p, scratch) {
    float* at = scratch + p.row_scratch_bytes() / sizeof(float);
    divisors_ = reinterpret_cast<int32_t*>(at), at += (p.y.windows + 15) / 16 * 16;
    for (int64_t v = 0; v < p.y.windows; ++v) {
      divisors_[v] = static_cast<int32_t>((Base::CountedRows(v) - 1) * line_);
    }
    // Of the divisors their reciprocals, where maxima keep rows.
    for (int64_t i = 0; !kBackward && i < 3 * line_; ++i) kept_[i] = 1.0f / columns_[i];
    for (T*& results : results_) results = reinterpret_cast<T*>(at) + kRoom, at += p.narrow_result_floats();
    for (int j = 0; j < kN; ++j) {
      const auto slots = [&](int64_t begin, int64_t end) {  // of 4 slots those of [begin, end)
        const auto first = [&](int64_t n) { return n >= 4 ? 15 : n <= 0 ? 0 : (1 << n) - 1; };
        return static_cast<__mmask8>(first(end - 4 * j) & ~first(begin - 4 * j));
      };
      texels_[j] = slots(-p.x.first, p.x.size - p.x.first), windows_[j] = slots(0, p.x.windows);
    }
  }

  // As DirectPlane::Run.
  HWY_INLINE bool Run(const T* x, const T* g, T* to, TexelStream<T>* out) {
    kBackward ? Gradient(g) : Forward(x);
    Finish(out);
    pending_ = to;
    std::swap(results_[0], results_[1]);
    return true;
  }
  // Writes the last plane. Run does that for the one before, whose results have reached the cache by then: loads that
  // need two stores wait for that.
  HWY_INLINE void Finish(TexelStream<T>* out) {
    if (pending_ == nullptr) return;
    Base::PutPlane(results_[1], pending_, out[0]);
    pending_ = nullptr;
  }

 private:
  static constexpr int64_t kRoom = 32;  // elements before a plane of results, where a border's slot may point

  // Slots [4 j + s, 4 j + s + 4) of a row, 0 after its last.
  template <int s>
  static HWY_INLINE __m512 After(const Row& row, int j) {
    return ShiftIn<s>(row[j], j + 1 < kN ? row[j + 1] : _mm512_setzero_ps());
  }
  // Slots [4 j - s, 4 j - s + 4), 0 before its first.
  template <int s>
  static HWY_INLINE __m512 Before(const Row& row, int j) {
    return ShiftIn<4 - s>(j > 0 ? row[j - 1] : _mm512_setzero_ps(), row[j]);
  }
  static HWY_INLINE __m512 Load(const T* from, __mmask8 slots) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi64(slots, from));
  }
  // Asks for what belongs to row v of `rows` of n elements, some planes ahead.
  static HWY_INLINE void Ask(const T* plane, int64_t v, int64_t n, int64_t rows) {
    const T* from = plane + HWY_MAX(n * rows, static_cast<int64_t>(kAhead / sizeof(T))) + v * n;
    for (int64_t i = 0; i < n; i += 32) hwy::Prefetch(from + i);
  }
  // sum / n for n = 1 to 9 without the unit that divides, which takes 10 cycles for a register: the product with the
  // rounded reciprocal, and what that leaves over, which is exact and adds what rounding needs (tried for all
  // significands: the quotient's bits; sums of f16 are neither too large nor too small). Infinity leaves nothing over.
  static HWY_INLINE __m512 Quotient(__m512 sum, __m512 n, __m512 reciprocal) {
    const __m512 q = _mm512_mul_ps(sum, reciprocal), over = _mm512_fnmadd_ps(q, n, sum);
    return _mm512_mask3_fmadd_ps(over, reciprocal, q, _mm512_cmp_ps_mask(over, over, _CMP_ORD_Q));
  }

  HWY_INLINE void Forward(const T* x) const {
    const __m512 zero = _mm512_setzero_ps();
    Row sum, two_rows, one_row;  // of the windows that end here, one and two rows below
    for (int j = 0; j < kN; ++j) sum[j] = two_rows[j] = one_row[j] = zero;
    const auto add_row = [&](int64_t y) HWY_ATTR {
      const T* from = (y < 0 || y >= p_.y.size ? outside_ : x + y * p_.source_row) + 4 * p_.x.first;
      Row t;
      for (int j = 0; j < kN; ++j) t[j] = Load(from + 16 * j, texels_[j]);
      for (int j = 0; j < kN; ++j) {  // taps one after the other, row by row
        const __m512 t0 = t[j], t1 = After<1>(t, j), t2 = After<2>(t, j);
        sum[j] = _mm512_add_ps(_mm512_add_ps(_mm512_add_ps(two_rows[j], t0), t1), t2);
        two_rows[j] = _mm512_add_ps(FusedAdd(t1, FusedAdd(t0, one_row[j])), t2);
        one_row[j] = _mm512_add_ps(FusedAdd(t1, _mm512_add_ps(t0, zero)), t2);
      }
    };
    add_row(p_.y.first), add_row(p_.y.first + 1);
    T* to = results_[0];
    for (int64_t v = 0; v < p_.y.windows; ++v, to += 4 * p_.x.windows) {
      Ask(x, v, 4 * p_.x.size, p_.y.size);
      add_row(p_.y.first + v + 2);
      const float *n = columns_ + divisors_[v], *reciprocal = kept_ + divisors_[v];
      for (int j = 0; j < kN; ++j) {  // what lies beyond a row's end is overwritten by the next row
        StoreTexels4(to + 16 * j, Quotient(sum[j], _mm512_load_ps(n + 16 * j), _mm512_load_ps(reciprocal + 16 * j)));
      }
    }
  }

  HWY_INLINE void Gradient(const T* g) const {
    const __m512 zero = _mm512_setzero_ps();
    Row later, last;  // so far for the rows of texels one and two below
    for (int j = 0; j < kN; ++j) later[j] = last[j] = zero;
    T* to = results_[0] + 4 * (p_.y.first * p_.x.size + p_.x.first);
    for (int64_t v = 0; v < p_.y.size - p_.y.first; ++v, to += 4 * p_.x.size) {
      Row sent;
      const bool real = v < p_.y.windows;
      if (real) Ask(g, v, 4 * p_.x.windows, p_.y.windows);
      const float* share = columns_ + (real ? divisors_[v] : 0);
      for (int j = 0; j < kN; ++j) {  // -0 becomes 0, as when added to a sum
        const __m512 given = real ? Load(g + v * p_.gradient_row + 16 * j, windows_[j]) : zero;
        sent[j] = _mm512_fmadd_ps(given, _mm512_load_ps(share + 16 * j), zero);
      }
      for (int j = 0; j < kN; ++j) {
        const __m512 got = FusedAdd(sent[j], _mm512_add_ps(Before<2>(sent, j), Before<1>(sent, j)));
        const __m512 texel = _mm512_add_ps(later[j], got);
        later[j] = FusedAdd(last[j], got), last[j] = got;
        if (p_.y.first + v < 0) continue;
        if (j > 0) {
          StoreTexels4(to + 16 * j, texel);
        } else {  // slot 0 may be the border
          _mm256_mask_storeu_epi64(to, texels_[0], _mm512_cvtps_ph(texel, _MM_FROUND_NO_EXC));
        }
      }
    }
  }

  int32_t* divisors_;                  // where the divisors of a row of windows begin
  T* results_[2];                      // a plane of results; of the plane before
  T* pending_ = nullptr;               // where the latter go
  __mmask8 texels_[kN], windows_[kN];  // which slots are
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_NARROW_INL_H_
