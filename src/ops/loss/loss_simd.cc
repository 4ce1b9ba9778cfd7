// Element-wise losses, each a pair (t, g): the term and its derivative by x, before weight and reduction.
//   sigmoid_ce  |x| (x < 0 ? l : 1 - l) + log(1 + e^-|x|)       sigmoid(x) - l        l = label (1 - s) + s / 2
//   mse         (x - l)^2                                       2 (x - l)
//   huber       e = x - l: e^2 / 2, or d (|e| - d / 2)          e clamped to [-d, d]
//   log         -l log P - (1 - l) log Q                        (P - l) / (P Q)       P = x + eps, Q = 1 - x + eps
//   hinge       h = 1 - (2 l - 1) x: max(0, h)                  1 - 2 l where h >= 0
//   mae         |x - l|                                         1 where x >= l, else -1
// x, labels, weights and gradients come as blocks of f32 (Elements); a unit is one chunk of one sample. A weight of 0
// takes its element out: term and gradient are 0 whatever x holds. Elsewhere NaN stays NaN in both.

#include "src/ops/loss/loss.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/loss/loss_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
#include "src/simd/math_activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

struct SigmoidCrossEntropy {
  const LossProblem& p;
  HWY_INLINE void operator()(D d, V x, V label, V* t, V* g) const {
    const V one = hn::Set(d, 1.0f), zero = hn::Zero(d);
    const V l = hn::MulAdd(label, hn::Set(d, 1 - p.label_smooth), hn::Set(d, p.label_smooth / 2));
    const V z = detail::ExpNegAbs(d, x);
    const auto negative = hn::Lt(x, zero);
    // -l log sigmoid(x) - (1 - l) log(1 - sigmoid(x)). Where the factor is 0 an infinite x has the loss 0, its limit.
    const V factor = hn::IfThenElse(negative, l, hn::Sub(one, l));
    const V linear = hn::IfThenZeroElse(hn::Eq(factor, zero), hn::Mul(hn::Abs(x), factor));
    *t = hn::Add(linear, detail::Log1pUnit(d, z));
    *g = hn::Sub(hn::Div(hn::IfThenElse(negative, z, one), hn::Add(one, z)), l);
  }
};

struct MeanSquareError {
  const LossProblem& p;
  HWY_INLINE void operator()(D /*d*/, V x, V l, V* t, V* g) const {
    const V e = hn::Sub(x, l);
    *t = hn::Mul(e, e);
    *g = hn::Add(e, e);
  }
};

struct Huber {
  const LossProblem& p;
  HWY_INLINE void operator()(D d, V x, V l, V* t, V* g) const {
    const V delta = hn::Set(d, p.huber_delta), half = hn::Set(d, 0.5f);
    const V e = hn::Sub(x, l), a = hn::Abs(e);
    const auto linear = hn::Gt(a, delta);
    *t = hn::IfThenElse(linear, hn::Mul(delta, hn::Sub(a, hn::Mul(half, delta))), hn::Mul(hn::Mul(half, e), e));
    *g = hn::IfThenElse(linear, hn::CopySign(delta, e), e);
  }
};

struct LogLoss {
  const LossProblem& p;
  HWY_INLINE void operator()(D d, V x, V l, V* t, V* g) const {
    const V one = hn::Set(d, 1.0f), epsilon = hn::Set(d, 1e-7f);
    const V P = hn::Add(x, epsilon), Q = hn::Add(hn::Sub(one, x), epsilon);
    *t = hn::Neg(hn::MulAdd(l, Log(d, P), hn::Mul(hn::Sub(one, l), Log(d, Q))));
    // P - l, exact up to one rounding even where x and l nearly agree.
    *g = hn::Div(hn::Add(hn::Sub(x, l), epsilon), hn::Mul(P, Q));
  }
};

struct Hinge {
  const LossProblem& p;
  HWY_INLINE void operator()(D d, V x, V l, V* t, V* g) const {
    const V one = hn::Set(d, 1.0f), zero = hn::Zero(d);
    const V sign = hn::Sub(hn::Add(l, l), one);
    const V h = hn::NegMulAdd(sign, x, one);
    const auto passed = hn::Lt(h, zero);
    *t = hn::IfThenZeroElse(passed, h);
    *g = hn::IfThenElse(hn::Eq(h, h), hn::IfThenZeroElse(passed, hn::Neg(sign)), h);
  }
};

struct MeanAbsoluteError {
  const LossProblem& p;
  HWY_INLINE void operator()(D d, V x, V l, V* t, V* g) const {
    const V one = hn::Set(d, 1.0f);
    const V e = hn::Sub(x, l);
    *t = hn::Abs(e);
    const V sign = hn::IfThenElse(hn::Ge(x, l), one, hn::Neg(one));
    *g = hn::IfThenElse(hn::Eq(e, e), sign, e);
  }
};

// Pointers of one block. w and dy may be NULL: then weight, and scale alone, hold for all.
struct Block {
  const float *x, *l, *w, *dy;
  float weight, scale;
  float *t, *g;  // t may be NULL: terms are summed only
  size_t m;
};

// Returns the sum of the weighted terms, 0 without kTerms. Two accumulators of doubles: at two to four converts and
// adds per vector they are not what a loop waits for.
template <bool kTerms, bool kGradient, class Loss>
HWY_INLINE double RunBlock(const Loss& loss, const Block& b) {
  const D d;
  const hn::Half<D> dh;
  const hn::Repartition<double, D> dd;
  const size_t N = hn::Lanes(d);
  const V scale = hn::Set(d, b.scale), zero = hn::Zero(d);
  auto low = hn::Zero(dd), high = hn::Zero(dd);
  for (size_t i = 0; i < b.m; i += N) {
    const size_t left = b.m - i;
    const bool whole = left >= N;
    const auto load = [&](const float* p)
                          HWY_ATTR { return whole ? hn::LoadU(d, p + i) : LoadPartial(d, p + i, left); };
    V w = b.w ? load(b.w) : hn::Set(d, b.weight);
    if (!whole) w = hn::IfThenElseZero(hn::FirstN(d, left), w);  // the sum must not see the unused lanes
    V t, g;
    loss(d, load(b.x), load(b.l), &t, &g);
    const auto ignored = hn::Eq(w, zero);
    if constexpr (kTerms) {
      t = hn::IfThenZeroElse(ignored, hn::Mul(w, t));
      low = hn::Add(low, hn::PromoteTo(dd, hn::LowerHalf(dh, t)));
      high = hn::Add(high, hn::PromoteTo(dd, hn::UpperHalf(dh, t)));
      if (b.t) whole ? hn::StoreU(t, d, b.t + i) : StorePartial(d, t, b.t + i, left);
    }
    if constexpr (kGradient) {
      const V factor = b.dy ? hn::Mul(hn::Mul(w, scale), load(b.dy)) : hn::Mul(w, scale);
      g = hn::IfThenZeroElse(ignored, hn::Mul(factor, g));
      whole ? hn::StoreU(g, d, b.g + i) : StorePartial(d, g, b.g + i, left);
    }
  }
  return kTerms ? hn::GetLane(hn::SumOfLanes(dd, hn::Add(low, high))) : 0.0;
}

// Elements [first, first + m) of a sample, from the tensors to blocks and back.
template <bool kTerms, bool kGradient, class Loss>
double RunUnits(const Loss& loss, const LossRun& run, Range units) {
  float x_buffer[kBlock], l_buffer[kBlock], w_buffer[kBlock], dy_buffer[kBlock], t_buffer[kBlock], g_buffer[kBlock];
  const size_t chunks = (run.n + kLossChunk - 1) / kLossChunk;
  const bool own_weights = run.form == WeightForm::per_element;
  const bool dx_in_place = kGradient && run.dx.lens->direct() && !run.accumulate;
  // Where every tensor is dense f32 a block is only a pair of pointers, and may as well be the whole chunk.
  const bool direct = run.x.lens->direct() && (!own_weights || run.weight_lens->direct()) &&
                      (!run.dy.base || run.dy.lens->direct()) && (!run.out || run.out_lens->direct()) &&
                      (!kGradient || dx_in_place);
  const size_t most = direct ? kLossChunk : kBlock;
  double sum = 0;
  for (size_t unit = units.begin; unit < units.end; ++unit) {
    const size_t sample = unit / chunks, begin = unit % chunks * kLossChunk;
    const size_t end = run.n - begin < kLossChunk ? run.n : begin + kLossChunk;
    const float weight = run.sample_weight(sample);
    for (size_t first = begin; first < end; first += most) {
      const size_t m = end - first < most ? end - first : most;
      Block b;
      b.m = m;
      b.x = run.x.read(sample, first, m, x_buffer);
      b.l = run.labels.read(sample, first, m, l_buffer);
      b.w = own_weights ? run.weight_lens->read(run.weights, sample * run.n + first, m, w_buffer) : nullptr;
      b.dy = run.dy.base ? run.dy.read(sample, first, m, dy_buffer) : nullptr;
      b.weight = weight;
      b.scale = run.scale;
      b.t = kTerms && run.out ? run.out_lens->target(run.out, sample * run.n + first, t_buffer) : nullptr;
      b.g = dx_in_place ? run.dx.lens->target(run.dx.at(sample), first, g_buffer) : g_buffer;
      sum += RunBlock<kTerms, kGradient>(loss, b);
      if (b.t) run.out_lens->write(run.out, sample * run.n + first, m, b.t);
      if constexpr (kGradient) {
        if (run.accumulate) {
          run.dx.lens->accumulate(run.dx.at(sample), first, m, b.g);
        } else {
          run.dx.lens->write(run.dx.at(sample), first, m, b.g);
        }
      }
    }
  }
  return sum;
}

template <class Loss>
double RunLoss(const LossRun& run, Range units) {
  const Loss loss{*run.problem};
  if (!run.dx.base) return RunUnits<true, false>(loss, run, units);
  return run.want_terms ? RunUnits<true, true>(loss, run, units) : RunUnits<false, true>(loss, run, units);
}

}  // namespace

double ElementLoss(const LossRun& run, Range units) {
  switch (run.problem->function) {
    case BNNSLossFunctionSigmoidCrossEntropy:
      return RunLoss<SigmoidCrossEntropy>(run, units);
    case BNNSLossFunctionMeanSquareError:
      return RunLoss<MeanSquareError>(run, units);
    case BNNSLossFunctionHuber:
      return RunLoss<Huber>(run, units);
    case BNNSLossFunctionLog:
      return RunLoss<LogLoss>(run, units);
    case BNNSLossFunctionHinge:
      return RunLoss<Hinge>(run, units);
    case BNNSLossFunctionMeanAbsoluteError:
      return RunLoss<MeanAbsoluteError>(run, units);
    default:
      return 0;  // the others are per sample
  }
}

WeightTotal TotalWeight(const float* weights, size_t n) {
  const D d;
  const hn::Half<D> dh;
  const hn::Repartition<double, D> dd;
  const size_t N = hn::Lanes(d);
  auto low = hn::Zero(dd), high = hn::Zero(dd);
  WeightTotal total;
  for (size_t i = 0; i < n; i += N) {
    const V w = n - i >= N ? hn::LoadU(d, weights + i) : LoadPartial(d, weights + i, n - i);
    low = hn::Add(low, hn::PromoteTo(dd, hn::LowerHalf(dh, w)));
    high = hn::Add(high, hn::PromoteTo(dd, hn::UpperHalf(dh, w)));
    total.nonzero += hn::CountTrue(d, hn::Ne(w, hn::Zero(d)));
  }
  total.sum = hn::GetLane(hn::SumOfLanes(dd, hn::Add(low, high)));
  return total;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

double element_loss(const LossRun& run, Range units) noexcept {
  return BNNS_DISPATCH(ElementLoss)(run, units);
}

WeightTotal weight_total(const float* weights, size_t n) noexcept {
  return BNNS_DISPATCH(TotalWeight)(weights, n);
}

}  // namespace bnns
#endif
