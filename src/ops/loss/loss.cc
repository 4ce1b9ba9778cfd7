// LossFilter: checks a call, finds the divisor of its reduction, cuts the batch into tasks and adds up their sums.

#include "src/ops/loss/loss.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

constexpr const char* kOp = "loss";
// Tasks are cut by shape alone and their sums added in order, so the bits do not depend on the number of threads. At
// most so many that the sums fit on the stack.
constexpr size_t kMaxTasks = 256;

// Weights [first, first + count) of the call.
WeightTotal total_of(const LossRun& run, size_t first, size_t count) {
  WeightTotal total;
  float buffer[kBlock];
  for (size_t done = 0; done < count; done += kBlock) {
    const size_t m = std::min(kBlock, count - done);
    const WeightTotal part = weight_total(run.weight_lens->read(run.weights, first + done, m, buffer), m);
    total.sum += part.sum;
    total.nonzero += part.nonzero;
  }
  return total;
}

// Sum and number of the non-zero weights of all terms. Where a term has n weights of its own (per-sample losses with
// per-element weights) it counts with their mean, so that equal weights mean the same in all four forms.
WeightTotal weights_of_terms(const LossRun& run, size_t n_threads) {
  const size_t terms = run.problem->terms();  // of a sample
  if (run.form == WeightForm::uniform) {
    const size_t all = run.batch * terms;
    return {double(run.weight) * double(all), run.weight != 0 ? all : 0};
  }
  if (run.form == WeightForm::per_sample) {
    const WeightTotal total = total_of(run, 0, run.batch);
    return {total.sum * double(terms), total.nonzero * terms};
  }
  const size_t per_task = std::max({size_t{1}, kLossChunk / run.n, div_up(run.batch, kMaxTasks)});
  const size_t tasks = div_up(run.batch, per_task);
  WeightTotal totals[kMaxTasks], total;
  parallel_for(tasks, threads_for(n_threads, tasks, run.batch * run.n * sizeof(float)), [&](size_t task, size_t) {
    for (size_t r = task * per_task; r < std::min(run.batch, (task + 1) * per_task); ++r) {
      const WeightTotal row = total_of(run, r * run.n, run.n);
      totals[task].sum += terms == 1 ? row.sum / double(run.n) : row.sum;
      totals[task].nonzero += terms == 1 ? row.nonzero != 0 : row.nonzero;
    }
  });
  for (size_t task = 0; task < tasks; ++task) {
    total.sum += totals[task].sum;
    total.nonzero += totals[task].nonzero;
  }
  return total;
}

// What the sum of the terms is divided by; 0 where the weights say that nothing counts.
double divisor(const LossRun& run, size_t n_threads) {
  switch (run.problem->reduction) {
    case BNNSLossReductionMean:
      return double(run.batch * run.problem->terms());
    case BNNSLossReductionWeightedMean:
      return weights_of_terms(run, n_threads).sum;
    case BNNSLossReductionNonZeroWeightMean:
      return double(weights_of_terms(run, n_threads).nonzero);
    default:
      return 1;
  }
}

void clear_gradients(const LossRun& run) {
  for (size_t sample = 0; sample < run.batch; ++sample) clear_gradient(run, sample);
}

bool is_packed(const Samples& s, size_t n) {
  return !s.base || (s.lens->direct() && s.pitch == n * sizeof(float));
}

// Element-wise losses do not care where a sample ends. As one long sample, a batch of short ones runs whole vectors.
void merge_batch(LossRun* run) {
  const bool weights_fit = run->form == WeightForm::uniform || run->form == WeightForm::per_element || run->n == 1;
  if (!weights_fit || run->batch == 1) return;
  for (const Samples* s : {&run->x, &run->labels, &run->dx, &run->dy}) {
    if (!is_packed(*s, run->n)) return;
  }
  if (run->form == WeightForm::per_sample) run->form = WeightForm::per_element;
  run->n *= run->batch;
  run->batch = 1;
}

// Memory of a tensor: `sample` bytes, `samples` times, `pitch` bytes apart.
struct Region {
  const char* name;
  const void* base;
  size_t sample, pitch, samples;

  uintptr_t begin() const { return reinterpret_cast<uintptr_t>(base); }
  uintptr_t end() const { return sample ? begin() + (samples - 1) * pitch + sample : begin(); }
};

// For two regions whose ranges meet: samples may still alternate in one buffer.
void check_alternating(const Region& a, const Region& b) {
  if (a.pitch == b.pitch && a.sample <= a.pitch && b.sample <= a.pitch) {
    const uintptr_t x = a.begin(), y = b.begin();
    const size_t apart = x < y ? (y - x) % a.pitch : (a.pitch - (x - y) % a.pitch) % a.pitch;
    if (apart >= a.sample && a.pitch - apart >= b.sample) return;
  }
  fail_invalid("%s: %s and %s overlap; a loss does not work in place", kOp, a.name, b.name);
}

inline void check_disjoint(const Region& written, const Region& other) {
  if (written.begin() < other.end() && other.begin() < written.end()) check_alternating(written, other);
}

void check_disjoint_from_inputs(const Region& written, const LossCall& call, const LossRun& run) {
  const Tensor& x = run.problem->x;
  const size_t sample = x.span_bytes(), weights = run.weights ? call.weights_size : 0;
  check_disjoint(written, {"in", call.in, sample, run.x.pitch, call.batch});
  check_disjoint(written, {"labels", call.labels, sample, run.labels.pitch, call.batch});
  check_disjoint(written, {"weights", call.weights, weights * type_bytes(x.type), 0, 1});
}

// in_delta, which must stay clear of what the call reads. lens must live as long as the run.
Region attach_gradient(const LossCall& call, std::optional<Elements>* lens, LossRun* run) {
  const Tensor dx = resolve_delta(call.in_delta, run->problem->x, kOp, "in_delta");
  check_distinct(dx, kOp, "in_delta");
  const size_t stride = output_batch_stride(call.in_delta_stride, call.batch, dx, kOp, "in_delta_stride");
  lens->emplace(dx);
  run->dx = {&**lens, static_cast<char*>(dx.data), stride * type_bytes(dx.type)};
  run->accumulate = dx.accumulate;
  const Region region = {"in_delta", dx.data, dx.span_bytes(), run->dx.pitch, call.batch};
  check_disjoint_from_inputs(region, call, *run);
  return region;
}

// Endless, so that one lens serves any number of contiguous values.
Tensor contiguous(BNNSDataType type) {
  Tensor t = vector_tensor(size_t{1} << 60, nullptr);
  t.type = type;
  return t;
}

}  // namespace

void clear_gradient(const LossRun& run, size_t sample) noexcept {
  if (!run.dx.base || run.accumulate) return;
  float zeros[kBlock] = {};
  for (size_t first = 0; first < run.n; first += kBlock) {
    const size_t m = std::min(kBlock, run.n - first);
    float* to = run.dx.lens->target(run.dx.at(sample), first, zeros);
    if (to != zeros) std::memset(to, 0, m * sizeof(float));
    run.dx.lens->write(run.dx.at(sample), first, m, to);
  }
}

LossFilter::LossFilter(const Options& options, const LossProblem& problem)
    : Filter(FilterKind::loss, options),
      problem_(problem),
      x_lens_(problem.x),
      weight_lens_(contiguous(problem.x.type)),
      out_lens_(contiguous(problem.out_type)) {
  if (problem.is_yolo()) {
    const size_t bytes = 2 * problem.yolo.anchors * sizeof(float);
    anchors_ = Buffer(options, bytes, "the anchors of a yolo loss");
    std::memcpy(anchors_.data(), problem.yolo.anchor_sizes, bytes);
    problem_.yolo.anchor_sizes = anchors_.as<float>();
  }
}

// Pointers, strides and weights. Nothing is written before all checks of a call are done.
void LossFilter::prepare(const LossCall& call, LossRun* run) const {
  const Tensor& x = problem_.x;
  check_data(call.in, x.type, kOp, "in");
  check_data(call.labels, x.type, kOp, "labels");
  run->problem = &problem_;
  run->batch = call.batch;
  run->n = x.count;
  const size_t element = type_bytes(x.type);
  const size_t in_stride = input_batch_stride(call.in_stride, call.batch, x, kOp, "in_stride");
  const size_t labels_stride = input_batch_stride(call.labels_stride, call.batch, x, kOp, "labels_stride");
  const size_t elements = checked_mul(call.batch, x.count, "loss: batch_size");
  checked_mul(elements, 3 * sizeof(float), "loss: batch_size");  // no byte count below can wrap
  // Kernels never write through x and labels.
  run->x = {&x_lens_, const_cast<char*>(static_cast<const char*>(call.in)), in_stride * element};
  run->labels = {&x_lens_, const_cast<char*>(static_cast<const char*>(call.labels)), labels_stride * element};
  if (problem_.is_yolo() || call.weights_size == 0) return;

  if (call.weights_size != 1 && call.weights_size != call.batch && call.weights_size != elements) {
    fail_invalid("%s: weights_size is %zu, expected 0, 1, %zu = batch_size or %zu = batch_size * %zu", kOp,
                 call.weights_size, call.batch, elements, x.count);
  }
  check_data(call.weights, x.type, kOp, "weights");
  run->weights = call.weights;
  run->weight_lens = &weight_lens_;
  if (call.weights_size == 1) {
    run->weight = *weight_lens_.read(call.weights, 0, 1, &run->weight);
  } else {
    run->form = call.weights_size == call.batch ? WeightForm::per_sample : WeightForm::per_element;
  }
}

void LossFilter::forward(const LossCall& call, void* out) const {
  if (call.batch == 0) return;
  LossRun run;
  prepare(call, &run);
  check_data(out, problem_.out_type, kOp, "out");
  const size_t values = problem_.reduced() ? 1 : call.batch * problem_.terms();
  const Region out_region = {"out", out, values * type_bytes(problem_.out_type), 0, 1};
  check_disjoint_from_inputs(out_region, call, run);
  std::optional<Elements> dx_lens;
  if (call.in_delta) check_disjoint(attach_gradient(call, &dx_lens, &run), out_region);

  run.want_terms = true;
  if (!problem_.reduced()) {
    run.out = out;
    run.out_lens = &out_lens_;
    execute(&run);
    return;
  }
  const double by = divisor(run, options_.n_threads);
  if (by == 0) {
    clear_gradients(run);
    write_value(out, 0);
    return;
  }
  run.scale = static_cast<float>(1 / by);
  write_value(out, execute(&run) / by);
}

void LossFilter::backward(const LossCall& call, const BNNSNDArrayDescriptor* out_delta, size_t out_delta_stride) const {
  if (call.batch == 0) return;
  LossRun run;
  prepare(call, &run);
  std::optional<Elements> dx_lens;
  const Region dx_region = attach_gradient(call, &dx_lens, &run);

  const Tensor dy = resolve_with_data(out_delta, kOp, "out_delta");
  if (!is_float(dy.type)) {
    fail_unsupported("%s: out_delta has type %s; gradients are f32, f16 or bf16", kOp, type_name(dy.type));
  }
  if (problem_.reduced() ? dy.count != 1 && dy.count != problem_.out_count : dy.count != problem_.terms()) {
    fail_invalid("%s: out_delta has %zu elements, expected %zu: one for each loss of a sample", kOp, dy.count,
                 problem_.reduced() ? 1 : problem_.terms());
  }
  if (problem_.reduced()) {  // one gradient for the one value: its stride means nothing
    check_disjoint(dx_region, {"out_delta", dy.data, type_bytes(dy.type), 0, 1});
    const double by = divisor(run, options_.n_threads);
    if (by == 0) return clear_gradients(run);
    run.scale = static_cast<float>(load_element(dy, dy.data, 0) / by);
    execute(&run);
    return;
  }
  const size_t stride = input_batch_stride(out_delta_stride, call.batch, dy, kOp, "out_delta_stride");
  const Elements dy_lens(dy);
  run.dy = {&dy_lens, static_cast<char*>(dy.data), stride * type_bytes(dy.type)};
  check_disjoint(dx_region, {"out_delta", dy.data, dy.span_bytes(), run.dy.pitch, call.batch});
  execute(&run);
}

// The sum of the terms, after terms and gradients are written.
double LossFilter::execute(LossRun* run) const {
  const bool by_element = !problem_.per_sample() && !problem_.is_yolo();
  if (by_element) merge_batch(run);
  if (recording()) count_work(product_of(run->batch, run->n, 3 * sizeof(float)));  // x, labels, dx
  const auto kernel = by_element                                            ? element_loss
                      : problem_.is_yolo()                                  ? yolo_loss
                      : problem_.function == BNNSLossFunctionCosineDistance ? cosine_loss
                                                                            : softmax_loss;
  // A unit is a chunk of a sample, a sample, or a grid row of a sample.
  const size_t parts = by_element ? div_up(run->n, kLossChunk) : problem_.is_yolo() ? problem_.yolo.rows : 1;
  const size_t units = run->batch * parts, unit = div_up(run->n, parts);
  const size_t per_task = std::max({size_t{1}, kLossChunk / unit, div_up(units, kMaxTasks)});
  const size_t tasks = div_up(units, per_task);
  if (tasks == 1) return kernel(*run, {0, units});
  const size_t bytes = run->batch * run->n * 3 * sizeof(float);  // x, labels, dx
  double sums[kMaxTasks];
  parallel_for(tasks, threads_for(options_.n_threads, tasks, bytes), [&](size_t task, size_t) {
    sums[task] = kernel(*run, {task * per_task, std::min(units, (task + 1) * per_task)});
  });
  double sum = 0;
  for (size_t task = 0; task < tasks; ++task) sum += sums[task];
  return sum;
}

void LossFilter::write_value(void* out, double value) const {
  float buffer = static_cast<float>(value);
  float* to = out_lens_.target(out, 0, &buffer);
  *to = static_cast<float>(value);
  out_lens_.write(out, 0, 1, to);
}

}  // namespace bnns
