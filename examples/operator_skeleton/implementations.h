// The algorithms of scale and shift, forward and backward, and how both cut a call into tasks.
#pragma once

#include <algorithm>

#include "examples/operator_skeleton/scale_shift.h"
#include "src/core/checked.h"
#include "src/core/parallel.h"

namespace bnns {

using ScaleShiftImplementation = Implementation<ScaleShiftRun, void (*)(const ScaleShiftRun&)>;
extern const ScaleShiftImplementation kScaleShiftForward[2];
extern const ScaleShiftImplementation kScaleShiftBackward[2];

// planes_simd.cc: the planes of every tensor are dense f32.
bool accepts_planes_forward(const ScaleShiftRun& run);
bool accepts_planes_backward(const ScaleShiftRun& run);
void planes_forward(const ScaleShiftRun& run);
void planes_backward(const ScaleShiftRun& run);

// elements.cc: any layout, strides and type.
void elements_forward(const ScaleShiftRun& run);
void elements_backward(const ScaleShiftRun& run);

inline constexpr size_t kScaleShiftTask = 16 * 1024;  // elements, so that a task is worth handing to a thread

// body(sample, channel) for every plane: they are independent.
template <class Body>
void for_each_plane(const ScaleShiftRun& run, Body&& body) {
  const size_t planes = run.batch * run.channels, per_task = std::max(size_t{1}, kScaleShiftTask / run.plane);
  const size_t tasks = div_up(planes, per_task), bytes = 2 * planes * run.plane * sizeof(float);
  parallel_for(tasks, threads_for(run.n_threads, tasks, bytes), [&](size_t task, size_t) {
    const size_t end = std::min(planes, (task + 1) * per_task);
    for (size_t i = task * per_task; i < end; ++i) body(i / run.channels, i % run.channels);
  });
}

// body(channel) for every channel. One task adds up all samples of a channel in order: the bits of a sum do not depend
// on the number of threads.
template <class Body>
void for_each_channel(const ScaleShiftRun& run, Body&& body) {
  const size_t elements = std::max(size_t{1}, run.batch * run.plane);
  const size_t per_task = std::max(size_t{1}, kScaleShiftTask / elements);
  const size_t tasks = div_up(run.channels, per_task), bytes = 3 * run.channels * elements * sizeof(float);
  parallel_for(tasks, threads_for(run.n_threads, tasks, bytes), [&](size_t task, size_t) {
    const size_t end = std::min(run.channels, (task + 1) * per_task);
    for (size_t channel = task * per_task; channel < end; ++channel) body(channel);
  });
}

}  // namespace bnns
