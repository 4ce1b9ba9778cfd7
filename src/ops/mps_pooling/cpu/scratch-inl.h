// What the one-pass kernels (mps_pooling/cpu/direct.h) keep of a task: rows of scratch, divisors, masks.

#if defined(BNNS_OPS_MPS_POOLING_CPU_SCRATCH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_SCRATCH_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_SCRATCH_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_SCRATCH_INL_H_
#endif

#include <cmath>

#include "src/ops/mps_pooling/cpu/blocks-inl.h"
#include "src/ops/mps_pooling/cpu/direct.h"
#include "src/ops/mps_pooling/window.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
using mps::DirectPlan;
using mps::PoolEdge;

// How far before its use memory is prefetched, in bytes: 2 to 16 KB measure the same; without, a third of the speed is
// lost, since the hardware stops at every page.
constexpr size_t kAhead = 4096;

template <typename T, PoolKind kKind, int K, int S, bool kBackward>
class PlaneScratch {
  using P = Packed<T>;
  static constexpr int64_t kBlock = P::kTexels;

 public:
  static constexpr bool kReads = !kBackward || kKind != PoolKind::average;

 protected:
  static constexpr int64_t kMasks = DirectPlan::kMasks;
  static constexpr bool kMax = kKind == PoolKind::max;

  HWY_NOINLINE PlaneScratch(const DirectPlan& p, float* scratch)
      : p_(p), outside_(reinterpret_cast<T*>(scratch)), line_(p.block_floats()) {
    pair_ = reinterpret_cast<T*>(scratch + p.row_floats());
    kept_ = scratch + 3 * p.row_floats();
    later_ = kept_ + 4 * line_;
    columns_ = later_ + 2 * line_;
    for (int64_t i = 0; i < p.row_floats(); i += 16) _mm512_store_ps(scratch + i, _mm512_setzero_ps());
    if (kMax) {
      const Float4x4 lowest[2] = {_mm512_set1_ps(-HUGE_VALF), _mm512_set1_ps(-HUGE_VALF)};
      for (int64_t i = 0; i < p.x.size; i += kBlock) P::Store(outside_ + 4 * i, P::From(lowest));
    }
    codes_ = reinterpret_cast<int32_t*>(columns_ + K * line_);
    for (int32_t i = 0; i < DirectPlan::kCodes; ++i) _mm512_store_si512(codes_ + 16 * i, _mm512_set1_epi32(i));
    masks_ = reinterpret_cast<uint16_t*>(codes_ + 16 * DirectPlan::kCodes);
    for (int64_t q = 0; q < P::kGroups * p.blocks; ++q) {
      const int64_t x = p.x.first + 4 * S * q;
      const auto columns = [&](int64_t at, int64_t n) {  // of n texels from `at` on those that exist
        return static_cast<uint16_t>(FirstTexels(HWY_MIN(n, p.x.size - at)) & ~FirstTexels(-at));
      };
      uint16_t* masks = masks_ + kMasks * q;
      masks[0] = columns(x, 4), masks[1] = columns(x + (S == 1 ? 2 : 4), 4), masks[2] = columns(x + 8, 1);
      masks[3] = FirstTexels(p.x.windows - 4 * q);
      masks[4] = static_cast<uint16_t>(FirstTexels((p.x.first < 0 ? 1 : 0) - 4 * q) | ~FirstTexels(Inside() - 4 * q));
    }
    if (kKind == PoolKind::average) FillColumns();
  }

  // The first window with taps beyond the end of its row.
  int64_t Inside() const {
    const int64_t columns = p_.x.size - p_.x.first;
    return columns < K ? 0 : (columns - K) / S + 1;
  }
  int64_t CountedRows(int64_t v) const {
    mps::PoolAxis a;
    a.kernel = K, a.zero_pad = p_.y.zero_pad;
    return divisor_extent(p_.y.first + S * v, a, p_.y.size, p_.edge);
  }
  // Writes a plane of results.
  HWY_INLINE void PutPlane(const T* results, T* to, TexelStream<T>& out) const {
    const int64_t width = kBackward ? p_.x.size : p_.x.windows, height = kBackward ? p_.y.size : p_.y.windows;
    const bool one = p_.target_row == 4 * width;  // rows follow each other
    const int64_t rows = one ? 1 : height, n = 4 * (one ? width * height : width);
    for (int64_t y = 0; y < rows; ++y) PutTexels(results + y * n, n, to + y * p_.target_row, out);
  }
  // No maximum is -inf.
  HWY_INLINE bool Good() const { return _mm512_cmp_ps_mask(lowest_, _mm512_set1_ps(-HUGE_VALF), _CMP_EQ_OQ) == 0; }

  DirectPlan p_;
  T* outside_;  // a row of what is outside
  T* pair_;     // paired: two rows of the target
  int64_t line_;
  float *kept_, *later_, *columns_;
  int32_t* codes_;   // 16 of each code
  uint16_t* masks_;  // of each group: texels of a row that exist (3 loads), windows that exist, zeros outside
  __m512 lowest_;    // of the maxima so far

 private:
  // Average: what divides a sum. Its reciprocal in a gradient, and of powers of 2, where a product is the quotient.
  HWY_NOINLINE void FillColumns() {
    mps::PoolAxis a;
    a.kernel = K, a.zero_pad = p_.x.zero_pad;
    for (int64_t i = 0; i < kBlock * p_.blocks; ++i) {
      const int64_t n = i < p_.x.windows ? divisor_extent(p_.x.first + S * i, a, p_.x.size, p_.edge) : 1;
      for (int rows = 1; rows <= K; ++rows) {
        const auto count = static_cast<float>(rows * n);
        float* column = columns_ + (rows - 1) * line_ + 4 * i;
        for (int l = 0; l < 4; ++l) column[l] = kBackward || K == 2 ? 1.0f / count : count;
      }
    }
  }
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_SCRATCH_INL_H_
