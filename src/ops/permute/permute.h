// Permute: y's axis k is x's axis permutation[k] (axes in size order); dx is dy by the inverse permutation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/filter/filter.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct PermuteProblem {
  Tensor x, y;  // one sample; same rank and type, y.size[k] = x.size[permutation[k]]
  uint8_t permutation[kMaxRank] = {};

  std::string text() const;  // "permute f32 28x28x3 to 3x28x28 axes 2,0,1"
};

// Every check of BNNSLayerParametersPermute.
PermuteProblem make_permute_problem(const BNNSLayerParametersPermute* layer);

class PermuteFilter final : public Filter {
 public:
  static constexpr FilterKind kKind = FilterKind::permute;
  PermuteFilter(const Options& options, const PermuteProblem& problem) : Filter(kKind, options), problem_(problem) {}

  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override;
  // in, out and their strides are not looked at; in_delta may be absent.
  void backward(const BackwardCall& call) override;
  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.y; }

 private:
  PermuteProblem problem_;
};

}  // namespace bnns
