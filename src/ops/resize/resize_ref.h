// Resizing in plain loops: dense arrays, size[0] fastest; the interpolation matrix of every axis is written out in
// full.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace bnns::ref {

struct Resize {
  std::vector<size_t> in, out;
  bool linear = false, align_corners = false;
};

// weight of input i in output o, on one axis
inline double resize_weight(const Resize& r, size_t axis, size_t o, size_t i) {
  const double n = double(r.in[axis]), m = double(r.out[axis]);
  if (r.in[axis] == r.out[axis]) return o == i;
  if (!r.linear) return o * r.in[axis] / r.out[axis] == i;
  double at;
  if (r.align_corners) {
    at = m == 1 ? 0 : double(o) * (n - 1) / (m - 1);
  } else {
    at = std::min(std::max((double(o) + 0.5) * n / m - 0.5, 0.0), n - 1);
  }
  return std::max(0.0, 1 - std::fabs(at - double(i)));  // a hat around each input
}

inline std::vector<double> resize_matrix_product(const Resize& r, const std::vector<double>& v, bool transposed) {
  size_t in = 1, out = 1;
  for (size_t n : r.in) in *= n;
  for (size_t n : r.out) out *= n;
  std::vector<double> result(transposed ? in : out, 0);
  for (size_t o = 0; o < out; ++o) {
    for (size_t i = 0; i < in; ++i) {
      double weight = 1;
      for (size_t k = 0, ro = o, ri = i; k < r.in.size() && weight != 0; ++k) {
        weight *= resize_weight(r, k, ro % r.out[k], ri % r.in[k]);
        ro /= r.out[k], ri /= r.in[k];
      }
      if (transposed) {
        result[i] += weight * v[o];
      } else {
        result[o] += weight * v[i];
      }
    }
  }
  return result;
}

inline std::vector<double> resize(const Resize& r, const std::vector<double>& x) {
  return resize_matrix_product(r, x, false);
}
inline std::vector<double> resize_backward(const Resize& r, const std::vector<double>& dy) {
  return resize_matrix_product(r, dy, true);
}

}  // namespace bnns::ref
