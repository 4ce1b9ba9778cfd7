// The layer's state, and its forward pass.

#include "src/ops/activation/activation_filter.h"

#include <algorithm>
#include <cstring>

#include "src/core/enum_name.h"
#include "src/core/log.h"
#include "src/ops/activation/activation_tasks.h"
#include "src/ops/activation/gumbel_noise.h"

namespace bnns {

ActivationFilter::ActivationFilter(const Options& options, const ActivationProblem& problem)
    : Filter(FilterKind::activation, options),
      problem_(problem),
      alpha_(problem.activation.alpha),
      beta_(problem.activation.beta),
      shelf_(options) {
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
    case BNNSPointerSpecifierBeta:
      d.data = &beta_;
      return d;
  }
  fail_invalid("%s: target is %s, expected BNNSPointerSpecifierAlpha or BNNSPointerSpecifierBeta", kActivation,
               enum_text(target).text);
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

void ActivationFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) {
  if (batch == 0) return;
  const BatchOperand y = output_operand(problem_.o, batch, out, out_stride, "out", "out_stride");
  if (problem_.activation.function == BNNSActivationFunctionGumbel) return forward_gumbel(batch, y);
  const BatchOperand x = input_operand(problem_.i, batch, in, in_stride, "in", "in_stride");
  check_in_place(x, y, batch, kActivation);
  if (recording()) count_work(product_of(batch, problem_.i.span_bytes() + problem_.o.span_bytes()));
  if (problem_.activation.function == BNNSActivationFunctionGumbelMax) return forward_gumbel_max(batch, x, y);
  if (problem_.activation.is_rowwise()) return forward_rows(batch, x, y);
  if (problem_.integer) return forward_integer(batch, x, y);
  forward_elements(batch, x, y);
}

void ActivationFilter::forward_elements(size_t batch, const BatchOperand& x, const BatchOperand& y) const {
  const Activation activation = current();
  const BatchElements from = x.elements(batch), to = y.elements(batch);
  const size_t total = batch * problem_.i.count;
  const size_t threads =
      threads_of(options_.n_threads, div_up(total, kActivationTask), bytes_of(x, total) + bytes_of(y, total), y);
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
  if (from.direct() && to.direct() && !is_prelu()) {
    const float* xs = static_cast<const float*>(from.base());
    float* ys = static_cast<float*>(to.base());
    return for_each_task(total, threads, [&](size_t first, size_t end) {
      activation_forward(activation, xs + first, ys + first, end - first);
    });
  }
  for_each_task(total, threads, [&](size_t first, size_t end) {
    float buffer[kBlock], alphas[kBlock];
    while (first < end) {
      const size_t n = to.run(first, from.run(first, std::min(end - first, kBlock)));
      float* ys = to.target(first, buffer);
      const float* xs = from.read(first, n, ys);  // what is not read in place is gathered where the result goes
      if (is_prelu()) {
        spread_alphas(first, n, alphas);
        prelu_forward(xs, alphas, ys, n);
      } else {
        activation_forward(activation, xs, ys, n);
      }
      to.write(first, n, ys);
      first += n;
    }
  });
}

void ActivationFilter::forward_gumbel(size_t batch, const BatchOperand& y) const {
  const Activation activation = current();
  const BatchElements to = y.elements(batch);
  const size_t total = batch * problem_.o.count;
  const NoiseStretch noise = reserve_noise(total);
  const size_t threads = threads_of(options_.n_threads, div_up(total, kActivationTask), bytes_of(y, total), y);
  for_each_task(total, threads, [&](size_t first, size_t end) {
    float buffer[kBlock];
    while (first < end) {
      const size_t n = to.run(first, std::min(end - first, kBlock));
      float* ys = to.target(first, buffer);
      fill_uniform(noise, first, ys, n);
      gumbel_forward(activation, ys, ys, n);
      to.write(first, n, ys);
      first += n;
    }
  });
}

}  // namespace bnns
