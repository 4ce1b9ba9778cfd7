// Gradient of Max: every window adds g to the pixel of its maximum, in raster order of windows.
//
// A band of rows of dx lies in L1, zeroed as it is opened. Window rows are done from top to bottom; a row of pixels that
// no later window reaches is final and leaves for memory, once, as whole cache lines. The additions themselves are scalar:
// 16 of them take about as long as two vector loads of the row they hit, while comparing every pixel with the
// maximum of every window that covers it takes 9 comparisons per 16 windows and tap row (measured, 3 x 3: 2 times
// slower).

#include <algorithm>
#include <cstring>

#include "src/ops/pooling/pooling_kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/pooling_band_simd.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/pooling_windows-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr int64_t kBandFloats = 6144;     // 24 KiB
constexpr int64_t kBandFull = 2048;       // leave for memory from here on, so that the band stays in L1
constexpr int64_t kGroupWindows = 1024;   // windows whose maxima are looked for at once
constexpr int64_t kLine = 16;

// Pixels in the order of memory: [head, fill) are final, then `open` ones still receive additions.
class Band {
 public:
  explicit Band(bool stream) : stream_(stream) {}

  // The first open pixel belongs at `to`; NULL where pixels are taken out by the caller (first()) before Commit.
  void Start(float* to) {
    Finish();
    to_ = to;
    head_ = fill_ = to ? static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % 64 / sizeof(float)) : 0;
    if (to) to_ -= head_;   // a line begins here; its pixels before head_ are not ours
  }
  // At least n open pixels; new ones are 0.
  HWY_INLINE float* Open(int64_t n) {
    if (n > open_) Grow(n);
    return buffer_ + fill_;
  }
  float* first() { return buffer_ + fill_; }
  int64_t open() const { return open_; }
  // The first n open pixels are final.
  HWY_INLINE void Commit(int64_t n) {
    fill_ += n;
    open_ -= n;
  }
  // Brings the final pixels to memory and forgets the open ones.
  void Finish() {
    Flush();
    if (to_ && fill_ > head_) std::memcpy(to_ + head_, buffer_ + head_, static_cast<size_t>(fill_ - head_) * sizeof(float));
    to_ = nullptr;
    head_ = fill_ = open_ = 0;
  }

 private:
  HWY_INLINE void Grow(int64_t n) {
    const hn::ScalableTag<float> d;
    if (fill_ >= kBandFull || fill_ + n > kBandFloats) Flush();
    for (int64_t i = fill_ + open_; i < fill_ + n; i += static_cast<int64_t>(hn::Lanes(d))) {
      hn::StoreU(hn::Zero(d), d, buffer_ + i);
    }
    open_ = n;
  }
  HWY_NOINLINE void Flush() {
    const hn::ScalableTag<float> d;
    const int64_t lines = fill_ / kLine * kLine, N = static_cast<int64_t>(hn::Lanes(d));
    if (lines == 0) return;
    int64_t i = 0;
    if (to_ && head_ != 0) {
      std::memcpy(to_ + head_, buffer_ + head_, static_cast<size_t>(kLine - head_) * sizeof(float));
      i = kLine;
    }
    if (to_ && stream_) {
      for (; i < lines; i += N) hn::Stream(hn::Load(d, buffer_ + i), d, to_ + i);
    } else if (to_) {
      for (; i < lines; i += N) hn::Store(hn::Load(d, buffer_ + i), d, to_ + i);
    }
    head_ = 0;
    std::memmove(buffer_, buffer_ + lines, static_cast<size_t>(fill_ - lines + open_) * sizeof(float));
    fill_ -= lines;
    if (to_) to_ += lines;
  }

  float* to_ = nullptr;
  int64_t head_ = 0, fill_ = 0, open_ = 0;
  bool stream_;
  alignas(64) float buffer_[kBandFloats + 2 * kLine];
};

// Pixels of the band that may be hit: [low, high), counted from the band's first row; all of them where `all`.
struct Limits {
  bool all;
  int64_t low, high;
};

// band[position(i)] += g[i]
template <class Position>
HWY_INLINE void AddAt(float* band, const float* g, int64_t n, const Limits& limits, Position position) {
  if (HWY_LIKELY(limits.all)) {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = position(i);
      if (HWY_LIKELY(at >= 0)) band[at] += g[i];
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = position(i);
      if (at >= limits.low && at < limits.high) band[at] += g[i];
    }
  }
}

class BandTask {
 public:
  explicit BandTask(const PoolingBackward& call) : call_(call), g_(call.problem.geometry), band_(call.stream) {
    if (!call.index.data && call.x.has_f32_rows()) windows_ = ChooseWindows(PoolingFold::arg_max, g_);
    packed_ = call.dx.is_packed(g_.x.in) && !call.accumulate;
    chunk_ = std::min(g_.x.out, kChunk);
    group_ = chunk_ == g_.x.out ? kGroupWindows / chunk_ : 1;
  }

  void Plane(int64_t sample, int64_t channel, Span rows) {
    sample_ = sample;
    channel_ = channel;
    rows_ = rows;
    dx_ = call_.dx.at(sample, channel);
    float* to = packed_ ? static_cast<float*>(dx_) + rows.begin * g_.x.in : nullptr;
    if (to == nullptr || to != next_) band_.Start(to);   // planes that follow each other are one run
    done_ = rows.begin;
    const Span all{g_.y.windows(rows.begin).begin, g_.y.windows(rows.end - 1).end};
    for (int64_t wy = all.begin; wy < all.end; wy += group_) {
      const Span some{wy, std::min(all.end, wy + group_)};
      for (int64_t wx = 0; wx < g_.x.out; wx += chunk_) AddWindows(some, {wx, std::min(g_.x.out, wx + chunk_)});
    }
    FinishRows(rows.end);
    next_ = packed_ ? static_cast<float*>(dx_) + rows.end * g_.x.in : nullptr;
  }
  void Finish() { band_.Finish(); }

 private:
  // Rows before y are final.
  void FinishRows(int64_t y) {
    const int64_t width = g_.x.in;
    while (done_ < y) {
      const int64_t n = std::min(y - done_, std::max<int64_t>(1, band_.open() / width));
      const float* row = band_.Open(n * width);
      if (!packed_) {
        for (int64_t k = 0; k < n; ++k) store_pixels(call_.dx, dx_, 0, done_ + k, width, row + k * width, call_.accumulate);
      }
      band_.Commit(n * width);
      done_ += n;
    }
  }

  void AddWindows(Span rows, Span columns) {
    const int64_t n = columns.size(), width = g_.x.in;
    if (!call_.index.data) FindMaxima(rows, columns);
    for (int64_t wy = rows.begin; wy < rows.end; ++wy) {
      const int64_t top = g_.y.start(wy), bottom = top + g_.y.reach() + 1;
      if (columns.begin == 0) FinishRows(std::clamp(top, rows_.begin, rows_.end));
      if (bottom <= done_ || top >= rows_.end) continue;   // an empty window, or one of another band
      float* band = band_.Open((std::min(bottom, rows_.end) - done_) * width);
      const float* gradients = Gradients(wy, columns);
      Limits limits{true, 0, (rows_.end - done_) * width};
      limits.all = (top >= rows_.begin || rows_.begin == 0) && (bottom <= rows_.end || rows_.end == g_.y.in);
      if (call_.index.data) {
        AddByIndex(wy, columns, gradients, band, limits);
        continue;
      }
      // A window without a pixel has offset -1; its position is below 0 only if we make it so.
      const int64_t origin = g_.origin(columns.begin, wy) - done_ * width, stride = g_.x.stride;
      const int32_t* offsets = offsets_ + (wy - rows.begin) * n;
      AddAt(band, gradients, n, limits, [=](int64_t i) {
        return offsets[i] == kNoPixel ? int64_t{-1} : origin + i * stride + offsets[i];
      });
    }
  }

  void FindMaxima(Span rows, Span columns) {
    const void* x = call_.x.at(sample_, channel_);
    if (windows_) {
      windows_({&g_, {x, call_.x.type, 1, call_.x.row, {0, g_.x.in}, {0, g_.y.in}, 0}, rows, columns, values_, offsets_,
                columns.size()});
    } else {
      pooling_windows_of(PoolingFold::arg_max, g_, call_.x, x, rows, columns, values_, offsets_, columns.size(),
                         room_.stage);
    }
  }

  const float* Gradients(int64_t wy, Span columns) {
    if (call_.activation.is_identity() && call_.dy.has_f32_rows()) {
      return static_cast<const float*>(call_.dy.at(sample_, channel_)) + wy * call_.dy.row + columns.begin;
    }
    pooling_gradient(call_, sample_, channel_, columns.begin, wy, columns.size(), gradients_, &room_);
    return gradients_;
  }

  void AddByIndex(int64_t wy, Span columns, const float* gradients, float* band, const Limits& limits) {
    const Span filled = g_.x.windows_inside(columns);   // the others have no gradient, wherever their index points
    if (filled.empty()) return;
    const float* g = gradients + (filled.begin - columns.begin);
    const IndexPlanes& index = call_.index;
    const void* plane = index.at(sample_, channel_);
    const int64_t first = wy * index.row + filled.begin * index.column, step = index.column, from = done_ * g_.x.in;
    if (index.wide) {
      const uint64_t* indices = static_cast<const uint64_t*>(plane) + first;
      AddAt(band, g, filled.size(), limits, [=](int64_t i) { return static_cast<int64_t>(indices[i * step]) - from; });
    } else {
      const uint32_t* indices = static_cast<const uint32_t*>(plane) + first;
      AddAt(band, g, filled.size(), limits, [=](int64_t i) { return static_cast<int64_t>(indices[i * step]) - from; });
    }
  }

  const PoolingBackward& call_;
  const PoolingGeometry& g_;
  WindowsFunction windows_ = nullptr;
  bool packed_;
  int64_t chunk_, group_;          // windows of a row, and rows, that are done at once
  int64_t sample_ = 0, channel_ = 0;
  Span rows_;
  int64_t done_ = 0;               // the first row that is not final
  void* dx_ = nullptr;
  float* next_ = nullptr;          // where the next plane would follow
  Band band_;
  alignas(64) float values_[kGroupWindows + kWindowSlack];
  alignas(64) int32_t offsets_[kGroupWindows + kWindowSlack];
  float gradients_[kChunk];
  GradientRoom room_;
};

}  // namespace

void BandPlanes(const PoolingBackward& call, Range planes, Span rows) {
  BandTask task(call);
  for (size_t p = planes.begin; p < planes.end; ++p) {
    task.Plane(static_cast<int64_t>(p) / call.problem.channels, static_cast<int64_t>(p) % call.problem.channels, rows);
  }
  task.Finish();
  if (call.stream) hwy::FlushStream();
}

bool BandsFit(const PoolingGeometry& g, bool by_index) {
  if (by_index && (g.x.dilation != 1 || g.y.dilation != 1)) return false;   // empty windows are not at the edges alone
  return std::min(g.y.reach() + 1, g.y.in) <= (kBandFloats - kLine) / g.x.in;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool pooling_backward_bands(const PoolingGeometry& geometry, bool by_index) noexcept {
  return BNNS_DISPATCH(BandsFit)(geometry, by_index);
}
void pooling_backward_band(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(BandPlanes)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
