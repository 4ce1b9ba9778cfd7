// What the layer's forward and backward passes share: operands, and the split of a batch into tasks.
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/activation/batch_elements.h"

namespace bnns {

inline constexpr const char* kActivation = "activation";  // the operator's name in messages

// A task of an element-wise pass: 64 KiB of f32, so that scheduling costs nothing beside the arithmetic.
inline constexpr size_t kActivationTask = 16 * 1024;

// Types narrower than a byte share bytes between tasks: such outputs are written by one thread.
inline size_t threads_of(size_t n_threads, size_t tasks, size_t bytes, const BatchOperand& written) {
  return type_bytes(written.sample.type) ? threads_for(n_threads, tasks, bytes) : 1;
}

inline size_t bytes_of(const BatchOperand& operand, size_t elements) {
  return elements * type_bits(operand.sample.type) / 8;
}

// Runs body(first, end) over [0, total) in tasks of kActivationTask.
template <class Body>
void for_each_task(size_t total, size_t threads, Body&& body) {
  parallel_for(div_up(total, kActivationTask), threads, [&](size_t task, size_t) {
    body(task * kActivationTask, std::min(total, (task + 1) * kActivationTask));
  });
}

inline BatchOperand input_operand(const Tensor& t, size_t batch, const void* data, size_t stride, const char* name,
                                  const char* stride_name) {
  check_data(data, t.type, kActivation, name);
  return {t, data, input_batch_stride(stride, batch, t, kActivation, stride_name), name};
}

inline BatchOperand output_operand(const Tensor& t, size_t batch, const void* data, size_t stride, const char* name,
                                   const char* stride_name) {
  check_data(data, t.type, kActivation, name);
  return {t, data, output_batch_stride(stride, batch, t, kActivation, stride_name), name};
}

}  // namespace bnns
