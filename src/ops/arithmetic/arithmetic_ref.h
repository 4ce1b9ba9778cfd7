// The reference: every function and its derivatives in double, straight from their definitions, and broadcasting by
// plain index arithmetic over dense arrays. Shares nothing with the kernels.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "bnns/bnns.h"

namespace bnns::ref {

inline double sign(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : x;
}

// y = f(a, b, c)
inline double arithmetic(BNNSArithmeticFunction f, double a, double b, double c) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  switch (f) {
    case BNNSArithmeticAdd:
      return a + b;
    case BNNSArithmeticSubtract:
      return a - b;
    case BNNSArithmeticMultiply:
      return a * b;
    case BNNSArithmeticDivide:
      return a / b;
    case BNNSArithmeticSquareRoot:
      return std::sqrt(a);
    case BNNSArithmeticReciprocalSquareRoot:
      return 1 / std::sqrt(a);
    case BNNSArithmeticCeil:
      return std::ceil(a);
    case BNNSArithmeticFloor:
      return std::floor(a);
    case BNNSArithmeticRound:
      return std::nearbyint(a);
    case BNNSArithmeticSin:
      return std::sin(a);
    case BNNSArithmeticCos:
      return std::cos(a);
    case BNNSArithmeticTan:
      return std::tan(a);
    case BNNSArithmeticAsin:
      return std::asin(a);
    case BNNSArithmeticAcos:
      return std::acos(a);
    case BNNSArithmeticAtan:
      return std::atan(a);
    case BNNSArithmeticSinh:
      return std::sinh(a);
    case BNNSArithmeticCosh:
      return std::cosh(a);
    case BNNSArithmeticTanh:
      return std::tanh(a);
    case BNNSArithmeticAsinh:
      return std::asinh(a);
    case BNNSArithmeticAcosh:
      return std::acosh(a);
    case BNNSArithmeticAtanh:
      return std::atanh(a);
    case BNNSArithmeticPow:
      return std::pow(a, b);
    case BNNSArithmeticExp:
      return std::exp(a);
    case BNNSArithmeticExp2:
      return std::exp2(a);
    case BNNSArithmeticLog:
      return std::log(a);
    case BNNSArithmeticLog2:
      return std::log2(a);
    case BNNSArithmeticMultiplyNoNaN:
      return b == 0 ? 0 : a * b;
    case BNNSArithmeticDivideNoNaN:
      return b == 0 ? 0 : a / b;
    case BNNSArithmeticMultiplyAdd:
      return a * b + c;
    case BNNSArithmeticMinimum:
      return std::isnan(a) || std::isnan(b) ? nan : a < b ? a : b;
    case BNNSArithmeticMaximum:
      return std::isnan(a) || std::isnan(b) ? nan : a > b ? a : b;
    case BNNSArithmeticSelect:
      return a != 0 ? b : c;
    case BNNSArithmeticAbs:
      return std::fabs(a);
    case BNNSArithmeticSign:
      return sign(a);
    case BNNSArithmeticNegate:
      return -a;
    case BNNSArithmeticReciprocal:
      return 1 / a;
    case BNNSArithmeticSquare:
      return a * a;
    case BNNSArithmeticFloorDivide:
      return std::floor(a / b);
    case BNNSArithmeticTruncDivide:
      return std::trunc(a / b);
    case BNNSArithmeticTruncRemainder:
      return std::fmod(a, b);
    case BNNSArithmeticErf:
      return std::erf(a);
  }
  return nan;
}

// df/dx of input k
inline double arithmetic_derivative(BNNSArithmeticFunction f, size_t k, double a, double b, double c) {
  const double y = arithmetic(f, a, b, c);
  switch (f) {
    case BNNSArithmeticAdd:
      return 1;
    case BNNSArithmeticSubtract:
      return k == 0 ? 1 : -1;
    case BNNSArithmeticMultiply:
      return k == 0 ? b : a;
    case BNNSArithmeticDivide:
      return k == 0 ? 1 / b : -a / (b * b);
    case BNNSArithmeticSquareRoot:
      return 1 / (2 * y);
    case BNNSArithmeticReciprocalSquareRoot:
      return -0.5 / (a * std::sqrt(a));
    case BNNSArithmeticCeil:
    case BNNSArithmeticFloor:
    case BNNSArithmeticRound:
    case BNNSArithmeticSign:
      return 0;
    case BNNSArithmeticSin:
      return std::cos(a);
    case BNNSArithmeticCos:
      return -std::sin(a);
    case BNNSArithmeticTan:
      return 1 / (std::cos(a) * std::cos(a));
    case BNNSArithmeticAsin:
      return 1 / std::sqrt(1 - a * a);
    case BNNSArithmeticAcos:
      return -1 / std::sqrt(1 - a * a);
    case BNNSArithmeticAtan:
      return 1 / (1 + a * a);
    case BNNSArithmeticSinh:
      return std::cosh(a);
    case BNNSArithmeticCosh:
      return std::sinh(a);
    case BNNSArithmeticTanh:
      return 1 / (std::cosh(a) * std::cosh(a));
    case BNNSArithmeticAsinh:
      return 1 / std::sqrt(a * a + 1);
    case BNNSArithmeticAcosh:
      return 1 / std::sqrt(a * a - 1);
    case BNNSArithmeticAtanh:
      return 1 / (1 - a * a);
    case BNNSArithmeticPow:
      if (k == 0) return b == 0 ? 0 : b * std::pow(a, b - 1);
      return a == 0 && b >= 0 ? 0 : y * std::log(a);
    case BNNSArithmeticExp:
      return y;
    case BNNSArithmeticExp2:
      return y * std::log(2.0);
    case BNNSArithmeticLog:
      return 1 / a;
    case BNNSArithmeticLog2:
      return 1 / (a * std::log(2.0));
    case BNNSArithmeticMultiplyNoNaN:
      return b == 0 ? 0 : k == 0 ? b : a;
    case BNNSArithmeticDivideNoNaN:
      return b == 0 ? 0 : k == 0 ? 1 / b : -a / (b * b);
    case BNNSArithmeticMultiplyAdd:
      return k == 0 ? b : k == 1 ? a : 1;
    case BNNSArithmeticMinimum:
      return a == b ? 0.5 : (a < b) == (k == 0) ? 1 : 0;
    case BNNSArithmeticMaximum:
      return a == b ? 0.5 : (a > b) == (k == 0) ? 1 : 0;
    case BNNSArithmeticSelect:
      return k == 0 ? 0 : (a != 0) == (k == 1) ? 1 : 0;
    case BNNSArithmeticAbs:
      return sign(a);
    case BNNSArithmeticNegate:
      return -1;
    case BNNSArithmeticReciprocal:
      return -1 / (a * a);
    case BNNSArithmeticSquare:
      return 2 * a;
    case BNNSArithmeticErf:
      return 2 / std::sqrt(M_PI) * std::exp(-a * a);
    case BNNSArithmeticFloorDivide:
    case BNNSArithmeticTruncDivide:
    case BNNSArithmeticTruncRemainder:
      break;
  }
  return std::numeric_limits<double>::quiet_NaN();  // no gradient
}

// Extents of a call, size axis 0 first, and of its inputs: equal or 1. batched[k]: input k has one tensor per sample.
struct ArithmeticShape {
  std::vector<size_t> out, in[3];
  bool batched[3] = {true, true, true};
  size_t batch = 1;

  static size_t product(const std::vector<size_t>& v) {
    size_t n = 1;
    for (size_t e : v) n *= e;
    return n;
  }
  size_t out_count() const { return product(out); }
  // Position in input k's dense array [sample][..., axis 1, axis 0] of what belongs to element i of sample s.
  size_t position(size_t k, size_t s, size_t i) const {
    size_t at = batched[k] ? s * product(in[k]) : 0, step = 1;
    for (size_t axis = 0; axis < out.size(); ++axis) {
      if (in[k][axis] != 1) at += i % out[axis] * step;
      step *= in[k][axis];
      i /= out[axis];
    }
    return at;
  }
};

using Values = std::vector<double>;

inline Values arithmetic_forward(BNNSArithmeticFunction f, size_t inputs, const ArithmeticShape& shape,
                                 const Values* x) {
  Values y;
  for (size_t s = 0; s < shape.batch; ++s) {
    for (size_t i = 0; i < shape.out_count(); ++i) {
      double v[3] = {};
      for (size_t k = 0; k < inputs; ++k) v[k] = x[k][shape.position(k, s, i)];
      y.push_back(arithmetic(f, v[0], v[1], v[2]));
    }
  }
  return y;
}

// dx[k] += g df/dx[k], summed over everything that input k is repeated for; dx[k] has the size of x[k] and starts at 0.
// magnitude[k], if given, receives the sums of absolute terms: error bounds are built from them.
inline void arithmetic_backward(BNNSArithmeticFunction f, size_t inputs, const ArithmeticShape& shape, const Values* x,
                                const Values& g, Values* dx, Values* magnitude = nullptr) {
  for (size_t k = 0; k < inputs; ++k) {
    dx[k].assign(x[k].size(), 0);
    if (magnitude) magnitude[k].assign(x[k].size(), 0);
  }
  for (size_t s = 0; s < shape.batch; ++s) {
    for (size_t i = 0; i < shape.out_count(); ++i) {
      double v[3] = {};
      for (size_t k = 0; k < inputs; ++k) v[k] = x[k][shape.position(k, s, i)];
      for (size_t k = 0; k < inputs; ++k) {
        const double term = g[s * shape.out_count() + i] * arithmetic_derivative(f, k, v[0], v[1], v[2]);
        dx[k][shape.position(k, s, i)] += term;
        if (magnitude) magnitude[k][shape.position(k, s, i)] += std::fabs(term);
      }
    }
  }
}

}  // namespace bnns::ref
