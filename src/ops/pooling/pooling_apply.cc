// PoolingFilter's calls: every check of pointers, strides and indices, then the work split over threads by shape alone.

#include <algorithm>
#include <atomic>
#include <climits>
#include <optional>
#include <string>
#include <utility>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/log.h"
#include "src/core/parallel.h"
#include "src/ops/pooling/implementations.h"
#include "src/ops/pooling/pooling.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr const char* kOp = "pooling";

// A task moves about this much memory: long enough to hide its start and, of large problems, the wait for what it wrote
// by non-temporal stores; short enough to balance.
constexpr size_t kTaskBytes = 256 * 1024, kLongTaskBytes = 2048 * 1024;
// Results larger than this, more than the L2 caches of a few cores hold, are written by non-temporal stores: their
// readers would find little of them near, and writing through the caches reads every line first.
constexpr size_t kStreamBytes = 4u << 20;

Planes planes_of(const Tensor& t, const void* data, size_t batch_stride) {
  return {const_cast<void*>(data),           t.type,
          static_cast<int64_t>(t.stride[0]), static_cast<int64_t>(t.stride[1]),
          static_cast<int64_t>(t.stride[2]), static_cast<int64_t>(batch_stride)};
}

// A gradient in another layout with as many elements: the same memory order.
Tensor as_image(const Tensor& t, const Tensor& like, const char* field) {
  if (t.layout == BNNSDataLayoutImageCHW) return t;
  if (t.layout != BNNSDataLayoutVector && !t.dense) {
    fail_invalid("%s: %s has gaps and a layout other than ImageCHW or Vector; expected it dense then", kOp, field);
  }
  Tensor image = t;
  const size_t step = t.layout == BNNSDataLayoutVector ? t.stride[0] : 1;
  image.layout = BNNSDataLayoutImageCHW;
  image.rank = 3;
  for (size_t k = 0; k < 3; ++k) image.size[k] = like.size[k];
  image.stride[0] = step;
  image.stride[1] = step * like.size[0];
  image.stride[2] = step * like.size[0] * like.size[1];
  return image;
}

// Runs work(planes, rows, worker) over all planes of a batch: several small planes a task, or bands of rows of a large
// one. begin(threads) comes before. Where `bands` is false a plane is never divided. `backwards`: each thread takes its
// share of the planes from the last one on, so that those that it takes first the next time are still in its caches.
template <class Begin, class Work>
void for_each_plane(const Options& options, const PoolingProblem& problem, size_t batch, int64_t rows, bool bands,
                    bool backwards, Begin&& begin, Work&& work) {
  const PoolingGeometry& g = problem.geometry;
  const size_t planes = batch * static_cast<size_t>(problem.channels);
  const size_t bytes = static_cast<size_t>(g.x.in * g.y.in + g.x.out * g.y.out) * sizeof(float);  // of a plane
  const size_t total = bytes > SIZE_MAX / planes ? SIZE_MAX : bytes * planes;
  const size_t share = std::clamp(total / 32, kTaskBytes, kLongTaskBytes);
  const size_t pieces = bands ? std::clamp<size_t>(bytes / share, 1, div_up(static_cast<size_t>(rows), 8)) : 1;
  const int64_t band = static_cast<int64_t>(round_up(div_up(static_cast<size_t>(rows), pieces), 2));  // whole pairs
  const size_t group = pieces > 1 ? 1 : std::clamp<size_t>(share / bytes, 1, planes);
  const size_t tasks = pieces > 1 ? planes * pieces : div_up(planes, group);
  const size_t threads = threads_for(options.n_threads, tasks, total);
  begin(threads);
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    if (backwards) {
      const Range own = share_with(tasks, threads, task);
      task = own.begin + own.end - 1 - task;
    }
    if (pieces == 1) return work(Range{task * group, std::min(planes, (task + 1) * group)}, Span{0, rows}, worker);
    const int64_t first = static_cast<int64_t>(task % pieces) * band;
    const Span some{std::min(first, rows), std::min(first + band, rows)};
    if (!some.empty()) work(Range{task / pieces, task / pieces + 1}, some, worker);
  });
}

// The same for a kernel's call, with scratch for each thread: work(call, planes, rows). The caller's own needs no copy.
template <class Call, class Work>
void for_each_plane(const Options& options, ScratchShelf& scratch, size_t batch, int64_t rows, bool bands, Call& call,
                    Work&& work) {
  std::optional<ScratchShelf::Lease> lease;
  for_each_plane(
      options, call.problem, batch, rows, bands, false,
      [&](size_t threads) {
        lease.emplace(scratch, threads * sizeof(PoolingScratch));
        call.scratch = lease->as<PoolingScratch>();
      },
      [&](Range planes, Span some, size_t worker) {
        if (worker == 0) return work(std::as_const(call), planes, some);
        Call own = call;
        own.scratch += worker;
        work(std::as_const(own), planes, some);
      });
}

bool is_large(const Tensor& t, size_t batch) {
  return t.count >= kStreamBytes / type_bytes(t.type) / batch;
}

}  // namespace

// The index array as it lies in memory: the strides of the small image. Nothing is read.
IndexPlanes PoolingFilter::check_indices(const PoolingIndices& indices, size_t batch, bool written,
                                         size_t* bytes) const {
  const PoolingGeometry& g = layer_.problem.geometry;
  const bool unmax = layer_.problem.function == PoolingFunction::unmax;
  *bytes = 0;
  if (!unmax && (layer_.problem.function != PoolingFunction::max || !indices.data)) return {};
  // A position has the same bits as a signed and as an unsigned integer, and a negative one is, read as unsigned,
  // beyond every plane that passes here: the kernels know unsigned indices alone.
  const bool narrow = indices.type == BNNSDataTypeUInt32 || indices.type == BNNSDataTypeInt32;
  if (!narrow && indices.type != BNNSDataTypeUInt64 && indices.type != BNNSDataTypeInt64) {
    fail_invalid("%s: indices_data_type is %s, expected UInt32, UInt64, Int32 or Int64", kOp,
                 enum_text(indices.type).text);
  }
  const uint64_t largest = indices.type == BNNSDataTypeInt32 ? INT32_MAX : UINT32_MAX;
  if (narrow && static_cast<uint64_t>(g.x.in) * static_cast<uint64_t>(g.y.in) > largest) {
    fail_invalid("%s: indices_data_type is %s, expected %s for an image of %lld x %lld pixels", kOp,
                 indices.type == BNNSDataTypeInt32 ? "Int32" : "UInt32",
                 indices.type == BNNSDataTypeInt32 ? "Int64" : "UInt64", static_cast<long long>(g.x.in),
                 static_cast<long long>(g.y.in));
  }
  Tensor t = unmax ? layer_.x : layer_.y;
  t.type = indices.type;
  const size_t stride = written ? output_batch_stride(indices.stride, batch, t, kOp, "idx_stride")
                                : input_batch_stride(indices.stride, batch, t, kOp, "idx_stride");
  *bytes = batch_bytes(batch, stride, t, kOp, "idx_stride");
  if (batch) check_data(indices.data, indices.type, kOp, "indices");
  return {indices.data,
          !narrow,
          static_cast<int64_t>(t.stride[0]),
          static_cast<int64_t>(t.stride[1]),
          static_cast<int64_t>(t.stride[2]),
          static_cast<int64_t>(stride)};
}

// Refuses indices that are no pixel of the large image.
IndexCheck PoolingFilter::check_positions(const IndexPlanes& index, BNNSDataType type, size_t batch) const {
  const PoolingProblem& problem = layer_.problem;
  const PoolingGeometry& g = problem.geometry;
  std::atomic<bool> in_plane{true}, in_rows{true}, in_windows{true};
  const auto nothing = [](size_t) {};
  for_each_plane(options_, problem, batch, g.y.out, false, true, nothing, [&](Range planes, Span, size_t) {
    const IndexCheck check = pooling_check_indices(problem, index, planes);
    if (!check.in_plane) in_plane.store(false, std::memory_order_relaxed);
    if (!check.in_rows) in_rows.store(false, std::memory_order_relaxed);
    if (!check.in_windows) in_windows.store(false, std::memory_order_relaxed);
  });
  if (in_plane.load()) return {true, in_rows.load(), in_windows.load()};
  const uint64_t pixels = static_cast<uint64_t>(g.x.in) * static_cast<uint64_t>(g.y.in);
  for (int64_t n = 0; n < static_cast<int64_t>(batch); ++n) {
    for (int64_t c = 0; c < problem.channels; ++c) {
      for (int64_t i = 0; i < g.x.out * g.y.out; ++i) {
        const int64_t x = i % g.x.out, y = i / g.x.out;
        const uint64_t position = index.load(index.at(n, c), x, y);
        if (position < pixels) continue;
        const auto value = type == BNNSDataTypeInt32   ? std::to_string(static_cast<int32_t>(position))
                           : type == BNNSDataTypeInt64 ? std::to_string(static_cast<int64_t>(position))
                                                       : std::to_string(position);
        fail_invalid(
            "%s: the index of pixel (%lld, %lld), channel %lld, sample %lld is %s, expected %sless than %llu = "
            "%lld * %lld pixels",
            kOp, static_cast<long long>(x), static_cast<long long>(y), static_cast<long long>(c),
            static_cast<long long>(n), value.c_str(), value[0] == '-' ? "0 or more and " : "",
            static_cast<unsigned long long>(pixels), static_cast<long long>(g.x.in), static_cast<long long>(g.y.in));
      }
    }
  }
  return {false, false, false};  // the caller changed the indices meanwhile
}

void PoolingFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride,
                            const PoolingIndices& indices) {
  const bool unmax = layer_.problem.function == PoolingFunction::unmax;
  in_stride = input_batch_stride(in_stride, batch, layer_.x, kOp, "in_stride");
  out_stride = output_batch_stride(out_stride, batch, layer_.y, kOp, "out_stride");
  size_t index_bytes;
  PoolingForward call;
  call.index = check_indices(indices, batch, !unmax, &index_bytes);
  if (batch == 0) return;
  check_data(in, layer_.x.type, kOp, "in");
  check_data(out, layer_.y.type, kOp, "out");
  const size_t in_bytes = batch_bytes(batch, in_stride, layer_.x, kOp, "in_stride");
  const size_t out_bytes = batch_bytes(batch, out_stride, layer_.y, kOp, "out_stride");
  check_disjoint(in, in_bytes, "in", out, out_bytes, "out", kOp);
  check_disjoint(call.index.data, index_bytes, "indices", out, out_bytes, "out", kOp);
  if (recording()) count_work(product_of(in_bytes + out_bytes) + product_of(index_bytes));
  if (!unmax) check_disjoint(call.index.data, index_bytes, "indices", in, in_bytes, "in", kOp);

  call.problem = layer_.problem;
  call.x = planes_of(layer_.x, in, in_stride);
  call.y = planes_of(layer_.y, out, out_stride);
  call.bias = layer_.has_bias() ? &bias_.tensor() : nullptr;
  call.activation = layer_.activation;
  call.stream = is_large(layer_.y, batch);
  if (unmax) call.index_in_rows = check_positions(call.index, indices.type, batch).in_rows;
  lay_column_flat(&call);
  const PoolingGeometry& g = call.problem.geometry;
  const PoolingPlan<PoolingForward> plan = plan_pooling(call);
  plan.record();
  for_each_plane(options_, scratch_, batch, unmax ? g.y.in : g.y.out, plan.implementation->bands, call,
                 [&](const PoolingForward& own, Range planes, Span rows) { plan.run(own, planes, rows); });
}

// Everything that can be wrong with a backward call is found here, before anything is written.
PoolingBackward PoolingFilter::prepare_backward(const BackwardCall& call, const PoolingIndices& indices,
                                                Tensor* db) const {
  const size_t batch = call.batch;
  const Activation& activation = layer_.activation;
  const PoolingFunction function = layer_.problem.function;
  const bool from_output = !activation.is_identity() && has_derivative_from_output(activation);
  const bool recompute = !activation.is_identity() && !from_output;
  if (call.weights_delta) fail_invalid("%s: weights_delta is given, expected NULL: pooling has no weights", kOp);

  PoolingBackward b;
  b.problem = layer_.problem;
  b.activation = from_output ? as_stored(activation, layer_.y.type) : activation;
  b.bias = layer_.has_bias() ? &bias_.tensor() : nullptr;
  const Tensor dy = as_image(resolve_delta(call.out_delta, layer_.y, kOp, "out_delta"), layer_.y, "out_delta");
  const size_t dy_stride = input_batch_stride(call.out_delta_stride, batch, dy, kOp, "out_delta_stride");
  const size_t dy_bytes = batch_bytes(batch, dy_stride, dy, kOp, "out_delta_stride");
  b.dy = planes_of(dy, dy.data, dy_stride);

  const size_t out_stride = input_batch_stride(call.out_stride, batch, layer_.y, kOp, "out_stride");
  const size_t in_stride = input_batch_stride(call.in_stride, batch, layer_.x, kOp, "in_stride");
  size_t index_bytes;
  b.index = check_indices(indices, batch, false, &index_bytes);
  if (batch && from_output) {
    check_data(call.out, layer_.y.type, kOp, "out");
    b.y = planes_of(layer_.y, call.out, out_stride);
  }
  const bool fold_again =
      call.in_delta && ((function == PoolingFunction::max && !b.index.data) || function == PoolingFunction::l2_norm);
  if (batch && (fold_again || recompute)) {
    if (!call.in && fold_again && function == PoolingFunction::max) {
      fail_invalid("%s: in and indices are both NULL, expected one of them to find the maxima", kOp);
    }
    if (!call.in && !fold_again) {
      fail_invalid("%s: in is NULL, but the derivative of %s needs the layer's input", kOp,
                   activation_name(activation.function));
    }
    check_data(call.in, layer_.x.type, kOp, "in");
    b.x = planes_of(layer_.x, call.in, in_stride);
  }
  if (call.in_delta) {
    const Tensor dx = as_image(resolve_delta(call.in_delta, layer_.x, kOp, "in_delta"), layer_.x, "in_delta");
    check_distinct(dx, kOp, "in_delta");
    const size_t dx_stride = output_batch_stride(call.in_delta_stride, batch, dx, kOp, "in_delta_stride");
    const size_t dx_bytes = batch_bytes(batch, dx_stride, dx, kOp, "in_delta_stride");
    check_disjoint(dx.data, dx_bytes, "in_delta", dy.data, dy_bytes, "out_delta", kOp);
    check_disjoint(dx.data, dx_bytes, "in_delta", b.index.data, index_bytes, "indices", kOp);
    if (b.x.data) {
      check_disjoint(dx.data, dx_bytes, "in_delta", call.in, batch_bytes(batch, in_stride, layer_.x, kOp, "in_stride"),
                     "in", kOp);
    }
    if (b.y.data) {
      check_disjoint(dx.data, dx_bytes, "in_delta", call.out,
                     batch_bytes(batch, out_stride, layer_.y, kOp, "out_stride"), "out", kOp);
    }
    b.dx = planes_of(dx, dx.data, dx_stride);
    b.accumulate = dx.accumulate;
    b.stream = batch && is_large(dx, batch);
  }
  if (call.bias_delta) {
    *db = resolve_delta(call.bias_delta, vector_tensor(layer_.x.size[2], nullptr), kOp, "bias_delta");
    check_disjoint(db->data, db->span_bytes(), "bias_delta", dy.data, dy_bytes, "out_delta", kOp);
  }
  const bool uses_index = b.index.data && batch && (call.in_delta || recompute);
  if (uses_index) {
    const IndexCheck check = check_positions(b.index, indices.type, batch);
    b.index_in_rows = check.in_rows;
    b.index_in_windows = check.in_windows;
  }
  lay_column_flat(&b);
  return b;
}

void PoolingFilter::backward(const BackwardCall& call, const PoolingIndices& indices) {
  Tensor db;
  PoolingBackward b = prepare_backward(call, indices, &db);
  const PoolingGeometry& g = b.problem.geometry;
  const Tensor &x = layer_.x, &y = layer_.y;
  if (recording())
    count_work(product_of(call.batch, (b.x.data ? 2 : 1) * x.span_bytes() + (b.y.data ? 2 : 1) * y.span_bytes()));
  if (call.in_delta && call.batch) {
    const PoolingPlan<PoolingBackward> plan = plan_pooling(b);
    plan.record();
    const int64_t rows = b.problem.function == PoolingFunction::unmax ? g.y.out : g.y.in;
    for_each_plane(options_, scratch_, call.batch, rows, plan.implementation->bands, b,
                   [&](const PoolingBackward& own, Range planes, Span some) { plan.run(own, planes, some); });
  }
  if (!call.bias_delta) return;
  const size_t channels = layer_.x.size[2], bytes = call.batch * layer_.y.count * sizeof(float);
  const Elements elements(db);
  parallel_for(channels, threads_for(options_.n_threads, channels, bytes), [&](size_t c, size_t) {
    const float sum =
        static_cast<float>(pooling_bias_gradient(b, static_cast<int64_t>(call.batch), static_cast<int64_t>(c)));
    if (db.accumulate)
      elements.accumulate(db.data, c, 1, &sum);
    else if (elements.direct())
      static_cast<float*>(db.data)[c] = sum;
    else
      elements.write(db.data, c, 1, &sum);
  });
}

}  // namespace bnns
