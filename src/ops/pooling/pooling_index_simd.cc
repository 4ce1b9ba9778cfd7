// Are the caller's indices pixels of the plane, and of their own windows? All are looked at before anything is written.
//
// Both answers are true of everything a forward pass wrote; the second allows the gathering gradient. One pass over the
// indices, one window per lane: index - position of the row's first real pixel must be below the row's length, for one of
// the rows of the window.

#include <algorithm>

#include "src/ops/pooling/pooling_kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/pooling_index_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/pooling_index-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::ScalableTag<int32_t>;

// One window, any geometry.
void CheckOne(const PoolingProblem& problem, int64_t wx, int64_t wy, uint64_t index, IndexCheck* check) {
  const PoolingGeometry& g = problem.geometry;
  if (index >= static_cast<uint64_t>(g.x.in) * static_cast<uint64_t>(g.y.in)) {
    check->in_plane = check->in_window = false;
    return;
  }
  const Span tx = g.x.taps(wx), ty = g.y.taps(wy);
  if (tx.empty() || ty.empty()) {
    // An empty window of Max has no gradient wherever its index points; UnMax writes there.
    if (problem.function == PoolingFunction::unmax) check->in_window = false;
    return;
  }
  const int64_t right = static_cast<int64_t>(index) % g.x.in - g.x.start(wx);
  const int64_t down = static_cast<int64_t>(index) / g.x.in - g.y.start(wy);
  const bool inside = right >= 0 && right <= g.x.reach() && down >= 0 && down <= g.y.reach() &&
                      right % g.x.dilation == 0 && down % g.y.dilation == 0;
  if (!inside) check->in_window = false;
}

// A row of windows whose numbers all fit in 30 bits, without dilation, columns side by side.
template <typename T>
void CheckRow(const PoolingProblem& problem, const T* indices, int64_t wy, IndexCheck* check) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  const PoolingGeometry& g = problem.geometry;
  const Span ty = g.y.taps(wy);
  const auto zero = hn::Zero(d), width = hn::Set(d, static_cast<int32_t>(g.x.in));
  const auto kernel = hn::Set(d, static_cast<int32_t>(std::min(g.x.kernel, int64_t{1} << 30)));
  const auto pixels = hn::Set(d, static_cast<int32_t>(g.x.in * g.y.in));
  const auto step = hn::Set(d, static_cast<int32_t>(g.x.stride * N));
  auto start = hn::Add(hn::Mul(hn::Iota(d, 0), hn::Set(d, static_cast<int32_t>(g.x.stride))),
                       hn::Set(d, static_cast<int32_t>(g.x.start(0))));
  auto outside_plane = hn::FirstN(d, 0), outside_window = outside_plane;   // none
  for (int64_t i = 0; i < g.x.out; i += N, start = hn::Add(start, step)) {
    const size_t count = static_cast<size_t>(std::min(N, g.x.out - i));
    const auto words = LoadIndices(d, indices + i, count);
    const auto low = words.low;
    outside_plane = hn::Or(outside_plane,
                           hn::Or(hn::Ne(words.high, zero), hn::Or(hn::Lt(low, zero), hn::Not(hn::Lt(low, pixels)))));
    const auto left = hn::Max(start, zero), length = hn::Sub(hn::Min(hn::Add(start, kernel), width), left);
    auto found = hn::Not(hn::FirstN(d, count));
    for (int64_t t = ty.begin; t < ty.end; ++t) {
      const int64_t row = (g.y.start(wy) + t) * g.x.in;
      const auto along = hn::Sub(hn::Sub(low, hn::Set(d, static_cast<int32_t>(row))), left);
      found = hn::Or(found, hn::AndNot(hn::Lt(along, zero), hn::Lt(along, length)));
    }
    if (problem.function == PoolingFunction::max) {   // an empty window has no gradient wherever its index points
      found = ty.empty() ? hn::Eq(zero, zero) : hn::Or(found, hn::Not(hn::Gt(length, zero)));
    }
    outside_window = hn::Or(outside_window, hn::Not(found));
  }
  if (!hn::AllFalse(d, outside_plane)) check->in_plane = check->in_window = false;
  if (!hn::AllFalse(d, outside_window)) check->in_window = false;
}

}  // namespace

IndexCheck CheckIndices(const PoolingProblem& problem, const IndexPlanes& index, Range planes) {
  const PoolingGeometry& g = problem.geometry;
  constexpr int64_t kSmall = int64_t{1} << 30;
  const bool vectors = index.column == 1 && g.x.dilation == 1 && g.y.dilation == 1 && g.x.in * g.y.in < kSmall &&
                       g.x.pad < kSmall && g.x.pad > -kSmall && g.x.out * g.x.stride < kSmall;
  IndexCheck check;
  for (size_t p = planes.begin; p < planes.end && check.in_plane; ++p) {
    const int64_t sample = static_cast<int64_t>(p) / problem.channels, channel = static_cast<int64_t>(p) % problem.channels;
    const void* plane = index.at(sample, channel);
    for (int64_t wy = 0; wy < g.y.out; ++wy) {
      const int64_t first = wy * index.row;
      if (vectors && index.wide) {
        CheckRow(problem, static_cast<const uint64_t*>(plane) + first, wy, &check);
      } else if (vectors) {
        CheckRow(problem, static_cast<const uint32_t*>(plane) + first, wy, &check);
      } else {
        for (int64_t wx = 0; wx < g.x.out; ++wx) CheckOne(problem, wx, wy, index.load(plane, wx, wy), &check);
      }
    }
  }
  return check;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

IndexCheck pooling_check_indices(const PoolingProblem& problem, const IndexPlanes& index, Range planes) noexcept {
  return BNNS_DISPATCH(CheckIndices)(problem, index, planes);
}

}  // namespace bnns
#endif  // HWY_ONCE
