// The reference: double precision, plain loops. W is row-major (O, I), X is (N, I), Y is (N, O).
#pragma once

#include <cstddef>
#include <vector>

namespace bnns::ref {

// y(n,o) = b(o) + sum_i w(o,i) x(n,i), before any activation.
inline std::vector<double> fully_connected_forward(size_t N, size_t I, size_t O, const std::vector<double>& x,
                                                   const std::vector<double>& w, const std::vector<double>& b) {
  std::vector<double> y(N * O);
  for (size_t n = 0; n < N; ++n) {
    for (size_t o = 0; o < O; ++o) {
      double sum = b.empty() ? 0 : b[o];
      for (size_t i = 0; i < I; ++i) sum += w[o * I + i] * x[n * I + i];
      y[n * O + o] = sum;
    }
  }
  return y;
}

struct FullyConnectedGradients {
  std::vector<double> dx, dw, db;
};

// g(n,o) is the gradient of the loss with respect to y before the activation.
inline FullyConnectedGradients fully_connected_backward(size_t N, size_t I, size_t O, const std::vector<double>& x,
                                                        const std::vector<double>& w, const std::vector<double>& g) {
  FullyConnectedGradients result{std::vector<double>(N * I), std::vector<double>(O * I), std::vector<double>(O)};
  for (size_t n = 0; n < N; ++n) {
    for (size_t o = 0; o < O; ++o) {
      for (size_t i = 0; i < I; ++i) {
        result.dx[n * I + i] += w[o * I + i] * g[n * O + o];
        result.dw[o * I + i] += g[n * O + o] * x[n * I + i];
      }
      result.db[o] += g[n * O + o];
    }
  }
  return result;
}

}  // namespace bnns::ref
