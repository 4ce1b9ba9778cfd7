// NormalizationFilter: everything that can be wrong with a call is found here, before anything is written.

#include <algorithm>

#include "src/core/error.h"
#include "src/core/log.h"
#include "src/ops/normalization/implementations.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"
#include "src/tensor/overlap.h"

namespace bnns {
namespace {

constexpr const char* kOp = "normalization";

// A batch of no samples: gradients of parameters that are set become 0 (K6).
void clear_unless_accumulated(const Tensor& delta) {
  if (delta.accumulate) return;
  const float zeros[kBlock] = {};
  const Elements to(delta);
  for (size_t first = 0; first < delta.count; first += kBlock) {
    const size_t n = std::min(kBlock, delta.count - first);
    if (to.direct())
      std::fill_n(static_cast<float*>(delta.data) + first, n, 0.0f);
    else
      to.write(delta.data, first, n, zeros);
  }
}

}  // namespace

NormalizationFilter::NormalizationFilter(const Options& options, const NormalizationProblem& problem)
    : Filter(kKind, options), problem_(problem), parameters_(problem, options), scratch_(options), state_(options) {}

const char* NormalizationFilter::implementation(BNNSExtPass pass, size_t batch) const {
  const auto name = pass == BNNSExtPassForward ? normalization_forward_name : normalization_backward_name;
  return batch ? name(problem_, parameters_, batch, options_.n_threads) : filter_kind_name(kKind);
}

void NormalizationFilter::apply(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride,
                                bool training) {
  if (batch == 0) return;
  const NormalizationProblem& p = problem_;
  check_data(in, p.x.type, kOp, "in");
  check_data(out, p.y.type, kOp, "out");
  NormalizationForward call;
  call.batch = batch;
  call.x = in;
  call.x_stride = input_batch_stride(in_stride, batch, p.x, kOp, "in_stride");
  call.y = out;
  call.y_stride = output_batch_stride(out_stride, batch, p.y, kOp, "out_stride");
  check_in_place_or_apart({p.x, in, call.x_stride, "in"}, {p.y, out, call.y_stride, "out"}, batch, kOp);
  if (recording()) count_work(product_of(batch, p.x.span_bytes() + p.y.span_bytes()));
  if (!training) return normalization_forward(p, parameters_, call, scratch_, options_.n_threads);

  const ForkLock lock(mutex_);
  if (!lock.intact()) state_.forget();
  state_.begin(p, batch, out);
  call.state = &state_;
  normalization_forward(p, parameters_, call, scratch_, options_.n_threads);
  state_.complete();
}

void NormalizationFilter::apply_backward(const NormalizationBackwardCall& call) {
  const NormalizationProblem& p = problem_;
  const size_t batch = call.batch;
  Tensor dy, dx, dbeta, dgamma;
  NormalizationBackward wanted;
  wanted.batch = batch;
  if (call.beta_delta) {
    dbeta = resolve_affine_delta(call.beta_delta, p, "beta_delta");
    wanted.dbeta = &dbeta;
  }
  if (call.gamma_delta) {
    dgamma = resolve_affine_delta(call.gamma_delta, p, "gamma_delta");
    wanted.dgamma = &dgamma;
  }
  const Tensor* parameter_deltas[] = {wanted.dbeta, wanted.dgamma};
  const char* delta_names[] = {"beta_delta", "gamma_delta"};
  if (wanted.dbeta && wanted.dgamma) {
    check_disjoint(dbeta.data, dbeta.span_bytes(), "beta_delta", dgamma.data, dgamma.span_bytes(), "gamma_delta", kOp);
  }
  if (batch == 0) {
    for (const Tensor* delta : parameter_deltas) {
      if (delta) clear_unless_accumulated(*delta);
    }
    return;
  }

  const ForkLock lock(mutex_);
  if (!lock.intact()) state_.forget();
  state_.check_ready(batch);
  dy = resolve_delta(call.out_delta, p.y, kOp, "out_delta");
  wanted.dy = &dy;
  wanted.dy_stride = input_batch_stride(call.out_delta_stride, batch, dy, kOp, "out_delta_stride");
  const size_t dy_bytes = batch_bytes(batch, wanted.dy_stride, dy, kOp, "out_delta_stride");
  if (normalization_needs_output(p)) {
    check_data(call.out, p.y.type, kOp, "out");
    wanted.y = call.out;
    wanted.y_stride = input_batch_stride(call.out_stride, batch, p.y, kOp, "out_stride");
  }
  if (call.in_delta) {
    dx = resolve_delta(call.in_delta, p.x, kOp, "in_delta");
    check_distinct(dx, kOp, "in_delta");
    wanted.dx = &dx;
    wanted.dx_stride = output_batch_stride(call.in_delta_stride, batch, dx, kOp, "in_delta_stride");
    check_in_place_or_apart({dy, dy.data, wanted.dy_stride, "out_delta"}, {dx, dx.data, wanted.dx_stride, "in_delta"},
                            batch, kOp);
    check_in_place_or_apart({p.y, wanted.y, wanted.y_stride, "out"}, {dx, dx.data, wanted.dx_stride, "in_delta"}, batch,
                            kOp);
  }
  const size_t dx_bytes = call.in_delta ? batch_bytes(batch, wanted.dx_stride, dx, kOp, "in_delta_stride") : 0;
  const size_t y_bytes = wanted.y ? batch_bytes(batch, wanted.y_stride, p.y, kOp, "out_stride") : 0;
  for (size_t k = 0; k < 2; ++k) {
    const Tensor* delta = parameter_deltas[k];
    if (!delta) continue;
    const auto apart = [&](const void* data, size_t bytes, const char* name) {
      check_disjoint(delta->data, delta->span_bytes(), delta_names[k], data, bytes, name, kOp);
    };
    apart(dy.data, dy_bytes, "out_delta");
    apart(dx.data, dx_bytes, "in_delta");
    apart(wanted.y, y_bytes, "out");
    apart(parameters_.gamma().data, parameters_.gamma().span_bytes(), "gamma_desc.data");
    apart(parameters_.beta().data, parameters_.beta().span_bytes(), "beta_desc.data");
  }
  normalization_backward(p, parameters_, state_, wanted, scratch_, options_.n_threads);
}

}  // namespace bnns
