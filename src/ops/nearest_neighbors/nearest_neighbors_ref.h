// Nearest neighbours by sorting all distances.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace bnns::ref {

struct Neighbor {
  int index;
  double distance;
};

// k neighbours of a sample; index -1 and infinity where there are not so many.
inline std::vector<Neighbor> nearest_neighbors(const std::vector<double>& samples, size_t features, size_t sample,
                                               size_t k) {
  std::vector<Neighbor> all;
  for (size_t i = 0; i < samples.size() / features; ++i) {
    double sum = 0;
    for (size_t f = 0; f < features; ++f)
      sum += std::pow(samples[i * features + f] - samples[sample * features + f], 2);
    all.push_back({int(i), i == sample ? -1 : std::sqrt(sum)});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Neighbor& a, const Neighbor& b) { return a.distance < b.distance; });
  all[0].distance = 0;
  all.resize(k, {-1, INFINITY});
  return all;
}

}  // namespace bnns::ref
