// Shuffles in plain loops over N C H W arrays.
#pragma once

#include <cstddef>
#include <vector>

#include "bnns/bnns.h"

namespace bnns::ref {

// N, C, H, W of the spatial side; calls f(position in the deep array, position in the spatial array).
template <class F>
void for_each_shuffled(bool channel_outermost, size_t N, size_t C, size_t H, size_t W, size_t r, F&& f) {
  for (size_t n = 0; n < N; ++n)
    for (size_t c = 0; c < C; ++c)
      for (size_t y = 0; y < H; ++y)
        for (size_t x = 0; x < W; ++x) {
          const size_t i = y % r, j = x % r;
          const size_t channel = channel_outermost ? c * r * r + i * r + j : (i * r + j) * C + c;
          f(((n * C * r * r + channel) * (H / r) + y / r) * (W / r) + x / r, ((n * C + c) * H + y) * W + x);
        }
}

}  // namespace bnns::ref
