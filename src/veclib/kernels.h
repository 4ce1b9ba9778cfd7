// The kernels of vDSP and vForce on dense vectors. Strides are dealt with around them (strides.h).
#pragma once

#include <cstddef>

namespace bnns::veclib {

// y[i] from a[i], b[i], c[i] and the numbers s and t.
enum class Map : int {
  fill,           // s
  add,            // a + b
  subtract,       // a - b
  multiply,       // a b
  divide,         // a / b
  multiply_add,   // a b + c
  add_number,     // a + s
  scale,          // a s
  divide_number,  // a / s
  scale_add,      // a s + b
  scale_shift,    // a s + t
  square,         // a a
  magnitude,      // |a|
  negate,         // -a
  clip,           // a limited to [s, t]
  raise,          // a where a >= s, else s
  threshold,      // a where a >= s, else 0
  standardize,    // (a - s) / t
  square_root,
  inverse_root,  // 1 / sqrt a
  inverse,       // 1 / a
  floor,
  ceil,
  nearest,  // to integers, halves to even
};

template <class T>
struct MapArguments {
  const T* a = nullptr;
  const T* b = nullptr;
  const T* c = nullptr;
  T* y = nullptr;
  T s = 0, t = 0;
};

// n elements. y may be one of a, b, c.
void map(Map what, const MapArguments<float>& x, size_t n) noexcept;
void map(Map what, const MapArguments<double>& x, size_t n) noexcept;

// Sums over i. f32: blocks of kSumBlock elements in f32, and those in double, so that the order depends on n alone.
enum class Sum : int { values, squares, products, squared_differences, squared_deviations };
constexpr size_t kSumBlock = 512;
// b for products and differences; s is what deviations are from.
double sum(Sum what, const float* a, const float* b, float s, size_t n) noexcept;
double sum(Sum what, const double* a, const double* b, double s, size_t n) noexcept;

// The largest or smallest of a, or the largest of |a|; NaN is passed over. Of nothing: -infinity, infinity, 0.
enum class Extreme : int { largest, smallest, magnitude };
float extreme(Extreme what, const float* a, size_t n) noexcept;
double extreme(Extreme what, const double* a, size_t n) noexcept;

// Elementary functions of floats: src/simd/math-inl.h.
enum class Function : int { exp, log, sin, cos, tanh };
void apply(Function what, const float* x, float* y, size_t n) noexcept;
void power(const float* x, const float* y, float* z, size_t n) noexcept;  // z = x^y

}  // namespace bnns::veclib
