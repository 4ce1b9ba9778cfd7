// Crop and resize in plain double loops: one image plane (row after row), one box.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "bnns/bnns.h"

namespace bnns::ref {

// Coordinate of sample i of n on the stretch from start to end.
inline double crop_point(BNNSLinearSamplingMode mode, double start, double end, size_t n, size_t i) {
  const double length = end - start, pixels = length + 1;
  double g = 0;
  if (mode == BNNSLinearSamplingDefault && n > 1) g = double(i) * (pixels - pixels / double(n)) / double(n - 1);
  if (mode == BNNSLinearSamplingAlignCorners) g = n > 1 ? double(i) * length / double(n - 1) : length / 2;
  if (mode == BNNSLinearSamplingUnalignCorners) g = (double(i) + 0.5) * pixels / double(n) - 0.5;
  if (mode == BNNSLinearSamplingStrictAlignCorners && n > 1) g = double(i) * length / double(n - 1);
  if (mode == BNNSLinearSamplingOffsetCorners) g = (double(i) + 0.5) * std::fmax(1, length) / double(n);
  const double low = std::fmin(0, length), high = std::fmax(0, length);
  return start + (g < low ? low : g > high ? high : g);
}

struct CropBox {
  double w0, h0, w1, h1;
};

// Calls f(output position, pixel, weight) for every pixel of every sample, f(output position, SIZE_MAX, 1) outside.
template <class F>
void crop_weights(BNNSLinearSamplingMode mode, const CropBox& box, size_t width, size_t height, size_t out_width,
                  size_t out_height, F&& f) {
  for (size_t j = 0; j < out_height; ++j) {
    for (size_t i = 0; i < out_width; ++i) {
      const double x = crop_point(mode, box.w0, box.w1, out_width, i),
                   y = crop_point(mode, box.h0, box.h1, out_height, j);
      const size_t at = j * out_width + i;
      if (!(x >= 0 && x <= double(width - 1) && y >= 0 && y <= double(height - 1))) {
        f(at, SIZE_MAX, 1.0);
        continue;
      }
      for (size_t v = 0; v < height; ++v) {
        for (size_t u = 0; u < width; ++u) {
          const double a = 1 - std::fabs(x - double(u)), b = 1 - std::fabs(y - double(v));
          if (a > 0 && b > 0) f(at, v * width + u, a * b);
        }
      }
    }
  }
}

}  // namespace bnns::ref
