// The arithmetic of one window, for host and device code alike: the machine without a GPU tests the lines that the GPU
// runs. One texel (four channels) at a time, f32, taps in row-major order, no contraction: both devices give the same
// bits for the same order.
#pragma once

#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps {

struct alignas(16) Texel {
  float v[4];
};

struct alignas(16) TexelIndex {
  int32_t v[4];
};

// Taps of one axis of a window that begins at coordinate `first`: which lie inside [0, size), and where one resolves
// to.
struct AxisTaps {
  int64_t first, dilation, size;
  int32_t kernel, begin, end;  // taps [begin, end) lie inside

  BNNS_HOST_DEVICE AxisTaps(int64_t first_tap, const PoolAxis& axis, int64_t image_size)
      : first(first_tap), dilation(axis.dilation), size(image_size), kernel(static_cast<int32_t>(axis.kernel)) {
    const int64_t k = axis.kernel, d = axis.dilation;
    int64_t b = first >= 0 ? 0 : (-first + d - 1) / d;
    int64_t e = first >= size ? 0 : (size - 1 - first) / d + 1;
    if (b > k) b = k;
    if (e > k) e = k;
    if (e < b) e = b;
    begin = static_cast<int32_t>(b), end = static_cast<int32_t>(e);
  }
  BNNS_HOST_DEVICE bool all_inside() const { return begin == 0 && end == kernel; }
  BNNS_HOST_DEVICE int64_t at(int32_t tap) const { return first + tap * dilation; }
  BNNS_HOST_DEVICE int64_t clamped(int32_t tap) const {
    const int64_t p = at(tap);
    return p < 0 ? 0 : p >= size ? size - 1 : p;
  }
};

// Average: the divisor of a window. Zero edge: all taps; clamp: taps inside the image grown by the zero padding.
BNNS_HOST_DEVICE int64_t divisor_extent(int64_t first, const PoolAxis& a, int64_t size, PoolEdge edge) {
  if (edge == PoolEdge::zero) return a.kernel;
  const int64_t low = first > -a.zero_pad ? first : -a.zero_pad;
  const int64_t high = first + a.kernel < size + a.zero_pad ? first + a.kernel : size + a.zero_pad;
  return high > low ? high - low : 0;
}

// Calls f(texel, y, x) for every tap inside the image, in row-major order; clamp: for every tap, where it resolves to.
template <class Read, class F>
BNNS_HOST_DEVICE void for_each_tap(const AxisTaps& ty, const AxisTaps& tx, bool clamp, Read&& read, F&& f) {
  const int32_t y0 = clamp ? 0 : ty.begin, y1 = clamp ? ty.kernel : ty.end;
  const int32_t x0 = clamp ? 0 : tx.begin, x1 = clamp ? tx.kernel : tx.end;
  for (int32_t j = y0; j < y1; ++j) {
    const int64_t y = clamp ? ty.clamped(j) : ty.at(j);
    for (int32_t i = x0; i < x1; ++i) {
      const int64_t x = clamp ? tx.clamped(i) : tx.at(i);
      f(read(y, x), y, x);
    }
  }
}

BNNS_HOST_DEVICE bool is_nan(float x) {
  return x != x;
}

// Max: NaN is ignored unless every tap is NaN (D16). With the zero edge, taps outside take part as 0.
template <class Read>
BNNS_HOST_DEVICE Texel max_window(const AxisTaps& ty, const AxisTaps& tx, PoolEdge edge, Read&& read) {
  Texel best{};
  bool none = true;
  for_each_tap(ty, tx, edge == PoolEdge::clamp, read, [&](const Texel& t, int64_t, int64_t) {
    for (int l = 0; l < 4; ++l) {
      if (none || t.v[l] > best.v[l] || is_nan(best.v[l])) best.v[l] = t.v[l];
    }
    none = false;
  });
  if (edge == PoolEdge::zero && !(ty.all_inside() && tx.all_inside())) {
    for (int l = 0; l < 4; ++l) {
      if (none || !(best.v[l] >= 0.0f)) best.v[l] = 0.0f;
    }
  }
  return best;
}

// The pixel (y * width + x) that takes a max window's gradient: the first maximum in row-major order; an in-image tap
// beats an equal zero outside (D8); -1 where an outside zero is greater than all (the gradient is lost).
template <class Read>
BNNS_HOST_DEVICE TexelIndex max_window_index(const AxisTaps& ty, const AxisTaps& tx, PoolEdge edge, int64_t width,
                                             Read&& read) {
  Texel best{};
  TexelIndex index;
  for (int l = 0; l < 4; ++l) index.v[l] = -1;
  for_each_tap(ty, tx, edge == PoolEdge::clamp, read, [&](const Texel& t, int64_t y, int64_t x) {
    for (int l = 0; l < 4; ++l) {
      if (index.v[l] < 0 || t.v[l] > best.v[l] || (is_nan(best.v[l]) && !is_nan(t.v[l]))) {
        best.v[l] = t.v[l];
        index.v[l] = static_cast<int32_t>(y * width + x);
      }
    }
  });
  if (edge == PoolEdge::zero && !(ty.all_inside() && tx.all_inside())) {
    for (int l = 0; l < 4; ++l) {
      if (index.v[l] >= 0 && (best.v[l] < 0.0f || is_nan(best.v[l]))) index.v[l] = -1;
    }
  }
  return index;
}

// The order in which a window's taps are added, of averages and norms: tap by tap in row-major order in the common
// windows, which kernels of both devices reduce in one piece; else a sum per column first, so that windows next to each
// other can share it. Larger windows of one column or row are the same in both.
BNNS_HOST_DEVICE bool adds_columns(const PoolAxis& x, const PoolAxis& y) {
  const bool two = x.kernel == 2 && x.stride == 2, three = x.kernel == 3 && x.stride <= 2;
  return !(y.kernel == x.kernel && y.stride == x.stride && (two || three));
}

// The sum of f(tap) over the taps inside; clamp: over all.
template <class Read, class F>
BNNS_HOST_DEVICE Texel sum_of_taps(const AxisTaps& ty, const AxisTaps& tx, bool clamp, bool columns, Read&& read,
                                   F&& f) {
  Texel sum = {{0, 0, 0, 0}};
  if (!columns) {
    for_each_tap(ty, tx, clamp, read, [&](const Texel& t, int64_t, int64_t) {
      for (int l = 0; l < 4; ++l) sum.v[l] += f(t.v[l]);
    });
    return sum;
  }
  const int32_t y0 = clamp ? 0 : ty.begin, y1 = clamp ? ty.kernel : ty.end;
  const int32_t x0 = clamp ? 0 : tx.begin, x1 = clamp ? tx.kernel : tx.end;
  for (int32_t i = x0; i < x1; ++i) {
    Texel column = {{0, 0, 0, 0}};
    for (int32_t j = y0; j < y1; ++j) {
      const Texel t = read(clamp ? ty.clamped(j) : ty.at(j), clamp ? tx.clamped(i) : tx.at(i));
      for (int l = 0; l < 4; ++l) column.v[l] += f(t.v[l]);
    }
    for (int l = 0; l < 4; ++l) sum.v[l] += column.v[l];
  }
  return sum;
}

template <class Read>
BNNS_HOST_DEVICE Texel sum_window(const AxisTaps& ty, const AxisTaps& tx, bool columns, Read&& read) {
  return sum_of_taps(ty, tx, false, columns, read, [](float v) { return v; });
}
template <class Read>
BNNS_HOST_DEVICE Texel square_sum_window(const AxisTaps& ty, const AxisTaps& tx, PoolEdge edge, bool columns,
                                         Read&& read) {
  return sum_of_taps(ty, tx, edge == PoolEdge::clamp, columns, read, [](float v) { return v * v; });
}

// Windows i of [0, count) that reach source pixel p of an axis: [first, last]. With the clamp edge the outermost pixels
// also belong to every window that reaches beyond them.
struct WindowRange {
  int64_t first, last;
};
BNNS_HOST_DEVICE int64_t floor_div(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b < 0 ? q - 1 : q;
}
BNNS_HOST_DEVICE WindowRange windows_of(int64_t p, const PoolAxis& a, int64_t extent, int64_t count, int64_t size,
                                        PoolEdge edge) {
  const int64_t before = extent / 2, after = extent - 1 - before;
  WindowRange r{-floor_div(-(p - a.first_centre - after), a.stride), floor_div(p - a.first_centre + before, a.stride)};
  if (edge == PoolEdge::clamp && p == 0) r.first = 0;
  if (edge == PoolEdge::clamp && p == size - 1) r.last = count - 1;
  if (r.first < 0) r.first = 0;
  if (r.last > count - 1) r.last = count - 1;
  return r;
}

// How many taps of the window that begins at `first` resolve to pixel p.
BNNS_HOST_DEVICE int64_t taps_on(int64_t p, int64_t first, const PoolAxis& a, int64_t extent, int64_t size,
                                 PoolEdge edge) {
  int64_t count = p >= first && p < first + extent && (p - first) % a.dilation == 0 ? 1 : 0;
  if (edge == PoolEdge::zero) return count;
  const AxisTaps taps(first, a, size);
  if (p == 0) count += first < 0 ? (taps.begin) : 0;
  if (p == size - 1) count += a.kernel - (first >= size ? 0 : taps.end);
  return count;
}

}  // namespace bnns::mps
