// Gradient of Average and L2Norm, gathered row by row of dx: no two tasks write one pixel, and each row is written once,
// complete.
//
// With c(w) what window w hands to each of its pixels (g / count for Average, g / norm for L2Norm),
//   t(wx)  = sum over the window rows wy that reach the row, in order, of c(wy, wx)
//   dx(x)  = sum over the window columns wx that reach x, in order, of t(wx)          (L2Norm: times the pixel)
// A ring holds c of the window rows that reach the current rows of dx. All rows of the ring have zeros on both sides, so
// that windows that do not exist add nothing.

#include <algorithm>

#include "src/ops/pooling/pooling_kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/pooling_backward_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/pooling_tile.h"
#include "src/ops/pooling/pooling_windows-inl.h"
#include "src/ops/pooling/pooling_writer-inl.h"
#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// t at a place of the ring's rows: the sum of one or two rows of c. Longer sums are made in a row of their own.
template <int kRows>
struct Sums {
  const float* a;
  const float* b;
  HWY_INLINE V At(int64_t i) const {
    const D d;
    if constexpr (kRows == 1) return hn::LoadU(d, a + i);
    else return hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i));
  }
};

// Column stride 1: tap k of the window at place last + i + (taps - 1 - k) * step is column i.
template <int kTaps>
HWY_INLINE void Spread1(const float* last, int64_t taps, int64_t step, int64_t n, float* to) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d)), count = kTaps ? kTaps : taps;
  for (int64_t i = 0; i < n; i += N) {
    V sum = hn::LoadU(d, last + i);
    for (int64_t k = 1; k < count; ++k) sum = hn::Add(sum, hn::LoadU(d, last + i + k * step));
    hn::StoreU(sum, d, to + i);
  }
}

// Column stride 2: the taps on even columns begin at place `even`, those on odd columns at `odd`. The columns go to one row,
// or to `copies` rows that lie `pitch` apart: from right to left, since the last vector may go past the end of a row.
template <int kEven, int kOdd, int kRows>
HWY_INLINE void Spread2(const Sums<kRows>& t, int64_t even, int64_t odd, int64_t evens, int64_t odds, int64_t n, float* to,
                        int64_t copies, int64_t pitch) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d));
  evens = kEven >= 0 ? kEven : evens;
  odds = kOdd >= 0 ? kOdd : odds;
  for (int64_t i = (n - 1) / (2 * N) * N; i >= 0; i -= N) {
    V first = hn::Zero(d), second = hn::Zero(d);
    if (evens > 0) first = t.At(even + i);
    for (int64_t k = 1; k < evens; ++k) first = hn::Add(first, t.At(even + i + k));
    if (odds > 0) second = t.At(odd + i);
    for (int64_t k = 1; k < odds; ++k) second = hn::Add(second, t.At(odd + i + k));
    for (int64_t c = 0; c < copies; ++c) hn::StoreInterleaved2(first, second, d, to + 2 * i + c * pitch);
  }
}

// Memory of one task.
struct Workspace {
  alignas(64) float room[kTileFloats];   // the rows of GatherTile
  alignas(64) float row[2 * (kTileColumns + 2 * RowWriter<float>::kLine)];   // of dx, where it cannot go to the writer
  GradientRoom gradient;
};

class GatherTask {
 public:
  GatherTask(const PoolingBackward& call, const GatherTile& tile, Workspace* w);
  // dx of a plane's rows, columns tile.columns; to the writer if there is one.
  void Plane(int64_t sample, int64_t channel, Span rows, RowWriter<float>* writer);

 private:
  float* C(int64_t wy) { return w_.room + (wy & (tile_.ring - 1)) * tile_.pitch + tile_.left; }
  float* T() { return w_.room + tile_.ring * tile_.pitch + tile_.left; }
  float* Counts() { return T() + tile_.pitch; }

  void ComputeRows(int64_t begin, int64_t end);
  const float* Upstream(int64_t wy);
  void Zeros(int64_t n, float* to) const;
  void GatherRows(int64_t y, Span reach, float* to, int64_t copies, int64_t pitch);
  const float* SumRows(const float* const* rows, int64_t count);
  void TimesPixels(int64_t y, float* to);

  const PoolingBackward& call_;
  const PoolingGeometry& g_;
  const GatherTile& tile_;
  Workspace& w_;
  const bool is_l2_;
  WindowsFunction norms_ = nullptr;
  int64_t sample_ = 0, channel_ = 0;
  const void* x_ = nullptr;
};

GatherTask::GatherTask(const PoolingBackward& call, const GatherTile& tile, Workspace* w)
    : call_(call), g_(call.problem.geometry), tile_(tile), w_(*w),
      is_l2_(call.problem.function == PoolingFunction::l2_norm) {
  if (is_l2_ && call.x.has_f32_rows()) norms_ = ChooseWindows(PoolingFold::norm, g_);
  Zeros(tile.rows() * tile.pitch, w_.room);
  for (int64_t i = 0; !is_l2_ && i < tile_.windows.size() + kWindowSlack; ++i) {
    Counts()[i] = i < tile_.windows.size() ? static_cast<float>(g_.x.count(tile_.windows.begin + i)) : 1;
  }
}

void GatherTask::Zeros(int64_t n, float* to) const {
  const D d;
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(d))) hn::StoreU(hn::Zero(d), d, to + i);
}

void GatherTask::Plane(int64_t sample, int64_t channel, Span rows, RowWriter<float>* writer) {
  sample_ = sample;
  channel_ = channel;
  x_ = call_.x.data ? call_.x.at(sample, channel) : nullptr;
  void* dx = call_.dx.at(sample, channel);
  const int64_t n = tile_.columns.size();
  // Windows that do not overlap downwards give the same row to all their rows of pixels: two at a time.
  const bool twins = !is_l2_ && g_.x.stride == 2 && g_.y.overlap() == 1 && g_.y.dilation == 1 && g_.y.kernel > 1;
  int64_t computed = g_.y.windows(rows.begin).begin;   // the rows of windows before are in the ring, or not needed
  for (int64_t y = rows.begin; y < rows.end;) {
    const Span reach = g_.y.windows(y);
    if (reach.end > computed && tile_.windows.size() > 0) {
      computed = std::max(computed, reach.begin);
      // As many as the ring holds beside the rows that are still needed.
      const int64_t end = std::min({reach.begin + tile_.ring, g_.y.out, g_.y.windows(rows.end - 1).end});
      ComputeRows(computed, std::max(end, reach.end));
      computed = std::max(end, reach.end);
    }
    const int64_t copies = twins && y + 1 < rows.end && y + 1 - g_.y.start(reach.end - 1) < g_.y.kernel &&
                                   !reach.empty() && (!writer || call_.dx.row == n) ? 2 : 1;
    float* to = w_.row;
    int64_t pitch = kTileColumns + RowWriter<float>::kLine;
    if (writer) {
      to = writer->Reserve(static_cast<float*>(dx) + y * call_.dx.row + tile_.columns.begin, static_cast<size_t>(copies * n));
      pitch = n;
    }
    GatherRows(y, reach, to, copies, pitch);
    if (is_l2_) TimesPixels(y, to);
    for (int64_t c = 0; c < copies && !writer; ++c) {
      store_pixels(call_.dx, dx, tile_.columns.begin, y + c, n, to + c * pitch, call_.accumulate);
    }
    if (writer) writer->Commit(static_cast<size_t>(copies * n));
    y += copies;
  }
}

const float* GatherTask::Upstream(int64_t wy) {
  if (call_.activation.is_identity() && call_.dy.has_f32_rows()) {
    return static_cast<const float*>(call_.dy.at(sample_, channel_)) + wy * call_.dy.row + tile_.windows.begin;
  }
  float* g = w_.row;   // free here
  pooling_gradient(call_, sample_, channel_, tile_.windows.begin, wy, tile_.windows.size(), g, &w_.gradient);
  return g;
}

// Fills the ring rows of window rows [begin, end).
void GatherTask::ComputeRows(int64_t begin, int64_t end) {
  const D d;
  const int64_t n = tile_.windows.size();
  for (int64_t wy = begin, next; wy < end && is_l2_; wy = next) {   // the norms first, in runs that do not wrap
    next = std::min(end, (wy & ~(tile_.ring - 1)) + tile_.ring);
    if (norms_) {
      norms_({&g_, {x_, call_.x.type, 1, call_.x.row, {0, g_.x.in}, {0, g_.y.in}, 0}, {wy, next}, tile_.windows, C(wy),
              nullptr, tile_.pitch});
    } else {
      pooling_windows_of(PoolingFold::norm, g_, call_.x, x_, {wy, next}, tile_.windows, C(wy), nullptr, tile_.pitch,
                         w_.gradient.stage);
    }
  }
  for (int64_t wy = begin; wy < end; ++wy) {
    float* c = C(wy);
    const float* upstream = Upstream(wy);
    const auto quotient = [&](auto dd, V g, V by) HWY_ATTR {
      return hn::IfThenZeroElse(hn::Eq(by, hn::Zero(dd)), hn::Div(g, by));   // a window without pixels, or a norm of 0
    };
    if (is_l2_) {
      Transform2(upstream, c, c, static_cast<size_t>(n), quotient);
    } else {
      const V rows = hn::Set(d, static_cast<float>(g_.y.count(wy)));
      Transform2(upstream, Counts(), c, static_cast<size_t>(n),
                 [&](auto dd, V g, V columns) HWY_ATTR { return quotient(dd, g, hn::Mul(columns, rows)); });
    }
    hn::StoreU(hn::Zero(d), d, c + n);   // the norms' last vector may have gone past the row
  }
}

const float* GatherTask::SumRows(const float* const* rows, int64_t count) {
  const D d;
  const int64_t N = static_cast<int64_t>(hn::Lanes(d)), n = tile_.windows.size();
  float* t = T();
  for (int64_t i = 0; i < n; i += N) {
    V sum = hn::LoadU(d, rows[0] + i);
    for (int64_t j = 1; j < count; ++j) sum = hn::Add(sum, hn::LoadU(d, rows[j] + i));
    hn::StoreU(sum, d, t + i);
  }
  return t;
}

void GatherTask::GatherRows(int64_t y, Span reach, float* to, int64_t copies, int64_t pitch) {
  const int64_t n = tile_.columns.size(), kernel = g_.x.kernel;
  const float* rows[kTileOverlap];
  int64_t count = 0;
  for (int64_t wy = reach.begin; wy < reach.end && tile_.windows.size() > 0; ++wy) {
    if (g_.y.dilation == 1 || (y - g_.y.start(wy)) % g_.y.dilation == 0) rows[count++] = C(wy);
  }
  if (count == 0) {
    for (int64_t c = 0; c < copies; ++c) Zeros(n, to + c * pitch);
    return;
  }
  // Places are relative to window tile_.windows.begin; the largest tap on a column belongs to the first window.
  const int64_t base = tile_.columns.begin + g_.x.pad - tile_.windows.begin * g_.x.stride;
  if (g_.x.stride == 1) {
    const float* t = (count == 1 ? rows[0] : SumRows(rows, count)) + base - g_.x.reach();
    if (kernel == 3) Spread1<3>(t, kernel, g_.x.dilation, n, to);
    else Spread1<0>(t, kernel, g_.x.dilation, n, to);
    return;
  }
  // Tap k is on even columns of the tile if base - k is even; of each parity the largest tap comes first.
  const int64_t k_even = kernel - 1 - ((base - kernel + 1) & 1), k_odd = kernel - 1 - ((base - kernel) & 1);
  const int64_t evens = (k_even + 2) >> 1, odds = (k_odd + 2) >> 1;
  const int64_t even = (base - k_even) >> 1, odd = (base + 1 - k_odd) >> 1;
  if (count <= 2) {
    const Sums<1> one{rows[0], nullptr};
    const Sums<2> two{rows[0], rows[count - 1]};
    if (count == 1 && kernel == 2) Spread2<1, 1>(one, even, odd, evens, odds, n, to, copies, pitch);
    else if (kernel == 3 && count == 1 && evens == 2) Spread2<2, 1>(one, even, odd, evens, odds, n, to, copies, pitch);
    else if (kernel == 3 && count == 1) Spread2<1, 2>(one, even, odd, evens, odds, n, to, copies, pitch);
    else if (kernel == 3 && evens == 2) Spread2<2, 1>(two, even, odd, evens, odds, n, to, 1, 0);
    else if (kernel == 3) Spread2<1, 2>(two, even, odd, evens, odds, n, to, 1, 0);
    else if (count == 1) Spread2<-1, -1>(one, even, odd, evens, odds, n, to, copies, pitch);
    else Spread2<-1, -1>(two, even, odd, evens, odds, n, to, 1, 0);
    return;
  }
  Spread2<-1, -1>(Sums<1>{SumRows(rows, count), nullptr}, even, odd, evens, odds, n, to, 1, 0);
}

void GatherTask::TimesPixels(int64_t y, float* to) {
  const int64_t n = tile_.columns.size();
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t m = std::min(kChunk, n - i);
    const float* x = load_pixels(call_.x, x_, tile_.columns.begin + i, y, m, w_.gradient.value);
    Transform2(x, to + i, to + i, static_cast<size_t>(m), [](auto d, auto pixel, auto sum) HWY_ATTR {
      return hn::IfThenZeroElse(hn::Eq(sum, hn::Zero(d)), hn::Mul(pixel, sum));   // 0 also where the pixel is inf
    });
  }
}

}  // namespace

void GatherPlanes(const PoolingBackward& call, Range planes, Span rows) {
  const PoolingGeometry& g = call.problem.geometry;
  Workspace workspace;
  RowWriter<float> writer(call.stream);
  const bool direct = call.dx.has_f32_rows() && !call.accumulate;
  const GatherTile whole(g);
  for (int64_t first = 0; first < g.x.in; first += whole.columns.size()) {
    const GatherTile tile(whole, g, {first, std::min(g.x.in, first + whole.columns.size())});
    GatherTask task(call, tile, &workspace);
    int64_t sample = static_cast<int64_t>(planes.begin) / call.problem.channels;
    int64_t channel = static_cast<int64_t>(planes.begin) % call.problem.channels;
    for (size_t p = planes.begin; p < planes.end; ++p) {
      task.Plane(sample, channel, rows, direct ? &writer : nullptr);
      if (++channel == call.problem.channels) channel = 0, ++sample;
    }
  }
  writer.Finish();
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool pooling_backward_gathers(const PoolingGeometry& geometry) noexcept {
  return GatherTile::accepts(geometry);
}
void pooling_backward_gather(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(GatherPlanes)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
