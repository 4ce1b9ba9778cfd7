// Index checks and the moves. Offsets of a block of points are worked out once and used for a group of outer rows.

#include <algorithm>
#include <cstring>
#include <limits>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/ops/gather/gather.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

constexpr size_t kPoints = 256;  // of a block
constexpr size_t kTaskBytes = 128 * 1024;
constexpr size_t kNoPoint = std::numeric_limits<size_t>::max();

struct Offsets {
  size_t data[kPoints], values[kPoints];
};

// One index as it is stored; u64 beyond i64 stays out of every range.
template <class T>
bool in_range(T index, size_t limit) {
  if constexpr (std::is_signed_v<T>) {
    if (index < 0) return false;
  }
  return static_cast<uint64_t>(index) < limit;
}

// Offsets of points [first, first + n). Returns the first point whose index is out of range, or kNoPoint.
template <class T>
size_t locate(const GatherProblem& p, size_t first, size_t n, Offsets* to) {
  const T* indices = static_cast<const T*>(p.indices.data);
  size_t at[kMaxRank] = {}, data = 0, values = 0, index = 0;
  size_t rest = first;
  for (size_t k = 0; k < p.points.rank; ++k) {
    const GatherAxis& a = p.points.axis[k];
    at[k] = rest % a.extent;
    rest /= a.extent;
    data += at[k] * a.data, values += at[k] * a.values, index += at[k] * a.indices;
  }
  for (size_t i = 0; i < n; ++i) {
    size_t place = data;
    for (size_t l = 0; l < p.components; ++l) {
      const T chosen = indices[index + l * p.component_stride];
      if (!in_range(chosen, p.limit[l])) return first + i;
      place += static_cast<size_t>(chosen) * p.step[l];
    }
    to->data[i] = place;
    to->values[i] = values;
    for (size_t k = 0; k < p.points.rank; ++k) {
      const GatherAxis& a = p.points.axis[k];
      data += a.data, values += a.values, index += a.indices;
      if (++at[k] < a.extent) break;
      data -= a.data * a.extent, values -= a.values * a.extent, index -= a.indices * a.extent;
      at[k] = 0;
    }
  }
  return kNoPoint;
}

using Locate = size_t (*)(const GatherProblem&, size_t, size_t, Offsets*);

Locate locate_for(BNNSDataType type) {
  switch (type) {
    case BNNSDataTypeInt8:
      return locate<int8_t>;
    case BNNSDataTypeInt16:
      return locate<int16_t>;
    case BNNSDataTypeInt32:
      return locate<int32_t>;
    case BNNSDataTypeInt64:
      return locate<int64_t>;
    case BNNSDataTypeUInt8:
      return locate<uint8_t>;
    case BNNSDataTypeUInt16:
      return locate<uint16_t>;
    case BNNSDataTypeUInt32:
      return locate<uint32_t>;
    default:
      return locate<uint64_t>;
  }
}

void check_indices(const GatherProblem& p, Locate find) {
  Offsets offsets;
  for (size_t first = 0; first < p.points.count; first += kPoints) {
    const size_t bad = find(p, first, std::min(kPoints, p.points.count - first), &offsets);
    if (bad == kNoPoint) continue;
    size_t rest = bad, at = 0, l = 0;
    for (size_t k = 0; k < p.points.rank; rest /= p.points.axis[k].extent, ++k) {
      at += rest % p.points.axis[k].extent * p.points.axis[k].indices;
    }
    const Tensor& t = p.indices;
    const auto value = [&](size_t component) { return load_integer(t, t.data, at + component * p.component_stride); };
    while (value(l) >= 0 && static_cast<uint64_t>(value(l)) < p.limit[l]) ++l;
    fail_with_code(kGatherIndexCode, "%s: an index is %lld (position %zu of indices in memory), expected 0 to %zu",
                   p.op, static_cast<long long>(value(l)), at + l * p.component_stride, p.limit[l] - 1);
  }
}

// Offset of row `row` of the axes [first, rank).
void add_offsets(const GatherAxes& axes, size_t first, size_t row, size_t* data, size_t* values) {
  for (size_t k = first; k < axes.rank; ++k) {
    const size_t at = row % axes.axis[k].extent;
    row /= axes.axis[k].extent;
    *data += at * axes.axis[k].data;
    *values += at * axes.axis[k].values;
  }
}

// A slab at one point, element type T, bits moved.
template <class T>
struct Move {
  const GatherProblem& p;
  T* data;
  T* values;
  void operator()(size_t at_data, size_t at_values) const {
    const GatherAxis inner = p.slab.axis[0];
    const bool gather = p.action == GatherAction::gather;
    if (p.slab.count == 1) {
      gather ? values[at_values] = data[at_data] : data[at_data] = values[at_values];
      return;
    }
    for (size_t row = 0, rows = p.slab.count / inner.extent; row < rows; ++row) {
      size_t d = at_data, v = at_values;
      add_offsets(p.slab, 1, row, &d, &v);
      if (inner.data == 1 && inner.values == 1) {
        std::memcpy(gather ? values + v : data + d, gather ? data + d : values + v, inner.extent * sizeof(T));
      } else {
        for (size_t i = 0; i < inner.extent; ++i) {
          T &x = data[d + i * inner.data], &y = values[v + i * inner.values];
          gather ? y = x : x = y;
        }
      }
    }
  }
};

// Adds a slab to data, through f32.
struct AddFloats {
  const GatherProblem& p;
  Elements data, values;  // the inner axis of the slab
  explicit AddFloats(const GatherProblem& problem) : p(problem) {
    const GatherAxis inner = p.slab.axis[0];
    data = row_elements(p.data, inner.extent, inner.data);
    values = row_elements(p.values, inner.extent, inner.values);
  }
  void operator()(size_t at_data, size_t at_values) const {
    const size_t extent = p.slab.axis[0].extent;
    for (size_t row = 0, rows = p.slab.count / extent; row < rows; ++row) {
      size_t d = at_data, v = at_values;
      add_offsets(p.slab, 1, row, &d, &v);
      float buffer[kBlock];
      for (size_t i = 0; i < extent; i += kBlock) {
        const size_t n = std::min(kBlock, extent - i);
        const float* from =
            values.read(element_at(static_cast<const void*>(p.values.data), p.values.type, v), i, n, buffer);
        data.accumulate(element_at(p.data.data, p.data.type, d), i, n, from);
      }
    }
  }
};

// Adds a slab to data; integers of any width wrap around as unsigned ones do.
template <class T>
struct AddIntegers {
  const GatherProblem& p;
  T* data;
  const T* values;
  void operator()(size_t at_data, size_t at_values) const {
    for (size_t i = 0; i < p.slab.count; ++i) {
      size_t d = at_data, v = at_values;
      add_offsets(p.slab, 0, i, &d, &v);
      data[d] = static_cast<T>(data[d] + values[v]);
    }
  }
};

// Runs slab(data offset, values offset) for every point and outer row. A task is a group of outer rows, and for gather
// also a stretch of points: scatters may meet on one element, and keep the order of the points.
template <class Slab>
void for_each_point(const GatherProblem& p, Locate find, size_t n_threads, const Slab& slab) {
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
    const size_t first_row = task / stretches * group, last_row = std::min(outer, first_row + group);
    for (size_t first = begin; first < end; first += kPoints) {
      const size_t n = std::min(kPoints, end - first);
      find(p, first, n, &offsets);
      for (size_t row = first_row; row < last_row; ++row) {
        size_t data = 0, values = 0;
        add_offsets(p.outer, 0, row, &data, &values);
        for (size_t i = 0; i < n; ++i) slab(data + offsets.data[i], values + offsets.values[i]);
      }
    }
  });
}

template <class T>
void run_typed(const GatherProblem& p, Locate find, size_t n_threads) {
  T *data = static_cast<T*>(p.data.data), *values = static_cast<T*>(p.values.data);
  if (p.action == GatherAction::scatter_sum) {
    for_each_point(p, find, n_threads, AddIntegers<T>{p, data, values});
  } else {
    for_each_point(p, find, n_threads, Move<T>{p, data, values});
  }
}

}  // namespace

void run_gather(const GatherProblem& p, size_t n_threads) {
  const Locate find = locate_for(p.indices.type);
  check_indices(p, find);
  if (p.action == GatherAction::scatter_sum && is_float(p.data.type)) {
    return for_each_point(p, find, n_threads, AddFloats(p));
  }
  switch (type_bytes(p.data.type)) {
    case 1:
      return run_typed<uint8_t>(p, find, n_threads);
    case 2:
      return run_typed<uint16_t>(p, find, n_threads);
    case 4:
      return run_typed<uint32_t>(p, find, n_threads);
    default:
      return run_typed<uint64_t>(p, find, n_threads);
  }
}

}  // namespace bnns
