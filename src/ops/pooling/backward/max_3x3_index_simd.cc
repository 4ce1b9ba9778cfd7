// Gradient of Max over 3 x 3 windows with stride 1 or 2, by indices that lie in their windows.
//
// The index minus the position of the window's first pixel is ty width + tx: one number says which of its nine pixels a
// window hands g to. For a row of pixels, and each of the three columns of windows,
//   t(tx)   = sum over the windows above each other that reach the row, in order, of (place == ty width + tx ? g : 0)
//   dx      = sum over the up to three windows beside each other, in order, of t, moved by a lane where tx is not
//   theirs
// Each window is looked at nine times, with a comparison and an addition under its mask; nothing is added in memory.
// Sums have the order of pooling/backward/max_3x3_simd.cc, so that maxima given and maxima found again give the same
// bits.

#include <algorithm>
#include <type_traits>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/backward/max_3x3_index_simd.cc"
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
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;

constexpr int64_t kRowWindows = kChunk;  // whole vectors
constexpr int64_t kRing = 4;             // rows of windows over a row of pixels, to a power of two

// A row of windows: lanes past its end have no place.
struct WindowRow {
  alignas(64) int32_t place[kRowWindows];
  alignas(64) float g[kRowWindows];
};

template <int kStride, bool kOdd>
class IndexTask {
 public:
  explicit IndexTask(const PoolingBackward& call);
  void Plane(int64_t sample, int64_t channel, Span rows);
  void Finish() { dx_.Finish(); }

 private:
  static constexpr int kMost = kStride == 1 ? 3 : 2;  // windows over a row of pixels
  // One of them: the place of the first pixel that it has in the row.
  struct Over {
    const WindowRow* row;
    VI place;
  };

  template <typename T>
  HWY_INLINE void MakeRow(const T* indices, const float* g, int64_t wy, WindowRow* row);
  void MakeRow(int64_t wy);
  template <int kRows, RowEnd kEnd>
  HWY_INLINE void Pixels(const Over* over, float* to);

  const PoolingBackward& call_;
  const PoolingGeometry& g_;
  const bool plain_;  // dy is g
  int64_t sample_ = 0, channel_ = 0;
  const void* index_ = nullptr;  // of the plane
  const float* dy_ = nullptr;
  RowsOfDx dx_;
  WindowRow ring_[kRing], outside_;
  float gradients_[kChunk];
  uint64_t indices_[kChunk];  // where the caller's have gaps
  GradientScratch& scratch_ = call_.scratch->gradient;
};

template <int kStride, bool kOdd>
IndexTask<kStride, kOdd>::IndexTask(const PoolingBackward& call)
    : call_(call),
      g_(call.problem.geometry),
      plain_(call.activation.is_identity() && call.dy.has_f32_rows()),
      dx_(call, kStride == 2) {
  const int64_t used = (g_.x.out + kLanes - 1) / kLanes * kLanes;
  std::fill(outside_.place, outside_.place + used, -1);
  std::fill(outside_.g, outside_.g + used, 0.0f);
}

template <int kStride, bool kOdd>
template <typename T>
HWY_INLINE void IndexTask<kStride, kOdd>::MakeRow(const T* indices, const float* g, int64_t wy, WindowRow* row) {
  const D d;
  const DI di;
  const int64_t n = g_.x.out;
  VI first = hn::Iota(di, 0);
  if (kStride == 2) first = hn::Add(first, first);
  first = hn::Add(first, hn::Set(di, static_cast<int32_t>(g_.origin(0, wy))));
  const VI step = hn::Set(di, static_cast<int32_t>(kStride * kLanes));
  const int32_t* words = reinterpret_cast<const int32_t*>(indices);
  constexpr int64_t kWords = sizeof(T) / 4;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes, first = hn::Add(first, step)) {
    VI low = hn::LoadU(di, words + kWords * i);
    FetchAhead(reinterpret_cast<const float*>(words + kWords * i), kWords * kLanes);
    FetchAhead(g + i, kLanes);
    if constexpr (kWords == 2) low = hn::ConcatEven(di, hn::LoadU(di, words + 2 * i + kLanes), low);  // little-endian
    hn::Store(hn::Sub(low, first), di, row->place + i);
    hn::Store(hn::Add(hn::LoadU(d, g + i), hn::Zero(d)), d, row->g + i);  // as a sum from 0: never -0
  }
  if (i == n) return;
  const size_t left = static_cast<size_t>(n - i);
  const auto load = [&](int64_t at) HWY_ATTR {
    const int64_t count = kWords * (n - i) - at;
    if (count >= kLanes) return hn::LoadU(di, words + kWords * i + at);
    return count > 0 ? LoadPartial(di, words + kWords * i + at, static_cast<size_t>(count)) : hn::Zero(di);
  };
  VI low = load(0);
  FetchAhead(reinterpret_cast<const float*>(words + kWords * i), kWords * kLanes);
  FetchAhead(g + i, kLanes);
  if constexpr (kWords == 2) low = hn::ConcatEven(di, load(kLanes), low);
  hn::Store(hn::IfThenElse(hn::FirstN(di, left), hn::Sub(low, first), hn::Set(di, -1)), di, row->place + i);
  hn::Store(hn::Add(LoadPartial(d, g + i, left), hn::Zero(d)), d, row->g + i);
}

template <int kStride, bool kOdd>
void IndexTask<kStride, kOdd>::MakeRow(int64_t wy) {
  const int64_t n = g_.x.out;
  const float* g = gradients_;
  if (plain_)
    g = dy_ + wy * call_.dy.row;
  else
    pooling_gradient(call_, sample_, channel_, 0, wy, n, gradients_, &scratch_);
  const IndexPlanes& index = call_.index;
  const void* plane = index_;
  WindowRow* row = &ring_[wy & (kRing - 1)];
  if (HWY_UNLIKELY(index.column != 1)) {
    for (int64_t i = 0; i < n; ++i) indices_[i] = index.load(plane, i, wy);
    MakeRow(indices_, g, wy, row);
  } else if (index.wide) {
    MakeRow(static_cast<const uint64_t*>(plane) + wy * index.row, g, wy, row);
  } else {
    MakeRow(static_cast<const uint32_t*>(plane) + wy * index.row, g, wy, row);
  }
}

// A row of dx from the windows over it.
template <int kStride, bool kOdd>
template <int kRows, RowEnd kEnd>
HWY_INLINE void IndexTask<kStride, kOdd>::Pixels(const Over* over, float* to) {
  const D d;
  const DI di;
  const int64_t width = g_.x.in, windows = g_.x.out;
  struct Shares {
    V of[3];  // by tx
  };
  VI place[kRows][3];
  for (int r = 0; r < kRows; ++r) {
    place[r][0] = over[r].place;
    place[r][1] = hn::Add(place[r][0], hn::Set(di, 1));
    place[r][2] = hn::Add(place[r][0], hn::Set(di, 2));
  }
  const auto shares = [&](int64_t i) HWY_ATTR {
    Shares s;
    for (int r = 0; r < kRows; ++r) {
      const VI is = hn::Load(di, over[r].row->place + i);
      const V g = hn::Load(d, over[r].row->g + i);
      for (int t = 0; t < 3; ++t) {
        const V share = hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(is, place[r][t])), g);
        s.of[t] = r == 0 ? share : hn::Add(s.of[t], share);
      }
    }
    return s;
  };
  const Shares none{{hn::Zero(d), hn::Zero(d), hn::Zero(d)}};
  Shares here = shares(0);
  V before = hn::Zero(d);  // third shares of the windows before
  const auto columns = [&](int64_t i, V* low, V* high) HWY_ATTR {
    const Shares next = i + kLanes < windows ? shares(i + kLanes) : none;
    if constexpr (kStride == 1) {
      *low = hn::Add(hn::Add(PreviousLanes(before, here.of[2]), here.of[1]), NextLanes(here.of[0], next.of[0]));
    } else if constexpr (kOdd) {
      TakeTurns(here.of[1], hn::Add(here.of[2], NextLanes(here.of[0], next.of[0])), low, high);
    } else {
      TakeTurns(hn::Add(PreviousLanes(before, here.of[2]), here.of[0]), here.of[1], low, high);
    }
    before = here.of[2];
    here = next;
  };
  V low, high = before;
  int64_t i = 0;
  for (; kStride * (i + kLanes) <= width; i += kLanes) {
    columns(i, &low, &high);
    if constexpr (kStride == 1)
      hn::StoreU(low, d, to + i);
    else
      PutWhole<kEnd == RowEnd::stream>(low, high, to + 2 * i);
  }
  const int64_t left = width - kStride * i;
  if (left == 0) return;
  columns(i, &low, &high);
  PutLast<kEnd>(low, high, to + kStride * i, left);
}

template <int kStride, bool kOdd>
void IndexTask<kStride, kOdd>::Plane(int64_t sample, int64_t channel, Span rows) {
  const DI di;
  dx_.StartPlane(sample, channel);
  sample_ = sample;
  channel_ = channel;
  index_ = call_.index.at(sample, channel);
  if (plain_) dy_ = static_cast<const float*>(call_.dy.at(sample, channel));
  int64_t made = g_.y.windows(rows.begin).begin;
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    const Span windows = g_.y.windows(y);
    for (; made < windows.end; ++made) MakeRow(made);
    Over over[kMost];
    for (int k = 0; k < kMost; ++k) {
      const int64_t wy = windows.begin + k;
      if (wy < windows.end)
        over[k] = {&ring_[wy & (kRing - 1)], hn::Set(di, static_cast<int32_t>((y - g_.y.start(wy)) * g_.x.in))};
      else
        over[k] = {&outside_, hn::Zero(di)};
    }
    dx_.Row(y, [&](float* to, auto end) HWY_ATTR {
      if (kStride == 2 && windows.size() < 2)
        Pixels<1, decltype(end)::value>(over, to);
      else
        Pixels<kMost, decltype(end)::value>(over, to);
    });
  }
}

}  // namespace

void RoutePlanesByIndex(const PoolingBackward& call, Range planes, Span rows) {
  RunRoutes<IndexTask>(call, planes, rows);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_max_3x3_index(const PoolingBackward& call) noexcept {
  return call.has_index() && call.index_in_windows && is_max_3x3(call);
}
void pooling_backward_max_3x3_index(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(RoutePlanesByIndex)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
