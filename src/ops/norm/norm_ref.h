// Norms and clipping in plain double loops over a dense array, size[0] fastest.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bnns::ref {

// The slice that element i of a shape belongs to: its coordinates on the axes that are not reduced, first one fastest.
inline size_t slice_of(const std::vector<size_t>& size, uint32_t axes, size_t i) {
  size_t slice = 0, step = 1;
  for (size_t k = 0; k < size.size(); ++k) {
    const size_t coordinate = i % size[k];
    i /= size[k];
    if (axes >> k & 1) continue;
    slice += coordinate * step;
    step *= size[k];
  }
  return slice;
}

inline size_t slice_count(const std::vector<size_t>& size, uint32_t axes) {
  size_t count = 1;
  for (size_t k = 0; k < size.size(); ++k) count *= axes >> k & 1 ? 1 : size[k];
  return count;
}

inline std::vector<double> norms(const std::vector<size_t>& size, uint32_t axes, const std::vector<double>& x) {
  std::vector<double> y(slice_count(size, axes), 0);
  for (size_t i = 0; i < x.size(); ++i) y[slice_of(size, axes, i)] += x[i] * x[i];
  for (double& value : y) value = std::sqrt(value);
  return y;
}

inline std::vector<double> norms_backward(const std::vector<size_t>& size, uint32_t axes, const std::vector<double>& x,
                                          const std::vector<double>& y, const std::vector<double>& dy) {
  std::vector<double> dx(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t s = slice_of(size, axes, i);
    dx[i] = y[s] == 0 ? 0 : dy[s] * x[i] / y[s];
  }
  return dx;
}

inline std::vector<double> clip_by_norm(const std::vector<size_t>& size, uint32_t axes, const std::vector<double>& x,
                                        double max_norm) {
  const std::vector<double> norm = norms(size, axes, x);
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double of_slice = norm[slice_of(size, axes, i)];
    y[i] = of_slice > max_norm ? x[i] * max_norm / of_slice : x[i];
  }
  return y;
}

}  // namespace bnns::ref
