// Are the caller's indices pixels of the plane, and do they lie in their own windows, or in rows of them? All are
// looked at before anything is written.
//
// All three are true of everything a forward pass wrote. That an index is in its window makes a gradient a matter of
// comparisons; rows tell which rows of it are final. One pass over the indices keeps the worst of each row of windows.

#include <algorithm>
#include <limits>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/index/check_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/index/windows-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::ScalableTag<int32_t>;
using V = hn::Vec<D>;

// Indices as words: of the low ones the smallest and the largest, of the high ones all bits that occur.
struct Extremes {
  V smallest, largest, high;

  HWY_INLINE Extremes() {
    smallest = hn::Set(D(), std::numeric_limits<int32_t>::max());
    largest = high = hn::Zero(D());
  }
  template <typename T>
  HWY_INLINE void Add(const T* indices, int64_t n) {
    const D d;
    const size_t N = hn::Lanes(d);
    const int32_t* words = reinterpret_cast<const int32_t*>(indices);
    const auto load = [&](size_t first, size_t end) HWY_ATTR {
      if (HWY_LIKELY(end >= first + N)) return hn::LoadU(d, words + first);
      return end > first ? LoadPartial(d, words + first, end - first) : hn::Zero(d);
    };
    for (size_t i = 0, count = static_cast<size_t>(n); i < count; i += N) {
      V low;
      if constexpr (sizeof(T) == 4) {
        low = load(i, count);
      } else {  // little-endian: the even words are the low ones
        const V first = load(2 * i, 2 * count), second = load(2 * i + N, 2 * count);
        low = hn::ConcatEven(d, second, first);
        high = hn::Or(high, hn::ConcatOdd(d, second, first));
      }
      largest = hn::Max(largest, low);
      if (HWY_UNLIKELY(count - i < N)) low = hn::IfThenElse(hn::FirstN(d, count - i), low, smallest);
      smallest = hn::Min(smallest, low);
    }
  }
  // Whether all indices are in [begin, end). Low words of 2^31 and more are negative here, so below.
  HWY_INLINE bool Within(int64_t begin, int64_t end) const {
    const D d;
    const auto below = hn::Lt(smallest, hn::Set(d, static_cast<int32_t>(begin)));
    const auto above = hn::Gt(largest, hn::Set(d, static_cast<int32_t>(end - 1)));
    return hn::AllFalse(d, hn::Or(hn::Or(below, above), hn::Ne(high, hn::Zero(d))));
  }
};

// The pixels that the rows of window row wy cover, or an empty span.
Span PixelsUnder(const PoolingGeometry& g, int64_t wy) {
  const int64_t top = std::max<int64_t>(0, g.y.start(wy)), bottom = std::min(g.y.in, g.y.start(wy) + g.y.reach() + 1);
  return {top * g.x.in, bottom * g.x.in};
}

template <typename T>
void CheckPlane(const PoolingProblem& problem, const IndexPlanes& index, const T* plane, Span columns,
                const SmallCheck& small, const WindowCheck& windows, IndexCheck* check) {
  const PoolingGeometry& g = problem.geometry;
  const int64_t pixels = g.x.in * g.y.in;
  if (HWY_LIKELY(small.accepts() && index.row == g.x.out && small.Plane(plane))) return;
  if (HWY_LIKELY(windows.accepts() && windows.Plane(plane, index.row))) return;
  check->in_windows = false;
  for (int64_t wy = 0; wy < g.y.out; ++wy) {
    const T* row = plane + wy * index.row;
    const Span under = PixelsUnder(g, wy);
    Extremes own, others;
    own.Add(row + columns.begin, columns.size());
    const bool good = columns.empty() || (!under.empty() && own.Within(under.begin, under.end));
    if (HWY_UNLIKELY(!good)) {
      if (!own.Within(0, pixels)) check->in_plane = check->in_rows = false;
      // An empty window of Max has no gradient wherever its index points; UnMax writes there.
      if (!under.empty() || problem.function == PoolingFunction::unmax) check->in_rows = false;
    }
    if (columns.size() == g.x.out) continue;
    others.Add(row, columns.begin);
    others.Add(row + columns.end, g.x.out - columns.end);
    if (!others.Within(0, pixels)) check->in_plane = check->in_rows = false;
  }
}

// The same, one by one: wide strides between indices, planes of 2^31 pixels and more.
void CheckOneByOne(const PoolingProblem& problem, const IndexPlanes& index, const void* plane, Span columns,
                   const WindowCheck& windows, IndexCheck* check) {
  const PoolingGeometry& g = problem.geometry;
  const auto covers = [](const PoolingAxis& a, int64_t window, int64_t pixel) {
    return pixel >= a.start(window) && pixel <= a.start(window) + a.reach();
  };
  if (!windows.accepts()) check->in_windows = false;
  for (int64_t wy = 0; wy < g.y.out; ++wy) {
    const Span under = PixelsUnder(g, wy);
    for (int64_t wx = 0; wx < g.x.out; ++wx) {
      const uint64_t position = index.load(plane, wx, wy);
      const int64_t pixel = static_cast<int64_t>(position);
      if (!covers(g.x, wx, pixel % g.x.in) || !covers(g.y, wy, pixel / g.x.in)) check->in_windows = false;
      if (position >= static_cast<uint64_t>(g.x.in * g.y.in)) check->in_plane = check->in_rows = false;
      const bool own = wx >= columns.begin && wx < columns.end;
      const bool inside = pixel >= under.begin && pixel < under.end;
      if (own && !inside && (!under.empty() || problem.function == PoolingFunction::unmax)) check->in_rows = false;
    }
  }
}

}  // namespace

IndexCheck CheckIndices(const PoolingProblem& problem, const IndexPlanes& index, Range planes) {
  const PoolingGeometry& g = problem.geometry;
  const bool vectors = index.column == 1 && g.x.in * g.y.in < std::numeric_limits<int32_t>::max();
  Span columns{0, g.x.out};
  if (problem.function == PoolingFunction::max) {  // columns of windows without a pixel have no gradient either
    columns = g.x.windows_inside(columns);
    if (columns.empty()) columns = {0, 0};
  }
  const WindowCheck windows(g);
  const SmallCheck small(g);
  IndexCheck check;
  if (vectors && g.is_global() && index.plane == 1 && index.sample == problem.channels) {  // one run of indices
    const int64_t first = static_cast<int64_t>(planes.begin), n = static_cast<int64_t>(planes.end - planes.begin);
    Extremes all;
    if (index.wide)
      all.Add(static_cast<const uint64_t*>(index.data) + first, n);
    else
      all.Add(static_cast<const uint32_t*>(index.data) + first, n);
    check.in_plane = check.in_rows = all.Within(0, g.x.in * g.y.in);
    check.in_windows = false;  // not looked at
    return check;
  }
  PlaneNumber at(planes.begin, problem.channels);
  for (size_t p = planes.begin; p < planes.end && check.in_plane; ++p, at.next()) {
    const void* plane = index.at(at.sample, at.channel);
    if (!vectors)
      CheckOneByOne(problem, index, plane, columns, windows, &check);
    else if (index.wide)
      CheckPlane(problem, index, static_cast<const uint64_t*>(plane), columns, small, windows, &check);
    else
      CheckPlane(problem, index, static_cast<const uint32_t*>(plane), columns, small, windows, &check);
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
