// The reference: double precision, plain loops straight from the formulas, shares nothing with the kernels but the
// struct of an encode.
//
// clang-format off
//   window at centre c   taps c - E/2 + j d, j = 0..k-1, E = (k - 1) d + 1, on both axes
//   read outside         0 (zero), the nearest pixel (clamp)
//   max                  largest read; gradient to the first pixel inside that holds it, none if an outside 0 is larger
//   average              sum over taps inside / N; N = kx ky (zero), pixels of the window inside the image grown by the
//                        zero padding (clamp)
//   L2                   sqrt of the sum of squares of reads; gradient in / out per tap, 0 where out is 0
// clang-format on
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::ref {

// Images in double: element (n, c, y, x) of an N x C x H x W array.
struct PoolImage {
  int64_t N = 1, C = 1, H = 1, W = 1;
  std::vector<double> v;

  PoolImage() = default;
  PoolImage(int64_t n, int64_t c, int64_t h, int64_t w) : N(n), C(c), H(h), W(w), v(size_t(n * c * h * w)) {}
  double& at(int64_t n, int64_t c, int64_t y, int64_t x) { return v[size_t(((n * C + c) * H + y) * W + x)]; }
  double at(int64_t n, int64_t c, int64_t y, int64_t x) const { return v[size_t(((n * C + c) * H + y) * W + x)]; }
};

struct PoolWindow {
  mps::PoolKind kind = mps::PoolKind::max;
  mps::PoolEdge edge = mps::PoolEdge::zero;
  int64_t kx = 1, ky = 1, dx = 1, dy = 1;  // kernel, dilation
  int64_t zx = 0, zy = 0;                  // zero padding of the average

  // Calls f(y, x, inside) for every tap in row-major order; with clamp y and x lie in the image, inside stays false for
  // taps that were moved there.
  template <class F>
  void for_each_tap(const PoolImage& image, int64_t cy, int64_t cx, F&& f) const {
    const int64_t top = cy - ((ky - 1) * dy + 1) / 2, left = cx - ((kx - 1) * dx + 1) / 2;
    for (int64_t j = 0; j < ky; ++j) {
      for (int64_t i = 0; i < kx; ++i) {
        int64_t y = top + j * dy, x = left + i * dx;
        const bool inside = y >= 0 && y < image.H && x >= 0 && x < image.W;
        if (edge == mps::PoolEdge::clamp) {
          y = std::clamp<int64_t>(y, 0, image.H - 1);
          x = std::clamp<int64_t>(x, 0, image.W - 1);
        }
        f(y, x, inside);
      }
    }
  }

  double divisor(const PoolImage& image, int64_t cy, int64_t cx) const {
    if (edge == mps::PoolEdge::zero) return double(kx * ky);
    const int64_t top = cy - ky / 2, left = cx - kx / 2;
    const int64_t nx = std::min(left + kx, image.W + zx) - std::max(left, -zx);
    const int64_t ny = std::min(top + ky, image.H + zy) - std::max(top, -zy);
    return double(std::max<int64_t>(0, nx)) * double(std::max<int64_t>(0, ny));
  }

  double forward(const PoolImage& image, int64_t n, int64_t c, int64_t cy, int64_t cx) const {
    double sum = 0, largest = 0;
    bool first = true;
    for_each_tap(image, cy, cx, [&](int64_t y, int64_t x, bool inside) {
      const bool real = inside || edge == mps::PoolEdge::clamp;
      const double value = real ? image.at(n, c, y, x) : 0.0;
      if (first || value > largest || std::isnan(largest)) largest = value;
      first = false;
      if (kind == mps::PoolKind::average && inside) sum += value;
      if (kind == mps::PoolKind::l2_norm) sum += value * value;
    });
    if (kind == mps::PoolKind::max) return largest;
    if (kind == mps::PoolKind::l2_norm) return std::sqrt(sum);
    const double count = divisor(image, cy, cx);
    return count > 0 ? sum / count : 0.0;
  }

  // Adds g d out / d in to every pixel of `result`, which has the size of `image`.
  void backward(const PoolImage& image, int64_t n, int64_t c, int64_t cy, int64_t cx, double g,
                PoolImage* result) const {
    const double out = kind == mps::PoolKind::average ? 0.0 : forward(image, n, c, cy, cx);
    const double count = divisor(image, cy, cx);
    bool taken = false;
    for_each_tap(image, cy, cx, [&](int64_t y, int64_t x, bool inside) {
      const bool real = inside || edge == mps::PoolEdge::clamp;
      if (!real) return;
      double& slot = result->at(n, c, y, x);
      switch (kind) {
        case mps::PoolKind::max:
          if (!taken && (image.at(n, c, y, x) == out || std::isnan(out))) {
            slot += g;
            taken = true;
          }
          return;
        case mps::PoolKind::average:
          if (inside && count > 0) slot += g / count;
          return;
        case mps::PoolKind::l2_norm:
          if (out > 0) slot += g * image.at(n, c, y, x) / out;
          return;
      }
    });
  }
};

inline PoolWindow window_of(const mps::PoolEncode& e) {
  return {e.kind, e.edge, e.x.kernel, e.y.kernel, e.x.dilation, e.y.dilation, e.x.zero_pad, e.y.zero_pad};
}

// What an encode at the seam does to its target.
inline void pool_forward(const mps::PoolEncode& e, const PoolImage& source, PoolImage* target) {
  for (int64_t n = 0; n < e.images; ++n) {
    for (int64_t c = 0; c < e.channels; ++c) {
      for (int64_t i = 0; i < e.height; ++i) {
        for (int64_t j = 0; j < e.width; ++j) {
          target->at(e.target_image + n, e.target_channel + c, e.target_y + i, e.target_x + j) =
              window_of(e).forward(source, e.source_image + n, e.source_channel + c, e.y.first_centre + e.y.stride * i,
                                   e.x.first_centre + e.x.stride * j);
        }
      }
    }
  }
}

inline void pool_backward(const mps::PoolEncode& e, const PoolImage& gradient, const PoolImage& source,
                          PoolImage* target) {
  PoolImage d(source.N, source.C, source.H, source.W);
  for (int64_t n = 0; n < e.images; ++n) {
    for (int64_t c = 0; c < e.channels; ++c) {
      const int64_t sn = e.source_image + n, sc = e.source_channel + c;
      for (int64_t i = 0; i < e.gradient_height; ++i) {
        for (int64_t j = 0; j < e.gradient_width; ++j) {
          const double g =
              gradient.at(e.gradient_image + n, e.gradient_channel + c, e.gradient_y + i, e.gradient_x + j);
          window_of(e).backward(source, sn, sc, e.y.first_centre + e.y.stride * i, e.x.first_centre + e.x.stride * j, g,
                                &d);
        }
      }
      for (int64_t i = 0; i < e.height; ++i) {
        for (int64_t j = 0; j < e.width; ++j) {
          const int64_t y = e.source_y + i, x = e.source_x + j;
          target->at(e.target_image + n, e.target_channel + c, e.target_y + i, e.target_x + j) =
              y < source.H && x < source.W ? d.at(sn, sc, y, x) : 0.0;
        }
      }
    }
  }
}

}  // namespace bnns::ref
