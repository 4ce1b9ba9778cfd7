// Pooling: y = act(fold of a window of x + bias), and its gradient.
//
//   Max      y = max x over the window              dx at the first maximum += g
//   Average  y = sum x / count                      dx += g / count for each x in the window
//   L2Norm   y = sqrt(sum x^2)                      dx += g x / norm
//   UnMax    y = 0, then y[index(i)] = x(i)         dx(i) = g[index(i)]
//
// with g = dy * act'. x is (C, H, W), y is (C, OH, OW). PoolingProblem and PoolingGeometry are plain numbers that other
// interfaces share (pooling/common/kernels.h, pooling/common/geometry.h); this header is the BNNS layer.
#pragma once

#include <cstddef>
#include <string>

#include "src/engine/activation/activation.h"
#include "src/filter/filter.h"
#include "src/ops/pooling/common/kernels.h"
#include "src/tensor/tensor.h"

namespace bnns {

// A validated BNNSLayerParametersPooling.
struct PoolingLayer {
  PoolingProblem problem;
  Tensor x, y, b;  // one sample each; b.count is 0 without a bias
  Activation activation;
  size_t pad[4] = {};  // left, right, up, down as given: for text()

  bool has_bias() const { return b.count != 0; }
  std::string text() const;  // "max_pool f32 c64 h112x56 w112x56 k3x3 s2x2 p1,1,1,1 relu"
};

// Every check of BNNSLayerParametersPooling.
PoolingLayer make_pooling_layer(const BNNSLayerParametersPooling* layer);

// The caller's index array: NULL, or integers of 32 or 64 bits, signed or not; size_t is UInt64.
struct PoolingIndices {
  void* data = nullptr;
  BNNSDataType type = BNNSDataTypeUInt64;
  size_t stride = 0;  // between samples, in indices; 0 is dense
};

// Keeps nothing between calls but the bias: any number of threads may apply it at once.
class PoolingFilter final : public Filter {
 public:
  static constexpr FilterKind kKind = FilterKind::pooling;
  PoolingFilter(const Options& options, const PoolingLayer& layer);

  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override {
    forward(batch, in, in_stride, out, out_stride, {});
  }
  void backward(const BackwardCall& call) override { backward(call, {}); }
  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride,
               const PoolingIndices& indices);
  void backward(const BackwardCall& call, const PoolingIndices& indices);
  const char* implementation(BNNSExtPass pass, size_t batch) const override;
  std::string text() const override { return layer_.text(); }
  const Tensor* result() const override { return &layer_.y; }

 private:
  IndexPlanes check_indices(const PoolingIndices& indices, size_t batch, bool written, size_t* bytes) const;
  IndexCheck check_positions(const IndexPlanes& index, BNNSDataType type, size_t batch) const;
  PoolingBackward prepare_backward(const BackwardCall& call, const PoolingIndices& indices, Tensor* db) const;

  PoolingLayer layer_;
  Parameter bias_;
  ScratchShelf scratch_;
};

}  // namespace bnns
