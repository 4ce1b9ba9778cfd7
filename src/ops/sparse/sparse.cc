#include "src/ops/sparse/sparse.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/filter/batch_pair.h"
#include "src/tensor/elements.h"
#include "src/tensor/sparse_weights.h"

namespace bnns {
namespace {

// Entry i of a list that is a tensor of any layout, in memory order.
struct Entries {
  const Tensor& t;
  Elements lens;
  explicit Entries(const Tensor& tensor) : t(tensor), lens(tensor) {}
  int64_t operator[](size_t i) const { return load_integer(t, t.data, lens.offset(i)); }
};

Tensor resolve_indices(const BNNSNDArrayDescriptor* d, const char* op, const char* field) {
  const Tensor t = resolve_with_data(d, op, field);
  check_plain(t, op, field);
  if (!is_integer(t.type)) {
    fail_invalid("%s: %s has type %s, expected an integer of 8 bits or more", op, field, type_name(t.type));
  }
  return t;
}

void read_shape(SparsifyProblem* p, const BNNSNDArrayDescriptor* shape, const BNNSNDArrayDescriptor* values) {
  if (!shape) fail_invalid("%s: in_dense_shape is NULL, expected a descriptor", p->op);
  p->shape = resolve(*shape, p->op, "in_dense_shape");
  switch (p->shape.layout) {
    case BNNSDataLayoutRowMajorMatrix:
      p->output_axis = 1;
      break;
    case BNNSDataLayoutColumnMajorMatrix:
    case BNNSDataLayout2DFirstMajor:
    case BNNSDataLayout2DLastMajor:
      p->output_axis = 0;
      break;
    default:
      fail_invalid("%s: in_dense_shape.layout is %s, expected a matrix", p->op, enum_text(p->shape.layout).text);
  }
  p->outputs = p->shape.size[p->output_axis];
  p->inputs = p->shape.size[1 - p->output_axis];
  p->values = resolve_with_data(values, p->op, "in_values");
  check_plain(p->values, p->op, "in_values");
  if (!is_float(p->values.type)) {
    fail_unsupported("%s: in_values has type %s; sparse weights are f32, f16 or bf16", p->op,
                     type_name(p->values.type));
  }
  if (p->outputs >= UINT32_MAX || p->inputs >= UINT32_MAX || p->values.count >= UINT32_MAX) {
    fail_unsupported("%s: %zu values of %zu x %zu, expected each below 2^32 - 1", p->op, p->values.count, p->outputs,
                     p->inputs);
  }
}

void check_index(const SparsifyProblem& p, int64_t index, size_t limit, const char* list, size_t at) {
  if (index < 0 || static_cast<uint64_t>(index) >= limit) {
    fail_invalid("%s: entry %zu of %s is %lld, expected 0 to %zu", p.op, at, list, static_cast<long long>(index),
                 limit - 1);
  }
}

// Row and column of value k of a coordinate list: pairs are in size order.
size_t coo_output(const SparsifyProblem& p, const Entries& pairs, size_t k) {
  return static_cast<size_t>(pairs[2 * k + p.output_axis]);
}
size_t coo_input(const SparsifyProblem& p, const Entries& pairs, size_t k) {
  return static_cast<size_t>(pairs[2 * k + 1 - p.output_axis]);
}

// Writes header and arrays. Values keep the order of the input inside a row.
void pack(const SparsifyProblem& p, const SparseHeader& header, void* memory) {
  const SparseOffsets offsets(header);
  char* base = static_cast<char*>(memory);
  std::memcpy(base, &header, sizeof header);
  uint32_t* starts = reinterpret_cast<uint32_t*>(base + offsets.starts);
  const size_t n = p.values.count, element = type_bytes(p.values.type);
  const Elements values(p.values);
  const Entries indices(p.indices);
  const auto put = [&](size_t to, size_t from, size_t column) {
    std::memcpy(base + offsets.values + to * element,
                element_at(static_cast<const void*>(p.values.data), p.values.type, values.offset(from)), element);
    if (header.column_bytes == 2) {
      reinterpret_cast<uint16_t*>(base + offsets.columns)[to] = static_cast<uint16_t>(column);
    } else {
      reinterpret_cast<uint32_t*>(base + offsets.columns)[to] = static_cast<uint32_t>(column);
    }
  };
  const size_t gap = offsets.values + n * element;
  std::memset(base + gap, 0, offsets.columns - gap);
  if (p.compressed_rows) {
    const Entries rows(p.starts);
    for (size_t o = 0; o <= p.outputs; ++o) starts[o] = static_cast<uint32_t>(rows[o]);
    for (size_t k = 0; k < n; ++k) put(k, k, static_cast<size_t>(indices[k]));
    return;
  }
  // A counting sort by row; starts[o + 1] is where row o goes on until all of it is placed.
  std::fill_n(starts, p.outputs + 1, 0u);
  for (size_t k = 0; k < n; ++k) {
    if (const size_t o = coo_output(p, indices, k); o + 2 <= p.outputs) ++starts[o + 2];
  }
  for (size_t o = 2; o <= p.outputs; ++o) starts[o] += starts[o - 1];
  for (size_t k = 0; k < n; ++k) put(starts[coo_output(p, indices, k) + 1]++, k, coo_input(p, indices, k));
}

}  // namespace

SparsifyProblem make_coo_problem(const BNNSNDArrayDescriptor* shape, const BNNSNDArrayDescriptor* indices,
                                 const BNNSNDArrayDescriptor* values) {
  SparsifyProblem p;
  p.op = "sparsify_coo";
  read_shape(&p, shape, values);
  p.indices = resolve_indices(indices, p.op, "in_indices");
  if (p.indices.count != 2 * p.values.count) {
    fail_invalid("%s: in_indices has %zu entries, expected %zu: two for each of in_values", p.op, p.indices.count,
                 2 * p.values.count);
  }
  const Entries pairs(p.indices);
  for (size_t i = 0; i < p.indices.count; ++i) check_index(p, pairs[i], p.shape.size[i % 2], "in_indices", i);
  return p;
}

SparsifyProblem make_csr_problem(const BNNSNDArrayDescriptor* shape, const BNNSNDArrayDescriptor* columns,
                                 const BNNSNDArrayDescriptor* starts, const BNNSNDArrayDescriptor* values) {
  SparsifyProblem p;
  p.op = "sparsify_csr";
  p.compressed_rows = true;
  read_shape(&p, shape, values);
  p.indices = resolve_indices(columns, p.op, "in_column_indices");
  p.starts = resolve_indices(starts, p.op, "in_row_starts");
  if (p.indices.count != p.values.count) {
    fail_invalid("%s: in_column_indices has %zu entries, expected %zu as in_values", p.op, p.indices.count,
                 p.values.count);
  }
  if (p.starts.count != p.outputs + 1) {
    fail_invalid("%s: in_row_starts has %zu entries, expected %zu = rows + 1", p.op, p.starts.count, p.outputs + 1);
  }
  const Entries rows(p.starts), list(p.indices);
  for (size_t o = 0; o <= p.outputs; ++o) {
    const int64_t least = o == 0 ? 0 : rows[o - 1], most = static_cast<int64_t>(o == 0 ? 0 : p.values.count);
    if (rows[o] < least || rows[o] > most || (o == p.outputs && rows[o] != most)) {
      fail_invalid("%s: in_row_starts[%zu] is %lld, expected to rise from 0 to %zu", p.op, o,
                   static_cast<long long>(rows[o]), p.values.count);
    }
  }
  for (size_t k = 0; k < p.indices.count; ++k) check_index(p, list[k], p.inputs, "in_column_indices", k);
  return p;
}

std::string SparsifyProblem::text() const {
  return std::string(op) + " " + type_name(values.type) + " i" + std::to_string(inputs) + " o" +
         std::to_string(outputs);
}

void sparsify(const SparsifyProblem& p, BNNSNDArrayDescriptor* out, const Options& options) {
  if (!out) fail_invalid("%s: out is NULL, expected a descriptor", p.op);
  SparseHeader header;
  header.nonzeros = p.values.count;
  header.outputs = static_cast<uint32_t>(p.outputs);
  header.inputs = static_cast<uint32_t>(p.inputs);
  header.type = static_cast<uint32_t>(p.values.type);
  header.column_bytes = p.inputs <= 65536 ? 2 : 4;
  header.bytes = SparseOffsets(header).end;
  void* memory = out->data;
  if (memory) {
    check_data(memory, BNNSDataTypeFloat32, p.op, "out", ".data");
    const size_t dense = checked_mul(p.shape.count, type_bytes(p.values.type), p.op);
    if (header.bytes > dense) {
      fail_invalid(
          "%s: %zu values take %zu bytes packed, more than the %zu of the dense matrix that out.data must "
          "hold; expected fewer values, or NULL",
          p.op, p.values.count, static_cast<size_t>(header.bytes), dense);
    }
    for (const Tensor* t : {&p.values, &p.indices, &p.starts}) {
      check_disjoint(memory, header.bytes, "out", t->data, t->span_bytes(), "an input", p.op);
    }
  } else {
    memory = allocate(options, header.bytes, "packed sparse weights");
  }
  pack(p, header, memory);
  out->layout = BNNSDataLayoutFullyConnectedSparse;
  std::memset(out->stride, 0, sizeof out->stride);
  std::memset(out->size, 0, sizeof out->size);
  std::copy_n(p.shape.size, 2, out->size);
  out->data_type = p.values.type;
  out->data = memory;
}

}  // namespace bnns
