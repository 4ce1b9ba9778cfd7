// A sparse fully connected layer in plain double loops over its stored entries.
#pragma once

#include <cstddef>
#include <vector>

namespace bnns::ref {

struct SparseEntry {
  size_t output, input;
  double value;
};

inline std::vector<double> sparse_fully_connected(const std::vector<SparseEntry>& entries, size_t outputs,
                                                  const std::vector<double>& bias, const std::vector<double>& x) {
  std::vector<double> y(outputs, 0);
  for (size_t o = 0; o < outputs && !bias.empty(); ++o) y[o] = bias[o];
  for (const SparseEntry& e : entries) y[e.output] += e.value * x[e.input];
  return y;
}

}  // namespace bnns::ref
