// Embedding in plain loops: items and results as arrays of item_count values each.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace bnns::ref {

struct EmbeddingOptions {
  size_t items, item_count, padding;
  double max_norm, norm_type;
  bool by_frequency;
};

// dictionary[k * item_count + e]; the result has an item for each index.
inline std::vector<double> embedding(const EmbeddingOptions& o, const std::vector<double>& dictionary,
                                     const std::vector<size_t>& indices) {
  std::vector<double> y;
  for (size_t k : indices) {
    double norm = 0;
    for (size_t e = 0; e < o.item_count; ++e) {
      const double size = std::fabs(dictionary[k * o.item_count + e]);
      norm = std::isinf(o.norm_type) ? std::fmax(norm, size) : norm + std::pow(size, o.norm_type);
    }
    if (!std::isinf(o.norm_type)) norm = std::pow(norm, 1 / o.norm_type);
    const double factor = o.max_norm != 0 && norm > o.max_norm ? o.max_norm / norm : 1;
    for (size_t e = 0; e < o.item_count; ++e) {
      y.push_back(k == o.padding ? 0 : factor * dictionary[k * o.item_count + e]);
    }
  }
  return y;
}

inline std::vector<double> embedding_backward(const EmbeddingOptions& o, const std::vector<size_t>& indices,
                                              const std::vector<double>& dy) {
  std::vector<double> gradient(o.items * o.item_count, 0);
  for (size_t k = 0; k < o.items; ++k) {
    size_t count = 0;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] != k || k == o.padding) continue;
      ++count;
      for (size_t e = 0; e < o.item_count; ++e) gradient[k * o.item_count + e] += dy[i * o.item_count + e];
    }
    for (size_t e = 0; e < o.item_count && o.by_frequency && count; ++e)
      gradient[k * o.item_count + e] /= double(count);
  }
  return gradient;
}

}  // namespace bnns::ref
