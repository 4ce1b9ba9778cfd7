// What a program writes without vDSP and vForce: one loop over plain arrays, compiled with -O2 (bench/CMakeLists.txt).
#pragma once

#include <cstddef>
#include <cstdint>

namespace bnns::bench::loops {

void add(const float* a, const float* b, float* c, size_t n);
void multiply_add(const float* a, const float* b, const float* c, float* d, size_t n);
void scale(const float* a, float b, float* c, size_t n);
void clip(const float* a, float low, float high, float* c, size_t n);
void fill(float a, float* c, size_t n);
float sum(const float* a, size_t n);
float dot(const float* a, const float* b, size_t n);
float largest(const float* a, size_t* index, size_t n);
void to_int8(const float* a, int8_t* c, size_t n);
void transpose(const float* a, float* c, size_t rows, size_t columns);  // c is rows x columns
void exponential(const float* a, float* c, size_t n);
void tangent(const float* a, float* c, size_t n);  // hyperbolic

}  // namespace bnns::bench::loops
