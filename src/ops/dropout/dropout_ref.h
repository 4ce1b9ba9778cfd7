// The reference: one decision at a time, double precision, coordinates in size order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace bnns::ref {

// Threefry-2x32 as published, `rounds` of at most 20.
inline std::pair<uint32_t, uint32_t> threefry2x32(int rounds, uint32_t c0, uint32_t c1, uint32_t k0, uint32_t k1) {
  const uint32_t keys[] = {k0, k1, 0x1BD11BDAu ^ k0 ^ k1};
  const int left[] = {13, 15, 26, 6, 17, 29, 16, 24};
  uint32_t x0 = c0 + k0, x1 = c1 + k1;
  for (int r = 0; r < rounds; ++r) {
    x0 += x1;
    x1 = (x1 << left[r % 8] | x1 >> (32 - left[r % 8])) ^ x0;
    if (r % 4 == 3) {
      const int injection = r / 4 + 1;
      x0 += keys[injection % 3];
      x1 += keys[(injection + 1) % 3] + uint32_t(injection);
    }
  }
  return {x0, x1};
}

// The word of decision `index` in a pass.
inline uint32_t dropout_word(uint32_t seed, uint64_t pass, uint64_t index) {
  const uint64_t counter = index / 32 * 16 + index % 16;
  const auto words =
      threefry2x32(13, uint32_t(counter), uint32_t(counter >> 32) ^ uint32_t(pass >> 32) << 16, seed, uint32_t(pass));
  return index % 32 < 16 ? words.first : words.second;
}

// y of a batch of dense samples: size[] and the position of each axis in memory, fastest first (order[j] is the axis at
// place j). `control` bit k: elements along size[k] share a decision.
inline std::vector<double> dropout(const std::vector<size_t>& size, const std::vector<size_t>& order, unsigned control,
                                   double rate, uint32_t seed, uint64_t pass, size_t batch,
                                   const std::vector<double>& x) {
  size_t count = 1, decisions = 1;
  for (size_t k = 0; k < size.size(); ++k) {
    count *= size[k];
    if (!(k < 4 && (control >> k & 1))) decisions *= size[k];
  }
  std::vector<double> y(batch * count);
  for (size_t e = 0; e < y.size(); ++e) {
    size_t rest = e % count, index = 0, step = 1;
    for (size_t axis : order) {
      const size_t at = rest % size[axis];
      rest /= size[axis];
      if (axis < 4 && (control >> axis & 1)) continue;
      index += at * step;
      step *= size[axis];
    }
    const double word = dropout_word(seed, pass, e / count * decisions + index);
    y[e] = word < rate * 4294967296.0 ? 0 : x[e] / (1 - rate);
  }
  return y;
}

}  // namespace bnns::ref
