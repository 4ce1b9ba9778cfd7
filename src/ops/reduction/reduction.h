// Reductions over axes: y = R over the reduced axes of x, with optional weights.
//
//   sums      Sum, Mean, MeanNonZero, SumSquare, SumLog, L1Norm, L2Norm, LogSumExp, LogSum: weights multiply the terms
//   others    Max, Min, ArgMax, ArgMin, Product, LogicalOr, LogicalAnd: of the elements w x
//
// The axes that are 1 in y and not in x are reduced. Blocks are folded in f32, blocks are joined in double, in an order
// that depends on the shape alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bnns/bnns.h"
#include "src/filter/filter.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct ReductionProblem {
  Tensor x, y, w;  // one sample each; w.count is 0 without weights
  BNNSReduceFunction function = BNNSReduceFunctionSum;
  float epsilon = 0;
  size_t length = 1;  // elements of x for each of y

  bool weighted() const { return w.count != 0; }
  std::string text() const;  // "reduction f32 28x28x3 to f32 1x1x3 Mean"
};

// Every check of BNNSLayerParametersReduction; data of x and y are not looked at.
ReductionProblem make_reduction_problem(const BNNSLayerParametersReduction* layer);

class ReductionFilter final : public Filter {
 public:
  static constexpr FilterKind kKind = FilterKind::reduction;
  ReductionFilter(const Options& options, const ReductionProblem& problem);

  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override;
  void backward(const BackwardCall& call) override;
  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.y; }

 private:
  ReductionProblem problem_;
  Parameter weights_;
  ScratchShelf scratch_;
};

// y from x; tensors carry their data, and `batch` samples are x_stride and y_stride elements apart.
void reduce_batch(const ReductionProblem& problem, size_t batch, size_t x_stride, size_t y_stride, size_t n_threads,
                  ScratchShelf& shelf);

// An axis of a sum: kept, or reduced (then `to` is not looked at); strides in elements.
struct SumAxis {
  size_t extent = 1, from = 0, to = 0;
  bool reduced = false;
};
// to = the sum of `from` over the reduced ones of n <= 2 kMaxRank axes, or added to it where to.accumulate is set. Both
// are f32, f16 or bf16 and carry their data.
void sum_axes(const Tensor& from, const Tensor& to, const SumAxis* axes, size_t n, size_t n_threads,
              ScratchShelf& shelf);

// ---- kernels ----------------------------------------------------------------------------------------------------

enum class ReductionTerm : uint8_t {
  value,      // sum of x
  square,     // sum of x^2
  logarithm,  // sum of log(x + epsilon)
  magnitude,  // sum of |x|
  masked,     // sum of w x where w is not 0
  nonzero,    // how many x are not 0
  any,        // 1 if an x is not 0
  all,        // 1 if no x is 0
  maximum,    // NaN is passed over; NaN if there is nothing else
  present,    // maximum of x where w is not 0
  minimum,    // as maximum
};

// A matrix of f32: rows `step` elements apart. data NULL: no weights.
struct ReductionMatrix {
  const float* data = nullptr;
  size_t step = 0;
};

// y[r] = fold of row r, or y[c] = fold of column c. Sums weigh their terms by w; the others take w x.
void reduce_rows(ReductionTerm term, ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, float epsilon,
                 float* y) noexcept;
void reduce_columns(ReductionTerm term, ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, float epsilon,
                    float* y) noexcept;
// Sums of w exp(x - shift), one shift for each result.
void exp_rows(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, const float* shift, float* y) noexcept;
void exp_columns(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, const float* shift, float* y) noexcept;
// Products in double, so that a product whose factors leave the range of f32 on the way comes back.
void product_rows(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, double* y) noexcept;
void product_columns(ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, double* y) noexcept;
// The extreme of each column and the first row that has it; NaN is passed over, and is the extreme where there is
// nothing else.
void arg_columns(bool largest, ReductionMatrix x, ReductionMatrix w, size_t rows, size_t n, float* y,
                 int32_t* row) noexcept;
// The first i with w x = value, or with NaN if value is NaN; n if there is none. w may be NULL.
size_t find_first(const float* x, const float* w, size_t n, float value) noexcept;

// What a gradient is made of; c is dy with its factors, a the result, one for each element.
enum class ReductionSlope : uint8_t { linear, masked, square, logarithm, magnitude, exponential };
// dx: c w, c w x, c w / (x + epsilon), c w sign(x), c w exp(x - a); w may be NULL, x is not read by linear and masked.
void reduction_slope_x(ReductionSlope slope, const float* x, const float* w, const float* c, const float* a,
                       float epsilon, float* dx, size_t n) noexcept;
// dw += c x, c x^2 / 2, c log(x + epsilon), c |x|, c exp(x - a).
void reduction_slope_w(ReductionSlope slope, const float* x, const float* w, const float* c, const float* a,
                       float epsilon, float* dw, size_t n) noexcept;

}  // namespace bnns
