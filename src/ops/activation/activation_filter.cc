#include "src/ops/activation/activation_filter.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/activation/gumbel_noise.h"

namespace bnns {
namespace {

constexpr const char* kOp = "activation";

// Types narrower than a byte share bytes between tasks: such outputs are written by one thread.
size_t threads_of(size_t n_threads, size_t tasks, size_t bytes, const Operand& written) {
  return type_bytes(written.sample.type) ? threads_for(n_threads, tasks, bytes) : 1;
}

size_t bytes_of(const Operand& operand, size_t elements) {
  return elements * type_bits(operand.sample.type) / 8;
}

// Runs body(first, end) over [0, total) in tasks of kTaskElements.
template <class Body>
void for_each_task(size_t total, size_t threads, Body&& body) {
  parallel_for(div_up(total, kTaskElements), threads, [&](size_t task, size_t) {
    body(task * kTaskElements, std::min(total, (task + 1) * kTaskElements));
  });
}

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

Operand input_operand(const Tensor& t, size_t batch, const void* data, size_t stride, const char* name,
                      const char* stride_name) {
  check_data(data, t.type, kOp, name);
  return {t, data, input_batch_stride(stride, batch, t, kOp, stride_name), name};
}

Operand output_operand(const Tensor& t, size_t batch, const void* data, size_t stride, const char* name,
                       const char* stride_name) {
  check_data(data, t.type, kOp, name);
  return {t, data, output_batch_stride(stride, batch, t, kOp, stride_name), name};
}

// Sets or adds value(c) to element c of a gradient, as its flag says.
template <class Value>
void write_delta(const Tensor& delta, Value&& value) {
  const Elements to(delta);
  for (size_t c = 0; c < delta.count; ++c) {
    const float v = static_cast<float>(value(c));
    if (delta.accumulate) to.accumulate(delta.data, c, 1, &v);
    else if (to.direct()) static_cast<float*>(delta.data)[c] = v;
    else to.write(delta.data, c, 1, &v);
  }
}

}  // namespace

ActivationFilter::ActivationFilter(const Options& options, const ActivationProblem& problem)
    : Filter(FilterKind::activation, options), problem_(problem), alpha_(problem.activation.alpha),
      beta_(problem.activation.beta), shelf_(options) {
  const size_t channels = problem.channels;
  if (problem.activation.function == BNNSActivationFunctionPReLUPerChannel) {
    alphas_ = Buffer(options, checked_mul(channels, sizeof(float), "alphas"), "the alphas of prelu_per_channel");
    std::fill_n(alphas_.as<float>(), channels, alpha_);
  }
  if (problem.iscale_per_channel) {
    channel_numbers_ = Buffer(options, checked_mul(3 * channels, sizeof(int32_t), "per-channel numbers"),
                              "the numbers of integer_linear_saturate_per_channel");
    int32_t* to = channel_numbers_.as<int32_t>();
    std::copy_n(problem.iscale_per_channel, channels, to);
    std::copy_n(problem.ioffset_per_channel, channels, to + channels);
    std::copy_n(problem.ishift_per_channel, channels, to + 2 * channels);
    problem_.iscale_per_channel = to;
    problem_.ioffset_per_channel = to + channels;
    problem_.ishift_per_channel = to + 2 * channels;
  }
}

BNNSNDArrayDescriptor ActivationFilter::pointer(BNNSPointerSpecifier target) {
  BNNSNDArrayDescriptor d = {};
  d.layout = BNNSDataLayoutVector;
  d.data_type = BNNSDataTypeFloat32;
  d.size[0] = d.stride[0] = 1;
  d.data_scale = 1;
  switch (target) {
    case BNNSPointerSpecifierAlpha:
      d.data = is_prelu() ? alphas_.data() : &alpha_;
      if (is_prelu()) d.size[0] = problem_.channels;
      return d;
    case BNNSPointerSpecifierBeta: d.data = &beta_; return d;
  }
  fail_invalid("%s: target is %u, expected BNNSPointerSpecifierAlpha or BNNSPointerSpecifierBeta", kOp,
               static_cast<unsigned>(target));
}

void ActivationFilter::spread_alphas(size_t first, size_t n, float* a) const {
  const size_t count = problem_.i.count, plane = count / problem_.channels;
  const float* alphas = alphas_.as<float>();
  for (size_t done = 0; done < n;) {
    const size_t index = (first + done) % count, channel = index / plane;
    const size_t m = std::min(n - done, (channel + 1) * plane - index);
    std::fill_n(a + done, m, alphas[channel]);
    done += m;
  }
}

// ---- forward ----------------------------------------------------------------------------------------------------

void ActivationFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) {
  if (batch == 0) return;
  const Operand y = output_operand(problem_.o, batch, out, out_stride, "out", "out_stride");
  if (problem_.activation.function == BNNSActivationFunctionGumbel) return forward_gumbel(batch, y);
  const Operand x = input_operand(problem_.i, batch, in, in_stride, "in", "in_stride");
  check_in_place(x, y, batch, kOp);
  if (problem_.activation.function == BNNSActivationFunctionGumbelMax) return forward_gumbel_max(batch, x, y);
  if (problem_.activation.is_rowwise()) return forward_rows(batch, x, y);
  if (problem_.integer) return forward_integer(batch, x, y);
  forward_elements(batch, x, y);
}

void ActivationFilter::forward_elements(size_t batch, const Operand& x, const Operand& y) const {
  const Activation activation = current();
  const BatchElements from = x.elements(batch), to = y.elements(batch);
  const size_t total = batch * problem_.i.count;
  const size_t threads =
      threads_of(options_.n_threads, div_up(total, kTaskElements), bytes_of(x, total) + bytes_of(y, total), y);
  // Identity between equal types is a copy of bytes; integers come here only where a scale or bias changes them.
  const size_t bytes = type_bytes(from.type());
  if (activation.is_identity() && from.type() == to.type() && !is_integer(to.type()) && from.contiguous() &&
      to.contiguous()) {
    if (from.base() == to.base()) return;
    return for_each_task(total, threads, [&](size_t first, size_t end) {
      std::memcpy(static_cast<char*>(to.base()) + first * bytes, static_cast<const char*>(from.base()) + first * bytes,
                  (end - first) * bytes);
    });
  }
  const bool whole = from.direct() && to.direct() && !is_prelu();
  for_each_task(total, threads, [&](size_t first, size_t end) {
    float room[kBlock], alphas[kBlock];
    while (first < end) {
      size_t n = whole ? end - first : std::min(end - first, kBlock);
      n = to.run(first, from.run(first, n));
      float* ys = to.target(first, room);
      const float* xs = from.read(first, n, ys);   // what is not read in place is gathered where the result goes
      if (is_prelu()) {
        spread_alphas(first, n, alphas);
        prelu_forward(xs, alphas, ys, n);
      } else if (!activation.is_identity()) {
        activation_forward(activation, xs, ys, n);
      } else if (to.direct() && xs != ys) {
        std::memcpy(ys, xs, n * sizeof(float));
      } else {
        to.write(first, n, xs);
        first += n;
        continue;
      }
      to.write(first, n, ys);
      first += n;
    }
  });
}

void ActivationFilter::forward_gumbel(size_t batch, const Operand& y) const {
  const Activation activation = current();
  const BatchElements to = y.elements(batch);
  const size_t total = batch * problem_.o.count;
  const NoiseStretch noise = reserve_noise(total);
  const size_t threads = threads_of(options_.n_threads, div_up(total, kTaskElements), bytes_of(y, total), y);
  for_each_task(total, threads, [&](size_t first, size_t end) {
    float room[kBlock];
    while (first < end) {
      const size_t n = to.run(first, std::min(end - first, kBlock));
      float* ys = to.target(first, room);
      fill_uniform(noise, first, ys, n);
      gumbel_forward(activation, ys, ys, n);
      to.write(first, n, ys);
      first += n;
    }
  });
}

// ---- backward ---------------------------------------------------------------------------------------------------

// From y where it is given and tells the branch, else from x, else a refusal (K8). The gradient of alpha needs x.
ActivationFilter::Source ActivationFilter::choose_source(const BackwardCall& call) const {
  const BNNSActivationFunction function = problem_.activation.function;
  if (call.weights_delta) {
    if (!call.in) fail_invalid("%s: in is NULL, expected x: weights_delta is the sum of dy x", kOp);
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
  if (!call.out) fail_invalid("%s: in and out are NULL, expected one of them for %s", kOp, activation_name(function));
  fail_invalid("%s: in is NULL, expected x: the derivative of %s (alpha %g) does not follow from out", kOp,
               activation_name(function), static_cast<double>(alpha_));
}

void ActivationFilter::backward(const BackwardCall& call) {
  const BNNSActivationFunction function = problem_.activation.function;
  const size_t batch = call.batch;
  if (!has_derivative(function)) fail_unsupported("%s: %s has no gradient", kOp, activation_name(function));
  if (call.bias_delta) fail_invalid("%s: bias_delta is given, expected NULL: an activation has no bias", kOp);
  Tensor dalpha;
  if (call.weights_delta) {
    if (function != BNNSActivationFunctionLeakyRectifiedLinear && !is_prelu()) {
      fail_invalid("%s: weights_delta is given, expected NULL: %s has no trained alpha", kOp,
                   activation_name(function));
    }
    const Tensor like = vector_tensor(is_prelu() ? problem_.channels : 1, nullptr);
    dalpha = resolve_delta(call.weights_delta, like, kOp, "weights_delta");
  }
  if (batch == 0) {
    if (call.weights_delta) write_delta(dalpha, [](size_t) { return 0.0; });
    return;
  }
  const Tensor out_delta = resolve_delta(call.out_delta, problem_.o, kOp, "out_delta");
  const Operand dy = input_operand(out_delta, batch, out_delta.data, call.out_delta_stride, "out_delta",
                                   "out_delta_stride");
  const Source source = choose_source(call);
  const Operand s = source == Source::input
                        ? input_operand(problem_.i, batch, call.in, call.in_stride, "in", "in_stride")
                    : source == Source::output
                        ? input_operand(problem_.o, batch, call.out, call.out_stride, "out", "out_stride")
                        : dy;
  Operand dx = dy;
  if (call.in_delta) {
    const Tensor in_delta = resolve_delta(call.in_delta, problem_.i, kOp, "in_delta");
    dx = output_operand(in_delta, batch, in_delta.data, call.in_delta_stride, "in_delta", "in_delta_stride");
    check_in_place(dy, dx, batch, kOp);
    check_in_place(s, dx, batch, kOp);
  }
  if (call.weights_delta) backward_alpha(batch, s, dy, dalpha);   // first: in_delta may overwrite its operands
  if (!call.in_delta) return;
  if (problem_.activation.is_rowwise()) return backward_rows(batch, source, s, dy, dx);
  backward_elements(batch, source, s, dy, dx);
}

void ActivationFilter::backward_elements(size_t batch, Source source, const Operand& s, const Operand& dy,
                                         const Operand& dx) const {
  const Activation activation = current();
  const BatchElements point = s.elements(batch), upstream = dy.elements(batch), to = dx.elements(batch);
  const bool add = dx.sample.accumulate;
  const size_t total = batch * problem_.i.count;
  const size_t bytes = bytes_of(s, total) + bytes_of(dy, total) + bytes_of(dx, total);
  const size_t threads = threads_of(options_.n_threads, div_up(total, kTaskElements), bytes, dx);
  const bool whole = point.direct() && upstream.direct() && to.direct() && !add && !is_prelu();
  for_each_task(total, threads, [&](size_t first, size_t end) {
    float s_room[kBlock], dy_room[kBlock], g_room[kBlock], alphas[kBlock];
    while (first < end) {
      size_t n = whole ? end - first : std::min(end - first, kBlock);
      n = to.run(first, upstream.run(first, point.run(first, n)));
      float* g = add ? g_room : to.target(first, g_room);
      const float* dys = upstream.read(first, n, dy_room);   // not into g: in_delta may be the memory of s
      const float* points = source == Source::none ? dys : point.read(first, n, s_room);
      if (is_prelu()) {
        spread_alphas(first, n, alphas);
        prelu_backward(points, alphas, dys, g, n);
      } else if (source == Source::input) {
        activation_backward_from_input(activation, points, dys, g, n);
      } else {
        activation_backward_from_output(activation, points, dys, g, n);
      }
      add ? to.accumulate(first, n, g) : to.write(first, n, g);
      first += n;
    }
  });
}

// dalpha = sum of dy x over x < 0, per channel (LeakyRectifiedLinear: one channel). A channel's elements, over the
// whole batch, are cut into at most 64 stretches by their number alone; each is summed in f32 blocks added up in double,
// and the stretches are added in order.
void ActivationFilter::backward_alpha(size_t batch, const Operand& x, const Operand& dy, const Tensor& dalpha) {
  const size_t channels = is_prelu() ? problem_.channels : 1, count = problem_.i.count, plane = count / channels;
  const size_t per_channel = batch * plane;
  const size_t stretch = std::max<size_t>(4 * kTaskElements, div_up(per_channel, 64));
  const size_t stretches = div_up(per_channel, stretch);
  const BatchElements points = x.elements(batch), upstream = dy.elements(batch);
  ScratchShelf::Lease lease(shelf_, checked_mul(channels * stretches, sizeof(double), "partial sums"));
  double* sums = lease.as<double>();
  const size_t bytes = bytes_of(x, batch * count) + bytes_of(dy, batch * count);
  const size_t tasks = channels * stretches;
  parallel_for(tasks, threads_for(options_.n_threads, tasks, bytes), [&](size_t task, size_t) {
    float x_room[kBlock], dy_room[kBlock];
    const size_t channel = task / stretches, begin = task % stretches * stretch;
    double sum = 0;
    for (size_t e = begin; e < std::min(per_channel, begin + stretch);) {
      const size_t first = e / plane * count + channel * plane + e % plane;
      size_t n = std::min({plane - e % plane, begin + stretch - e, kBlock});
      n = points.run(first, upstream.run(first, n));
      sum += leaky_alpha_gradient(points.read(first, n, x_room), upstream.read(first, n, dy_room), n);
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
