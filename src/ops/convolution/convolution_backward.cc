// ConvolutionFilter::backward. With g = dY * act':
//   dX by the map against the forward one, dW by the weight map (both: src/ops/convolution/implementations.h),
//   db = sums of g.
// g is never stored where its derivative follows from Y: the slabs compute it as they read dY. Row-wise activations and
// those that need the pre-activation (K8) get g in scratch.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/log.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/bf16/bf16.h"
#include "src/ops/convolution/convolution.h"
#include "src/ops/convolution/gemm/dw.h"
#include "src/ops/convolution/implementations.h"
#include "src/ops/convolution/integer.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

// A gradient with the shape of `like`. One that came as a vector, or in another layout with as many elements, is the
// same memory, dense.
Tensor resolve_image_delta(const BNNSNDArrayDescriptor* d, const Tensor& like, const char* op, const char* field) {
  Tensor t = resolve_delta(d, like, op, field);
  if (t.layout == like.layout) return t;
  if (!t.dense) fail_invalid("%s: %s has another layout than the layer's tensor; expected it dense then", op, field);
  Tensor result = like;
  result.type = t.type, result.accumulate = t.accumulate, result.data = t.data;
  result.scale = t.scale, result.bias = t.bias;
  if (like.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    if (like.dense) return result;
    fail_invalid("%s: %s has %zu elements, expected OIHW_Pack32 with room for %zu", op, field, t.count, like.span);
  }
  size_t stride = 1;
  for (size_t j = 0; j < like.rank; ++j) {
    result.stride[like.axis[j]] = stride;
    stride *= like.size[like.axis[j]];
  }
  result.span = result.count, result.dense = true;
  return result;
}

// What of a gradient decides about scratch.
size_t delta_key(const BNNSNDArrayDescriptor* d, const Tensor& t) {
  return d ? static_cast<size_t>(t.type) << 8 | size_t{t.accumulate} << 2 | size_t{t.dense} << 1 | 1 : 0;
}

}  // namespace

struct ConvolutionFilter::Gradients {
  Tensor dy, dx, dw, db;
  size_t in_stride = 0, out_stride = 0, dy_stride = 0, dx_stride = 0;
  bool recompute = false;  // act' needs the pre-activation, which needs X and W
};

// Everything that can be wrong is found here, before anything is written.
ConvolutionFilter::Gradients ConvolutionFilter::check_backward(const BackwardCall& call) const {
  const ConvolutionProblem& p = problem_;
  const char* op = p.op();
  if (p.integer) fail_unsupported("%s: integer layers have no gradient", op);
  Gradients wanted;
  const size_t batch = call.batch;
  const bool from_output = !p.activation.is_identity() && has_derivative_from_output(p.activation);
  wanted.recompute = !p.activation.is_identity() && !from_output;

  wanted.dy = resolve_image_delta(call.out_delta, p.y, op, "out_delta");
  wanted.dy_stride = input_batch_stride(call.out_delta_stride, batch, wanted.dy, op, "out_delta_stride");
  const size_t dy_bytes = batch_bytes(batch, wanted.dy_stride, wanted.dy, op, "out_delta_stride");
  wanted.out_stride = input_batch_stride(call.out_stride, batch, p.y, op, "out_stride");
  wanted.in_stride = input_batch_stride(call.in_stride, batch, p.x, op, "in_stride");
  const size_t in_bytes = call.in ? batch_bytes(batch, wanted.in_stride, p.x, op, "in_stride") : 0;
  const size_t out_bytes = call.out ? batch_bytes(batch, wanted.out_stride, p.y, op, "out_stride") : 0;
  if (batch && from_output) check_data(call.out, p.y.type, op, "out");
  if (batch && wanted.recompute && !call.in) {
    fail_invalid("%s: in is NULL, but the derivative of %s needs the layer's input", op,
                 activation_name(p.activation.function));
  }
  if (batch && (wanted.recompute || call.weights_delta)) check_data(call.in, p.x.type, op, "in");

  // A result shares no memory with anything that is read while it is written or later; dX, the last, may replace X.
  const auto check_result = [&](const void* data, size_t bytes, const char* name) {
    check_disjoint(data, bytes, name, wanted.dy.data, dy_bytes, "out_delta", op);
    check_disjoint(data, bytes, name, weights_.tensor().data, p.w.span_bytes(), "w_desc.data", op);
    if (from_output) check_disjoint(data, bytes, name, call.out, out_bytes, "out", op);
  };
  size_t dx_bytes = 0;
  if (call.in_delta) {
    wanted.dx = resolve_image_delta(call.in_delta, p.x, op, "in_delta");
    check_distinct(wanted.dx, op, "in_delta");
    wanted.dx_stride = output_batch_stride(call.in_delta_stride, batch, wanted.dx, op, "in_delta_stride");
    dx_bytes = batch_bytes(batch, wanted.dx_stride, wanted.dx, op, "in_delta_stride");
    check_result(wanted.dx.data, dx_bytes, "in_delta");
  }
  if (call.weights_delta) {
    wanted.dw = resolve_image_delta(call.weights_delta, p.w, op, "weights_delta");
    check_distinct(wanted.dw, op, "weights_delta");
    check_result(wanted.dw.data, wanted.dw.span_bytes(), "weights_delta");
    check_disjoint(wanted.dw.data, wanted.dw.span_bytes(), "weights_delta", call.in, in_bytes, "in", op);
    check_disjoint(wanted.dw.data, wanted.dw.span_bytes(), "weights_delta", wanted.dx.data, dx_bytes, "in_delta", op);
  }
  if (call.bias_delta) {
    wanted.db =
        resolve_delta(call.bias_delta, p.has_bias() ? p.b : vector_tensor(p.outputs, nullptr), op, "bias_delta");
    const size_t db_bytes = wanted.db.span_bytes();
    check_result(wanted.db.data, db_bytes, "bias_delta");
    check_disjoint(wanted.db.data, db_bytes, "bias_delta", wanted.dx.data, dx_bytes, "in_delta", op);
    check_disjoint(wanted.db.data, db_bytes, "bias_delta", wanted.dw.data, wanted.dw.span_bytes(), "weights_delta", op);
  }
  return wanted;
}

bool ConvolutionFilter::multiplies_bf16(const ImageSource& g, const ImageSource& x, const Tensor& dw) {
  return has_pair_kernels(isa()) && is_bf16_image(g) && is_bf16_image(x) && is_strided(dw) &&
         (dw.type == BNNSDataTypeBFloat16 || dw.type == BNNSDataTypeFloat32);
}

void ConvolutionFilter::weight_gradient(size_t batch, const ImageSource& g, const ImageSource& x, const Tensor& dw,
                                        CallScratch& scratch) {
  const ConvolutionProblem& p = problem_;
  WeightMap map = make_weight_map(laid_flat(p.map), batch);
  map.small = p.transposed ? x : g, map.large = p.transposed ? g : x;
  map.dw = &dw, map.threads = options_.n_threads;
  map.bf16 = multiplies_bf16(g, x, dw);
  if (map.bf16) map.first = strided_offset(p, dw, &map.strides);
  const bool empty = batch == 0 || map.y.taps == 0 || map.x.taps == 0;
  const WeightImplementation* entry = empty ? nullptr : &choose(kWeightGradients, map);
  if (entry && entry->stores_dw) return entry->run(map, scratch);

  const bool direct = is_f32_in_place(dw);
  CallScratch::Lease buffer(scratch, direct ? 0 : dw.count * sizeof(float));
  WeightTarget& target = map.target;
  const size_t first = weight_strides(p, dw, &target);
  target.data = direct ? static_cast<float*>(dw.data) + first : buffer.as<float>();
  target.accumulate = direct && dw.accumulate;

  // Weights that no pixel of the batch uses have a gradient of 0.
  if (empty && dw.accumulate) return;
  if ((empty || !map.has_all_taps()) && !scratch.measuring()) {
    if (!direct) {
      std::fill_n(target.data, dw.count, 0.0f);
    } else if (!dw.accumulate && dw.dense) {
      std::fill_n(static_cast<float*>(dw.data), dw.count, 0.0f);
    } else if (!dw.accumulate) {
      for_each_weight(p, [&](size_t o, size_t i, size_t ky, size_t kx) {
        static_cast<float*>(dw.data)[weight_offset(dw, o, i, ky, kx)] = 0;
      });
    }
  }
  target.data +=
      static_cast<ptrdiff_t>(map.y.kernel_first) * target.y + static_cast<ptrdiff_t>(map.x.kernel_first) * target.x;
  if (entry) entry->run(map, scratch);
  if (direct || scratch.measuring()) return;
  const float* value = buffer.as<float>();
  if (is_ordered(dw)) {
    const Elements elements(dw);
    return for_weight_pieces(dw.count, options_.n_threads, [&](size_t begin, size_t count) {
      if (dw.accumulate) return elements.accumulate(dw.data, begin, count, value + begin);
      elements.write(dw.data, begin, count, value + begin);
    });
  }
  // Other layouts and types, element by element.
  for_each_weight(p, [&](size_t o, size_t i, size_t ky, size_t kx) {
    store_weight(dw, weight_offset(dw, o, i, ky, kx), *value++);
  });
}

void ConvolutionFilter::bias_gradient(size_t batch, const ImageSource& g, const Tensor& db, CallScratch& scratch) {
  const ConvolutionProblem& p = problem_;
  const Elements elements(db);
  const size_t width = y_.size[0];
  const size_t threads = threads_for(options_.n_threads, p.outputs, batch * p.y.count * sizeof(float));
  CallScratch::Lease buffer(scratch, (round_up(p.outputs, 16) + threads * bias_gradient_buffer(width)) * sizeof(float));
  if (scratch.measuring()) return;
  float* sums = elements.direct() ? static_cast<float*>(db.data) : buffer.as<float>();
  convolution_bias_gradient(g, batch, p.outputs, elements.direct() && db.accumulate, sums,
                            buffer.as<float>() + round_up(p.outputs, 16), threads);
  if (elements.direct()) return;
  if (db.accumulate) {
    elements.accumulate(db.data, 0, p.outputs, sums);
  } else {
    elements.write(db.data, 0, p.outputs, sums);
  }
}

void ConvolutionFilter::backward(const BackwardCall& call) {
  const ConvolutionProblem& p = problem_;
  const Gradients wanted = check_backward(call);
  const size_t batch = call.batch;
  for (const bool wants : {call.weights_delta != nullptr, call.in_delta != nullptr}) {
    if (wants && recording())
      count_work(product_of(batch, p.x.span_bytes() + p.y.span_bytes()) + product_of(p.w.span_bytes()),
                 p.operations(batch));
  }
  ScratchShelf::Lease buffer(scratch_, weight_floats() * sizeof(float));
  const MapWeights w = weights(buffer.as<float>());
  const Tensor dy_flat = laid_flat(p.map, wanted.dy), dx_flat = laid_flat(p.map, wanted.dx);
  const ImageSource x{&x_, call.in, wanted.in_stride};
  ImageSource g{&dy_flat, wanted.dy.data, wanted.dy_stride};

  // g in scratch, where a slab cannot make it.
  const bool own_g = batch > 0 && (wanted.recompute || p.activation.is_rowwise());
  const Tensor g_tensor = laid_flat(p.map, dense_image(p.y));
  ScratchShelf::Lease g_buffer(scratch_,
                               own_g ? batch_bytes(batch, g_tensor.count, g_tensor, p.op(), "out_stride") : 0);
  if (own_g) {
    if (wanted.recompute) {
      ImageTarget linear{&g_tensor, g_buffer.data(), p.y.count};
      linear.bias = bias(buffer.as<float>());
      CallScratch scratch(scratch_);  // nothing but scratch is written
      PatchMap forward = map(p.transposed, batch, x, linear);
      forward.weights = &w;
      run_map(forward, scratch);
    }
    const size_t width = p.y.size[0], rows = batch * p.outputs * p.y.size[1];
    const size_t threads = threads_for(options_.n_threads, rows, batch * p.y.count * sizeof(float));
    ScratchShelf::Lease row_buffer(scratch_, threads * 4 * width * sizeof(float));
    const ImageSource y{&p.y, call.out, wanted.out_stride}, dy{&wanted.dy, wanted.dy.data, wanted.dy_stride};
    parallel_for(rows, threads, [&](size_t task, size_t worker) {
      const size_t row = task % p.y.size[1], c = task / p.y.size[1] % p.outputs, n = task / p.y.size[1] / p.outputs;
      float* own = row_buffer.as<float>() + worker * 4 * width;
      float* to = g_buffer.as<float>() + task * width;
      const float* upstream = dy.row(n, c, row, 0, width, own);
      if (wanted.recompute) {
        activation_backward_from_input(p.activation, to, upstream, to, width);
      } else {
        activation_backward_from_output(p.activation, y.row(n, c, row, 0, width, own + 2 * width), upstream, to, width);
      }
    });
    g = {&g_tensor, g_buffer.data(), p.y.count};
  } else if (batch > 0 && !p.activation.is_identity()) {
    g.activation = as_stored(p.activation, p.y.type);
    g.y_tensor = &y_, g.y = call.out, g.y_batch_stride = wanted.out_stride;
  }

  const uint32_t key = ScratchMemo::key({batch, static_cast<size_t>(isa()), default_threads(),
                                         delta_key(call.in_delta, wanted.dx), delta_key(call.weights_delta, wanted.dw),
                                         delta_key(call.bias_delta, wanted.db), delta_key(call.out_delta, wanted.dy)});
  CallScratch::run(scratch_, backward_memo_, key, [&](CallScratch& scratch) {
    if (call.weights_delta) weight_gradient(batch, g, x, wanted.dw, scratch);
    if (call.bias_delta) bias_gradient(batch, g, wanted.db, scratch);
    if (call.in_delta && batch > 0) {
      const ImageTarget dx{&dx_flat, wanted.dx.data, wanted.dx_stride, wanted.dx.accumulate};
      PatchMap back = map(!p.transposed, batch, g, dx);
      back.weights = &w, back.bf16 = multiplies_bf16(g);
      run_map(back, scratch);
    }
  });
}

const char* ConvolutionFilter::implementation(BNNSExtPass pass, size_t batch) const {
  batch = std::max<size_t>(batch, 1);
  const Tensor x = dense_image(x_, x_.type), y = dense_image(y_, y_.type);
  const bool forward = pass == BNNSExtPassForward;
  ImageSource from{forward ? &x : &y};
  if (!forward && !problem_.activation.is_identity()) from.activation = problem_.activation;
  if (pass == BNNSExtPassWeightsGradient) {
    WeightMap p = make_weight_map(laid_flat(problem_.map), batch);
    p.bf16 = multiplies_bf16(from, {&x}, problem_.w);
    return find(kWeightGradients, p).name;
  }
  PatchMap p = map(problem_.transposed == forward, batch, from, {forward ? &y : &x});
  const IntegerLayer layer;
  if (problem_.integer) p.integer = &layer;
  p.bf16 = multiplies_bf16(from) && !(forward && problem_.activation.is_rowwise());
  return find_map(p).name;
}

}  // namespace bnns
