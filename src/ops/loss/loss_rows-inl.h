// What the per-sample losses share: rows as blocks of f32, steps of whole and partial vectors, terms and gradients out.

#if defined(BNNS_LOSS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_LOSS_ROWS_INL_H_
#undef BNNS_LOSS_ROWS_INL_H_
#else
#define BNNS_LOSS_ROWS_INL_H_
#endif

#include <hwy/highway.h>

#include "src/ops/loss/loss.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE size_t Smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

// The blocks of one row. A short row that has to be converted is converted once: its buffer keeps it for later passes.
class RowReader {
 public:
  RowReader(const Elements* lens, float* buffer) : lens_(lens), buffer_(buffer) {}
  HWY_INLINE void Start(const void* base, size_t origin) {
    base_ = base;
    origin_ = origin;
    held_ = SIZE_MAX;
  }
  HWY_INLINE const float* Read(size_t first, size_t m) {
    if (lens_->direct()) return lens_->read(base_, origin_ + first, m, buffer_);
    if (held_ != first) lens_->read(base_, origin_ + first, m, buffer_);
    held_ = first;
    return buffer_;
  }

 private:
  const Elements* lens_;
  float* buffer_;
  const void* base_ = nullptr;
  size_t origin_ = 0, held_ = SIZE_MAX;
};

// The rows of one call.
struct Rows {
  float x_buffer[kBlock], l_buffer[kBlock], w_buffer[kBlock], g_buffer[kBlock];
  const LossRun& run;
  const bool own_weights, dx_in_place;
  RowReader x, labels, weights;

  explicit Rows(const LossRun& r)
      : run(r),
        own_weights(r.form == WeightForm::per_element),
        dx_in_place(r.dx.base && r.dx.lens->direct() && !r.accumulate),
        x(r.x.lens, x_buffer),
        labels(r.x.lens, l_buffer),
        weights(r.weight_lens, w_buffer) {}

  HWY_INLINE void Start(size_t sample) {
    x.Start(run.x.at(sample), 0);
    labels.Start(run.labels.at(sample), 0);
    if (own_weights) weights.Start(run.weights, sample * run.n);
  }
  // NULL: all 1.
  HWY_INLINE const float* Weights(size_t first, size_t m) { return own_weights ? weights.Read(first, m) : nullptr; }

  // Where gradients may be put: dx's own row, or g_buffer for one block.
  HWY_INLINE float* GradientRow(size_t sample) const {
    return dx_in_place ? run.dx.lens->target(run.dx.at(sample), 0, nullptr) : nullptr;
  }
  HWY_INLINE void PutGradient(size_t sample, size_t first, size_t m) const {
    if (run.accumulate) {
      run.dx.lens->accumulate(run.dx.at(sample), first, m, g_buffer);
    } else {
      run.dx.lens->write(run.dx.at(sample), first, m, g_buffer);
    }
  }
  HWY_INLINE void PutTerm(size_t sample, double term) const {
    if (!run.out) return;
    float buffer;
    float* to = run.out_lens->target(run.out, sample, &buffer);
    *to = static_cast<float>(term);
    run.out_lens->write(run.out, sample, 1, to);
  }
  // The factor of a sample's gradient that comes from outside it. Terms with gradients of their own have no divisor.
  HWY_INLINE float Upstream(size_t sample) const {
    float buffer;
    return run.dy.base ? *run.dy.read(sample, 0, 1, &buffer) : run.scale;
  }
};

// How a step loads and stores: a whole vector, or the last `left` elements of a block.
struct WholeVector {
  HWY_INLINE V Load(D d, const float* p) const { return hn::LoadU(d, p); }
  HWY_INLINE V Load(D d, const float* p, float /*unused*/) const { return hn::LoadU(d, p); }
  HWY_INLINE V Keep(D /*d*/, V v) const { return v; }
  HWY_INLINE void Store(D d, V v, float* p) const { hn::StoreU(v, d, p); }
};
struct PartialVector {
  size_t left;
  HWY_INLINE V Load(D d, const float* p) const { return LoadPartial(d, p, left); }
  HWY_INLINE V Load(D d, const float* p, float unused) const {  // another value than 0 in the unused lanes
    return hn::IfThenElse(hn::FirstN(d, left), LoadPartial(d, p, left), hn::Set(d, unused));
  }
  HWY_INLINE V Keep(D d, V v) const { return hn::IfThenElseZero(hn::FirstN(d, left), v); }
  HWY_INLINE void Store(D d, V v, float* p) const { StorePartial(d, v, p, left); }
};

}  // namespace
}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BNNS_LOSS_ROWS_INL_H_
