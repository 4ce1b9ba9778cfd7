// TopK by sorting indices.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace bnns::ref {

// Indices of x, largest first, NaN before numbers, equals by index.
inline std::vector<size_t> order(const std::vector<double>& x) {
  std::vector<size_t> result(x.size());
  std::iota(result.begin(), result.end(), size_t{0});
  std::stable_sort(result.begin(), result.end(), [&](size_t a, size_t b) {
    if (std::isnan(x[a]) || std::isnan(x[b])) return std::isnan(x[a]) && !std::isnan(x[b]);
    return x[a] > x[b];
  });
  return result;
}

inline bool in_top_k(const std::vector<double>& x, size_t k, size_t index) {
  const double last = x[order(x)[k - 1]];
  if (std::isnan(x[index]) || std::isnan(last)) return std::isnan(x[index]);
  return x[index] >= last;
}

}  // namespace bnns::ref
