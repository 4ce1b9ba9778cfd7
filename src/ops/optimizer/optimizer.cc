// One step over a list of tensors: checks, norms of the gradients, and the split of the work over threads.

#include "src/ops/optimizer/optimizer.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/inline_buffer.h"
#include "src/core/log.h"
#include "src/core/notes.h"
#include "src/core/parallel.h"
#include "src/filter/nan_check.h"
#include "src/ops/norm/norm.h"
#include "src/tensor/distinct.h"
#include "src/tensor/overlap.h"
#include "src/tensor/tensor.h"

namespace bnns {
namespace {

constexpr const char* kOp = "optimizer";

// ---- tensors ----------------------------------------------------------------------------------------------------

// "parameters[12]", without printf: a step of a small network is a few microseconds and has a dozen tensors.
struct ListName {
  char text[48];
  ListName(const char* list, size_t index) {
    char digits[24];
    size_t count = 0, at = 0;
    do digits[count++] = static_cast<char>('0' + index % 10);
    while (index /= 10);
    while (*list) text[at++] = *list++;
    text[at++] = '[';
    while (count) text[at++] = digits[--count];
    text[at++] = ']';
    text[at] = 0;
  }
};

// A contiguous f32 tensor. Where its elements, or those of its parameter, are not in the order of the layout, the two
// have the same sizes and strides.
Tensor check_tensor(const BNNSNDArrayDescriptor* d, const char* list, size_t index, const Tensor* parameter = nullptr) {
  const ListName name(list, index);
  if (!d) fail_invalid("%s: %s is NULL, expected a descriptor", kOp, name.text);
  const Tensor t = resolve(*d, kOp, name.text);
  if (!t.is(BNNSDataTypeFloat32)) {
    fail_unsupported("%s: %s has type %s; optimizers work on f32", kOp, name.text, type_name(t.type));
  }
  check_data(t.data, t.type, kOp, name.text);
  if (t.span > t.count) {
    fail_invalid("%s: %s has gaps between its elements, expected a contiguous tensor", kOp, name.text);
  }
  check_distinct(t, kOp, name.text);
  if (parameter && !(t.dense && parameter->dense) &&
      (t.rank != parameter->rank || !std::equal(t.size, t.size + t.rank, parameter->size) ||
       !std::equal(t.stride, t.stride + t.rank, parameter->stride))) {
    fail_invalid("%s: %s lies in another order than its parameter, expected the same sizes and strides", kOp,
                 name.text);
  }
  return t;
}

void check_count(size_t count, size_t expected, const char* list, size_t index, size_t parameter) {
  if (count == expected) return;
  fail_invalid("%s: %s has %zu elements, expected %zu as in parameters[%zu]", kOp, ListName(list, index).text, count,
               expected, parameter);
}

// One tensor of the call: where it is and which of the call's elements it holds.
struct Entry {
  OptimizerSlice slice;  // the whole tensor
  size_t first;          // elements of the tensors before it
  GradientScale scale;
};

constexpr size_t kInlineTensors = 24;  // lists up to here need no allocation

// Elements of one task. Memory likes long runs of each stream: SGD on 25 million parameters takes 6.8 ms in tasks of
// 64 KiB and 6.4 in tasks of 1 MiB (two cores of a Zen 4); 64 tasks and more still end together.
constexpr size_t kShortChunk = 16 * 1024, kLongChunk = 256 * 1024;

void check_tensors(const OptimizerProblem& problem, size_t n, BNNSNDArrayDescriptor* const* parameters,
                   const BNNSNDArrayDescriptor* const* gradients, BNNSNDArrayDescriptor* const* accumulators,
                   Entry* entries, Extent* extents) {
  if (!parameters) fail_invalid("%s: parameters is NULL, expected %zu descriptors", kOp, n);
  if (!gradients) fail_invalid("%s: gradients is NULL, expected %zu descriptors", kOp, n);
  if (!accumulators && problem.states) {
    fail_invalid("%s: accumulators is NULL, expected %zu = %zu x %zu descriptors for %s", kOp, problem.states * n,
                 problem.states, n, problem.text().c_str());
  }
  size_t total = 0, extent = 0;
  for (size_t i = 0; i < n; ++i) {
    Entry& e = entries[i];
    const Tensor w = check_tensor(parameters[i], "parameters", i);
    const size_t count = w.count, bytes = count * sizeof(float);
    check_count(check_tensor(gradients[i], "gradients", i, &w).count, count, "gradients", i, i);
    e.slice = {static_cast<float*>(parameters[i]->data), static_cast<const float*>(gradients[i]->data), {}, count};
    extents[extent++] = Extent(e.slice.w, bytes, "parameters", i, true);
    extents[extent++] = Extent(e.slice.g, bytes, "gradients", i, false);
    for (size_t s = 0; s < problem.states; ++s) {
      const size_t k = s * n + i;  // grouped by role
      check_count(check_tensor(accumulators[k], "accumulators", k, &w).count, count, "accumulators", k, i);
      e.slice.state[s] = static_cast<float*>(accumulators[k]->data);
      extents[extent++] = Extent(e.slice.state[s], bytes, "accumulators", k, true);
    }
    e.first = total;
    total = checked_add(total, count, "optimizer: elements of parameters");
  }
  check_extents(extents, extent, kOp);
}

// ---- clipping by norm -------------------------------------------------------------------------------------------

[[noreturn]] void fail_norm(const char* what) {
  fail_invalid("%s: the norm of %s is not finite, so it cannot be clipped; nothing was updated", kOp, what);
}

// Sets the factor of every tensor. Norms are those of the gradients as given, before gradient_scale.
void set_scales(const OptimizerProblem& problem, size_t n, size_t n_threads, Entry* entries) {
  const double gradient_scale = problem.gradient_scale;
  double sum = 0;
  for (size_t i = 0; i < n; ++i) {
    double factor = 1;
    const bool needs_norm =
        problem.clipping == Clipping::norm || (problem.clipping == Clipping::global_norm && problem.use_norm == 0);
    if (needs_norm) {
      const double squares = sum_of_squares(entries[i].slice.g, entries[i].slice.n, n_threads);
      if (!std::isfinite(squares)) fail_norm(ListName("gradients", i).text);
      if (problem.clipping == Clipping::norm) factor = clip_factor(std::sqrt(squares), problem.max_norm);
      sum += squares;
    }
    entries[i].scale = split_scale(factor * gradient_scale);
  }
  if (problem.clipping != Clipping::global_norm) return;
  const double norm = problem.use_norm != 0 ? problem.use_norm : std::sqrt(sum);
  const GradientScale scale = split_scale(clip_factor(norm, problem.max_norm) * gradient_scale);
  for (size_t i = 0; i < n; ++i) entries[i].scale = scale;
}

// ---- the update -------------------------------------------------------------------------------------------------

OptimizerSlice part(const OptimizerSlice& s, size_t begin, size_t end) {
  OptimizerSlice p{s.w + begin, s.g + begin, {}, end - begin};
  for (size_t k = 0; k < 3; ++k) p.state[k] = s.state[k] ? s.state[k] + begin : nullptr;
  return p;
}

// The tensors lie end to end in one row of elements, and a task is a chunk of them: many small tensors share a task,
// a large one is spread over many.
void update_chunk(const OptimizerProblem& problem, const Entry* entries, size_t n, size_t begin, size_t end) noexcept {
  const Entry* e =
      std::upper_bound(entries, entries + n, begin, [](size_t at, const Entry& entry) { return at < entry.first; }) - 1;
  for (; begin < end; ++e) {
    const size_t stop = std::min(end, e->first + e->slice.n);
    optimizer_update(problem, e->scale, part(e->slice, begin - e->first, stop - e->first));
    begin = stop;
  }
}

// What threads_for counts. A network of 100 K parameters sits in one core's L2, where a second thread costs more in
// waking and in moving cache lines than it saves (adam 33 us on one thread, 62 us on two on a busy machine); rules
// without a root and a quotient are limited by L2 even longer.
size_t thread_work(UpdateRule rule, size_t elements) {
  return rule >= UpdateRule::adam ? elements : elements / 2;
}

// ---- what is said about a step ----------------------------------------------------------------------------------

void give_notes(const OptimizerProblem& problem, const Entry* entries, size_t n) noexcept {
  static std::atomic<bool> said{false};
  if (problem.gradient_scale == 0 && !said.exchange(true, std::memory_order_relaxed)) {
    note("%s: gradient_scale is 0, so that nothing is learnt from gradients; 1 takes them as they are", kOp);
  }
  for (size_t i = 0; i < n; ++i) note_copied_parameter(entries[i].slice.w, entries[i].slice.n * sizeof(float), i);
}

void check_parameters(const OptimizerProblem& problem, const Entry* entries, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const Tensor w = vector_tensor(entries[i].slice.n, entries[i].slice.w);
    check_written("optimizer " + problem.text(), ListName("parameters", i).text, w, w.data);
  }
}

}  // namespace

GradientScale split_scale(double factor) {
  // Below 2^-64 part of the factor goes ahead as a power of two, so that neither half is subnormal.
  if (std::fabs(factor) >= 0x1p-64 || factor == 0) return {1, static_cast<float>(factor)};
  return {0x1p-64f, static_cast<float>(factor * 0x1p64)};
}

void optimizer_step(const OptimizerProblem& problem, size_t n, BNNSNDArrayDescriptor* const* parameters,
                    const BNNSNDArrayDescriptor* const* gradients, BNNSNDArrayDescriptor* const* accumulators,
                    const Options& options) {
  if (n == 0) return;
  InlineBuffer<Entry, kInlineTensors> entries(options, n, "the list of parameters");
  {
    const size_t tensors = 2 + problem.states;
    InlineBuffer<Extent, kInlineTensors * 4> extents(
        options, checked_mul(n, tensors, "optimizer: number_of_parameters"), "the list of tensors");
    check_tensors(problem, n, parameters, gradients, accumulators, entries.data(), extents.data());
  }
  set_scales(problem, n, options.n_threads, entries.data());

  const size_t total = entries[n - 1].first + entries[n - 1].slice.n;
  if (recording())
    count_work(product_of(total, (3 + 2 * problem.states) * sizeof(float)));  // w and states twice, gradients once
  const size_t chunk = std::clamp(round_up(total / 64, kShortChunk), kShortChunk, kLongChunk);
  const size_t tasks = div_up(total, chunk);
  const size_t threads = threads_for(options.n_threads, tasks, thread_work(problem.rule, total));
  parallel_for(tasks, threads, [&](size_t task, size_t) {
    const size_t begin = task * chunk, end = std::min(total, begin + chunk);
    update_chunk(problem, entries.data(), n, begin, end);
  });
  if (notes_wanted()) give_notes(problem, entries.data(), n);
  if (nan_check_wanted()) check_parameters(problem, entries.data(), n);
}

}  // namespace bnns
