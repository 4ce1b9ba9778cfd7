#include "src/ops/attention/attention_view.h"

#include <algorithm>

#include "src/core/enum_name.h"
#include "src/core/error.h"
#include "src/engine/copy/copy.h"

namespace bnns {
namespace {

FloatType float_type(BNNSDataType type) {
  return type == BNNSDataTypeFloat16 ? FloatType::f16 : type == BNNSDataTypeBFloat16 ? FloatType::bf16 : FloatType::f32;
}

Tensor plain_tensor(BNNSDataType type, const void* data, size_t count) {
  Tensor t = vector_tensor(count, const_cast<void*>(data));
  t.type = type;
  return t;
}

CopyAxis copy_axis(size_t extent, size_t from, size_t to) {
  return {extent, static_cast<ptrdiff_t>(from), static_cast<ptrdiff_t>(to)};
}

// Whether two byte ranges meet, one of them made of rows that may lie between the rows of the other.
bool share_bytes(const AttentionExtent& a, const AttentionExtent& b) {
  const uintptr_t x = reinterpret_cast<uintptr_t>(a.data), y = reinterpret_cast<uintptr_t>(b.data);
  if (x >= y + b.bytes || y >= x + a.bytes) return false;
  const size_t step = a.row_step;
  if (step == 0 || b.row_step != step || a.outer_step % step || b.outer_step % step) return true;
  // Both are rows on one lattice: rows of b begin `apart` bytes after rows of a.
  const size_t apart = y >= x ? (y - x) % step : (step - (x - y) % step) % step;
  return apart < a.row_bytes || apart + b.row_bytes > step;
}

}  // namespace

Lens lens_of(const MatrixView& view) {
  return strided_lens(view.data, float_type(view.type), static_cast<ptrdiff_t>(view.step()),
                      static_cast<ptrdiff_t>(view.column_stride));
}

GemmOutput output_of(const MatrixView& view) {
  return {static_cast<float*>(view.data), view.step(), view.columns == 1 ? 1 : view.column_stride};
}

void gather(const MatrixView& view, float* to, size_t n_threads) {
  if (view.count() == 0) return;
  CopyProblem copy;
  copy.from = plain_tensor(view.type, view.data, view.count());
  copy.to = plain_tensor(BNNSDataTypeFloat32, to, view.count());
  copy.kind = view.type == BNNSDataTypeFloat32 ? CopyKind::bytes : CopyKind::values;
  const CopyAxis axes[] = {copy_axis(view.columns, view.column_stride, 1),
                           copy_axis(view.rows, view.row_stride, view.columns),
                           copy_axis(view.outer, view.outer_stride, view.rows * view.columns)};
  set_copy_axes(&copy, axes, 3);
  copy_tensor(copy, n_threads);
}

void scatter(const float* from, const MatrixView& view, size_t n_threads) {
  if (view.count() == 0) return;
  CopyProblem copy;
  copy.from = plain_tensor(BNNSDataTypeFloat32, from, view.count());
  copy.to = plain_tensor(view.type, view.data, view.count());
  copy.accumulate = view.accumulate;
  copy.kind = view.type == BNNSDataTypeFloat32 && !view.accumulate ? CopyKind::bytes : CopyKind::values;
  const CopyAxis axes[] = {copy_axis(view.columns, 1, view.column_stride),
                           copy_axis(view.rows, view.columns, view.row_stride),
                           copy_axis(view.outer, view.rows * view.columns, view.outer_stride)};
  set_copy_axes(&copy, axes, 3);
  copy_tensor(copy, n_threads);
}

LogicalShape logical_shape(const Tensor& t, const char* op, const char* field) {
  const unsigned layout = static_cast<unsigned>(t.layout);
  const bool generic = (layout & 0x8000) != 0;
  const bool known = generic || t.layout == BNNSDataLayoutVector || t.layout == BNNSDataLayoutRowMajorMatrix ||
                     t.layout == BNNSDataLayoutColumnMajorMatrix || t.layout == BNNSDataLayoutImageCHW ||
                     t.layout == BNNSDataLayoutMHA_DHK;
  if (!known || t.rank > 4) {
    fail_unsupported(
        "%s: %s.layout is %s, expected a vector, a matrix, BNNSDataLayoutImageCHW, BNNSDataLayoutMHA_DHK or a generic "
        "1-D to 4-D layout",
        op, field, enum_text(t.layout).text);
  }
  LogicalShape shape;
  shape.rank = t.rank;
  std::copy(t.size, t.size + t.rank, shape.size);
  std::copy(t.stride, t.stride + t.rank, shape.stride);
  if (t.layout == BNNSDataLayoutRowMajorMatrix) {  // {columns, rows}, indexed (row, column)
    std::swap(shape.size[0], shape.size[1]);
    std::swap(shape.stride[0], shape.stride[1]);
  }
  return shape;
}

AttentionExtent::AttentionExtent(const MatrixView& view, const char* extent_name, bool is_written)
    : data(view.data), name(extent_name), written(is_written) {
  if (view.count() == 0) return;
  const size_t element = type_bytes(view.type);
  row_bytes = ((view.columns - 1) * view.column_stride + 1) * element;
  bytes = ((view.outer - 1) * view.outer_stride + (view.rows - 1) * view.row_stride) * element + row_bytes;
  row_step = view.row_stride * element;
  outer_step = view.outer > 1 ? view.outer_stride * element : 0;
}

void AttentionExtents::add(const AttentionExtent& extent, const char* op) {
  if (!extent.data || extent.bytes == 0) return;
  for (size_t i = 0; i < count_; ++i) {
    if ((extent.written || extents_[i].written) && share_bytes(extents_[i], extent)) {
      fail_invalid("%s: %s and %s share memory; expected what is written to be apart from everything else", op,
                   extents_[i].name, extent.name);
    }
  }
  if (count_ < kMost) extents_[count_++] = extent;
}

}  // namespace bnns
