// Permute in plain loops: dense arrays, size[0] fastest.
#pragma once

#include <cstddef>
#include <vector>

namespace bnns::ref {

inline size_t position(const std::vector<size_t>& size, const std::vector<size_t>& at) {
  size_t result = 0, step = 1;
  for (size_t k = 0; k < size.size(); step *= size[k++]) result += at[k] * step;
  return result;
}

// Coordinate o_k of y is coordinate permutation[k] of x.
inline std::vector<double> permute(const std::vector<size_t>& size, const std::vector<size_t>& permutation,
                                   const std::vector<double>& x) {
  std::vector<size_t> out_size(size.size()), at(size.size(), 0), out_at(size.size());
  for (size_t k = 0; k < size.size(); ++k) out_size[k] = size[permutation[k]];
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t k = 0, rest = i; k < size.size(); rest /= size[k++]) at[k] = rest % size[k];
    for (size_t k = 0; k < size.size(); ++k) out_at[k] = at[permutation[k]];
    y[position(out_size, out_at)] = x[i];
  }
  return y;
}

inline std::vector<double> permute_backward(const std::vector<size_t>& size, const std::vector<size_t>& permutation,
                                            const std::vector<double>& dy) {
  std::vector<size_t> out_size(size.size()), inverse(size.size());
  for (size_t k = 0; k < size.size(); ++k) out_size[k] = size[permutation[k]], inverse[permutation[k]] = k;
  return permute(out_size, inverse, dy);
}

}  // namespace bnns::ref
