// Per-sample losses. A sample is a row of n values x with labels l and weights w.
//   softmax_ce      M = max x, e = exp(x - M), S = sum e, p = e / S;  l = label (1 - s) + s / n
//                   t = log S sum(w l) - sum(w l (x - M));  dt/dx = p sum(w l) - w l
//   categorical_ce  t as above / m, m = number of non-zero labels;  dt/dx = w (p - 1 / m) where l != 0, else p
//   cosine          t = 1 - sum(w l x);  dt/dx = (1 - t) x - w l
// Three passes over a row while it is in cache: maximum, exponentials and sums, gradient. The exponentials wait in
// dx's own row where that is dense f32; rows of up to kBlock values wait on the stack; longer ones of other types are
// computed again, which gives the same bits. Sums are f32 within kBlock values and double beyond.

#include "src/ops/loss/loss.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/loss/loss_rows_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
#include "src/simd/math_exp-inl.h"
#include "src/simd/math_log-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// The blocks of one row. A short row that has to be converted is converted once: its room keeps it for later passes.
class RowReader {
 public:
  RowReader(const Elements* lens, float* room) : lens_(lens), room_(room) {}
  void start(const void* base, size_t origin) {
    base_ = base;
    origin_ = origin;
    held_ = SIZE_MAX;
  }
  const float* read(size_t first, size_t m) {
    if (lens_->direct()) return lens_->read(base_, origin_ + first, m, room_);
    if (held_ != first) lens_->read(base_, origin_ + first, m, room_);
    held_ = first;
    return room_;
  }

 private:
  const Elements* lens_;
  float* room_;
  const void* base_ = nullptr;
  size_t origin_ = 0, held_ = SIZE_MAX;
};

// One step's vectors; the unused lanes of a partial step are such that they change no maximum and no sum.
struct Lanes {
  size_t i, left;
  bool whole;
  HWY_INLINE Lanes(size_t at, size_t n, size_t N) : i(at), left(n - at), whole(n - at >= N) {}
  HWY_INLINE V Load(D d, const float* p) const { return whole ? hn::LoadU(d, p + i) : LoadPartial(d, p + i, left); }
  HWY_INLINE V Load(D d, const float* p, float unused) const {
    if (whole) return hn::LoadU(d, p + i);
    return hn::IfThenElse(hn::FirstN(d, left), LoadPartial(d, p + i, left), hn::Set(d, unused));
  }
  HWY_INLINE V Keep(D d, V v) const { return whole ? v : hn::IfThenElseZero(hn::FirstN(d, left), v); }
  HWY_INLINE void Store(D d, V v, float* p) const {
    whole ? hn::StoreU(v, d, p + i) : StorePartial(d, v, p + i, left);
  }
};

constexpr float kInfinity = __builtin_inff();

// NaN may or may not come out: the exponentials make the row's sums NaN in any case.
HWY_INLINE float RowMaximum(const float* x, size_t m) {
  const D d;
  const size_t N = hn::Lanes(d);
  V a0 = hn::Set(d, -kInfinity), a1 = a0, a2 = a0, a3 = a0;
  size_t i = 0;
  for (; i + 4 * N <= m; i += 4 * N) {
    a0 = hn::Max(a0, hn::LoadU(d, x + i));
    a1 = hn::Max(a1, hn::LoadU(d, x + i + N));
    a2 = hn::Max(a2, hn::LoadU(d, x + i + 2 * N));
    a3 = hn::Max(a3, hn::LoadU(d, x + i + 3 * N));
  }
  for (; i < m; i += N) a0 = hn::Max(a0, Lanes(i, m, N).Load(d, x, -kInfinity));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(a0, a1), hn::Max(a2, a3))));
}

// l = label * keep + spread
struct Smoothing {
  float keep, spread;
};

struct RowSums {
  double exponentials = 0, labels = 0, dot = 0;   // sum e, sum w l, sum w l (x - M)
  size_t nonzero = 0;
};

// Adds a block to the sums and stores its exponentials. w may be NULL: all 1. Two accumulators of each kind: Exp takes
// longer than the adds that wait for each other.
template <bool kCategorical>
HWY_INLINE void AddSoftmaxBlock(const float* x, const float* label, const float* w, Smoothing smoothing, float maximum,
                                size_t m, float* e, RowSums* sums) {
  const D d;
  const size_t N = hn::Lanes(d);
  const V top = hn::Set(d, maximum), zero = hn::Zero(d);
  const V keep = hn::Set(d, smoothing.keep), spread = hn::Set(d, smoothing.spread);
  V s0 = zero, s1 = zero, l0 = zero, l1 = zero, a0 = zero, a1 = zero;
  size_t nonzero = 0;
  const auto step = [&](size_t i, V& s, V& l, V& a) HWY_ATTR {
    const Lanes lanes(i, m, N);
    const V shifted = hn::Sub(lanes.Load(d, x, -kInfinity), top);
    const V exponential = Exp(d, shifted);
    V wl = lanes.Keep(d, hn::MulAdd(lanes.Load(d, label), keep, spread));
    if constexpr (kCategorical) nonzero += hn::CountTrue(d, hn::Ne(wl, zero));
    if (w) wl = hn::Mul(wl, lanes.Load(d, w));
    const auto counts = hn::Ne(wl, zero);   // a label of 0 has no part in the loss, not even of an infinite x
    s = hn::Add(s, exponential);
    l = hn::Add(l, wl);
    a = hn::Add(a, hn::IfThenElseZero(counts, hn::Mul(wl, shifted)));
    lanes.Store(d, exponential, e);
  };
  size_t i = 0;
  for (; i + 2 * N <= m; i += 2 * N) {
    step(i, s0, l0, a0);
    step(i + N, s1, l1, a1);
  }
  for (; i < m; i += N) step(i, s0, l0, a0);
  sums->exponentials += hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
  sums->labels += hn::GetLane(hn::SumOfLanes(d, hn::Add(l0, l1)));
  sums->dot += hn::GetLane(hn::SumOfLanes(d, hn::Add(a0, a1)));
  sums->nonzero += nonzero;
}

HWY_INLINE void ExpBlock(const float* x, float maximum, size_t m, float* e) {
  const V top = hn::Set(D(), maximum);
  Transform(x, e, m, [&](auto d, auto v) HWY_ATTR { return Exp(d, hn::Sub(v, top)); });
}

// What turns exponentials into gradients: softmax_ce  factor (e ratio - w l), categorical_ce  factor w (e ratio - share)
// or factor e ratio, with w = weight where w is NULL.
struct RowGradient {
  float factor, ratio, share, weight;
};

// g may be e.
template <bool kCategorical>
HWY_INLINE void SoftmaxGradientBlock(const float* e, const float* label, const float* w, Smoothing smoothing,
                                     RowGradient row, size_t m, float* g) {
  const D d;
  const size_t N = hn::Lanes(d);
  const V keep = hn::Set(d, smoothing.keep), spread = hn::Set(d, smoothing.spread), zero = hn::Zero(d);
  const V factor = hn::Set(d, row.factor), ratio = hn::Set(d, row.ratio), share = hn::Set(d, row.share);
  for (size_t i = 0; i < m; i += N) {
    const Lanes lanes(i, m, N);
    const V exponential = lanes.Load(d, e), l = hn::MulAdd(lanes.Load(d, label), keep, spread);
    if constexpr (kCategorical) {
      const V p = hn::Mul(exponential, ratio);
      const V weight = w ? lanes.Load(d, w) : hn::Set(d, row.weight);
      const V v = hn::IfThenElse(hn::Eq(l, zero), p, hn::Mul(weight, hn::Sub(p, share)));
      lanes.Store(d, hn::Mul(factor, v), g);
    } else {
      const V wl = w ? hn::Mul(l, lanes.Load(d, w)) : l;
      lanes.Store(d, hn::Mul(factor, hn::MulSub(exponential, ratio, wl)), g);
    }
  }
}

HWY_INLINE void PutTerm(const LossRun& run, size_t sample, double term) {
  if (!run.out) return;
  float room;
  float* to = run.out_lens->target(run.out, sample, &room);
  *to = static_cast<float>(term);
  run.out_lens->write(run.out, sample, 1, to);
}

HWY_INLINE void PutGradient(const LossRun& run, size_t sample, size_t first, size_t m, const float* g) {
  if (run.accumulate) {
    run.dx.lens->accumulate(run.dx.at(sample), first, m, g);
  } else {
    run.dx.lens->write(run.dx.at(sample), first, m, g);
  }
}

HWY_INLINE float Upstream(const LossRun& run, size_t sample) {
  float room;
  return run.dy.base ? run.scale * *run.dy.read(sample, 0, 1, &room) : run.scale;
}

struct Rooms {
  float x[kBlock], l[kBlock], w[kBlock], g[kBlock];
};

template <bool kCategorical>
double SoftmaxRows(const LossRun& run, Range samples) {
  Rooms rooms;
  RowReader x(run.x.lens, rooms.x), label(run.x.lens, rooms.l), weights(run.weight_lens, rooms.w);
  const bool own_weights = run.form == WeightForm::per_element;
  const bool dx_in_place = run.dx.base && run.dx.lens->direct() && !run.accumulate;
  const size_t n = run.n;
  const float s = run.problem->label_smooth;
  const Smoothing smoothing{1 - s, s / static_cast<float>(n)};
  double sum = 0;
  for (size_t sample = samples.begin; sample < samples.end; ++sample) {
    const float weight = run.sample_weight(sample);
    if (weight == 0 && !kCategorical) {
      PutTerm(run, sample, 0);
      clear_gradient(run, sample);
      continue;
    }
    x.start(run.x.at(sample), 0);
    label.start(run.labels.at(sample), 0);
    if (own_weights) weights.start(run.weights, sample * n);
    float maximum = -kInfinity;
    for (size_t first = 0; first < n; first += kBlock) {
      const size_t m = n - first < kBlock ? n - first : kBlock;
      const float top = RowMaximum(x.read(first, m), m);
      maximum = top > maximum ? top : maximum;
    }
    RowSums sums;
    float* row = dx_in_place ? run.dx.lens->target(run.dx.at(sample), 0, nullptr) : nullptr;
    for (size_t first = 0; first < n; first += kBlock) {
      const size_t m = n - first < kBlock ? n - first : kBlock;
      const float* w = own_weights ? weights.read(first, m) : nullptr;
      AddSoftmaxBlock<kCategorical>(x.read(first, m), label.read(first, m), w, smoothing, maximum, m,
                                    row ? row + first : rooms.g, &sums);
    }
    // Without a label categorical_ce has no term, and its gradient is 0.
    const double share = kCategorical ? (sums.nonzero ? 1.0 / double(sums.nonzero) : 0) : 1;
    if (run.want_terms) {
      const hn::CappedTag<float, 4> d4;
      const double log_sum = hn::GetLane(Log(d4, hn::Set(d4, static_cast<float>(sums.exponentials))));
      const double term = share == 0 ? 0 : share * weight * (log_sum * sums.labels - sums.dot);
      PutTerm(run, sample, term);
      sum += term;
    }
    if (!run.dx.base) continue;
    if (share == 0) {
      clear_gradient(run, sample);
      continue;
    }
    RowGradient gradient;
    gradient.factor = kCategorical ? Upstream(run, sample) : Upstream(run, sample) * weight;
    gradient.ratio = static_cast<float>((kCategorical ? 1.0 : sums.labels) / sums.exponentials);
    gradient.share = static_cast<float>(share);
    gradient.weight = weight;
    for (size_t first = 0; first < n; first += kBlock) {
      const size_t m = n - first < kBlock ? n - first : kBlock;
      float* g = row ? row + first : rooms.g;
      if (!row && n > kBlock) ExpBlock(x.read(first, m), maximum, m, g);
      const float* w = own_weights ? weights.read(first, m) : nullptr;
      SoftmaxGradientBlock<kCategorical>(g, label.read(first, m), w, smoothing, gradient, m, g);
      if (!row) PutGradient(run, sample, first, m, g);
    }
  }
  return sum;
}

// sum(w l x) of a block.
HWY_INLINE float DotBlock(const float* x, const float* l, const float* w, size_t m) {
  if (!w) return Reduce2(x, l, m, SumOp(), [](auto, auto a, auto b) HWY_ATTR { return hn::Mul(a, b); });
  const D d;
  const size_t N = hn::Lanes(d);
  V a = hn::Zero(d);
  for (size_t i = 0; i < m; i += N) {
    const Lanes lanes(i, m, N);
    a = hn::Add(a, hn::Mul(hn::Mul(lanes.Load(d, l), lanes.Load(d, w)), lanes.Load(d, x)));
  }
  return hn::GetLane(hn::SumOfLanes(d, a));
}

double CosineRows(const LossRun& run, Range samples) {
  Rooms rooms;
  RowReader x(run.x.lens, rooms.x), label(run.x.lens, rooms.l), weights(run.weight_lens, rooms.w);
  const bool own_weights = run.form == WeightForm::per_element;
  const size_t n = run.n;
  double sum = 0;
  for (size_t sample = samples.begin; sample < samples.end; ++sample) {
    const float weight = run.sample_weight(sample);
    if (weight == 0) {
      PutTerm(run, sample, 1);
      sum += 1;
      clear_gradient(run, sample);
      continue;
    }
    x.start(run.x.at(sample), 0);
    label.start(run.labels.at(sample), 0);
    if (own_weights) weights.start(run.weights, sample * n);
    double dot = 0;
    for (size_t first = 0; first < n; first += kBlock) {
      const size_t m = n - first < kBlock ? n - first : kBlock;
      dot += DotBlock(x.read(first, m), label.read(first, m), own_weights ? weights.read(first, m) : nullptr, m);
    }
    const double term = 1 - weight * dot;
    PutTerm(run, sample, term);
    sum += term;
    if (!run.dx.base) continue;
    const D d;
    const size_t N = hn::Lanes(d);
    const V factor = hn::Set(d, Upstream(run, sample) * weight), along = hn::Set(d, static_cast<float>(dot));
    const bool dx_in_place = run.dx.lens->direct() && !run.accumulate;
    for (size_t first = 0; first < n; first += kBlock) {
      const size_t m = n - first < kBlock ? n - first : kBlock;
      const float *xs = x.read(first, m), *ls = label.read(first, m);
      const float* w = own_weights ? weights.read(first, m) : nullptr;
      float* g = dx_in_place ? run.dx.lens->target(run.dx.at(sample), first, nullptr) : rooms.g;
      for (size_t i = 0; i < m; i += N) {
        const Lanes lanes(i, m, N);
        const V wl = w ? hn::Mul(lanes.Load(d, ls), lanes.Load(d, w)) : lanes.Load(d, ls);
        lanes.Store(d, hn::Mul(factor, hn::MulSub(along, lanes.Load(d, xs), wl)), g);
      }
      if (!dx_in_place) PutGradient(run, sample, first, m, g);
    }
  }
  return sum;
}

}  // namespace

double SampleLoss(const LossRun& run, Range samples) {
  switch (run.problem->function) {
    case BNNSLossFunctionSoftmaxCrossEntropy: return SoftmaxRows<false>(run, samples);
    case BNNSLossFunctionCategoricalCrossEntropy: return SoftmaxRows<true>(run, samples);
    case BNNSLossFunctionCosineDistance: return CosineRows(run, samples);
    default: return 0;   // the others are per element
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

double sample_loss(const LossRun& run, Range samples) noexcept { return BNNS_DISPATCH(SampleLoss)(run, samples); }

}  // namespace bnns
#endif
