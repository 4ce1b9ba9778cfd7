// Scale and shift in double and plain loops: batch x channels x plane, dense.
#pragma once

#include <cstddef>
#include <vector>

namespace bnns::ref {

struct ScaleShiftGradients {
  std::vector<double> dx, da, db;
};

// y[n][c][i] = a[c] x[n][c][i] + b[c]
inline std::vector<double> scale_shift(size_t batch, size_t channels, size_t plane, const std::vector<double>& a,
                                       const std::vector<double>& b, const std::vector<double>& x) {
  std::vector<double> y(x.size());
  for (size_t n = 0; n < batch; ++n) {
    for (size_t c = 0; c < channels; ++c) {
      for (size_t i = 0; i < plane; ++i) {
        const size_t at = (n * channels + c) * plane + i;
        y[at] = a[c] * x[at] + b[c];
      }
    }
  }
  return y;
}

// dx[n][c][i] = a[c] dy[n][c][i];  da[c] = sum of x dy,  db[c] = sum of dy
inline ScaleShiftGradients scale_shift_backward(size_t batch, size_t channels, size_t plane,
                                                const std::vector<double>& a, const std::vector<double>& x,
                                                const std::vector<double>& dy) {
  ScaleShiftGradients g{std::vector<double>(x.size()), std::vector<double>(channels), std::vector<double>(channels)};
  for (size_t n = 0; n < batch; ++n) {
    for (size_t c = 0; c < channels; ++c) {
      for (size_t i = 0; i < plane; ++i) {
        const size_t at = (n * channels + c) * plane + i;
        g.dx[at] = a[c] * dy[at];
        g.da[c] += x[at] * dy[at];
        g.db[c] += dy[at];
      }
    }
  }
  return g;
}

}  // namespace bnns::ref
