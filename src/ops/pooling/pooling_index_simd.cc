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

// Whether all indices of a plane lie in their windows: 2 x 2 or 3 x 3 pixels, each with one in the image, only the
// first and the last window of a row over an edge of it. Few operations and one answer a plane, as nearly all indices
// come from a forward pass.
class WindowCheck {
 public:
  explicit WindowCheck(const PoolingGeometry& g) : g_(g) {
    accepts_ = (g.halves() || g.neighbours()) && g.x.in >= 3;
    if (!accepts_) return;
    const auto whole = [&](int64_t wy) { return g.y.taps(wy).size() == g.y.kernel; };
    for (inside_.begin = 0; inside_.begin < g.y.out && !whole(inside_.begin);) ++inside_.begin;
    for (inside_.end = g.y.out; inside_.end > inside_.begin && !whole(inside_.end - 1);) --inside_.end;
    for (int64_t i = 0; i < kLanes; ++i) {
      const int64_t window[3] = {i, -1, (g.x.out - 1) / kLanes * kLanes + i};  // of the first, any, the last vector
      for (int k = 0; k < 3; ++k) {
        const int64_t columns = k == 1 ? g.x.kernel : g.x.taps(window[k]).size();
        most_[k][i] = window[k] < g.x.out ? static_cast<uint32_t>(columns - 1) : ~uint32_t{0};
        skip_[k][i] = window[k] == 0 ? static_cast<int32_t>(g.x.taps(0).begin) : 0;
      }
    }
  }
  bool accepts() const { return accepts_; }

  // Rows of indices are `pitch` apart.
  template <typename T>
  HWY_INLINE bool Plane(const T* indices, int64_t pitch) const {
    bool good = Rows(indices, pitch, inside_);
    for (int64_t wy = 0; wy < inside_.begin; ++wy) good = Rows(indices, pitch, {wy, wy + 1}) && good;
    for (int64_t wy = inside_.end; wy < g_.y.out; ++wy) good = Rows(indices, pitch, {wy, wy + 1}) && good;
    return good;
  }

 private:
  // Rows of windows that have the same rows of taps in the image.
  template <typename T>
  HWY_NOINLINE bool Rows(const T* indices, int64_t pitch, Span rows) const {
    if (rows.empty()) return true;
    const D d;
    const hn::RebindToUnsigned<D> du;
    constexpr int64_t kWords = sizeof(T) / 4;
    const int64_t n = g_.x.out;
    const Span taps = g_.y.taps(rows.begin);
    // Position of the first pixel of the first window in its first row inside the image; the other rows follow.
    const int64_t origin = g_.origin(0, rows.begin) + taps.begin * g_.x.in;
    const int64_t second = taps.size() > 1 ? g_.x.in : 0, third = taps.size() > 2 ? 2 * g_.x.in : second;
    const V down = hn::Set(d, static_cast<int32_t>(second)), down2 = hn::Set(d, static_cast<int32_t>(third));
    const V step = hn::Set(d, static_cast<int32_t>(g_.x.stride * kLanes));
    const V next_row = hn::Set(d, static_cast<int32_t>(g_.y.stride * g_.x.in));
    V row = hn::Add(hn::Mul(hn::Iota(d, 0), hn::Set(d, static_cast<int32_t>(g_.x.stride))),
                    hn::Set(d, static_cast<int32_t>(origin)));
    auto bad = hn::Zero(du);
    for (int64_t wy = rows.begin; wy < rows.end; ++wy, row = hn::Add(row, next_row)) {
      V first = row;
      for (int64_t i = 0; i < n; i += kLanes, first = hn::Add(first, step)) {
        const int32_t* words = reinterpret_cast<const int32_t*>(indices + wy * pitch + i);
        const int64_t count = (n - i) * kWords;
        const auto load = [&](int64_t at) HWY_ATTR {
          FetchAhead(reinterpret_cast<const float*>(words + at), kLanes);
          if (HWY_LIKELY(count >= at + kLanes)) return hn::LoadU(d, words + at);
          return count > at ? LoadPartial(d, words + at, static_cast<size_t>(count - at)) : hn::Zero(d);
        };
        V low = load(0);
        if constexpr (kWords == 2) {  // little-endian: the even words are the low ones
          const V more = load(kLanes);
          bad = hn::Or(bad, hn::BitCast(du, hn::ConcatOdd(d, more, low)));
          low = hn::ConcatEven(d, more, low);
        }
        const int k = i == 0 ? 0 : i + kLanes < n ? 1 : 2;
        // Columns of the padding are pixels of the row above or below: they count from the first one of the image.
        const V offset = hn::Sub(low, hn::Add(first, hn::Load(d, skip_[k])));
        const auto column = hn::Min(hn::BitCast(du, offset), hn::Min(hn::BitCast(du, hn::Sub(offset, down)),
                                                                     hn::BitCast(du, hn::Sub(offset, down2))));
        const auto most = hn::Load(du, most_[k]);
        bad = hn::Or(bad, hn::Sub(hn::Max(column, most), most));
      }
    }
    return hn::AllTrue(du, hn::Eq(bad, hn::Zero(du)));
  }

  const PoolingGeometry& g_;
  bool accepts_;
  Span inside_;  // rows of windows with all their rows of taps
  // Of the first, any other and the last vector of a row: columns before the image, the last column (any past the end).
  alignas(64) int32_t skip_[3][kLanes];
  alignas(64) uint32_t most_[3][kLanes];
};

// The same of small planes without gaps, by a shift: bit (index - first pixel) of a window's word says whether that
// pixel is one of its own.
class SmallCheck {
 public:
  static constexpr int64_t kMost = 256;  // windows

  explicit SmallCheck(const PoolingGeometry& g) : windows_(g.x.out * g.y.out) {
    constexpr bool kShiftsOut = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;  // a shift by 64 or more gives 0
    accepts_ = kShiftsOut && windows_ <= kMost && (g.halves() || g.neighbours()) &&
               g.tap_offset(g.x.kernel - 1, g.y.kernel - 1) < 64;
    for (int64_t i = 0; accepts_ && i < windows_; ++i) {
      const Span x = g.x.taps(i % g.x.out), y = g.y.taps(i / g.x.out);
      origin_[i] = static_cast<uint64_t>(g.origin(i % g.x.out, i / g.x.out));
      own_[i] = 0;
      for (int64_t ty = y.begin; ty < y.end; ++ty) {
        own_[i] |= ((uint64_t{1} << x.end) - (uint64_t{1} << x.begin)) << (ty * g.x.in);
      }
    }
    for (int64_t i = windows_; accepts_ && i < windows_ + kLanes; ++i) origin_[i] = 0, own_[i] = 1;
  }
  bool accepts() const { return accepts_; }

  template <typename T>
  HWY_INLINE bool Plane(const T* indices) const {
    const hn::ScalableTag<uint64_t> d;
    const hn::Rebind<T, decltype(d)> dt;
    constexpr int64_t N = kLanes / 2;
    auto own = hn::Set(d, 1);
    for (int64_t i = 0; i < windows_; i += N) {
      FetchAhead(reinterpret_cast<const float*>(indices + i));
      const auto index = HWY_LIKELY(i + N <= windows_)
                             ? hn::LoadU(dt, indices + i)
                             : LoadPartial(dt, indices + i, static_cast<size_t>(windows_ - i));
      const auto place = hn::Sub(Widen(d, index), hn::Load(d, origin_ + i));
      own = hn::And(own, hn::Shr(hn::Load(d, own_ + i), place));
    }
    return hn::AllTrue(d, hn::Eq(own, hn::Set(d, 1)));
  }

 private:
  template <class D64, class V64>
  static HWY_INLINE hn::Vec<D64> Widen(D64 d, V64 index) {
    if constexpr (sizeof(hn::TFromV<V64>) == 8)
      return index;
    else
      return hn::PromoteTo(d, index);
  }

  int64_t windows_;
  bool accepts_;
  alignas(64) uint64_t origin_[kMost + kLanes], own_[kMost + kLanes];
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
