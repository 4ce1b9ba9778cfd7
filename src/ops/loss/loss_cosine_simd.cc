// Cosine distance of a row x of n values from its labels l, both taken for unit vectors.
//   t = 1 - sum(w l x);  g = (1 - t) x - w l, the derivative of 1 - sum(w l x) / |x| at |x| = 1
// Sums are f32 within kBlock values and double beyond.

#include "src/ops/loss/loss.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/loss/loss_cosine_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/loss/loss_rows-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {

// Calls step(lanes, i) for the vectors of a block.
template <class Step>
HWY_INLINE void ForEachVector(size_t m, Step step) {
  const size_t N = hn::Lanes(D());
  size_t i = 0;
  for (; i + N <= m; i += N) step(WholeVector(), i);
  if (i < m) step(PartialVector{m - i}, i);
}

// sum(w l x) of a block; w may be NULL.
HWY_INLINE float DotBlock(const float* x, const float* l, const float* w, size_t m) {
  if (!w) return Reduce2(x, l, m, SumOp(), [](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); });
  const D d;
  V sum = hn::Zero(d);
  ForEachVector(m, [&](auto lanes, size_t i) HWY_ATTR {
    sum = hn::Add(sum, hn::Mul(hn::Mul(lanes.Load(d, l + i), lanes.Load(d, w + i)), lanes.Load(d, x + i)));
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

// g = factor (dot x - w l)
HWY_INLINE void GradientBlock(const float* x, const float* l, const float* w, float factor, float dot, size_t m,
                              float* g) {
  const D d;
  const V scale = hn::Set(d, factor), along = hn::Set(d, dot);
  ForEachVector(m, [&](auto lanes, size_t i) HWY_ATTR {
    const V label = lanes.Load(d, l + i);
    const V wl = w ? hn::Mul(label, lanes.Load(d, w + i)) : label;
    lanes.Store(d, hn::Mul(scale, hn::MulSub(along, lanes.Load(d, x + i), wl)), g + i);
  });
}

}  // namespace

double CosineLoss(const LossRun& run, Range samples) {
  Rows rows(run);
  const size_t n = run.n;
  double sum = 0;
  for (size_t sample = samples.begin; sample < samples.end; ++sample) {
    const float weight = run.sample_weight(sample);
    double dot = 0;
    rows.Start(sample);
    for (size_t first = 0; weight != 0 && first < n; first += kBlock) {
      const size_t m = Smaller(kBlock, n - first);
      dot += DotBlock(rows.x.Read(first, m), rows.labels.Read(first, m), rows.Weights(first, m), m);
    }
    const double term = 1 - weight * dot;
    rows.PutTerm(sample, term);
    sum += term;
    if (!run.dx.base) continue;
    if (weight == 0) {  // whatever the sample holds
      clear_gradient(run, sample);
      continue;
    }
    const float factor = rows.Upstream(sample) * weight, along = static_cast<float>(dot);
    float* row = rows.GradientRow(sample);
    for (size_t first = 0; first < n; first += kBlock) {
      const size_t m = Smaller(kBlock, n - first);
      GradientBlock(rows.x.Read(first, m), rows.labels.Read(first, m), rows.Weights(first, m), factor, along, m,
                    row ? row + first : rows.g_buffer);
      if (!row) rows.PutGradient(sample, first, m);
    }
  }
  return sum;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

double cosine_loss(const LossRun& run, Range samples) noexcept {
  return BNNS_DISPATCH(CosineLoss)(run, samples);
}

}  // namespace bnns
#endif
