// Rows along the axis are read as f32 and selected one by one: K candidates are kept in a heap whose root is the worst,
// so that most elements cost one comparison.

#include "src/ops/topk/topk.h"

#include <algorithm>
#include <cmath>

#include "src/core/checked.h"
#include "src/core/error.h"
#include "src/core/parallel.h"
#include "src/filter/batch_pair.h"
#include "src/tensor/elements.h"

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
  if (!is_float(p->x.type) && type_bytes(p->x.type) > 2) {
    fail_unsupported("%s: input has type %s; expected f32, f16, bf16, Boolean or an integer of 8 or 16 bits", p->op,
                     type_name(p->x.type));
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

// Row r of the tensors: all axes but one, batch slowest.
class Rows {
 public:
  explicit Rows(const TopKProblem& p) : p_(p) {
    for (size_t j = 0; j < p.x.rank; ++j) {
      if (p.x.axis[j] != p.axis) axes_[rank_++] = p.x.axis[j];
    }
    per_sample_ = p.x.count / p.x.size[p.axis];
  }
  size_t count() const { return per_sample_ * p_.batch; }
  size_t offset(const Tensor& t, size_t batch_stride, size_t row) const {
    size_t result = row / per_sample_ * batch_stride, rest = row % per_sample_;
    for (size_t j = 0; j < rank_; rest /= p_.x.size[axes_[j++]]) {
      result += rest % p_.x.size[axes_[j]] * t.stride[axes_[j]];
    }
    return result;
  }

 private:
  const TopKProblem& p_;
  size_t axes_[kMaxRank], rank_ = 0, per_sample_ = 1;
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

struct Candidate {
  float value;
  uint32_t index;
};
bool is_larger(float a, float b) {
  return std::isnan(a) ? !std::isnan(b) : a > b;
}
// Whether a comes before b in the result.
bool before(const Candidate& a, const Candidate& b) {
  if (is_larger(a.value, b.value)) return true;
  return !is_larger(b.value, a.value) && a.index < b.index;
}

// Puts the new root of a heap whose root is the last in order where it belongs.
void sift(Candidate* heap, size_t n) {
  const Candidate moved = heap[0];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && before(heap[child], heap[child + 1])) ++child;
    if (!before(moved, heap[child])) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

// The k first of n in order, in best.
void select(const float* x, size_t n, size_t k, Candidate* best) {
  for (size_t i = 0; i < k; ++i) best[i] = {x[i], static_cast<uint32_t>(i)};
  std::make_heap(best, best + k, before);  // the root is the one that no other comes after
  for (size_t i = k; i < n; ++i) {
    if (!is_larger(x[i], best[0].value)) continue;  // an equal one has a higher index
    best[0] = {x[i], static_cast<uint32_t>(i)};
    sift(best, k);
  }
  std::sort(best, best + k, before);
}

// Reads the elements of a row.
const float* read_row(const TopKProblem& p, const Elements& lens, size_t offset, float* buffer) {
  return lens.read(element_at(static_cast<const void*>(p.x.data), p.x.type, offset), 0, p.x.size[p.axis], buffer);
}

// Scratch of one thread: a row and the candidates.
struct Scratch {
  size_t row_bytes, bytes;
  explicit Scratch(const TopKProblem& p, const Elements& lens) {
    const size_t n = lens.direct() ? 0 : p.x.size[p.axis];
    row_bytes = round_up(checked_mul(n, sizeof(float), p.op), kAlignment);
    bytes = checked_add(row_bytes, round_up(checked_mul(p.k, sizeof(Candidate), p.op), kAlignment), p.op);
  }
};

template <class Row>
void for_each_row(const TopKProblem& p, const Options& options, const Elements& lens, Row&& row) {
  const Rows rows(p);
  const Scratch scratch(p, lens);
  const size_t n = p.x.size[p.axis], group = std::max<size_t>(1, 4096 / n), tasks = div_up(rows.count(), group);
  const size_t threads = threads_for(options.n_threads, tasks, 4 * rows.count() * n);
  const Buffer memory(options, checked_mul(threads, scratch.bytes, p.op), "rows of topk");
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    char* own = memory.as<char>() + worker * scratch.bytes;
    for (size_t r = task * group; r < std::min(rows.count(), (task + 1) * group); ++r) {
      const float* x = read_row(p, lens, rows.offset(p.x, p.x_stride, r), reinterpret_cast<float*>(own));
      row(rows, r, x, n, reinterpret_cast<Candidate*>(own + scratch.row_bytes));
    }
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
  const Rows rows(p);
  for (size_t r = 0; r < rows.count(); ++r) {
    const int64_t index = load_integer(p.indices, p.indices.data, rows.offset(p.indices, p.indices_stride, r));
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
  const Elements lens = along_axis(p, p.x), to = along_axis(p, p.values);
  for_each_row(p, options, lens, [&](const Rows& rows, size_t r, const float* x, size_t n, Candidate* best) {
    select(x, n, p.k, best);
    const size_t v = rows.offset(p.values, p.values_stride, r);
    void* base = element_at(p.values.data, p.values.type, v);
    float buffer[kBlock];
    for (size_t i = 0; i < p.k; i += kBlock) {
      const size_t m = std::min(kBlock, p.k - i);
      float* y = to.target(base, i, buffer);
      for (size_t j = 0; j < m; ++j) y[j] = best[i + j].value;
      to.write(base, i, m, y);
    }
    if (!p.want_indices) return;
    const size_t first = rows.offset(p.indices, p.indices_stride, r);
    for (size_t i = 0; i < p.k; ++i) {
      store_saturated(p.indices, p.indices.data, first + i * p.indices.stride[p.axis], best[i].index);
    }
  });
}

void run_in_topk(const TopKProblem& p, const Options& options) {
  // In unless K values are larger: counting needs no order.
  const Elements lens = along_axis(p, p.x);
  for_each_row(p, options, lens, [&](const Rows& rows, size_t r, const float* x, size_t n, Candidate*) {
    const int64_t index = load_integer(p.indices, p.indices.data, rows.offset(p.indices, p.indices_stride, r));
    const float value = x[index];
    size_t larger = 0;
    for (size_t i = 0; i < n; ++i) larger += is_larger(x[i], value);
    static_cast<uint8_t*>(p.values.data)[rows.offset(p.values, p.values_stride, r)] = larger < p.k;
  });
}

}  // namespace bnns
