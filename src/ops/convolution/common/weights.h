// The weights of one call, in the form that the chosen implementation wants.
#pragma once

#include <cstddef>

#include "src/ops/convolution/common/patch_map.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct ConvolutionProblem;

class MapWeights {
 public:
  // buffer: f32_floats() of them.
  MapWeights(const ConvolutionProblem& problem, const Tensor& w, float* buffer, size_t threads)
      : problem_(problem), w_(w), buffer_(buffer), threads_(threads) {}

  // In place, or converted into the buffer at the first use.
  const WeightView& f32() const;
  Bf16Weights bf16() const;  // where is_strided_bf16

  static size_t f32_floats(const Tensor& w);
  static bool is_strided_bf16(const Tensor& w);

 private:
  const ConvolutionProblem& problem_;
  const Tensor& w_;
  float* buffer_;
  size_t threads_;
  mutable WeightView view_;
};

// Those of a problem that is only asked about have strides of 0.
inline WeightView f32_weights(const MapWeights* weights) {
  return weights ? weights->f32() : WeightView{};
}

}  // namespace bnns
