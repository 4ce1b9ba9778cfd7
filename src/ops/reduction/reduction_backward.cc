// ReductionFilter::backward. First one number (or place) for each result, then one pass over the elements.
//
//   dx = c w s(x), dw = sum over the batch of c t(x)      sums; c is dy with its factors
//   dx = w dy, dw = x dy at the chosen element            Max, Min
//   d(w x) = dy times the product of the others           Product

#include <algorithm>
#include <cmath>

#include "src/core/batch_pair.h"
#include "src/core/checked.h"
#include "src/core/elements.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/ops/reduction/reduction_plan.h"

namespace bnns {
namespace {

constexpr const char* kOp = "reduction";
constexpr size_t kTaskElements = 16 * 1024;

bool is_choice(BNNSReduceFunction f) {
  return f == BNNSReduceFunctionMax || f == BNNSReduceFunctionMin;
}
bool is_linear(BNNSReduceFunction f) {
  return f == BNNSReduceFunctionSum || f == BNNSReduceFunctionMean || f == BNNSReduceFunctionMeanNonZero;
}
// Whether c depends on the result of forward.
bool needs_result(BNNSReduceFunction f) {
  return is_choice(f) || f == BNNSReduceFunctionL2Norm || f == BNNSReduceFunctionLogSumExp ||
         f == BNNSReduceFunctionLogSum;
}

ReductionSlope slope_of(BNNSReduceFunction f, bool weighted) {
  switch (f) {
    case BNNSReduceFunctionSumSquare:
    case BNNSReduceFunctionL2Norm:
      return ReductionSlope::square;
    case BNNSReduceFunctionSumLog:
      return ReductionSlope::logarithm;
    case BNNSReduceFunctionL1Norm:
      return ReductionSlope::magnitude;
    case BNNSReduceFunctionLogSumExp:
      return ReductionSlope::exponential;
    case BNNSReduceFunctionMeanNonZero:
      return weighted ? ReductionSlope::masked : ReductionSlope::linear;
    default:
      return ReductionSlope::linear;
  }
}

// What is known of each result of the batch; results of a sample are numbered by the axes of x, fastest first.
struct Coefficients {
  size_t results = 0;  // of a sample
  float *c = nullptr, *a = nullptr;
  double *value = nullptr, *shift = nullptr;
  size_t* place = nullptr;  // Max and Min: the chosen element; Product: how many factors are 0
  static size_t bytes(size_t n) {
    return checked_mul(n, 2 * sizeof(float) + 2 * sizeof(double) + sizeof(size_t), "the gradients of the results");
  }
  Coefficients(void* memory, size_t n, size_t batch) : results(n) {
    value = static_cast<double*>(memory);
    shift = value + n * batch;
    place = reinterpret_cast<size_t*>(shift + n * batch);
    c = reinterpret_cast<float*>(place + n * batch);
    a = c + n * batch;
  }
};

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

struct Call {
  const ReductionProblem& p;
  size_t batch = 0;
  Tensor x, dx, dy, dw, numbers;  // numbers: a dense tensor of the results, in the order of the coefficients
  size_t x_stride = 0, dx_stride = 0, dy_stride = 0;
  bool want_x = false, want_w = false;
};

struct Axis {
  size_t extent = 1, x = 0, w = 0, dx = 0, dw = 0, result = 0, place = 0;
  bool continues(const Axis& a) const {
    const auto next = [&](size_t of, size_t ours) { return of == ours * extent; };
    return (result == 0) == (a.result == 0) && next(a.x, x) && next(a.w, w) && next(a.dx, dx) && next(a.dw, dw) &&
           next(a.result, result) && next(a.place, place);
  }
};

// Rows of elements along the fastest axis.
class Rows {
 public:
  explicit Rows(const Call& call) : call_(call) {
    const Tensor& x = call.p.x;
    Axis all[kMaxRank];
    size_t n = 0, place = 1;
    const Tensor& order = call.want_x ? call.dx : call.dw;
    for (size_t j = 0; j < x.rank; ++j) {
      const size_t k = order.axis[j];
      if (x.size[k] == 1) continue;
      Axis& a = all[n++];
      a.extent = x.size[k];
      a.x = x.stride[k];
      a.w = call.p.weighted() ? call.p.w.stride[k] : 0;
      a.dx = call.want_x ? call.dx.stride[k] : 0;
      a.dw = call.want_w ? call.dw.stride[k] : 0;
      a.result = call.p.y.size[k] == 1 ? 0 : call.numbers.stride[k];
      for (size_t i = place = 1; i <= k && a.result == 0; ++i) {
        if (call.p.y.size[i - 1] == 1 && i - 1 < k) place *= x.size[i - 1];
      }
      a.place = a.result == 0 ? place : 0;
    }
    for (size_t k = 0; k < n; ++k) {
      if (rank_ && axes_[rank_ - 1].continues(all[k])) {
        axes_[rank_ - 1].extent *= all[k].extent;
      } else {
        axes_[rank_++] = all[k];
      }
    }
    if (rank_ == 0) axes_[rank_++] = {};
    inner_ = axes_[0];
    x_lens_ = row_elements(call.x, inner_.extent, inner_.x);
    if (call.p.weighted()) w_lens_ = row_elements(call.p.w, inner_.extent, inner_.w);
    if (call.want_x) dx_lens_ = row_elements(call.dx, inner_.extent, inner_.dx);
    if (call.want_w) dw_lens_ = row_elements(call.dw, inner_.extent, inner_.dw);
  }

  size_t count() const { return call_.p.x.count / inner_.extent; }
  size_t length() const { return inner_.extent; }

  // Offsets of a row.
  Axis at(size_t row) const {
    Axis sum;
    for (size_t k = 1; k < rank_; row /= axes_[k++].extent) {
      const Axis& a = axes_[k];
      const size_t i = row % a.extent;
      sum.x += i * a.x, sum.w += i * a.w, sum.dx += i * a.dx, sum.dw += i * a.dw;
      sum.result += i * a.result, sum.place += i * a.place;
    }
    return sum;
  }

  // dx of one row of sample b.
  void slope_x(const Coefficients& coefficients, size_t b, size_t row) const {
    const Axis o = at(row);
    float room[kBlock], w_room[kBlock], c_room[kBlock], a_room[kBlock], dx_room[kBlock];
    void* base = element_at(call_.dx.data, call_.dx.type, b * call_.dx_stride + o.dx);
    for (size_t i = 0; i < inner_.extent; i += kBlock) {
      const size_t n = std::min(kBlock, inner_.extent - i);
      const float* x = read_x(b, o, i, n, room);
      const float* w = read_w(o, i, n, w_room);
      const float *c, *a;
      spread(coefficients, b, o, i, n, c_room, a_room, &c, &a);
      float* dx = call_.dx.accumulate ? dx_room : dx_lens_.target(base, i, dx_room);
      if (is_choice(call_.p.function) || call_.p.function == BNNSReduceFunctionProduct) {
        for (size_t k = 0; k < n; ++k) {
          const double s = element_slope(coefficients, b, o, i + k, x ? x[k] : 0, w ? w[k] : 1);
          dx[k] = static_cast<float>(s == 0 ? 0 : s * static_cast<double>(w ? w[k] : 1));
        }
      } else {
        reduction_slope_x(slope_of(call_.p.function, call_.p.weighted()), x, w, c, a, call_.p.epsilon, dx, n);
      }
      call_.dx.accumulate ? dx_lens_.accumulate(base, i, n, dx) : dx_lens_.write(base, i, n, dx);
    }
  }

  // dw of one row, summed over the batch in order.
  void slope_w(const Coefficients& coefficients, size_t row) const {
    const Axis o = at(row);
    float room[kBlock], w_room[kBlock], c_room[kBlock], a_room[kBlock], sum[kBlock];
    void* base = element_at(call_.dw.data, call_.dw.type, o.dw);
    for (size_t i = 0; i < inner_.extent; i += kBlock) {
      const size_t n = std::min(kBlock, inner_.extent - i);
      const float* w = read_w(o, i, n, w_room);
      std::fill_n(sum, n, 0.0f);
      for (size_t b = 0; b < call_.batch; ++b) {
        const float* x = read_x(b, o, i, n, room);
        const float *c, *a;
        spread(coefficients, b, o, i, n, c_room, a_room, &c, &a);
        if (is_choice(call_.p.function) || call_.p.function == BNNSReduceFunctionProduct) {
          for (size_t k = 0; k < n; ++k) {
            const double s = element_slope(coefficients, b, o, i + k, x[k], w[k]);
            if (s != 0) sum[k] += static_cast<float>(s * static_cast<double>(x[k]));
          }
        } else {
          reduction_slope_w(slope_of(call_.p.function, true), x, w, c, a, call_.p.epsilon, sum, n);
        }
      }
      if (call_.dw.accumulate) {
        dw_lens_.accumulate(base, i, n, sum);
      } else {
        float* to = dw_lens_.target(base, i, sum);
        if (to != sum) std::copy(sum, sum + n, to);
        dw_lens_.write(base, i, n, to);
      }
    }
  }

  // Product: the factors that are not 0, and how many are, for each result of sample b.
  void multiply(const Coefficients& coefficients, size_t b) const {
    double* value = coefficients.value + b * coefficients.results;
    size_t* zeros = coefficients.place + b * coefficients.results;
    std::fill_n(value, coefficients.results, 1.0);
    std::fill_n(zeros, coefficients.results, size_t{0});
    float room[kBlock], w_room[kBlock];
    for (size_t row = 0; row < count(); ++row) {
      const Axis o = at(row);
      for (size_t i = 0; i < inner_.extent; i += kBlock) {
        const size_t n = std::min(kBlock, inner_.extent - i);
        const float* x = read_x(b, o, i, n, room);
        const float* w = read_w(o, i, n, w_room);
        for (size_t k = 0; k < n; ++k) {
          const double t = static_cast<double>(x[k]) * static_cast<double>(w ? w[k] : 1);
          const size_t r = o.result + (i + k) * inner_.result;
          t == 0 ? zeros[r] += 1 : value[r] *= t;
        }
      }
    }
  }

 private:
  const float* read_x(size_t b, const Axis& o, size_t i, size_t n, float* room) const {
    if (!call_.x.data) return nullptr;
    const void* base = element_at(static_cast<const void*>(call_.x.data), call_.x.type, b * call_.x_stride + o.x);
    return x_lens_.read(base, i, n, room);
  }
  const float* read_w(const Axis& o, size_t i, size_t n, float* room) const {
    if (!call_.p.weighted()) return nullptr;
    const Tensor& w = call_.p.w;
    return w_lens_.read(element_at(static_cast<const void*>(w.data), w.type, o.w), i, n, room);
  }
  // c and a of elements [i, i + n) of a row.
  void spread(const Coefficients& from, size_t b, const Axis& o, size_t i, size_t n, float* c_room, float* a_room,
              const float** c, const float** a) const {
    const size_t first = b * from.results + o.result + i * inner_.result;
    *c = from.c + first;
    *a = from.a + first;
    if (inner_.result == 1) return;
    for (size_t k = 0; k < n; ++k) {
      c_room[k] = (*c)[k * inner_.result];
      a_room[k] = (*a)[k * inner_.result];
    }
    *c = c_room;
    *a = a_room;
  }
  // The derivative by w x of one element.
  double element_slope(const Coefficients& from, size_t b, const Axis& o, size_t i, float x, float w) const {
    const size_t r = b * from.results + o.result + i * inner_.result;
    const double dy = static_cast<double>(from.c[r]);
    if (is_choice(call_.p.function)) return from.place[r] == o.place + i * inner_.place ? dy : 0;
    const double t = static_cast<double>(x) * static_cast<double>(w);
    if (from.place[r] == 0) return dy * (from.value[r] / t);
    return from.place[r] == 1 && t == 0 ? dy * from.value[r] : 0;
  }

  const Call& call_;
  Axis axes_[kMaxRank], inner_;
  size_t rank_ = 0;
  Elements x_lens_, w_lens_, dx_lens_, dw_lens_;
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
        a = std::log(v) + (std::isinf(to.shift[i]) ? 0 : to.shift[i]);
        if (a == -INFINITY) a = c = 0;  // every x is -inf: no direction
        break;
      default:
        break;
    }
    to.c[i] = static_cast<float>(c);
    to.a[i] = static_cast<float>(a);
  }
}

Call check_call(const ReductionProblem& p, const BackwardCall& call) {
  Call c{p, call.batch, p.x, {}, {}, {}, {}};
  if (p.function == BNNSReduceFunctionArgMax || p.function == BNNSReduceFunctionArgMin ||
      p.function == BNNSReduceFunctionLogicalOr || p.function == BNNSReduceFunctionLogicalAnd) {
    fail_unsupported("%s: indices and logical functions (reduce_func %u) have no gradient", kOp,
                     static_cast<unsigned>(p.function));
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
    check_plain(c.dx, kOp, "in_delta");
    c.dx_stride = output_batch_stride(call.in_delta_stride, call.batch, c.dx, kOp, "in_delta_stride");
    dx_bytes = batch_bytes(call.batch, c.dx_stride, c.dx, kOp, "in_delta_stride");
    apart(c.dx, dx_bytes, "in_delta");
  }
  if (c.want_w) {
    c.dw = resolve_delta_view(call.weights_delta, p.w, kOp, "weights_delta");
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
  const Rows rows(call);
  const size_t batch = call.batch, results = p.y.count, threads_asked = options_.n_threads;
  const size_t total = checked_mul(results, batch, kOp);
  const ScratchShelf::Lease lease(scratch_, Coefficients::bytes(total));
  const Coefficients coefficients(lease.data(), results, batch);

  if (needs_result(p.function)) {
    ReductionFold fold = fold_of(p.function, p.weighted());
    if (is_choice(p.function)) fold.kind = ReductionFold::Kind::choose;
    const Tensor* w = p.weighted() ? &p.w : nullptr;
    const ReductionPlan plan = make_reduction_plan(p.x, call.numbers, w, 1, 0, 0);
    for (size_t b = 0; b < batch; ++b) {
      Tensor x = call.x;
      x.data = element_at(x.data, x.type, b * call.x_stride);
      run_reduction(plan, fold, p.epsilon, x, w, Collect(coefficients, b * results, plan.columns.y, fold.kind),
                    threads_asked, scratch_);
    }
  } else if (p.weighted() && p.function == BNNSReduceFunctionMeanNonZero && batch) {
    const ReductionPlan plan = make_reduction_plan(p.w, call.numbers, nullptr, 1, 0, 0);
    run_reduction(plan, {ReductionFold::Kind::sum, ReductionTerm::nonzero}, 0, p.w, nullptr,
                  Collect(coefficients, 0, plan.columns.y, ReductionFold::Kind::sum), threads_asked, scratch_);
    for (size_t b = 1; b < batch; ++b) std::copy_n(coefficients.value, results, coefficients.value + b * results);
  } else if (p.function == BNNSReduceFunctionProduct) {
    parallel_for(batch, threads_for(threads_asked, batch, batch * p.x.count),
                 [&](size_t b, size_t) { rows.multiply(coefficients, b); });
  }
  const Elements dy(call.dy, call.numbers);
  for (size_t b = 0; b < batch; ++b) {
    const void* base = element_at(static_cast<const void*>(call.dy.data), call.dy.type, b * call.dy_stride);
    float room[kBlock];
    for (size_t i = 0; i < results; i += kBlock) {
      const size_t n = std::min(kBlock, results - i);
      std::copy_n(dy.read(base, i, n, room), n, coefficients.c + b * results + i);
    }
  }
  finish_coefficients(p, coefficients, total);

  const size_t count = rows.count(), group = std::max<size_t>(1, kTaskElements / rows.length());
  const size_t groups = div_up(count, group), work = checked_mul(p.x.count, std::max<size_t>(batch, 1), kOp);
  if (call.want_x && batch) {
    const size_t tasks = checked_mul(groups, batch, kOp);
    parallel_for(tasks, threads_for(threads_asked, tasks, 2 * work), [&](size_t task, size_t) {
      const size_t first = task % groups * group;
      for (size_t row = first; row < std::min(count, first + group); ++row) {
        rows.slope_x(coefficients, task / groups, row);
      }
    });
  }
  if (call.want_w) {
    parallel_for(groups, threads_for(threads_asked, groups, 2 * work), [&](size_t task, size_t) {
      for (size_t row = task * group; row < std::min(count, task * group + group); ++row) {
        rows.slope_w(coefficients, row);
      }
    });
  }
}

}  // namespace bnns
