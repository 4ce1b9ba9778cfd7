// Where the items and positions of an embedding lie, whatever the layouts.
#pragma once

#include "src/ops/embedding/embedding.h"
#include "src/tensor/elements.h"

namespace bnns::embedding {

// The item dimensions of t, or those of the positions, as a tensor of their own.
inline Tensor axes_of(const Tensor& t, size_t first, size_t rank, const Tensor& like_order, size_t order_first) {
  Tensor part = t;
  part.rank = rank;
  part.count = 1;
  size_t n = 0;
  for (size_t j = 0; j < like_order.rank; ++j) {
    const size_t k = like_order.axis[j];
    if (k >= order_first && k < order_first + rank) part.axis[n++] = static_cast<uint8_t>(k - order_first);
  }
  for (size_t k = 0; k < rank; ++k) {
    part.size[k] = t.size[first + k];
    part.stride[k] = t.stride[first + k];
    part.count *= part.size[k];
  }
  return part;
}

// An item is one stretch of memory in both, in the same order.
inline bool is_one_stretch(const Tensor& a, const Tensor& b) {
  size_t dense = 1;
  for (size_t j = 0; j < b.rank; ++j) {
    const size_t k = b.axis[j];
    if (b.size[k] == 1) continue;
    if (a.stride[k] != dense || b.stride[k] != dense) return false;
    dense *= b.size[k];
  }
  return true;
}

// Where items and positions lie. Items are read in the order of `out` (y or dy), positions numbered by that of x.
class Places {
 public:
  Elements from, to;
  Tensor item_from, item_to;
  Places(const EmbeddingProblem& p, const Tensor& dictionary, const Tensor& out)
      : item_from(axes_of(dictionary, 0, p.item_rank, out, 0)), item_to(axes_of(out, 0, p.item_rank, out, 0)) {
    from = Elements(item_from, item_to);
    to = Elements(item_to);
    Tensor at = p.x;
    for (size_t k = 0; k < p.x.rank; ++k) at.stride[k] = out.stride[p.item_rank + k];
    positions_ = Elements(at, p.x);
    count_ = p.x.count;
    if (p.x.rank == 1) step_ = at.stride[0];
  }
  // Offset of a position of the batch in y or dy.
  size_t position(size_t at, size_t batch_stride) const {
    if (at < count_ && step_) return at * step_;
    return at / count_ * batch_stride + positions_.offset(at % count_);
  }

 private:
  Elements positions_;
  size_t count_ = 1, step_ = 0;  // step_: of a vector of positions
};

}  // namespace bnns::embedding
