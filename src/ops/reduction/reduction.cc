// Checks of reductions, and the end of each function: from the folded state to the element of y.

#include "src/ops/reduction/reduction.h"

#include <algorithm>
#include <cmath>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/filter/batch_pair.h"
#include "src/ops/reduction/reduction_plan.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr const char* kOp = "reduction";

const char* function_name(BNNSReduceFunction function) {
  static constexpr const char* kNames[] = {"Max",    "Min",       "ArgMax",  "ArgMin", "Mean",      "MeanNonZero",
                                           "Sum",    "SumSquare", "SumLog",  "L1Norm", "LogicalOr", "LogicalAnd",
                                           "L2Norm", "LogSumExp", "Product", "None",   "LogSum"};
  return static_cast<unsigned>(function) < std::size(kNames) ? kNames[function] : "unknown";
}

bool is_index(BNNSReduceFunction f) {
  return f == BNNSReduceFunctionArgMax || f == BNNSReduceFunctionArgMin;
}
bool is_logical(BNNSReduceFunction f) {
  return f == BNNSReduceFunctionLogicalOr || f == BNNSReduceFunctionLogicalAnd;
}

void check_types(const ReductionProblem& p) {
  check_plain(p.x, kOp, "i_desc");
  check_plain(p.y, kOp, "o_desc");
  const bool exact = type_bytes(p.x.type) <= 2;  // 8 and 16-bit integers and Boolean
  if (!is_float(p.x.type) && !exact) {
    fail_unsupported("%s: i_desc has type %s; expected f32, f16, bf16, Boolean or an integer of 8 or 16 bits", kOp,
                     type_name(p.x.type));
  }
  if (!is_float(p.y.type) && !is_index(p.function) && !is_logical(p.function)) {
    fail_unsupported("%s: o_desc has type %s; %s gives f32, f16 or bf16", kOp, type_name(p.y.type),
                     function_name(p.function));
  }
  if (is_index(p.function) && p.y.is(BNNSDataTypeBoolean)) {
    fail_unsupported("%s: o_desc has type bool; %s gives an integer or a float", kOp, function_name(p.function));
  }
}

// Which element of y a count is of: MeanNonZero's divisor.
class Counts final : public ReductionSink {
 public:
  Counts(double* counts, size_t stride) : counts_(counts), stride_(stride) {}
  void take(size_t y_offset, size_t n, const ReductionCells& cells) const noexcept override {
    for (size_t i = 0; i < n; ++i) counts_[y_offset + i * stride_] = cells.value[i];
  }

 private:
  double* counts_;
  size_t stride_;
};

// Finishes results and stores them.
class Store final : public ReductionSink {
 public:
  Store(const ReductionProblem& p, const ReductionPlan& plan, const double* counts, size_t y_stride)
      : p_(p),
        is_plain_(p.function == BNNSReduceFunctionSum || p.function == BNNSReduceFunctionMax ||
                  p.function == BNNSReduceFunctionMin),
        stride_(plan.columns.y),
        counts_(counts),
        y_stride_(y_stride),
        lens_(row_elements(p.y, plan.columns.extent, plan.columns.y)) {}

  void take(size_t y_offset, size_t n, const ReductionCells& cells) const noexcept override {
    if (p_.y.is(BNNSDataTypeInt64) && is_index(p_.function)) {
      auto* y = static_cast<int64_t*>(p_.y.data) + y_offset;
      for (size_t i = 0; i < n; ++i) y[i * stride_] = static_cast<int64_t>(cells.place[i]);
      return;
    }
    if (is_integer(p_.y.type)) {  // as they are: scale and bias are not for indices
      for (size_t i = 0; i < n; ++i) {
        const int64_t v = is_index(p_.function) ? static_cast<int64_t>(cells.place[i]) : cells.value[i] != 0;
        store_saturated(p_.y, p_.y.data, y_offset + i * stride_, v);
      }
      return;
    }
    float buffer[kMaxReductionColumns];
    void* base = element_at(p_.y.data, p_.y.type, y_offset);
    float* to = lens_.target(base, 0, buffer);
    if (is_plain_) {
      for (size_t i = 0; i < n; ++i) to[i] = static_cast<float>(cells.value[i]);
    } else {
      for (size_t i = 0; i < n; ++i) to[i] = static_cast<float>(finish(cells, i, y_offset + i * stride_));
    }
    lens_.write(base, 0, n, to);
  }

 private:
  double finish(const ReductionCells& cells, size_t i, size_t y_offset) const {
    const double v = cells.value[i];
    switch (p_.function) {
      case BNNSReduceFunctionArgMax:
      case BNNSReduceFunctionArgMin:
        return static_cast<double>(cells.place[i]);
      case BNNSReduceFunctionMeanNonZero:
        if (counts_) {
          const double count = counts_[y_offset % y_stride_];
          return count > 0 ? v / count : 0;
        }
        [[fallthrough]];
      case BNNSReduceFunctionMean:
        return v / static_cast<double>(p_.length);
      case BNNSReduceFunctionL2Norm:
        return std::sqrt(v);
      case BNNSReduceFunctionLogSumExp:
        return std::log(v) + (std::isinf(cells.shift[i]) ? 0 : cells.shift[i]);
      case BNNSReduceFunctionLogSum:
        return std::log(v);
      default:
        return v;
    }
  }

  const ReductionProblem& p_;
  bool is_plain_;  // the folded value is the result
  size_t stride_;
  const double* counts_;
  size_t y_stride_;  // from sample to sample
  Elements lens_;
};

// Sums as they are, stored or added.
class Sums final : public ReductionSink {
 public:
  Sums(const Tensor& y, const ReductionPlan& plan)
      : y_(y), lens_(row_elements(y, plan.columns.extent, plan.columns.y)) {}
  void take(size_t y_offset, size_t n, const ReductionCells& cells) const noexcept override {
    float buffer[kMaxReductionColumns];
    void* base = element_at(y_.data, y_.type, y_offset);
    float* to = y_.accumulate ? buffer : lens_.target(base, 0, buffer);
    for (size_t i = 0; i < n; ++i) to[i] = static_cast<float>(cells.value[i]);
    y_.accumulate ? lens_.accumulate(base, 0, n, to) : lens_.write(base, 0, n, to);
  }

 private:
  const Tensor& y_;
  Elements lens_;
};

}  // namespace

void sum_axes(const Tensor& from, const Tensor& to, const SumAxis* axes, size_t n, size_t n_threads,
              ScratchShelf& shelf) {
  ReductionAxis all[kMaxReductionAxes];
  size_t rank = 0;
  for (size_t k = 0; k < n; ++k) {
    if (axes[k].extent == 1) continue;
    const bool reduced = axes[k].reduced;
    all[rank++] = {axes[k].extent, axes[k].from, 0, reduced ? 0 : axes[k].to, 0, reduced};
  }
  const ReductionPlan plan = make_reduction_plan(all, rank);
  const ReductionFold sum{ReductionFold::Kind::sum, ReductionTerm::value, 128,
                          8};  // a gradient's sums keep their digits
  run_reduction(plan, sum, 0, from, nullptr, Sums(to, plan), n_threads, shelf);
}

ReductionProblem make_reduction_problem(const BNNSLayerParametersReduction* layer) {
  if (!layer) fail_invalid("%s: layer_params is NULL, expected a BNNSLayerParametersReduction", kOp);
  ReductionProblem p;
  p.function = layer->reduce_func;
  p.epsilon = layer->epsilon;
  if (static_cast<unsigned>(p.function) > BNNSReduceFunctionLogSum || p.function == BNNSReduceFunctionNone) {
    fail_invalid("%s: reduce_func is %s, expected a function of BNNSReduceFunction other than None", kOp,
                 enum_text(p.function).text);
  }
  p.x = resolve(layer->i_desc, kOp, "i_desc");
  p.y = resolve(layer->o_desc, kOp, "o_desc");
  check_distinct(p.y, kOp, "o_desc");
  if (p.y.rank != p.x.rank) {
    fail_invalid("%s: o_desc has rank %zu, expected %zu as i_desc, with 1 on the reduced axes", kOp, p.y.rank,
                 p.x.rank);
  }
  for (size_t k = 0; k < p.x.rank; ++k) {
    if (p.y.size[k] != 1 && p.y.size[k] != p.x.size[k]) {
      fail_invalid("%s: o_desc.size[%zu] is %zu, expected 1 (reduced) or %zu as in i_desc", kOp, k, p.y.size[k],
                   p.x.size[k]);
    }
  }
  p.length = p.x.count / p.y.count;
  check_types(p);
  if (!is_absent(layer->w_desc)) {
    p.w = resolve_with_data(layer->w_desc, kOp, "w_desc");
    check_plain(p.w, kOp, "w_desc");
    if (p.w.rank != p.x.rank || !std::equal(p.w.size, p.w.size + p.w.rank, p.x.size)) {
      fail_invalid("%s: w_desc is %s, expected the sizes of i_desc, %s", kOp, p.w.text().c_str(), p.x.text().c_str());
    }
    if (!is_float(p.w.type)) {
      fail_unsupported("%s: w_desc has type %s; weights are f32, f16 or bf16", kOp, type_name(p.w.type));
    }
  }
  return p;
}

std::string ReductionProblem::text() const {
  return std::string(kOp) + " " + x.text() + " to " + y.text() + " " + function_name(function) +
         (weighted() ? " weighted" : "");
}

void reduce_batch(const ReductionProblem& p, size_t batch, size_t x_stride, size_t y_stride, size_t n_threads,
                  ScratchShelf& shelf) {
  const Tensor* w = p.weighted() ? &p.w : nullptr;
  const ReductionFold fold = fold_of(p.function, p.weighted());
  const ReductionPlan plan = make_reduction_plan(fold, p.x, p.y, w, batch, x_stride, y_stride);
  const bool counted = w && p.function == BNNSReduceFunctionMeanNonZero;
  const ScratchShelf::Lease lease(shelf, counted ? checked_mul(p.y.span, sizeof(double), kOp) : 0);
  if (counted) {
    const ReductionFold count{ReductionFold::Kind::sum, ReductionTerm::nonzero};
    const ReductionPlan of_weights = make_reduction_plan(count, p.w, p.y, nullptr, 1, 0, 0);
    run_reduction(of_weights, count, 0, p.w, nullptr, Counts(lease.as<double>(), of_weights.columns.y), n_threads,
                  shelf);
  }
  // A sample's offset by the batch stride: what is left is the place inside the sample.
  const Store store(p, plan, lease.as<double>(), batch > 1 ? y_stride : std::max<size_t>(p.y.span, 1));
  run_reduction(plan, fold, p.epsilon, p.x, w, store, n_threads, shelf);
}

ReductionFilter::ReductionFilter(const Options& options, const ReductionProblem& problem)
    : Filter(kKind, options),
      problem_(problem),
      weights_(problem.weighted() ? Parameter(problem.w, options, "the weights") : Parameter()),
      scratch_(options) {}

void ReductionFilter::forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) {
  const BatchPair pair = forward_pair(batch, problem_.x, in, in_stride, problem_.y, out, out_stride, kOp);
  if (batch == 0) return;
  ReductionProblem p = problem_;
  p.x.data = pair.from.data;
  p.y.data = pair.to.data;
  if (p.weighted()) {
    p.w = weights_.tensor();
    check_disjoint(out, batch_bytes(batch, pair.to_stride, p.y, kOp, "out_stride"), "out", p.w.data, p.w.span_bytes(),
                   "w_desc", kOp);
  }
  if (recording()) count_work(product_of(batch, p.x.span_bytes() + p.y.span_bytes()));
  reduce_batch(p, batch, pair.from_stride, pair.to_stride, options_.n_threads, scratch_);
}

}  // namespace bnns
