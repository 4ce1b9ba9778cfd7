// Computes the gradients of a checked call: sums for repeated inputs, and what is element by element (which may
// overwrite out_delta in place) after every sum that reads it, on the way of the last one.

#include "src/ops/arithmetic/arithmetic_gradient.h"

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/arithmetic/arithmetic_sums.h"

namespace bnns::arithmetic {
namespace {

using Undo = GradientPlan::Undo;

// g and what else the formulas read, block by block, for one task on one thread.
class BlockGradients {
 public:
  // rows: buffer for two rows, for an activation that mixes rows.
  BlockGradients(const GradientPlan& plan, float* rows)
      : plan_(plan), stored_(as_stored(plan.problem.activation, plan.problem.out.type)), rows_(rows) {
    for (size_t k = 0; k < kArithmeticInputs; ++k) {
      if (plan.reads >> k & 1) plan.x[k].prepare(x_buffers_[k]);
    }
  }

  void load(size_t first, size_t n) {
    const ArithmeticProblem& p = plan_.problem;
    for (size_t k = 0; k < kArithmeticInputs; ++k) {
      if (plan_.reads >> k & 1) x_[k] = plan_.x[k].read(first, n, x_buffers_[k]);
    }
    if (plan_.recompute) arithmetic_forward_block(p.function, x_, y_buffer_, n);
    y_ = plan_.out_is_y ? plan_.out.read(first, n, out_buffer_) : y_buffer_;
    if (plan_.undo == Undo::from_output_rows) {
      g_ = row_gradient(first);
      return;
    }
    g_ = plan_.dy.read(first, n, dy_buffer_);
    if (plan_.undo == Undo::from_output) {
      const float* out = plan_.out.read(first, n, out_buffer_);
      activation_backward_from_output(stored_, out, g_, g_buffer_, n);
      g_ = g_buffer_;
    } else if (plan_.undo == Undo::from_input) {
      activation_backward_from_input(p.activation, y_buffer_, g_, g_buffer_, n);
      g_ = g_buffer_;
    }
  }

  // The gradient of the group's tensor for the loaded block: in `to`, or g itself where nothing has to be computed.
  const float* gradient(const GradientGroup& group, size_t n, float* to) {
    const BNNSArithmeticFunction function = plan_.problem.function;
    const size_t k = group.first_member();
    if (group.is_single()) {
      if (plan_.problem.info().gradient_is_g >> k & 1) return g_;
      arithmetic_backward_block(function, k, x_, y_, g_, to, n);
      return to;
    }
    // g is read again for every member, and `to` may be g: the sum grows in a buffer of its own.
    arithmetic_backward_block(function, k, x_, y_, g_, sum_buffer_, n);
    for (size_t j = k + 1; j < kArithmeticInputs; ++j) {
      if (!(group.members >> j & 1)) continue;
      arithmetic_backward_block(function, j, x_, y_, g_, term_buffer_, n);
      const float* const terms[] = {sum_buffer_, term_buffer_};
      arithmetic_forward_block(BNNSArithmeticAdd, terms, sum_buffer_, n);
    }
    return sum_buffer_;
  }

 private:
  // g of the row that holds element `first`; computed once per row.
  const float* row_gradient(size_t first) {
    const size_t length = plan_.problem.out.size[0], row = first / length;
    float *y = rows_, *g = rows_ + length;
    if (row != row_) {
      for_each_block(row * length, (row + 1) * length, plan_.cut, [&](size_t at, size_t n) {
        const size_t done = at - row * length;
        arithmetic_copy(plan_.out.read(at, n, out_buffer_), y + done, n);
        arithmetic_copy(plan_.dy.read(at, n, dy_buffer_), g + done, n);
      });
      activation_backward_from_output(plan_.problem.activation, y, g, g, length);
      row_ = row;
    }
    return g + first % length;
  }

  const GradientPlan& plan_;
  const Activation stored_;  // as seen from `out`
  float* rows_;
  size_t row_ = SIZE_MAX;
  const float *x_[kArithmeticInputs] = {}, *y_ = nullptr, *g_ = nullptr;
  alignas(64) float x_buffers_[kArithmeticInputs][kOperandBufferFloats], out_buffer_[kBlock], dy_buffer_[kBlock];
  alignas(64) float y_buffer_[kBlock], g_buffer_[kBlock], sum_buffer_[kBlock], term_buffer_[kBlock];
};

bool is_summed(const GradientPlan& plan, const GradientGroup& group) {
  if (!group.batched && plan.space.batch > 1) return true;
  const Tensor& out = plan.problem.out;
  return group.delta.count != out.count;
}

// ---- gradients that have an element of their own for every element of the output -------------------------------

struct ElementWise {
  Operand target;
  const GradientGroup* group = nullptr;
};
// Those of a call, in the order of inputs. That order is safe in place: of the functions that work in place, only add
// and subtract have two inputs, and the gradient of their first one is g itself, so the second still finds it in
// out_delta.
struct ElementWiseList {
  ElementWise items[kArithmeticInputs];
  size_t count = 0;

  // For the block that is loaded.
  void write(BlockGradients& block, size_t first, size_t n, float* buffer) const {
    for (size_t i = 0; i < count; ++i) {
      const bool accumulate = items[i].group->delta.accumulate;
      float* to = accumulate ? buffer : items[i].target.target(first, buffer);
      const float* d = block.gradient(*items[i].group, n, to);
      accumulate ? items[i].target.accumulate(first, n, d) : items[i].target.write(first, n, d);
    }
  }
};

// Never inlined, as sum_task: its blocks would be on the stack twice, once in the loop of a single thread.
[[gnu::noinline]] void element_wise_task(const GradientPlan& plan, const ElementWiseList& list, size_t begin,
                                         size_t end, float* rows) {
  alignas(64) float buffer[kBlock];
  BlockGradients block(plan, rows);
  for_each_block(begin, end, plan.cut, [&](size_t first, size_t n) {
    block.load(first, n);
    list.write(block, first, n, buffer);
  });
}

// ---- gradients that are sums -----------------------------------------------------------------------------------

// Sums as f32, to the gradient's elements [first, first + n).
void write_sums(const Operand& target, bool accumulate, const double* sums, size_t first, size_t n) {
  alignas(64) float buffer[kBlock];
  for_each_block(first, first + n, target.cut(), [&](size_t at, size_t m) {
    for (size_t i = 0; i < m; ++i) buffer[i] = static_cast<float>(sums[at - first + i]);
    accumulate ? target.accumulate(at, m, buffer) : target.write(at, m, buffer);
  });
}

struct Summed {
  const GradientGroup* group = nullptr;
  SumPlan sums;
  Operand target;  // in the order of the sums
  size_t threads = 1;

  size_t scratch_bytes() const { return sums.scratch_doubles(threads) * sizeof(double); }
};

// Parts visit every element once, so element-wise gradients can be written on the way, while the block is in cache.
[[gnu::noinline]] void sum_task(const GradientPlan& plan, const Summed& s, const ElementWiseList& list, size_t task,
                                double* sums, float* rows) {
  alignas(64) float buffer[kBlock];
  BlockGradients block(plan, rows);
  const bool accumulate = s.group->delta.accumulate;
  s.sums.for_each_part(task, [&](const SumPlan::Part& part) {
    std::fill_n(sums, s.sums.buffer(), 0.0);
    for (size_t i = 0; i < part.repeats; ++i) {
      const size_t begin = part.begin + i * part.step;
      for_each_block(begin, begin + part.length, plan.cut, [&](size_t first, size_t n) {
        block.load(first, n);
        s.sums.add(part, first, n, block.gradient(*s.group, n, buffer), sums);
        list.write(block, first, n, buffer);
      });
    }
    s.sums.close(sums);
    if (!s.sums.has_partial_sums()) write_sums(s.target, accumulate, sums, part.first_sum, part.sum_count);
  });
}

void run_sums(const GradientPlan& plan, const Summed& s, const ElementWiseList& list, double* scratch, float* rows,
              size_t row_buffer) {
  const bool partial = s.sums.has_partial_sums();
  parallel_for(s.sums.tasks(), s.threads, [&](size_t task, size_t worker) {
    double* sums = scratch + (partial ? task : worker) * s.sums.buffer();
    sum_task(plan, s, list, task, sums, rows + worker * row_buffer);
  });
  if (!partial) return;
  // Partial sums are joined in the order of their parts, whichever thread made them.
  const size_t count = s.sums.count(), chunks = div_up(count, kBlock);
  parallel_for(chunks, std::min(s.threads, chunks), [&](size_t chunk, size_t) {
    double joined[kBlock];
    const size_t first = chunk * kBlock, n = std::min(kBlock, count - first);
    s.sums.join(scratch, first, n, joined);
    write_sums(s.target, s.group->delta.accumulate, joined, first, n);
  });
}

}  // namespace

void run_gradients(GradientPlan& plan, const Options& options, ScratchShelf& shelf) {
  const ArithmeticProblem& p = plan.problem;
  const size_t total = plan.space.total;
  const bool rowwise = plan.undo == Undo::from_output_rows;
  const size_t work = checked_mul(total, (p.inputs() + 1) * sizeof(float), "arithmetic") * (p.info().costly ? 4 : 1);

  // Rows are prefixes of the order too, so blocks that stay inside a row stay inside all other stretches.
  if (rowwise) plan.cut = p.out.size[0];
  plan.cut = std::min({plan.cut, plan.dy.cut(), plan.out.cut()});
  for (const Operand& x : plan.x) plan.cut = std::min(plan.cut, x.cut());

  Summed summed[kArithmeticInputs];
  ElementWiseList list;
  size_t summed_count = 0, threads = 1, sum_bytes = 0;
  for (size_t i = 0; i < plan.group_count; ++i) {
    const GradientGroup& group = plan.groups[i];
    if (!is_summed(plan, group)) {
      ElementWise& item = list.items[list.count++];
      item = {Operand(plan.space, group.delta, group.delta.data, group.batch_stride), &group};
      plan.cut = std::min(plan.cut, item.target.cut());
      continue;
    }
    Summed& s = summed[summed_count++];
    s.group = &group;
    s.sums = SumPlan(plan.space, group.delta, group.batched);
    const Space kept(group.delta, group.batched ? plan.space.batch : 1, p.activation.is_rowwise());
    s.target = Operand(kept, group.delta, group.delta.data, group.batch_stride);
    s.threads = threads_for(options.n_threads, s.sums.tasks(), work);
    threads = std::max(threads, s.threads);
    sum_bytes = std::max(sum_bytes, s.scratch_bytes());
  }

  // A task of the element-wise loop has whole rows: a row's g comes from all of its dy, which may be overwritten in
  // place.
  const size_t unit = rowwise ? p.out.size[0] : 1, per_task = std::max<size_t>(1, kTaskElements / unit) * unit;
  const size_t tasks = div_up(total, per_task), element_threads = threads_for(options.n_threads, tasks, work);
  threads = std::max(threads, element_threads);

  // All memory before the first write. Small calls need none.
  const size_t row_buffer = rowwise ? 2 * p.out.size[0] : 0;
  sum_bytes = round_up(sum_bytes, kAlignment);
  const size_t bytes = sum_bytes + threads * row_buffer * sizeof(float);
  alignas(64) char small[4096];
  ScratchShelf::Lease lease(shelf, bytes <= sizeof small ? 0 : bytes);
  char* scratch = bytes <= sizeof small ? small : lease.as<char>();
  double* sums = reinterpret_cast<double*>(scratch);
  float* rows = reinterpret_cast<float*>(scratch + sum_bytes);

  const ElementWiseList none;
  for (size_t i = 0; i < summed_count; ++i) {
    const bool last = i + 1 == summed_count && !rowwise;
    run_sums(plan, summed[i], last ? list : none, sums, rows, row_buffer);
    if (last) return;
  }
  if (list.count == 0) return;
  parallel_for(tasks, element_threads, [&](size_t task, size_t worker) {
    const size_t begin = task * per_task, end = std::min(total, begin + per_task);
    element_wise_task(plan, list, begin, end, rows + worker * row_buffer);
  });
}

void clear_gradient(const Tensor& delta) {
  const float zeros[kBlock] = {};
  const Space space(delta, 1, false);
  const Operand target(space, delta, delta.data, 0);
  for_each_block(0, space.total, target.cut(), [&](size_t first, size_t n) { target.write(first, n, zeros); });
}

}  // namespace bnns::arithmetic
