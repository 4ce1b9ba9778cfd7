// FusedFilter::apply_backward: the normalization's gradient gives the middle one (f32, a batch of it in scratch), from
// which the first stage makes the rest. The small gradients of beta and gamma wait in scratch until the first stage
// has accepted the call, so a refused call writes nothing.

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/ops/fused/fused.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr const char* kOp = "fused";

BNNSNDArrayDescriptor describe(const Tensor& t, void* data) {
  BNNSNDArrayDescriptor d;
  std::memset(&d, 0, sizeof d);
  d.layout = t.layout;
  for (size_t k = 0; k < t.rank; ++k) d.size[k] = t.size[k];
  d.data = data;
  d.data_type = BNNSDataTypeFloat32;
  return d;
}

void write_delta(const Tensor& delta, const float* values) {
  const Elements to(delta);
  if (delta.accumulate) return to.accumulate(delta.data, 0, delta.count, values);
  if (to.direct()) {
    std::memcpy(delta.data, values, delta.count * sizeof(float));
  } else {
    to.write(delta.data, 0, delta.count, values);
  }
}

}  // namespace

void FusedFilter::first_backward(const FusedBackward& call, const BNNSNDArrayDescriptor& middle) {
  if (arithmetic_) {
    ArithmeticBackward a;
    a.batch = call.batch, a.inputs = call.inputs;
    a.in = call.in, a.in_stride = call.in_stride;
    a.in_delta = call.in_delta, a.in_delta_stride = call.in_delta_stride;
    a.out_delta = &middle;
    a.skip_missing_deltas = true;
    return arithmetic_->backward(a);
  }
  BackwardCall b{};
  b.batch = call.batch;
  b.in = call.in ? call.in[0] : nullptr;
  b.in_stride = call.in_stride ? call.in_stride[0] : 0;
  b.in_delta = call.in_delta ? call.in_delta[0] : nullptr;
  b.in_delta_stride = call.in_delta_stride ? call.in_delta_stride[0] : 0;
  b.out_delta = &middle;
  if (call.parameter_deltas) b.weights_delta = call.parameter_deltas[0], b.bias_delta = call.parameter_deltas[1];
  convolution_ ? convolution_->backward(b) : fully_connected_->backward(b);
}

void FusedFilter::apply_backward(const FusedBackward& call) {
  if (quantization_) fail_unsupported("%s: quantization has no gradient", kOp);
  const NormalizationProblem& p = normalization_->problem;
  NormalizationState& state = normalization_->state;
  const size_t batch = call.batch;
  if (call.inputs != shape_.inputs()) {
    fail_invalid("%s: number_of_inputs is %zu, expected %zu", kOp, call.inputs, shape_.inputs());
  }
  if (shape_.has_activation()) {
    fail_unsupported("%s: the first stage has an activation; training takes Identity there", kOp);
  }
  const auto delta_at = [&](size_t k) -> const BNNSNDArrayDescriptor* {
    return call.parameter_deltas ? call.parameter_deltas[shape_.parameters() + k] : nullptr;
  };
  Tensor dbeta, dgamma;
  if (delta_at(0)) dbeta = resolve_affine_delta(delta_at(0), p, "delta_parameters (beta)");
  if (delta_at(1)) dgamma = resolve_affine_delta(delta_at(1), p, "delta_parameters (gamma)");

  const ForkLock lock(normalization_->mutex);
  if (!lock.intact()) state.forget();
  NormalizationBackward n;
  n.batch = batch;
  Tensor dy;
  size_t dy_bytes = 0;
  if (batch > 0) {
    state.check_ready(batch);
    dy = resolve_delta(call.out_delta, p.y, kOp, "out_delta");
    n.dy = &dy;
    n.dy_stride = input_batch_stride(call.out_delta_stride, batch, dy, kOp, "out_delta_stride");
    dy_bytes = batch_bytes(batch, n.dy_stride, dy, kOp, "out_delta_stride");
    if (normalization_needs_output(p)) {
      check_data(call.out, p.y.type, kOp, "out");
      n.y = call.out;
      n.y_stride = input_batch_stride(call.out_stride, batch, p.y, kOp, "out_stride");
    }
  }
  for (const Tensor* delta : {&dbeta, &dgamma}) {
    if (delta->data) {
      check_disjoint(delta->data, delta->span_bytes(),
                     delta == &dbeta ? "the gradient of beta" : "the gradient of gamma", dy.data, dy_bytes, "out_delta",
                     kOp);
    }
  }

  const size_t affine = round_up(p.affine_count(), 16), middle_floats = checked_mul(batch, p.count(), kOp);
  ScratchShelf::Lease buffer(scratch_, (2 * affine + middle_floats) * sizeof(float));
  float *beta_buffer = buffer.as<float>(), *gamma_buffer = beta_buffer + affine, *middle = gamma_buffer + affine;
  const Tensor dx = [&] {
    Tensor t = shape_.out();
    t.data = middle;
    t.accumulate = false;
    return t;
  }();
  const Tensor beta_sums = vector_tensor(p.affine_count(), beta_buffer);
  const Tensor gamma_sums = vector_tensor(p.affine_count(), gamma_buffer);
  std::fill_n(beta_buffer, 2 * affine, 0.0f);
  if (batch > 0) {
    n.dx = &dx, n.dx_stride = p.count();
    if (dbeta.data) n.dbeta = &beta_sums;
    if (dgamma.data) n.dgamma = &gamma_sums;
    normalization_backward(p, normalization_->parameters, state, n, scratch_, options_.n_threads);
  }
  first_backward(call, describe(shape_.out(), middle));
  if (dbeta.data) write_delta(dbeta, beta_buffer);
  if (dgamma.data) write_delta(dgamma, gamma_buffer);
}

}  // namespace bnns
