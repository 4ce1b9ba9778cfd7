#include "bench/vector_loops.h"

#include <cmath>

namespace bnns::bench::loops {

void add(const float* a, const float* b, float* c, size_t n) {
  for (size_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
void multiply_add(const float* a, const float* b, const float* c, float* d, size_t n) {
  for (size_t i = 0; i < n; ++i) d[i] = a[i] * b[i] + c[i];
}
void scale(const float* a, float b, float* c, size_t n) {
  for (size_t i = 0; i < n; ++i) c[i] = a[i] * b;
}
void clip(const float* a, float low, float high, float* c, size_t n) {
  for (size_t i = 0; i < n; ++i) c[i] = a[i] < low ? low : a[i] > high ? high : a[i];
}
void fill(float a, float* c, size_t n) {
  for (size_t i = 0; i < n; ++i) c[i] = a;
}
float sum(const float* a, size_t n) {
  float total = 0;
  for (size_t i = 0; i < n; ++i) total += a[i];
  return total;
}
float dot(const float* a, const float* b, size_t n) {
  float total = 0;
  for (size_t i = 0; i < n; ++i) total += a[i] * b[i];
  return total;
}
float largest(const float* a, size_t* index, size_t n) {
  *index = 0;
  for (size_t i = 1; i < n; ++i) {
    if (a[i] > a[*index]) *index = i;
  }
  return a[*index];
}
void to_int8(const float* a, int8_t* c, size_t n) {
  for (size_t i = 0; i < n; ++i) c[i] = static_cast<int8_t>(a[i]);
}
void transpose(const float* a, float* c, size_t rows, size_t columns) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t k = 0; k < columns; ++k) c[r * columns + k] = a[k * rows + r];
  }
}
void exponential(const float* a, float* c, size_t n) {
  for (size_t i = 0; i < n; ++i) c[i] = std::exp(a[i]);
}
void tangent(const float* a, float* c, size_t n) {
  for (size_t i = 0; i < n; ++i) c[i] = std::tanh(a[i]);
}

}  // namespace bnns::bench::loops
