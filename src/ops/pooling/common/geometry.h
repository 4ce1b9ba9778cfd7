// Where the windows of a pooling lie, along one axis and in the plane.
//
// The large image has `in` pixels (the input of Max, Average and L2Norm, the output of UnMax), the small one `out`, one
// per window. Tap t of window o is pixel o * stride - pad + t * dilation. Everything else in this folder, forward and
// backward, asks PoolingAxis which taps are real and what an average divides by; nothing computes it a second time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace bnns {

inline constexpr int64_t floor_div(int64_t a, int64_t b) {  // b > 0
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}
inline constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return -floor_div(-a, b);
}

// Half-open; empty when end <= begin.
struct Span {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end > begin ? end - begin : 0; }
  bool empty() const { return end <= begin; }
};

struct PoolingAxis {
  int64_t in = 1, out = 1;
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t pad = 0;  // pixels of padding before pixel 0; what follows the last pixel needs no number
  // The pixels that an average counts: all of them when padding is included, [0, in) when it is not. Always a superset
  // of [0, in).
  Span counted = {INT64_MIN / 4, INT64_MAX / 4};

  int64_t start(int64_t window) const { return window * stride - pad; }
  int64_t reach() const { return (kernel - 1) * dilation; }  // from the first tap to the last

  // The taps of a window that lie on pixels of `pixels`: the one geometry function.
  Span taps_within(int64_t window, Span pixels) const {
    const int64_t first = start(window);
    const int64_t begin = first >= pixels.begin ? 0 : taps_over(pixels.begin - first);
    const int64_t end = first >= pixels.end ? 0 : std::min(kernel, taps_over(pixels.end - first));
    return {begin, std::max(begin, end)};
  }
  // The taps that touch the image.
  Span taps(int64_t window) const { return taps_within(window, {0, in}); }
  // How many taps of the window an average counts along this axis.
  int64_t count(int64_t window) const { return taps_within(window, counted).size(); }

  // The windows whose first and last taps enclose a pixel. With dilation a window in this range has a tap on the pixel
  // only if (pixel - start) is a multiple of it.
  Span windows(int64_t pixel) const {
    return {std::max<int64_t>(0, windows_over(pixel + pad - reach() + stride - 1)),
            std::min(out, windows_over(pixel + pad) + 1)};
  }
  // Those of a run of windows that reach into the image; without dilation they have a tap there.
  Span windows_inside(Span some) const {
    return {std::max(some.begin, windows_over(pad - reach() + stride - 1)),
            std::min(some.end, windows_over(in - 1 + pad) + 1)};
  }
  // The largest number of windows that share a pixel.
  int64_t overlap() const { return std::min(out, reach() / stride + 1); }

 private:
  // floor(pixels / stride). The usual strides need no division, which would take longer than a vector of windows.
  int64_t windows_over(int64_t pixels) const {
    return stride == 1 ? pixels : stride == 2 ? pixels >> 1 : floor_div(pixels, stride);
  }
  // How many taps start in a stretch of pixels. Without dilation, nearly always, no division.
  int64_t taps_over(int64_t pixels) const { return dilation == 1 ? pixels : ceil_div(pixels, dilation); }
};

struct PoolingGeometry {
  PoolingAxis x, y;

  // One window that is the whole image.
  bool is_global() const {
    return x.out == 1 && y.out == 1 && x.dilation == 1 && y.dilation == 1 && x.taps(0).size() == x.in &&
           y.taps(0).size() == y.in;
  }
  // Windows of 2 x 2 or 3 x 3 pixels with stride 2, each with a pixel in the image, at most one column and row of
  // padding before it: nearly all that networks have, and what the fastest kernels are for.
  bool is_small_stride_2() const {
    const auto fits = [this](const PoolingAxis& a) {
      return a.kernel == x.kernel && a.stride == 2 && a.dilation == 1 && a.pad >= 0 && a.pad <= x.kernel - 2 &&
             a.start(a.out - 1) < a.in;
    };
    return (x.kernel == 2 || x.kernel == 3) && fits(x) && fits(y);
  }
  // Windows of 3 x 3 pixels around every pixel, or all but the last ones.
  bool is_small_stride_1() const {
    const auto fits = [](const PoolingAxis& a) {
      return a.kernel == 3 && a.stride == 1 && a.dilation == 1 && a.pad == 1 && a.out <= a.in && a.in > 1;
    };
    return fits(x) && fits(y);
  }
  // Offset of tap (tx, ty) from the window's first tap, in pixels of a dense plane: how a window names its maximum.
  int64_t tap_offset(int64_t tx, int64_t ty) const { return ty * y.dilation * x.in + tx * x.dilation; }
  // Position of the window's first tap in a dense plane; negative in the padding.
  int64_t origin(int64_t wx, int64_t wy) const { return y.start(wy) * x.in + x.start(wx); }
};

}  // namespace bnns
