// Element-wise arithmetic of one, two or three tensors: y = act(f(x0, x1, x2)), and the gradients of every input.
//
// All tensors have one layout. An input's extent is the output's or 1, and then its elements repeat along that axis.
// Every formula is a kernel on short f32 blocks (arithmetic_forward_simd.cc, arithmetic_backward_simd.cc); an Operand
// (arithmetic_operand.h) brings blocks of any layout, stride, type and broadcast to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bnns/bnns.h"
#include "src/core/memory.h"
#include "src/engine/activation/activation.h"
#include "src/filter/filter.h"
#include "src/tensor/tensor.h"

namespace bnns {

inline constexpr size_t kArithmeticInputs = 3;

// What must be known about a function besides its formula. Masks have bit k for input k.
struct ArithmeticFunction {
  enum class InPlace : uint8_t { never, with_identity, always };  // may in_delta be the buffer of out_delta?

  const char* name;
  uint8_t inputs;
  InPlace gradient_in_place;
  bool has_gradient;
  bool costly;                                // the arithmetic takes longer than the memory
  uint8_t gradient_reads[kArithmeticInputs];  // the inputs that the gradient of input k is computed from
  uint8_t gradient_reads_y;                   // the gradient of input k is computed from y = f(x)
  uint8_t gradient_is_g;                      // the gradient of input k is the incoming gradient itself
};

// NULL for a value that is no BNNSArithmeticFunction.
const ArithmeticFunction* arithmetic_function(BNNSArithmeticFunction function) noexcept;

struct ArithmeticProblem {
  BNNSArithmeticFunction function = BNNSArithmeticAdd;
  Tensor in[kArithmeticInputs];
  BNNSDescriptorType in_type[kArithmeticInputs] = {};  // Constant, Sample (batched), Parameter
  Tensor out;
  Activation activation;

  const ArithmeticFunction& info() const { return *arithmetic_function(function); }
  size_t inputs() const { return info().inputs; }
  bool is_sample(size_t k) const { return in_type[k] == BNNSSample; }
  bool is_constant(size_t k) const { return in_type[k] == BNNSConstant; }
  // "arithmetic multiply(sample f32 128x32, parameter f32 128x1) -> f32 128x32 relu"
  std::string text() const;
};

// Every check that does not depend on data pointers; throws Error.
ArithmeticProblem make_arithmetic_problem(const BNNSLayerParametersArithmetic* layer);

// The arguments of BNNSArithmeticFilterApplyBackwardBatch.
struct ArithmeticBackward {
  size_t batch = 0, inputs = 0;
  const void* const* in = nullptr;    // NULL, or NULL entries, where no gradient is computed from them
  const size_t* in_stride = nullptr;  // NULL: dense samples
  const BNNSNDArrayDescriptor* const* in_delta = nullptr;
  const size_t* in_delta_stride = nullptr;
  const void* out = nullptr;  // needed to undo an activation; else it may save recomputing y
  size_t out_stride = 0;
  const BNNSNDArrayDescriptor* out_delta = nullptr;
  size_t out_delta_stride = 0;
  bool skip_missing_deltas = false;  // a NULL in_delta entry means "not wanted" for every kind of input
};

// Forward and backward keep no state: any number of threads may use one filter at once.
class ArithmeticFilter final : public Filter {
 public:
  ArithmeticFilter(const Options& options, const ArithmeticProblem& problem)
      : Filter(FilterKind::arithmetic, options), problem_(problem), shelf_(options) {}

  using Filter::backward;  // the generic calls: refused, with the name of the right one
  using Filter::forward;
  // in and in_stride have `inputs` entries; strides are in elements, 0 is dense, and count for Sample inputs only. out
  // may be one of the inputs if both are stored alike. Refusals leave out untouched.
  void forward(size_t batch, size_t inputs, const void* const* in, const size_t* in_stride, void* out,
               size_t out_stride);
  // Gradients of all inputs that are not Constant. Refusals leave every delta untouched.
  void backward(const ArithmeticBackward& call);

  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.out; }
  const ArithmeticProblem& problem() const { return problem_; }

 private:
  ArithmeticProblem problem_;
  ScratchShelf shelf_;
};

// ---- kernels: n <= a few thousand f32 elements, on one thread --------------------------------------------------

// y = f(x[0], x[1], x[2]); y may be one of the inputs. Inputs that the function does not have are not looked at.
void arithmetic_forward_block(BNNSArithmeticFunction function, const float* const* x, float* y, size_t n) noexcept;

// y = x, and y = value everywhere. For a block of 2 KiB, glibc 2.36 on Zen 4 picks a string instruction that takes 3.6
// times as long as vector stores (two copies of 25 MB block by block: 9.2 and 2.6 ms), and gcc -O2 leaves std::fill
// scalar.
void arithmetic_copy(const float* x, float* y, size_t n) noexcept;
void arithmetic_fill(float value, float* y, size_t n) noexcept;

// d = g df/dx[k]. Reads only the x[j] and the y that ArithmeticFunction names. d may be g.
void arithmetic_backward_block(BNNSArithmeticFunction function, size_t k, const float* const* x, const float* y,
                               const float* g, float* d, size_t n) noexcept;

// The gradient of a repeated input is a sum. Sums are kept in double: their error is that of the final rounding.
// sums[i] += d[i]; the sum of all; sums[i] += the sum of the i-th `length` elements.
void arithmetic_add_to_sums(const float* d, double* sums, size_t n) noexcept;
double arithmetic_sum(const float* d, size_t n) noexcept;
void arithmetic_add_groups(const float* d, size_t length, double* sums, size_t groups) noexcept;

}  // namespace bnns
