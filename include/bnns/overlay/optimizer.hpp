// OpenBNNS C++ overlay: optimizers, as plain structures whose members are Swift's properties.
//
// Lists are written {w, b}, or are arrays or vectors of NDArray, of pointers to NDArray, or of descriptors.
// Accumulators: all first ones in the order of the parameters, then all second ones, and so on; zeros before the first
// step. step() leaves timeStep alone: add 1 after each. A layer sees the steps only if it was made with
// useClientPointer.
#pragma once

#include <vector>

#include "checks.hpp"

namespace bnns {

/// Swift's BNNS.GradientClipping.
class GradientClipping {
 public:
  /// None.
  GradientClipping() = default;
  static GradientClipping none() { return {}; }
  static GradientClipping byValue(Bounds bounds) {
    return {BNNSOptimizerClippingByValue, bounds.lower, bounds.upper, 0, 0};
  }
  static GradientClipping byNorm(float threshold) { return {BNNSOptimizerClippingByNorm, 0, 0, threshold, 0}; }
  /// globalNorm 0: compute it.
  static GradientClipping byGlobalNorm(float threshold, float globalNorm = 0) {
    return {BNNSOptimizerClippingByGlobalNorm, 0, 0, threshold, globalNorm};
  }
  BNNSOptimizerClippingFunction bnnsClippingFunction() const noexcept { return function_; }
  /// Swift's gradientBounds: the bounds of byValue.
  std::optional<Bounds> bounds() const noexcept {
    if (function_ != BNNSOptimizerClippingByValue) return {};
    return Bounds{lower_, upper_};
  }
  /// Writes the choice into the fields of an optimizer.
  void set(auto& fields) const noexcept {
    fields.clipping_func = function_, fields.clip_gradients_min = lower_, fields.clip_gradients_max = upper_;
    fields.clip_gradients_max_norm = norm_, fields.clip_gradients_use_norm = globalNorm_;
  }

 private:
  GradientClipping(BNNSOptimizerClippingFunction function, float lower, float upper, float norm, float globalNorm)
      : function_(function), lower_(lower), upper_(upper), norm_(norm), globalNorm_(globalNorm) {}
  BNNSOptimizerClippingFunction function_ = BNNSOptimizerClippingNone;
  float lower_ = 0, upper_ = 0, norm_ = 0, globalNorm_ = 0;
};

namespace detail {

// Pointers to the descriptors of a list: on the stack up to 64, so that a step of a small network allocates nothing.
class Pointers {
 public:
  template <class A>
  Pointers(const Where& where, const char* label, const List<A>& list) {
    if (list.size() > few_.size()) {
      many_.resize(list.size());
      first_ = many_.data();
    }
    // The C calls take pointers to mutable descriptors but write through their data only.
    for (std::size_t i = 0; i < list.size(); ++i) {
      const ListItem item = list[i];
      if (item.batchSize != 1) {
        requireOneSample(where, (std::string(label) + "[" + std::to_string(i) + "]").c_str(), item.batchSize);
      }
      first_[i] = const_cast<Desc*>(item.descriptor);
    }
  }
  Pointers(const Pointers&) = delete;
  Desc** mutables() noexcept { return first_; }
  const Desc** constants() noexcept { return const_cast<const Desc**>(first_); }

 private:
  std::array<Desc*, 64> few_;
  std::vector<Desc*> many_;
  Desc** first_ = few_.data();
};

inline void optimizerStep(const char* optimizer, BNNSOptimizerFunction function, const void* fields,
                          std::size_t multiplier, const Outputs& parameters, const Inputs& gradients,
                          const Outputs& accumulators, const OptFilterParams& options) {
  const Where where(optimizer, "step");
  constexpr auto code = Error::Code::optimizerStepFail;
  if (gradients.size() != parameters.size()) {
    mistake(code, where,
            std::to_string(parameters.size()) + " parameters, but " + std::to_string(gradients.size()) + " gradients");
  }
  if (accumulators.size() != multiplier * parameters.size()) {
    mistake(code, where,
            "expected " + std::to_string(multiplier * parameters.size()) + " accumulators, got " +
                std::to_string(accumulators.size()));
  }
  Pointers w(where, "parameters", parameters), dw(where, "gradients", gradients),
      state(where, "accumulators", accumulators);
  check(::BNNSOptimizerStep(function, fields, parameters.size(), w.mutables(), dw.constants(),
                            accumulators.empty() ? nullptr : state.mutables(), pointer(options)),
        where, "BNNSOptimizerStep", code);
}

}  // namespace detail

/// Swift's protocol BNNSOptimizer.
template <class O>
concept Optimizer = requires(const O& o, std::span<const Desc> list) {
  { o.bnnsOptimizerFunction() } -> std::same_as<BNNSOptimizerFunction>;
  { o.accumulatorCountMultiplier() } -> std::same_as<std::size_t>;
  o.step(list, list, list);
};

struct AdamOptimizer {
  float learningRate = 0.001f, beta1 = 0.9f, beta2 = 0.999f, timeStep = 1, epsilon = 1e-8f;
  float gradientScale = 1, regularizationScale = 0;
  GradientClipping gradientClipping{};
  BNNSOptimizerRegularizationFunction regularizationFunction = BNNSOptimizerRegularizationNone;
  bool usesAMSGrad = false;

  BNNSOptimizerFunction bnnsOptimizerFunction() const noexcept {
    return usesAMSGrad ? BNNSOptimizerFunctionAdamAMSGradWithClipping : BNNSOptimizerFunctionAdamWithClipping;
  }
  std::size_t accumulatorCountMultiplier() const noexcept { return usesAMSGrad ? 3 : 2; }
  void step(const Outputs& parameters, const Inputs& gradients, const Outputs& accumulators,
            const OptFilterParams& filterParameters = {}) const {
    BNNSOptimizerAdamWithClippingFields f{};
    f.learning_rate = learningRate, f.beta1 = beta1, f.beta2 = beta2, f.time_step = timeStep, f.epsilon = epsilon;
    f.gradient_scale = gradientScale, f.regularization_scale = regularizationScale;
    f.regularization_func = regularizationFunction;
    gradientClipping.set(f);
    detail::optimizerStep("AdamOptimizer", bnnsOptimizerFunction(), &f, accumulatorCountMultiplier(), parameters,
                          gradients, accumulators, filterParameters);
  }
};

struct AdamWOptimizer {
  float learningRate = 0.001f, beta1 = 0.9f, beta2 = 0.999f, timeStep = 1, epsilon = 1e-8f;
  float gradientScale = 1, weightDecay = 1e-2f;
  GradientClipping gradientClipping{};
  bool usesAMSGrad = false;

  BNNSOptimizerFunction bnnsOptimizerFunction() const noexcept {
    return usesAMSGrad ? BNNSOptimizerFunctionAdamWAMSGradWithClipping : BNNSOptimizerFunctionAdamWWithClipping;
  }
  std::size_t accumulatorCountMultiplier() const noexcept { return usesAMSGrad ? 3 : 2; }
  void step(const Outputs& parameters, const Inputs& gradients, const Outputs& accumulators,
            const OptFilterParams& filterParameters = {}) const {
    BNNSOptimizerAdamWithClippingFields f{};
    f.learning_rate = learningRate, f.beta1 = beta1, f.beta2 = beta2, f.time_step = timeStep, f.epsilon = epsilon;
    f.gradient_scale = gradientScale, f.regularization_scale = weightDecay;
    gradientClipping.set(f);
    detail::optimizerStep("AdamWOptimizer", bnnsOptimizerFunction(), &f, accumulatorCountMultiplier(), parameters,
                          gradients, accumulators, filterParameters);
  }
};

struct RMSPropOptimizer {
  float learningRate = 1e-2f, alpha = 0.99f, epsilon = 1e-8f;
  bool centered = false;
  float momentum = 0, gradientScale = 1, regularizationScale = 0;
  GradientClipping gradientClipping{};
  BNNSOptimizerRegularizationFunction regularizationFunction = BNNSOptimizerRegularizationNone;

  BNNSOptimizerFunction bnnsOptimizerFunction() const noexcept { return BNNSOptimizerFunctionRMSPropWithClipping; }
  std::size_t accumulatorCountMultiplier() const noexcept {
    return 1 + std::size_t{centered} + std::size_t{momentum != 0};
  }
  void step(const Outputs& parameters, const Inputs& gradients, const Outputs& accumulators,
            const OptFilterParams& filterParameters = {}) const {
    BNNSOptimizerRMSPropWithClippingFields f{};
    f.learning_rate = learningRate, f.alpha = alpha, f.epsilon = epsilon, f.centered = centered;
    f.momentum = momentum, f.gradient_scale = gradientScale, f.regularization_scale = regularizationScale;
    f.regularization_func = regularizationFunction;
    gradientClipping.set(f);
    detail::optimizerStep("RMSPropOptimizer", bnnsOptimizerFunction(), &f, accumulatorCountMultiplier(), parameters,
                          gradients, accumulators, filterParameters);
  }
};

struct SGDMomentumOptimizer {
  float learningRate, momentum = 0, gradientScale = 1, regularizationScale = 0;
  GradientClipping gradientClipping{};
  bool usesNesterovMomentum = false;
  BNNSOptimizerRegularizationFunction regularizationFunction = BNNSOptimizerRegularizationNone;
  BNNSOptimizerSGDMomentumVariant sgdMomentumVariant = BNNSSGDMomentumVariant0;

  BNNSOptimizerFunction bnnsOptimizerFunction() const noexcept { return BNNSOptimizerFunctionSGDMomentumWithClipping; }
  std::size_t accumulatorCountMultiplier() const noexcept { return momentum != 0 ? 1 : 0; }
  void step(const Outputs& parameters, const Inputs& gradients, const Outputs& accumulators,
            const OptFilterParams& filterParameters = {}) const {
    BNNSOptimizerSGDMomentumWithClippingFields f{};
    f.learning_rate = learningRate, f.momentum = momentum, f.gradient_scale = gradientScale;
    f.regularization_scale = regularizationScale, f.nesterov = usesNesterovMomentum;
    f.regularization_func = regularizationFunction, f.sgd_momentum_variant = sgdMomentumVariant;
    gradientClipping.set(f);
    detail::optimizerStep("SGDMomentumOptimizer", bnnsOptimizerFunction(), &f, accumulatorCountMultiplier(), parameters,
                          gradients, accumulators, filterParameters);
  }
};

static_assert(Optimizer<AdamOptimizer> && Optimizer<AdamWOptimizer> && Optimizer<RMSPropOptimizer> &&
              Optimizer<SGDMomentumOptimizer>);

}  // namespace bnns
