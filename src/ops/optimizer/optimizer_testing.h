// What the optimizer's tests share: one description of a call (every function, every option), the caller's memory for
// it, and the same call on the reference.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "src/ops/optimizer/optimizer_ref.h"
#include "tests/support/testing.h"

namespace bnns::testing {

// A function with its fields, kept in the structure that has clipping.
struct OptimizerCase {
  enum class Family { sgd, adam, rmsprop } family = Family::sgd;
  bool with_clipping = false;  // which of the two entry points: the plain one clips by value only
  bool decoupled = false, amsgrad = false;
  BNNSOptimizerSGDMomentumWithClippingFields sgd = {};
  BNNSOptimizerAdamWithClippingFields adam = {};
  BNNSOptimizerRMSPropWithClippingFields rmsprop = {};
  std::string name;

  BNNSOptimizerFunction function() const {
    unsigned value = family == Family::sgd ? 1 : family == Family::rmsprop ? 3 : 2;
    if (family == Family::adam && (decoupled || amsgrad)) value = amsgrad ? (decoupled ? 6 : 5) : 4;
    if (with_clipping) value += 6;
    return BNNSOptimizerFunction(value);
  }
  size_t states() const {
    if (family == Family::sgd) return sgd.momentum != 0;
    if (family == Family::adam) return amsgrad ? 3 : 2;
    return 1 + rmsprop.centered + (rmsprop.momentum != 0);
  }
};

// All functions x what each can be told, with sensible numbers.
inline std::vector<OptimizerCase> optimizer_cases() {
  using Family = OptimizerCase::Family;
  std::vector<OptimizerCase> cases;
  const auto common = [](auto* f, unsigned regularization, unsigned clipping) {
    f->learning_rate = 1e-3f;
    f->gradient_scale = 0.75f;
    f->regularization_scale = 0.02f;
    f->regularization_func = BNNSOptimizerRegularizationFunction(regularization);
    f->clipping_func = BNNSOptimizerClippingFunction(clipping % 4);
    f->clip_gradients_min = -0.9f;
    f->clip_gradients_max = 1.1f;
    f->clip_gradients_max_norm = 3;
    f->clip_gradients_use_norm = clipping == 4 ? 9.0f : 0;  // 4: by global norm, which is given
    if (clipping == 4) f->clipping_func = BNNSOptimizerClippingByGlobalNorm;
  };
  for (unsigned regularization = 0; regularization < 3; ++regularization) {
    for (unsigned clipping = 0; clipping < 6; ++clipping) {  // 5: by value through the plain structure
      OptimizerCase base;
      base.with_clipping = clipping < 5 && (clipping > 0 || regularization == 1);
      const unsigned kind = clipping == 5 ? 1 : clipping;
      common(&base.sgd, regularization, kind);
      common(&base.adam, regularization, kind);
      common(&base.rmsprop, regularization, kind);
      const std::string suffix =
          " regularization " + std::to_string(regularization) + " clipping " + std::to_string(clipping);
      for (unsigned form = 0; form < 7; ++form) {  // without momentum, then three variants with and without Nesterov
        OptimizerCase c = base;
        c.family = Family::sgd;
        c.sgd.momentum = form ? 0.9f : 0;
        c.sgd.sgd_momentum_variant = BNNSOptimizerSGDMomentumVariant(form ? (form - 1) / 2 : 2);
        c.sgd.nesterov = form % 2 == 0;
        c.name = "sgd form " + std::to_string(form) + suffix;
        cases.push_back(c);
      }
      for (unsigned form = 0; form < 4; ++form) {
        OptimizerCase c = base;
        c.family = Family::adam;
        c.decoupled = form & 1;
        c.amsgrad = form & 2;
        c.adam.beta1 = 0.9f;
        c.adam.beta2 = 0.999f;
        c.adam.epsilon = 1e-8f;
        c.name = "adam form " + std::to_string(form) + suffix;
        cases.push_back(c);
        c = base;
        c.family = Family::rmsprop;
        c.rmsprop.alpha = 0.95f;
        c.rmsprop.epsilon = 1e-6f;
        c.rmsprop.centered = form & 1;
        c.rmsprop.momentum = form & 2 ? 0.8f : 0;
        c.name = "rmsprop form " + std::to_string(form) + suffix;
        cases.push_back(c);
      }
    }
  }
  return cases;
}

// Descriptors over memory that the test owns.
struct OptimizerLists {
  std::vector<BNNSNDArrayDescriptor> descriptors;
  std::vector<BNNSNDArrayDescriptor*> parameters, accumulators;
  std::vector<const BNNSNDArrayDescriptor*> gradients;

  // pointers: all parameters, all gradients, then the accumulators by role.
  OptimizerLists(const std::vector<float*>& pointers, const std::vector<size_t>& sizes) {
    const size_t n = sizes.size();
    for (size_t k = 0; k < pointers.size(); ++k) descriptors.push_back(vector_descriptor(sizes[k % n], pointers[k]));
    for (size_t k = 0; k < pointers.size(); ++k) {
      if (k < n)
        parameters.push_back(&descriptors[k]);
      else if (k < 2 * n)
        gradients.push_back(&descriptors[k]);
      else
        accumulators.push_back(&descriptors[k]);
    }
  }
};

template <class To, class From>
To without_clipping(const From& from) {
  To to = {};
  to.learning_rate = from.learning_rate;
  to.gradient_scale = from.gradient_scale;
  to.regularization_scale = from.regularization_scale;
  to.regularization_func = from.regularization_func;
  to.clip_gradients = from.clipping_func == BNNSOptimizerClippingByValue;
  to.clip_gradients_min = from.clip_gradients_min;
  to.clip_gradients_max = from.clip_gradients_max;
  return to;
}

// BNNSOptimizerStep number `time_step` (1 is the first) with the fields of the case.
inline int run_step(const OptimizerCase& c, float time_step, OptimizerLists* lists, size_t threads = 0) {
  const auto step = [&](const void* fields) {
    BNNSFilterParameters options = {};
    options.n_threads = threads;
    return BNNSOptimizerStep(c.function(), fields, lists->parameters.size(), lists->parameters.data(),
                             lists->gradients.data(),
                             lists->accumulators.empty() ? nullptr : lists->accumulators.data(), &options);
  };
  if (c.family == OptimizerCase::Family::sgd) {
    if (c.with_clipping) return step(&c.sgd);
    auto plain = without_clipping<BNNSOptimizerSGDMomentumFields>(c.sgd);
    plain.momentum = c.sgd.momentum;
    plain.nesterov = c.sgd.nesterov;
    plain.sgd_momentum_variant = c.sgd.sgd_momentum_variant;
    return step(&plain);
  }
  if (c.family == OptimizerCase::Family::adam) {
    BNNSOptimizerAdamWithClippingFields f = c.adam;
    f.time_step = time_step;
    if (c.with_clipping) return step(&f);
    auto plain = without_clipping<BNNSOptimizerAdamFields>(f);
    plain.beta1 = f.beta1;
    plain.beta2 = f.beta2;
    plain.time_step = f.time_step;
    plain.epsilon = f.epsilon;
    return step(&plain);
  }
  if (c.with_clipping) return step(&c.rmsprop);
  auto plain = without_clipping<BNNSOptimizerRMSPropFields>(c.rmsprop);
  plain.alpha = c.rmsprop.alpha;
  plain.epsilon = c.rmsprop.epsilon;
  plain.centered = c.rmsprop.centered;
  plain.momentum = c.rmsprop.momentum;
  return step(&plain);
}

inline void reference_step(const OptimizerCase& c, float time_step, ref::Model* model) {
  if (c.family == OptimizerCase::Family::sgd) return ref::sgd(c.sgd, model);
  if (c.family == OptimizerCase::Family::rmsprop) return ref::rmsprop(c.rmsprop, model);
  BNNSOptimizerAdamWithClippingFields f = c.adam;
  f.time_step = time_step;
  ref::adam(f, c.decoupled, c.amsgrad, model);
}

}  // namespace bnns::testing
