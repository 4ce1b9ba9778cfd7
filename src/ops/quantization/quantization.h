// Quantization: y = scale x + bias; dequantization: y = (x - bias) / scale; element by element, no gradient.
//
// scale and bias are single values, or vectors along one axis of the sample, or along the batch. Arithmetic is f32 with
// two roundings, the same bits on every instruction set; integer results are rounded to nearest, ties to even, and
// saturated, NaN becomes 0. data_scale and data_bias of the descriptors are ignored.
#pragma once

#include <cstddef>
#include <string>

#include "src/filter/parameter.h"
#include "src/tensor/elements.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct QuantizationProblem {
  static constexpr size_t kNoAxis = SIZE_MAX;

  bool dequantize = false;
  Tensor x, y;            // one sample; elements are paired in memory order
  Tensor scale, bias;     // vectors; data NULL: 1 and 0
  size_t axis = kNoAxis;  // size axis of x that scale and bias go along; x.rank: the batch
  // Element i of a batch, counted in memory order of x, takes entry i / inner of the vectors, modulo `entries`. One
  // entry for all: inner is 0. Along the batch `entries` is the batch size, which the vectors' length fixes.
  size_t inner = 0, entries = 1;
  // Samples as the walk over them needs them: aligned stretches of `run` elements lie next to each other.
  Elements x_elements, y_elements;
  size_t x_run = 1, y_run = 1;

  bool along_batch() const { return axis == x.rank; }
  std::string text() const;  // "quantize f32 4x2 to i8 axis 0"
};

// Every check of BNNSLayerParametersQuantization. Data of i_desc and o_desc are not looked at.
QuantizationProblem make_quantization_problem(const BNNSLayerParametersQuantization* layer);

// Scale and bias: the client's memory (BNNSFlagsUseClientPtr), read by every call, or copies made here.
class QuantizationParameters {
 public:
  QuantizationParameters(const QuantizationProblem& problem, const Options& options);

  const Tensor& scale() const { return scale_.tensor(); }
  const Tensor& bias() const { return bias_.tensor(); }

 private:
  Parameter scale_, bias_;
};

// What depends on the call, for both users below: vectors along the batch have `batch` entries, and out (whose batch
// stride is resolved) shares no memory with scale and bias.
void check_quantization_call(const QuantizationProblem& problem, const QuantizationParameters& parameters, size_t batch,
                             const void* out, size_t out_stride);

// A whole batch: checks pointers and strides, then runs on up to n_threads threads. In place where x and y name the
// same elements.
void quantize_batch(const QuantizationProblem& problem, const QuantizationParameters& parameters, size_t batch,
                    const void* in, size_t in_stride, void* out, size_t out_stride, size_t n_threads);

// For a fused filter whose first stage finishes f32 values run by run: stores elements [first, first + count) of sample
// n, in memory order, in the output batch at `out`. i_desc's type plays no part: the values are not rounded to it.
//   out_stride   elements from sample to sample, resolved (output_batch_stride), with check_quantization_call made
//   values       must not overlap out
// Any split into runs gives the same bits; disjoint runs may be written at the same time. No allocation, no throw.
void quantize_run(const QuantizationProblem& problem, const QuantizationParameters& parameters, size_t n, size_t first,
                  const float* values, size_t count, void* out, size_t out_stride) noexcept;

// ---- kernels: quantization_simd.cc ---------------------------------------------------------------------------------

// y[i] = scale x[i] + bias, or (x[i] - bias) / scale, for n elements next to each other. One of the types is f32, the
// other any float or integer of at most 32 bits. scale and bias have n entries if per_element, else one each. y may
// be x.
struct QuantizationBlock {
  bool dequantize, per_element;
  BNNSDataType x_type, y_type;
  const float *scale, *bias;
  const void* x;
  void* y;
  size_t n;
};
void quantize_block(const QuantizationBlock& block) noexcept;

}  // namespace bnns
