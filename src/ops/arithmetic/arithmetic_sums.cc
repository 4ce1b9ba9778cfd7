#include "src/ops/arithmetic/arithmetic_sums.h"

#include "src/core/checked.h"
#include "src/ops/arithmetic/arithmetic.h"

namespace bnns::arithmetic {
namespace {

constexpr size_t kSmall = 2 * kTaskElements;  // elements that are not worth splitting
constexpr size_t kEnoughTasks = 16;
constexpr size_t kMaxSlabs = 64;
constexpr size_t kWide = 256;           // sums side by side that make up for the cost of a call
constexpr size_t kManyPerOuter = 1024;  // elements that are worth a part of their own

// Elements side by side in a part that runs down columns: long stretches suit the prefetcher, but leave enough tasks.
constexpr size_t kMinStretch = 1024, kMaxStretch = 4096;

}  // namespace

SumPlan::SumPlan(const Space& space, const Tensor& delta, bool batched) {
  size_t rank = 0;
  const auto axis = [&](size_t n, bool is_kept) {
    if (n == 1) return;
    if (rank > 0 && is_kept_[rank - 1] == is_kept)
      extent_[rank - 1] *= n;
    else
      extent_[rank] = n, is_kept_[rank++] = is_kept;
  };
  for (size_t j = 0; j < space.order.rank; ++j) {
    const size_t k = space.order.axis[j];
    axis(space.order.size[k], delta.size[k] != 1);
  }
  axis(space.batch, batched);
  // An axis is summed, so rank > 0. gcc 14 does not see it, and warns of is_kept_[-1] without the test.
  if (rank > 0 && is_kept_[rank - 1]) outer_ = extent_[--rank];
  rank_ = rank;
  for (size_t j = 0; j < rank; ++j) {
    inner_ *= extent_[j];
    if (is_kept_[j]) kept_ *= extent_[j];
  }
  choose_split();
}

void SumPlan::choose_split() {
  const size_t last = extent_[rank_ - 1];  // summed
  buffer_ = kept_;
  if (inner_ <= kSmall) {
    if (inner_ < kManyPerOuter) outers_per_part_ = std::min(outer_, kTaskElements / inner_);
    buffer_ = outers_per_part_ * kept_;
    parts_per_task_ = std::max<size_t>(1, kTaskElements / (outers_per_part_ * inner_));
  } else {
    // Partial sums: hardly any is best, an eighth of the elements is the limit.
    const size_t slabs = std::min({last, div_up(inner_, kSmall), kMaxSlabs});
    const bool few_sums = slabs * kept_ <= inner_ / 64, enough_slabs = outer_ * slabs >= kEnoughTasks;
    size_t columns = 1, width = 1;
    if (rank_ >= 2) {
      const size_t stretch = inner_ / last,
                   below = stretch / extent_[rank_ - 2];  // elements per index of the kept axis
      width = div_up(std::clamp(stretch / kEnoughTasks, kMinStretch, kMaxStretch), below);
      columns = div_up(extent_[rank_ - 2], width);
    }
    const size_t allowed = std::min(slabs, std::max<size_t>(1, inner_ / kept_ / 8));
    if (columns > 1 && !(few_sums && enough_slabs) && columns >= allowed) {
      split_ = Split::columns;
      piece_ = width;
      pieces_ = columns;
      buffer_ = piece_ * (kept_ / extent_[rank_ - 2]);
    } else if (allowed > 1) {
      split_ = Split::slabs;
      piece_ = div_up(last, allowed);
      pieces_ = div_up(last, piece_);
    }
  }
  // Short rows: several side by side count as one long row of sums, which close() folds up.
  if (rank_ == 2 && is_kept_[0] && extent_[0] <= kWide / 2 && split_ != Split::columns && outers_per_part_ == 1) {
    wide_ = extent_[0] * std::min(last, kWide / extent_[0]);
    buffer_ = wide_;
  }
  parts_ = div_up(outer_, outers_per_part_) * pieces_;
  tasks_ = div_up(parts_, parts_per_task_);
}

SumPlan::Part SumPlan::part(size_t index) const {
  const size_t last = extent_[rank_ - 1], lower = inner_ / last;
  const size_t outer = index / pieces_, begin = index % pieces_ * piece_;
  switch (split_) {
    case Split::columns: {
      const size_t n = std::min(piece_, extent_[rank_ - 2] - begin), sums = kept_ / extent_[rank_ - 2];
      const size_t below = lower / extent_[rank_ - 2];
      return {outer * inner_ + begin * below, n * below, lower, last, outer, outer * kept_ + begin * sums, n * sums};
    }
    case Split::slabs:
      return {
          outer * inner_ + begin * lower, std::min(piece_, last - begin) * lower, 0, 1, outer, outer * kept_, kept_};
    case Split::outers:
      break;
  }
  const size_t first = index * outers_per_part_, n = std::min(outers_per_part_, outer_ - first);
  return {first * inner_, n * inner_, 0, 1, first, first * kept_, n * kept_};
}

void SumPlan::add(const Part& part, size_t first, size_t n, const float* d, double* sums) const {
  size_t at = first - part.outer * inner_;
  const size_t base = part.first_sum - part.outer * kept_;
  for (size_t done = 0; done < n;) {
    size_t run;
    if (wide_) {
      run = std::min(n - done, wide_ - at % wide_);
      arithmetic_add_to_sums(d + done, sums + at % wide_, run);
    } else {
      // Which sum: the coordinates of the kept axes, and the outer index beyond them.
      size_t rest = at, sum = 0, scale = 1;
      for (size_t j = 0; j < rank_; ++j) {
        if (is_kept_[j]) sum += rest % extent_[j] * scale, scale *= extent_[j];
        rest /= extent_[j];
      }
      double* to = sums + (sum + rest * kept_ - base);
      const size_t e = extent_[0], left = n - done;
      run = std::min(left, e - at % e);
      if (is_kept_[0]) {
        arithmetic_add_to_sums(d + done, to, run);
      } else if (run == e && left >= 2 * e) {
        // Whole groups in a row have sums in a row, up to the end of the next axis.
        const size_t groups = std::min(left / e, rank_ > 1 ? extent_[1] - at / e % extent_[1] : left);
        arithmetic_add_groups(d + done, e, to, groups);
        run = groups * e;
      } else {
        *to += arithmetic_sum(d + done, run);
      }
    }
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
    const double* slab = partial + outer * pieces_ * buffer_ + sum;
    std::copy_n(slab, run, joined + done);
    for (size_t piece = 1; piece < pieces_; ++piece) {
      for (size_t i = 0; i < run; ++i) joined[done + i] += slab[piece * buffer_ + i];
    }
    done += run;
  }
}

}  // namespace bnns::arithmetic
