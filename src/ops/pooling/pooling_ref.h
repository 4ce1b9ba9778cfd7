// The reference: double precision, plain loops, its own index arithmetic. Shares nothing with the kernels.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace bnns::ref {

enum class Pool { max, average_include, average_exclude, l2 };

struct PoolShape {
  long C = 1, H = 1, W = 1, OH = 1, OW = 1;  // large image, small image
  long kw = 1, kh = 1, sx = 1, sy = 1, dx = 1, dy = 1;
  long left = 0, right = 0, top = 0, bottom = 0;

  size_t large() const { return size_t(C * H * W); }
  size_t small() const { return size_t(C * OH * OW); }
};

// Calls f(input element within the plane) for each real pixel of window (oy, ox), in raster order.
template <class F>
void for_each_pixel(const PoolShape& s, long oy, long ox, F&& f) {
  for (long ky = 0; ky < s.kh; ++ky) {
    const long iy = oy * s.sy + ky * s.dy - s.top;
    if (iy < 0) continue;
    if (iy >= s.H) break;
    for (long kx = 0; kx < s.kw; ++kx) {
      const long ix = ox * s.sx + kx * s.dx - s.left;
      if (ix < 0) continue;
      if (ix >= s.W) break;
      f(size_t(iy * s.W + ix));
    }
  }
}

struct Pooled {
  std::vector<double> y, count, magnitude;  // magnitude: sum of |x| (of x^2 for l2) over the window
  std::vector<size_t> index;
};

inline Pooled pool_forward(Pool function, const PoolShape& s, size_t N, const std::vector<double>& x) {
  Pooled r;
  const size_t planes = N * size_t(s.C), in = size_t(s.H * s.W), out = size_t(s.OH * s.OW);
  r.y.resize(planes * out), r.count.resize(planes * out), r.magnitude.resize(planes * out),
      r.index.resize(planes * out);
  for (size_t p = 0; p < planes; ++p) {
    for (long oy = 0; oy < s.OH; ++oy) {
      for (long ox = 0; ox < s.OW; ++ox) {
        const size_t o = p * out + size_t(oy * s.OW + ox);
        double best = 0, sum = 0, squares = 0, magnitude = 0;
        size_t where = 0, n = 0;
        for_each_pixel(s, oy, ox, [&](size_t i) {
          const double v = x[p * in + i];
          if (n == 0 || v > best || (std::isnan(v) && !std::isnan(best))) best = v, where = i;
          sum += v, squares += v * v, magnitude += std::fabs(v), ++n;
        });
        r.index[o] = where;
        switch (function) {
          case Pool::max:
            r.y[o] = best;
            break;
          case Pool::average_include:
            r.y[o] = sum / double(s.kw * s.kh), r.count[o] = double(s.kw * s.kh);
            break;
          case Pool::average_exclude:
            r.y[o] = n ? sum / double(n) : 0, r.count[o] = double(n);
            break;
          case Pool::l2:
            r.y[o] = std::sqrt(squares);
            break;
        }
        r.magnitude[o] = function == Pool::l2 ? squares : magnitude;
      }
    }
  }
  return r;
}

// dx for the upstream gradient g; magnitude gets the sum of |terms| of each element.
inline std::vector<double> pool_backward(Pool function, const PoolShape& s, size_t N, const std::vector<double>& x,
                                         const std::vector<double>& g, std::vector<double>* magnitude = nullptr) {
  const Pooled f = pool_forward(function, s, N, x);
  const size_t planes = N * size_t(s.C), in = size_t(s.H * s.W), out = size_t(s.OH * s.OW);
  std::vector<double> dx(planes * in, 0);
  if (magnitude) magnitude->assign(planes * in, 0);
  for (size_t p = 0; p < planes; ++p) {
    for (long oy = 0; oy < s.OH; ++oy) {
      for (long ox = 0; ox < s.OW; ++ox) {
        const size_t o = p * out + size_t(oy * s.OW + ox);
        for_each_pixel(s, oy, ox, [&](size_t i) {
          double term = 0;
          if (function == Pool::max)
            term = i == f.index[o] ? g[o] : 0;
          else if (function == Pool::l2)
            term = f.y[o] == 0 ? 0 : g[o] * x[p * in + i] / f.y[o];
          else
            term = g[o] / f.count[o];
          dx[p * in + i] += term;
          if (magnitude) (*magnitude)[p * in + i] += std::fabs(term);
        });
      }
    }
  }
  return dx;
}

// u = 0, then u[index(i)] = x(i) in raster order; and its gradient.
inline std::vector<double> unmax_forward(const PoolShape& s, size_t N, const std::vector<double>& x,
                                         const std::vector<size_t>& index) {
  const size_t planes = N * size_t(s.C), in = size_t(s.H * s.W), out = size_t(s.OH * s.OW);
  std::vector<double> u(planes * in, 0);
  for (size_t p = 0; p < planes; ++p) {
    for (size_t i = 0; i < out; ++i) u[p * in + index[p * out + i]] = x[p * out + i];
  }
  return u;
}
inline std::vector<double> unmax_backward(const PoolShape& s, size_t N, const std::vector<double>& g,
                                          const std::vector<size_t>& index) {
  const size_t planes = N * size_t(s.C), in = size_t(s.H * s.W), out = size_t(s.OH * s.OW);
  std::vector<double> dx(planes * out);
  for (size_t p = 0; p < planes; ++p) {
    for (size_t i = 0; i < out; ++i) dx[p * out + i] = g[p * in + index[p * out + i]];
  }
  return dx;
}

}  // namespace bnns::ref
