// Padding in plain loops: dense arrays, size[0] fastest.
#pragma once

#include <cstddef>
#include <vector>

#include "bnns/bnns.h"

namespace bnns::ref {

struct Padding {
  std::vector<size_t> size, before, after;
  BNNSPaddingMode mode = BNNSPaddingModeConstant;
  double value = 0;
};

// The mirrored array is written out step by step: the position walks outwards and the source walks inwards.
inline long padding_index(BNNSPaddingMode mode, long n, long position) {
  if (position >= 0 && position < n) return position;
  if (mode == BNNSPaddingModeConstant) return -1;
  const bool left = position < 0;
  long source = left ? 0 : n - 1, steps = left ? -position : position - (n - 1);
  if (mode == BNNSPaddingModeSymmetric) --steps;  // the first step stays on the edge
  for (; steps > 0; --steps) source += left ? 1 : -1;
  return source;
}

// For every output element in order: f(output index, input index or -1).
template <class F>
void for_each_padded(const Padding& p, F&& f) {
  size_t count = 1;
  for (size_t k = 0; k < p.size.size(); ++k) count *= p.size[k] + p.before[k] + p.after[k];
  for (size_t o = 0; o < count; ++o) {
    long input = 0, step = 1;
    for (size_t k = 0, rest = o; k < p.size.size(); ++k) {
      const size_t extent = p.size[k] + p.before[k] + p.after[k];
      const long i = padding_index(p.mode, long(p.size[k]), long(rest % extent) - long(p.before[k]));
      rest /= extent;
      input = i < 0 || input < 0 ? -1 : input + i * step;
      step *= long(p.size[k]);
    }
    f(o, input);
  }
}

inline std::vector<double> padding(const Padding& p, const std::vector<double>& x) {
  std::vector<double> y;
  for_each_padded(p, [&](size_t, long i) { y.push_back(i < 0 ? p.value : x[size_t(i)]); });
  return y;
}

inline std::vector<double> padding_backward(const Padding& p, const std::vector<double>& dy) {
  size_t count = 1;
  for (size_t n : p.size) count *= n;
  std::vector<double> dx(count, 0);
  for_each_padded(p, [&](size_t o, long i) {
    if (i >= 0) dx[size_t(i)] += dy[o];
  });
  return dx;
}

}  // namespace bnns::ref
