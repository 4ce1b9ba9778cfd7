// Every check of the layer's parameters, moving statistics, and what a training pass keeps: see normalization.h.

#include "src/ops/normalization/normalization.h"

#include <algorithm>
#include <cmath>
#include <new>
#include <thread>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/ops/normalization/common/kernels.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr const char* kOp = "normalization";

NormalizationKind read_kind(BNNSFilterType type) {
  switch (type) {
    case BNNSBatchNorm:
      return NormalizationKind::batch;
    case BNNSInstanceNorm:
      return NormalizationKind::instance;
    case BNNSLayerNorm:
      return NormalizationKind::layer;
    case BNNSGroupNorm:
      return NormalizationKind::group;
    default:
      fail_invalid("%s: normType is %s, expected BNNSBatchNorm, BNNSInstanceNorm, BNNSLayerNorm or BNNSGroupNorm", kOp,
                   enum_text(type).text);
  }
}

Tensor read_data(const BNNSNDArrayDescriptor& d, const char* field) {
  const Tensor t = resolve(d, kOp, field);
  if (t.layout != BNNSDataLayoutImageCHW && t.layout != BNNSDataLayoutVector) {
    fail_invalid("%s: %s.layout is %s, expected BNNSDataLayoutImageCHW or BNNSDataLayoutVector", kOp, field,
                 enum_text(t.layout).text);
  }
  if (!is_float(t.type)) {
    fail_unsupported("%s: %s has type %s; data are f32, f16 or bf16", kOp, field, type_name(t.type));
  }
  return t;
}

// The geometry is that of the image where one of the two is a Vector of as many elements.
void read_shape(const BNNSLayerParametersNormalization& layer, NormalizationProblem* p) {
  p->x = read_data(layer.i_desc, "i_desc");
  p->y = read_data(layer.o_desc, "o_desc");
  check_distinct(p->y, kOp, "o_desc");
  if (p->x.count != p->y.count ||
      (p->x.layout == p->y.layout && !std::equal(p->x.size, p->x.size + p->x.rank, p->y.size))) {
    fail_invalid("%s: o_desc is %s, expected the sizes of i_desc, %s", kOp, p->y.text().c_str(), p->x.text().c_str());
  }
  const Tensor& shape = p->x.layout == BNNSDataLayoutImageCHW ? p->x : p->y;
  if (shape.layout == BNNSDataLayoutImageCHW) {
    p->width = shape.size[0];
    p->height = shape.size[1];
    p->channels = shape.size[2];
  } else {
    p->channels = shape.size[0];
  }
}

// gamma or beta of a layer normalization as an ImageCHW repeats along the normalised axes where its extent is 1: there
// its stride becomes 0.
Tensor repeated(Tensor t, const NormalizationProblem& p) {
  const size_t extents[] = {p.width, p.axis <= 1 ? p.height : 1, p.axis == 0 ? p.channels : 1};
  if (p.kind != NormalizationKind::layer || t.layout != BNNSDataLayoutImageCHW || t.count >= p.affine_count()) return t;
  for (size_t k = 0; k < t.rank; ++k) {
    if (t.size[k] != extents[k] && t.size[k] != 1) return t;
  }
  for (size_t k = 0; k < t.rank; ++k) {
    if (t.size[k] == extents[k]) continue;
    t.count *= extents[k];
    t.size[k] = extents[k], t.stride[k] = 0;
  }
  t.dense = false;
  return t;
}

Tensor read_parameter(const BNNSNDArrayDescriptor& d, const NormalizationProblem& p, size_t count, const char* what,
                      const char* field) {
  if (is_absent(d)) return {};
  const Tensor t = repeated(resolve_with_data(d, kOp, field), p);
  if (!is_float(t.type)) {
    fail_unsupported("%s: %s has type %s; it is f32, f16 or bf16", kOp, field, type_name(t.type));
  }
  if (t.count != count) {
    fail_invalid("%s: %s has %zu elements, expected %zu = %s", kOp, field, t.count, count, what);
  }
  return t;
}

Tensor read_moving(const BNNSNDArrayDescriptor& d, const NormalizationProblem& p, const char* field) {
  if (!is_absent(d) && d.data_type != BNNSDataTypeFloat32) {
    fail_unsupported("%s: %s.data_type is %s; moving statistics are BNNSDataTypeFloat32, whatever the data are", kOp,
                     field, enum_text(d.data_type).text);
  }
  return read_parameter(d, p, p.channels, "channels", field);
}

const char* affine_meaning(const NormalizationProblem& p) {
  if (p.kind != NormalizationKind::layer) return "channels";
  return p.axis == 0 ? "width * height * channels" : p.axis == 1 ? "width * height" : "width";
}

}  // namespace

size_t NormalizationProblem::affine_count() const {
  if (kind != NormalizationKind::layer) return channels;
  return axis == 0 ? count() : axis == 1 ? plane() : width;
}

size_t NormalizationProblem::sets(size_t batch) const {
  switch (kind) {
    case NormalizationKind::batch:
      return channels;
    case NormalizationKind::instance:
      return batch * channels;
    case NormalizationKind::group:
      return batch * groups;
    case NormalizationKind::layer:
      return batch * (count() / affine_count());
  }
  return 0;
}

NormalizationProblem make_normalization_problem(BNNSFilterType type, const BNNSLayerParametersNormalization* layer) {
  NormalizationProblem p;
  p.kind = read_kind(type);
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersNormalization", kOp);
  read_shape(*layer, &p);
  if (p.kind == NormalizationKind::group) {
    p.groups = layer->num_groups;
    if (p.groups == 0 || p.channels % p.groups != 0) {
      fail_invalid("%s: num_groups is %zu, expected a divisor of the %zu channels", kOp, p.groups, p.channels);
    }
  }
  if (p.kind == NormalizationKind::layer) {
    p.axis = layer->normalization_axis;
    if (p.axis > 2) {
      fail_invalid("%s: normalization_axis is %zu, expected 0 (C, H, W), 1 (H, W) or 2 (W)", kOp, p.axis);
    }
  }
  const size_t affine = p.affine_count();
  p.beta = read_parameter(layer->beta_desc, p, affine, affine_meaning(p), "beta_desc");
  p.gamma = read_parameter(layer->gamma_desc, p, affine, affine_meaning(p), "gamma_desc");
  if (p.kind == NormalizationKind::batch || p.kind == NormalizationKind::instance) {
    p.moving_mean = read_moving(layer->moving_mean_desc, p, "moving_mean_desc");
    p.moving_variance = read_moving(layer->moving_variance_desc, p, "moving_variance_desc");
    if (!(layer->momentum >= 0 && layer->momentum <= 1)) {
      fail_invalid("%s: momentum is %g, expected 0 to 1", kOp, static_cast<double>(layer->momentum));
    }
    p.momentum = layer->momentum;
  }
  if (!(layer->epsilon >= 0 && std::isfinite(layer->epsilon))) {
    fail_invalid("%s: epsilon is %g, expected a finite number that is not negative", kOp,
                 static_cast<double>(layer->epsilon));
  }
  p.epsilon = layer->epsilon;
  p.activation = make_fused_activation(layer->activation, kOp);
  if (p.activation.is_rowwise()) {
    fail_unsupported("%s: activation is %s; a normalization takes element-wise functions", kOp,
                     activation_name(p.activation.function));
  }
  return p;
}

std::string NormalizationProblem::text() const {
  static constexpr const char* kNames[] = {"batch_norm", "instance_norm", "layer_norm", "group_norm"};
  std::string result = std::string(kNames[static_cast<int>(kind)]) + " " + type_name(x.type);
  if (y.type != x.type) result += std::string(" y:") + type_name(y.type);
  result += " c" + std::to_string(channels) + " h" + std::to_string(height) + " w" + std::to_string(width);
  if (kind == NormalizationKind::group) result += " groups" + std::to_string(groups);
  if (kind == NormalizationKind::layer) result += " axis" + std::to_string(axis);
  return activation.is_identity() ? result : result + " " + activation_name(activation.function);
}

bool normalization_needs_output(const NormalizationProblem& problem) noexcept {
  return !problem.activation.is_identity() && has_derivative_from_output(problem.activation);
}

Tensor resolve_affine_delta(const BNNSNDArrayDescriptor* d, const NormalizationProblem& problem, const char* field) {
  const Tensor given = resolve_with_data(d, kOp, field);
  check_distinct(given, kOp, field);
  if (const Tensor t = repeated(given, problem); t.count != given.count && is_float(t.type)) return t;
  return resolve_delta(d, vector_tensor(problem.affine_count(), nullptr), kOp, field);
}

// ---- moments ----------------------------------------------------------------------------------------------------

double MomentSums::variance() const noexcept {
  const double squared = squares - sum * (sum / count);
  return (squared < 0 ? 0 : squared) / count;  // a NaN stays
}

SetCoefficients make_set_coefficients(double mean, double variance, float epsilon) noexcept {
  const double spread = variance + static_cast<double>(epsilon);
  SetCoefficients set;
  set.mean_high = static_cast<float>(mean);
  set.mean_low = static_cast<float>(mean - static_cast<double>(set.mean_high));
  set.rstd = spread == 0 ? 0 : static_cast<float>(1 / std::sqrt(spread));
  return set;
}

SetCoefficients make_set_coefficients(const MomentSums& sums, float epsilon) noexcept {
  return make_set_coefficients(sums.mean(), sums.variance(), epsilon);
}

// ---- parameters and state ---------------------------------------------------------------------------------------

NormalizationParameters::NormalizationParameters(const NormalizationProblem& problem, const Options& options)
    : beta_(problem.beta, options, "beta"),
      gamma_(problem.gamma, options, "gamma"),
      moving_mean_(problem.moving_mean, options, "the moving mean"),
      moving_variance_(problem.moving_variance, options, "the moving variance") {}

namespace {

// Moving statistics are read while another thread may write them: every access is atomic, and the sequence number tells
// a mixed copy. Acquire loads and release stores order the values against the number; on x86 they are plain moves.
float load(const Tensor& t, const Elements& elements, size_t c) noexcept {
  return std::atomic_ref<float>(static_cast<float*>(t.data)[elements.offset(c)]).load(std::memory_order_acquire);
}
void store(const Tensor& t, const Elements& elements, size_t c, float value) noexcept {
  std::atomic_ref<float>(static_cast<float*>(t.data)[elements.offset(c)]).store(value, std::memory_order_release);
}

}  // namespace

void NormalizationParameters::read_moving(float* mean, float* variance) const noexcept {
  const Tensor& m = moving_mean_.tensor();
  const Tensor& v = moving_variance_.tensor();
  const Elements means(m), variances(v);
  for (;;) {
    const uint32_t before = sequence_.load(std::memory_order_acquire);
    const bool updating = before % 2 != 0;  // a few stores per channel
    if (updating && generation_.load(std::memory_order_relaxed) == fork_generation()) {
      std::this_thread::yield();
      continue;
    }
    if (mean) {
      for (size_t c = 0; c < m.count; ++c) mean[c] = load(m, means, c);
    }
    if (variance) {
      for (size_t c = 0; c < v.count; ++c) variance[c] = load(v, variances, c);
    }
    if (sequence_.load(std::memory_order_relaxed) == before) return;
  }
}

void NormalizationParameters::update_moving(float momentum, const double* mean, const double* variance) noexcept {
  const double keep = static_cast<double>(momentum);
  const auto update = [&](const Tensor& t, const double* current) {
    if (!t.data) return;
    const Elements elements(t);
    for (size_t c = 0; c < t.count; ++c) {
      const double old = static_cast<double>(load(t, elements, c));
      store(t, elements, c, static_cast<float>(keep * old + (1 - keep) * current[c]));
    }
  };
  const uint32_t odd =
      sequence_.load(std::memory_order_relaxed) | 1;  // it is odd already where a fork cut an update off
  generation_.store(fork_generation(), std::memory_order_relaxed);
  sequence_.store(odd, std::memory_order_release);
  update(moving_mean_.tensor(), mean);
  update(moving_variance_.tensor(), variance);
  sequence_.store(odd + 1, std::memory_order_release);
}

void NormalizationState::begin(const NormalizationProblem& problem, size_t batch, const void* y) {
  const size_t values = checked_mul(checked_mul(batch, problem.count(), "normalization: batch_size"), sizeof(float),
                                    "normalization: batch_size");
  const size_t sets = problem.sets(batch) * sizeof(float),
               buffer = checked_add(values, kAlignment, "normalization: batch_size");
  const size_t affine = problem.kind == NormalizationKind::batch ? 2 * problem.channels * sizeof(float) : 0;
  Buffer new_values, new_rstd, new_affine;
  if (values_.bytes() < buffer) new_values = Buffer(options_, buffer, "the training state");
  if (rstd_.bytes() < sets) new_rstd = Buffer(options_, sets, "the training state");
  if (affine_.bytes() < affine) new_affine = Buffer(options_, affine, "the training state");
  if (new_values.data()) values_ = std::move(new_values);
  if (new_rstd.data()) rstd_ = std::move(new_rstd);
  if (new_affine.data()) affine_ = std::move(new_affine);
  batch_ = batch;
  shift_ = reinterpret_cast<uintptr_t>(y) % kAlignment / sizeof(float);
  ready_ = false;
}

void NormalizationState::forget() noexcept {
  new (&values_) Buffer;
  new (&rstd_) Buffer;
  new (&affine_) Buffer;
  batch_ = shift_ = 0;
  ready_ = false;
}

void NormalizationState::check_ready(size_t batch) const {
  if (!ready_) {
    fail_invalid("%s: no forward pass with training = true precedes this gradient: it keeps what the gradient needs",
                 kOp);
  }
  if (batch != batch_) {
    fail_invalid("%s: batch_size is %zu, expected %zu as in the last forward pass with training = true", kOp, batch,
                 batch_);
  }
}

}  // namespace bnns
