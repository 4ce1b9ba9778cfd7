// Checks of BNNSOptimizerStep, norms of the gradients, and the split of the work over threads.

#include "src/ops/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/inline_buffer.h"
#include "src/core/overlap.h"
#include "src/core/parallel.h"
#include "src/core/tensor.h"
#include "src/ops/norm/norm.h"

namespace bnns {
namespace {

constexpr const char* kOp = "optimizer";

// ---- fields -----------------------------------------------------------------------------------------------------

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
      fail_invalid("%s: regularization_func is %u, which is no BNNSOptimizerRegularizationFunction", kOp,
                   static_cast<unsigned>(f.regularization_func));
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
        fail_invalid("%s: clipping_func is %u, which is no BNNSOptimizerClippingFunction", kOp,
                     static_cast<unsigned>(f.clipping_func));
    }
  } else if (f.clip_gradients) {
    read_clip_range(p, f.clip_gradients_min, f.clip_gradients_max);
  }
}

template <class Fields>
Fields copy_fields(const void* fields) {
  Fields copy;
  std::memcpy(&copy, fields, sizeof copy);  // the caller's memory need not be aligned
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
    fail_invalid("%s: sgd_momentum_variant is %u, which is no BNNSOptimizerSGDMomentumVariant", kOp,
                 static_cast<unsigned>(variant));
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

// ---- tensors ----------------------------------------------------------------------------------------------------

// "parameters[12]", without printf: a step of a small network is a few microseconds and has a dozen tensors.
struct ListName {
  char text[48];
  ListName(const char* list, size_t index) {
    char digits[24];
    size_t count = 0, at = 0;
    do digits[count++] = static_cast<char>('0' + index % 10);
    while (index /= 10);
    while (*list) text[at++] = *list++;
    text[at++] = '[';
    while (count) text[at++] = digits[--count];
    text[at++] = ']';
    text[at] = 0;
  }
};

// A dense f32 tensor; returns its number of elements.
size_t check_tensor(const BNNSNDArrayDescriptor* d, const char* list, size_t index) {
  const ListName name(list, index);
  if (!d) fail_invalid("%s: %s is NULL, expected a descriptor", kOp, name.text);
  const Tensor t = resolve(*d, kOp, name.text);
  if (!t.is(BNNSDataTypeFloat32)) {
    fail_unsupported("%s: %s has type %s; optimizers work on f32", kOp, name.text, type_name(t.type));
  }
  check_data(t.data, t.type, kOp, name.text);
  if (!t.dense) fail_invalid("%s: %s has gaps between its elements, expected a contiguous tensor", kOp, name.text);
  return t.count;
}

void check_count(size_t count, size_t expected, const char* list, size_t index, size_t parameter) {
  if (count == expected) return;
  fail_invalid("%s: %s has %zu elements, expected %zu as in parameters[%zu]", kOp, ListName(list, index).text, count,
               expected, parameter);
}

// One tensor of the call: where it is and which of the call's elements it holds.
struct Entry {
  OptimizerSlice slice;  // the whole tensor
  size_t first;          // elements of the tensors before it
  GradientScale scale;
};

constexpr size_t kInlineTensors = 24;  // lists up to here need no allocation
constexpr size_t kChunk = 16 * 1024;   // elements of one task: 64 KiB per stream

void check_tensors(const OptimizerProblem& problem, size_t n, BNNSNDArrayDescriptor* const* parameters,
                   const BNNSNDArrayDescriptor* const* gradients, BNNSNDArrayDescriptor* const* accumulators,
                   Entry* entries, Extent* extents) {
  if (!parameters) fail_invalid("%s: parameters is NULL, expected %zu descriptors", kOp, n);
  if (!gradients) fail_invalid("%s: gradients is NULL, expected %zu descriptors", kOp, n);
  if (!accumulators && problem.states) {
    fail_invalid("%s: accumulators is NULL, expected %zu = %zu x %zu descriptors for %s", kOp, problem.states * n,
                 problem.states, n, problem.text().c_str());
  }
  size_t total = 0, extent = 0;
  for (size_t i = 0; i < n; ++i) {
    Entry& e = entries[i];
    const size_t count = check_tensor(parameters[i], "parameters", i), bytes = count * sizeof(float);
    check_count(check_tensor(gradients[i], "gradients", i), count, "gradients", i, i);
    e.slice = {static_cast<float*>(parameters[i]->data), static_cast<const float*>(gradients[i]->data), {}, count};
    extents[extent++] = Extent(e.slice.w, bytes, "parameters", i, true);
    extents[extent++] = Extent(e.slice.g, bytes, "gradients", i, false);
    for (size_t s = 0; s < problem.states; ++s) {
      const size_t k = s * n + i;  // grouped by role
      check_count(check_tensor(accumulators[k], "accumulators", k), count, "accumulators", k, i);
      e.slice.state[s] = static_cast<float*>(accumulators[k]->data);
      extents[extent++] = Extent(e.slice.state[s], bytes, "accumulators", k, true);
    }
    e.first = total;
    total = checked_add(total, count, kOp);
  }
  check_extents(extents, extent, kOp);
}

// ---- clipping by norm -------------------------------------------------------------------------------------------

[[noreturn]] void fail_norm(const char* what) {
  fail_invalid("%s: the norm of %s is not finite, so it cannot be clipped; nothing was updated", kOp, what);
}

// Sets the factor of every tensor. Norms are those of the gradients as given, before gradient_scale.
void set_scales(const OptimizerProblem& problem, size_t n, size_t n_threads, Entry* entries) {
  const double gradient_scale = problem.gradient_scale;
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    double factor = 1;
    const bool needs_norm =
        problem.clipping == Clipping::norm || (problem.clipping == Clipping::global_norm && problem.use_norm == 0);
    if (needs_norm) {
      const double squares = sum_of_squares(entries[i].slice.g, entries[i].slice.n, n_threads);
      if (!std::isfinite(squares)) fail_norm(ListName("gradients", i).text);
      if (problem.clipping == Clipping::norm) factor = clip_factor(std::sqrt(squares), problem.max_norm);
      sum += squares;
    }
    entries[i].scale = split_scale(factor * gradient_scale);
  }
  if (problem.clipping != Clipping::global_norm) return;
  const double norm = problem.use_norm != 0 ? problem.use_norm : std::sqrt(sum);
  const GradientScale scale = split_scale(clip_factor(norm, problem.max_norm) * gradient_scale);
  for (size_t i = 0; i < n; ++i) entries[i].scale = scale;
}

// ---- the update -------------------------------------------------------------------------------------------------

OptimizerSlice part(const OptimizerSlice& s, size_t begin, size_t end) {
  OptimizerSlice p{s.w + begin, s.g + begin, {}, end - begin};
  for (size_t k = 0; k < 3; ++k) p.state[k] = s.state[k] ? s.state[k] + begin : nullptr;
  return p;
}

// The tensors lie end to end in one row of elements, and a task is kChunk of them: many small tensors share a task,
// a large one is spread over many.
void update_chunk(const OptimizerProblem& problem, const Entry* entries, size_t n, size_t begin, size_t end) noexcept {
  const Entry* e =
      std::upper_bound(entries, entries + n, begin, [](size_t at, const Entry& entry) { return at < entry.first; }) - 1;
  for (; begin < end; ++e) {
    const size_t stop = std::min(end, e->first + e->slice.n);
    optimizer_update(problem, e->scale, part(e->slice, begin - e->first, stop - e->first));
    begin = stop;
  }
}

// What threads_for counts. A network of 100 K parameters sits in one core's L2, where a second thread costs more in
// waking and in moving cache lines than it saves (adam 33 us on one thread, 62 us on two on a busy machine); rules
// without a root and a quotient are limited by L2 even longer.
size_t thread_work(UpdateRule rule, size_t elements) {
  return rule >= UpdateRule::adam ? elements : elements / 2;
}

}  // namespace

OptimizerProblem make_optimizer_problem(BNNSOptimizerFunction function, const void* fields) {
  if (!fields) fail_invalid("%s: OptimizerAlgFields is NULL", kOp);
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
  fail_invalid("%s: function is %u, which is no BNNSOptimizerFunction", kOp, static_cast<unsigned>(function));
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

GradientScale split_scale(double factor) {
  // Below 2^-64 part of the factor goes ahead as a power of two, so that neither half is subnormal.
  if (std::fabs(factor) >= 0x1p-64 || factor == 0) return {1, static_cast<float>(factor)};
  return {0x1p-64f, static_cast<float>(factor * 0x1p64)};
}

void optimizer_step(const OptimizerProblem& problem, size_t n, BNNSNDArrayDescriptor* const* parameters,
                    const BNNSNDArrayDescriptor* const* gradients, BNNSNDArrayDescriptor* const* accumulators,
                    const Options& options) {
  if (n == 0) return;
  InlineBuffer<Entry, kInlineTensors> entries(options, n, "the list of parameters");
  {
    const size_t tensors = 2 + problem.states;
    InlineBuffer<Extent, kInlineTensors * 4> extents(options, checked_mul(n, tensors, kOp), "the list of tensors");
    check_tensors(problem, n, parameters, gradients, accumulators, entries.data(), extents.data());
  }
  set_scales(problem, n, options.n_threads, entries.data());

  const size_t total = entries[n - 1].first + entries[n - 1].slice.n, tasks = div_up(total, kChunk);
  const size_t threads = threads_for(options.n_threads, tasks, thread_work(problem.rule, total));
  parallel_for(tasks, threads, [&](size_t task, size_t) {
    const size_t begin = task * kChunk, end = std::min(total, begin + kChunk);
    update_chunk(problem, entries.data(), n, begin, end);
  });
}

}  // namespace bnns
