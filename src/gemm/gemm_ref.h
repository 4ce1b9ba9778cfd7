// The reference product: double precision, plain loops.
#pragma once

#include <cstddef>
#include <vector>

namespace bnns::ref {

// c[i * n + j] = init[i * n + j] + sum_k a[i * k_size + k] * b[k * n + j], all dense and row-major.
inline std::vector<double> gemm(size_t m, size_t n, size_t k_size, const std::vector<double>& a,
                                const std::vector<double>& b, const std::vector<double>& init) {
  std::vector<double> c(m * n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double sum = init[i * n + j];
      for (size_t k = 0; k < k_size; ++k) sum += a[i * k_size + k] * b[k * n + j];
      c[i * n + j] = sum;
    }
  }
  return c;
}

}  // namespace bnns::ref
