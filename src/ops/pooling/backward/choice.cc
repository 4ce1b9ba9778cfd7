// The table of README.md: which kernel makes dx.

#include "src/ops/pooling/convert/stage.h"

namespace bnns {
namespace {

// The first that accepts the call; the last one takes anything.
PoolingBackwardKernel kernel_for(const PoolingBackward& call) {
  const PoolingGeometry& g = call.problem.geometry;
  const bool is_max = call.problem.function == PoolingFunction::max, by_index = call.index.data != nullptr;
  const bool in_rows = !by_index || call.index_in_rows, in_windows = !by_index || call.index_in_windows;
  if (call.problem.function == PoolingFunction::unmax) return pooling_unmax_backward;
  if (g.is_global()) return pooling_backward_global;
  if (pooling_backward_is_narrow(call)) {
    return g.x.kernel == 2   ? pooling_backward_narrow_pairs
           : g.x.stride == 2 ? pooling_backward_narrow_halves
                             : pooling_backward_narrow_neighbours;
  }
  if (!is_max && pooling_backward_doubles(call)) return pooling_backward_double;
  if (!is_max && pooling_backward_gathers(g)) return pooling_backward_gather;
  if (is_max && in_windows && pooling_backward_pairs(g)) return pooling_backward_pair;
  if (is_max && in_windows && pooling_backward_routes(g)) {
    return by_index ? pooling_backward_route_index : pooling_backward_route;
  }
  if (is_max && in_rows && pooling_backward_bands(g)) return pooling_backward_band;
  return pooling_backward_scatter;
}

}  // namespace

BackwardChoice choose_pooling_backward(const PoolingBackward& call) noexcept {
  const bool unmax = call.problem.function == PoolingFunction::unmax;
  const bool bands = !unmax && !call.problem.geometry.is_global();
  const StagedCall<PoolingBackward> staged = pooling_stage(call, bands);
  const PoolingBackwardKernel kernel = kernel_for(staged.seen);
  // These two read windows anywhere in the plane, by their indices.
  if (unmax || kernel == pooling_backward_scatter) return {kernel, bands, {}};
  // Bands of a kernel that converts row by row itself are up to a fifth slower (Max, 112 x 112, f16, Zen 4).
  const bool whole = staged.pieces.rows >= call.problem.geometry.y.in;
  if (!whole && kernel == kernel_for(call)) return {kernel, bands, {}};
  return {kernel, bands, staged.pieces};
}

}  // namespace bnns
