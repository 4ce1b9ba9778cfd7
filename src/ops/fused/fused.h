// Two layers as one filter: {convolution, transposed convolution, fully connected, arithmetic} then normalization, or
// {convolution, transposed convolution, fully connected} then quantization (inference).
//
//   middle = first(x)        y = second(middle)
// The middle tensor is f32 and is never rounded to the descriptors' type. Where the first stage finishes blocks, the
// second stage takes them from its cache: statistics are gathered there, and inference with moving statistics or with a
// quantizer writes y at once, so that the middle tensor does not exist.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "src/core/process/fork.h"
#include "src/filter/filter.h"
#include "src/ops/arithmetic/arithmetic.h"
#include "src/ops/convolution/convolution.h"
#include "src/ops/fully_connected/fully_connected.h"
#include "src/ops/normalization/normalization.h"
#include "src/ops/quantization/quantization.h"

namespace bnns {

// The first stage, with an f32 dense output. One of the three is there.
struct FusedFirst {
  std::optional<ConvolutionProblem> convolution;
  std::optional<FullyConnectedProblem> fully_connected;
  std::optional<ArithmeticProblem> arithmetic;

  const Tensor& out() const;
  bool has_activation() const;
  size_t inputs() const { return arithmetic ? arithmetic->inputs() : 1; }
  size_t parameters() const { return arithmetic ? 0 : 2; }  // weights and bias
};

// One of the two second stages is there.
struct FusedProblem {
  FusedFirst first;
  std::optional<NormalizationProblem> normalization;
  std::optional<QuantizationProblem> quantization;
};

// Every check of BNNSFilterCreateFusedLayer.
FusedProblem make_fused_problem(size_t count, const BNNSFilterType* types, const void* const* layers);

// The arguments of the fused backward calls.
struct FusedBackward {
  size_t batch = 0, inputs = 1;
  const void* const* in = nullptr;
  const size_t* in_stride = nullptr;
  BNNSNDArrayDescriptor* const* in_delta = nullptr;
  const size_t* in_delta_stride = nullptr;
  const void* out = nullptr;
  size_t out_stride = 0;
  const BNNSNDArrayDescriptor* out_delta = nullptr;
  size_t out_delta_stride = 0;
  BNNSNDArrayDescriptor* const* parameter_deltas = nullptr;  // first's, then second's; NULL entries are not wanted
};

// Training passes and gradients of one filter wait for each other; inference takes no lock.
class FusedFilter final : public Filter {
 public:
  static constexpr FilterKind kKind = FilterKind::fused;
  FusedFilter(const Options& options, const FusedProblem& problem);

  void apply(size_t batch, size_t inputs, const void* const* in, const size_t* in_stride, void* out, size_t out_stride,
             bool training);
  void apply_backward(const FusedBackward& call);
  // That of the first stage.
  const char* implementation(BNNSExtPass pass, size_t batch) const override;
  std::string text() const override;
  const Tensor* result() const override { return &out(); }
  size_t parameters() const { return shape_.parameters() + (normalization_ ? 2 : 0); }  // of a backward call
  bool is_sample(size_t input) const { return !shape_.arithmetic || shape_.arithmetic->is_sample(input); }

 private:
  struct Normalization {
    NormalizationProblem problem;
    NormalizationParameters parameters;
    ForkMutex mutex;  // guards state and the moving statistics
    NormalizationState state;
    Normalization(const NormalizationProblem& p, const Options& options)
        : problem(p), parameters(p, options), state(options) {}
  };
  struct Quantization {
    QuantizationProblem problem;
    QuantizationParameters parameters;
  };
  const Tensor& out() const { return normalization_ ? normalization_->problem.y : quantization_->problem.y; }
  void normalize(size_t batch, const void* const* in, const size_t* in_stride, void* out, size_t out_stride,
                 NormalizationState* state);
  void quantize(size_t batch, const void* const* in, const size_t* in_stride, void* out, size_t out_stride);
  void run_first(size_t batch, const void* const* in, const size_t* in_stride, float* middle, size_t middle_stride);
  void run_first_sample(size_t n, const void* const* in, const size_t* in_stride, float* middle);
  void first_backward(const FusedBackward& call, const BNNSNDArrayDescriptor& middle);

  FusedFirst shape_;  // of the first stage
  std::optional<ConvolutionFilter> convolution_;
  std::optional<FullyConnectedFilter> fully_connected_;
  std::optional<ArithmeticFilter> arithmetic_;
  std::optional<Normalization> normalization_;
  std::optional<Quantization> quantization_;
  ScratchShelf scratch_;
};

}  // namespace bnns
