#include "src/ops/pooling/implementations.h"

#include <utility>

namespace bnns {
namespace {

template <class Problem>
bool accepts_all(const Problem&) noexcept {
  return true;
}

WindowsFunction one_by_one(const WindowsProblem&) noexcept {
  return pooling_window_block;
}

}  // namespace

// "Small windows" are 2 x 2 or 3 x 3 with stride 2 and at most kernel - 2 pixels of padding before the image, each with
// a pixel (PoolingGeometry::is_small_stride_2), and 3 x 3 with stride 1 and padding 1 (is_small_stride_1).

const PoolingImplementation<PoolingForward> kPoolingForward[5] = {
    {"pooling/global/forward",
     "one window that is the plane: a reduction; of planes up to 512 pixels, of a vector of planes at once",
     accepts_global, pooling_global_forward, false, false},
    {"pooling/forward/positions",
     "Max with indices in rows without gaps, f32, small windows (with stride 1: rows of one vector): taps in raster "
     "order "
     "with keys of 32 bits",
     accepts_positions, pooling_forward_positions, true, false},
    {"pooling/forward/row_windows", "small windows without indices: rows of pixels folded down, then along x",
     accepts_row_windows, pooling_forward_windows, true, false},
    {"pooling/forward/separable",
     "x_stride up to 40 more than the window and up to 256, k_width x_dilation up to 512: rows of pixels folded down, "
     "taken apart by the stride, folded "
     "along x",
     accepts_separable, pooling_forward_windows, true, false},
    {"pooling/common/window", "anything: window by window", accepts_all, pooling_forward_windows, true, false},
};

const PoolingImplementation<PoolingForward> kUnmaxForward[1] = {
    {"pooling/index/unmax", "UnMax: tiles of y in L1, filled by index", accepts_all, pooling_unmax_forward, true, true},
};
const PoolingImplementation<PoolingBackward> kUnmaxBackward[1] = {
    {"pooling/index/unmax", "UnMax: tiles of g in L1, read by index", accepts_all, pooling_unmax_backward, false, true},
};

const WindowsImplementation kPoolingWindows[3] = {
    {kPoolingForward[2].name, "values of small windows", accepts_row_windows, pooling_row_windows},
    {kPoolingForward[3].name, "x_stride up to 40 more than the window and up to 256, k_width x_dilation up to 512",
     accepts_separable, pooling_separable},
    {kPoolingForward[4].name, "anything", accepts_all, one_by_one},
};

const PoolingImplementation<PoolingBackward> kPoolingBackward[11] = {
    {"pooling/global/backward",
     "one window that is the plane: a fill; of planes up to 512 pixels, of a vector of planes at once", accepts_global,
     pooling_global_backward, false, false},
    {"pooling/backward/narrow_2x2",
     "2 x 2 small windows, packed f32, a row of windows is one vector; indices in their windows", accepts_narrow_2x2,
     pooling_backward_narrow_2x2, true, false},
    {"pooling/backward/narrow_max_3x3s2",
     "Max, 3 x 3 small windows with stride 2, packed f32, a row of pixels is up to four vectors; indices in their "
     "windows",
     accepts_narrow_max_3x3s2, pooling_backward_narrow_max_3x3s2, true, false},
    {"pooling/backward/narrow_3x3",
     "3 x 3 small windows with stride 1, packed f32, a row is one vector; indices in their windows", accepts_narrow_3x3,
     pooling_backward_narrow_3x3, true, false},
    {"pooling/backward/small_sums",
     "Average, L2Norm, small windows up to 960 wide, rows of f32, no activation: rows of dx from registers",
     accepts_small_sums, pooling_backward_small_sums, true, false},
    {"pooling/backward/gather",
     "Average, L2Norm, up to 32 windows over a row, whose rows fit 24 KiB: from a ring of rows of g / count",
     accepts_gather, pooling_backward_gather, true, false},
    {"pooling/backward/max_2x2",
     "Max, 2 x 2 with stride 2, no left or upper padding; indices in their windows: pairs of rows in registers",
     accepts_max_2x2, pooling_backward_max_2x2, true, false},
    {"pooling/backward/max_3x3", "Max without indices, 3 x 3 small windows up to 960 wide: window to row, row to pixel",
     accepts_max_3x3, pooling_backward_max_3x3, true, false},
    {"pooling/backward/max_3x3_index",
     "Max, 3 x 3 small windows up to 960 wide, indices in their windows: nine comparisons a window",
     accepts_max_3x3_index, pooling_backward_max_3x3_index, true, false},
    {"pooling/backward/max_band",
     "Max, rows under a window fit 24 KiB, indices in rows of their windows: bands of dx in L1, scalar additions",
     accepts_max_band, pooling_backward_max_band, true, false},
    {"pooling/backward/scatter", "anything: tiles of dx in L1; every window near a tile", accepts_all,
     pooling_backward_scatter, true, true},
};

WindowsFunction pooling_windows(PoolingFold fold, const PoolingGeometry& geometry) noexcept {
  const WindowsProblem problem{fold, geometry};
  return find(kPoolingWindows, problem).kernel(problem);
}

namespace {

// Planes of one column are planes of one row: the axes change places, so that kernels have their lanes full. Positions
// of maxima stay what they are.
bool swap_axes_of_column(PoolingProblem* problem, IndexPlanes* index) {
  PoolingGeometry& g = problem->geometry;
  if (g.x.in != 1 || g.x.out != 1 || g.y.in == 1) return false;
  std::swap(g.x, g.y);
  index->column = index->row, index->row = g.x.out;
  return true;
}
void lay_flat(Planes* image, int64_t width) {
  image->column = image->row, image->row = width;
}
bool converts_in_pieces() noexcept {
  return !is_skipped(kConvertName);
}

}  // namespace

void lay_column_flat(PoolingForward* call) noexcept {
  if (!swap_axes_of_column(&call->problem, &call->index)) return;
  const PoolingAxis& axis = call->problem.geometry.x;
  const bool unmax = call->problem.function == PoolingFunction::unmax;
  lay_flat(&call->x, unmax ? axis.out : axis.in), lay_flat(&call->y, unmax ? axis.in : axis.out);
}
void lay_column_flat(PoolingBackward* call) noexcept {
  if (!swap_axes_of_column(&call->problem, &call->index)) return;
  const PoolingAxis& axis = call->problem.geometry.x;
  const bool unmax = call->problem.function == PoolingFunction::unmax;
  for (Planes* image : {&call->x, &call->dx}) lay_flat(image, unmax ? axis.out : axis.in);
  for (Planes* image : {&call->y, &call->dy}) lay_flat(image, unmax ? axis.in : axis.out);
}

// Kernels convert parts of planes themselves.
PoolingPlan<PoolingForward> plan_pooling(const PoolingForward& call) noexcept {
  if (call.problem.function == PoolingFunction::unmax) return {&find(kUnmaxForward, call), {}};
  if (converts_in_pieces()) {
    const ConvertedCall<PoolingForward> converted = pooling_pieces(call, false);
    return {&find(kPoolingForward, converted.seen), converted.pieces};
  }
  return {&find(kPoolingForward, call), {}};
}

// Bands of a kernel that converts row by row itself are up to a fifth slower (Max, 112 x 112, f16, Zen 4).
PoolingPlan<PoolingBackward> plan_pooling(const PoolingBackward& call) noexcept {
  if (call.problem.function == PoolingFunction::unmax) return {&find(kUnmaxBackward, call), {}};
  const auto& plain = find(kPoolingBackward, call);
  if (!converts_in_pieces() || plain.converts) return {&plain, {}};
  const ConvertedCall<PoolingBackward> converted = pooling_pieces(call, plain.bands);
  const auto& chosen = find(kPoolingBackward, converted.seen);
  const bool whole = converted.pieces.rows >= call.problem.geometry.y.in;
  if (chosen.converts || (!whole && &chosen == &plain)) return {&chosen, {}};
  return {&chosen, converted.pieces};
}

}  // namespace bnns
