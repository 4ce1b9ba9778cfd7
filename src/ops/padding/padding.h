// Padding: elements before and after on every axis, constant or mirrored; dx sums dy over the places x was copied to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/engine/axis_map/axis_map.h"
#include "src/filter/filter.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct PaddingProblem {
  Tensor x, y;  // one sample; y.size[k] = before[k] + x.size[k] + after[k]
  BNNSPaddingMode mode = BNNSPaddingModeConstant;
  size_t before[kMaxRank] = {}, after[kMaxRank] = {};
  unsigned char fill[8] = {};  // an element's bits in the leading bytes

  std::string text() const;  // "padding f32 28x28x3 reflect 1,1 1,1 0,0"
};

// Every check of BNNSLayerParametersPadding.
PaddingProblem make_padding_problem(const BNNSLayerParametersPadding* layer);

// Where output index o of an axis comes from, or -1: constant padding.
ptrdiff_t padding_source(BNNSPaddingMode mode, size_t extent, size_t before, size_t o);

class PaddingFilter final : public Filter {
 public:
  static constexpr FilterKind kKind = FilterKind::padding;
  PaddingFilter(const Options& options, const PaddingProblem& problem);

  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override;
  void backward(const BackwardCall& call) override;
  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.y; }

 private:
  PaddingProblem problem_;
  AxisTables tables_;
  ScratchShelf scratch_;
};

}  // namespace bnns
