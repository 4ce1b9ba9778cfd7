// The walk of a reduction: which axis is folded inside a block, which one numbers the results of a block, and which are
// left for the loops outside.
#pragma once

#include "src/ops/reduction/reduction.h"
#include "src/tensor/elements.h"

namespace bnns {

struct ReductionAxis {
  size_t extent = 1;
  size_t x = 0, w = 0, y = 0;  // strides in elements
  size_t place = 0;            // where places are asked for, reduced axes: stride of the index that ArgMax counts
  bool reduced = false;
};

inline constexpr size_t kMaxReductionAxes = 2 * kMaxRank + 1;  // a repeated tensor has two for each of its own

enum class ReductionForm : uint8_t {
  rows,        // the fastest axis is reduced: vectors run along it
  short_rows,  // so short that blocks are transposed first
  columns,     // the fastest axis is kept: vectors run across results
};

struct ReductionPlan {
  ReductionForm form = ReductionForm::columns;
  ReductionAxis axes[kMaxReductionAxes];  // all, fastest of x first, neighbours merged
  size_t rank = 0;
  ReductionAxis run, columns;  // the reduced and the kept axis of a block
  ReductionAxis outer_kept[kMaxReductionAxes], outer_reduced[kMaxReductionAxes];
  size_t outer_kept_rank = 0, outer_reduced_rank = 0;
  size_t outer_kept_count = 1, outer_reduced_count = 1;
};

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
  size_t run = 2048, rows = 64;  // elements of a row, and rows, that are folded in f32; everything beyond is in double
};
ReductionFold fold_of(BNNSReduceFunction function, bool weighted);

// w may be NULL. Only a fold that chooses counts places: everything else merges axes whatever their numbering.
ReductionPlan make_reduction_plan(ReductionFold fold, const Tensor& x, const Tensor& y, const Tensor* w, size_t batch,
                                  size_t x_stride, size_t y_stride);
// Of n axes in any order, which are sorted.
ReductionPlan make_reduction_plan(ReductionAxis* axes, size_t n);

// Folds x (and w, which may be NULL) and hands every result to the sink, from any thread, once.
void run_reduction(const ReductionPlan& plan, ReductionFold fold, float epsilon, const Tensor& x, const Tensor* w,
                   const ReductionSink& sink, size_t n_threads, ScratchShelf& shelf);

}  // namespace bnns
