// What happens to the slab at one point: called with its offsets in data and in values. Each is a loop of its own in
// gather_run.cc, so the kind of slab is decided once per call.
#pragma once

#include <algorithm>
#include <cstring>

#include "src/engine/copy/copy_row.h"
#include "src/ops/gather/gather.h"
#include "src/simd/sums.h"
#include "src/tensor/elements.h"

namespace bnns::gather_slab {

// Offset of row `row` of the axes [first, rank).
inline void add_offsets(const GatherAxes& axes, size_t first, size_t row, size_t* data, size_t* values) {
  for (size_t k = first; k < axes.rank; ++k) {
    const size_t at = row % axes.axis[k].extent;
    row /= axes.axis[k].extent;
    *data += at * axes.axis[k].data;
    *values += at * axes.axis[k].values;
  }
}

// A slab of one element, moved; data and values are offsets.
template <class T, bool kGather>
struct MoveElement {
  T* data;
  T* values;
  void operator()(size_t at_data, size_t at_values) const {
    kGather ? values[at_values] = data[at_data] : data[at_data] = values[at_values];
  }
};

// A slab that is one row in both tensors.
template <class T, bool kGather>
struct MoveRow {
  T* data;
  T* values;
  size_t n;
  void operator()(size_t at_data, size_t at_values) const {
    kGather ? copy_row(data + at_data, values + at_values, n) : copy_row(values + at_values, data + at_data, n);
  }
};

// Any slab.
template <class T, bool kGather>
struct MoveRows {
  const GatherProblem& p;
  T* data;
  T* values;
  void operator()(size_t at_data, size_t at_values) const {
    const GatherAxis inner = p.slab.axis[0];
    for (size_t row = 0, rows = p.slab.count / inner.extent; row < rows; ++row) {
      size_t d = at_data, v = at_values;
      add_offsets(p.slab, 1, row, &d, &v);
      if (inner.data == 1 && inner.values == 1) {
        kGather ? copy_row(data + d, values + v, inner.extent) : copy_row(values + v, data + d, inner.extent);
        continue;
      }
      for (size_t i = 0; i < inner.extent; ++i) {
        T &x = data[d + i * inner.data], &y = values[v + i * inner.values];
        kGather ? y = x : x = y;
      }
    }
  }
};

// Adds a slab of f32 that is one row in both tensors, or one element.
struct AddElement {
  float* data;
  const float* values;
  void operator()(size_t at_data, size_t at_values) const { data[at_data] += values[at_values]; }
};
struct AddRow {
  float* data;
  const float* values;
  size_t n;
  void operator()(size_t at_data, size_t at_values) const { add_row(values + at_values, n, data + at_data); }
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

}  // namespace bnns::gather_slab
