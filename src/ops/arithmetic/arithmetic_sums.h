// How the gradient of a repeated input is summed: which elements go to which sum, and who adds them in which order.
//
// The axes of a call, fastest first and the batch last, are either kept (the gradient has them) or summed. Neighbours
// of the same kind count as one, so kinds alternate: a row of biases is (kept, summed), a bias per channel of an image
// (summed, kept, summed), a scalar (summed). The outermost kept axis, if it is last, only repeats the rest ("outer").
// Work is split by these extents alone, never by the number of threads:
//   outers   the rest is small: a part is one outer index or several
//   slabs    a part is a range of the last summed axis; its sums are partial and are joined in order
//   columns  where slabs would need too many partial sums: a part is a range of the last kept axis, over all of the
//   last
//            summed one
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/ops/arithmetic/arithmetic_operand.h"

namespace bnns::arithmetic {

class SumPlan {
 public:
  // Elements that are added up together: `repeats` stretches of `length` elements, `step` apart, from element `begin`
  // of the call on. They belong to the sums [first_sum, first_sum + sum_count) of the gradient.
  struct Part {
    size_t begin, length, step, repeats;
    size_t outer;  // first outer index
    size_t first_sum, sum_count;
  };

  SumPlan() = default;
  // delta is an input's gradient: extents of the space, or 1 along summed axes.
  SumPlan(const Space& space, const Tensor& delta, bool batched);

  size_t count() const { return outer_ * kept_; }
  size_t tasks() const { return tasks_; }
  size_t buffer() const { return buffer_; }  // doubles that a part needs
  bool has_partial_sums() const { return split_ == Split::slabs; }
  size_t scratch_doubles(size_t threads) const { return (has_partial_sums() ? tasks_ : threads) * buffer_; }

  // Calls f(part) for the parts of a task, in order.
  template <class F>
  void for_each_part(size_t task, F&& f) const {
    const size_t end = std::min(parts_, (task + 1) * parts_per_task_);
    for (size_t i = task * parts_per_task_; i < end; ++i) f(part(i));
  }

  // Adds the elements [first, first + n) of the call, all inside one stretch of the part, to its sums.
  void add(const Part& part, size_t first, size_t n, const float* d, double* sums) const;
  // After the last add: brings the part's sums to their final places at the front.
  void close(double* sums) const;
  // Sums [first, first + n) from the partial sums of all slabs, which lie buffer() apart in order of tasks.
  void join(const double* partial, size_t first, size_t n, double* joined) const;

 private:
  enum class Split { outers, slabs, columns };
  void choose_split();
  Part part(size_t index) const;

  size_t rank_ = 0;  // axes below outer; the last one is summed
  size_t extent_[kMaxRank + 1] = {};
  bool is_kept_[kMaxRank + 1] = {};
  size_t outer_ = 1, inner_ = 1, kept_ = 1;  // elements and sums per outer index
  size_t wide_ = 0;                          // see close()
  Split split_ = Split::outers;
  size_t pieces_ = 1, piece_ = 1;  // parts per outer index, and indices of the split axis in each
  size_t outers_per_part_ = 1, parts_ = 1, parts_per_task_ = 1, tasks_ = 1, buffer_ = 1;
};

}  // namespace bnns::arithmetic
