// S of README.md, the size of the sums that Winograd's algorithm makes, for the tests of its error bound.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include "src/ops/convolution/convolution_ref.h"
#include "src/ops/convolution/winograd/kernels.h"

namespace bnns::testing {

using ref::ConvolutionShape;

// The 1-D transforms of F(tile, taps), absolute values, in double.
struct AbsoluteTransforms {
  size_t tile;
  double b[6][6], g[6][5] = {}, a[4][6] = {};
  explicit AbsoluteTransforms(size_t taps) : tile(winograd_tile(taps)) {
    const double p = winograd_a(taps), q = kWinogradB, s = p * p + q * q, m = p * p * q * q;
    const double bt[6][6] = {{m, 0, s, 0, 1, 0},
                             {0, p * q * q, q * q, p, 1, 0},
                             {0, p * q * q, q * q, p, 1, 0},
                             {0, q * p * p, p * p, q, 1, 0},
                             {0, q * p * p, p * p, q, 1, 0},
                             {0, m, 0, s, 0, 1}};
    std::memcpy(b, bt, sizeof b);
    const double points[5] = {0, p, p, q, q}, np = 2 * p * p * (q * q - p * p), nq = 2 * q * q * (q * q - p * p);
    const double over[5] = {m, np, np, nq, nq};
    for (size_t k = 0; k < 5; ++k) {
      for (size_t j = 0; j < taps; ++j) g[k][j] = std::pow(points[k], double(j)) / over[k];
      for (size_t i = 0; i < tile; ++i) a[i][k] = std::pow(points[k], double(i));
    }
    g[5][taps - 1] = a[tile - 1][5] = 1;
  }
};

// What one product of the algorithm can add to the result, all signs the same: S of README.md, for every target
// pixel of a "down" map (stride 1, pad p). x is (n, i, h, w), w is (o, i, r, r); both absolute.
inline std::vector<double> spread(const ConvolutionShape& s, const std::vector<double>& x,
                                  const std::vector<double>& w) {
  const AbsoluteTransforms f(s.kh);
  const size_t taps = s.kh, all = taps * taps, tile = f.tile;
  std::vector<double> u(s.o * s.i * 36), y(s.y_count());
  for (size_t k = 0; k < s.o * s.i; ++k) {
    for (size_t i = 0; i < 6; ++i) {
      for (size_t j = 0; j < 6; ++j) {
        for (size_t r = 0; r < all; ++r) u[k * 36 + i * 6 + j] += f.g[i][r / taps] * f.g[j][r % taps] * w[k * all + r];
      }
    }
  }
  std::vector<double> v(s.i * 36);
  for (size_t n = 0; n < s.n; ++n) {
    for (size_t ty = 0; ty < s.oh; ty += tile) {
      for (size_t tx = 0; tx < s.ow; tx += tile) {
        for (size_t c = 0; c < s.i; ++c) {
          double rows[6][6] = {}, d[6][6] = {};
          for (size_t r = 0; r < 36; ++r) {
            const size_t row = ty + r / 6 - s.top, column = tx + r % 6 - s.left;  // wraps: then too large
            if (row < s.ih && column < s.iw) d[r / 6][r % 6] = x[((n * s.i + c) * s.ih + row) * s.iw + column];
          }
          for (size_t i = 0; i < 6; ++i) {
            for (size_t r = 0; r < 36; ++r) rows[i][r % 6] += f.b[i][r / 6] * d[r / 6][r % 6];
          }
          for (size_t r = 0; r < 36; ++r) {
            v[c * 36 + r] = 0;
            for (size_t j = 0; j < 6; ++j) v[c * 36 + r] += f.b[r % 6][j] * rows[r / 6][j];
          }
        }
        for (size_t o = 0; o < s.o; ++o) {
          double m[36] = {};
          for (size_t c = 0; c < s.i; ++c) {
            for (size_t r = 0; r < 36; ++r) m[r] += u[(o * s.i + c) * 36 + r] * v[c * 36 + r];
          }
          for (size_t i = 0; i < tile && ty + i < s.oh; ++i) {
            for (size_t j = 0; j < tile && tx + j < s.ow; ++j) {
              double sum = 0;
              for (size_t r = 0; r < 36; ++r) sum += f.a[i][r / 6] * f.a[j][r % 6] * m[r];
              y[((n * s.o + o) * s.oh + ty + i) * s.ow + tx + j] = sum;
            }
          }
        }
      }
    }
  }
  return y;
}

// The same for dW of a convolution: |G'| (sum over tiles of |B'| |x| |B| * |A| |dy| |A'|) |G|.
inline std::vector<double> spread_weights(const ConvolutionShape& s, const std::vector<double>& x,
                                          const std::vector<double>& dy) {
  const AbsoluteTransforms f(s.kh);
  const size_t taps = s.kh, all = taps * taps, tile = f.tile;
  std::vector<double> m(s.o * s.i * 36), dw(s.w_count()), v(s.i * 36), z(s.o * 36);
  const auto at = [](const std::vector<double>& image, size_t plane, size_t h, size_t w, size_t row, size_t column) {
    return row < h && column < w ? image[(plane * h + row) * w + column] : 0.0;
  };
  for (size_t n = 0; n < s.n; ++n) {
    for (size_t ty = 0; ty < s.oh; ty += tile) {
      for (size_t tx = 0; tx < s.ow; tx += tile) {
        std::fill(v.begin(), v.end(), 0.0), std::fill(z.begin(), z.end(), 0.0);
        for (size_t k = 0; k < s.i * 36; ++k) {
          for (size_t r = 0; r < 36; ++r) {
            const double e = at(x, n * s.i + k / 36, s.ih, s.iw, ty + r / 6 - s.top, tx + r % 6 - s.left);
            v[k] += f.b[k % 36 / 6][r / 6] * f.b[k % 6][r % 6] * e;
          }
        }
        for (size_t k = 0; k < s.o * 36; ++k) {
          for (size_t r = 0; r < tile * tile; ++r) {
            const double e = at(dy, n * s.o + k / 36, s.oh, s.ow, ty + r / tile, tx + r % tile);
            z[k] += f.a[r / tile][k % 36 / 6] * f.a[r % tile][k % 6] * e;
          }
        }
        for (size_t k = 0; k < m.size(); ++k) m[k] += z[k / 36 / s.i * 36 + k % 36] * v[k % (s.i * 36)];
      }
    }
  }
  for (size_t k = 0; k < dw.size(); ++k) {
    for (size_t r = 0; r < 36; ++r) {
      dw[k] += f.g[r / 6][k % all / taps] * f.g[r % 6][k % taps] * m[k / all * 36 + r];
    }
  }
  return dw;
}

inline std::vector<double> absolute(const std::vector<float>& values) {
  std::vector<double> v(values.begin(), values.end());
  for (double& e : v) e = std::fabs(e);
  return v;
}

// dX of a stride-1 layer is a down map of dY with the channels of W exchanged and its taps flipped.
inline ConvolutionShape backward_shape(const ConvolutionShape& s) {
  ConvolutionShape t = s;
  t.i = s.o, t.ih = s.oh, t.iw = s.ow, t.o = s.i, t.oh = s.ih, t.ow = s.iw;
  t.top = s.kh - 1 - s.top, t.left = s.kw - 1 - s.left;
  return t;
}
inline std::vector<double> flipped(const ConvolutionShape& s, const std::vector<double>& w) {
  std::vector<double> result(w.size());
  const size_t taps = s.kh * s.kw;
  for (size_t j = 0; j < w.size(); ++j) {
    result[(j / taps % s.i * s.o + j / taps / s.i) * taps + j % taps] = w[j - j % taps + taps - 1 - j % taps];
  }
  return result;
}

// The large image of a map with a stride of 2 as four channels for each, and where weight j goes.
inline ConvolutionShape phased(const ConvolutionShape& s) {
  ConvolutionShape t = s;
  t.i = 4 * s.i, t.kh = (s.kh + 1) / 2, t.kw = (s.kw + 1) / 2, t.sy = t.sx = 1, t.top = t.left = 0;
  t.ih = s.oh + t.kh - 1, t.iw = s.ow + t.kw - 1;
  return t;
}
inline std::vector<double> phased_image(const ConvolutionShape& s, const std::vector<double>& x) {
  const ConvolutionShape t = phased(s);
  std::vector<double> result(t.x_count());
  for (size_t j = 0; j < result.size(); ++j) {
    const size_t plane = j / (t.ih * t.iw), row = 2 * (j / t.iw % t.ih) + plane % 4 / 2 - s.top;
    const size_t column = 2 * (j % t.iw) + plane % 2 - s.left;  // wraps: then too large
    if (row < s.ih && column < s.iw) result[j] = x[(plane / 4 * s.ih + row) * s.iw + column];
  }
  return result;
}
inline size_t phased_weight(const ConvolutionShape& s, size_t j) {
  const ConvolutionShape t = phased(s);
  const size_t ky = j / s.kw % s.kh, kx = j % s.kw, channel = 4 * (j / (s.kh * s.kw)) + ky % 2 * 2 + kx % 2;
  return (channel * t.kh + ky / 2) * t.kw + kx / 2;
}

// S of the up map from the side of the small image, for a stride of 1: |B| (|U| |A| |small| |A'|) |B'|, overlapping
// tiles added up. The large image has all pixels that tiles reach, `pad` not taken off.
inline std::vector<double> spread_scatter(const ConvolutionShape& s, const std::vector<double>& small,
                                          const std::vector<double>& w, size_t* height, size_t* width) {
  const AbsoluteTransforms f(s.kh);
  const size_t taps = s.kh, all = taps * taps, tile = f.tile;
  *height = s.oh + taps - 1, *width = s.ow + taps - 1;
  // The first tile has fewer pixels where they are no multiple.
  const size_t first_y = (s.oh - 1) % tile + 1, first_x = (s.ow - 1) % tile + 1;
  std::vector<double> u(s.o * s.i * 36), large(s.n * s.i * *height * *width), z(s.o * 36);
  for (size_t k = 0; k < u.size(); ++k) {
    for (size_t r = 0; r < all; ++r) u[k] += f.g[k % 36 / 6][r / taps] * f.g[k % 6][r % taps] * w[k / 36 * all + r];
  }
  for (size_t n = 0; n < s.n; ++n) {
    for (size_t ty = 0; ty < s.oh; ty += ty == 0 ? first_y : tile) {
      for (size_t tx = 0; tx < s.ow; tx += tx == 0 ? first_x : tile) {
        const size_t rows_there = ty == 0 ? first_y : tile, columns_there = tx == 0 ? first_x : tile;
        std::fill(z.begin(), z.end(), 0.0);
        for (size_t k = 0; k < z.size(); ++k) {
          for (size_t r = 0; r < tile * tile; ++r) {
            const size_t row = ty + r / tile, column = tx + r % tile;
            if (r / tile >= rows_there || r % tile >= columns_there) continue;
            z[k] += f.a[r / tile][k % 36 / 6] * f.a[r % tile][k % 6] *
                    small[((n * s.o + k / 36) * s.oh + row) * s.ow + column];
          }
        }
        for (size_t i = 0; i < s.i; ++i) {
          double m[36] = {}, rows[36] = {};
          for (size_t k = 0; k < s.o * 36; ++k) m[k % 36] += u[(k / 36 * s.i + i) * 36 + k % 36] * z[k];
          for (size_t r = 0; r < 216; ++r) rows[r / 6] += f.b[r % 6][r / 36] * m[r % 6 * 6 + r / 6 % 6];
          for (size_t r = 0; r < 216; ++r) {
            const size_t row = ty + r / 36, column = tx + r / 6 % 6;
            large[((n * s.i + i) * *height + row) * *width + column] +=
                f.b[r % 6][r / 6 % 6] * rows[r / 36 * 6 + r % 6];
          }
        }
      }
    }
  }
  return large;
}

// S for every element of Y, dX and dW of a layer; empty for passes that are not Winograd's.
struct Spreads {
  std::vector<double> y, dx, dw;
  size_t phases, tiles;  // tiles: of dW

  // All absolute.
  Spreads(const ConvolutionShape& s, const std::vector<double>& x, const std::vector<double>& w,
          const std::vector<double>& dy, bool is_down, bool up, bool scatter, bool gradient)
      : phases(s.sy * s.sx) {
    // The transposed layer runs the same maps the other way round.
    ConvolutionShape down = s;
    std::vector<double> down_w = w;
    const size_t taps = s.kh * s.kw;
    const auto exchanged = [&](size_t j) { return (j / taps % s.i * s.o + j / taps / s.i) * taps + j % taps; };
    if (s.transposed) {
      down.transposed = false, std::swap(down.i, down.o), std::swap(down.ih, down.oh), std::swap(down.iw, down.ow);
      for (size_t j = 0; j < w.size(); ++j) down_w[exchanged(j)] = w[j];
    }
    const auto &large = s.transposed ? dy : x, &small = s.transposed ? x : dy;
    auto &to_down = s.transposed ? dx : y, &to_up = s.transposed ? y : dx;
    const bool two = s.sy == 2;
    const ConvolutionShape plain = two ? phased(down) : down;
    const std::vector<double> plain_large = two ? phased_image(down, large) : large;
    std::vector<double> plain_w = down_w;
    if (two) {
      plain_w.assign(plain.w_count(), 0.0);
      for (size_t j = 0; j < down_w.size(); ++j) plain_w[phased_weight(down, j)] = down_w[j];
    }
    if (is_down) to_down = spread(plain, plain_large, plain_w);
    if (up) to_up = spread(backward_shape(down), small, flipped(down, down_w));
    if (scatter) {
      size_t height = 0, width = 0;
      const auto all = spread_scatter(plain, small, plain_w, &height, &width);
      to_up.resize(down.x_count());
      for (size_t j = 0; j < to_up.size(); ++j) {
        const size_t row = j / down.iw % down.ih + s.top, column = j % down.iw + s.left,
                     plane = j / (down.ih * down.iw);
        const size_t phase = row % s.sy * s.sx + column % s.sx;
        to_up[j] = all[((plane * phases + phase) * height + row / s.sy) * width + column / s.sx];
      }
    }
    const size_t tile = winograd_tile(plain.kh);
    tiles = s.n * ((plain.oh + tile - 1) / tile) * ((plain.ow + tile - 1) / tile);
    if (!gradient) return;
    const auto sums = spread_weights(plain, plain_large, small);
    dw.resize(w.size());
    for (size_t j = 0; j < w.size(); ++j) {
      const size_t k = s.transposed ? exchanged(j) : j;
      dw[j] = sums[two ? phased_weight(down, k) : k];
    }
  }
};

}  // namespace bnns::testing
