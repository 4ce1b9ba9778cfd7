// Shapes of the four calls, reduced to points, outer loop and slab.

#include "src/ops/gather/gather.h"

#include <algorithm>

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/filter/batch_pair.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

const char* op_name(GatherAction action, bool nd) {
  if (action == GatherAction::gather) return nd ? "gather_nd" : "gather";
  return nd ? "scatter_nd" : "scatter";
}

void read_operands(GatherProblem* p, const BNNSNDArrayDescriptor* input, const BNNSNDArrayDescriptor* indices,
                   const BNNSNDArrayDescriptor* output) {
  const char* op = p->op;
  const bool gather = p->action == GatherAction::gather;
  Tensor& in = gather ? p->data : p->values;
  Tensor& out = gather ? p->values : p->data;
  in = resolve_with_data(input, op, "input");
  p->indices = resolve_with_data(indices, op, "indices");
  out = resolve_with_data(output, op, "output");
  check_plain(in, op, "input");
  check_plain(out, op, "output");
  check_distinct(out, op, "output");
  check_plain(p->indices, op, "indices");
  if (!is_integer(p->indices.type)) {
    fail_invalid("%s: indices has type %s, expected an integer of 8 bits or more", op, type_name(p->indices.type));
  }
  if (in.type != out.type || in.scale != out.scale || in.bias != out.bias) {
    fail_unsupported("%s: output is %s, expected the type, scale and bias of input, which is %s", op,
                     type_name(out.type), type_name(in.type));
  }
  if (p->action == GatherAction::scatter_sum && out.is(BNNSDataTypeBoolean)) {
    fail_unsupported("%s: output has type bool, which cannot be summed; expected numbers", op);
  }
  check_disjoint(out.data, out.span_bytes(), "output", in.data, in.span_bytes(), "input", op);
  check_disjoint(out.data, out.span_bytes(), "output", p->indices.data, p->indices.span_bytes(), "indices", op);
}

const char* data_name(const GatherProblem& p) {
  return p.action == GatherAction::gather ? "input" : "output";
}
const char* values_name(const GatherProblem& p) {
  return p.action == GatherAction::gather ? "output" : "input";
}

// A tensor's size axes by logical index: a row-major matrix has {columns, rows} and is indexed (row, column).
size_t logical_axis(const Tensor& t, size_t index) {
  return t.layout == BNNSDataLayoutRowMajorMatrix ? 1 - index : index;
}

// Axes that continue each other in all tensors become one.
void merge(GatherAxes* axes) {
  GatherAxes merged;
  for (size_t k = 0; k < axes->rank; ++k) {
    const GatherAxis& a = axes->axis[k];
    if (a.extent == 1) continue;
    GatherAxis* last = merged.rank ? &merged.axis[merged.rank - 1] : nullptr;
    if (last && a.data == last->data * last->extent && a.values == last->values * last->extent &&
        a.indices == last->indices * last->extent) {
      last->extent *= a.extent;
      merged.count *= a.extent;
    } else {
      merged.append(a);
    }
  }
  if (merged.rank == 0) merged.append({1, 1, 1, 1});
  *axes = merged;
}

void sort_by_values(GatherAxes* axes) {
  std::stable_sort(axes->axis, axes->axis + axes->rank,
                   [](const GatherAxis& a, const GatherAxis& b) { return a.values < b.values; });
}

}  // namespace

GatherAction scatter_action(BNNSReduceFunction function, const char* op) {
  if (function == BNNSReduceFunctionNone) return GatherAction::scatter;
  if (function == BNNSReduceFunctionSum) return GatherAction::scatter_sum;
  fail_unsupported("%s: op is %s, expected BNNSReduceFunctionNone (overwrite) or BNNSReduceFunctionSum", op,
                   enum_text(function).text);
}

GatherProblem make_gather_problem(GatherAction action, size_t axis, const BNNSNDArrayDescriptor* input,
                                  const BNNSNDArrayDescriptor* indices, const BNNSNDArrayDescriptor* output) {
  GatherProblem p;
  p.action = action;
  p.op = op_name(action, false);
  read_operands(&p, input, indices, output);
  const Tensor &data = p.data, &values = p.values, &index = p.indices;
  if (axis >= data.rank) {
    fail_invalid("%s: axis is %zu, expected less than %zu, the rank of %s", p.op, axis, data.rank, data_name(p));
  }
  const bool full = index.rank == values.rank && std::equal(index.size, index.size + index.rank, values.size);
  if (!full && index.rank != 1) {
    fail_with_code(kGatherShapeCode, "%s: indices is %s, expected a vector or the sizes of %s, %s", p.op,
                   index.text().c_str(), values_name(p), values.text().c_str());
  }
  if (values.rank != data.rank) {
    fail_with_code(kGatherShapeCode, "%s: output has another rank than input, %zu and %zu", p.op,
                   action == GatherAction::gather ? values.rank : data.rank,
                   action == GatherAction::gather ? data.rank : values.rank);
  }
  for (size_t k = 0; k < data.rank; ++k) {
    const size_t want = k == axis ? full ? values.size[k] : index.count : data.size[k];
    if (values.size[k] != want) {
      fail_with_code(kGatherShapeCode, "%s: %s.size[%zu] is %zu, expected %zu as in %s", p.op, values_name(p), k,
                     values.size[k], want, k == axis ? "indices" : data_name(p));
    }
  }
  p.limit[0] = data.size[axis];
  p.step[0] = data.stride[axis];
  bool faster = true;
  for (size_t j = 0; j < values.rank; ++j) {
    const size_t k = values.axis[j];
    GatherAxis a{values.size[k], k == axis ? 0 : data.stride[k], values.stride[k], full ? index.stride[k] : 0};
    if (k == axis) {
      if (!full) a.indices = index.stride[0];
      p.points.append(a);
      faster = false;
    } else {
      (full ? p.points : faster ? p.slab : p.outer).append(a);
    }
  }
  merge(&p.points);
  merge(&p.slab);
  merge(&p.outer);
  return p;
}

GatherProblem make_gather_nd_problem(GatherAction action, const BNNSNDArrayDescriptor* input,
                                     const BNNSNDArrayDescriptor* indices, const BNNSNDArrayDescriptor* output) {
  GatherProblem p;
  p.action = action;
  p.op = op_name(action, true);
  read_operands(&p, input, indices, output);
  const Tensor &data = p.data, &values = p.values, &index = p.indices;
  const size_t lead = index.rank - 1, last = logical_axis(index, lead);
  p.components = index.size[last];
  p.component_stride = index.stride[last];
  if (p.components > data.rank) {
    fail_with_code(kGatherShapeCode,
                   "%s: the last index of indices has %zu values, expected at most %zu, the rank of %s", p.op,
                   p.components, data.rank, data_name(p));
  }
  // Shape of values: the leading indices, then what the index vectors leave of data; a single element as {1}.
  size_t want[2 * kMaxRank], n = 0;
  for (size_t k = 0; k < lead; ++k) want[n++] = index.size[logical_axis(index, k)];
  for (size_t k = p.components; k < data.rank; ++k) want[n++] = data.size[logical_axis(data, k)];
  if (n == 0) want[n++] = 1;
  bool same = values.rank == n;
  for (size_t k = 0; same && k < n; ++k) same = values.size[logical_axis(values, k)] == want[k];
  if (!same) {
    std::string shape;
    for (size_t k = 0; k < n; ++k) shape += (k ? ", " : "") + std::to_string(want[k]);
    fail_with_code(kGatherShapeCode, "%s: %s is %s, expected the indices (%s)", p.op, values_name(p),
                   values.text().c_str(), shape.c_str());
  }
  for (size_t l = 0; l < p.components; ++l) {
    p.limit[l] = data.size[logical_axis(data, l)];
    p.step[l] = data.stride[logical_axis(data, l)];
  }
  for (size_t k = 0; k < lead; ++k) {
    const size_t of_index = logical_axis(index, k);
    p.points.append({index.size[of_index], 0, values.stride[logical_axis(values, k)], index.stride[of_index]});
  }
  for (size_t k = p.components; k < data.rank; ++k) {
    const size_t of_data = logical_axis(data, k), of_values = logical_axis(values, lead + k - p.components);
    p.slab.append({data.size[of_data], data.stride[of_data], values.stride[of_values], 0});
  }
  sort_by_values(&p.points);
  sort_by_values(&p.slab);
  merge(&p.points);
  merge(&p.slab);
  merge(&p.outer);
  return p;
}

std::string GatherProblem::text() const {
  return std::string(op) + " " + data.text() + " at " + indices.text();
}

}  // namespace bnns
