// Checks of BNNSCopy and BNNSTranspose.

#include "src/ops/copy/copy.h"

#include <algorithm>

#include "src/core/error.h"
#include "src/tensor/distinct.h"

namespace bnns {
namespace {

// A tensor by its logical indices (first to last), as the layout's meaning has them.
struct LogicalView {
  size_t rank = 0;
  size_t size[kMaxRank] = {};
  ptrdiff_t stride[kMaxRank] = {};
  size_t offset = 0;  // of the element with all indices 0
};

bool is_rotated(BNNSDataLayout layout) {
  return layout == BNNSDataLayoutConvolutionWeightsOIHrWr || layout == BNNSDataLayoutConvolutionWeightsIOHrWr;
}

// swap0 and swap1 (size axes) change places first: their extents and strides are exchanged.
LogicalView logical_view(const Tensor& t, size_t swap0, size_t swap1) {
  LogicalView v;
  v.rank = t.rank;
  for (size_t k = 0; k < t.rank; ++k) {
    v.size[k] = t.size[k];
    v.stride[k] = static_cast<ptrdiff_t>(t.stride[k]);
    if (is_rotated(t.layout) && k < 2) {  // kernel columns and rows run backwards
      v.offset += t.stride[k] * (t.size[k] - 1);
      v.stride[k] = -v.stride[k];
    }
  }
  std::swap(v.size[swap0], v.size[swap1]);
  std::swap(v.stride[swap0], v.stride[swap1]);
  // A row-major matrix has {columns, rows} in size, but is indexed (row, column). Weights are indexed
  // (kx, ky, input, output), also where size has the output first.
  if (t.layout == BNNSDataLayoutRowMajorMatrix) {
    std::swap(v.size[0], v.size[1]);
    std::swap(v.stride[0], v.stride[1]);
  }
  if (t.layout == BNNSDataLayoutConvolutionWeightsIOHrWr) {
    std::swap(v.size[2], v.size[3]);
    std::swap(v.stride[2], v.stride[3]);
  }
  return v;
}

std::string shape_text(const LogicalView& v) {
  std::string text = "(";
  for (size_t k = 0; k < v.rank; ++k) text += (k ? ", " : "") + std::to_string(v.size[k]);
  return text + ")";
}

void check_same_shape(const LogicalView& to, const LogicalView& from, const char* op) {
  if (to.rank == from.rank && std::equal(to.size, to.size + to.rank, from.size)) return;
  fail_invalid("%s: dest has the indices %s, expected %s", op, shape_text(to).c_str(), shape_text(from).c_str());
}

CopyKind copy_kind(const Tensor& from, const Tensor& to, const char* op) {
  const bool same_meaning = from.scale == to.scale && from.bias == to.bias;
  if (is_indexed(to.type)) {
    if (from.type == to.type && from.table == to.table && from.table_type == to.table_type) return CopyKind::bytes;
    fail_unsupported("%s: dest has type %s; values can be copied to it only from the same type with the same table", op,
                     type_name(to.type));
  }
  if (from.type == to.type && same_meaning) return CopyKind::bytes;
  if (is_integer(from.type) && is_integer(to.type) && type_bytes(from.type) && type_bytes(to.type) && same_meaning) {
    return CopyKind::integers;
  }
  return CopyKind::values;
}

void check_layout(const Tensor& t, const char* op, const char* field) {
  if (t.layout == BNNSDataLayoutConvolutionWeightsOIHW_Pack32) {
    fail_unsupported("%s: %s.layout is OIHW_Pack32, which cannot be copied", op, field);
  }
}

}  // namespace

CopyProblem make_copy_problem(const BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src, size_t swap0,
                              size_t swap1, const char* op) {
  CopyProblem p;
  p.from = resolve_with_data(src, op, "src");
  p.to = resolve_with_data(dest, op, "dest");
  check_layout(p.from, op, "src");
  check_layout(p.to, op, "dest");
  check_distinct(p.to, op, "dest");
  for (const auto& [axis, name] : {std::pair{swap0, "axis0"}, {swap1, "axis1"}}) {
    if (axis >= p.from.rank) {
      fail_invalid("%s: %s is %zu, expected less than %zu, the rank of src", op, name, axis, p.from.rank);
    }
  }
  const LogicalView from = logical_view(p.from, swap0, swap1), to = logical_view(p.to, 0, 0);
  check_same_shape(to, from, op);
  p.kind = copy_kind(p.from, p.to, op);
  check_disjoint(p.to.data, p.to.span_bytes(), "dest", p.from.data, p.from.span_bytes(), "src", op);
  CopyAxis axes[kMaxRank];
  for (size_t k = 0; k < to.rank; ++k) axes[k] = CopyAxis{to.size[k], from.stride[k], to.stride[k]};
  set_copy_axes(&p, axes, to.rank, static_cast<ptrdiff_t>(from.offset), static_cast<ptrdiff_t>(to.offset));
  const bool whole_bytes = type_bytes(p.from.type) && type_bytes(p.to.type);
  if (!whole_bytes && (p.from_offset || p.to_offset)) {
    fail_unsupported("%s: src is %s and dest %s; types narrower than a byte cannot be rotated", op,
                     type_name(p.from.type), type_name(p.to.type));
  }
  return p;
}

}  // namespace bnns
