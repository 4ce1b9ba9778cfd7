// ReductionFilter::backward. First one number (or place) for each result, then one pass over the elements.
//
//   dx = c w s(x), dw = sum over the batch of c t(x)      sums; c is dy with its factors
//   dx = w dy, dw = x dy at the chosen element            Max, Min
//   d(w x) = dy times the product of the others           Product

#include <algorithm>
#include <cmath>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/engine/copy/copy.h"
#include "src/filter/batch_pair.h"
#include "src/ops/reduction/reduction_backward_blocks.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

using namespace reduction_backward;

constexpr const char* kOp = "reduction";
constexpr size_t kTaskElements = 16 * 1024;

// Whether c depends on the result of forward.
bool needs_result(BNNSReduceFunction f) {
  return is_choice(f) || f == BNNSReduceFunctionL2Norm || f == BNNSReduceFunctionLogSumExp ||
         f == BNNSReduceFunctionLogSum;
}

class Collect final : public ReductionSink {
 public:
  Collect(const Coefficients& to, size_t first, size_t stride, ReductionFold::Kind kind)
      : to_(to), first_(first), stride_(stride), kind_(kind) {}
  void take(size_t y_offset, size_t n, const ReductionCells& cells) const noexcept override {
    for (size_t i = 0; i < n; ++i) {
      const size_t at = first_ + y_offset + i * stride_;
      to_.value[at] = cells.value[i];
      if (kind_ == ReductionFold::Kind::exponential) to_.shift[at] = cells.shift[i];
      if (kind_ == ReductionFold::Kind::choose) to_.place[at] = cells.place[i];
    }
  }

 private:
  const Coefficients& to_;
  size_t first_, stride_;
  ReductionFold::Kind kind_;
};

// c and a from dy and the results of forward.
void finish_coefficients(const ReductionProblem& p, const Coefficients& to, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const double dy = static_cast<double>(to.c[i]), v = to.value[i];
    double c = dy, a = 0;
    switch (p.function) {
      case BNNSReduceFunctionMeanNonZero:
        if (p.weighted()) {
          c = v > 0 ? dy / v : 0;
          break;
        }
        [[fallthrough]];
      case BNNSReduceFunctionMean:
        c = dy / static_cast<double>(p.length);
        break;
      case BNNSReduceFunctionSumSquare:
        c = 2 * dy;
        break;
      case BNNSReduceFunctionL2Norm:
        c = v == 0 ? 0 : dy / std::sqrt(v);
        break;
      case BNNSReduceFunctionLogSum:
        c = dy / v;
        break;
      case BNNSReduceFunctionLogSumExp:
        // e^(x - y) as e^(x - shift) / v: both are small numbers, where y as f32 has lost the digits of log(v).
        c = dy / v, a = to.shift[i];
        if (v == 0) a = c = 0;  // every x is -inf or has no weight: no direction
        if (a == INFINITY) c = dy;
        break;
      default:
        break;
    }
    to.c[i] = static_cast<float>(c);
    to.a[i] = static_cast<float>(a);
  }
}

// Sums and means without weights: every element has the c of its result. dx is a copy of the results, as elements of
// its type, that repeats them along the reduced axes.
void repeat_results(const Call& call, const Coefficients& coefficients, size_t n_threads) {
  const size_t total = coefficients.results * call.batch;
  CopyProblem copy;
  copy.to = call.dx;
  copy.from = call.numbers;
  copy.from.type = call.dx.type;
  copy.from.data = coefficients.c;
  if (!call.dx.is(BNNSDataTypeFloat32)) {
    copy.from.data = coefficients.value;  // not needed any more, and wide enough
    Tensor row = vector_tensor(total, coefficients.value);
    row.type = call.dx.type;
    Elements(row).write(coefficients.value, 0, total, coefficients.c);
  }
  CopyAxis axes[kMaxRank + 1];
  const auto step = [](size_t stride) { return static_cast<ptrdiff_t>(stride); };
  for (size_t k = 0; k < call.dx.rank; ++k) {
    const size_t from = call.p.y.size[k] == 1 ? 0 : call.numbers.stride[k];
    axes[k] = {call.p.x.size[k], step(from), step(call.dx.stride[k])};
  }
  axes[call.dx.rank] = {call.batch, step(coefficients.results), step(call.dx_stride)};
  set_copy_axes(&copy, axes, call.dx.rank + 1);
  copy_tensor(copy, n_threads);
}

Call check_call(const ReductionProblem& p, const BackwardCall& call) {
  Call c{p, call.batch, p.x, {}, {}, {}, {}};
  if (p.function == BNNSReduceFunctionArgMax || p.function == BNNSReduceFunctionArgMin ||
      p.function == BNNSReduceFunctionLogicalOr || p.function == BNNSReduceFunctionLogicalAnd) {
    fail_unsupported("%s: reduce_func is %s; indices and logical functions have no gradient", kOp,
                     enum_text(p.function).text);
  }
  if (!is_float(p.x.type)) {
    fail_unsupported("%s: i_desc has type %s; only f32, f16 and bf16 have a gradient", kOp, type_name(p.x.type));
  }
  if (call.bias_delta) fail_invalid("%s: bias_delta is given, expected NULL: there is no bias", kOp);
  if (call.weights_delta && !p.weighted()) {
    fail_invalid("%s: weights_delta is given, expected NULL: the layer has no weights", kOp);
  }
  c.want_x = call.in_delta != nullptr;
  c.want_w = call.weights_delta != nullptr;
  c.dy = resolve_delta_view(call.out_delta, p.y, kOp, "out_delta");
  check_plain(c.dy, kOp, "out_delta");
  c.dy_stride = input_batch_stride(call.out_delta_stride, call.batch, c.dy, kOp, "out_delta_stride");
  const size_t dy_bytes = batch_bytes(call.batch, c.dy_stride, c.dy, kOp, "out_delta_stride");
  const bool needs_in = c.want_w || (c.want_x && !is_linear(p.function));
  c.x.data = nullptr;
  size_t x_bytes = 0;
  if (needs_in && call.batch) {
    check_data(call.in, p.x.type, kOp, "in");
    c.x_stride = input_batch_stride(call.in_stride, call.batch, p.x, kOp, "in_stride");
    x_bytes = batch_bytes(call.batch, c.x_stride, p.x, kOp, "in_stride");
    c.x.data = const_cast<void*>(call.in);
  }
  const auto apart = [&](const Tensor& t, size_t bytes, const char* name) {
    check_disjoint(t.data, bytes, name, c.dy.data, dy_bytes, "out_delta", kOp);
    check_disjoint(t.data, bytes, name, c.x.data, x_bytes, "in", kOp);
    if (p.weighted()) check_disjoint(t.data, bytes, name, p.w.data, p.w.span_bytes(), "w_desc", kOp);
  };
  size_t dx_bytes = 0;
  if (c.want_x) {
    c.dx = resolve_delta_view(call.in_delta, p.x, kOp, "in_delta");
    check_distinct(c.dx, kOp, "in_delta");
    check_plain(c.dx, kOp, "in_delta");
    c.dx_stride = output_batch_stride(call.in_delta_stride, call.batch, c.dx, kOp, "in_delta_stride");
    dx_bytes = batch_bytes(call.batch, c.dx_stride, c.dx, kOp, "in_delta_stride");
    apart(c.dx, dx_bytes, "in_delta");
  }
  if (c.want_w) {
    c.dw = resolve_delta_view(call.weights_delta, p.w, kOp, "weights_delta");
    check_distinct(c.dw, kOp, "weights_delta");
    check_plain(c.dw, kOp, "weights_delta");
    apart(c.dw, c.dw.span_bytes(), "weights_delta");
    if (c.want_x) check_disjoint(c.dw.data, c.dw.span_bytes(), "weights_delta", c.dx.data, dx_bytes, "in_delta", kOp);
  }
  // Numbers of results: dense, in the memory order of x, so that rows of kept elements meet rows of coefficients.
  c.numbers = p.y;
  c.numbers.layout = p.x.layout;
  c.numbers.type = BNNSDataTypeFloat32;
  size_t step = 1;
  for (size_t j = 0; j < p.x.rank; ++j) {
    const size_t k = p.x.axis[j];
    c.numbers.axis[j] = p.x.axis[j];
    c.numbers.stride[k] = step;
    step *= p.y.size[k];
  }
  return c;
}

}  // namespace

void ReductionFilter::backward(const BackwardCall& arguments) {
  ReductionProblem p = problem_;
  if (p.weighted()) p.w = weights_.tensor();
  const Call call = check_call(p, arguments);
  if (!call.want_x && !call.want_w) return;
  const Blocks blocks(call);
  const size_t batch = call.batch, results = p.y.count, threads_asked = options_.n_threads;
  const size_t total = checked_mul(results, batch, kOp);
  const ScratchShelf::Lease lease(scratch_, Coefficients::bytes(total));
  const Coefficients coefficients(lease.data(), results, batch);

  if (needs_result(p.function)) {
    ReductionFold fold = fold_of(p.function, p.weighted());
    if (is_choice(p.function)) fold.kind = ReductionFold::Kind::choose;
    const Tensor* w = p.weighted() ? &p.w : nullptr;
    const ReductionPlan plan = make_reduction_plan(fold, p.x, call.numbers, w, 1, 0, 0);
    for (size_t b = 0; b < batch; ++b) {
      Tensor x = call.x;
      x.data = element_at(x.data, x.type, b * call.x_stride);
      run_reduction(plan, fold, p.epsilon, x, w, Collect(coefficients, b * results, plan.columns.y, fold.kind),
                    threads_asked, scratch_);
    }
  } else if (p.weighted() && p.function == BNNSReduceFunctionMeanNonZero && batch) {
    const ReductionFold count{ReductionFold::Kind::sum, ReductionTerm::nonzero};
    const ReductionPlan plan = make_reduction_plan(count, p.w, call.numbers, nullptr, 1, 0, 0);
    run_reduction(plan, count, 0, p.w, nullptr, Collect(coefficients, 0, plan.columns.y, ReductionFold::Kind::sum),
                  threads_asked, scratch_);
    for (size_t b = 1; b < batch; ++b) std::copy_n(coefficients.value, results, coefficients.value + b * results);
  } else if (p.function == BNNSReduceFunctionProduct) {
    parallel_for(batch, threads_for(threads_asked, batch, batch * p.x.count),
                 [&](size_t b, size_t) { blocks.multiply(coefficients, b); });
  }
  const Elements dy(call.dy, call.numbers);
  for (size_t b = 0; b < batch; ++b) {
    const void* base = element_at(static_cast<const void*>(call.dy.data), call.dy.type, b * call.dy_stride);
    float buffer[kBlock];
    for (size_t i = 0; i < results; i += kBlock) {
      const size_t n = std::min(kBlock, results - i);
      std::copy_n(dy.read(base, i, n, buffer), n, coefficients.c + b * results + i);
    }
  }
  finish_coefficients(p, coefficients, total);

  const size_t count = blocks.count(), work = checked_mul(count, std::max<size_t>(batch, 1), kOp);
  const size_t cuts = div_up(count, kTaskElements), samples = std::max<size_t>(1, kTaskElements / count);
  const size_t tasks = checked_mul(cuts, div_up(batch, samples), kOp);
  // Calls body(sample, first, n) for all blocks of all samples.
  const auto for_each_block = [&](const auto& body) {
    parallel_for(tasks, threads_for(threads_asked, tasks, 2 * work), [&](size_t task, size_t) {
      const size_t begin = task % cuts * kTaskElements, end = std::min(count, begin + kTaskElements);
      const size_t b = task / cuts * samples;
      for (size_t sample = b; sample < std::min(batch, b + samples); ++sample) {
        for (size_t first = begin; first < end; first += kBlock) body(sample, first, std::min(kBlock, end - first));
      }
    });
  };
  if (call.want_x && batch && is_choice(p.function)) {
    if (!call.dx.accumulate) {
      for_each_block([&](size_t b, size_t first, size_t n) { blocks.clear_x(b, first, n); });
    }
    const size_t parts = div_up(results, kTaskElements), all = checked_mul(parts, batch, kOp);
    parallel_for(all, threads_for(threads_asked, all, 8 * total), [&](size_t task, size_t) {
      const size_t begin = task % parts * kTaskElements;
      blocks.choose_x(coefficients, task / parts, begin, std::min(results, begin + kTaskElements));
    });
  } else if (call.want_x && batch && is_linear(p.function) && !p.weighted() && !call.dx.accumulate) {
    repeat_results(call, coefficients, threads_asked);
  } else if (call.want_x && batch) {
    for_each_block([&](size_t b, size_t first, size_t n) { blocks.slope_x(coefficients, b, first, n); });
  }
  if (call.want_w) {
    const size_t pieces = div_up(count, kBlock);
    parallel_for(pieces, threads_for(threads_asked, pieces, 2 * work), [&](size_t piece, size_t) {
      blocks.slope_w(coefficients, piece * kBlock, std::min(kBlock, count - piece * kBlock));
    });
  }
}

}  // namespace bnns
