#include "src/ops/arithmetic/arithmetic_sums.h"

#include "src/core/checked.h"
#include "src/ops/arithmetic/arithmetic.h"

namespace bnns {
namespace {

constexpr size_t kSmall = 2 * kTaskElements;   // elements that are not worth splitting
constexpr size_t kColumns = 1024;              // elements side by side in a part that runs down columns
constexpr size_t kEnoughTasks = 16;
constexpr size_t kMaxSlabs = 64;
constexpr size_t kWide = 256;

}  // namespace

SumPlan::SumPlan(const Space& space, const Tensor& delta, bool batched) {
  size_t extent[kMaxRank + 1], rank = 0;
  bool kept[kMaxRank + 1];
  const auto axis = [&](size_t n, bool is_kept) {
    if (n == 1) return;
    if (rank > 0 && kept[rank - 1] == is_kept) extent[rank - 1] *= n;
    else extent[rank] = n, kept[rank++] = is_kept;
  };
  for (size_t j = 0; j < space.order.rank; ++j) {
    const size_t k = space.order.axis[j];
    axis(space.order.size[k], delta.size[k] != 1);
  }
  axis(space.batch, batched);
  if (kept[rank - 1]) outer_ = extent[--rank];
  rank_ = rank;
  for (size_t j = 0; j < rank; ++j) {
    extent_[j] = extent[j];
    is_kept_[j] = kept[j];
    inner_ *= extent[j];
    if (kept[j]) kept_ *= extent[j];
  }

  const size_t last = extent_[rank - 1];   // summed
  room_ = kept_;
  tasks_ = outer_;
  if (inner_ <= kSmall) {
    outers_per_task_ = std::max<size_t>(1, kTaskElements / inner_);
    tasks_ = div_up(outer_, outers_per_task_);
  } else {
    // Slabs would need `slabs * kept_` partial sums; an eighth of the elements is the limit.
    const size_t slabs = std::min({last, div_up(inner_, kSmall), kMaxSlabs, std::max<size_t>(1, inner_ / kept_ / 8)});
    size_t columns = 0, column_width = 0;
    if (rank >= 2) {
      const size_t below = inner_ / last / extent_[rank - 2];   // elements per index of the last kept axis
      column_width = div_up(kColumns, below);
      columns = div_up(extent_[rank - 2], column_width);
    }
    if (columns > 1 && (columns * outer_ >= kEnoughTasks || columns >= slabs)) {
      split_ = Split::columns;
      piece_ = column_width;
      pieces_ = columns;
      room_ = piece_ * (kept_ / extent_[rank - 2]);
    } else if (slabs > 1) {
      split_ = Split::slabs;
      piece_ = div_up(last, slabs);
      pieces_ = div_up(last, piece_);
    }
    tasks_ = outer_ * pieces_;
  }
  // Short rows: several side by side count as one long row of sums, which close() folds up.
  if (rank == 2 && is_kept_[0] && extent_[0] < kWide / 2 && split_ != Split::columns) {
    wide_ = extent_[0] * std::min(last, kWide / extent_[0]);
    room_ = wide_;
  }
}

SumPlan::Part SumPlan::part(size_t index) const {
  const size_t outer = index / pieces_, piece = index % pieces_, last = extent_[rank_ - 1], lower = inner_ / last;
  const size_t begin = piece * piece_;
  switch (split_) {
    case Split::columns: {
      const size_t n = std::min(piece_, extent_[rank_ - 2] - begin), per_index = kept_ / extent_[rank_ - 2];
      const size_t below = lower / extent_[rank_ - 2];
      return {outer * inner_ + begin * below, n * below, lower, last, outer, outer * kept_ + begin * per_index,
              n * per_index};
    }
    case Split::slabs:
      return {outer * inner_ + begin * lower, std::min(piece_, last - begin) * lower, 0, 1, outer, outer * kept_, kept_};
    case Split::whole: break;
  }
  return {index * inner_, inner_, 0, 1, index, index * kept_, kept_};
}

void SumPlan::add(const Part& part, size_t first, size_t n, const float* d, double* sums) const {
  size_t at = first - part.outer * inner_;   // inside the outer index
  const size_t base = part.first_sum - part.outer * kept_;
  for (size_t done = 0; done < n;) {
    if (wide_) {
      const size_t sum = at % wide_, run = std::min(n - done, wide_ - sum);
      arithmetic_add_to_sums(d + done, sums + sum, run);
      done += run;
      at += run;
      continue;
    }
    size_t rest = at, sum = 0, scale = 1;
    for (size_t j = 0; j < rank_; ++j) {
      if (is_kept_[j]) {
        sum += rest % extent_[j] * scale;
        scale *= extent_[j];
      }
      rest /= extent_[j];
    }
    const size_t run = std::min(n - done, extent_[0] - at % extent_[0]);
    if (is_kept_[0]) arithmetic_add_to_sums(d + done, sums + (sum - base), run);
    else sums[sum - base] += arithmetic_sum(d + done, run);
    done += run;
    at += run;
  }
}

void SumPlan::close(double* sums) const {
  for (size_t at = kept_; at < wide_; at += kept_) {
    for (size_t i = 0; i < kept_; ++i) sums[i] += sums[at + i];
  }
}

void SumPlan::join(const double* partial, size_t first, size_t n, double* joined) const {
  for (size_t done = 0; done < n;) {
    const size_t outer = (first + done) / kept_, sum = (first + done) % kept_, run = std::min(n - done, kept_ - sum);
    const double* slab = partial + outer * pieces_ * room_ + sum;
    std::copy_n(slab, run, joined + done);
    for (size_t piece = 1; piece < pieces_; ++piece) {
      for (size_t i = 0; i < run; ++i) joined[done + i] += slab[piece * room_ + i];
    }
    done += run;
  }
}

}  // namespace bnns
