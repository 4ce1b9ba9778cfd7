// The stand-alone activation layer.
#pragma once

#include <cstddef>

#include "src/filter/filter.h"
#include "src/ops/activation/activation.h"
#include "src/ops/activation/batch_elements.h"

namespace bnns {

// Keeps nothing of a call, so any number of threads may apply one filter at once. alpha, beta and the alphas of
// PReLUPerChannel belong to the client once the filter exists (BNNSGetPointer) and are read at each call.
class ActivationFilter final : public Filter {
 public:
  ActivationFilter(const Options& options, const ActivationProblem& problem);

  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override;
  void backward(const BackwardCall& call) override;
  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.o; }

  // A Float32 vector over alpha (size 1, or one per channel) or beta.
  BNNSNDArrayDescriptor pointer(BNNSPointerSpecifier target);

 private:
  // What backward computes f' from.
  enum class Source { none, input, output };

  Activation current() const { return {problem_.activation.function, alpha_, beta_}; }
  bool is_prelu() const { return alphas_.data() != nullptr; }
  // The alpha of each of n elements from `first` of the batch.
  void spread_alphas(size_t first, size_t n, float* a) const;

  void forward_elements(size_t batch, const BatchOperand& x, const BatchOperand& y) const;
  void forward_gumbel(size_t batch, const BatchOperand& y) const;
  void forward_integer(size_t batch, const BatchOperand& x, const BatchOperand& y) const;
  void forward_rows(size_t batch, const BatchOperand& x, const BatchOperand& y);
  void forward_gumbel_max(size_t batch, const BatchOperand& x, const BatchOperand& y);

  Source choose_source(const BackwardCall& call) const;
  void backward_elements(size_t batch, Source source, const BatchOperand& s, const BatchOperand& dy,
                         const BatchOperand& dx) const;
  void backward_rows(size_t batch, Source source, const BatchOperand& s, const BatchOperand& dy,
                     const BatchOperand& dx);
  void backward_alpha(size_t batch, const BatchOperand& x, const BatchOperand& dy, const Tensor& dalpha);

  ActivationProblem problem_;
  float alpha_, beta_;
  Buffer alphas_;           // PReLUPerChannel: one float per channel
  Buffer channel_numbers_;  // IntegerLinearSaturatePerChannel: scales, offsets, shifts
  ScratchShelf shelf_;
};

}  // namespace bnns
