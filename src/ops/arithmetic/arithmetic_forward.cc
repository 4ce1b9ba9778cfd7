// ArithmeticFilter::forward: checks the call, then runs blocks of the flattened output in parallel.

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/parallel.h"
#include "src/ops/arithmetic/arithmetic.h"
#include "src/ops/arithmetic/arithmetic_operand.h"

namespace bnns {
using namespace arithmetic;
namespace {

constexpr const char* kOp = "arithmetic";
constexpr const char* kInputName[kArithmeticInputs] = {"in[0]", "in[1]", "in[2]"};
constexpr const char* kStrideName[kArithmeticInputs] = {"in_stride[0]", "in_stride[1]", "in_stride[2]"};

// The operands of one call.
struct Call {
  const ArithmeticProblem& problem;
  size_t cut = SIZE_MAX;
  Operand x[kArithmeticInputs], y;

  // f on [first, first + n), into the tensor or into buffer.
  void compute(size_t first, size_t n, float (*x_buffers)[kOperandBufferFloats], float* to) const {
    const float* blocks[kArithmeticInputs] = {};
    for (size_t k = 0; k < problem.inputs(); ++k) blocks[k] = x[k].read(first, n, x_buffers[k]);
    arithmetic_forward_block(problem.function, blocks, to, n);
  }
};

// Elements [begin, end), element by element.
void forward_blocks(const Call& call, size_t begin, size_t end) {
  alignas(64) float x_buffers[kArithmeticInputs][kOperandBufferFloats], y_buffer[kBlock];
  const ArithmeticProblem& p = call.problem;
  for (size_t k = 0; k < p.inputs(); ++k) call.x[k].prepare(x_buffers[k]);
  for_each_block(begin, end, call.cut, [&](size_t first, size_t n) {
    float* y = call.y.target(first, y_buffer);
    call.compute(first, n, x_buffers, y);
    if (!p.activation.is_identity()) activation_forward(p.activation, y, y, n);
    call.y.write(first, n, y);
  });
}

// The same for an activation that mixes the `length` elements of a row. A row is complete before any of it is written.
void forward_rows(const Call& call, size_t begin, size_t end, size_t length, float* row) {
  alignas(64) float x_buffers[kArithmeticInputs][kOperandBufferFloats];
  const ArithmeticProblem& p = call.problem;
  for (size_t k = 0; k < p.inputs(); ++k) call.x[k].prepare(x_buffers[k]);
  for (size_t start = begin; start < end; start += length) {
    for_each_block(start, start + length, call.cut,
                   [&](size_t first, size_t n) { call.compute(first, n, x_buffers, row + (first - start)); });
    activation_forward(p.activation, row, row, length);
    for_each_block(start, start + length, call.cut,
                   [&](size_t first, size_t n) { call.y.write(first, n, row + (first - start)); });
  }
}

}  // namespace

void ArithmeticFilter::forward(size_t batch, size_t inputs, const void* const* in, const size_t* in_stride, void* out,
                               size_t out_stride) {
  const ArithmeticProblem& p = problem_;
  if (inputs != p.inputs()) {
    fail_invalid("%s: number_of_inputs is %zu, expected %zu for %s", kOp, inputs, p.inputs(), p.info().name);
  }
  if (batch == 0) return;
  if (!in) fail_invalid("%s: in is NULL, expected an array of %zu pointers", kOp, inputs);
  if (recording()) {
    size_t bytes = p.out.span_bytes();
    for (size_t k = 0; k < inputs; ++k) bytes += p.in[k].span_bytes();
    count_work(product_of(batch, bytes));
  }
  if (!in_stride) fail_invalid("%s: in_stride is NULL, expected an array of %zu strides", kOp, inputs);
  check_data(out, p.out.type, kOp, "out");
  out_stride = output_batch_stride(out_stride, batch, p.out, kOp, "out_stride");
  const Placement to{&p.out, out, batch, out_stride};

  const Space space(p.out, batch, p.activation.is_rowwise());
  Call call{p, SIZE_MAX, {}, Operand(space, p.out, out, out_stride)};
  call.cut = call.y.cut();
  for (size_t k = 0; k < inputs; ++k) {
    check_data(in[k], p.in[k].type, kOp, kInputName[k]);
    Placement from{&p.in[k], in[k], 1, 0};
    if (p.is_sample(k)) {
      from.batch = batch;
      from.batch_stride = input_batch_stride(in_stride[k], batch, p.in[k], kOp, kStrideName[k]);
    }
    if (share_memory(from, to) && !same_place(from, to)) {
      fail_invalid("%s: %s and out share memory, expected the same tensor (same shape, strides and type) or none of it",
                   kOp, kInputName[k]);
    }
    call.x[k] = Operand(space, p.in[k], in[k], from.batch_stride);
    call.cut = std::min(call.cut, call.x[k].cut());
  }

  const size_t work = checked_mul(space.total, (inputs + 1) * sizeof(float), kOp) * (p.info().costly ? 4 : 1);
  if (!p.activation.is_rowwise()) {
    const size_t tasks = div_up(space.total, kTaskElements), threads = threads_for(options_.n_threads, tasks, work);
    parallel_for(tasks, threads, [&](size_t task, size_t) {
      const size_t begin = task * kTaskElements;
      forward_blocks(call, begin, std::min(space.total, begin + kTaskElements));
    });
    return;
  }
  const size_t length = p.out.size[0], rows = space.total / length;
  const size_t rows_per_task = std::max<size_t>(1, kTaskElements / length), tasks = div_up(rows, rows_per_task);
  const size_t threads = threads_for(options_.n_threads, tasks, work);
  float short_row[kBlock];
  const bool on_stack = threads == 1 && length <= kBlock;
  ScratchShelf::Lease lease(shelf_, on_stack ? 0 : checked_mul(threads * sizeof(float), length, kOp));
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    const size_t begin = task * rows_per_task, end = std::min(rows, begin + rows_per_task);
    float* row = on_stack ? short_row : lease.as<float>() + worker * length;
    forward_rows(call, begin * length, end * length, length, row);
  });
}

}  // namespace bnns
