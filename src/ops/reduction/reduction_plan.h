// The walk of a reduction: which axis is folded inside a block, which one numbers the results of a block, and which are
// left for the loops outside.
#pragma once

#include "src/ops/reduction/reduction.h"
#include "src/tensor/elements.h"

namespace bnns {

struct ReductionAxis {
  size_t extent = 1;
  size_t x = 0, w = 0, y = 0;  // strides in elements
  size_t place = 0;            // reduced axes: stride of the index that ArgMax counts
  bool reduced = false;
};

enum class ReductionForm : uint8_t {
  rows,        // the fastest axis is reduced: vectors run along it
  short_rows,  // so short that blocks are transposed first
  columns,     // the fastest axis is kept: vectors run across results
};

struct ReductionPlan {
  ReductionForm form = ReductionForm::columns;
  ReductionAxis axes[kMaxRank + 1];  // all, fastest of x first, neighbours merged
  size_t rank = 0;
  ReductionAxis run, columns;  // the reduced and the kept axis of a block
  ReductionAxis outer_kept[kMaxRank + 1], outer_reduced[kMaxRank + 1];
  size_t outer_kept_rank = 0, outer_reduced_rank = 0;
  size_t outer_kept_count = 1, outer_reduced_count = 1;
};

// w may be NULL.
ReductionPlan make_reduction_plan(const Tensor& x, const Tensor& y, const Tensor* w, size_t batch, size_t x_stride,
                                  size_t y_stride);

// The state of some results. shift is for LogSumExp, place for the functions that choose an element.
struct ReductionCells {
  double* value;
  double* shift;
  size_t* place;
};

inline constexpr size_t kMaxReductionColumns = 1024;  // results that are folded together

// Takes n <= kMaxReductionColumns finished results, whose elements of y begin at y_offset, plan.columns.y apart.
class ReductionSink {
 public:
  virtual void take(size_t y_offset, size_t n, const ReductionCells& cells) const noexcept = 0;

 protected:
  ~ReductionSink() = default;
};

// What is folded: a term, or one of three that need more than a term.
struct ReductionFold {
  enum class Kind : uint8_t { sum, extreme, choose, product, exponential } kind = Kind::sum;
  ReductionTerm term = ReductionTerm::value;
};
ReductionFold fold_of(BNNSReduceFunction function, bool weighted);

// Folds x (and w, which may be NULL) and hands every result to the sink, from any thread, once.
void run_reduction(const ReductionPlan& plan, ReductionFold fold, float epsilon, const Tensor& x, const Tensor* w,
                   const ReductionSink& sink, size_t n_threads, ScratchShelf& shelf);

}  // namespace bnns
