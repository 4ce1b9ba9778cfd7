// Inside the product engine: a product as a list of steps, each a copy or a strided matrix product.
#pragma once

#include <cstddef>

#include "src/core/parallel.h"
#include "src/engine/product/product.h"
#include "src/gemm/gemm.h"
#include "src/tensor/tensor.h"

namespace bnns::detail {

inline constexpr size_t kElementWork = 128;  // multiply-adds: less than what a call of gemm costs
// Whether `count` products of `work` multiply-adds each are run element by element (product_elements.cc).
inline bool by_elements(size_t work, size_t count) {
  return work <= kElementWork && count > 4;
}

// The elements that a step reads or writes: the caller's tensor, or a dense f32 block of scratch.
struct ProductView {
  const Tensor* tensor = nullptr;  // nullptr: f32
  char* data = nullptr;
  size_t temp = 0;  // 1 + offset in scratch, in bytes; 0: the caller's data

  BNNSDataType type() const { return tensor ? tensor->type : BNNSDataTypeFloat32; }
  bool is_temp() const { return temp != 0; }
};

// One index with its strides; 0 where a tensor does not have it.
struct ProductAxis {
  size_t extent;
  size_t stride[kSides];
};

struct AxisList {
  size_t n = 0;
  ProductAxis axis[kMaxIndices];

  void add(const ProductAxis& a) { axis[n++] = a; }
  size_t count() const {
    size_t result = 1;
    for (size_t i = 0; i < n; ++i) result *= axis[i].extent;
    return result;
  }
  // Ascending strides of one side.
  void sort(ProductSide side);
  // Joins neighbours that are one axis for every side; the list must be sorted.
  void fuse();
};

struct ProductStep {
  enum class Kind : uint8_t { copy, multiply };
  Kind kind = Kind::copy;
  ProductView view[kSides];
  bool has_b = false;  // multiply without B: the sums of A
  AxisList axes;
  float alpha = 1;  // copy: the source is scaled in place first, and is temporary
  bool accumulate = false;
};

struct ProductPlan {
  static constexpr size_t kMaxSteps = 8;
  size_t steps = 0;
  ProductStep step[kMaxSteps];
  size_t temp_bytes = 0;
};

void make_product_plan(const Product& product, ProductPlan* plan);

// A product that needs no plan and no scratch, where accepted() (product_small.cc).
class SmallProduct {
 public:
  explicit SmallProduct(const Product& product);
  bool accepted() const { return accepted_; }
  void run() const;

 private:
  GemmProblem problem_;
  Lens a_, b_;
  GemmOutput c_;
  float alpha_ = 1;
  size_t count_ = 1, a_step_ = 0, b_step_ = 0, c_step_ = 0;  // repetitions, and the elements from one to the next
  bool accepted_ = false;
};

// ---- steps ------------------------------------------------------------------------------------------------------

// Multiply: scratch of the step, and the step itself; temporary views have their data set.
size_t multiply_scratch_bytes(const ProductStep& step, size_t threads);
void multiply_run(const ProductStep& step, void* scratch, size_t threads);

// C (=|+=) alpha A B element by element over `loops`, for products of very few terms each (product_elements.cc).
// m, n and k hold the axes of the tiny matrices.
struct ElementProduct {
  const ProductStep& step;
  AxisList loops, k;  // loops: every index of C; loops.axis[0] is walked in blocks
};
void element_product_run(const ElementProduct& p, size_t threads);

inline bool is_product_float(const ProductView& view) {
  return is_float(view.type());
}

}  // namespace bnns::detail
