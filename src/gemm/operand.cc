// Tensors as operands and results of the GEMM core: which are used in place, and copies of the others.

#include "src/gemm/operand.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"

namespace bnns {
namespace {

FloatType float_type(BNNSDataType type) {
  return type == BNNSDataTypeFloat16 ? FloatType::f16 : type == BNNSDataTypeBFloat16 ? FloatType::bf16 : FloatType::f32;
}

// The one stride between neighbours in memory order, or 0 when there is none.
size_t element_stride(const Tensor& t) {
  size_t stride = 0, run = 1;
  for (size_t j = 0; j < t.rank; ++j) {
    const size_t k = t.axis[j];
    if (t.size[k] == 1) continue;
    if (stride == 0)
      stride = t.stride[k];
    else if (t.stride[k] != stride * run)
      return 0;
    run *= t.size[k];
  }
  return stride ? stride : 1;
}

// One row of a matrix tensor as a vector.
Tensor row_of(const Tensor& matrix, size_t column_axis) {
  Tensor row = vector_tensor(matrix.size[column_axis], matrix.data);
  row.type = matrix.type;
  row.stride[0] = matrix.stride[column_axis];
  row.scale = matrix.scale;
  row.bias = matrix.bias;
  return row;
}

}  // namespace

MatrixOperand::MatrixOperand(const Tensor& sample, const void* base, size_t batch, size_t stride)
    : tensor_(&sample), base_(base), rows_(batch), columns_(sample.count), base_stride_(stride) {
  const size_t step = element_stride(sample);
  if (is_float(sample.type) && step) {
    lens_ = strided_lens(base, float_type(sample.type), static_cast<ptrdiff_t>(stride), static_cast<ptrdiff_t>(step));
  } else {
    staged_ = checked_mul(batch, sample.count, "scratch");
    staged_row_stride_ = static_cast<ptrdiff_t>(sample.count);
  }
}

MatrixOperand::MatrixOperand(const Tensor& matrix, size_t row_axis)
    : tensor_(&matrix), base_(matrix.data), rows_(1), columns_(matrix.count) {
  const size_t depth_axis = 1 - row_axis;
  if (is_float(matrix.type)) {
    lens_ = strided_lens(base_, float_type(matrix.type), static_cast<ptrdiff_t>(matrix.stride[row_axis]),
                         static_cast<ptrdiff_t>(matrix.stride[depth_axis]));
    return;
  }
  // The copy is dense in the matrix's own memory order.
  staged_ = matrix.count;
  const bool rows_fastest = matrix.axis[0] == row_axis;
  staged_row_stride_ = rows_fastest ? 1 : static_cast<ptrdiff_t>(matrix.size[depth_axis]);
  staged_depth_stride_ = rows_fastest ? static_cast<ptrdiff_t>(matrix.size[row_axis]) : 1;
}

MatrixOperand MatrixOperand::unscaled(const Tensor& matrix, size_t row_axis) {
  MatrixOperand operand(matrix, row_axis);
  const bool i8 = matrix.is(BNNSDataTypeInt8);
  if ((i8 || matrix.is(BNNSDataTypeUInt8)) && matrix.bias == 0) {
    operand.lens_ =
        strided_lens(operand.base_, i8 ? FloatType::i8 : FloatType::u8, static_cast<ptrdiff_t>(matrix.stride[row_axis]),
                     static_cast<ptrdiff_t>(matrix.stride[1 - row_axis]));
    operand.staged_ = 0;
    operand.factor_ = matrix.scale;
  }
  return operand;
}

void MatrixOperand::multiply_by(float factor) {
  if (factor == 1) return;
  factor_ = factor;
  staged_ = checked_mul(rows_, columns_, "scratch");
  staged_row_stride_ = static_cast<ptrdiff_t>(columns_);
}

void MatrixOperand::prepare(float* scratch, size_t n_threads) {
  if (!staged_) return;
  const Elements elements(*tensor_);
  const size_t pieces = div_up(columns_, kBlock);
  parallel_for(rows_ * pieces, threads_for(n_threads, rows_ * pieces, staged_ * sizeof(float)), [&](size_t i, size_t) {
    const size_t row = i / pieces, first = i % pieces * kBlock, n = std::min(kBlock, columns_ - first);
    float* to = scratch + row * columns_ + first;
    const float* values = elements.read(element_at(base_, tensor_->type, row * base_stride_), first, n, to);
    if (factor_ != 1) {
      for (size_t k = 0; k < n; ++k) to[k] = factor_ * values[k];
    } else if (values != to) {
      std::memcpy(to, values, n * sizeof(float));
    }
  });
  lens_ = strided_lens(scratch, FloatType::f32, staged_row_stride_, staged_depth_stride_);
}

MatrixResult::MatrixResult(const Tensor& sample, void* base, size_t batch, size_t stride)
    : row_(sample), base_(base), type_(sample.type), base_stride_(stride), accumulate_(sample.accumulate) {
  if (row_.direct()) {
    output_ = {static_cast<float*>(base), stride, 1};
  } else {
    staged_ = checked_mul(batch, sample.count, "scratch");
    output_ = {nullptr, sample.count, 1};
    if (sample.is(BNNSDataTypeBFloat16) && !accumulate_ && element_stride(sample) == 1) {
      bf16_ = static_cast<uint16_t*>(base);
    }
  }
}

MatrixResult::MatrixResult(const Tensor& matrix, size_t row_axis)
    : row_(row_of(matrix, 1 - row_axis)),
      base_(matrix.data),
      type_(matrix.type),
      base_stride_(matrix.stride[row_axis]),
      accumulate_(matrix.accumulate) {
  const size_t column_stride = matrix.stride[1 - row_axis];
  if (matrix.is(BNNSDataTypeFloat32) && (column_stride == 1 || base_stride_ == 1)) {
    output_ = {static_cast<float*>(base_), base_stride_, column_stride};
  } else {
    staged_ = matrix.count;
    output_ = {nullptr, matrix.size[1 - row_axis], 1};
    if (matrix.is(BNNSDataTypeBFloat16) && !accumulate_ && column_stride == 1) {
      bf16_ = static_cast<uint16_t*>(base_);
    }
  }
}

void MatrixResult::store(Range rows, Range columns) const {
  if (!staged_) return;
  for (size_t r = rows.begin; r < rows.end; ++r) {
    const float* values = output_.data + r * output_.row_stride + columns.begin;
    void* row = element_at(base_, type_, r * base_stride_);
    if (accumulate_) {
      row_.accumulate(row, columns.begin, columns.size(), values);
    } else if (row_.direct()) {
      std::memcpy(static_cast<float*>(row) + columns.begin, values, columns.size() * sizeof(float));
    } else {
      row_.write(row, columns.begin, columns.size(), values);
    }
  }
}

}  // namespace bnns
