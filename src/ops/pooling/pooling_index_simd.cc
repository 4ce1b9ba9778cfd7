// Are the caller's indices pixels of the plane, and do they lie in their own windows, or in rows of them? All are
// looked at before anything is written.
//
// All three are true of everything a forward pass wrote. That an index is in its window makes a gradient a matter of
// comparisons; rows tell which rows of it are final. One pass over the indices keeps the worst of each row of windows.

#include <algorithm>
#include <limits>

#include "src/ops/pooling/pooling_kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/pooling_index_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/pooling_lanes-inl.h"
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

// Whether a row of indices lies in its windows: 2 x 2 or 3 x 3 pixels, each with one in the image, only the first and
// the last window over an edge of it. Few operations, as nearly all indices come from a forward pass.
class WindowCheck {
 public:
  explicit WindowCheck(const PoolingGeometry& g) : g_(g) {
    left_ = g.x.start(0) < 0;
    right_ = g.x.start(g.x.out - 1) + g.x.kernel > g.x.in;
    accepts_ = (g.halves() || g.neighbours()) && g.x.in >= 3;
  }
  bool accepts() const { return accepts_; }

  template <typename T>
  HWY_INLINE bool Row(const T* indices, int64_t wy) const {
    const D d;
    const hn::RebindToUnsigned<D> du;
    const size_t N = hn::Lanes(d), n = static_cast<size_t>(g_.x.out);
    const Span rows = g_.y.taps(wy);
    // Position of the first pixel of the first window in its first row inside the image; the other rows follow.
    const int64_t origin = g_.origin(0, wy) + rows.begin * g_.x.in;
    const int64_t second = rows.size() > 1 ? g_.x.in : 0, third = rows.size() > 2 ? 2 * g_.x.in : second;
    const V down = hn::Set(d, static_cast<int32_t>(second)), down2 = hn::Set(d, static_cast<int32_t>(third));
    const V step = hn::Set(d, static_cast<int32_t>(g_.x.stride * static_cast<int64_t>(N)));
    V first = hn::Add(hn::Mul(hn::Iota(d, 0), hn::Set(d, static_cast<int32_t>(g_.x.stride))),
                      hn::Set(d, static_cast<int32_t>(origin)));
    auto worst = hn::Zero(du);  // of the columns in the windows
    V high = hn::Zero(d);
    for (size_t i = 0; i < n; i += N, first = hn::Add(first, step)) {
      const int32_t* words = reinterpret_cast<const int32_t*>(indices + i);
      const size_t count = (n - i) * sizeof(T) / 4;
      const auto load = [&](size_t at) HWY_ATTR {
        if (HWY_LIKELY(count >= at + N)) return hn::LoadU(d, words + at);
        return count > at ? LoadPartial(d, words + at, count - at) : hn::Zero(d);
      };
      V low = load(0);
      FetchAhead(reinterpret_cast<const float*>(words), kLanes);
      if constexpr (sizeof(T) == 8) {  // little-endian: the even words are the low ones
        const V more = load(N);
        FetchAhead(reinterpret_cast<const float*>(words + N), kLanes);
        high = hn::Or(high, hn::ConcatOdd(d, more, low));
        low = hn::ConcatEven(d, more, low);
      }
      const V offset = hn::Sub(low, first);
      const auto column = hn::Min(hn::BitCast(du, offset), hn::Min(hn::BitCast(du, hn::Sub(offset, down)),
                                                                   hn::BitCast(du, hn::Sub(offset, down2))));
      worst = hn::Max(worst, HWY_LIKELY(n - i >= N) ? column : hn::IfThenElseZero(hn::FirstN(du, n - i), column));
    }
    const auto wrong = hn::Gt(worst, hn::Set(du, static_cast<uint32_t>(g_.x.kernel - 1)));
    if (!hn::AllFalse(du, wrong) || !hn::AllTrue(d, hn::Eq(high, hn::Zero(d)))) return false;
    // The columns of the padding are pixels of the row above or below.
    const auto column = [&](int64_t wx) {
      const uint32_t offset = static_cast<uint32_t>(static_cast<int64_t>(indices[wx]) - origin - wx * g_.x.stride);
      return std::min({offset, offset - static_cast<uint32_t>(second), offset - static_cast<uint32_t>(third)});
    };
    if (left_ && column(0) < static_cast<uint32_t>(-g_.x.start(0))) return false;
    return !right_ || column(g_.x.out - 1) < static_cast<uint32_t>(g_.x.in - g_.x.start(g_.x.out - 1));
  }

 private:
  const PoolingGeometry& g_;
  bool accepts_;
  bool left_, right_;  // the first, the last window is over the edge
};

// The pixels that the rows of window row wy cover, or an empty span.
Span PixelsUnder(const PoolingGeometry& g, int64_t wy) {
  const int64_t top = std::max<int64_t>(0, g.y.start(wy)), bottom = std::min(g.y.in, g.y.start(wy) + g.y.reach() + 1);
  return {top * g.x.in, bottom * g.x.in};
}

template <typename T>
void CheckPlane(const PoolingProblem& problem, const IndexPlanes& index, const T* plane, Span columns,
                const WindowCheck& windows, IndexCheck* check) {
  const PoolingGeometry& g = problem.geometry;
  const int64_t pixels = g.x.in * g.y.in;
  for (int64_t wy = 0; wy < g.y.out; ++wy) {
    const T* row = plane + wy * index.row;
    if (HWY_LIKELY(windows.accepts() && windows.Row(row, wy))) continue;
    check->in_windows = false;
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
      CheckPlane(problem, index, static_cast<const uint64_t*>(plane), columns, windows, &check);
    else
      CheckPlane(problem, index, static_cast<const uint32_t*>(plane), columns, windows, &check);
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
