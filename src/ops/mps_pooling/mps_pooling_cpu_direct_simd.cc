// Runs whole planes in one pass (mps_pooling_cpu_direct.h). Sums are made in the plain loops' order: the same bits.

#include <cmath>
#include <cstring>

#include "src/ops/mps_pooling/mps_pooling_cpu.h"
#include "src/ops/mps_pooling/mps_pooling_cpu_direct.h"
#include "src/ops/mps_pooling/mps_pooling_pixels.h"
#include "src/ops/mps_pooling/mps_pooling_window.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/mps_pooling/mps_pooling_cpu_direct_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/mps_pooling/mps_pooling_cpu_blocks-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
using mps::DirectPlan;
using mps::PoolBackward;
using mps::PoolEdge;
using mps::PoolKind;

#if HWY_TARGET == HWY_AVX3

// How far before its use memory is asked for, in bytes: 2 to 16 KB measure the same; without, a third of the speed is
// lost, since the hardware stops at every page.
constexpr size_t kAhead = 4096;

template <typename T, PoolKind kKind, int K, int S, bool kBackward>
class DirectPlane {
 public:
  static constexpr bool kReads = !kBackward || kKind != PoolKind::average;
  static constexpr bool kMax = kKind == PoolKind::max;

  HWY_INLINE DirectPlane(const DirectPlan& p, float* scratch)
      : p_(p), rows_(scratch + DirectPlan::kFront), outside_(rows_ + DirectPlan::kRows * p.row_floats()) {
    const float fill = kMax ? -HUGE_VALF : 0.0f;
    const int64_t n = p.row_floats();
    for (int64_t i = 0; i < n; ++i) scratch[DirectPlan::kRows * n + i] = fill;
    for (int64_t row = 0; row < DirectPlan::kRows; ++row) {
      for (int64_t i = 0; i < DirectPlan::kFront; ++i) scratch[row * n + i] = fill;
      for (int64_t i = n - DirectPlan::kBack; i < n; ++i) scratch[row * n + i] = fill;
    }
    best_ = scratch + (DirectPlan::kRows + 1) * n;
    code_ = best_ + DirectPlan::kBest * p.block_floats();
    later_ = code_ + DirectPlan::kBest * p.block_floats();
    columns_ = later_ + 2 * p.block_floats();
    if (kKind == PoolKind::average) FillColumns();
  }

  // False: a maximum is -inf or of NaNs alone, where vectors do not tell which tap takes it.
  HWY_INLINE bool Run(const T* x, const T* g, T* to) {
    x_ = x;
    if (kReads) {
      for (int r = 0; r < K; ++r) StageRow(p_.y.first + r, 0);
    }
    if (kMax) {
      for (int r = 0; r < K - S; ++r) {
        for (int64_t b = 0; b < p_.blocks; ++b) {
          __m512 t[K];
          LoadTaps<K, S>(Row(p_.y.first + r), b, t);
          KeepBest(r, b, t);
        }
      }
    }
    if (kBackward) std::memset(later_, 0, static_cast<size_t>(2 * p_.block_floats()) * sizeof(float));
    const int64_t end = kBackward ? (p_.y.size - 1 - p_.y.first) / S + 1 : p_.y.windows;
    TexelStream<T> out[2] = {TexelStream<T>(p_.stream), TexelStream<T>(p_.stream)};
    bad_ = 0;
    for (int64_t v = 0; v < end; ++v) WindowRow(v, g, to, out);
    out[0].Finish(), out[1].Finish();
    return bad_ == 0;
  }

 private:
  // Points at what window 0's first tap reads.
  HWY_INLINE float* Row(int64_t y) const {
    float* row = y < 0 || y >= p_.y.size ? outside_ : rows_ + y % DirectPlan::kRows * p_.row_floats();
    return row + 4 * p_.x.first;
  }

  // Brings vector q of source row y in. NaN never is a maximum: -inf.
  HWY_INLINE void Stage(const T* row, float* to, int64_t q) const {
    if (q >= p_.staged) return;
    const __m512 fill = _mm512_set1_ps(kMax ? -HUGE_VALF : 0.0f);
    __m512 v;
    if (HWY_LIKELY(4 * q + 4 <= p_.x.size)) {
      v = LoadTexels4(row + 16 * q);
    } else {
      const __mmask16 mask = FirstTexels(p_.x.size - 4 * q);
      v = _mm512_mask_mov_ps(fill, mask, LoadTexels4(row + 16 * q, mask));
    }
    _mm512_store_ps(to + 16 * q, kMax ? Larger(v, fill) : v);
  }
  HWY_INLINE void StageRow(int64_t y, int64_t q) const {
    if (y < 0 || y >= p_.y.size) return;
    for (; q < p_.staged; ++q) Stage(x_ + y * p_.source_row, Row(y) - 4 * p_.x.first, q);
  }

  // Keeps the maxima of window-relative row r for the rows of windows to come.
  HWY_INLINE void KeepBest(int64_t r, int64_t b, const __m512* t) const {
    __m512 best;
    __m512i code;
    BestOfRow<K>(t, best, code);
    const int64_t at = r % DirectPlan::kBest * p_.block_floats() + 16 * b;
    _mm512_store_ps(best_ + at, best);
    if (kBackward) _mm512_store_si512(code_ + at, code);
  }

  HWY_INLINE void BestOfWindow(int64_t v, int64_t b, const __m512 (*t)[K], __mmask16 zeros, __mmask16 real,
                               __m512& best, __m512i& code) {
    best = _mm512_setzero_ps(), code = _mm512_setzero_si512();
    for (int r = 0; r < K; ++r) {
      __m512 row;
      __m512i at;
      const int64_t kept = (S * v + r) % DirectPlan::kBest * p_.block_floats() + 16 * b;
      if (r < K - S) {
        row = _mm512_load_ps(best_ + kept);
        at = kBackward ? _mm512_load_si512(code_ + kept) : _mm512_setzero_si512();
      } else {
        BestOfRow<K>(t[r], row, at);
        if (r >= S) {
          _mm512_store_ps(best_ + kept, row);
          if (kBackward) _mm512_store_si512(code_ + kept, at);
        }
      }
      if (r == 0) {
        best = row, code = at;
      } else {
        if (kBackward) code = _mm512_mask_add_epi32(code, IsLarger(row, best), at, _mm512_set1_epi32(r * K));
        best = Larger(row, best);
      }
    }
    // Zeros outside take part: one that is greater than all pixels takes the gradient away.
    const __m512 zero = _mm512_setzero_ps();
    if (kBackward) {
      const __mmask16 lost = _mm512_mask_cmp_ps_mask(zeros, best, zero, _CMP_LT_OQ);
      code = _mm512_mask_mov_epi32(code, lost, _mm512_set1_epi32(-1));
    }
    best = _mm512_mask_max_ps(best, zeros, zero, best);
    bad_ |= _mm512_mask_cmp_ps_mask(real, best, _mm512_set1_ps(-HUGE_VALF), _CMP_EQ_OQ);
  }

  // One tap at a time, row by row.
  static HWY_INLINE __m512 SumOfWindow(const __m512 (*t)[K]) {
    __m512 sum = _mm512_setzero_ps();
    for (int r = 0; r < K; ++r) {
      for (int c = 0; c < K; ++c) {
        sum = _mm512_add_ps(sum, kKind == PoolKind::l2_norm ? _mm512_mul_ps(t[r][c], t[r][c]) : t[r][c]);
      }
    }
    return sum;
  }

  HWY_INLINE void WindowRow(int64_t v, const T* g, T* to, TexelStream<T>* out) {
    const int64_t y = p_.y.first + S * v, windows = v < p_.y.windows ? p_.x.windows : 0;
    const float* row[K];
    for (int r = 0; r < K; ++r) row[r] = Row(y + r);
    const T* next[S];
    float* stage[S];
    for (int i = 0; i < S; ++i) {
      const int64_t n = y + K + i;
      next[i] = kReads && n < p_.y.size ? x_ + n * p_.source_row : nullptr;
      stage[i] = Row(n) - 4 * p_.x.first;
    }
    const T* from = kBackward && windows > 0 ? g + v * p_.gradient_row : g;
    const float* column = columns_;
    if (kKind == PoolKind::average && windows > 0) column += (CountedRows(v) - 1) * p_.block_floats();
    // Max with zeros outside: windows [inside_begin, inside_end) have none.
    const bool zero_edge = kMax && p_.edge == PoolEdge::zero, row_inside = y >= 0 && y + K <= p_.y.size;
    const int64_t inside_begin = p_.x.first < 0 ? 1 : 0;
    const int64_t inside_end = !row_inside ? 0 : p_.x.size < K + p_.x.first ? 0 : (p_.x.size - K - p_.x.first) / S + 1;
    bool wanted[2] = {true, true};
    if (kBackward) {
      for (int i = 0; i < S; ++i) {
        wanted[i] = y + i >= 0 && y + i < p_.y.size;
        if (wanted[i]) out[i].Seek(to + (y + i) * p_.target_row);
      }
    } else {
      out[0].Seek(to + v * p_.target_row);
    }
    DirectSenders<kKind, K, S> senders;
    for (int64_t b = 0; b < p_.blocks; ++b) {
      if (kReads) {
        for (int i = 0; i < S; ++i) {
          if (next[i] == nullptr) continue;
          for (int j = 0; j < S; ++j) {
            hwy::Prefetch(next[i] + 16 * (S * b + j) + kAhead / sizeof(T));
            Stage(next[i], stage[i], S * b + j);
          }
        }
      }
      const __mmask16 real = FirstTexels(windows - 4 * b);
      __m512 t[K][K];
      if (kReads) {
        for (int r = kMax ? K - S : 0; r < K; ++r) LoadTaps<K, S>(row[r], b, t[r]);
      }
      __m512 best;
      __m512i code = _mm512_setzero_si512();
      if (kMax) {
        const auto zeros = static_cast<__mmask16>(
            zero_edge ? FirstTexels(inside_begin - 4 * b) | ~FirstTexels(inside_end - 4 * b) : 0);
        BestOfWindow(v, b, t, zeros, real, best, code);
      }
      if constexpr (!kBackward) {
        if (kKind == PoolKind::average) best = _mm512_div_ps(SumOfWindow(t), _mm512_load_ps(column + 16 * b));
        if (kKind == PoolKind::l2_norm) best = _mm512_sqrt_ps(SumOfWindow(t));
        out[0].Put(best, static_cast<int>(HWY_MIN(int64_t{4}, windows - 4 * b)));
      } else {
        const __m512 zero = _mm512_setzero_ps();
        hwy::Prefetch(from + 16 * b + kAhead / 2 / sizeof(T));
        __m512 sent = _mm512_add_ps(LoadTexels4(from + 16 * b, real), zero);  // -0 becomes 0, as when added to a sum
        if (kKind == PoolKind::average) {
          sent = _mm512_add_ps(_mm512_mul_ps(sent, _mm512_load_ps(column + 16 * b)), zero);
        } else if (kKind == PoolKind::l2_norm) {
          const __m512 sum = SumOfWindow(t);
          const __mmask16 some = _mm512_mask_cmp_ps_mask(real, sum, zero, _CMP_NEQ_UQ);
          sent = _mm512_maskz_mov_ps(some, _mm512_add_ps(_mm512_div_ps(sent, _mm512_sqrt_ps(sum)), zero));
        }
        senders.Next(sent, code);
        Scatter(senders, b, t, out, wanted);
      }
    }
    if (kReads) {
      for (int i = 0; i < S; ++i) StageRow(y + K + i, S * p_.blocks);
    }
  }

  HWY_INLINE void Scatter(const DirectSenders<kKind, K, S>& from, int64_t b, const __m512 (*t)[K], TexelStream<T>* out,
                          const bool* wanted) {
    float* later[2] = {later_ + 16 * b, later_ + p_.block_floats() + 16 * b};
    const int64_t x = p_.x.first + 4 * S * b;
    if constexpr (S == 1) {
      const __m512 sum = _mm512_add_ps(_mm512_load_ps(later[0]), from.Part(0, 0));
      _mm512_store_ps(later[0], _mm512_add_ps(_mm512_load_ps(later[1]), from.Part(1, 0)));
      _mm512_store_ps(later[1], from.Part(2, 0));
      if (wanted[0]) Put(Own(sum, t[0][0]), x, out[0]);
    } else {
      __m512 even = from.Part(0, 0), odd = from.Part(0, 1);
      if (K == 3) {
        even = _mm512_add_ps(_mm512_load_ps(later[0]), even), odd = _mm512_add_ps(_mm512_load_ps(later[1]), odd);
        _mm512_store_ps(later[0], from.Part(2, 0)), _mm512_store_ps(later[1], from.Part(2, 1));
      }
      if (wanted[0]) PutPairs(Own(even, t[0][0]), Own(odd, t[0][1]), x, out[0]);
      if (wanted[1]) PutPairs(Own(from.Part(1, 0), t[1][0]), Own(from.Part(1, 1), t[1][1]), x, out[1]);
    }
  }
  // L2: times the texel itself.
  static HWY_INLINE __m512 Own(__m512 sum, __m512 own) {
    if (kKind != PoolKind::l2_norm) return sum;
    return _mm512_maskz_mul_ps(_mm512_cmp_ps_mask(sum, _mm512_setzero_ps(), _CMP_NEQ_UQ), sum, own);
  }
  HWY_INLINE void PutPairs(__m512 even, __m512 odd, int64_t x, TexelStream<T>& out) const {
    const __m512i low = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const __m512i high = _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
    Put(_mm512_permutex2var_ps(even, low, odd), x, out);
    Put(_mm512_permutex2var_ps(even, high, odd), x + 4, out);
  }
  // Texels x to x + 3 of the target, those that exist.
  HWY_INLINE void Put(__m512 v, int64_t x, TexelStream<T>& out) const {
    if (HWY_UNLIKELY(x < 0)) {
      out.Put(ShiftIn(v, v, 1), static_cast<int>(HWY_MIN(int64_t{3}, p_.x.size)));
    } else if (x < p_.x.size) {
      out.Put(v, static_cast<int>(HWY_MIN(int64_t{4}, p_.x.size - x)));
    }
  }

  // Average: what divides a sum, and in a gradient its reciprocal.
  HWY_NOINLINE void FillColumns() {
    mps::PoolAxis a;
    a.kernel = K, a.zero_pad = p_.x.zero_pad;
    for (int64_t i = 0; i < 4 * p_.blocks; ++i) {
      const int64_t n = i < p_.x.windows ? divisor_extent(p_.x.first + S * i, a, p_.x.size, p_.edge) : 1;
      for (int rows = 1; rows <= K; ++rows) {
        const auto count = static_cast<float>(rows * n);
        float* column = columns_ + (rows - 1) * p_.block_floats() + 4 * i;
        for (int l = 0; l < 4; ++l) column[l] = kBackward ? 1.0f / count : count;
      }
    }
  }
  int64_t CountedRows(int64_t v) const {
    mps::PoolAxis a;
    a.kernel = K, a.zero_pad = p_.y.zero_pad;
    return divisor_extent(p_.y.first + S * v, a, p_.y.size, p_.edge);
  }

  const DirectPlan& p_;
  float *rows_, *outside_, *best_, *code_, *later_, *columns_;
  const T* x_ = nullptr;
  unsigned bad_ = 0;
};

template <typename T, PoolKind kKind, int K, int S, bool kBackward>
HWY_NOINLINE void RunDirectPlanes(const DirectPlan& p, const PoolBackward& e, Range planes, float* scratch) {
  DirectPlane<T, kKind, K, S, kBackward> run(p, scratch);
  const int64_t slices = e.channels / 4;
  for (size_t i = planes.begin; i < planes.end; ++i) {
    const int64_t image = static_cast<int64_t>(i) / slices, slice = static_cast<int64_t>(i) % slices;
    const auto at = [&](const mps::ImageView& v, int64_t first, int64_t channel) {
      return reinterpret_cast<T*>(plane_of(v, first + image, channel / 4 + slice, 4).data);
    };
    const T* x = run.kReads ? at(e.source, e.source_image, e.source_channel) : nullptr;
    const T* g = nullptr;
    if (kBackward) {
      g = at(e.gradient, e.gradient_image, e.gradient_channel) + 4 * (e.gradient_y * e.gradient.width + e.gradient_x);
    }
    T* to = at(e.target, e.target_image, e.target_channel) + 4 * (e.target_y * e.target.width + e.target_x);
    if (run.Run(x, g, to)) continue;
    if (kBackward) {
      mps::pool_backward_plain_rows(e, image, slice, 0, e.height, nullptr, 0);
    } else {
      mps::pool_forward_plain_rows(mps::as_forward(e), image, slice, 0, e.height);
    }
  }
  if (p.stream) hwy::FlushStream();
}

template <typename T, PoolKind kKind, bool kBackward>
void RunDirectWindows(const DirectPlan& p, const PoolBackward& e, Range planes, float* scratch) {
  if (p.kernel == 2) return RunDirectPlanes<T, kKind, 2, 2, kBackward>(p, e, planes, scratch);
  if (p.stride == 2) return RunDirectPlanes<T, kKind, 3, 2, kBackward>(p, e, planes, scratch);
  RunDirectPlanes<T, kKind, 3, 1, kBackward>(p, e, planes, scratch);
}
template <typename T, bool kBackward>
void RunDirectKinds(const DirectPlan& p, const PoolBackward& e, Range planes, float* scratch) {
  if (p.kind == PoolKind::max) return RunDirectWindows<T, PoolKind::max, kBackward>(p, e, planes, scratch);
  if (p.kind == PoolKind::average) return RunDirectWindows<T, PoolKind::average, kBackward>(p, e, planes, scratch);
  RunDirectWindows<T, PoolKind::l2_norm, kBackward>(p, e, planes, scratch);
}
template <typename T>
void RunDirectType(const DirectPlan& p, const PoolBackward& e, Range planes, float* scratch) {
  p.backward ? RunDirectKinds<T, true>(p, e, planes, scratch) : RunDirectKinds<T, false>(p, e, planes, scratch);
}

// Where these kernels exist.
bool HasDirect() {
  return true;
}
void RunDirect(const DirectPlan& p, const PoolBackward& e, Range planes, float* scratch) {
  e.target.type == mps::PixelType::f32 ? RunDirectType<float>(p, e, planes, scratch)
                                       : RunDirectType<hwy::float16_t>(p, e, planes, scratch);
}

#else

bool HasDirect() {
  return false;
}
void RunDirect(const DirectPlan&, const PoolBackward&, Range, float*) {}

#endif  // AVX3
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns::mps {

bool has_direct() noexcept {
  return BNNS_DISPATCH(HasDirect)();
}

void direct_planes(const DirectPlan& p, const PoolBackward& e, Range planes, void* scratch) noexcept {
  BNNS_DISPATCH(RunDirect)(p, e, planes, static_cast<float*>(scratch));
}

}  // namespace bnns::mps
#endif
