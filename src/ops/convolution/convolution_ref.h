// Reference convolution: the formulas of the specification as loops, in double. No code is shared with the kernels.
//
//   convolution   Y(n,o,y,x) = b(o) + sum W(o,i,ky,kx) X(n, g I/G + i, sy y + dy ky - pT, sx x + dx kx - pL)
//   transposed    Y(n, o, sy y + dy ky - pT, sx x + dx kx - pL) += W(o,i,ky,kx) X(n,i,y,x), and b(o) everywhere
#pragma once

#include <cstddef>
#include <vector>

namespace bnns::ref {

struct ConvolutionShape {
  bool transposed = false;
  size_t n = 1, i = 1, o = 1, groups = 1;
  size_t ih = 1, iw = 1, oh = 1, ow = 1;
  size_t kh = 1, kw = 1, sy = 1, sx = 1, dy = 1, dx = 1, top = 0, left = 0;

  size_t x_count() const { return n * i * ih * iw; }
  size_t y_count() const { return n * o * oh * ow; }
  size_t w_count() const { return o * (i / groups) * kh * kw; }
};

// Calls f(x index, w index, y index) for every product of the layer; all images and weights dense, W is (O, I/G, kh,
// kw).
template <class F>
void for_each_product(const ConvolutionShape& s, F&& f) {
  const size_t group_inputs = s.i / s.groups, group_outputs = s.o / s.groups;
  const size_t windows_y = s.transposed ? s.ih : s.oh, windows_x = s.transposed ? s.iw : s.ow;
  const size_t height = s.transposed ? s.oh : s.ih, width = s.transposed ? s.ow : s.iw;
  for (size_t n = 0; n < s.n; ++n) {
    for (size_t o = 0; o < s.o; ++o) {
      for (size_t k = 0; k < group_inputs; ++k) {
        const size_t i = o / group_outputs * group_inputs + k;
        for (size_t v = 0; v < windows_y; ++v) {
          for (size_t u = 0; u < windows_x; ++u) {
            for (size_t ky = 0; ky < s.kh; ++ky) {
              for (size_t kx = 0; kx < s.kw; ++kx) {
                const long row = long(s.sy * v + s.dy * ky) - long(s.top);
                const long column = long(s.sx * u + s.dx * kx) - long(s.left);
                if (row < 0 || row >= long(height) || column < 0 || column >= long(width)) continue;
                const size_t w = ((o * group_inputs + k) * s.kh + ky) * s.kw + kx;
                const size_t large = size_t(row) * width + size_t(column), small = v * windows_x + u;
                if (s.transposed) {
                  f((n * s.i + i) * s.ih * s.iw + small, w, (n * s.o + o) * s.oh * s.ow + large);
                } else {
                  f((n * s.i + i) * s.ih * s.iw + large, w, (n * s.o + o) * s.oh * s.ow + small);
                }
              }
            }
          }
        }
      }
    }
  }
}

inline std::vector<double> convolution_forward(const ConvolutionShape& s, const std::vector<double>& x,
                                               const std::vector<double>& w, const std::vector<double>& b) {
  std::vector<double> y(s.y_count());
  for (size_t j = 0; j < y.size(); ++j) y[j] = b.empty() ? 0 : b[j / (s.oh * s.ow) % s.o];
  for_each_product(s, [&](size_t xi, size_t wi, size_t yi) { y[yi] += w[wi] * x[xi]; });
  return y;
}

struct ConvolutionGradients {
  std::vector<double> dx, dw, db;
};

inline ConvolutionGradients convolution_backward(const ConvolutionShape& s, const std::vector<double>& x,
                                                 const std::vector<double>& w, const std::vector<double>& g) {
  ConvolutionGradients r{std::vector<double>(s.x_count()), std::vector<double>(s.w_count()), std::vector<double>(s.o)};
  for_each_product(s, [&](size_t xi, size_t wi, size_t yi) {
    r.dx[xi] += w[wi] * g[yi];
    r.dw[wi] += x[xi] * g[yi];
  });
  for (size_t j = 0; j < g.size(); ++j) r.db[j / (s.oh * s.ow) % s.o] += g[j];
  return r;
}

}  // namespace bnns::ref
