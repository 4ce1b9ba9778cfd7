// Gradients of maxima of small planes in 3x3 stride 1 windows (mps_pooling_cpu_small-inl.h). The tap that takes a
// window's gradient is the first maximum of its column of taps, and which row that is does not depend on the window:
// of the first maxima of its three columns a window takes one, so if it takes column x, the row is the same as for
// every other window of its row that takes x. So what windows send goes two short ways instead of one to nine taps:
// along the row to a column (3 choices), then down the column to a row (3 choices).
//
// f16: keys of the same order as the values are the upper halves of integers, below them lies where a maximum is, so
// that of equal keys the earlier tap is the larger integer. f32: rows of taps are compared first, then rows.

#if defined(BNNS_OPS_MPS_POOLING_CPU_ROUTES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_ROUTES_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_ROUTES_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_ROUTES_INL_H_
#endif

#include <type_traits>

#include "src/ops/mps_pooling/mps_pooling_cpu_small-inl.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

// Which of the rows (columns) of taps: 2, 1, 0 for the first, second, third, times kRow (kColumn).
constexpr int32_t kRow = 16, kColumn = 1;
struct Route {
  __mmask16 first, second, third;
  HWY_INLINE Route(__m512i v0, __m512i v1, __m512i v2, int32_t unit)
      : first(_mm512_test_epi32_mask(v0, _mm512_set1_epi32(2 * unit))),
        second(_mm512_test_epi32_mask(v1, _mm512_set1_epi32(unit))),
        third(_mm512_testn_epi32_mask(v2, _mm512_set1_epi32(3 * unit))) {}
  HWY_INLINE Route(__mmask16 f, __mmask16 s, __mmask16 t) : first(f), second(s), third(t) {}
};

template <typename T>
class RoutePlane : public SmallPlane<T, PoolKind::max, true> {
  using Base = SmallPlane<T, PoolKind::max, true>;
  using Base::At, Base::outside_, Base::p_, Base::pitch_, Base::results_;
  static constexpr bool kHalf = sizeof(T) == 2;
  // Boxes. f16: of the three texels from a row of windows on down the largest; f32: texels.
  static constexpr int kTexels = 0, kTaken = 1, kSent = 2;  // which column a window takes; what it sends
  static constexpr int32_t kInf = 0x7c00;

 public:
  using Base::kReads;

  HWY_NOINLINE RoutePlane(const DirectPlan& p, float* scratch)
      : Base(p, scratch, 2 * Base::Columns(p.x.size) + Base::Columns(p.x.windows)) {
    Base::Fill(kTexels, kHalf ? _mm512_set1_epi32(-kInf * 0x10000) : _mm512_castps_si512(Lowest()));
    Base::Fill(kTaken, _mm512_setzero_si512()), Base::Fill(kSent, _mm512_setzero_si512());
  }

  // As DirectPlane::Run.
  HWY_INLINE bool Run(const T* x, const T* g, T* to, TexelStream<T>* out) {
    Base::Begin(x, g);
    for (int64_t i = 0; i < p_.x.size; i += 4) Base::Ask(), EnterColumn(Base::Inward(i, p_.x.size), x);
    Seen seen;
    for (int64_t w = 0; w < p_.x.windows; w += 4) {
      Base::Ask(), TakeColumn(Base::Inward(w, p_.x.windows), g, seen);
    }
    Base::Finish(out);
    if (!seen.Good()) return false;
    for (int64_t i = 0; i < p_.x.size; i += 4) Base::Ask(), GatherColumn(Base::Inward(i, p_.x.size));
    Base::End(to);
    return true;
  }

 private:
  static HWY_INLINE __m512 Lowest() { return _mm512_set1_ps(-HUGE_VALF); }

  // The least and the largest maximum: of NaN or -inf it is not known here which tap takes the gradient.
  struct Seen {
    __m512i lowest, highest;
    __m512 lowest_float;
    HWY_INLINE Seen()
        : lowest(_mm512_set1_epi32(INT32_MAX)),
          highest(_mm512_set1_epi32(INT32_MIN)),
          lowest_float(_mm512_set1_ps(HUGE_VALF)) {}
    HWY_INLINE bool Good() const {
      if (!kHalf) return _mm512_cmp_ps_mask(lowest_float, Lowest(), _CMP_EQ_OQ) == 0;
      return (_mm512_cmpge_epi32_mask(highest, _mm512_set1_epi32((kInf + 1) * 0x10000)) |
              _mm512_cmplt_epi32_mask(lowest, _mm512_set1_epi32((-kInf + 1) * 0x10000))) == 0;
    }
  };

  // Keys of 4 texels in the order of their values; zeros are equal.
  static HWY_INLINE __m512i Key(const hwy::float16_t* from) {
    const __m512i upper = _mm512_set_epi32(15 << 16, 14 << 16, 13 << 16, 12 << 16, 11 << 16, 10 << 16, 9 << 16, 8 << 16,
                                           7 << 16, 6 << 16, 5 << 16, 4 << 16, 3 << 16, 2 << 16, 1 << 16, 0);
    const __m256i v = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m512i bits = _mm512_maskz_permutexvar_epi16(0xaaaaaaaa, upper, _mm512_castsi256_si512(v));
    return _mm512_mask_sub_epi32(bits, _mm512_movepi32_mask(bits), _mm512_set1_epi32(INT32_MIN), bits);
  }

  HWY_INLINE void EnterColumn(int64_t i, const T* x) const {
    if constexpr (!kHalf) {
      float* to = At(kTexels, 0, i);
      x += 4 * i;
      for (int64_t y = 0; y < p_.y.size; ++y, x += p_.source_row, to += 4 * pitch_) {
        _mm512_storeu_ps(to, _mm512_max_ps(_mm512_loadu_ps(x), Lowest()));  // NaN is no maximum
      }
    } else {
      int64_t y = p_.y.first;
      const auto key = [&]() HWY_ATTR {
        const T* row = y < 0 || y >= p_.y.size ? outside_ : x + y * p_.source_row;
        ++y;
        return Key(row + 4 * i);
      };
      __m512i k0 = key(), k1 = key();
      float* to = At(kTexels, 0, i);
      for (int64_t v = 0; v < p_.y.windows; ++v, to += 4 * pitch_) {
        const __m512i k2 = key(), second = _mm512_add_epi32(k1, _mm512_set1_epi32(kRow));
        const __m512i first = _mm512_add_epi32(k0, _mm512_set1_epi32(2 * kRow));
        _mm512_storeu_si512(to, _mm512_max_epi32(_mm512_max_epi32(first, second), k2));
        k0 = k1, k1 = k2;
      }
    }
  }

  // 4 windows side by side from w on: which column they take and what they send, where -0 becomes 0 as when added to
  // a sum. Windows that reach outside, where zeros take part, send 0 if their maximum is less.
  HWY_INLINE void TakeColumn(int64_t w, const T* g, Seen& seen) const {
    const bool zeros = p_.edge == PoolEdge::zero;
    const auto over =
        static_cast<__mmask16>(zeros ? FirstTexels((w == 0 ? -p_.x.first : 0)) | ~FirstTexels(Base::Inside() - w) : 0);
    float *taken = At(kTaken, 0, w), *sent = At(kSent, 0, w);
    g += 4 * w;
    const auto send = [&](int64_t v, __mmask16 lost) HWY_ATTR {
      const __m512 from = LoadTexels4(g + v * p_.gradient_row);
      _mm512_storeu_ps(sent + 4 * v * pitch_, _mm512_maskz_add_ps(_knot_mask16(lost), from, _mm512_setzero_ps()));
    };
    const auto reaching = [&](int64_t v) {
      const int64_t y = p_.y.first + v;
      return zeros && (y < 0 || y + 3 > p_.y.size) ? __mmask16{0xffff} : over;
    };
    if constexpr (kHalf) {
      const float* at = At(kTexels, 0, p_.x.first + w);
      for (int64_t v = 0; v < p_.y.windows; ++v, at += 4 * pitch_) {
        const __m512i c0 = _mm512_add_epi32(_mm512_loadu_si512(at), _mm512_set1_epi32(2 * kColumn));
        const __m512i c1 = _mm512_add_epi32(_mm512_loadu_si512(at + 4), _mm512_set1_epi32(kColumn));
        const __m512i best = _mm512_max_epi32(_mm512_max_epi32(c0, c1), _mm512_loadu_si512(at + 8));
        _mm512_storeu_si512(taken + 4 * v * pitch_, best);
        const __mmask16 lost = _mm512_mask_cmplt_epi32_mask(reaching(v), best, _mm512_setzero_si512());
        seen.lowest = _mm512_mask_min_epi32(seen.lowest, _knot_mask16(lost), best, seen.lowest);
        seen.highest = _mm512_max_epi32(best, seen.highest);
        send(v, lost);
      }
    } else {
      const float* at = At(kTexels, p_.y.first, p_.x.first + w);
      const auto row = [&](__m512& best, __m512i& code) HWY_ATTR {
        const __m512 t0 = _mm512_loadu_ps(at), t1 = _mm512_loadu_ps(at + 4), t2 = _mm512_loadu_ps(at + 8);
        const __m512i second = _mm512_set1_epi32(kColumn);
        at += 4 * pitch_;
        code = _mm512_mask_mov_epi32(_mm512_set1_epi32(2 * kColumn), IsLarger(t1, t0), second);
        best = Larger(t1, t0);
        code = _mm512_maskz_mov_epi32(_mm512_cmp_ps_mask(t2, best, _CMP_LE_OQ), code);
        best = Larger(t2, best);
      };
      __m512 b0, b1, b2;
      __m512i c0, c1, c2;
      row(b0, c0), row(b1, c1);
      for (int64_t v = 0; v < p_.y.windows; ++v) {
        row(b2, c2);
        __m512i code = _mm512_mask_mov_epi32(c0, IsLarger(b1, b0), c1);
        __m512 best = Larger(b1, b0);
        code = _mm512_mask_mov_epi32(code, IsLarger(b2, best), c2);
        best = Larger(b2, best);
        _mm512_storeu_si512(taken + 4 * v * pitch_, code);
        const __mmask16 lost = _mm512_mask_cmp_ps_mask(reaching(v), best, _mm512_setzero_ps(), _CMP_LT_OQ);
        seen.lowest_float = _mm512_mask_min_ps(seen.lowest_float, _knot_mask16(lost), best, seen.lowest_float);
        send(v, lost);
        b0 = b1, b1 = b2, c0 = c1, c1 = c2;
      }
    }
  }

  // 4 texels side by side from i on: what the windows send, row by row of windows.
  HWY_INLINE void GatherColumn(int64_t i) const {
    const __m512 zero = _mm512_setzero_ps();
    __m512 later = zero, last = zero;  // so far for the rows one and two below
    T* to = results_ + 4 * (p_.y.first * p_.x.size + i);
    const float* texels = At(kTexels, kHalf ? 0 : p_.y.first, i);
    __m512 k0 = zero, k1 = zero;  // f32: the texels of the first two rows
    if (!kHalf) k0 = _mm512_loadu_ps(texels), k1 = _mm512_loadu_ps(texels + 4 * pitch_);
    for (int64_t y = p_.y.first, v = 0; y < p_.y.size; ++y, ++v, to += 4 * p_.x.size, texels += 4 * pitch_) {
      const int64_t row = HWY_MIN(v, p_.y.windows);  // after the last: one that sends nothing
      const float *sent = At(kSent, row, i - p_.x.first - 2), *taken = At(kTaken, row, i - p_.x.first - 2);
      const auto column = [&]() HWY_ATTR {
        return Route(_mm512_loadu_si512(taken + 8), _mm512_loadu_si512(taken + 4), _mm512_loadu_si512(taken), kColumn);
      }();
      __m512 got = _mm512_maskz_mov_ps(column.third, _mm512_loadu_ps(sent));
      got = _mm512_mask_add_ps(got, column.second, got, _mm512_loadu_ps(sent + 4));
      got = _mm512_mask_add_ps(got, column.first, got, _mm512_loadu_ps(sent + 8));
      const auto down = [&]() HWY_ATTR {
        if constexpr (kHalf) {
          const __m512i largest = _mm512_loadu_si512(texels);
          return Route(largest, largest, largest, kRow);
        } else {
          const __m512 k2 = _mm512_loadu_ps(texels + 8 * pitch_);
          const __mmask16 second = IsLarger(k1, k0), third = IsLarger(k2, Larger(k1, k0));
          k0 = k1, k1 = k2;
          return Route(_knot_mask16(_kor_mask16(second, third)), _kandn_mask16(third, second), third);
        }
      }();
      const __m512 sum = _mm512_mask_add_ps(later, down.first, later, got);
      later = _mm512_mask_add_ps(last, down.second, last, got);
      last = _mm512_maskz_mov_ps(down.third, got);
      if (y >= 0) StoreTexels4(to, sum);
    }
  }
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_ROUTES_INL_H_
