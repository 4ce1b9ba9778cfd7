// Reductions in plain double loops, on dense arrays with size[0] fastest.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "bnns/bnns.h"

namespace bnns::ref {

using Sizes = std::vector<size_t>;

// For each result: its elements, in the order in which ArgMax counts them.
inline std::vector<std::vector<size_t>> reduction_groups(const Sizes& in, const Sizes& out) {
  size_t results = 1, count = 1;
  for (size_t n : out) results *= n;
  for (size_t n : in) count *= n;
  std::vector<std::vector<size_t>> groups(results);
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i, result = 0, step = 1;
    for (size_t k = 0; k < in.size(); ++k) {
      if (out[k] != 1) result += rest % in[k] * step;
      step *= out[k];
      rest /= in[k];
    }
    groups[result].push_back(i);
  }
  return groups;
}

// The position of the first extreme in a group. NaN is passed over; the first where there is nothing else.
inline size_t reduction_choice(const std::vector<double>& t, bool largest) {
  size_t best = 0;
  for (size_t i = 1; i < t.size(); ++i) {
    if (std::isnan(t[i])) continue;
    if (std::isnan(t[best]) || (largest ? t[i] > t[best] : t[i] < t[best])) best = i;
  }
  return best;
}

inline double reduce_group(BNNSReduceFunction f, const std::vector<double>& x, const std::vector<double>& w,
                           bool weighted, double epsilon) {
  const size_t n = x.size();
  std::vector<double> t(n);
  for (size_t i = 0; i < n; ++i) t[i] = w[i] * x[i];
  double sum = 0, top = -INFINITY;
  size_t count = 0;
  switch (f) {
    case BNNSReduceFunctionMax:
    case BNNSReduceFunctionMin:
      return t[reduction_choice(t, f == BNNSReduceFunctionMax)];
    case BNNSReduceFunctionArgMax:
    case BNNSReduceFunctionArgMin:
      return double(reduction_choice(t, f == BNNSReduceFunctionArgMax));
    case BNNSReduceFunctionMean:
    case BNNSReduceFunctionSum:
    case BNNSReduceFunctionLogSum:
      for (double v : t) sum += v;
      return f == BNNSReduceFunctionSum ? sum : f == BNNSReduceFunctionMean ? sum / double(n) : std::log(sum);
    case BNNSReduceFunctionMeanNonZero:
      for (size_t i = 0; i < n; ++i) {
        if (w[i] != 0) sum += t[i], ++count;
      }
      return weighted ? count ? sum / double(count) : 0 : sum / double(n);
    case BNNSReduceFunctionSumSquare:
    case BNNSReduceFunctionL2Norm:
      for (size_t i = 0; i < n; ++i) sum += w[i] * x[i] * x[i];
      return f == BNNSReduceFunctionL2Norm ? std::sqrt(sum) : sum;
    case BNNSReduceFunctionSumLog:
      for (size_t i = 0; i < n; ++i) sum += w[i] * std::log(x[i] + epsilon);
      return sum;
    case BNNSReduceFunctionL1Norm:
      for (size_t i = 0; i < n; ++i) sum += w[i] * std::fabs(x[i]);
      return sum;
    case BNNSReduceFunctionLogicalOr:
      for (double v : t) count += v != 0;
      return count > 0;
    case BNNSReduceFunctionLogicalAnd:
      for (double v : t) count += v != 0;
      return count == n;
    case BNNSReduceFunctionLogSumExp:
      for (size_t i = 0; i < n; ++i) top = w[i] != 0 && x[i] > top ? x[i] : top;
      if (std::isinf(top)) top = 0;
      for (size_t i = 0; i < n; ++i) sum += w[i] != 0 ? w[i] * std::exp(x[i] - top) : 0;
      return std::log(sum) + top;
    case BNNSReduceFunctionProduct:
      sum = 1;
      for (double v : t) sum *= v;
      return sum;
    default:
      return NAN;
  }
}

// w empty: no weights.
inline std::vector<double> reduction(BNNSReduceFunction f, const Sizes& in, const Sizes& out,
                                     const std::vector<double>& x, const std::vector<double>& w, double epsilon) {
  std::vector<double> y;
  for (const auto& group : reduction_groups(in, out)) {
    std::vector<double> xs, ws;
    for (size_t i : group) {
      xs.push_back(x[i]);
      ws.push_back(w.empty() ? 1 : w[i]);
    }
    y.push_back(reduce_group(f, xs, ws, !w.empty(), epsilon));
  }
  return y;
}

// dx and dw for one sample.
inline void reduction_backward(BNNSReduceFunction f, const Sizes& in, const Sizes& out, const std::vector<double>& x,
                               const std::vector<double>& w, double epsilon, const std::vector<double>& dy,
                               std::vector<double>* dx, std::vector<double>* dw) {
  const auto groups = reduction_groups(in, out);
  const auto y = reduction(f, in, out, x, w, epsilon);
  dx->assign(x.size(), 0);
  dw->assign(x.size(), 0);
  for (size_t r = 0; r < groups.size(); ++r) {
    std::vector<double> t;
    size_t nonzero = 0;
    double sum = 0;
    for (size_t i : groups[r]) {
      t.push_back(x[i] * (w.empty() ? 1 : w[i]));
      nonzero += w.empty() || w[i] != 0;
      sum += t.back();
    }
    for (size_t j = 0; j < t.size(); ++j) {
      const size_t i = groups[r][j];
      const double g = dy[r], u = w.empty() ? 1 : w[i], v = x[i];
      double a = 0, b = 0;  // dx, dw
      double others = 1;
      switch (f) {
        case BNNSReduceFunctionSum:
          a = u * g, b = v * g;
          break;
        case BNNSReduceFunctionMean:
          a = u * g / double(t.size()), b = v * g / double(t.size());
          break;
        case BNNSReduceFunctionMeanNonZero:
          if (u != 0) a = u * g / double(nonzero), b = v * g / double(nonzero);
          break;
        case BNNSReduceFunctionMax:
        case BNNSReduceFunctionMin:
          if (j == reduction_choice(t, f == BNNSReduceFunctionMax)) a = u * g, b = v * g;
          break;
        case BNNSReduceFunctionSumSquare:
          a = 2 * u * v * g, b = v * v * g;
          break;
        case BNNSReduceFunctionSumLog:
          a = u / (v + epsilon) * g, b = std::log(v + epsilon) * g;
          break;
        case BNNSReduceFunctionL1Norm:
          a = u * (v > 0 ? 1 : v < 0 ? -1 : 0) * g, b = std::fabs(v) * g;
          break;
        case BNNSReduceFunctionL2Norm:
          if (y[r] != 0) a = u * v / y[r] * g, b = v * v / (2 * y[r]) * g;
          break;
        case BNNSReduceFunctionLogSumExp:
          if (y[r] != -INFINITY) a = u != 0 ? u * std::exp(v - y[r]) * g : 0, b = std::exp(v - y[r]) * g;
          break;
        case BNNSReduceFunctionLogSum:
          a = u / sum * g, b = v / sum * g;
          break;
        case BNNSReduceFunctionProduct:
          for (size_t k = 0; k < t.size(); ++k) others *= k == j ? 1 : t[k];
          a = u * others * g, b = v * others * g;
          break;
        default:
          break;
      }
      (*dx)[i] = a;
      (*dw)[i] = b;
    }
  }
}

}  // namespace bnns::ref
