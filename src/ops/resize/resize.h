// Resize: nearest or linear interpolation along the axes whose sizes differ; dx is the transpose of the interpolation.
#pragma once

#include <cstddef>
#include <string>

#include "src/engine/axis_map/axis_map.h"
#include "src/filter/filter.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct ResizeProblem {
  Tensor x, y;  // one sample, same rank
  BNNSInterpolationMethod method = BNNSInterpolationMethodNearest;
  bool align_corners = false;

  std::string text() const;  // "resize f32 28x28x3 to f32 56x56x3 linear half-pixel"
};

// Every check of BNNSLayerParametersResize.
ResizeProblem make_resize_problem(const BNNSLayerParametersResize* layer);

// Where output index o of an axis of `in` elements that becomes `out` comes from.
Tap resize_tap(BNNSInterpolationMethod method, bool align_corners, size_t in, size_t out, size_t o);

class ResizeFilter final : public Filter {
 public:
  static constexpr FilterKind kKind = FilterKind::resize;
  ResizeFilter(const Options& options, const ResizeProblem& problem);

  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override;
  void backward(const BackwardCall& call) override;
  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.y; }

 private:
  ResizeProblem problem_;
  AxisTables tables_;
  ScratchShelf scratch_;
};

}  // namespace bnns
