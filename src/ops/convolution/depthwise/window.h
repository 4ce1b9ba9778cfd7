// Depthwise 3x3 windows on planes: what the maps and the weight gradient of convolution/depthwise/tile.h have in
// common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "src/core/parallel.h"
#include "src/ops/convolution/depthwise/rows.h"
#include "src/ops/convolution/depthwise/tile.h"

namespace bnns {

// Three neighbouring taps from coordinate `first` of pixel 0 on; kernel position of tap j is kernel + j * kernel_step.
struct WindowAxis {
  ptrdiff_t first = 0, kernel = 0, kernel_step = 1;
  size_t used = 0;  // coordinates that are read: [0, used)
};

inline bool window_axis(const PatchAxis& a, WindowAxis* w) {
  if (a.taps != 3 || (a.tap != 1 && a.tap != -1) || a.step > 2 || a.target_step != 1) return false;
  const auto kernel = static_cast<ptrdiff_t>(a.kernel_first), step = static_cast<ptrdiff_t>(a.kernel_step);
  w->first = a.tap > 0 ? a.offset : a.offset - 2;
  w->kernel = a.tap > 0 ? kernel : kernel + 2 * step;
  w->kernel_step = a.tap > 0 ? step : -step;
  const ptrdiff_t high = static_cast<ptrdiff_t>(a.pixels - 1) * a.step + w->first + 3;
  w->used = std::min(a.extent, static_cast<size_t>(std::max<ptrdiff_t>(high, 0)));
  return true;
}

inline constexpr size_t kBandFloats = 64 * 1024;  // of source rows, or of target rows: 256 KB

// Target rows of a band: a plane, or as many as keep both sides within kBandFloats; whole parts for a sink.
inline size_t band_rows(size_t rows, size_t source_row, size_t target_row) {
  const size_t part = depthwise_sink_rows(target_row), most = kBandFloats / std::max(source_row, target_row);
  return most >= rows ? rows : std::min(rows, std::max(part, most / part * part));
}

// Rows [r0, r1) of a plane, the first `width` of each: in place, or dense in buffer (which has space for 2 rows more).
// Returns where row 0 would be.
inline const float* source_rows(const ImageSource& source, size_t n, size_t c, size_t r0, size_t r1, size_t width,
                                float* buffer, ptrdiff_t* stride) {
  if (source.plain()) {
    *stride = static_cast<ptrdiff_t>(source.tensor->stride[1]);
    return source.plain_at(n, c, 0);
  }
  *stride = static_cast<ptrdiff_t>(width);
  if (width == source.width() && source.tensor->stride[0] == 1 && source.tensor->stride[1] == width &&
      source.activation.is_identity() && r0 < r1) {
    return source.row(n, c, r0, 0, (r1 - r0) * width, buffer) - r0 * width;
  }
  float* to = buffer;
  for (size_t r = r0; r < r1; ++r, to += width) {
    const float* row = source.row(n, c, r, 0, width, buffer + (r1 - r0) * width);
    std::memcpy(to, row, width * sizeof(float));
  }
  return buffer - r0 * width;
}

// Rows of a plane, dense: in place or in buffer, which has space for twice as many values.
inline const float* image_rows(const ImageSource& source, size_t n, size_t c, const Range& rows, float* buffer) {
  const size_t width = source.width();
  const bool one_run =
      source.tensor->stride[0] == 1 && source.tensor->stride[1] == width &&
      (source.activation.is_identity() || (source.y_tensor->stride[0] == 1 && source.y_tensor->stride[1] == width));
  if (one_run) return source.row(n, c, rows.begin, 0, rows.size() * width, buffer);
  float* to = buffer;
  for (size_t r = rows.begin; r < rows.end; ++r, to += width) {
    const float* row = source.row(n, c, r, 0, width, to);
    if (row != to) std::memcpy(to, row, width * sizeof(float));
  }
  return buffer;
}

// Values of rows [u0, u1) to a plane of a target.
inline void store_rows(const ImageTarget& target, size_t n, size_t c, size_t u0, size_t u1, size_t width,
                       const float* values) {
  if (target.tensor->stride[0] == 1 && target.tensor->stride[1] == width) {
    return store_run(target, n, c, u0, 0, 1, values, (u1 - u0) * width);
  }
  for (size_t u = u0; u < u1; ++u, values += width) store_run(target, n, c, u, 0, 1, values, width);
}

// Where a band of targets is computed, and what happens to it then.
class BandTarget {
 public:
  BandTarget(const ImageTarget& target, size_t width)
      : target_(target), width_(width), direct_(target.in_place() && target.tensor->stride[1] == width) {}

  bool direct() const { return direct_; }
  size_t buffer(size_t rows) const { return direct_ ? 0 : round_up(rows * width_, 16); }
  float* at(size_t n, size_t c, size_t u0, float* buffer) const { return direct_ ? target_.at(n, c, u0) : buffer; }
  // Where row u0 of a plane was computed at `values`.
  void finish(size_t n, size_t c, size_t u0, size_t u1, float* values) const {
    if (direct_ && !target_.sink && target_.activation.is_identity()) return;
    const size_t count = (u1 - u0) * width_;
    if (!target_.activation.is_identity()) activation_forward(target_.activation, values, values, count);
    if (target_.sink) {
      target_.sink->take(target_.sink->context,
                         {n, n + 1, c, 1, u0 * width_, count, values, count, target_.tensor->stride[2]});
    }
    if (direct_ || target_.only_sink()) return;
    store_rows(target_, n, c, u0, u1, width_, values);
  }

 private:
  const ImageTarget& target_;
  size_t width_;
  bool direct_;
};

inline size_t threads_for_planes(size_t threads, const ConvolutionMap& map, size_t batch) {
  const size_t pixels = map.y.large * map.x.large + map.y.small * map.x.small;
  return threads_for(threads, batch * map.groups, batch * map.groups * pixels * sizeof(float));
}

// Whether the images of a batch pass the caches.
inline bool planes_are_far(const ConvolutionMap& map, size_t batch) {
  constexpr size_t kFarBytes = 4u << 20;
  return batch * map.groups * (map.y.large * map.x.large + map.y.small * map.x.small) * sizeof(float) >= kFarBytes;
}

// Rows [low, high) of a source, inside it.
inline Range rows_inside(ptrdiff_t low, ptrdiff_t high, size_t extent) {
  const auto end = static_cast<ptrdiff_t>(extent);
  low = std::clamp<ptrdiff_t>(low, 0, end);
  return {static_cast<size_t>(low), static_cast<size_t>(std::clamp<ptrdiff_t>(high, low, end))};
}
inline Range window_rows(const PatchAxis& y, const WindowAxis& w, size_t u0, size_t u1) {
  return rows_inside(static_cast<ptrdiff_t>(u0) * y.step + w.first,
                     static_cast<ptrdiff_t>(u1 - 1) * y.step + w.first + 3, y.extent);
}

inline DepthwiseWindow make_window(const PatchAxis& y, const WindowAxis& wy, const WindowAxis& wx,
                                   const ImageSource& source) {
  DepthwiseWindow window;
  window.plane_stride = source.tensor->stride[2];
  window.height = static_cast<ptrdiff_t>(y.extent), window.width = static_cast<ptrdiff_t>(wx.used);
  window.top = wy.first, window.left = wx.first, window.step = static_cast<int>(y.step);
  return window;
}

}  // namespace bnns
