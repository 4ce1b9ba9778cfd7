// Products of two tensors over named indices: what broadcast matmul, tensor contraction and Gram have in common.
//
//   C[c...] = beta C + alpha * sum over the other indices of A[a...] * B[b...]
//
// An index is an axis that tensors share: i, j in "a_ij, b_jk -> c_ik", the rows of a matrix, or the batch of a call.
// Each tensor has an index with a stride, or does not have it. Every gradient is a product of the same form, with C's
// gradient in the place of an operand, so this folder holds one engine and one filter; matmul, contraction and gram
// only say which axes are the same index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/filter/filter.h"
#include "src/tensor/tensor.h"

namespace bnns {

inline constexpr size_t kMaxIndices = 2 * kMaxRank + 1;  // two tensors with nothing in common, and the batch

// ---- the engine (product_plan.cc, product_run.cc) ---------------------------------------------------------------

// A tensor by the indices of a product.
struct IndexedTensor {
  const Tensor* tensor = nullptr;  // for type, scale and bias; nullptr: no tensor, the number 1
  const void* data = nullptr;
  size_t stride[kMaxIndices];  // of the product's indices, in elements; 0: the tensor does not have the index
};

// c (=|+=) alpha * sum over the indices that c does not have of a * b. c is written through its `data`.
struct Product {
  size_t indices = 0;
  size_t extent[kMaxIndices];  // only so many are set, here and in strides
  IndexedTensor a, b, c;
  float alpha = 1;
  bool accumulate = false;
};

// Bytes of scratch for a run with up to `threads` threads (not 0). Data pointers are not looked at.
size_t product_scratch_bytes(const Product& product, size_t threads);
// Computes c: the same bits for any number of threads. scratch is 64-byte aligned; c overlaps nothing else.
void product_run(const Product& product, void* scratch, size_t threads);

// ---- what a layer is made of ------------------------------------------------------------------------------------

enum ProductSide : uint8_t { kSideA, kSideB, kSideC, kSides };

struct ProductProblem {
  const char* op = "";
  FilterKind kind = FilterKind::matmul;
  Tensor tensor[kSides];  // one sample each; B of a self product is A
  bool has_b = false;     // else C is a copy or a sum of A
  bool self = false;      // B is A
  int weights = -1;       // kSideA or kSideB: that tensor is trained and has no batch
  float alpha = 1;
  bool beta = false;   // add to C
  size_t indices = 1;  // index 0 is the batch
  size_t extent[kMaxIndices] = {};
  int8_t axis[kSides][kMaxIndices] = {};  // the size axis of each tensor, or -1
  std::string name;                       // of text(): the matrix product's flags, the contraction's string

  bool has(ProductSide side) const { return side != kSideB || has_b; }
  // Tensors that come with every call: one or two of A and B.
  size_t inputs() const { return 1 + (has_b && !self && weights < 0 ? 1 : 0); }
  ProductSide input() const { return weights == kSideA ? kSideB : kSideA; }  // of a filter with one input
  std::string text() const;
};

// The indices of one tensor in its logical order (a row-major matrix is indexed (row, column), everything else in size
// order), and how the tensor is called in messages.
struct IndexList {
  const char* field = "";
  size_t rank = 0;
  uint8_t index[kMaxRank] = {};  // 1 and up
};

// Ties the tensors of p together: sets indices, extents and axes. An extent of 1 broadcasts unless the index is in
// `strict` (bits by index). labels[i] names index i in messages.
void bind_indices(ProductProblem* p, const IndexList (&lists)[kSides], const char* labels, uint32_t strict);

// Resolves a layer's tensor and checks that products can read or write it.
Tensor resolve_product_tensor(const BNNSNDArrayDescriptor& d, const char* op, const char* field);
// alpha finite or not is the caller's business; beta must be 0 or 1.
bool resolve_beta(float beta, const char* op);

// The size axis behind a logical index.
inline size_t logical_axis(const Tensor& t, size_t index) {
  return t.layout == BNNSDataLayoutRowMajorMatrix ? 1 - index : index;
}

// The tensor of one side with its data; stride 0 where the samples of a batch share it.
IndexedTensor indexed(const ProductProblem& p, ProductSide side, const Tensor& t, const void* data,
                      size_t batch_stride);

class ProductFilter final : public Filter {
 public:
  ProductFilter(const Options& options, const ProductProblem& problem);

  void forward(size_t batch, const void* in, size_t in_stride, void* out, size_t out_stride) override;
  void backward(const BackwardCall& call) override;
  void forward_two(const TwoInputCall& call) override;
  void backward_two(const TwoInputBackwardCall& call) override;
  std::string text() const override { return problem_.text(); }
  const Tensor* result() const override { return &problem_.tensor[kSideC]; }

 private:
  // What a call gives for A or B: a sample's data, or the weights.
  struct Operand {
    const void* data = nullptr;
    size_t stride = 0;
  };
  struct Deltas;
  struct Work;  // the products of one call
  void check_inputs(size_t given) const;
  Operand check_operand(ProductSide side, const void* data, size_t stride, size_t batch, const char* name) const;
  Product make_product(size_t batch) const;
  void run_forward(size_t batch, const Operand& a, const Operand& b, void* out, size_t out_stride);
  void check_deltas_disjoint(size_t batch, const Operand (&operand)[2], const Deltas& d) const;
  void run_backward(size_t batch, const Operand (&operand)[2], const Deltas& d);
  void run(Work& work);

  ProductProblem problem_;
  Parameter weights_;
  ScratchShelf scratch_;
};

}  // namespace bnns
