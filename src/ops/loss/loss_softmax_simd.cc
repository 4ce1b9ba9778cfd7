// Softmax cross entropies of a row x of n values with labels l and weights w.
//   both            M = max x, e = exp(x - M), S = sum e, p = e / S
//   softmax_ce      l = label (1 - s) + s / n;  t = log S sum(w l) - sum(w l (x - M));  g = p sum(w l) - w l
//   categorical_ce  m = number of non-zero labels;  t as above / m;  g = w (p - 1 / m) where l != 0, else p
// Rows of up to four vectors stay in registers from load to store. Longer rows take three passes while they are in
// cache: maximum, exponentials and sums, gradient. The exponentials wait in dx's own row where that is dense f32, and
// in a block on the stack if they fit; else they are computed again, which gives the same bits. Sums are f32 within
// kBlock values and double beyond.

#include "src/ops/loss/loss.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/loss/loss_softmax_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/loss/loss_rows-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
#include "src/simd/math_exp-inl.h"
#include "src/simd/math_log-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {

constexpr float kInfinity = __builtin_inff();

struct Numbers {
  float keep, spread;    // l = label keep + spread
  float weight, factor;  // of the row; factor is the gradient's
  bool want_term;
};

struct RowSums {
  double exponentials = 0, labels = 0, dot = 0;  // sum e, sum w l, sum w l (x - M)
  size_t nonzero = 0;                            // labels, for categorical_ce
};

// sum += w l and dot += w l (x - M); returns l.
template <bool kCategorical, class Lanes>
HWY_INLINE V AddLabels(D d, Lanes lanes, V label, V shifted, const float* w, const Numbers& row, V* sum, V* dot,
                       size_t* nonzero) {
  const V zero = hn::Zero(d);
  const V l = lanes.Keep(d, hn::MulAdd(label, hn::Set(d, row.keep), hn::Set(d, row.spread)));
  if constexpr (kCategorical) *nonzero += hn::CountTrue(d, hn::Ne(l, zero));
  const V wl = w ? hn::Mul(l, lanes.Load(d, w)) : l;
  *sum = hn::Add(*sum, wl);
  // A label of 0 has no part in the loss, not even where x is infinite.
  *dot = hn::Add(*dot, hn::IfThenElseZero(hn::Ne(wl, zero), hn::Mul(wl, shifted)));
  return l;
}

// Of a whole row, before the weight of the sample. Without a label categorical_ce has no term and no gradient.
template <bool kCategorical>
HWY_INLINE double Share(const RowSums& sums) {
  return !kCategorical ? 1 : sums.nonzero ? 1.0 / static_cast<double>(sums.nonzero) : 0;
}
HWY_INLINE double Term(const RowSums& sums, double share) {
  if (share == 0) return 0;
  const hn::CappedTag<float, 4> d;
  const double log_sum = hn::GetLane(Log(d, hn::Set(d, static_cast<float>(sums.exponentials))));
  return share * (log_sum * sums.labels - sums.dot);
}

struct Gradient {
  V factor, ratio, share, weight;
  bool none;
};
template <bool kCategorical>
HWY_INLINE Gradient MakeGradient(D d, const RowSums& sums, double share, const Numbers& row) {
  const float top = kCategorical ? 1.0f : static_cast<float>(sums.labels);
  return {hn::Set(d, kCategorical ? row.factor : row.factor * row.weight),
          hn::Set(d, top / static_cast<float>(sums.exponentials)), hn::Set(d, static_cast<float>(share)),
          hn::Set(d, row.weight), share == 0};
}
// w may be NULL.
template <bool kCategorical, class Lanes>
HWY_INLINE V Slope(D d, Lanes lanes, const Gradient& gradient, V e, V l, const float* w) {
  if constexpr (kCategorical) {
    if (gradient.none) return hn::Zero(d);
    const V p = hn::Mul(e, gradient.ratio);
    const V weight = w ? lanes.Load(d, w) : gradient.weight;
    const V labelled = hn::Mul(weight, hn::Sub(p, gradient.share));
    return hn::Mul(gradient.factor, hn::IfThenElse(hn::Eq(l, hn::Zero(d)), p, labelled));
  } else {
    const V wl = w ? hn::Mul(l, lanes.Load(d, w)) : l;
    return hn::Mul(gradient.factor, hn::MulSub(e, gradient.ratio, wl));
  }
}

// ---- rows of at most K vectors -----------------------------------------------------------------------------------

// (K - 1) N < n <= K N. Returns the term; g NULL: no gradient wanted.
template <bool kCategorical, int K>
HWY_INLINE double ShortRow(const float* HWY_RESTRICT x, const float* HWY_RESTRICT label, const float* HWY_RESTRICT w,
                           const Numbers& row, size_t n, float* HWY_RESTRICT g) {
  const D d;
  const size_t N = hn::Lanes(d);
  const WholeVector whole;
  const size_t left = n - (K - 1) * N;
  V shifted[K], l[K];
  V top = hn::Set(d, -kInfinity), sum = hn::Zero(d), labels = sum, dot = sum;
  for (int k = 0; k < K - 1; ++k) {
    shifted[k] = whole.Load(d, x + k * N);
    top = hn::Max(top, shifted[k]);
  }
  // A last vector that happens to be whole is taken as a partial one too: a branch would cost more.
  const PartialVector last{left};
  shifted[K - 1] = last.Load(d, x + (K - 1) * N, -kInfinity);
  top = hn::MaxOfLanes(d, hn::Max(top, shifted[K - 1]));
  RowSums sums;
  for (int k = 0; k < K; ++k) {
    shifted[k] = hn::Sub(shifted[k], top);
    const float* wk = w ? w + k * N : nullptr;
    if (k < K - 1) {
      l[k] = AddLabels<kCategorical>(d, whole, whole.Load(d, label + k * N), shifted[k], wk, row, &labels, &dot,
                                     &sums.nonzero);
    } else {
      l[k] = AddLabels<kCategorical>(d, last, last.Load(d, label + k * N), shifted[k], wk, row, &labels, &dot,
                                     &sums.nonzero);
    }
    shifted[k] = Exp(d, shifted[k]);  // the exponential from here on
    sum = hn::Add(sum, shifted[k]);
  }
  sums.exponentials = hn::GetLane(hn::SumOfLanes(d, sum));
  sums.labels = hn::GetLane(hn::SumOfLanes(d, labels));
  sums.dot = hn::GetLane(hn::SumOfLanes(d, dot));
  const double share = Share<kCategorical>(sums);
  if (g) {
    const Gradient gradient = MakeGradient<kCategorical>(d, sums, share, row);
    for (int k = 0; k < K; ++k) {
      const float* wk = w ? w + k * N : nullptr;
      if (k < K - 1) {
        whole.Store(d, Slope<kCategorical>(d, whole, gradient, shifted[k], l[k], wk), g + k * N);
      } else {
        last.Store(d, Slope<kCategorical>(d, last, gradient, shifted[k], l[k], wk), g + k * N);
      }
    }
  }
  return row.want_term ? row.weight * Term(sums, share) : 0;
}

template <bool kCategorical>
HWY_INLINE double AnyShortRow(const float* x, const float* label, const float* w, const Numbers& row, size_t n,
                              float* g) {
  switch ((n - 1) / hn::Lanes(D())) {
    case 0:
      return ShortRow<kCategorical, 1>(x, label, w, row, n, g);
    case 1:
      return ShortRow<kCategorical, 2>(x, label, w, row, n, g);
    case 2:
      return ShortRow<kCategorical, 3>(x, label, w, row, n, g);
    default:
      return ShortRow<kCategorical, 4>(x, label, w, row, n, g);
  }
}

// ---- rows of any length ------------------------------------------------------------------------------------------

// NaN may or may not come out: the exponentials make the row's sums NaN in any case. Four accumulators.
HWY_INLINE float BlockMaximum(const float* x, size_t m) {
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
  for (; i + N <= m; i += N) a0 = hn::Max(a0, hn::LoadU(d, x + i));
  if (i < m) a1 = hn::Max(a1, PartialVector{m - i}.Load(d, x + i, -kInfinity));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(hn::Max(a0, a1), hn::Max(a2, a3))));
}

// Adds a block to the sums and stores its exponentials. w may be NULL. Two accumulators of each kind: Exp takes longer
// than the adds that wait for each other.
template <bool kCategorical>
HWY_INLINE void AddBlock(const float* HWY_RESTRICT x, const float* HWY_RESTRICT label, const float* HWY_RESTRICT w,
                         const Numbers& row, float maximum, size_t m, float* HWY_RESTRICT e, RowSums* sums) {
  const D d;
  const size_t N = hn::Lanes(d);
  const V top = hn::Set(d, maximum), zero = hn::Zero(d);
  V s0 = zero, s1 = zero, l0 = zero, l1 = zero, a0 = zero, a1 = zero;
  size_t nonzero = 0;
  const auto step = [&](auto lanes, size_t i, V& s, V& l, V& a) HWY_ATTR {
    const V shifted = hn::Sub(lanes.Load(d, x + i, -kInfinity), top);
    AddLabels<kCategorical>(d, lanes, lanes.Load(d, label + i), shifted, w ? w + i : nullptr, row, &l, &a, &nonzero);
    const V exponential = Exp(d, shifted);
    s = hn::Add(s, exponential);
    lanes.Store(d, exponential, e + i);
  };
  size_t i = 0;
  for (; i + 2 * N <= m; i += 2 * N) {
    step(WholeVector(), i, s0, l0, a0);
    step(WholeVector(), i + N, s1, l1, a1);
  }
  if (i + N <= m) {
    step(WholeVector(), i, s0, l0, a0);
    i += N;
  }
  if (i < m) step(PartialVector{m - i}, i, s1, l1, a1);
  sums->exponentials += hn::GetLane(hn::SumOfLanes(d, hn::Add(s0, s1)));
  sums->labels += hn::GetLane(hn::SumOfLanes(d, hn::Add(l0, l1)));
  sums->dot += hn::GetLane(hn::SumOfLanes(d, hn::Add(a0, a1)));
  sums->nonzero += nonzero;
}

// From exponentials to gradients, in place.
template <bool kCategorical>
HWY_INLINE void GradientBlock(const float* HWY_RESTRICT label, const float* HWY_RESTRICT w, const Numbers& row,
                              const Gradient& gradient, size_t m, float* HWY_RESTRICT g) {
  const D d;
  const size_t N = hn::Lanes(d);
  const auto step = [&](auto lanes, size_t i) HWY_ATTR {
    const V l = hn::MulAdd(lanes.Load(d, label + i), hn::Set(d, row.keep), hn::Set(d, row.spread));
    const V slope = Slope<kCategorical>(d, lanes, gradient, lanes.Load(d, g + i), l, w ? w + i : nullptr);
    lanes.Store(d, slope, g + i);
  };
  size_t i = 0;
  for (; i + N <= m; i += N) step(WholeVector(), i);
  if (i < m) step(PartialVector{m - i}, i);
}

template <bool kCategorical>
double LongRow(Rows& rows, size_t sample, const Numbers& row, float* g_row) {
  const LossRun& run = rows.run;
  const size_t n = run.n;
  float maximum = -kInfinity;
  for (size_t first = 0; first < n; first += kBlock) {
    const size_t m = Smaller(kBlock, n - first);
    const float top = BlockMaximum(rows.x.Read(first, m), m);
    maximum = top > maximum ? top : maximum;
  }
  RowSums sums;
  for (size_t first = 0; first < n; first += kBlock) {
    const size_t m = Smaller(kBlock, n - first);
    AddBlock<kCategorical>(rows.x.Read(first, m), rows.labels.Read(first, m), rows.Weights(first, m), row, maximum, m,
                           g_row ? g_row + first : rows.g_buffer, &sums);
  }
  const double share = Share<kCategorical>(sums);
  if (run.dx.base) {
    const Gradient gradient = MakeGradient<kCategorical>(D(), sums, share, row);
    for (size_t first = 0; first < n; first += kBlock) {
      const size_t m = Smaller(kBlock, n - first);
      float* g = g_row ? g_row + first : rows.g_buffer;
      if (!g_row && n > kBlock) {
        const V top = hn::Set(D(), maximum);
        Transform(rows.x.Read(first, m), g, m, [&](auto d, auto v) HWY_ATTR { return Exp(d, hn::Sub(v, top)); });
      }
      GradientBlock<kCategorical>(rows.labels.Read(first, m), rows.Weights(first, m), row, gradient, m, g);
      if (!g_row) rows.PutGradient(sample, first, m);
    }
  }
  return row.want_term ? row.weight * Term(sums, share) : 0;
}

template <bool kCategorical>
double RunRows(const LossRun& run, Range samples) {
  Rows rows(run);
  const size_t n = run.n;
  const bool is_short = n <= 4 * hn::Lanes(D());
  const float smooth = run.problem->label_smooth;
  Numbers row{1 - smooth, smooth / static_cast<float>(n), 1, 1, run.want_terms};
  double sum = 0;
  for (size_t sample = samples.begin; sample < samples.end; ++sample) {
    row.weight = run.sample_weight(sample);
    if (row.weight == 0 && !kCategorical) {  // whatever the sample holds
      rows.PutTerm(sample, 0);
      clear_gradient(run, sample);
      continue;
    }
    row.factor = rows.Upstream(sample);
    rows.Start(sample);
    float* g_row = rows.GradientRow(sample);
    double term;
    if (is_short) {
      float* g = !run.dx.base ? nullptr : g_row ? g_row : rows.g_buffer;
      term = AnyShortRow<kCategorical>(rows.x.Read(0, n), rows.labels.Read(0, n), rows.Weights(0, n), row, n, g);
      if (g && !g_row) rows.PutGradient(sample, 0, n);
    } else {
      term = LongRow<kCategorical>(rows, sample, row, g_row);
    }
    rows.PutTerm(sample, term);
    sum += term;
  }
  return sum;
}

}  // namespace

double SoftmaxLoss(const LossRun& run, Range samples) {
  return run.problem->function == BNNSLossFunctionCategoricalCrossEntropy ? RunRows<true>(run, samples)
                                                                          : RunRows<false>(run, samples);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

double softmax_loss(const LossRun& run, Range samples) noexcept {
  return BNNS_DISPATCH(SoftmaxLoss)(run, samples);
}

}  // namespace bnns
#endif
