// Fully connected: Y(o) = act(b(o) + sum_i W(o,i) X(i)).
// Backward, with g = dY * act': dX = W' g, dW(o,i) = sum over the batch of g(o) X(i), db = sum over the batch of g.
//
// X is (N, I), Y is (N, O), W is (O, I) in any of its layouts; all three products are the GEMM core's.
#pragma once

#include <cstddef>
#include <string>

#include "src/engine/activation/activation.h"
#include "src/filter/filter.h"
#include "src/gemm/operand.h"
#include "src/tensor/saturation.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct FullyConnectedProblem {
  Tensor x, w, y, b;               // one sample each; b.count is 0 without a bias
  size_t inputs = 0, outputs = 0;  // I, O
  size_t output_axis = 1;          // the size axis of W that runs over O
  Activation activation;
  bool integer = false;  // integer data, exact sums, IntegerLinearSaturate at the end
  IntegerSaturation saturation;

  bool has_bias() const { return b.count != 0; }
  std::string text() const;  // "fully_connected f32 i784 o128 relu"
};

// Every check of BNNSLayerParametersFullyConnected.
FullyConnectedProblem make_fully_connected_problem(const BNNSLayerParametersFullyConnected* layer);

class FullyConnectedFilter final : public Filter {
 public:
  static constexpr FilterKind kKind = FilterKind::fully_connected;
  FullyConnectedFilter(const Options& options, const FullyConnectedProblem& problem);

  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override;
  void backward(const BackwardCall& call) override;
  // That of the product.
  const char* implementation(BNNSExtPass pass, size_t batch) const override;
  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.y; }

 private:
  struct Gradients;  // the checked arguments of backward
  Gradients check_backward(const BackwardCall& call) const;
  void upstream_gradient(const BackwardCall& call, const Gradients& wanted, float* g);
  size_t product_threads() const;
  MatrixOperand weight_operand(size_t batch) const;  // of forward
  void multiply(const GemmProblem& product, const Lens& a, const Lens& b, const GemmOutput& c, const float* bias,
                const GemmEpilogue& epilogue);
  // W X + b without the activation, N x O dense, as backward recomputes it (K8).
  void linear(size_t batch, const Lens& x, const Lens& w, float* y);
  void forward_integer(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) const;

  FullyConnectedProblem problem_;
  Parameter weights_, bias_;
  ScratchShelf scratch_;
};

// The rows that a fused softmax normalises: along o_desc.size[0] (K10), which need not be the fastest axis of the
// flattened output, so elements of a row are `step` apart.
struct SoftmaxRows {
  size_t n, step, rows;
  explicit SoftmaxRows(const Tensor& y);
  size_t first(size_t row) const { return row / step * n * step + row % step; }
};

}  // namespace bnns
