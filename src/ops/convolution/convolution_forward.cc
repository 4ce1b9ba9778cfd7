// ConvolutionFilter::forward: the map from X to Y (src/ops/convolution/implementations.h), and what backward shares
// with it.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/log.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/bf16/bf16.h"
#include "src/ops/convolution/convolution.h"
#include "src/ops/convolution/implementations.h"
#include "src/ops/convolution/integer.h"
#include "src/tensor/elements.h"

namespace bnns {

size_t ConvolutionFilter::weight_floats() const {
  return MapWeights::f32_floats(problem_.w) + bias_floats();
}

size_t ConvolutionFilter::bias_floats() const {
  return problem_.has_bias() && !Elements(problem_.b).direct() ? round_up(problem_.outputs, 16) : 0;
}

MapWeights ConvolutionFilter::weights(float* buffer) const {
  return {problem_, weights_.tensor(), buffer + bias_floats(), options_.n_threads};
}

const float* ConvolutionFilter::bias(float* buffer) const {
  if (!problem_.has_bias()) return nullptr;
  return Elements(problem_.b).read(bias_.tensor().data, 0, problem_.outputs, buffer);
}

PatchMap ConvolutionFilter::map(bool up, size_t batch, const ImageSource& source, const ImageTarget& target) const {
  PatchMap p = make_patch_map(laid_flat(problem_.map), up, batch);
  p.source = source, p.target = target, p.threads = options_.n_threads;
  return p;
}

bool ConvolutionFilter::multiplies_bf16(const ImageSource& source) const {
  return has_pair_kernels(isa()) && is_bf16_image(source) && MapWeights::is_strided_bf16(problem_.w);
}

// Blocks are runs of pixels unless the map is one of several phases.
SinkParts ConvolutionFilter::sink_parts(size_t batch) const {
  if (problem_.integer || problem_.activation.is_rowwise()) return {};
  const BlockSink some;
  ImageTarget y{&y_};
  y.sink = &some;
  const PatchMap p = map(problem_.transposed, batch, {&x_}, y);
  const MapImplementation& entry = find_map(p);
  SinkParts parts = entry.sink_parts ? entry.sink_parts(p) : SinkParts{};
  parts.implementation = entry.name;
  return parts;
}

void ConvolutionFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride,
                                const BlockSink* sink) {
  const ConvolutionProblem& p = problem_;
  in_stride = input_batch_stride(in_stride, batch, p.x, p.op(), "in_stride");
  out_stride = output_batch_stride(out_stride, batch, p.y, p.op(), "out_stride");
  if (batch == 0) return;
  check_data(in, p.x.type, p.op(), "in");
  if (!sink || !sink->instead_of_target) {
    check_data(out, p.y.type, p.op(), "out");
    check_disjoint(in, batch_bytes(batch, in_stride, p.x, p.op(), "in_stride"), "in", out,
                   batch_bytes(batch, out_stride, p.y, p.op(), "out_stride"), "out", p.op());
  }
  if (recording())
    count_work(product_of(batch, p.x.span_bytes() + p.y.span_bytes()) + product_of(p.w.span_bytes()),
               p.operations(batch));
  const ImageSource x{&x_, in, in_stride};
  ImageTarget y{&y_, out, out_stride};
  if (p.integer) {
    const IntegerLayer layer{&p, &weights_.tensor(), &bias_.tensor()};
    PatchMap forward = map(false, batch, x, y);
    forward.integer = &layer;
    CallScratch none(scratch_);
    return run_map(forward, none);
  }
  ScratchShelf::Lease buffer(scratch_, weight_floats() * sizeof(float));
  const MapWeights w = weights(buffer.as<float>());
  y.bias = bias(buffer.as<float>());
  y.sink = sink;
  if (!p.activation.is_rowwise()) {
    y.activation = p.activation;
    PatchMap forward = map(p.transposed, batch, x, y);
    forward.weights = &w, forward.bf16 = multiplies_bf16(x);
    // Up leases scratch phase by phase, so it is measured first; down has it all before it writes.
    if (p.transposed) {
      return CallScratch::run(scratch_, forward_memo_, forward_key(batch, sink),
                              [&](CallScratch& scratch) { run_map(forward, scratch); });
    }
    CallScratch scratch(scratch_);
    return run_map(forward, scratch);
  }
  // Row-wise: y first takes the linear values; a type that would round them leaves that to scratch.
  const bool rounds = p.y.type != BNNSDataTypeFloat32;
  const Tensor dense = dense_image(p.y), flat = laid_flat(p.map, dense);
  CallScratch::run(scratch_, forward_memo_, forward_key(batch, sink), [&](CallScratch& scratch) {
    CallScratch::Lease values(scratch, rounds ? batch_bytes(batch, dense.count, dense, p.op(), "out_stride") : 0);
    const ImageTarget linear = rounds ? ImageTarget{&flat, values.data(), dense.count, false, y.bias}
                                      : ImageTarget{&y_, out, out_stride, false, y.bias};
    PatchMap forward = map(p.transposed, batch, x, linear);
    forward.weights = &w;
    run_map(forward, scratch);
    softmax_rows(batch, {rounds ? &dense : &p.y, linear.data, linear.batch_stride}, {&p.y, out, out_stride}, scratch);
  });
}

uint32_t ConvolutionFilter::forward_key(size_t batch, const BlockSink* sink) const {
  const size_t to = !sink ? 0 : sink->instead_of_target ? 1 : 2;
  return ScratchMemo::key({batch, static_cast<size_t>(isa()), default_threads(), to});
}

// A fused softmax runs along o_desc.size[0], the rows of the image (K10).
void ConvolutionFilter::softmax_rows(size_t batch, const ImageSource& linear, const ImageTarget& y,
                                     CallScratch& scratch) {
  const ConvolutionProblem& p = problem_;
  const size_t width = p.y.size[0], height = p.y.size[1], tasks = batch * p.outputs;
  const size_t threads = threads_for(options_.n_threads, tasks, tasks * width * height * sizeof(float));
  CallScratch::Lease buffer(scratch, threads * 2 * width * sizeof(float));
  if (scratch.measuring()) return;
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    float* own = buffer.as<float>() + worker * 2 * width;
    for (size_t row = 0; row < height; ++row) {
      const float* from = linear.row(task / p.outputs, task % p.outputs, row, 0, width, own);
      activation_forward(p.activation, from, own + width, width);
      store_run(y, task / p.outputs, task % p.outputs, row, 0, 1, own + width, width);
    }
  });
}

}  // namespace bnns
