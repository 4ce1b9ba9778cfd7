// Gradient of Max over 3 x 3 windows with stride 1 or 2: from the window to one of its rows, then to one of the row's
// three pixels.
//
// The first maximum in raster order lies in the first of the three rows that has the largest pixel, and there in the
// first of its three places. Which place that is does not depend on the window's other rows, so windows above each
// other share it:
//   lines    of each row of pixels, for each column of windows: the largest of three pixels and where it is
//   select   each window hands g to one of its three lines, by comparing their largest pixels
//   finish   when no more windows come, each line hands its sum to one of three columns
// That takes 3 + 3 comparisons and additions of vectors instead of 9, and no addition in memory. A row with a NaN is
// done again, by comparisons that let the first NaN win.

#include <algorithm>
#include <cstring>
#include <limits>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/backward/max_3x3_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/backward/rows_of_dx-inl.h"
#include "src/ops/pooling/common/lanes-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = DLane;
using V = VLane;
using M = MLane;

constexpr int64_t kLineWindows = kChunk + 32;  // a row of windows in whole vectors, and one more
static_assert(kPixelFloats >= kPairColumns);
constexpr int64_t kRing = 4;  // rows of pixels under a row of windows, to a power of two

// A row of pixels as the windows above and below see it.
struct LineRow {
  alignas(64) float largest[kLineWindows];
  alignas(64) float sum[kLineWindows];   // what was handed to the line
  uint8_t second[kLineWindows / 2 + 8];  // bits: the second pixel replaced the first,
  uint8_t third[kLineWindows / 2 + 8];   // the third replaced both
  bool has_nan;
};

template <int kStride, bool kOdd>
class RouteTask {
 public:
  explicit RouteTask(const PoolingBackward& call);
  void Plane(int64_t sample, int64_t channel, Span rows);
  void Finish() { dx_.Finish(); }

 private:
  LineRow& Line(int64_t y) { return y >= 0 && y < g_.y.in ? ring_[y & (kRing - 1)] : outside_; }
  // Masks are kept in two bytes a vector.
  static size_t BitsAt(int64_t i) { return static_cast<size_t>(i / kLanes * 2); }

  template <bool kNaN>
  HWY_INLINE bool MakeLine(const float* row, LineRow* line);
  HWY_NOINLINE void MakeLineWithNaN(const float* row, LineRow* line) { MakeLine<true>(row, line); }
  template <bool kNaN>
  HWY_INLINE void Select(int64_t wy, const float* g);
  HWY_NOINLINE void SelectWithNaN(int64_t wy, const float* g) { Select<true>(wy, g); }
  HWY_NOINLINE void Clear(LineRow* line) {
    std::fill(line->sum, line->sum + (g_.x.out + kLanes - 1) / kLanes * kLanes, 0.0f);
  }
  HWY_INLINE void FinishRow(int64_t y);
  template <RowEnd kEnd>
  HWY_INLINE void Columns(const LineRow& line, float* to);

  const PoolingBackward& call_;
  const PoolingGeometry& g_;
  const bool plain_;  // dy is g
  int64_t sample_ = 0, channel_ = 0;
  int64_t made_ = 0;  // lines of rows before this one are made
  RowsOfDx dx_;
  LineRow ring_[kRing], outside_;
  float gradients_[kChunk];
  GradientScratch& scratch_ = call_.scratch->gradient;
  float* pixels_ = scratch_.pixels;  // of x where it is not f32; free while pooling_gradient does not run
};

template <int kStride, bool kOdd>
RouteTask<kStride, kOdd>::RouteTask(const PoolingBackward& call)
    : call_(call),
      g_(call.problem.geometry),
      plain_(call.activation.is_identity() && call.dy.has_f32_rows()),
      dx_(call, kStride == 2) {
  std::fill(outside_.largest, outside_.largest + kLineWindows, -std::numeric_limits<float>::infinity());
  Clear(&outside_);
  outside_.has_nan = false;
}

// Returns false if there may be a NaN that these comparisons drop.
template <int kStride, bool kOdd>
template <bool kNaN>
HWY_INLINE bool RouteTask<kStride, kOdd>::MakeLine(const float* row, LineRow* line) {
  const D d;
  const int64_t n = g_.x.out, width = g_.x.in;
  V check = hn::Zero(d), even, odd = LowestLanes(), next_even, next_odd = LowestLanes();
  const auto load = [&](int64_t i, V* e, V* o) HWY_ATTR {
    const int64_t c = kStride * i;
    const V low = LoadLanes(row + c, width - c, LowestLanes());
    if constexpr (kStride == 1) {
      *e = low;
      check = hn::Add(check, low);
    } else {
      const V high = LoadLanes(row + c + kLanes, width - c - kLanes, LowestLanes());
      FetchAhead(row + c + kLanes, kLanes);
      check = hn::Add(check, hn::Add(low, high));
      *e = EvenLanes(low, high);
      *o = OddLanes(low, high);
    }
    FetchAhead(row + c, kLanes);
  };
  load(0, &next_even, &next_odd);
  M begins = kOdd ? hn::FirstN(d, 1) : hn::FirstN(d, 0);  // the first window has no first pixel
  V before = LowestLanes();
  for (int64_t i = 0; i < n; i += kLanes) {
    even = next_even;
    odd = next_odd;
    if (i + kLanes < n || !kOdd || kStride == 1) load(i + kLanes, &next_even, &next_odd);
    V first, second, third;
    if constexpr (kStride == 1) {
      first = PreviousLanes(before, even), second = even, third = NextLanes(even, next_even);
      before = even;
    } else if constexpr (kOdd) {
      first = PreviousLanes(before, odd), second = even, third = odd;
      before = odd;
    } else {
      first = even, second = odd, third = NextLanes(even, next_even);
    }
    const M takes_second = hn::Or(Takes<kNaN>(second, first), begins);
    begins = hn::FirstN(d, 0);
    V largest = hn::IfThenElse(takes_second, second, first);
    const M takes_third = Takes<kNaN>(third, largest);
    largest = hn::IfThenElse(takes_third, third, largest);
    hn::Store(largest, d, line->largest + i);
    SaveMask(takes_second, line->second + BitsAt(i));
    SaveMask(takes_third, line->third + BitsAt(i));
  }
  line->has_nan = kNaN;
  return kNaN || hn::AllFalse(d, hn::IsNaN(check));
}

template <int kStride, bool kOdd>
template <bool kNaN>
HWY_INLINE void RouteTask<kStride, kOdd>::Select(int64_t wy, const float* g) {
  const D d;
  const int64_t n = g_.x.out, top = g_.y.start(wy);
  LineRow &a = Line(top), &b = Line(top + 1), &c = Line(top + 2);
  const M begins = hn::FirstN(d, top < 0 ? hn::Lanes(d) : 0);  // there is no first row
  for (int64_t i = 0; i < n; i += kLanes) {
    V amount = hn::Add(LoadLanes(g + i, n - i, hn::Zero(d)), hn::Zero(d));  // as a sum from 0: never -0
    V largest = hn::Load(d, a.largest + i);
    const V second = hn::Load(d, b.largest + i), third = hn::Load(d, c.largest + i);
    const M takes_second = hn::Or(Takes<kNaN>(second, largest), begins);
    largest = hn::IfThenElse(takes_second, second, largest);
    const M takes_third = Takes<kNaN>(third, largest);
    hn::Store(hn::IfThenElseZero(takes_third, amount), d, c.sum + i);  // the first window over this row
    amount = hn::IfThenZeroElse(takes_third, amount);
    const V to_second = hn::IfThenElseZero(takes_second, amount), to_first = hn::IfThenZeroElse(takes_second, amount);
    hn::Store(kStride == 1 ? hn::Add(hn::Load(d, b.sum + i), to_second) : to_second, d, b.sum + i);
    hn::Store(hn::Add(hn::Load(d, a.sum + i), to_first), d, a.sum + i);
  }
}

// A row of dx from its line.
template <int kStride, bool kOdd>
template <RowEnd kEnd>
HWY_INLINE void RouteTask<kStride, kOdd>::Columns(const LineRow& line, float* to) {
  const D d;
  const int64_t n = g_.x.out, width = g_.x.in;
  struct Shares {
    V first, second, third;
  };
  const auto shares = [&](int64_t i) HWY_ATTR {
    if (i >= n) return Shares{hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    const V sum = hn::Load(d, line.sum + i);
    const M second = LoadMask(line.second + BitsAt(i)), third = LoadMask(line.third + BitsAt(i));
    const V rest = hn::IfThenZeroElse(third, sum);
    return Shares{hn::IfThenZeroElse(second, rest), hn::IfThenElseZero(second, rest), hn::IfThenElseZero(third, sum)};
  };
  Shares here = shares(0), next = here;
  V before = hn::Zero(d);  // third shares of the windows before
  int64_t i = 0;
  const auto columns = [&](V* low, V* high) HWY_ATTR {
    next = shares(i + kLanes);
    if constexpr (kStride == 1) {
      *low = hn::Add(hn::Add(PreviousLanes(before, here.third), here.second), NextLanes(here.first, next.first));
    } else if constexpr (kOdd) {
      TakeTurns(here.second, hn::Add(here.third, NextLanes(here.first, next.first)), low, high);
    } else {
      TakeTurns(hn::Add(PreviousLanes(before, here.third), here.first), here.second, low, high);
    }
    before = here.third;
    here = next;
  };
  V low, high = before;
  for (; kStride * (i + kLanes) <= width; i += kLanes) {
    columns(&low, &high);
    if constexpr (kStride == 1)
      hn::StoreU(low, d, to + i);
    else
      PutWhole<kEnd == RowEnd::stream>(low, high, to + 2 * i);
  }
  const int64_t left = width - kStride * i;
  if (left == 0) return;
  columns(&low, &high);
  PutLast<kEnd>(low, high, to + kStride * i, left);
}

template <int kStride, bool kOdd>
void RouteTask<kStride, kOdd>::FinishRow(int64_t y) {
  dx_.Row(y, [&](float* to, auto end) HWY_ATTR {
    if (HWY_UNLIKELY(y >= made_))
      std::fill(to, to + g_.x.in, 0.0f);  // no window is over it
    else
      Columns<decltype(end)::value>(Line(y), to);
  });
}

template <int kStride, bool kOdd>
void RouteTask<kStride, kOdd>::Plane(int64_t sample, int64_t channel, Span rows) {
  sample_ = sample;
  channel_ = channel;
  dx_.StartPlane(sample, channel);
  const void* x = call_.x.at(sample, channel);
  const Span windows{g_.y.windows(rows.begin).begin, g_.y.windows(rows.end - 1).end};
  made_ = windows.empty() ? 0 : std::max<int64_t>(0, g_.y.start(windows.begin));
  const bool f32 = call_.x.has_f32_rows();
  int64_t done = rows.begin;
  for (int64_t wy = windows.begin; wy < windows.end; ++wy) {
    const int64_t top = g_.y.start(wy), bottom = std::min(top + 3, g_.y.in);
    for (; done < std::min(top, rows.end); ++done) FinishRow(done);
    bool has_nan = false;
    for (; made_ < bottom; ++made_) {
      LineRow* line = &Line(made_);
      if (wy == windows.begin) Clear(line);  // later ones begin with the sums of a window above
      const float* row = f32 ? static_cast<const float*>(x) + made_ * call_.x.row
                             : load_pixels(call_.x, x, 0, made_, g_.x.in, pixels_);
      if (HWY_UNLIKELY(!MakeLine<false>(row, line))) MakeLineWithNaN(row, line);
    }
    for (int64_t y = top; y < top + 3; ++y) has_nan |= Line(y).has_nan;
    const float* g = gradients_;
    if (plain_)
      g = static_cast<const float*>(call_.dy.at(sample, channel)) + wy * call_.dy.row;
    else
      pooling_gradient(call_, sample, channel, 0, wy, g_.x.out, gradients_, &scratch_);
    HWY_UNLIKELY(has_nan) ? SelectWithNaN(wy, g) : Select<false>(wy, g);
  }
  for (; done < rows.end; ++done) FinishRow(done);
}

}  // namespace

void RoutePlanes(const PoolingBackward& call, Range planes, Span rows) {
  RunRoutes<RouteTask>(call, planes, rows);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_max_3x3(const PoolingBackward& call) noexcept {
  return !call.has_index() && is_max_3x3(call);
}
void pooling_backward_max_3x3(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(RoutePlanes)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
