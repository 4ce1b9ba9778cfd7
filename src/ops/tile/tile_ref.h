// Tiling in plain loops: dense arrays, size[0] fastest.
#pragma once

#include <cstddef>
#include <vector>

namespace bnns::ref {

// The input element that output element o repeats.
inline size_t tile_source(const std::vector<size_t>& in, const std::vector<size_t>& out, size_t o) {
  size_t result = 0, step = 1;
  for (size_t k = 0; k < in.size(); ++k) {
    result += o % out[k] % in[k] * step;
    o /= out[k];
    step *= in[k];
  }
  return result;
}

inline std::vector<double> tile(const std::vector<size_t>& in, const std::vector<size_t>& out,
                                const std::vector<double>& x) {
  size_t count = 1;
  for (size_t n : out) count *= n;
  std::vector<double> y(count);
  for (size_t o = 0; o < count; ++o) y[o] = x[tile_source(in, out, o)];
  return y;
}

inline std::vector<double> tile_backward(const std::vector<size_t>& in, const std::vector<size_t>& out,
                                         const std::vector<double>& dy) {
  size_t count = 1;
  for (size_t n : in) count *= n;
  std::vector<double> dx(count, 0);
  for (size_t o = 0; o < dy.size(); ++o) dx[tile_source(in, out, o)] += dy[o];
  return dx;
}

}  // namespace bnns::ref
