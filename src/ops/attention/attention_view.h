// Tensors of attention by their logical indices: `outer` matrices of rows x columns, whatever layout and type.
#pragma once

#include <cstddef>

#include "src/gemm/gemm.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct MatrixView {
  void* data = nullptr;
  BNNSDataType type = BNNSDataTypeFloat32;
  size_t outer = 1, rows = 1, columns = 1;
  size_t outer_stride = 0, row_stride = 0, column_stride = 1;  // in elements
  bool accumulate = false;

  size_t count() const { return outer * rows * columns; }
  // All rows, one constant stride apart?
  bool uniform() const { return outer <= 1 || rows == 1 || outer_stride == rows * row_stride; }
  size_t step() const { return rows == 1 && outer > 1 ? outer_stride : row_stride; }
  // What a GEMM can read, or write, where it lies.
  bool is_operand() const { return uniform(); }
  bool is_result() const {
    return uniform() && type == BNNSDataTypeFloat32 && (column_stride == 1 || step() == 1 || columns == 1);
  }
};

// Rows are all rows of all matrices; depth runs over columns. For views that are operands.
Lens lens_of(const MatrixView& view);
GemmOutput output_of(const MatrixView& view);  // for views that are results

// f32 [outer * rows][columns], dense, from and to the tensor (added to it where view.accumulate).
void gather(const MatrixView& view, float* to, size_t n_threads);
void scatter(const float* from, const MatrixView& view, size_t n_threads);

// Size and stride by logical index, first to last. Refuses layouts that have no logical order here.
struct LogicalShape {
  size_t rank = 0;
  size_t size[4] = {}, stride[4] = {};
};
LogicalShape logical_shape(const Tensor& t, const char* op, const char* field);

// The bytes that an argument covers, for the check that nothing written is shared. Rows and matrices keep their steps,
// so that tensors whose rows alternate in one buffer (packed Q, K, V) count as apart.
struct AttentionExtent {
  const void* data = nullptr;
  size_t bytes = 0;
  const char* name = "";
  bool written = false;
  size_t row_bytes = 0, row_step = 0, outer_step = 0;  // 0: no pattern

  AttentionExtent() = default;
  AttentionExtent(const MatrixView& view, const char* extent_name, bool is_written);
  AttentionExtent(const void* base, size_t n, const char* extent_name, bool is_written)
      : data(base), bytes(n), name(extent_name), written(is_written) {}
};

// The extents of one call, checked as they come: refuses what shares bytes with something before it when one of the two
// is written.
class AttentionExtents {
 public:
  void add(const AttentionExtent& extent, const char* op);

 private:
  static constexpr size_t kMost = 40;
  AttentionExtent extents_[kMost];
  size_t count_ = 0;
};

}  // namespace bnns
