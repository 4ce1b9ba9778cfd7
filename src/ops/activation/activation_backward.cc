// The layer's backward pass, and the gradient of alpha.

#include <algorithm>

#include "src/core/log.h"
#include "src/ops/activation/activation_filter.h"
#include "src/ops/activation/activation_tasks.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

// f' does not depend on the point: neither x nor y is needed.
bool has_constant_derivative(BNNSActivationFunction function) {
  return function == BNNSActivationFunctionIdentity || function == BNNSActivationFunctionLinear ||
         function == BNNSActivationFunctionLinearWithBias || function == BNNSActivationFunctionGumbel;
}

bool has_derivative(BNNSActivationFunction function) {
  return function != BNNSActivationFunctionIntegerLinearSaturate &&
         function != BNNSActivationFunctionIntegerLinearSaturatePerChannel &&
         function != BNNSActivationFunctionGumbelMax;
}

// Sets or adds value(c) to element c of a gradient, as its flag says.
template <class Value>
void write_delta(const Tensor& delta, Value&& value) {
  const Elements to(delta);
  for (size_t c = 0; c < delta.count; ++c) {
    const float v = static_cast<float>(value(c));
    if (delta.accumulate)
      to.accumulate(delta.data, c, 1, &v);
    else if (to.direct())
      static_cast<float*>(delta.data)[c] = v;
    else
      to.write(delta.data, c, 1, &v);
  }
}

}  // namespace

// From y where it is given and tells the branch, else from x, else a refusal (K8). The gradient of alpha needs x.
ActivationFilter::Source ActivationFilter::choose_source(const BackwardCall& call) const {
  const BNNSActivationFunction function = problem_.activation.function;
  if (call.weights_delta) {
    if (!call.in) fail_invalid("%s: in is NULL, expected x: weights_delta is the sum of dy x", kActivation);
    return Source::input;
  }
  if (has_constant_derivative(function) || !call.in_delta) return Source::none;
  bool from_output = has_derivative_from_output(current());
  if (is_prelu()) {
    const float* alphas = alphas_.as<float>();
    from_output = std::all_of(alphas, alphas + problem_.channels, [](float alpha) { return alpha > 0; });
  }
  if (call.out && from_output) return Source::output;
  if (call.in) return Source::input;
  if (!call.out)
    fail_invalid("%s: in and out are NULL, expected one of them for %s", kActivation, activation_name(function));
  fail_invalid("%s: in is NULL, expected x: the derivative of %s (alpha %g) does not follow from out", kActivation,
               activation_name(function), static_cast<double>(alpha_));
}

void ActivationFilter::backward(const BackwardCall& call) {
  const BNNSActivationFunction function = problem_.activation.function;
  const size_t batch = call.batch;
  if (!has_derivative(function)) fail_unsupported("%s: %s has no gradient", kActivation, activation_name(function));
  if (call.bias_delta) fail_invalid("%s: bias_delta is given, expected NULL: an activation has no bias", kActivation);
  Tensor dalpha;
  if (call.weights_delta) {
    if (function != BNNSActivationFunctionLeakyRectifiedLinear && !is_prelu()) {
      fail_invalid("%s: weights_delta is given, expected NULL: %s has no trained alpha", kActivation,
                   activation_name(function));
    }
    const Tensor like = vector_tensor(is_prelu() ? problem_.channels : 1, nullptr);
    dalpha = resolve_delta(call.weights_delta, like, kActivation, "weights_delta");
  }
  if (batch == 0) {
    if (call.weights_delta) write_delta(dalpha, [](size_t) { return 0.0; });
    return;
  }
  const Tensor out_delta = resolve_delta(call.out_delta, problem_.o, kActivation, "out_delta");
  const BatchOperand dy =
      input_operand(out_delta, batch, out_delta.data, call.out_delta_stride, "out_delta", "out_delta_stride");
  const Source source = choose_source(call);
  const BatchOperand s =
      source == Source::input    ? input_operand(problem_.i, batch, call.in, call.in_stride, "in", "in_stride")
      : source == Source::output ? input_operand(problem_.o, batch, call.out, call.out_stride, "out", "out_stride")
                                 : dy;
  BatchOperand dx = dy;
  if (call.in_delta) {
    const Tensor in_delta = resolve_delta(call.in_delta, problem_.i, kActivation, "in_delta");
    check_distinct(in_delta, kActivation, "in_delta");
    dx = output_operand(in_delta, batch, in_delta.data, call.in_delta_stride, "in_delta", "in_delta_stride");
    check_in_place(dy, dx, batch, kActivation);
    check_in_place(s, dx, batch, kActivation);
  }
  if (recording()) count_work(product_of(batch, problem_.i.span_bytes() + 2 * problem_.o.span_bytes()));
  if (call.weights_delta) backward_alpha(batch, s, dy, dalpha);  // first: in_delta may overwrite its operands
  if (!call.in_delta) return;
  if (problem_.activation.is_rowwise()) return backward_rows(batch, source, s, dy, dx);
  backward_elements(batch, source, s, dy, dx);
}

void ActivationFilter::backward_elements(size_t batch, Source source, const BatchOperand& s, const BatchOperand& dy,
                                         const BatchOperand& dx) const {
  const Activation activation = source == Source::output ? as_stored(current(), problem_.o.type) : current();
  const BatchElements point = s.elements(batch), upstream = dy.elements(batch), to = dx.elements(batch);
  const bool add = dx.sample.accumulate;
  const size_t total = batch * problem_.i.count;
  const size_t bytes = bytes_of(s, total) + bytes_of(dy, total) + bytes_of(dx, total);
  const size_t threads = threads_of(options_.n_threads, div_up(total, kActivationTask), bytes, dx);
  const auto kernel = [&](const float* points, const float* dys, float* g, size_t n) {
    source == Source::input ? activation_backward_from_input(activation, points, dys, g, n)
                            : activation_backward_from_output(activation, points, dys, g, n);
  };
  if (point.direct() && upstream.direct() && to.direct() && !add && !is_prelu()) {
    const float* points = static_cast<const float*>(point.base());
    const float* dys = static_cast<const float*>(upstream.base());
    float* g = static_cast<float*>(to.base());
    return for_each_task(
        total, threads, [&](size_t first, size_t end) { kernel(points + first, dys + first, g + first, end - first); });
  }
  for_each_task(total, threads, [&](size_t first, size_t end) {
    float s_buffer[kBlock], dy_buffer[kBlock], g_buffer[kBlock], alphas[kBlock];
    while (first < end) {
      const size_t n = to.run(first, upstream.run(first, point.run(first, std::min(end - first, kBlock))));
      float* g = add ? g_buffer : to.target(first, g_buffer);
      const float* dys = upstream.read(first, n, dy_buffer);  // not into g: in_delta may be the memory of s
      const float* points = source == Source::none ? dys : point.read(first, n, s_buffer);
      if (is_prelu()) {
        spread_alphas(first, n, alphas);
        prelu_backward(points, alphas, dys, g, n);
      } else {
        kernel(points, dys, g, n);
      }
      add ? to.accumulate(first, n, g) : to.write(first, n, g);
      first += n;
    }
  });
}

// dalpha = sum of dy x over x < 0, per channel (LeakyRectifiedLinear: one channel). A channel's elements, over the
// whole batch, are cut into at most 64 stretches by their number alone; each is summed in f32 blocks added up in
// double, and the stretches are added in order.
void ActivationFilter::backward_alpha(size_t batch, const BatchOperand& x, const BatchOperand& dy,
                                      const Tensor& dalpha) {
  const size_t channels = is_prelu() ? problem_.channels : 1, count = problem_.i.count, plane = count / channels;
  const size_t per_channel = batch * plane;
  const size_t stretch = std::max<size_t>(4 * kActivationTask, div_up(per_channel, 64));
  const size_t stretches = div_up(per_channel, stretch);
  const BatchElements points = x.elements(batch), upstream = dy.elements(batch);
  ScratchShelf::Lease lease(shelf_, checked_mul(channels * stretches, sizeof(double), "partial sums"));
  double* sums = lease.as<double>();
  const size_t bytes = bytes_of(x, batch * count) + bytes_of(dy, batch * count);
  const size_t tasks = channels * stretches;
  parallel_for(tasks, threads_for(options_.n_threads, tasks, bytes), [&](size_t task, size_t) {
    float x_buffer[kBlock], dy_buffer[kBlock];
    const size_t channel = task / stretches, begin = task % stretches * stretch;
    double sum = 0;
    for (size_t e = begin; e < std::min(per_channel, begin + stretch);) {
      const size_t first = e / plane * count + channel * plane + e % plane;
      size_t n = std::min({plane - e % plane, begin + stretch - e, kBlock});
      n = points.run(first, upstream.run(first, n));
      sum += leaky_alpha_gradient(points.read(first, n, x_buffer), upstream.read(first, n, dy_buffer), n);
      e += n;
    }
    sums[task] = sum;
  });
  write_delta(dalpha, [&](size_t channel) {
    double sum = 0;
    for (size_t k = 0; k < stretches; ++k) sum += sums[channel * stretches + k];
    return sum;
  });
}

}  // namespace bnns
