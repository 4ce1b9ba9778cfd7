// Embedding: y[.., i] = dictionary[.., x[i]], an item of the dictionary for every index.
//
//   backward  d dictionary[.., k] = sum of dy[.., i] over all i of the batch with x[i] = k, optionally divided by how
//             many there are
//
// The item dimensions come first in y and in the dictionary, in size order; the dictionary's last size axis counts the
// items, and the dimensions of x follow in y.
#pragma once

#include <cstddef>
#include <string>

#include "src/filter/filter.h"
#include "src/tensor/tensor.h"

namespace bnns {

struct EmbeddingProblem {
  Tensor x, y, dictionary;  // one sample of x and y
  size_t items = 0;         // V
  size_t item_rank = 0, item_count = 1;
  size_t padding = SIZE_MAX;           // reads as 0, has no gradient
  double max_norm = 0, norm_type = 2;  // longer items are scaled to max_norm; 0: not
  bool by_frequency = false;

  std::string text() const;  // "embedding i32 7 of f32 64x1000"
};

// Every check of BNNSLayerParametersEmbedding.
EmbeddingProblem make_embedding_problem(const BNNSLayerParametersEmbedding* layer);

class EmbeddingFilter final : public Filter {
 public:
  static constexpr FilterKind kKind = FilterKind::embedding;
  EmbeddingFilter(const Options& options, const EmbeddingProblem& problem);

  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override;
  void backward(const BackwardCall& call) override;
  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.y; }

 private:
  // The indices of the batch, position by position; refuses the first that is out of range.
  void read_indices(const void* in, size_t batch, size_t in_stride, size_t* to) const;

  EmbeddingProblem problem_;
  Parameter dictionary_;
  ScratchShelf scratch_;
};

// max_norm / norm of an item that is too long, else 1. norm_type may be infinite.
double embedding_factor(const EmbeddingProblem& problem, const void* item) noexcept;

}  // namespace bnns
