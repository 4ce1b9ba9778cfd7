// Index checks and the moves. Offsets of a block of points are worked out once and used for a group of outer rows.

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/ops/gather/gather_slab.h"
#include "src/tensor/elements.h"
#include "src/tensor/with_integer.h"

namespace bnns {
namespace {

using namespace gather_slab;

constexpr size_t kPoints = 1024;  // of a block
constexpr size_t kTaskBytes = 128 * 1024;

struct Offsets {
  size_t data[kPoints], values[kPoints];
};

// A negative index is a large number here; u64 beyond i64 stays out of every range.
template <class T>
size_t as_unsigned(T index) {
  if constexpr (std::is_signed_v<T>) return static_cast<size_t>(static_cast<int64_t>(index));
  return static_cast<size_t>(index);
}

// Calls run(i, m, data, values, index) for points [first, first + n) in stretches along the fastest axis of points:
// i is the number of the first point, m how many there are, the offsets are those of the first.
template <class Run>
void for_each_stretch(const GatherAxes& points, size_t first, size_t n, Run&& run) {
  size_t at[kMaxRank] = {}, data = 0, values = 0, index = 0;
  for (size_t k = 0; k < points.rank && first != 0; ++k) {
    const GatherAxis& a = points.axis[k];
    at[k] = first % a.extent;
    first /= a.extent;
    data += at[k] * a.data, values += at[k] * a.values, index += at[k] * a.indices;
  }
  for (size_t i = 0;;) {
    const GatherAxis& fastest = points.axis[0];
    const size_t m = std::min(n - i, fastest.extent - at[0]);
    run(i, m, data, values, index);
    if ((i += m) == n) return;
    data -= at[0] * fastest.data, values -= at[0] * fastest.values, index -= at[0] * fastest.indices;
    at[0] = 0;
    for (size_t k = 1; k < points.rank; ++k) {
      const GatherAxis& a = points.axis[k];
      data += a.data, values += a.values, index += a.indices;
      if (++at[k] < a.extent) break;
      data -= a.data * a.extent, values -= a.values * a.extent, index -= a.indices * a.extent;
      at[k] = 0;
    }
  }
}

// Offsets of points [first, first + n), whose indices are in range.
template <class T>
void locate(const GatherProblem& p, size_t first, size_t n, Offsets* to) {
  const T* indices = static_cast<const T*>(p.indices.data);
  const GatherAxis along = p.points.axis[0];
  for_each_stretch(p.points, first, n, [&](size_t at, size_t m, size_t data, size_t values, size_t index) {
    size_t *data_to = to->data + at, *values_to = to->values + at;
    const size_t step = p.step[0];
    for (size_t i = 0; i < m; ++i) {
      data_to[i] = data + i * along.data + as_unsigned(indices[index + i * along.indices]) * step;
      values_to[i] = values + i * along.values;
    }
    for (size_t l = 1; l < p.components; ++l) {
      const T* component = indices + index + l * p.component_stride;
      for (size_t i = 0; i < m; ++i) data_to[i] += as_unsigned(component[i * along.indices]) * p.step[l];
    }
  });
}

// Whether all points have indices in range.
template <class T>
bool in_range(const GatherProblem& p) {
  const T* indices = static_cast<const T*>(p.indices.data);
  const size_t along = p.points.axis[0].indices;
  bool bad = false;
  for_each_stretch(p.points, 0, p.points.count, [&](size_t, size_t m, size_t, size_t, size_t index) {
    for (size_t l = 0; l < p.components; ++l) {
      const T* component = indices + index + l * p.component_stride;
      const size_t limit = p.limit[l];
      for (size_t i = 0; i < m; ++i) bad |= as_unsigned(component[i * along]) >= limit;
    }
  });
  return !bad;
}

struct Indices {
  void (*locate)(const GatherProblem&, size_t, size_t, Offsets*) = nullptr;
  bool (*in_range)(const GatherProblem&) = nullptr;
  explicit Indices(BNNSDataType type) {
    with_integer(type, [&](auto t) { locate = &bnns::locate<decltype(t)>, in_range = &bnns::in_range<decltype(t)>; });
  }
};

void check_indices(const GatherProblem& p, const Indices& indices) {
  if (indices.in_range(p)) return;
  const Tensor& t = p.indices;
  for (size_t point = 0;; ++point) {  // one of them is wrong
    size_t at = 0, rest = point;
    for (size_t k = 0; k < p.points.rank; rest /= p.points.axis[k].extent, ++k) {
      at += rest % p.points.axis[k].extent * p.points.axis[k].indices;
    }
    for (size_t l = 0; l < p.components; ++l) {
      const int64_t value = load_integer(t, t.data, at + l * p.component_stride);
      if (value >= 0 && static_cast<uint64_t>(value) < p.limit[l]) continue;
      fail_with_code(kGatherIndexCode, "%s: an index is %lld (position %zu of indices in memory), expected 0 to %zu",
                     p.op, static_cast<long long>(value), at + l * p.component_stride, p.limit[l] - 1);
    }
  }
}

// Points [first, first + n) with one index of the common types each: no offsets are kept.
template <class T, class Slab>
void run_points(const GatherProblem& p, size_t first, size_t n, const Slab& slab) {
  const T* indices = static_cast<const T*>(p.indices.data);
  const GatherAxis along = p.points.axis[0];
  for_each_stretch(p.points, first, n, [&](size_t, size_t m, size_t data, size_t values, size_t index) {
    for (size_t i = 0; i < m; ++i) {
      const size_t chosen = as_unsigned(indices[index + i * along.indices]);
      slab(data + i * along.data + chosen * p.step[0], values + i * along.values);
    }
  });
}

// Runs slab(data offset, values offset) for every point and outer row. A task is a group of outer rows, and for gather
// also a stretch of points: scatters may meet on one element, and keep the order of the points.
template <class Slab>
void for_each_point(const GatherProblem& p, const Indices& indices, size_t n_threads, const Slab& slab) {
  const size_t element = type_bytes(p.data.type), points = p.points.count, outer = p.outer.count;
  const size_t bytes = p.values.count * element;
  const bool split = p.action == GatherAction::gather;
  // As many points as make a task worth while, and at least one block; then as many outer rows.
  const size_t stretch = split ? std::min(points, std::max(kPoints, kTaskBytes / (p.slab.count * element))) : points;
  const size_t stretches = div_up(points, stretch);
  const size_t group = std::min(outer, std::max<size_t>(1, kTaskBytes / (stretch * p.slab.count * element)));
  const size_t tasks = stretches * div_up(outer, group);
  parallel_for(tasks, threads_for(n_threads, tasks, bytes / 4), [&](size_t task, size_t) {
    Offsets offsets;
    const size_t begin = task % stretches * stretch, end = std::min(points, begin + stretch);
    if (outer == 1 && p.components == 1 && p.indices.is(BNNSDataTypeInt64)) {
      return run_points<int64_t>(p, begin, end - begin, slab);
    }
    if (outer == 1 && p.components == 1 && p.indices.is(BNNSDataTypeInt32)) {
      return run_points<int32_t>(p, begin, end - begin, slab);
    }
    const size_t first_row = task / stretches * group, last_row = std::min(outer, first_row + group);
    for (size_t first = begin; first < end; first += kPoints) {
      const size_t n = std::min(kPoints, end - first);
      indices.locate(p, first, n, &offsets);
      for (size_t row = first_row; row < last_row; ++row) {
        size_t data = 0, values = 0;
        if (row != 0) add_offsets(p.outer, 0, row, &data, &values);
        for (size_t i = 0; i < n; ++i) slab(data + offsets.data[i], values + offsets.values[i]);
      }
    }
  });
}

bool is_row(const GatherProblem& p) {
  return p.slab.rank == 1 && p.slab.axis[0].data == 1 && p.slab.axis[0].values == 1;
}

template <class T, bool kGather>
void move_slabs(const GatherProblem& p, const Indices& indices, size_t n_threads) {
  T *data = static_cast<T*>(p.data.data), *values = static_cast<T*>(p.values.data);
  if (p.slab.count == 1) return for_each_point(p, indices, n_threads, MoveElement<T, kGather>{data, values});
  if (is_row(p)) return for_each_point(p, indices, n_threads, MoveRow<T, kGather>{data, values, p.slab.count});
  for_each_point(p, indices, n_threads, MoveRows<T, kGather>{p, data, values});
}

template <class T>
void run_typed(const GatherProblem& p, const Indices& indices, size_t n_threads) {
  switch (p.action) {
    case GatherAction::gather:
      return move_slabs<T, true>(p, indices, n_threads);
    case GatherAction::scatter:
      return move_slabs<T, false>(p, indices, n_threads);
    case GatherAction::scatter_sum:
      const AddIntegers<T> add{p, static_cast<T*>(p.data.data), static_cast<const T*>(p.values.data)};
      return for_each_point(p, indices, n_threads, add);
  }
}

}  // namespace

void run_gather(const GatherProblem& p, size_t n_threads) {
  const Indices indices(p.indices.type);
  check_indices(p, indices);
  if (p.action == GatherAction::scatter_sum && is_float(p.data.type)) {
    float* data = static_cast<float*>(p.data.data);
    const float* values = static_cast<const float*>(p.values.data);
    const bool f32 = p.data.is(BNNSDataTypeFloat32);
    if (f32 && p.slab.count == 1) return for_each_point(p, indices, n_threads, AddElement{data, values});
    if (f32 && is_row(p)) return for_each_point(p, indices, n_threads, AddRow{data, values, p.slab.count});
    return for_each_point(p, indices, n_threads, AddFloats(p));
  }
  switch (type_bytes(p.data.type)) {
    case 1:
      return run_typed<uint8_t>(p, indices, n_threads);
    case 2:
      return run_typed<uint16_t>(p, indices, n_threads);
    case 4:
      return run_typed<uint32_t>(p, indices, n_threads);
    default:
      return run_typed<uint64_t>(p, indices, n_threads);
  }
}

}  // namespace bnns
