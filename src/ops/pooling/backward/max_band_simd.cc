// Gradient of Max: every window adds g to the pixel of its maximum, one row of windows after the other.
//
// A band of rows of dx lies in L1, zeroed as it is opened. Window rows are done from top to bottom; a row of pixels
// that no later window reaches is final and leaves for memory, once, as whole cache lines. The additions are scalar:
// one load, one addition and one store a window, where comparing every pixel with the maxima of all windows over it
// takes 9 comparisons and additions of vectors for 3 x 3. Neighbours that overlap often have the same maximum, and an
// addition would wait for the one before: each row takes every m-th window first, then the next, m windows being side
// by side.

#include <algorithm>
#include <cstring>

#include "src/ops/pooling/common/kernels.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/ops/pooling/backward/max_band_simd.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/ops/pooling/common/windows-inl.h"
#include "src/simd/dispatch.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr int64_t kBandFloats = 6144;   // 24 KiB
constexpr int64_t kBandUsual = 2048;    // as much of it as is used where rows are not longer: a quarter of L1
constexpr int64_t kBandFull = 256;      // 1 KiB of final pixels leaves for memory: see simd/line_writer-inl.h
constexpr int64_t kGroupWindows = 512;  // windows whose maxima are looked for at once
constexpr int64_t kLine = 16;

// Pixels in the order of memory: those before `written` are in memory, those before `fill` are final, then `open` ones
// still receive additions.
class Band {
 public:
  explicit Band(bool stream) : stream_(stream) {}

  // The first open pixel belongs at `to`; NULL where the caller takes final pixels out before Commit.
  void Start(float* to) {
    Finish();
    to_ = to;
    fill_ = written_ = to ? static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % 64 / sizeof(float)) : 0;
    if (to) to_ -= fill_;  // a line begins here; its pixels before ours are not touched
  }
  // At least n open pixels; new ones are 0.
  HWY_INLINE float* Open(int64_t n) {
    if (n > open_) Grow(n);
    return buffer_ + fill_;
  }
  int64_t open() const { return open_; }
  // The first n open pixels are final.
  HWY_INLINE void Commit(int64_t n) {
    fill_ += n;
    open_ -= n;
  }
  // Brings the final pixels to memory and forgets the open ones.
  void Finish() {
    WriteLines();
    Copy(written_, fill_);
    to_ = nullptr;
    written_ = fill_ = open_ = 0;
  }

 private:
  HWY_INLINE void Grow(int64_t n) {
    const hn::ScalableTag<float> d;
    if (fill_ - written_ >= kBandFull) WriteLines();
    if (HWY_UNLIKELY(fill_ + n > kBandUsual)) Compact();
    for (int64_t i = fill_ + open_; i < fill_ + n; i += static_cast<int64_t>(hn::Lanes(d))) {
      hn::StoreU(hn::Zero(d), d, buffer_ + i);
    }
    open_ = n;
  }
  void Copy(int64_t begin, int64_t end) const {
    if (to_ && end > begin) std::memcpy(to_ + begin, buffer_ + begin, static_cast<size_t>(end - begin) * sizeof(float));
  }
  HWY_NOINLINE void WriteLines() {
    const hn::ScalableTag<float> d;
    const int64_t end = fill_ / kLine * kLine, N = static_cast<int64_t>(hn::Lanes(d));
    if (end <= written_) return;
    const int64_t begin = (written_ + kLine - 1) / kLine * kLine;
    Copy(written_, begin);
    if (to_ && stream_) {
      for (int64_t i = begin; i < end; i += N) hn::Stream(hn::Load(d, buffer_ + i), d, to_ + i);
    } else if (to_) {
      for (int64_t i = begin; i < end; i += N) hn::Store(hn::Load(d, buffer_ + i), d, to_ + i);
    }
    written_ = end;
  }
  // Moves what is not yet in memory to the front.
  HWY_NOINLINE void Compact() {
    WriteLines();
    const int64_t gone = written_ / kLine * kLine;
    std::memmove(buffer_, buffer_ + gone, static_cast<size_t>(fill_ - gone + open_) * sizeof(float));
    written_ -= gone;
    fill_ -= gone;
    if (to_) to_ += gone;
  }

  float* to_ = nullptr;  // where buffer_[0] belongs; the beginning of a cache line
  int64_t written_ = 0, fill_ = 0, open_ = 0;
  bool stream_;
  alignas(64) float buffer_[kBandFloats + 2 * kLine];
};

// band[origin + i * stride + offsets[i]] += g[i], every `passes`-th i at a time. Functions of their own, so that the
// loop has the registers to itself.
HWY_NOINLINE void AddAtOffsets(float* HWY_RESTRICT band, const float* HWY_RESTRICT g,
                               const int32_t* HWY_RESTRICT offsets, int64_t n, int64_t stride, int64_t passes) {
  for (int64_t first = 0; first < passes; ++first) {
    float* at = band + first * stride;
    for (int64_t i = first; i < n; i += passes, at += passes * stride) at[offsets[i]] += g[i];
  }
}
// band[indices[i] - from] += g[i]
template <typename T>
HWY_NOINLINE void AddAtIndices(float* HWY_RESTRICT band, const float* HWY_RESTRICT g, const T* HWY_RESTRICT indices,
                               int64_t n, int64_t from, int64_t passes) {
  for (int64_t first = 0; first < passes; ++first) {
    for (int64_t i = first; i < n; i += passes) band[static_cast<int64_t>(indices[i]) - from] += g[i];
  }
}
// band[position(i)] += g[i] where that is in [0, high): at the edges of a band, and where windows may have no pixel
// (-1).
template <class Position>
void AddWithin(float* band, const float* g, int64_t n, int64_t high, int64_t passes, Position position) {
  for (int64_t first = 0; first < passes; ++first) {
    for (int64_t i = first; i < n; i += passes) {
      const int64_t at = position(i);
      if (at >= 0 && at < high) band[at] += g[i];
    }
  }
}

class BandTask {
 public:
  explicit BandTask(const PoolingBackward& call) : call_(call), g_(call.problem.geometry), band_(call.stream) {
    if (!call.index.data) windows_ = pooling_windows(PoolingFold::arg_max, g_);
    packed_ = call.dx.is_packed(g_.x.in) && !call.accumulate;
    passes_ = std::min<int64_t>(4, g_.x.overlap());
    chunk_ = std::min(g_.x.out, kChunk);
    group_ = chunk_ == g_.x.out ? kGroupWindows / chunk_ : 1;
  }

  void Plane(int64_t sample, int64_t channel, Span rows) {
    sample_ = sample;
    channel_ = channel;
    rows_ = rows;
    dx_ = call_.dx.at(sample, channel);
    float* to = packed_ ? static_cast<float*>(dx_) + rows.begin * g_.x.in : nullptr;
    if (to == nullptr || to != next_) band_.Start(to);  // planes that follow each other are one run
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
        for (int64_t k = 0; k < n; ++k)
          store_pixels(call_.dx, dx_, 0, done_ + k, width, row + k * width, call_.accumulate);
      }
      band_.Commit(n * width);
      done_ += n;
    }
  }

  void AddWindows(Span rows, Span columns) {
    const int64_t width = g_.x.in;
    if (!call_.index.data) FindMaxima(rows, columns);
    const Span filled = g_.x.windows_inside(columns);  // the others have no pixel, and no gradient
    for (int64_t wy = rows.begin; wy < rows.end; ++wy) {
      const int64_t top = g_.y.start(wy), bottom = top + g_.y.reach() + 1;
      if (columns.begin == 0) FinishRows(std::clamp(top, rows_.begin, rows_.end));
      if (bottom <= done_ || top >= rows_.end || filled.empty()) continue;  // of the padding, or of another band
      float* band = band_.Open((std::min(bottom, rows_.end) - done_) * width);
      const float* gradients = Gradients(wy, columns) + (filled.begin - columns.begin);
      // Dilation may leave a window between the pixels; then, and at the edges of a band, every position is looked at.
      const bool own_rows = (top >= rows_.begin || rows_.begin == 0) && (bottom <= rows_.end || rows_.end == g_.y.in);
      const bool plain = own_rows && HasPixels(g_.x, filled) && HasPixels(g_.y, {wy, wy + 1});
      const int64_t high = (rows_.end - done_) * width, n = filled.size();
      if (call_.index.data) {
        AddByIndex(wy, filled, gradients, band, plain, high);
        continue;
      }
      const int64_t origin = g_.origin(filled.begin, wy) - done_ * width, stride = g_.x.stride;
      const int32_t* offsets = scratch_.offset + (wy - rows.begin) * columns.size() + (filled.begin - columns.begin);
      if (HWY_LIKELY(plain)) {
        AddAtOffsets(band + origin, gradients, offsets, n, stride, passes_);
      } else {
        AddWithin(band, gradients, n, high, passes_,
                  [=](int64_t i) { return offsets[i] == kNoPixel ? int64_t{-1} : origin + i * stride + offsets[i]; });
      }
    }
  }

  // Whether each of some windows that reach into the image has a tap there: its first one, or any without dilation.
  static bool HasPixels(const PoolingAxis& axis, Span windows) {
    return axis.dilation == 1 || (axis.start(windows.begin) >= 0 && axis.start(windows.end - 1) < axis.in);
  }

  void FindMaxima(Span rows, Span columns) {
    pooling_fold(windows_,
                 {PoolingFold::arg_max, &g_, whole_plane(g_, call_.x, call_.x.at(sample_, channel_)), rows, columns,
                  scratch_.value, scratch_.offset, columns.size()},
                 scratch_.pixels);
  }

  const float* Gradients(int64_t wy, Span columns) {
    if (call_.activation.is_identity() && call_.dy.has_f32_rows()) {
      return static_cast<const float*>(call_.dy.at(sample_, channel_)) + wy * call_.dy.row + columns.begin;
    }
    pooling_gradient(call_, sample_, channel_, columns.begin, wy, columns.size(), gradients_, &scratch_);
    return gradients_;
  }

  void AddByIndex(int64_t wy, Span columns, const float* gradients, float* band, bool plain, int64_t high) {
    const IndexPlanes& index = call_.index;
    const void* plane = index.at(sample_, channel_);
    const int64_t first = wy * index.row + columns.begin * index.column, from = done_ * g_.x.in;
    if (HWY_LIKELY(plain && index.column == 1)) {
      if (index.wide)
        AddAtIndices(band, gradients, static_cast<const uint64_t*>(plane) + first, columns.size(), from, passes_);
      else
        AddAtIndices(band, gradients, static_cast<const uint32_t*>(plane) + first, columns.size(), from, passes_);
      return;
    }
    AddWithin(band, gradients, columns.size(), high, passes_, [&](int64_t i) {
      const bool empty = g_.y.taps(wy).empty() || g_.x.taps(columns.begin + i).empty();
      return empty ? int64_t{-1} : static_cast<int64_t>(index.load(plane, columns.begin + i, wy)) - from;
    });
  }

  const PoolingBackward& call_;
  const PoolingGeometry& g_;
  WindowsFunction windows_ = nullptr;
  bool packed_;
  int64_t passes_;         // over a row of windows
  int64_t chunk_, group_;  // windows of a row, and rows, that are done at once
  int64_t sample_ = 0, channel_ = 0;
  Span rows_;
  int64_t done_ = 0;  // the first row that is not final
  void* dx_ = nullptr;
  float* next_ = nullptr;  // where the next plane would follow
  Band band_;
  float gradients_[kChunk];
  GradientScratch& scratch_ = call_.scratch->gradient;
};

}  // namespace

void BandPlanes(const PoolingBackward& call, Range planes, Span rows) {
  BandTask task(call);
  PlaneNumber at(planes.begin, call.problem.channels);
  for (size_t p = planes.begin; p < planes.end; ++p, at.next()) {
    task.Plane(at.sample, at.channel, rows);
  }
  task.Finish();
  if (call.stream) hwy::FlushStream();
}

// The rows under a row of windows fit the band; indices are in rows of their windows.
bool AcceptsMaxBand(const PoolingBackward& call) {
  const PoolingGeometry& g = call.problem.geometry;
  return call.is_max() && (!call.has_index() || call.index_in_rows) &&
         std::min(g.y.reach() + 1, g.y.in) <= (kBandFloats - 2 * kLine) / g.x.in;
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns {

bool accepts_max_band(const PoolingBackward& call) noexcept {
  return BNNS_DISPATCH(AcceptsMaxBand)(call);
}
void pooling_backward_max_band(const PoolingBackward& call, Range planes, Span rows) noexcept {
  BNNS_DISPATCH(BandPlanes)(call, planes, rows);
}

}  // namespace bnns
#endif  // HWY_ONCE
