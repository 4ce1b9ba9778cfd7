// FusedFilter::apply. Convolution hands finished blocks to the normalization pass from its cache; arithmetic goes
// sample by sample; fully connected gives a matrix that fits in cache anyway.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/fused/fused.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr const char* kOp = "fused";

// Parts of the middle tensor for a first stage without blocks of its own.
NormalizationPass::Part default_part(const NormalizationProblem& p) {
  return p.plane() == 1 ? NormalizationPass::Part{64, 1}
                        : NormalizationPass::Part{1, std::min<size_t>(1024, p.plane())};
}

void hand_over(const NormalizationPass& pass, const NormalizationPass::Block& block) {
  pass.immediate() ? pass.normalize(block) : pass.gather(block);
}

// Samples [first, last) of the middle tensor, in parts, on all threads.
void hand_over_samples(const NormalizationPass& pass, const NormalizationProblem& p, size_t part_samples, size_t first,
                       size_t last, const float* middle, size_t stride, size_t n_threads) {
  constexpr size_t kChannels = 16;
  const size_t plane = p.plane(), across = div_up(p.channels, kChannels);
  const size_t tasks = div_up(last - first, part_samples) * across;
  parallel_for(tasks, threads_for(n_threads, tasks, (last - first) * p.count() * sizeof(float)),
               [&](size_t task, size_t) {
                 const size_t n = first + task / across * part_samples, c = task % across * kChannels;
                 hand_over(pass, {{n, std::min(last, n + part_samples)},
                                  {c, std::min(p.channels, c + kChannels)},
                                  {0, plane},
                                  middle + n * stride + c * plane,
                                  stride,
                                  plane});
               });
}

}  // namespace

void FusedFilter::run_first(size_t batch, const void* const* in, const size_t* in_stride, float* middle,
                            size_t middle_stride) {
  const size_t stride = in_stride ? in_stride[0] : 0;
  if (convolution_) return convolution_->forward(batch, in[0], stride, middle, middle_stride);
  fully_connected_->forward(batch, in[0], stride, middle, middle_stride);
}

void FusedFilter::run_first_sample(size_t n, const void* const* in, const size_t* in_stride, float* middle) {
  const ArithmeticProblem& p = *shape_.arithmetic;
  const void* at[kArithmeticInputs];
  const size_t one_sample[kArithmeticInputs] = {};
  for (size_t k = 0; k < p.inputs(); ++k) {
    const size_t stride = in_stride && in_stride[k] ? in_stride[k] : p.in[k].sample_stride();
    at[k] = in[k] && p.is_sample(k) ? element_at(in[k], p.in[k].type, n * stride) : in[k];
  }
  arithmetic_->forward(1, p.inputs(), at, one_sample, middle, 0);
}

void FusedFilter::normalize(size_t batch, const void* const* in, const size_t* in_stride, void* out, size_t out_stride,
                            NormalizationState* state) {
  const NormalizationProblem& p = normalization_->problem;
  NormalizationPass::Call call{batch, out, out_stride, state, default_part(p)};
  const SinkParts parts = convolution_ ? convolution_->sink_parts(batch) : SinkParts{};
  const bool sinks = parts.pixels != 0;
  if (sinks) call.part = {parts.samples, parts.pixels};
  NormalizationPass pass(p, normalization_->parameters, call, scratch_, options_.n_threads);
  // Without a place in the pass the middle tensor needs one of its own, unless a sink takes it.
  const bool own_middle = pass.immediate() && !sinks;
  const size_t own_samples = arithmetic_ ? 1 : batch;
  ScratchShelf::Lease buffer(scratch_, own_middle ? checked_mul(own_samples, p.count(), kOp) * sizeof(float) : 0);
  float* middle = pass.immediate() ? buffer.as<float>() : pass.values(0);
  const size_t stride =
      pass.immediate() || batch == 1 ? p.count() : static_cast<size_t>(pass.values(1) - pass.values(0));

  if (sinks) {
    const BlockSink sink{[](void* context, const FinishedBlock& b) {
                           hand_over(*static_cast<const NormalizationPass*>(context),
                                     {{b.n0, b.n1},
                                      {b.first_channel, b.first_channel + b.channels},
                                      {b.first_pixel, b.first_pixel + b.pixels},
                                      b.values,
                                      b.sample_stride,
                                      b.channel_stride});
                         },
                         &pass, pass.immediate()};
    convolution_->forward(batch, in[0], in_stride ? in_stride[0] : 0, middle, stride, &sink);
  } else if (arithmetic_) {
    for (size_t n = 0; n < batch; ++n) {
      float* sample = pass.immediate() ? middle : pass.values(n);
      run_first_sample(n, in, in_stride, sample);
      // Short planes of a batch share a part; they are handed over when it is complete.
      const size_t part = call.part.samples;
      if (part == 1 || pass.immediate()) {
        hand_over_samples(pass, p, 1, n, n + 1, sample - n * stride, stride, options_.n_threads);
      } else if (n + 1 == batch || (n + 1) % part == 0) {
        hand_over_samples(pass, p, part, n / part * part, n + 1, middle, stride, options_.n_threads);
      }
    }
  } else {
    run_first(batch, in, in_stride, middle, stride);
    hand_over_samples(pass, p, call.part.samples, 0, batch, middle, stride, options_.n_threads);
  }
  pass.finish();
}

// Finished blocks become y at once; a first stage without blocks leaves the middle tensor in scratch.
void FusedFilter::quantize(size_t batch, const void* const* in, const size_t* in_stride, void* out, size_t out_stride) {
  struct Target {
    const Quantization& stage;
    void* out;
    size_t out_stride, plane;
  };
  const Tensor& middle = shape_.out();
  Target target{*quantization_, out, out_stride, shape_.convolution ? middle.size[0] * middle.size[1] : 1};
  check_quantization_call(quantization_->problem, quantization_->parameters, batch, out, out_stride);
  if (convolution_ && convolution_->sink_parts(batch).pixels != 0) {
    const BlockSink sink{[](void* context, const FinishedBlock& b) {
                           const Target& t = *static_cast<const Target*>(context);
                           for (size_t n = b.n0; n < b.n1; ++n) {
                             for (size_t c = 0; c < b.channels; ++c) {
                               quantize_run(t.stage.problem, t.stage.parameters, n,
                                            (b.first_channel + c) * t.plane + b.first_pixel,
                                            b.values + (n - b.n0) * b.sample_stride + c * b.channel_stride, b.pixels,
                                            t.out, t.out_stride);
                             }
                           }
                         },
                         &target, true};
    return convolution_->forward(batch, in[0], in_stride ? in_stride[0] : 0, nullptr, 0, &sink);
  }
  ScratchShelf::Lease buffer(scratch_, checked_mul(batch, middle.count, kOp) * sizeof(float));
  run_first(batch, in, in_stride, buffer.as<float>(), middle.count);
  parallel_for(batch, threads_for(options_.n_threads, batch, batch * middle.count * sizeof(float)),
               [&](size_t n, size_t) {
                 quantize_run(quantization_->problem, quantization_->parameters, n, 0,
                              buffer.as<float>() + n * middle.count, middle.count, out, out_stride);
               });
}

void FusedFilter::apply(size_t batch, size_t inputs, const void* const* in, const size_t* in_stride, void* out,
                        size_t out_stride, bool training) {
  const Tensor& y = this->out();
  if (inputs != shape_.inputs()) {
    fail_invalid("%s: number_of_inputs is %zu, expected %zu", kOp, inputs, shape_.inputs());
  }
  if (!in) fail_invalid("%s: in is NULL, expected the inputs", kOp);
  out_stride = output_batch_stride(out_stride, batch, y, kOp, "out_stride");
  if (training && quantization_) {
    fail_unsupported("%s: training is true, but the second stage is a quantizer; it takes false", kOp);
  }
  if (training && shape_.has_activation()) {
    fail_unsupported("%s: the first stage has an activation; training takes Identity there", kOp);
  }
  if (batch == 0) return;
  check_data(out, y.type, kOp, "out");
  const size_t out_bytes = batch_bytes(batch, out_stride, y, kOp, "out_stride");
  for (size_t k = 0; k < inputs; ++k) {
    const Tensor& x = convolution_       ? shape_.convolution->x
                      : fully_connected_ ? shape_.fully_connected->x
                                         : shape_.arithmetic->in[k];
    const size_t samples = arithmetic_ && !shape_.arithmetic->is_sample(k) ? 1 : batch;
    const size_t stride = input_batch_stride(in_stride ? in_stride[k] : 0, samples, x, kOp, "in_stride");
    check_data(in[k], x.type, kOp, "in");
    check_disjoint(in[k], batch_bytes(samples, stride, x, kOp, "in_stride"), "in", out, out_bytes, "out", kOp);
  }
  if (quantization_) return quantize(batch, in, in_stride, out, out_stride);
  if (!training) return normalize(batch, in, in_stride, out, out_stride, nullptr);
  const ForkLock lock(normalization_->mutex);
  if (!lock.intact()) normalization_->state.forget();
  normalize(batch, in, in_stride, out, out_stride, &normalization_->state);
}

}  // namespace bnns
