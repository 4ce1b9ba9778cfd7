// Rows along the axis are read as f32, or as they are stored where that does not hold them, and selected one by one.

#include "src/ops/topk/topk.h"

#include <algorithm>
#include <limits>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/filter/batch_pair.h"
#include "src/ops/topk/topk_select.h"
#include "src/tensor/distinct.h"
#include "src/tensor/elements.h"
#include "src/tensor/with_integer.h"

namespace bnns {
namespace {

// Apple's worked example counts the axes of a RowMajorMatrix logically: 0 is the row index, size[1] (K45).
size_t size_axis(const Tensor& x, size_t axis, const char* op) {
  if (axis >= x.rank) fail_invalid("%s: axis is %zu, expected less than %zu, the rank of input", op, axis, x.rank);
  return x.layout == BNNSDataLayoutRowMajorMatrix ? 1 - axis : axis;
}

void check_input(TopKProblem* p, const BNNSNDArrayDescriptor* x, size_t x_stride, size_t axis) {
  p->x = resolve_with_data(x, p->op, "input");
  check_plain(p->x, p->op, "input");
  p->wide = !is_float(p->x.type) && type_bytes(p->x.type) > 2;
  if (p->wide && !(p->x.scale > 0)) {  // their order is that of what is stored
    fail_unsupported("%s: input has type %s and scale %g, expected a scale above 0", p->op, type_name(p->x.type),
                     static_cast<double>(p->x.scale));
  }
  p->axis = size_axis(p->x, axis, p->op);
  if (p->k == 0 || p->k > p->x.size[p->axis]) {
    fail_invalid("%s: K is %zu, expected 1 to %zu, the extent of the axis", p->op, p->k, p->x.size[p->axis]);
  }
  p->x_stride = input_batch_stride(x_stride, p->batch, p->x, p->op, "input_batch_stride");
}

// t has the sizes of x, with `extent` on the axis.
void check_shape(const TopKProblem& p, const Tensor& t, const char* field) {
  bool fits = t.rank == p.x.rank;
  for (size_t k = 0; fits && k < t.rank; ++k) fits = t.size[k] == (k == p.axis ? p.k : p.x.size[k]);
  if (!fits) {
    fail_invalid("%s: %s is %s, expected the sizes of input, %s, with K = %zu on size[%zu]", p.op, field,
                 t.text().c_str(), p.x.text().c_str(), p.k, p.axis);
  }
}

// t has the sizes of x without the axis (or with 1 there); the result has the axes of x, with extent 1 on the axis.
Tensor without_axis(const TopKProblem& p, const Tensor& t, const char* field) {
  Tensor view = t;
  bool fits = false;
  if (t.rank == p.x.rank) {
    fits = true;
    for (size_t k = 0; k < t.rank; ++k) fits &= t.size[k] == (k == p.axis ? 1 : p.x.size[k]);
  } else if (t.rank + 1 == p.x.rank) {
    fits = true;
    view.rank = p.x.rank;
    for (size_t k = 0, j = 0; k < p.x.rank; ++k) {
      const bool removed = k == p.axis;
      view.size[k] = removed ? 1 : t.size[j];
      view.stride[k] = removed ? 0 : t.stride[j];
      fits &= removed || t.size[j] == p.x.size[k];
      j += !removed;
    }
  }
  if (!fits) {
    fail_invalid("%s: %s is %s, expected the sizes of input, %s, without size[%zu]", p.op, field, t.text().c_str(),
                 p.x.text().c_str(), p.axis);
  }
  return view;
}

void check_index_type(const Tensor& t, const char* op, const char* field) {
  if (!is_integer(t.type) || type_bytes(t.type) == 0) {
    fail_invalid("%s: %s has type %s, expected an integer of 8 bits or more", op, field, type_name(t.type));
  }
}

// The rows of the tensors, counted upwards: all axes but one, batch slowest.
class Rows {
 public:
  size_t x = 0, values = 0, indices = 0;  // offsets of the row

  Rows(const TopKProblem& p, size_t row) {
    for (size_t j = 0; j < p.x.rank; ++j) {
      const size_t k = p.x.axis[j];
      if (k != p.axis && p.x.size[k] > 1) add(p.x.size[k], p.x.stride[k], p.values.stride[k], p.indices.stride[k]);
    }
    if (p.batch > 1) add(p.batch, p.x_stride, p.values_stride, p.indices_stride);
    for (size_t j = 0; j < rank_; row /= axes_[j++].extent) {
      Axis& a = axes_[j];
      a.at = row % a.extent;
      x += a.at * a.x, values += a.at * a.values, indices += a.at * a.indices;
    }
  }
  static size_t count(const TopKProblem& p) { return p.x.count / p.x.size[p.axis] * p.batch; }
  void next() {
    for (size_t j = 0; j < rank_; ++j) {
      Axis& a = axes_[j];
      x += a.x, values += a.values, indices += a.indices;
      if (++a.at < a.extent) return;
      x -= a.x * a.extent, values -= a.values * a.extent, indices -= a.indices * a.extent;
      a.at = 0;
    }
  }

 private:
  struct Axis {
    size_t extent, x, values, indices, at;
  };
  void add(size_t extent, size_t of_x, size_t of_values, size_t of_indices) {
    axes_[rank_++] = {extent, of_x, of_values, of_indices, 0};
  }
  Axis axes_[kMaxRank + 1];
  size_t rank_ = 0;
};

// Elements of t along the axis.
Elements along_axis(const TopKProblem& p, const Tensor& t) {
  Tensor row = t;
  row.rank = 1;
  row.axis[0] = 0;
  row.size[0] = row.count = t.size[p.axis];
  row.stride[0] = t.stride[p.axis];
  return Elements(row);
}

// Scratch of one thread: a row, where it is not read in place, and keys.
struct Scratch {
  size_t row_bytes, bytes;
  Scratch(const TopKProblem& p, const Elements& lens, size_t key_bytes) {
    const size_t n = lens.direct() || p.wide ? 0 : p.x.size[p.axis];
    row_bytes = round_up(checked_mul(n, sizeof(float), p.op), kAlignment);
    bytes = checked_add(row_bytes, round_up(key_bytes, kAlignment), p.op);
  }
};

// Calls row(rows, scratch of the thread) for every row.
template <class Row>
void for_each_row(const TopKProblem& p, const Options& options, const Scratch& scratch, Row&& row) {
  const size_t n = p.x.size[p.axis], count = Rows::count(p), group = std::max<size_t>(1, 4096 / n);
  const size_t tasks = div_up(count, group), threads = threads_for(options.n_threads, tasks, 4 * count * n);
  const Buffer memory(options, checked_mul(threads, scratch.bytes, p.op), "rows of topk");
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    char* own = memory.as<char>() + worker * scratch.bytes;
    Rows rows(p, task * group);
    for (size_t r = task * group; r < std::min(count, (task + 1) * group); ++r, rows.next()) row(rows, own);
  });
}

// Elements of a row as f32.
const float* read_row(const TopKProblem& p, const Elements& lens, const Rows& rows, char* scratch) {
  const void* base = element_at(static_cast<const void*>(p.x.data), p.x.type, rows.x);
  return lens.read(base, 0, p.x.size[p.axis], reinterpret_cast<float*>(scratch));
}

template <class K>
void store_indices(const TopKProblem& p, const Rows& rows, const K* best) {
  if (!p.want_indices) return;
  const size_t first = rows.indices, stride = p.indices.stride[p.axis];
  with_integer(p.indices.type, [&](auto t) {
    using T = decltype(t);
    T* to = static_cast<T*>(p.indices.data) + first;
    for (size_t i = 0; i < p.k; ++i) {
      const size_t index = topk::index_of(best[i]);
      to[i * stride] = static_cast<T>(std::min<size_t>(index, static_cast<size_t>(std::numeric_limits<T>::max())));
    }
  });
}

void select_floats(const TopKProblem& p, const Options& options) {
  const Elements lens = along_axis(p, p.x), to = along_axis(p, p.values);
  const size_t n = p.x.size[p.axis];
  const Scratch scratch(p, lens, checked_mul(topk::key_count(n, p.k), sizeof(topk::Key), p.op));
  for_each_row(p, options, scratch, [&](const Rows& rows, char* own) {
    const float* x = read_row(p, lens, rows, own);
    const topk::Key* best = topk::first_keys(n, p.k, reinterpret_cast<topk::Key*>(own + scratch.row_bytes), x,
                                             [x](size_t i) { return topk::ordered(x[i]); });
    void* base = element_at(p.values.data, p.values.type, rows.values);
    float buffer[kBlock];
    for (size_t i = 0; i < p.k; i += kBlock) {
      const size_t m = std::min(kBlock, p.k - i);
      float* y = to.target(base, i, buffer);
      for (size_t j = 0; j < m; ++j) y[j] = x[topk::index_of(best[i + j])];
      to.write(base, i, m, y);
    }
    store_indices(p, rows, best);
  });
}

// Integers of 32 and 64 bits, exactly.
template <class T>
void select_integers(const TopKProblem& p, const Options& options) {
  using K = std::conditional_t<sizeof(T) == 8, topk::WideKey, topk::Key>;
  const size_t n = p.x.size[p.axis], step = p.x.stride[p.axis], to_step = p.values.stride[p.axis];
  const Scratch scratch(p, Elements(), checked_mul(topk::key_count(n, p.k), sizeof(K), p.op));
  for_each_row(p, options, scratch, [&](const Rows& rows, char* own) {
    const T* x = static_cast<const T*>(p.x.data) + rows.x;
    const K* best = topk::first_keys(n, p.k, reinterpret_cast<K*>(own), nullptr,
                                     [=](size_t i) { return topk::ordered_integer(x[i * step]); });
    T* to = static_cast<T*>(p.values.data) + rows.values;
    for (size_t i = 0; i < p.k; ++i) to[i * to_step] = x[topk::index_of(best[i]) * step];
    store_indices(p, rows, best);
  });
}

}  // namespace

TopKProblem make_topk_problem(size_t k, size_t axis, size_t batch, const BNNSNDArrayDescriptor* x, size_t x_stride,
                              const BNNSNDArrayDescriptor* values, size_t values_stride,
                              const BNNSNDArrayDescriptor* indices, size_t indices_stride) {
  TopKProblem p;
  p.k = k;
  p.batch = batch;
  check_input(&p, x, x_stride, axis);
  p.values = resolve_with_data(values, p.op, "best_values");
  check_plain(p.values, p.op, "best_values");
  check_distinct(p.values, p.op, "best_values");
  check_shape(p, p.values, "best_values");
  const bool same = p.values.type == p.x.type && p.values.scale == p.x.scale && p.values.bias == p.x.bias;
  if (!same && !(is_float(p.values.type) && is_float(p.x.type))) {
    fail_unsupported("%s: best_values has type %s, expected that of input, %s, or floats for both", p.op,
                     type_name(p.values.type), type_name(p.x.type));
  }
  p.values_stride = output_batch_stride(values_stride, batch, p.values, p.op, "best_values_batch_stride");
  const size_t x_bytes = batch_bytes(batch, p.x_stride, p.x, p.op, "input_batch_stride");
  const size_t values_bytes = batch_bytes(batch, p.values_stride, p.values, p.op, "best_values_batch_stride");
  check_disjoint(p.values.data, values_bytes, "best_values", p.x.data, x_bytes, "input", p.op);
  if (p.x.size[p.axis] - 1 > UINT32_MAX) {
    fail_unsupported("%s: the axis has %zu elements, expected at most 2^32", p.op, p.x.size[p.axis]);
  }
  if (!indices) return p;
  p.want_indices = true;
  p.indices = resolve_with_data(indices, p.op, "best_indices");
  check_plain(p.indices, p.op, "best_indices");
  check_distinct(p.indices, p.op, "best_indices");
  check_index_type(p.indices, p.op, "best_indices");
  check_shape(p, p.indices, "best_indices");
  p.indices_stride = output_batch_stride(indices_stride, batch, p.indices, p.op, "best_indices_batch_stride");
  const size_t indices_bytes = batch_bytes(batch, p.indices_stride, p.indices, p.op, "best_indices_batch_stride");
  check_disjoint(p.indices.data, indices_bytes, "best_indices", p.x.data, x_bytes, "input", p.op);
  check_disjoint(p.indices.data, indices_bytes, "best_indices", p.values.data, values_bytes, "best_values", p.op);
  return p;
}

TopKProblem make_in_topk_problem(size_t k, size_t axis, size_t batch, const BNNSNDArrayDescriptor* x, size_t x_stride,
                                 const BNNSNDArrayDescriptor* test, size_t test_stride,
                                 const BNNSNDArrayDescriptor* output, size_t output_stride) {
  TopKProblem p;
  p.op = "in_topk";
  p.k = k;
  p.batch = batch;
  check_input(&p, x, x_stride, axis);
  const Tensor indices = resolve_with_data(test, p.op, "test_indices");
  check_plain(indices, p.op, "test_indices");
  check_index_type(indices, p.op, "test_indices");
  const Tensor values = resolve_with_data(output, p.op, "output");
  check_plain(values, p.op, "output");
  check_distinct(values, p.op, "output");
  if (!values.is(BNNSDataTypeBoolean)) {
    fail_invalid("%s: output has type %s, expected Boolean", p.op, type_name(values.type));
  }
  p.values_stride = output_batch_stride(output_stride, batch, values, p.op, "output_batch_stride");
  p.indices_stride = input_batch_stride(test_stride, batch, indices, p.op, "test_indices_batch_stride");
  const size_t bytes = batch_bytes(batch, p.values_stride, values, p.op, "output_batch_stride");
  check_disjoint(values.data, bytes, "output", p.x.data,
                 batch_bytes(batch, p.x_stride, p.x, p.op, "input_batch_stride"), "input", p.op);
  check_disjoint(values.data, bytes, "output", indices.data,
                 batch_bytes(batch, p.indices_stride, indices, p.op, "test_indices_batch_stride"), "test_indices",
                 p.op);
  p.indices = without_axis(p, indices, "test_indices");
  p.values = without_axis(p, values, "output");
  Rows rows(p, 0);
  for (size_t r = 0; r < Rows::count(p); ++r, rows.next()) {
    const int64_t index = load_integer(p.indices, p.indices.data, rows.indices);
    if (index < 0 || static_cast<uint64_t>(index) >= p.x.size[p.axis]) {
      fail_invalid("%s: test index %zu is %lld, expected 0 to %zu", p.op, r, static_cast<long long>(index),
                   p.x.size[p.axis] - 1);
    }
  }
  return p;
}

std::string TopKProblem::text() const {
  return std::string(op) + " " + std::to_string(k) + " of " + x.text() + " axis " + std::to_string(axis);
}

void run_topk(const TopKProblem& p, const Options& options) {
  if (!p.wide) return select_floats(p, options);
  with_integer(p.x.type, [&](auto t) { select_integers<decltype(t)>(p, options); });
}

void run_in_topk(const TopKProblem& p, const Options& options) {
  // In unless K values are larger: counting needs no order.
  const Elements lens = along_axis(p, p.x);
  const size_t n = p.x.size[p.axis];
  const Scratch scratch(p, lens, 0);
  for_each_row(p, options, scratch, [&](const Rows& rows, char* own) {
    const int64_t index = load_integer(p.indices, p.indices.data, rows.indices);
    size_t larger = 0;
    if (p.wide) {
      with_integer(p.x.type, [&](auto t) {
        const auto* x = static_cast<const decltype(t)*>(p.x.data) + rows.x;
        const size_t step = p.x.stride[p.axis];
        const auto value = x[static_cast<size_t>(index) * step];
        for (size_t i = 0; i < n; ++i) larger += x[i * step] > value;
      });
    } else {
      const float* x = read_row(p, lens, rows, own);
      const uint32_t value = topk::ordered(x[index]);
      for (size_t i = 0; i < n; ++i) larger += topk::ordered(x[i]) > value;
    }
    static_cast<uint8_t*>(p.values.data)[rows.values] = larger < p.k;
  });
}

}  // namespace bnns
