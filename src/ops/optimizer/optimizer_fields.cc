// The fields of BNNSOptimizerStep: every check that needs no tensor, and the form that kernels use.

#include <cmath>
#include <cstring>

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/optimizer/optimizer.h"

namespace bnns {
namespace {

constexpr const char* kOp = "optimizer";

void check_finite(float value, const char* field) {
  if (!std::isfinite(value)) fail_invalid("%s: %s is %g, expected a finite number", kOp, field, value);
}

void check_unit_interval(float value, const char* field) {
  if (!(value >= 0 && value < 1)) fail_invalid("%s: %s is %g, expected 0 <= %s < 1", kOp, field, value, field);
}

void check_epsilon(float value) {
  if (!(value >= 0 && std::isfinite(value))) {
    fail_invalid("%s: epsilon is %g, expected a finite number that is not negative", kOp, value);
  }
}

void read_clip_range(OptimizerProblem* p, float low, float high) {
  if (!(low <= high)) {
    fail_invalid("%s: clip_gradients_min is %g and clip_gradients_max is %g, expected min <= max", kOp, low, high);
  }
  p->clipping = Clipping::value;
  p->clip_low = low;
  p->clip_high = high;
}

void read_clip_norm(OptimizerProblem* p, Clipping clipping, float max_norm, float use_norm) {
  if (!(max_norm >= 0)) {
    fail_invalid("%s: clip_gradients_max_norm is %g, expected a number that is not negative", kOp, max_norm);
  }
  if (clipping == Clipping::global_norm && !(use_norm >= 0 && std::isfinite(use_norm))) {
    fail_invalid("%s: clip_gradients_use_norm is %g, expected a finite norm, or 0 to compute it", kOp, use_norm);
  }
  p->clipping = clipping;
  p->max_norm = max_norm;
  p->use_norm = clipping == Clipping::global_norm ? use_norm : 0;
}

// What all structures share. decoupled: AdamW, which keeps the penalty out of the gradient.
template <class Fields>
void read_common(OptimizerProblem* p, const Fields& f, bool decoupled) {
  check_finite(f.learning_rate, "learning_rate");
  check_finite(f.gradient_scale, "gradient_scale");
  p->learning_rate = f.learning_rate;
  p->gradient_scale = f.gradient_scale;

  switch (f.regularization_func) {
    case BNNSOptimizerRegularizationNone:
      p->regularization = Regularization::none;
      break;
    case BNNSOptimizerRegularizationL1:
      p->regularization = Regularization::l1;
      break;
    case BNNSOptimizerRegularizationL2:
      p->regularization = Regularization::l2;
      break;
    default:
      fail_invalid("%s: regularization_func is %s", kOp, enum_text(f.regularization_func).text);
  }
  if (decoupled) {
    p->regularization = Regularization::none;
    p->decays = true;
  }
  if (decoupled || p->regularization != Regularization::none) {
    check_finite(f.regularization_scale, "regularization_scale");
    p->regularization_scale = f.regularization_scale;
  }

  if constexpr (requires { f.clipping_func; }) {
    switch (f.clipping_func) {
      case BNNSOptimizerClippingNone:
        break;
      case BNNSOptimizerClippingByValue:
        read_clip_range(p, f.clip_gradients_min, f.clip_gradients_max);
        break;
      case BNNSOptimizerClippingByNorm:
        read_clip_norm(p, Clipping::norm, f.clip_gradients_max_norm, 0);
        break;
      case BNNSOptimizerClippingByGlobalNorm:
        read_clip_norm(p, Clipping::global_norm, f.clip_gradients_max_norm, f.clip_gradients_use_norm);
        break;
      default:
        fail_invalid("%s: clipping_func is %s", kOp, enum_text(f.clipping_func).text);
    }
  } else if (f.clip_gradients) {
    read_clip_range(p, f.clip_gradients_min, f.clip_gradients_max);
  }
}

// Fields of another function than the one named hold any byte here; what is not 0 is true.
void make_valid(bool* value) {
  unsigned char byte;
  std::memcpy(&byte, value, 1);
  *value = byte != 0;
}

template <class Fields>
Fields copy_fields(const void* fields) {
  Fields copy;
  std::memcpy(&copy, fields, sizeof copy);  // the caller's memory need not be aligned
  if constexpr (requires { copy.clip_gradients; }) make_valid(&copy.clip_gradients);
  if constexpr (requires { copy.nesterov; }) make_valid(&copy.nesterov);
  if constexpr (requires { copy.centered; }) make_valid(&copy.centered);
  return copy;
}

template <class Fields>
OptimizerProblem read_sgd(const void* fields) {
  const Fields f = copy_fields<Fields>(fields);
  OptimizerProblem p;
  read_common(&p, f, false);
  check_finite(f.momentum, "momentum");
  const auto variant = f.sgd_momentum_variant;
  if (variant != BNNSSGDMomentumVariant0 && variant != BNNSSGDMomentumVariant1 && variant != BNNSSGDMomentumVariant2) {
    fail_invalid("%s: sgd_momentum_variant is %s", kOp, enum_text(variant).text);
  }
  if (f.momentum == 0) return p;  // the three variants are then the same, without a velocity
  p.states = 1;
  p.momentum = f.momentum;
  const float lr = f.learning_rate;
  if (f.nesterov) {
    p.rule = variant == BNNSSGDMomentumVariant0 ? UpdateRule::nesterov_velocity : UpdateRule::nesterov_gradient;
    p.velocity_gain = variant == BNNSSGDMomentumVariant0 ? -lr : 1;
    return p;
  }
  p.rule = UpdateRule::momentum;
  if (variant == BNNSSGDMomentumVariant0) p.velocity_gain = -lr, p.velocity_step = 1;
  if (variant == BNNSSGDMomentumVariant1) p.velocity_gain = 1, p.velocity_step = -lr;
  if (variant == BNNSSGDMomentumVariant2) p.velocity_gain = lr, p.velocity_step = -1;
  return p;
}

template <class Fields>
OptimizerProblem read_adam(const void* fields, bool decoupled, bool amsgrad) {
  const Fields f = copy_fields<Fields>(fields);
  OptimizerProblem p;
  read_common(&p, f, decoupled);
  check_unit_interval(f.beta1, "beta1");
  check_unit_interval(f.beta2, "beta2");
  check_epsilon(f.epsilon);
  if (!(f.time_step >= 1 && std::isfinite(f.time_step))) {
    fail_invalid("%s: time_step is %g, expected at least 1, the number of the first step", kOp, f.time_step);
  }
  p.rule = amsgrad ? UpdateRule::amsgrad : UpdateRule::adam;
  p.states = amsgrad ? 3 : 2;
  p.epsilon = f.epsilon;
  p.beta1 = f.beta1;
  p.beta2 = f.beta2;
  const double beta1 = f.beta1, beta2 = f.beta2, lr = f.learning_rate, t = f.time_step;
  p.one_minus_beta1 = static_cast<float>(1 - beta1);
  p.one_minus_beta2 = static_cast<float>(1 - beta2);
  p.step = static_cast<float>(lr * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t)));
  if (decoupled) p.decay = static_cast<float>(lr * static_cast<double>(p.regularization_scale));
  return p;
}

template <class Fields>
OptimizerProblem read_rmsprop(const void* fields) {
  const Fields f = copy_fields<Fields>(fields);
  OptimizerProblem p;
  read_common(&p, f, false);
  if (!(f.alpha >= 0 && f.alpha <= 1)) fail_invalid("%s: alpha is %g, expected 0 <= alpha <= 1", kOp, f.alpha);
  check_epsilon(f.epsilon);
  check_finite(f.momentum, "momentum");
  p.beta2 = f.alpha;
  p.one_minus_beta2 = static_cast<float>(1 - static_cast<double>(f.alpha));
  p.epsilon = f.epsilon;
  p.momentum = f.momentum;
  const bool momentum = f.momentum != 0;
  p.states = 1 + (f.centered ? 1 : 0) + (momentum ? 1 : 0);
  p.rule = f.centered ? (momentum ? UpdateRule::rmsprop_centered_momentum : UpdateRule::rmsprop_centered)
                      : (momentum ? UpdateRule::rmsprop_momentum : UpdateRule::rmsprop);
  return p;
}

}  // namespace

OptimizerProblem make_optimizer_problem(BNNSOptimizerFunction function, const void* fields) {
  if (!fields) fail_invalid("%s: OptimizerAlgFields is NULL, expected the fields of the function", kOp);
  using SgdClip = BNNSOptimizerSGDMomentumWithClippingFields;
  using AdamClip = BNNSOptimizerAdamWithClippingFields;
  using Adam = BNNSOptimizerAdamFields;
  switch (function) {
    case BNNSOptimizerFunctionSGDMomentum:
      return read_sgd<BNNSOptimizerSGDMomentumFields>(fields);
    case BNNSOptimizerFunctionSGDMomentumWithClipping:
      return read_sgd<SgdClip>(fields);
    case BNNSOptimizerFunctionAdam:
      return read_adam<Adam>(fields, false, false);
    case BNNSOptimizerFunctionAdamW:
      return read_adam<Adam>(fields, true, false);
    case BNNSOptimizerFunctionAdamAMSGrad:
      return read_adam<Adam>(fields, false, true);
    case BNNSOptimizerFunctionAdamWAMSGrad:
      return read_adam<Adam>(fields, true, true);
    case BNNSOptimizerFunctionAdamWithClipping:
      return read_adam<AdamClip>(fields, false, false);
    case BNNSOptimizerFunctionAdamWWithClipping:
      return read_adam<AdamClip>(fields, true, false);
    case BNNSOptimizerFunctionAdamAMSGradWithClipping:
      return read_adam<AdamClip>(fields, false, true);
    case BNNSOptimizerFunctionAdamWAMSGradWithClipping:
      return read_adam<AdamClip>(fields, true, true);
    case BNNSOptimizerFunctionRMSProp:
      return read_rmsprop<BNNSOptimizerRMSPropFields>(fields);
    case BNNSOptimizerFunctionRMSPropWithClipping:
      return read_rmsprop<BNNSOptimizerRMSPropWithClippingFields>(fields);
  }
  fail_invalid("%s: function is %s", kOp, enum_text(function).text);
}

std::string OptimizerProblem::text() const {
  static constexpr const char* kRules[] = {
      "sgd",          "sgd_momentum", "sgd_nesterov_velocity", "sgd_nesterov_gradient", "adam",
      "adam_amsgrad", "rmsprop",      "rmsprop_centered",      "rmsprop_momentum",      "rmsprop_centered_momentum"};
  static constexpr const char* kClips[] = {"", " clip_value", " clip_norm", " clip_global_norm"};
  static constexpr const char* kPenalties[] = {"", " l1", " l2"};
  std::string result = kRules[static_cast<size_t>(rule)];
  result += " f32";
  if (decays) result += " decoupled_decay";
  result += kPenalties[static_cast<size_t>(regularization)];
  return result + kClips[static_cast<size_t>(clipping)];
}

uint64_t OptimizerProblem::hash(size_t n) const {
  return text_hash(kOp) ^ (uint64_t{n} << 32 | uint64_t{decays} << 24 | static_cast<uint64_t>(clipping) << 16 |
                           static_cast<uint64_t>(regularization) << 8 | static_cast<uint64_t>(rule));
}

}  // namespace bnns
