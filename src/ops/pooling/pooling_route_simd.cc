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
// done again, by comparisons that let the first NaN win. By index the windows say which pixel of a line it is; what
// does not fit is added to the finished row.

#include <algorithm>
#include <cstring>
#include <limits>

#include "src/ops/pooling/pooling_kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/pooling_route_simd.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/pooling_lanes-inl.h"
#include "src/ops/pooling/pooling_writer-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = DLane;
using V = VLane;
using M = MLane;
using DWord = hn::RebindToSigned<D>;

constexpr int64_t kLineWindows = kChunk + 32;  // a row of windows in whole vectors, and one more
static_assert(kStageFloats >= 1024 + kPairColumns + 2 * kLanes);
constexpr int64_t kRing = 4;  // rows of pixels under a row of windows, to a power of two

HWY_INLINE V Lowest() {
  return hn::Set(D(), -std::numeric_limits<float>::infinity());
}
// Whether v replaces the best so far.
template <bool kNaN>
HWY_INLINE M Takes(V v, V best) {
  if constexpr (kNaN) return hn::Or(hn::Gt(v, best), hn::AndNot(hn::IsNaN(best), hn::IsNaN(v)));
  return hn::Gt(v, best);
}

// Masks in memory, two bytes each.
HWY_INLINE void SaveMask(M mask, uint8_t* to) {
#if HWY_TARGET == HWY_AVX3
  std::memcpy(to, &mask.raw, 2);  // StoreMaskBits and LoadMaskBits go through wider words, which wait for each other
#else
  hn::StoreMaskBits(D(), mask, to);
#endif
}
HWY_INLINE M LoadMask(const uint8_t* from) {
#if HWY_TARGET == HWY_AVX3
  M mask;
  std::memcpy(&mask.raw, from, 2);
  return mask;
#else
  return hn::LoadMaskBits(D(), from);
#endif
}

// A row of pixels as the windows above and below see it.
struct LineRow {
  union {
    alignas(64) float largest[kLineWindows];
    alignas(64) int32_t place[kLineWindows];  // by index: of the maximum in the line, or -1
  };
  alignas(64) float sum[kLineWindows];   // what was handed to the line
  uint8_t second[kLineWindows / 2 + 8];  // bits: the second pixel replaced the first,
  uint8_t third[kLineWindows / 2 + 8];   // the third replaced both
  bool has_nan;
  bool has_strays;  // by index: gradients for pixels outside of their windows
};

template <int kStride, bool kOdd, bool kIndex>
class RouteTask {
 public:
  explicit RouteTask(const PoolingBackward& call);
  void Plane(int64_t sample, int64_t channel, Span rows);
  void Finish() {
    writer_.Finish();
    if (call_.stream) hwy::FlushStream();
  }

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
  HWY_INLINE void SelectByIndex(int64_t wy, const float* g);
  HWY_INLINE hn::Vec<DWord> Indices(const int32_t* row, bool wide, int64_t i);
  HWY_NOINLINE void AddStrays(int64_t wy, const float* g);
  HWY_NOINLINE void Clear(LineRow* line) {
    std::fill(line->sum, line->sum + (g_.x.out + kLanes - 1) / kLanes * kLanes, 0.0f);
    if (!kIndex) return;
    std::fill(line->place, line->place + kLineWindows, -1);
  }
  HWY_INLINE void FinishRow(int64_t y);
  template <bool kStream>
  HWY_INLINE void Columns(const LineRow& line, float* to);

  const PoolingBackward& call_;
  const PoolingGeometry& g_;
  const bool plain_;  // dy is g
  int64_t sample_ = 0, channel_ = 0;
  int64_t made_ = 0;  // lines of rows before this one are made
  RowWriter<float> writer_;
  LineRow ring_[kRing], outside_;
  float strays_of_[kRing][kPairColumns];  // where has_strays, else not set
  float gradients_[kChunk];
  int32_t indices_[kChunk];  // where the caller's have gaps
  uint8_t strays_[kLineWindows / 2 + 8];
  GradientRoom room_;
  // Of x and dx where they are not f32; free while pooling_gradient does not run.
  float *pixels_ = room_.stage, *row_ = room_.stage + 1024;
};

template <int kStride, bool kOdd, bool kIndex>
RouteTask<kStride, kOdd, kIndex>::RouteTask(const PoolingBackward& call)
    : call_(call),
      g_(call.problem.geometry),
      plain_(call.activation.is_identity() && call.dy.has_f32_rows()),
      writer_(call.stream) {
  std::fill(outside_.largest, outside_.largest + kLineWindows, -std::numeric_limits<float>::infinity());
  Clear(&outside_);
  outside_.has_nan = false;
}

// Returns false if there may be a NaN that these comparisons drop.
template <int kStride, bool kOdd, bool kIndex>
template <bool kNaN>
HWY_INLINE bool RouteTask<kStride, kOdd, kIndex>::MakeLine(const float* row, LineRow* line) {
  const D d;
  const int64_t n = g_.x.out, width = g_.x.in;
  V check = hn::Zero(d), even, odd = Lowest(), next_even, next_odd = Lowest();
  const auto load = [&](int64_t i, V* e, V* o) HWY_ATTR {
    const int64_t c = kStride * i;
    const V low = LoadLanes(row + c, width - c, Lowest());
    if constexpr (kStride == 1) {
      *e = low;
      check = hn::Add(check, low);
    } else {
      const V high = LoadLanes(row + c + kLanes, width - c - kLanes, Lowest());
      FetchAhead(row + c + kLanes, kLanes);
      check = hn::Add(check, hn::Add(low, high));
      *e = EvenLanes(low, high);
      *o = OddLanes(low, high);
    }
    FetchAhead(row + c, kLanes);
  };
  load(0, &next_even, &next_odd);
  M begins = kOdd ? hn::FirstN(d, 1) : hn::FirstN(d, 0);  // the first window has no first pixel
  V before = Lowest();
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

template <int kStride, bool kOdd, bool kIndex>
template <bool kNaN>
HWY_INLINE void RouteTask<kStride, kOdd, kIndex>::Select(int64_t wy, const float* g) {
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

// The low words of indices [i, i + kLanes) of a row of windows, or of as many as there are.
template <int kStride, bool kOdd, bool kIndex>
HWY_INLINE hn::Vec<DWord> RouteTask<kStride, kOdd, kIndex>::Indices(const int32_t* row, bool wide, int64_t i) {
  const DWord di;
  const int64_t n = g_.x.out - i;
  const auto load = [&](const int32_t* words, int64_t count) HWY_ATTR {
    if (HWY_LIKELY(count >= kLanes)) return hn::LoadU(di, words);
    return count > 0 ? LoadPartial(di, words, static_cast<size_t>(count)) : hn::Zero(di);
  };
  if (!wide) return load(row + i, n);
  return hn::ConcatEven(di, load(row + 2 * i + kLanes, 2 * n - kLanes), load(row + 2 * i, 2 * n));  // little-endian
}

template <int kStride, bool kOdd, bool kIndex>
HWY_INLINE void RouteTask<kStride, kOdd, kIndex>::SelectByIndex(int64_t wy, const float* g) {
  const D d;
  const DWord di;
  const int64_t n = g_.x.out, top = g_.y.start(wy), width = g_.x.in;
  const IndexPlanes& index = call_.index;
  const void* plane = index.at(sample_, channel_);
  const int32_t* row = static_cast<const int32_t*>(plane) + wy * index.row * (index.wide ? 2 : 1);
  const bool wide = index.wide && index.column == 1;
  if (HWY_UNLIKELY(index.column != 1)) {
    for (int64_t i = 0; i < n; ++i) indices_[i] = static_cast<int32_t>(index.load(plane, i, wy));
    row = indices_;
  }
  LineRow &a = Line(top), &b = Line(top + 1), &c = Line(top + 2);
  const auto zero = hn::Zero(di), one = hn::Set(di, 1), two = hn::Set(di, 2), none = hn::Set(di, -1);
  const auto down = hn::Set(di, static_cast<int32_t>(width)), right = down;
  const auto origin = hn::Set(di, static_cast<int32_t>(top * width) - (kOdd ? 1 : 0));
  const auto word = [&](auto mask) HWY_ATTR { return hn::RebindMask(d, mask); };
  auto first = hn::Iota(di, 0);  // of the windows' columns
  if (kStride == 2) first = hn::Add(first, first);
  M strays = hn::FirstN(d, 0);
  for (int64_t i = 0; i < n; i += kLanes, first = hn::Add(first, hn::Set(di, kStride * static_cast<int32_t>(kLanes)))) {
    const V amount = hn::Add(LoadLanes(g + i, n - i, hn::Zero(d)), hn::Zero(d));  // as a sum from 0: never -0
    auto place = hn::Sub(Indices(row, wide, i), hn::Add(first, origin));
    // place = ty width + tx
    const auto below = hn::Not(hn::Lt(place, down));
    place = hn::IfThenElse(below, hn::Sub(place, down), place);
    const auto lowest = hn::And(below, hn::Not(hn::Lt(place, down)));
    place = hn::IfThenElse(lowest, hn::Sub(place, down), place);
    // Columns outside of the image: there the index is of another row.
    const M is_first = word(hn::And(hn::Eq(place, zero), hn::Gt(hn::Add(first, hn::Set(di, kOdd ? 0 : 1)), zero)));
    const M is_second = word(hn::And(hn::Eq(place, one), hn::Lt(hn::Add(first, hn::Set(di, kOdd ? 0 : 1)), right)));
    const M is_third = word(hn::And(hn::Eq(place, two), hn::Lt(hn::Add(first, hn::Set(di, kOdd ? 1 : 2)), right)));
    M good = hn::Or(hn::Or(is_first, is_second), is_third);
    M in_c = word(lowest), in_b = hn::AndNot(in_c, word(below)), in_a = hn::Not(word(below));
    // All windows over a line have its maximum at one place, if the indices come from a forward pass.
    const auto agree = [&](const LineRow& line, M in) HWY_ATTR {
      const auto other = hn::Load(di, line.place + i);
      const M differs = word(hn::AndNot(hn::Eq(other, none), hn::Not(hn::Eq(other, place))));
      good = hn::AndNot(hn::And(in, differs), good);
    };
    agree(a, in_a);
    if (kStride == 1) agree(b, in_b);
    const auto hand = [&](LineRow& line, M in, bool fresh) HWY_ATTR {
      in = hn::And(in, good);
      const V share = hn::IfThenElseZero(in, amount);
      hn::Store(fresh ? share : hn::Add(hn::Load(d, line.sum + i), share), d, line.sum + i);
      hn::Store(hn::IfThenElse(hn::RebindMask(di, in), place, fresh ? none : hn::Load(di, line.place + i)), di,
                line.place + i);
    };
    hand(a, in_a, false), hand(b, in_b, kStride == 2), hand(c, in_c, true);  // c: the first window over this row
    const M stray = hn::AndNot(good, hn::FirstN(d, static_cast<size_t>(std::min(kLanes, n - i))));
    SaveMask(stray, strays_ + BitsAt(i));
    strays = hn::Or(strays, stray);
  }
  if (HWY_UNLIKELY(!hn::AllFalse(d, strays))) AddStrays(wy, g);
}

// The indices of a row of windows that lie outside of their windows, though in their rows, or in a line of which
// another window has another pixel.
template <int kStride, bool kOdd, bool kIndex>
void RouteTask<kStride, kOdd, kIndex>::AddStrays(int64_t wy, const float* g) {
  const int64_t width = g_.x.in;
  for (int64_t i = 0; i < g_.x.out; ++i) {
    const int64_t bit = i % kLanes;
    if (((strays_[BitsAt(i) + static_cast<size_t>(bit / 8)] >> (bit % 8)) & 1) == 0) continue;
    const int64_t at = static_cast<int64_t>(call_.index.load(call_.index.at(sample_, channel_), i, wy));
    LineRow& line = Line(at / width);
    float* sums = strays_of_[at / width & (kRing - 1)];
    if (!line.has_strays) std::fill(sums, sums + width, 0.0f);
    line.has_strays = true;
    sums[at % width] += g[i];
  }
}

// A row of dx from its line.
template <int kStride, bool kOdd, bool kIndex>
template <bool kStream>
HWY_INLINE void RouteTask<kStride, kOdd, kIndex>::Columns(const LineRow& line, float* to) {
  const D d;
  const int64_t n = g_.x.out, width = g_.x.in;
  struct Shares {
    V first, second, third;
  };
  const auto shares = [&](int64_t i) HWY_ATTR {
    if (i >= n) return Shares{hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    const V sum = hn::Load(d, line.sum + i);
    M second, third;
    if constexpr (kIndex) {
      const DWord di;
      const auto place = hn::Load(di, line.place + i);
      second = hn::RebindMask(d, hn::Eq(place, hn::Set(di, 1)));
      third = hn::RebindMask(d, hn::Eq(place, hn::Set(di, 2)));
    } else {
      second = LoadMask(line.second + BitsAt(i));
      third = LoadMask(line.third + BitsAt(i));
    }
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
      PutWhole<kStream>(low, high, to + 2 * i);
  }
  const int64_t left = width - kStride * i;
  if (left == 0) return;
  columns(&low, &high);
  PutEnd<kStream>(low, high, to + kStride * i, left);
}

template <int kStride, bool kOdd, bool kIndex>
void RouteTask<kStride, kOdd, kIndex>::FinishRow(int64_t y) {
  const int64_t width = g_.x.in, pitch = call_.dx.row;
  void* plane = call_.dx.at(sample_, channel_);
  const bool strays = kIndex && HWY_UNLIKELY(y < made_ && Line(y).has_strays);
  const bool direct = call_.dx.has_f32_rows() && !call_.accumulate && !strays;
  float* to = direct ? static_cast<float*>(plane) + y * pitch : row_;
  const bool lines = (reinterpret_cast<uintptr_t>(to) | static_cast<uintptr_t>(width) * sizeof(float)) % 64 == 0;
  const bool stream = direct && call_.stream && lines && kStride == 2;
  const bool together = direct && call_.stream && !stream && pitch == width;
  if (together) to = writer_.Reserve(to, static_cast<size_t>(width));
  if (HWY_UNLIKELY(y >= made_))
    std::fill(to, to + width, 0.0f);  // no window is over it
  else
    stream ? Columns<true>(Line(y), to) : Columns<false>(Line(y), to);
  if (strays) {
    for (int64_t x = 0; x < width; ++x) row_[x] += strays_of_[y & (kRing - 1)][x];
  }
  if (together)
    writer_.Commit(static_cast<size_t>(width));
  else if (!direct)
    store_pixels(call_.dx, plane, 0, y, width, row_, call_.accumulate);
}

template <int kStride, bool kOdd, bool kIndex>
void RouteTask<kStride, kOdd, kIndex>::Plane(int64_t sample, int64_t channel, Span rows) {
  sample_ = sample;
  channel_ = channel;
  const void* x = kIndex ? nullptr : call_.x.at(sample, channel);
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
      line->has_strays = false;
      if (wy == windows.begin) Clear(line);  // later ones begin with the sums of a window above
      if constexpr (kIndex) continue;
      const float* row = f32 ? static_cast<const float*>(x) + made_ * call_.x.row
                             : load_pixels(call_.x, x, 0, made_, g_.x.in, pixels_);
      if (HWY_UNLIKELY(!MakeLine<false>(row, line))) MakeLineWithNaN(row, line);
    }
    for (int64_t y = top; y < top + 3 && !kIndex; ++y) has_nan |= Line(y).has_nan;
    const float* g = gradients_;
    if (plain_)
      g = static_cast<const float*>(call_.dy.at(sample, channel)) + wy * call_.dy.row;
    else
      pooling_gradient(call_, sample, channel, 0, wy, g_.x.out, gradients_, &room_);
    if constexpr (kIndex)
      SelectByIndex(wy, g);
    else
      HWY_UNLIKELY(has_nan) ? SelectWithNaN(wy, g) : Select<false>(wy, g);
  }
  for (; done < rows.end; ++done) FinishRow(done);
}

template <int kStride, bool kOdd, bool kIndex>
void RunRoutes(const PoolingBackward& call, Range planes, Span rows) {
  RouteTask<kStride, kOdd, kIndex> task(call);
  PlaneNumber at(planes.begin, call.problem.channels);
  for (size_t p = planes.begin; p < planes.end; ++p, at.next()) task.Plane(at.sample, at.channel, rows);
  task.Finish();
}

}  // namespace

void RoutePlanes(const PoolingBackward& call, Range planes, Span rows) {
  const PoolingAxis& x = call.problem.geometry.x;
  const bool by_index = call.index.data != nullptr;
  if (x.stride == 1)
    by_index ? RunRoutes<1, true, true>(call, planes, rows) : RunRoutes<1, true, false>(call, planes, rows);
  else if (x.pad & 1)
    by_index ? RunRoutes<2, true, true>(call, planes, rows) : RunRoutes<2, true, false>(call, planes, rows);
  else
    by_index ? RunRoutes<2, false, true>(call, planes, rows) : RunRoutes<2, false, false>(call, planes, rows);
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool pooling_backward_routes(const PoolingGeometry& g) noexcept {
  return g.x.kernel == 3 && g.x.out <= kChunk && g.x.in <= kPairColumns && g.x.in * g.y.in <= INT32_MAX &&
         (g.halves() || g.neighbours());
}
void pooling_backward_route(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(RoutePlanes)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
