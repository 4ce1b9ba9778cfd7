// Products with one or very few vectors (batch 1), and rank-one updates: bound by memory, so nothing large is packed.
#pragma once

#include <cstddef>

#include "src/gemm/plan.h"

namespace bnns::detail {

// The few vectors are rows of C (A has them, B is the matrix) or columns of C.
enum class Vectors { rows, columns };

// A product seen as few vectors x_i against the many rows w(j, :) of a matrix.
struct SkinnyCall {
  const Lens &vectors, &matrix;
  size_t count, rows;  // of vectors, of rows of the matrix
  bool are_columns;

  SkinnyCall(const GemmCall& call, Vectors side)
      : vectors(side == Vectors::columns ? call.b : call.a),
        matrix(side == Vectors::columns ? call.a : call.b),
        count(side == Vectors::columns ? call.n : call.m),
        rows(side == Vectors::columns ? call.m : call.n),
        are_columns(side == Vectors::columns) {}

  // Rows and columns of C that some of the matrix's rows are.
  Range c_rows(Range part) const { return are_columns ? part : Range{0, count}; }
  Range c_columns(Range part) const { return are_columns ? Range{0, count} : part; }

  // The vectors as plain f32 with contiguous depth, in place or packed into *memory, which moves on; and y.
  SkinnyBlock block(const GemmCall& call, float** memory) const;
  size_t packed_floats(const GemmCall& call) const;  // of *memory
};

// Between packed vectors, in floats.
inline size_t packed_stride(size_t depth) {
  return round_up(depth, 16) + 16;
}

// dot.cc: SIMD along the depth.
template <Vectors side>
bool accepts_dot(const GemmCall& call);
template <Vectors side>
void run_dot(const GemmCall& call, float* workspace);
template <Vectors side>
size_t dot_workspace_floats(const GemmCall& call);

// axpy.cc: SIMD along the rows of the matrix.
template <Vectors side>
bool accepts_axpy(const GemmCall& call);
template <Vectors side>
void run_axpy(const GemmCall& call, float* workspace);
template <Vectors side>
size_t axpy_workspace_floats(const GemmCall& call);

// rank_one.cc: the outer product of two vectors.
bool accepts_rank_one(const GemmCall& call);
void run_rank_one(const GemmCall& call, float* workspace);
size_t rank_one_workspace_floats(const GemmCall& call);

}  // namespace bnns::detail
