// The reference: double precision, plain loops over (n, c, h, w), dense arrays. Activations are the caller's: y is
// gamma x^ + beta, and g is the gradient with respect to it.
#pragma once

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

namespace bnns::ref {

enum class Norm { batch, instance, layer, group };

struct NormCase {
  Norm kind = Norm::batch;
  size_t N = 1, C = 1, H = 1, W = 1;
  size_t groups = 1, axis = 0;
  double epsilon = 1e-5;

  size_t count() const { return N * C * H * W; }
  // How many pairs of gamma and beta there are.
  size_t parameters() const {
    if (kind != Norm::layer) return C;
    return axis == 0 ? C * H * W : axis == 1 ? H * W : W;
  }
  size_t sets() const {
    switch (kind) {
      case Norm::batch:
        return C;
      case Norm::instance:
        return N * C;
      case Norm::group:
        return N * groups;
      case Norm::layer:
        return axis == 0 ? N : axis == 1 ? N * C : N * C * H;
    }
    return 0;
  }
  // Calls f(element, set, parameter) for every element.
  template <class F>
  void for_each(F&& f) const {
    for (size_t n = 0; n < N; ++n)
      for (size_t c = 0; c < C; ++c)
        for (size_t h = 0; h < H; ++h)
          for (size_t w = 0; w < W; ++w) {
            const size_t element = ((n * C + c) * H + h) * W + w;
            size_t set = 0, parameter = c;
            switch (kind) {
              case Norm::batch:
                set = c;
                break;
              case Norm::instance:
                set = n * C + c;
                break;
              case Norm::group:
                set = n * groups + c / (C / groups);
                break;
              case Norm::layer:
                set = axis == 0 ? n : axis == 1 ? n * C + c : (n * C + c) * H + h;
                parameter = axis == 0 ? (c * H + h) * W + w : axis == 1 ? h * W + w : w;
                break;
            }
            f(element, set, parameter);
          }
  }
  std::string text() const {
    static const char* names[] = {"batch", "instance", "layer", "group"};
    return std::string(names[int(kind)]) + " n" + std::to_string(N) + " c" + std::to_string(C) + " h" +
           std::to_string(H) + " w" + std::to_string(W) + " groups" + std::to_string(groups) + " axis" +
           std::to_string(axis);
  }
};

struct NormForward {
  std::vector<double> y, values, mean, variance, rstd, members;  // values: x^; members: how many share a mean
};

// mean and variance, when given, take the place of the batch's own (one per set).
inline NormForward normalization_forward(const NormCase& p, const std::vector<double>& x,
                                         const std::vector<double>& gamma, const std::vector<double>& beta,
                                         const std::vector<double>& mean = {},
                                         const std::vector<double>& variance = {}) {
  NormForward r;
  r.mean.assign(p.sets(), 0), r.variance.assign(p.sets(), 0), r.members.assign(p.sets(), 0);
  p.for_each([&](size_t e, size_t set, size_t) { r.mean[set] += x[e], r.members[set] += 1; });
  for (size_t s = 0; s < p.sets(); ++s) r.mean[s] /= r.members[s];
  p.for_each([&](size_t e, size_t set, size_t) { r.variance[set] += (x[e] - r.mean[set]) * (x[e] - r.mean[set]); });
  for (size_t s = 0; s < p.sets(); ++s) r.variance[s] /= r.members[s];
  if (!mean.empty()) r.mean = mean;
  if (!variance.empty()) r.variance = variance;
  for (double v : r.variance) r.rstd.push_back(v + p.epsilon == 0 ? 0 : 1 / std::sqrt(v + p.epsilon));
  r.values.resize(x.size()), r.y.resize(x.size());
  p.for_each([&](size_t e, size_t set, size_t parameter) {
    r.values[e] = (x[e] - r.mean[set]) * r.rstd[set];
    r.y[e] = (gamma.empty() ? 1 : gamma[parameter]) * r.values[e] + (beta.empty() ? 0 : beta[parameter]);
  });
  return r;
}

struct NormBackward {
  std::vector<double> dx, dbeta, dgamma;
};

inline NormBackward normalization_backward(const NormCase& p, const NormForward& forward,
                                           const std::vector<double>& gamma, const std::vector<double>& g) {
  NormBackward r{std::vector<double>(g.size()), std::vector<double>(p.parameters()),
                 std::vector<double>(p.parameters())};
  std::vector<double> h(g.size()), mean_h(p.sets()), mean_hx(p.sets());
  p.for_each([&](size_t e, size_t set, size_t parameter) {
    h[e] = (gamma.empty() ? 1 : gamma[parameter]) * g[e];
    mean_h[set] += h[e] / forward.members[set];
    mean_hx[set] += h[e] * forward.values[e] / forward.members[set];
    r.dbeta[parameter] += g[e];
    r.dgamma[parameter] += g[e] * forward.values[e];
  });
  p.for_each([&](size_t e, size_t set, size_t) {
    r.dx[e] = (h[e] - mean_h[set] - forward.values[e] * mean_hx[set]) * forward.rstd[set];
  });
  return r;
}

// moving after one training pass: momentum moving + (1 - momentum) current, one value per channel. Instance
// normalization averages over the batch first.
inline std::vector<double> moving_after(const NormCase& p, double momentum, std::vector<double> moving,
                                        const std::vector<double>& current) {
  for (size_t c = 0; c < p.C; ++c) {
    double value = current[c];
    if (p.kind == Norm::instance) {
      value = 0;
      for (size_t n = 0; n < p.N; ++n) value += current[n * p.C + c] / double(p.N);
    }
    moving[c] = momentum * moving[c] + (1 - momentum) * value;
  }
  return moving;
}

}  // namespace bnns::ref
