// vForce: f32 by our vector kernels; f64 by libm, whose results are within one unit of the last place, and by vector
// kernels where one instruction does it.

#include "vecLib/vForce.h"

#include <cmath>

#include "src/veclib/kernels.h"

namespace bnns::veclib {
namespace {

size_t count(const int* n) noexcept {
  return *n > 0 ? static_cast<size_t>(*n) : 0;
}
template <class T>
void one(Map what, T* y, const T* x, const int* n) noexcept {
  map(what, MapArguments<T>{x, nullptr, nullptr, y, 0, 0}, count(n));
}
template <class F>
void each(double* y, const double* x, const int* n, F f) noexcept {
  for (size_t i = 0; i < count(n); ++i) y[i] = f(x[i]);
}

}  // namespace
}  // namespace bnns::veclib

using namespace bnns::veclib;

extern "C" {

void vvexpf(float* y, const float* x, const int* n) noexcept {
  apply(Function::exp, x, y, count(n));
}
void vvexp(double* y, const double* x, const int* n) noexcept {
  each(y, x, n, [](double v) { return std::exp(v); });
}

void vvlogf(float* y, const float* x, const int* n) noexcept {
  apply(Function::log, x, y, count(n));
}
void vvlog(double* y, const double* x, const int* n) noexcept {
  each(y, x, n, [](double v) { return std::log(v); });
}

void vvsinf(float* y, const float* x, const int* n) noexcept {
  apply(Function::sin, x, y, count(n));
}
void vvsin(double* y, const double* x, const int* n) noexcept {
  each(y, x, n, [](double v) { return std::sin(v); });
}

void vvcosf(float* y, const float* x, const int* n) noexcept {
  apply(Function::cos, x, y, count(n));
}
void vvcos(double* y, const double* x, const int* n) noexcept {
  each(y, x, n, [](double v) { return std::cos(v); });
}

void vvtanhf(float* y, const float* x, const int* n) noexcept {
  apply(Function::tanh, x, y, count(n));
}
void vvtanh(double* y, const double* x, const int* n) noexcept {
  each(y, x, n, [](double v) { return std::tanh(v); });
}

void vvsqrtf(float* y, const float* x, const int* n) noexcept {
  one(Map::square_root, y, x, n);
}
void vvsqrt(double* y, const double* x, const int* n) noexcept {
  one(Map::square_root, y, x, n);
}

void vvrsqrtf(float* y, const float* x, const int* n) noexcept {
  one(Map::inverse_root, y, x, n);
}
void vvrsqrt(double* y, const double* x, const int* n) noexcept {
  one(Map::inverse_root, y, x, n);
}

void vvrecf(float* y, const float* x, const int* n) noexcept {
  one(Map::inverse, y, x, n);
}
void vvrec(double* y, const double* x, const int* n) noexcept {
  one(Map::inverse, y, x, n);
}

void vvfabsf(float* y, const float* x, const int* n) noexcept {
  one(Map::magnitude, y, x, n);
}
void vvfabs(double* y, const double* x, const int* n) noexcept {
  one(Map::magnitude, y, x, n);
}

void vvfloorf(float* y, const float* x, const int* n) noexcept {
  one(Map::floor, y, x, n);
}
void vvfloor(double* y, const double* x, const int* n) noexcept {
  one(Map::floor, y, x, n);
}

void vvceilf(float* y, const float* x, const int* n) noexcept {
  one(Map::ceil, y, x, n);
}
void vvceil(double* y, const double* x, const int* n) noexcept {
  one(Map::ceil, y, x, n);
}

void vvnintf(float* y, const float* x, const int* n) noexcept {
  one(Map::nearest, y, x, n);
}
void vvnint(double* y, const double* x, const int* n) noexcept {
  one(Map::nearest, y, x, n);
}

void vvpowf(float* z, const float* y, const float* x, const int* n) noexcept {
  power(x, y, z, count(n));
}
void vvpow(double* z, const double* y, const double* x, const int* n) noexcept {
  for (size_t i = 0; i < count(n); ++i) z[i] = std::pow(x[i], y[i]);
}

}  // extern "C"
