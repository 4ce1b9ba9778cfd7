// The update rules of optimizer.h, one fused pass per stretch of a tensor.
//
// Each rule is a small functor: it takes vectors of W, g' and the accumulators, and changes W and the accumulators.
// RunUpdate feeds it whole vectors and then one partial vector, so an element has the same bits wherever it stands.
// Roots and quotients are exact; nothing is approximated, since large tensors wait for memory and small ones for the
// divider, at about one cycle per element (784-128-10 network: 33 us for Adam on one core).

#include "src/ops/optimizer/optimizer.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/optimizer/optimizer_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Accumulators that have decayed below the smallest normal number become 0. Otherwise, wherever gradients stay 0 (dead
// units), they would end up subnormal and make every later step many times slower on CPUs that trap to microcode.
HWY_INLINE V FlushSubnormal(D d, V v) {
  return hn::IfThenZeroElse(hn::Lt(hn::Abs(v), hn::Set(d, 0x1p-126f)), v);
}

// a / b, and 0 where b is 0: with epsilon = 0 an element whose gradients were all 0 keeps its value.
HWY_INLINE V DivideOrZero(D d, V a, V b) {
  return hn::IfThenZeroElse(hn::Eq(b, hn::Zero(d)), hn::Div(a, b));
}

struct Sgd {
  static constexpr size_t kStates = 0;
  const OptimizerProblem& p;
  HWY_INLINE void operator()(D d, V& w, V g, V&, V&, V&) const { w = hn::NegMulAdd(hn::Set(d, p.learning_rate), g, w); }
};

struct Momentum {
  static constexpr size_t kStates = 1;
  const OptimizerProblem& p;
  HWY_INLINE void operator()(D d, V& w, V g, V& velocity, V&, V&) const {
    velocity = hn::MulAdd(hn::Set(d, p.momentum), velocity, hn::Mul(hn::Set(d, p.velocity_gain), g));
    velocity = FlushSubnormal(d, velocity);
    w = hn::MulAdd(hn::Set(d, p.velocity_step), velocity, w);
  }
};

struct NesterovVelocity {
  static constexpr size_t kStates = 1;
  const OptimizerProblem& p;
  HWY_INLINE void operator()(D d, V& w, V g, V& velocity, V&, V&) const {
    const V m = hn::Set(d, p.momentum), old = velocity;
    velocity = FlushSubnormal(d, hn::MulAdd(m, old, hn::Mul(hn::Set(d, p.velocity_gain), g)));
    w = hn::Add(w, hn::MulAdd(m, hn::Sub(velocity, old), velocity));
  }
};

struct NesterovGradient {
  static constexpr size_t kStates = 1;
  const OptimizerProblem& p;
  HWY_INLINE void operator()(D d, V& w, V g, V& velocity, V&, V&) const {
    const V m = hn::Set(d, p.momentum);
    velocity = FlushSubnormal(d, hn::MulAdd(m, velocity, g));
    w = hn::NegMulAdd(hn::Set(d, p.learning_rate), hn::MulAdd(m, velocity, g), w);
  }
};

template <bool kAmsgrad>
struct Adam {
  static constexpr size_t kStates = kAmsgrad ? 3 : 2;
  const OptimizerProblem& p;
  HWY_INLINE void operator()(D d, V& w, V g, V& first, V& second, V& largest) const {
    first = hn::MulAdd(hn::Set(d, p.beta1), first, hn::Mul(hn::Set(d, p.one_minus_beta1), g));
    second = hn::MulAdd(hn::Set(d, p.beta2), second, hn::Mul(hn::Set(d, p.one_minus_beta2), hn::Mul(g, g)));
    first = FlushSubnormal(d, first);
    second = FlushSubnormal(d, second);
    V root = second;
    if constexpr (kAmsgrad) {
      // A NaN on either side stays: hn::Max would drop one of them on x86.
      largest = hn::IfThenElse(hn::Or(hn::Gt(second, largest), hn::IsNaN(second)), second, largest);
      largest = FlushSubnormal(d, largest);
      root = largest;
    }
    const V change = DivideOrZero(d, first, hn::Add(hn::Sqrt(root), hn::Set(d, p.epsilon)));
    const V step = hn::Set(d, p.step);
    if (p.decays) {
      // W - (decay W + step change): 1 - decay as a factor would round away most digits of a small decay.
      w = hn::Sub(w, hn::MulAdd(step, change, hn::Mul(hn::Set(d, p.decay), w)));
    } else {
      w = hn::NegMulAdd(step, change, w);
    }
  }
};

template <bool kCentered, bool kMomentum>
struct RmsProp {
  static constexpr size_t kStates = 1 + kCentered + kMomentum;
  const OptimizerProblem& p;
  HWY_INLINE void operator()(D d, V& w, V g, V& square, V& second, V& third) const {
    const V a = hn::Set(d, p.beta2), b = hn::Set(d, p.one_minus_beta2);
    square = FlushSubnormal(d, hn::MulAdd(a, square, hn::Mul(b, hn::Mul(g, g))));
    V variance = square;
    if constexpr (kCentered) {
      V& mean = second;
      mean = FlushSubnormal(d, hn::MulAdd(a, mean, hn::Mul(b, g)));
      variance = hn::NegMulAdd(mean, mean, square);
      // Rounding can leave a little less than 0 when gradients hardly vary; its root would be NaN.
      variance = hn::IfThenZeroElse(hn::Lt(variance, hn::Zero(d)), variance);
    }
    const V change = DivideOrZero(d, g, hn::Add(hn::Sqrt(variance), hn::Set(d, p.epsilon)));
    const V lr = hn::Set(d, p.learning_rate);
    if constexpr (kMomentum) {
      V& delta = kCentered ? third : second;
      delta = FlushSubnormal(d, hn::NegMulAdd(lr, change, hn::Mul(hn::Set(d, p.momentum), delta)));
      w = hn::Add(w, delta);
    } else {
      w = hn::NegMulAdd(lr, change, w);
    }
  }
};

// g' of optimizer.h. NaN passes the clamp.
HWY_INLINE V PrepareGradient(D d, const OptimizerProblem& p, GradientScale scale, V g, V w) {
  if (p.clipping == Clipping::value) {
    const V low = hn::Set(d, p.clip_low), high = hn::Set(d, p.clip_high);
    g = hn::IfThenElse(hn::Lt(g, low), low, g);
    g = hn::IfThenElse(hn::Gt(g, high), high, g);
  }
  if (scale.first != 1) g = hn::Mul(g, hn::Set(d, scale.first));
  g = hn::Mul(g, hn::Set(d, scale.second));
  const V lambda = hn::Set(d, p.regularization_scale);
  if (p.regularization == Regularization::l2) return hn::MulAdd(lambda, w, g);
  if (p.regularization == Regularization::l1) {
    const V signed_lambda = hn::IfThenZeroElse(hn::Eq(w, hn::Zero(d)), hn::CopySign(lambda, hn::Mul(lambda, w)));
    return hn::Add(g, signed_lambda);
  }
  return g;
}

template <class Rule>
void RunUpdate(const OptimizerProblem& problem, GradientScale scale, const OptimizerSlice& s) {
  const OptimizerProblem p = problem;  // a copy that no store can change: its fields stay in registers
  const D d;
  const size_t N = hn::Lanes(d);
  const Rule rule{p};
  constexpr size_t kStates = Rule::kStates;
  float* HWY_RESTRICT w = s.w;
  const float* HWY_RESTRICT g = s.g;
  float* HWY_RESTRICT a = s.state[0];
  float* HWY_RESTRICT b = s.state[1];
  float* HWY_RESTRICT c = s.state[2];
  size_t i = 0;
  for (; i + N <= s.n; i += N) {
    V vw = hn::LoadU(d, w + i), va = hn::Zero(d), vb = hn::Zero(d), vc = hn::Zero(d);
    if constexpr (kStates > 0) va = hn::LoadU(d, a + i);
    if constexpr (kStates > 1) vb = hn::LoadU(d, b + i);
    if constexpr (kStates > 2) vc = hn::LoadU(d, c + i);
    rule(d, vw, PrepareGradient(d, p, scale, hn::LoadU(d, g + i), vw), va, vb, vc);
    hn::StoreU(vw, d, w + i);
    if constexpr (kStates > 0) hn::StoreU(va, d, a + i);
    if constexpr (kStates > 1) hn::StoreU(vb, d, b + i);
    if constexpr (kStates > 2) hn::StoreU(vc, d, c + i);
  }
  if (i == s.n) return;
  const size_t left = s.n - i;
  V vw = LoadPartial(d, w + i, left), va = hn::Zero(d), vb = hn::Zero(d), vc = hn::Zero(d);
  if constexpr (kStates > 0) va = LoadPartial(d, a + i, left);
  if constexpr (kStates > 1) vb = LoadPartial(d, b + i, left);
  if constexpr (kStates > 2) vc = LoadPartial(d, c + i, left);
  rule(d, vw, PrepareGradient(d, p, scale, LoadPartial(d, g + i, left), vw), va, vb, vc);
  StorePartial(d, vw, w + i, left);
  if constexpr (kStates > 0) StorePartial(d, va, a + i, left);
  if constexpr (kStates > 1) StorePartial(d, vb, b + i, left);
  if constexpr (kStates > 2) StorePartial(d, vc, c + i, left);
}

}  // namespace

void OptimizerUpdate(const OptimizerProblem& p, GradientScale scale, const OptimizerSlice& s) {
  switch (p.rule) {
    case UpdateRule::sgd:
      return RunUpdate<Sgd>(p, scale, s);
    case UpdateRule::momentum:
      return RunUpdate<Momentum>(p, scale, s);
    case UpdateRule::nesterov_velocity:
      return RunUpdate<NesterovVelocity>(p, scale, s);
    case UpdateRule::nesterov_gradient:
      return RunUpdate<NesterovGradient>(p, scale, s);
    case UpdateRule::adam:
      return RunUpdate<Adam<false>>(p, scale, s);
    case UpdateRule::amsgrad:
      return RunUpdate<Adam<true>>(p, scale, s);
    case UpdateRule::rmsprop:
      return RunUpdate<RmsProp<false, false>>(p, scale, s);
    case UpdateRule::rmsprop_centered:
      return RunUpdate<RmsProp<true, false>>(p, scale, s);
    case UpdateRule::rmsprop_momentum:
      return RunUpdate<RmsProp<false, true>>(p, scale, s);
    case UpdateRule::rmsprop_centered_momentum:
      return RunUpdate<RmsProp<true, true>>(p, scale, s);
  }
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

void optimizer_update(const OptimizerProblem& problem, GradientScale scale, const OptimizerSlice& slice) noexcept {
  BNNS_DISPATCH(OptimizerUpdate)(problem, scale, slice);
}

}  // namespace bnns
#endif
