// Tensors as operands and results of the GEMM core.
//
// MatrixOperand is a lens straight on the caller's memory where type and strides allow (f32, f16, bf16 with one
// constant stride), else on an f32 copy in scratch. MatrixResult is the caller's f32 memory where one stride is 1, else
// f32 scratch that the GEMM's epilogue converts and stores block by block.
#pragma once

#include <cstddef>

#include "src/gemm/gemm.h"
#include "src/tensor/elements.h"
#include "src/tensor/tensor.h"

namespace bnns {

class MatrixOperand {
 public:
  MatrixOperand() = default;
  // Rows are samples, `stride` elements apart; depth runs over a sample's elements in memory order.
  MatrixOperand(const Tensor& sample, const void* base, size_t batch, size_t stride);
  // A matrix tensor: rows run along size axis `row_axis`, depth along the other one.
  MatrixOperand(const Tensor& matrix, size_t row_axis);
  // The same of whole numbers of 8 bits without a data_bias, read in place where they are such: the product is then to
  // be multiplied by factor().
  static MatrixOperand unscaled(const Tensor& matrix, size_t row_axis);
  float factor() const { return factor_; }
  // Samples multiplied by a factor: of the other operand, where that is unscaled.
  void multiply_by(float factor);

  size_t scratch_floats() const { return staged_; }
  // Converts into `scratch` where that is needed. The lens is valid after this.
  void prepare(float* scratch, size_t n_threads);
  const Lens& lens() const { return lens_; }
  // The same before prepare(), without data.
  Lens shape() const {
    return staged_ ? strided_lens(nullptr, FloatType::f32, staged_row_stride_, staged_depth_stride_) : lens_;
  }

 private:
  Lens lens_;
  const Tensor* tensor_ = nullptr;
  const void* base_ = nullptr;
  size_t staged_ = 0, rows_ = 0, columns_ = 0, base_stride_ = 0;
  float factor_ = 1;
  ptrdiff_t staged_row_stride_ = 0, staged_depth_stride_ = 1;
};

// The same matrix with rows and depth exchanged.
inline Lens transposed(const Lens& lens) {
  return strided_lens(lens.data, lens.type, lens.depth_stride, lens.row_stride);
}

class MatrixResult {
 public:
  MatrixResult() = default;
  // Row r is sample r, `stride` elements apart; columns are a sample's elements in memory order.
  MatrixResult(const Tensor& sample, void* base, size_t batch, size_t stride);
  // A matrix tensor: rows along size axis `row_axis`, columns along the other one.
  MatrixResult(const Tensor& matrix, size_t row_axis);

  size_t scratch_floats() const { return staged_; }
  void use(float* room) {
    if (staged_) output_.data = room;
  }
  const GemmOutput& output() const { return output_; }
  // The same, for a product whose epilogue is epilogue(): it may store bf16 itself.
  GemmOutput output_or_bf16() const {
    GemmOutput output = output_;
    output.bf16 = bf16_, output.bf16_row_stride = base_stride_;
    return output;
  }
  GemmInit init() const { return accumulate_ && !staged_ ? GemmInit::accumulate : GemmInit::overwrite; }
  // Stores a finished block; nothing to do when the GEMM wrote the caller's memory.
  void store(Range rows, Range columns) const;
  GemmEpilogue epilogue() { return staged_ ? GemmEpilogue{run_store, this} : GemmEpilogue{}; }

 private:
  static void run_store(void* context, Range rows, Range columns) {
    static_cast<const MatrixResult*>(context)->store(rows, columns);
  }
  GemmOutput output_;
  uint16_t* bf16_ = nullptr;  // the caller's memory, where it is overwritten by rows of bf16
  Elements row_;
  void* base_ = nullptr;
  BNNSDataType type_ = BNNSDataTypeFloat32;
  size_t staged_ = 0, base_stride_ = 0;
  bool accumulate_ = false;
};

}  // namespace bnns
