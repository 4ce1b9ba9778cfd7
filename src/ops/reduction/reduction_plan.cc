#include "src/ops/reduction/reduction_plan.h"

#include <algorithm>

namespace bnns {
namespace {

constexpr size_t kShortRow = 32;    // below, a row has too few vectors to pay for joining its lanes
constexpr size_t kManyResults = 8;  // and from here on transposing pays

// Whether `next` continues `axis` everywhere.
bool continues(const ReductionAxis& axis, const ReductionAxis& next) {
  const bool same_place = !axis.reduced || next.place == axis.place * axis.extent;
  return axis.reduced == next.reduced && same_place && next.x == axis.x * axis.extent &&
         next.w == axis.w * axis.extent && next.y == axis.y * axis.extent;
}

}  // namespace

ReductionPlan make_reduction_plan(ReductionFold fold, const Tensor& x, const Tensor& y, const Tensor* w, size_t batch,
                                  size_t x_stride, size_t y_stride) {
  ReductionAxis all[kMaxRank + 1];
  size_t n = 0, place = fold.kind == ReductionFold::Kind::choose ? 1 : 0;
  for (size_t k = 0; k < x.rank; ++k) {
    if (x.size[k] == 1) continue;
    ReductionAxis a{x.size[k], x.stride[k], w ? w->stride[k] : 0, y.stride[k], 0, y.size[k] == 1};
    if (a.reduced) {
      a.y = 0;
      a.place = place;
      place *= a.extent;
    }
    all[n++] = a;
  }
  if (batch > 1) all[n++] = {batch, x_stride, 0, y_stride, 0, false};
  return make_reduction_plan(all, n);
}

ReductionPlan make_reduction_plan(ReductionAxis* all, size_t n) {
  std::stable_sort(all, all + n, [](const ReductionAxis& a, const ReductionAxis& b) { return a.x < b.x; });

  ReductionPlan p;
  for (size_t k = 0; k < n; ++k) {
    ReductionAxis* last = p.rank ? &p.axes[p.rank - 1] : nullptr;
    if (last && continues(*last, all[k])) {
      last->extent *= all[k].extent;
    } else {
      p.axes[p.rank++] = all[k];
    }
  }

  size_t run = p.rank, columns = p.rank;  // positions in axes, rank: none
  for (size_t k = p.rank; k-- > 0;) {
    if (!p.axes[k].reduced) columns = k;                                                          // the fastest
    if (p.axes[k].reduced && (run == p.rank || p.axes[k].extent >= p.axes[run].extent)) run = k;  // the longest
  }
  if (p.rank && p.axes[0].reduced) {
    run = 0;
    const bool transpose = columns < p.rank && p.axes[0].extent < kShortRow && p.axes[columns].extent >= kManyResults;
    p.form = transpose ? ReductionForm::short_rows : ReductionForm::rows;
  }
  for (size_t k = 0; k < p.rank; ++k) {
    if (k == run || k == columns) continue;
    if (p.axes[k].reduced) {
      p.outer_reduced[p.outer_reduced_rank++] = p.axes[k];
      p.outer_reduced_count *= p.axes[k].extent;
    } else {
      p.outer_kept[p.outer_kept_rank++] = p.axes[k];
      p.outer_kept_count *= p.axes[k].extent;
    }
  }
  if (run < p.rank) p.run = p.axes[run];
  if (columns < p.rank) p.columns = p.axes[columns];
  return p;
}

ReductionFold fold_of(BNNSReduceFunction function, bool weighted) {
  using Kind = ReductionFold::Kind;
  switch (function) {
    case BNNSReduceFunctionMax:
      return {Kind::extreme, ReductionTerm::maximum};
    case BNNSReduceFunctionMin:
      return {Kind::extreme, ReductionTerm::minimum};
    case BNNSReduceFunctionArgMax:
      return {Kind::choose, ReductionTerm::maximum};
    case BNNSReduceFunctionArgMin:
      return {Kind::choose, ReductionTerm::minimum};
    case BNNSReduceFunctionMeanNonZero:
      return {Kind::sum, weighted ? ReductionTerm::masked : ReductionTerm::value};
    case BNNSReduceFunctionSumSquare:
    case BNNSReduceFunctionL2Norm:
      return {Kind::sum, ReductionTerm::square};
    case BNNSReduceFunctionSumLog:
      return {Kind::sum, ReductionTerm::logarithm};
    case BNNSReduceFunctionL1Norm:
      return {Kind::sum, ReductionTerm::magnitude};
    case BNNSReduceFunctionLogicalOr:
      return {Kind::extreme, ReductionTerm::any};
    case BNNSReduceFunctionLogicalAnd:
      return {Kind::extreme, ReductionTerm::all};
    case BNNSReduceFunctionLogSumExp:
      return {Kind::exponential, ReductionTerm::value};
    case BNNSReduceFunctionProduct:
      return {Kind::product, ReductionTerm::value};
    default:
      return {Kind::sum, ReductionTerm::value};
  }
}

}  // namespace bnns
