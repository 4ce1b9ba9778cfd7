// Fully connected with sparse weights, for inference: Y(o) = act(b(o) + sum of W(o,i) X(i) over the stored W(o,i)).
//
// The weights come packed in memory of the caller (BNNSNDArrayFullyConnectedSparsify..., src/ops/sparse): a header,
// then compressed rows. A filter checks them once and keeps them as f32 of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/ops/fully_connected/fully_connected.h"
#include "src/tensor/sparse_weights.h"

namespace bnns {

// Every check of a layer whose w_desc is FullyConnectedSparse, but that of the indices.
FullyConnectedProblem make_sparse_fully_connected_problem(const BNNSLayerParametersFullyConnected* layer);

class SparseFullyConnectedFilter final : public Filter {
 public:
  static constexpr FilterKind kKind = FilterKind::fully_connected_sparse;
  // problem.w.data holds packed weights, whose indices are checked here.
  SparseFullyConnectedFilter(const Options& options, const FullyConnectedProblem& problem);

  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override;
  void backward(const BackwardCall& call) override;
  std::string text() const override { return problem_.text() + " sparse"; }
  const Tensor* result() const override { return &problem_.y; }

 private:
  FullyConnectedProblem problem_;
  Parameter bias_;
  Buffer weights_;  // starts u32[outputs + 1], columns u32[nonzeros], values f32[nonzeros]
  const uint32_t *starts_ = nullptr, *columns_ = nullptr;
  const float* values_ = nullptr;
  ScratchShelf scratch_;
};

struct SparseRows {
  const uint32_t *starts, *columns;
  const float* values;
  const float* bias;  // NULL: none
};

// Samples that one call of the kernel takes side by side: the lanes of a vector.
size_t sparse_lanes() noexcept;

// y[lane * y_stride + o] = b[o] + sum of W(o,i) x[i * lanes + lane] for the outputs [begin, end) and the first `used`
// of the lanes, which are 1 or sparse_lanes(). A lane gives the same bits however many there are.
void sparse_multiply(const SparseRows& rows, size_t begin, size_t end, const float* x, size_t lanes, size_t used,
                     float* y, size_t y_stride) noexcept;

}  // namespace bnns
