// Gradient of Max over 2 x 2 windows with stride 2 and no padding before the first pixel: the windows tile the image.
//
// Each pixel belongs to one window, so dx is made in registers: g where the pixel is its window's maximum, else 0. A
// vector of windows reads two rows of 2 N pixels, taken apart into the four taps, and writes two rows of 2 N pixels.
//   maximum   the first of the four, or the one that each later comparison with > takes over
//   by index  index - position of the window is 0, 1, width or width + 1

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/backward/max_2x2_simd.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/common/lanes-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/line_writer-inl.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = DLane;
using DI = hn::RebindToSigned<D>;
using V = VLane;
using VI = hn::Vec<DI>;

constexpr int64_t kRunFloats = 512;  // rows that follow each other in memory are reserved together

// Two rows of pixels and the row of windows over them.
struct Pair {
  const float* top;
  const float* bottom;  // NULL where the lowest windows hang over the edge
  const float* g;
  const void* index;
  int64_t origin;   // position of the first pixel in the plane
  int64_t width;    // of the plane
  int64_t columns;  // of dx, from the first window on
  int64_t windows;  // that cover them, or all but the last few
  float* to[2];
};

struct Quad {
  V v[4];  // taps (0,0) (1,0) (0,1) (1,1)
};

template <bool kWhole>
HWY_INLINE Quad LoadQuad(const Pair& p, int64_t i, V* check) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d)), left = p.columns - 2 * i;
  const V lowest = hn::Set(d, -std::numeric_limits<float>::infinity());
  V a, b, c, e;
  if constexpr (kWhole) {
    a = hn::LoadU(d, p.top + 2 * i), b = hn::LoadU(d, p.top + 2 * i + N);
    c = hn::LoadU(d, p.bottom + 2 * i), e = hn::LoadU(d, p.bottom + 2 * i + N);
  } else {
    a = LoadLanes(p.top + 2 * i, left, lowest), b = LoadLanes(p.top + 2 * i + N, left - N, lowest);
    c = p.bottom ? LoadLanes(p.bottom + 2 * i, left, lowest) : lowest;
    e = p.bottom ? LoadLanes(p.bottom + 2 * i + N, left - N, lowest) : lowest;
  }
  *check = hn::Add(hn::Add(a, b), hn::Add(c, e));
  return {{hn::ConcatEven(d, b, a), hn::ConcatOdd(d, b, a), hn::ConcatEven(d, e, c), hn::ConcatOdd(d, e, c)}};
}

HWY_INLINE void StoreQuad(const Pair& p, int64_t i, V t0, V t1, V t2, V t3) {
  V low, high;
  TakeTurns(t0, t1, &low, &high);
  PutWhole<false>(low, high, p.to[0] + 2 * i);
  if (!p.to[1]) return;
  TakeTurns(t2, t3, &low, &high);
  PutWhole<false>(low, high, p.to[1] + 2 * i);
}

// Windows [i, i + N) from the pixels.
template <bool kWhole>
HWY_INLINE void ByPixels(const Pair& p, int64_t i) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  FetchAhead(p.top + 2 * i, 2 * kLanes);
  if (kWhole || p.bottom) FetchAhead(p.bottom + 2 * i, 2 * kLanes);
  FetchAhead(p.g + i, kLanes);
  V check;
  const Quad q = LoadQuad<kWhole>(p, i, &check);
  V g = kWhole ? hn::LoadU(d, p.g + i) : LoadLanes(p.g + i, p.windows - i, hn::Zero(d));
  g = hn::Add(g, hn::Zero(d));  // as a sum from 0: never -0
  V best = q.v[0];
  const auto first = hn::Gt(q.v[1], best);
  best = hn::IfThenElse(first, q.v[1], best);
  const auto second = hn::Gt(q.v[2], best);
  best = hn::IfThenElse(second, q.v[2], best);
  const auto third = hn::Gt(q.v[3], best);
  const V t3 = hn::IfThenElseZero(third, g);
  g = hn::IfThenZeroElse(third, g);
  const V t2 = hn::IfThenElseZero(second, g);
  g = hn::IfThenZeroElse(second, g);
  const V t1 = hn::IfThenElseZero(first, g);
  const V t0 = hn::IfThenZeroElse(first, g);
  StoreQuad(p, i, t0, t1, t2, t3);
  if (HWY_LIKELY(hn::AllFalse(d, hn::IsNaN(check)))) return;
  // A NaN, or inf - inf: the first NaN of a window wins. `first` to `third` are of no use then; one by one.
  for (int64_t w = i; w < std::min(i + N, p.windows); ++w) {
    const bool right = 2 * w + 1 < p.columns;
    const float pixel[4] = {p.top[2 * w], right ? p.top[2 * w + 1] : -HUGE_VALF,
                            p.bottom ? p.bottom[2 * w] : -HUGE_VALF,
                            p.bottom && right ? p.bottom[2 * w + 1] : -HUGE_VALF};
    int at = 0;
    for (int t = 1; t < 4; ++t) {
      if (pixel[t] > pixel[at] || (pixel[t] != pixel[t] && pixel[at] == pixel[at])) at = t;
    }
    for (int t = 0; t < 4; ++t) {
      if (p.to[t / 2] && (t % 2 == 0 || right)) p.to[t / 2][2 * w + t % 2] = t == at ? 0.0f + p.g[w] : 0;
    }
  }
}

// Windows [i, i + N) from their indices.
template <typename T>
HWY_INLINE void ByIndex(const Pair& p, int64_t i) {
  const D d;
  const DI di;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d)), count = std::min(N, p.windows - i);
  const int32_t* words = reinterpret_cast<const int32_t*>(static_cast<const T*>(p.index) + i);
  const auto load = [&](int64_t first, int64_t end) HWY_ATTR {
    if (HWY_LIKELY(end >= first + N)) return hn::LoadU(di, words + first);
    return end > first ? LoadPartial(di, words + first, static_cast<size_t>(end - first)) : hn::Zero(di);
  };
  VI low = load(0, sizeof(T) / 4 * count);
  FetchAhead(reinterpret_cast<const float*>(words), kLanes * static_cast<int64_t>(sizeof(T)) / 4);
  FetchAhead(p.g + i, kLanes);
  if constexpr (sizeof(T) == 8) low = hn::ConcatEven(di, load(N, 2 * count), low);  // little-endian: the low words
  const VI twice = hn::Add(hn::Iota(di, 0), hn::Iota(di, 0));
  const VI start = hn::Add(hn::Set(di, static_cast<int32_t>(p.origin + 2 * i)), twice);
  const VI offset = hn::Sub(low, start), width = hn::Set(di, static_cast<int32_t>(p.width)), one = hn::Set(di, 1);
  const V g = hn::Add(LoadLanes(p.g + i, count, hn::Zero(d)), hn::Zero(d));  // as a sum from 0: never -0
  const auto keep = [&](VI at) HWY_ATTR { return hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(offset, at)), g); };
  StoreQuad(p, i, keep(hn::Zero(di)), keep(one), keep(width), keep(hn::Add(width, one)));
}

// The last vector comes first: it may write past the end of the upper row, into the lower one.
void PairByPixels(const Pair& p) {
  const int64_t N = static_cast<int64_t>(hn::Lanes(D())), last = (p.windows - 1) / N * N;
  const bool whole = p.bottom && last + N <= p.windows && 2 * (last + N) <= p.columns;
  whole ? ByPixels<true>(p, last) : ByPixels<false>(p, last);
  for (int64_t i = 0; i < last; i += N) p.bottom ? ByPixels<true>(p, i) : ByPixels<false>(p, i);
}

template <typename T>
void PairByIndex(const Pair& p) {
  const int64_t N = static_cast<int64_t>(hn::Lanes(D())), last = (p.windows - 1) / N * N;
  ByIndex<T>(p, last);
  for (int64_t i = 0; i < last; i += N) ByIndex<T>(p, i);
}

class PairTask {
 public:
  explicit PairTask(const PoolingBackward& call) : call_(call), g_(call.problem.geometry), writer_(call.stream) {
    plain_ = call.activation.is_identity() && call.dy.has_f32_rows();
  }

  void Plane(int64_t sample, int64_t channel, Span rows);
  void Finish() { writer_.Finish(); }

 private:
  void Windows(int64_t sample, int64_t channel, int64_t y, int64_t first, Pair* p);
  void WindowsByIndex(const void* plane, int64_t wy, int64_t wx, Pair* p);

  const PoolingBackward& call_;
  const PoolingGeometry& g_;
  bool plain_;  // dy is g
  LineWriter<float> writer_;
  alignas(64) float row_[2][kPairColumns + 2 * LineWriter<float>::kLine];
  float pixels_[2][kPairColumns], gradients_[kChunk];
  uint64_t index_[kChunk];
  GradientScratch& scratch_ = call_.scratch->gradient;
};

// Rows y and y + 1 of a plane, in runs of kPairColumns: straight into the writer where dx is packed, else by row_.
void PairTask::Plane(int64_t sample, int64_t channel, Span rows) {
  void* dx = call_.dx.at(sample, channel);
  const int64_t width = g_.x.in, chunk = std::min(width, kPairColumns);
  const bool packed = call_.dx.is_packed(width) && !call_.accumulate && chunk == width;
  Pair p;
  p.width = width;
  float* run = nullptr;  // of packed rows: the rest of what is reserved
  int64_t reserved = 0;
  for (int64_t y = rows.begin; y < rows.end; y += 2) {
    const int64_t height = std::min<int64_t>(2, rows.end - y);
    for (int64_t first = 0; first < width; first += chunk) {
      p.columns = std::min(chunk, width - first);
      const bool below = y / 2 >= g_.y.out;  // rows that no window covers
      p.windows = below ? 0 : std::max<int64_t>(0, std::min(p.columns + 1, 2 * g_.x.out - first) / 2);
      if (packed && reserved == 0) {  // as many pairs of rows as fit, at least one
        const int64_t together = std::min(rows.end - y, std::max<int64_t>(height, kRunFloats / (2 * width) * 2));
        reserved = together * width;
        run = writer_.Reserve(static_cast<float*>(dx) + y * width, static_cast<size_t>(reserved));
      }
      for (int64_t r = 0; r < 2; ++r) p.to[r] = r >= height ? nullptr : packed ? run + r * width : row_[r];
      for (int64_t r = 0; r < height && 2 * p.windows < p.columns; ++r) {  // what no window covers
        std::fill(p.to[r] + 2 * p.windows, p.to[r] + p.columns, 0.0f);
      }
      if (p.windows > 0) Windows(sample, channel, y, first, &p);
      if (packed) {
        run += height * width;
        reserved -= height * width;
        writer_.Commit(static_cast<size_t>(height * width));
        continue;
      }
      for (int64_t r = 0; r < height; ++r) {
        store_pixels(call_.dx, dx, first, y + r, p.columns, row_[r], call_.accumulate);
      }
    }
  }
}

// The windows whose first pixels are (first, y), (first + 2, y), ...
void PairTask::Windows(int64_t sample, int64_t channel, int64_t y, int64_t first, Pair* p) {
  const int64_t wx = first / 2, wy = y / 2;
  p->g = gradients_;
  if (plain_)
    p->g = static_cast<const float*>(call_.dy.at(sample, channel)) + wy * call_.dy.row + wx;
  else
    pooling_gradient(call_, sample, channel, wx, wy, p->windows, gradients_, &scratch_);
  if (call_.index.data) return WindowsByIndex(call_.index.at(sample, channel), wy, wx, p);
  const void* x = call_.x.at(sample, channel);
  p->top = load_pixels(call_.x, x, first, y, p->columns, pixels_[0]);
  p->bottom = y + 1 < g_.y.in ? load_pixels(call_.x, x, first, y + 1, p->columns, pixels_[1]) : nullptr;
  PairByPixels(*p);
}

void PairTask::WindowsByIndex(const void* plane, int64_t wy, int64_t wx, Pair* p) {
  const IndexPlanes& index = call_.index;
  p->origin = 2 * (wy * p->width + wx);
  if (index.column != 1) {
    for (int64_t i = 0; i < p->windows; ++i) index_[i] = index.load(plane, wx + i, wy);
    p->index = index_;
    return PairByIndex<uint64_t>(*p);
  }
  p->index = static_cast<const char*>(plane) + (wy * index.row + wx) * (index.wide ? 8 : 4);
  index.wide ? PairByIndex<uint64_t>(*p) : PairByIndex<uint32_t>(*p);
}

}  // namespace

void PairPlanes(const PoolingBackward& call, Range planes, Span rows) {
  PairTask task(call);
  PlaneNumber at(planes.begin, call.problem.channels);
  for (size_t p = planes.begin; p < planes.end; ++p, at.next()) task.Plane(at.sample, at.channel, rows);
  task.Finish();
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

// Windows that tile the image; a single one has stride 1 by then.
bool accepts_max_2x2(const PoolingBackward& call) noexcept {
  const auto tiles = [](const PoolingAxis& a) {
    return a.kernel == 2 && a.dilation == 1 && a.pad == 0 && (a.stride == 2 || a.out == 1) && 2 * a.out <= a.in + 1;
  };
  return call.is_max() && (!call.has_index() || call.index_in_windows) && tiles(call.problem.geometry.x) &&
         tiles(call.problem.geometry.y);
}
void pooling_backward_max_2x2(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(PairPlanes)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
