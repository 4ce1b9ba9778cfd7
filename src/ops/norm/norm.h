// L2 norms over slices of a tensor, their gradient, and clipping by value, norm and global norm.
//
//   norm      y = sqrt(sum x^2) over the reduced axes; one y per slice
//   backward  dx = dy x / y, 0 where y = 0
//   clip      y = x min(1, max_norm / norm of its slice)
//
// x is any f32, f16 or bf16 tensor. Squares are summed in double, so no f32 input overflows or underflows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bnns/bnns.h"
#include "src/tensor/elements.h"
#include "src/tensor/tensor.h"

namespace bnns {

// A tensor cut into slices: the axes of `axes` lie inside a slice, the others number the slices.
struct NormProblem {
  Tensor x;
  uint32_t axes = 0;              // reduced axes, bit d is size[d]; never 0
  size_t slices = 1, length = 0;  // slices * length = x.count

  std::string text(const char* name) const;  // "clip_by_norm f32 28x28x3 axes 0x4"
};

// axis_flags 0 means all axes. Refuses types other than f32, f16, bf16 and bits beyond the rank.
NormProblem make_norm_problem(const BNNSNDArrayDescriptor* x, uint32_t axis_flags, const char* op, const char* field);

// The operators. Everything is checked before the first write; dest may be src itself.
void clip_by_value(const BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src, float low, float high);
void clip_by_norm(const BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src, float max_norm,
                  uint32_t axis_flags);
void clip_by_global_norm(BNNSNDArrayDescriptor* const* dest, const BNNSNDArrayDescriptor* const* src, size_t count,
                         float max_norm, float use_norm);
void compute_norm(const BNNSNDArrayDescriptor* dest, const BNNSNDArrayDescriptor* src, BNNSNormType type,
                  uint32_t axis_flags);
void compute_norm_backward(const void* in, const BNNSNDArrayDescriptor* in_delta, const void* out,
                           const BNNSNDArrayDescriptor* out_delta, BNNSNormType type, uint32_t axis_flags);

// Sum of squares of a whole tensor, the same bits for any number of threads.
double sum_of_squares(const float* x, size_t n, size_t n_threads) noexcept;
double sum_of_squares(const Elements& x, const void* base, size_t n_threads) noexcept;

// The factor of a clip: 1 for a norm of 0.
inline double clip_factor(double norm, double max_norm) {
  return norm > max_norm ? max_norm / norm : 1;
}

// ---- slices (norm_slices.cc) ------------------------------------------------------------------------------------

// The elements of a tensor by slice. Slices are numbered, and elements inside a slice ordered, by the memory order of
// `order`, a tensor of the same extents; so lenses on x, y and dx agree on what element (s, i) is.
struct SliceLens {
  SliceLens(const Tensor& t, const Tensor& order, uint32_t axes);
  Elements slice, across;  // offsets inside a slice, and from slice to slice
  BNNSDataType type;
};

// squares[s] = sum of squares of slice s.
void slice_squares(const NormProblem& problem, double* squares);

// y = factors[s] * x for every element of slice s, or added to y. x_data and y_data may be the same memory.
void slice_scale(const NormProblem& problem, const void* x_data, const Tensor& y, const double* factors);

// ---- kernels ----------------------------------------------------------------------------------------------------
// Pointers of one call are equal or do not overlap.

double square_sum(const float* x, size_t n) noexcept;
void square_add(const float* x, double* sums, size_t n) noexcept;                     // sums[i] += x[i]^2
void scale_all(const float* x, double factor, float* y, size_t n) noexcept;           // y[i] = factor x[i]
void scale_each(const float* x, const double* factors, float* y, size_t n) noexcept;  // y[i] = factors[i] x[i]
void clamp_all(const float* x, float low, float high, float* y, size_t n) noexcept;   // NaN stays NaN

}  // namespace bnns
