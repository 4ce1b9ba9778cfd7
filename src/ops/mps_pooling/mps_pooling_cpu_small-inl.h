// What the kernels for small planes in 3x3 stride 1 windows share (mps_pooling_cpu_direct.h). They work in passes over
// scratch with a border around it, so that no pass meets an edge: columns of 4 texels or windows are walked from top to
// bottom, and the last column overlaps the one before instead of ending early. Results lie in scratch until a plane of
// them is there. They leave as whole lines before the last pass of the next plane: stores around the caches are slow
// and keep the stores behind them waiting, and those of a last pass are the only ones that nothing soon waits for.

#if defined(BNNS_OPS_MPS_POOLING_CPU_SMALL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_OPS_MPS_POOLING_CPU_SMALL_INL_H_
#undef BNNS_OPS_MPS_POOLING_CPU_SMALL_INL_H_
#else
#define BNNS_OPS_MPS_POOLING_CPU_SMALL_INL_H_
#endif

#include "src/ops/mps_pooling/mps_pooling_cpu_scratch-inl.h"

#if HWY_TARGET == HWY_AVX3  // clang warns of an empty namespace with a target
HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {

template <typename T, PoolKind kKind, bool kBackward>
class SmallPlane : protected PlaneScratch<T, kKind, 3, 1, kBackward> {
  using Base = PlaneScratch<T, kKind, 3, 1, kBackward>;
  static constexpr int64_t kLine = 64 / sizeof(T);  // elements

 public:
  using Base::kReads;

  // Writes the results of the last plane, if that was not done. Before every last pass and at the end.
  HWY_INLINE void Finish(TexelStream<T>* out) {
    if (to_ == nullptr) return;
    const int64_t width = kBackward ? p_.x.size : p_.x.windows, height = kBackward ? p_.y.size : p_.y.windows;
    const bool one = p_.target_row == 4 * width;  // rows follow each other
    const int64_t rows = one ? 1 : height, n = 4 * (one ? width * height : width);
    for (int64_t y = 0; y < rows; ++y) PutTexels(results_ + y * n, n, to_ + y * p_.target_row, out[0]);
    to_ = nullptr;
  }

 protected:
  using Base::p_;

  // columns: how often Ask is called for a plane.
  HWY_INLINE SmallPlane(const DirectPlan& p, float* scratch, int64_t columns)
      : Base(p, scratch), pitch_(p.small_pitch()) {
    float* at = scratch + p.row_scratch_bytes() / sizeof(float);
    for (float*& box : box_) box = at + 4 * (pitch_ + 4), at += p.small_box_floats();
    divisors_ = reinterpret_cast<int32_t*>(at);
    for (int64_t v = 0; kKind == PoolKind::average && v < p.y.windows; ++v) {
      divisors_[v] = static_cast<int32_t>((Base::CountedRows(v) - 1) * Base::line_);
    }
    results_ = reinterpret_cast<T*>(at + p.small_divisors());
    const auto per_column = [&](int64_t texels) { return (4 * texels / kLine + columns) / columns * kLine; };
    source_part_ = per_column(p.x.size * p.y.size), gradient_part_ = per_column(p.x.windows * p.y.windows);
  }
  // Fills box i, border and all.
  HWY_INLINE void Fill(int i, __m512i value) const {
    float* at = box_[i] - 4 * (pitch_ + 4);
    for (int64_t j = 0; j < p_.small_box_floats(); j += 16) _mm512_store_si512(at + j, value);
  }
  // Texel or window (y, x) of box i.
  HWY_INLINE float* At(int i, int64_t y, int64_t x) const { return box_[i] + 4 * (y * pitch_ + x); }

  static HWY_INLINE int64_t Columns(int64_t n) { return (n + 3) / 4; }
  // Where the column of 4 that begins at i of n, n >= 4, really begins.
  static HWY_INLINE int64_t Inward(int64_t i, int64_t n) { return HWY_MIN(i, n - 4); }

  // Begins a plane.
  HWY_INLINE void Begin(const T* x, const T* g) {
    const int64_t texels = 4 * p_.x.size * p_.y.size, windows = 4 * p_.x.windows * p_.y.windows;
    constexpr auto kLeast = static_cast<int64_t>(kAhead / sizeof(T));
    if (kReads) source_ahead_ = x + HWY_MAX(texels, kLeast);
    if (kBackward) gradient_ahead_ = g + HWY_MAX(windows, kLeast);
  }
  // Before every column: asks for memory of planes to come.
  HWY_INLINE void Ask() {
    for (int64_t i = 0; kReads && i < source_part_; i += kLine) hwy::Prefetch(source_ahead_ + i);
    for (int64_t i = 0; kBackward && i < gradient_part_; i += kLine) hwy::Prefetch(gradient_ahead_ + i);
    if (kReads) source_ahead_ += source_part_;
    if (kBackward) gradient_ahead_ += gradient_part_;
  }
  // Ends a plane, whose results go to `to`.
  HWY_INLINE void End(T* to) { to_ = to; }

  int64_t pitch_;  // texels or windows from row to row of a box
  T* results_;
  int32_t* divisors_;  // average: where the divisors of a row of windows begin in columns_

 private:
  float* box_[3];
  T* to_ = nullptr;                      // where the results of the plane before go
  int64_t source_part_, gradient_part_;  // elements to ask for per column
  const T *source_ahead_ = nullptr, *gradient_ahead_ = nullptr;
};

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // AVX3

#endif  // BNNS_OPS_MPS_POOLING_CPU_SMALL_INL_H_
