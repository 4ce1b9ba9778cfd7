// vDSP's element-wise functions, vDSP_vadd to vDSP_normalize, and its sums.

#include <cmath>
#include <limits>

#include "src/veclib/strides.h"
#include "vecLib/vDSP.h"

namespace bnns::veclib {
namespace {

template <class T>
void unary(Map what, const T* a, Stride ia, T* c, Stride ic, size_t n, T s = 0, T t = 0) noexcept {
  map_strided<T>(what, {a, ia}, {}, {}, s, t, c, ic, n);
}
template <class T>
void binary(Map what, const T* a, Stride ia, const T* b, Stride ib, T* c, Stride ic, size_t n, T s = 0) noexcept {
  map_strided<T>(what, {a, ia}, {b, ib}, {}, s, T(0), c, ic, n);
}
template <class T>
void fill(T value, T* c, Stride ic, size_t n) noexcept {
  map_strided<T>(Map::fill, {}, {}, {}, value, T(0), c, ic, n);
}

// In double, then rounded once. n b alone would lose digits beyond 2^24.
template <class T>
void ramp(T a, T b, T* c, Stride ic, size_t n) noexcept {
  for (size_t i = 0; i < n; ++i) {
    c[static_cast<Stride>(i) * ic] = static_cast<T>(double(a) + double(i) * double(b));
  }
}

template <class T>
double total(Sum what, const T* a, Stride ia, size_t n) noexcept {
  return sum_strided<T>(what, {a, ia}, {}, T(0), n);
}
template <class T>
double total(Sum what, const T* a, Stride ia, const T* b, Stride ib, size_t n) noexcept {
  return sum_strided<T>(what, {a, ia}, {b, ib}, T(0), n);
}

// The deviations are from the mean as it is returned: their squares, not the difference of two large sums.
template <class T>
void normalize(const T* a, Stride ia, T* c, Stride ic, T* mean, T* deviation, size_t n) noexcept {
  const double count = static_cast<double>(n);
  *mean = static_cast<T>(total(Sum::values, a, ia, n) / count);
  *deviation = static_cast<T>(std::sqrt(sum_strided<T>(Sum::squared_deviations, {a, ia}, {}, *mean, n) / count));
  if (c) unary(Map::standardize, a, ia, c, ic, n, *mean, *deviation);
}

}  // namespace
}  // namespace bnns::veclib

using namespace bnns::veclib;

extern "C" {

void vDSP_vadd(const float* a, vDSP_Stride ia, const float* b, vDSP_Stride ib, float* c, vDSP_Stride ic,
               vDSP_Length n) noexcept {
  binary(Map::add, a, ia, b, ib, c, ic, n);
}
void vDSP_vaddD(const double* a, vDSP_Stride ia, const double* b, vDSP_Stride ib, double* c, vDSP_Stride ic,
                vDSP_Length n) noexcept {
  binary(Map::add, a, ia, b, ib, c, ic, n);
}
void vDSP_vsub(const float* b, vDSP_Stride ib, const float* a, vDSP_Stride ia, float* c, vDSP_Stride ic,
               vDSP_Length n) noexcept {
  binary(Map::subtract, a, ia, b, ib, c, ic, n);
}
void vDSP_vsubD(const double* b, vDSP_Stride ib, const double* a, vDSP_Stride ia, double* c, vDSP_Stride ic,
                vDSP_Length n) noexcept {
  binary(Map::subtract, a, ia, b, ib, c, ic, n);
}
void vDSP_vmul(const float* a, vDSP_Stride ia, const float* b, vDSP_Stride ib, float* c, vDSP_Stride ic,
               vDSP_Length n) noexcept {
  binary(Map::multiply, a, ia, b, ib, c, ic, n);
}
void vDSP_vmulD(const double* a, vDSP_Stride ia, const double* b, vDSP_Stride ib, double* c, vDSP_Stride ic,
                vDSP_Length n) noexcept {
  binary(Map::multiply, a, ia, b, ib, c, ic, n);
}
void vDSP_vdiv(const float* b, vDSP_Stride ib, const float* a, vDSP_Stride ia, float* c, vDSP_Stride ic,
               vDSP_Length n) noexcept {
  binary(Map::divide, a, ia, b, ib, c, ic, n);
}
void vDSP_vdivD(const double* b, vDSP_Stride ib, const double* a, vDSP_Stride ia, double* c, vDSP_Stride ic,
                vDSP_Length n) noexcept {
  binary(Map::divide, a, ia, b, ib, c, ic, n);
}
void vDSP_vma(const float* a, vDSP_Stride ia, const float* b, vDSP_Stride ib, const float* c, vDSP_Stride ic, float* d,
              vDSP_Stride id, vDSP_Length n) noexcept {
  map_strided<float>(Map::multiply_add, {a, ia}, {b, ib}, {c, ic}, 0, 0, d, id, n);
}
void vDSP_vmaD(const double* a, vDSP_Stride ia, const double* b, vDSP_Stride ib, const double* c, vDSP_Stride ic,
               double* d, vDSP_Stride id, vDSP_Length n) noexcept {
  map_strided<double>(Map::multiply_add, {a, ia}, {b, ib}, {c, ic}, 0, 0, d, id, n);
}
void vDSP_vsadd(const float* a, vDSP_Stride ia, const float* b, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::add_number, a, ia, c, ic, n, *b);
}
void vDSP_vsaddD(const double* a, vDSP_Stride ia, const double* b, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::add_number, a, ia, c, ic, n, *b);
}
void vDSP_vsmul(const float* a, vDSP_Stride ia, const float* b, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::scale, a, ia, c, ic, n, *b);
}
void vDSP_vsmulD(const double* a, vDSP_Stride ia, const double* b, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::scale, a, ia, c, ic, n, *b);
}
void vDSP_vsdiv(const float* a, vDSP_Stride ia, const float* b, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::divide_number, a, ia, c, ic, n, *b);
}
void vDSP_vsdivD(const double* a, vDSP_Stride ia, const double* b, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::divide_number, a, ia, c, ic, n, *b);
}
void vDSP_vsma(const float* a, vDSP_Stride ia, const float* b, const float* c, vDSP_Stride ic, float* d, vDSP_Stride id,
               vDSP_Length n) noexcept {
  binary(Map::scale_add, a, ia, c, ic, d, id, n, *b);
}
void vDSP_vsmaD(const double* a, vDSP_Stride ia, const double* b, const double* c, vDSP_Stride ic, double* d,
                vDSP_Stride id, vDSP_Length n) noexcept {
  binary(Map::scale_add, a, ia, c, ic, d, id, n, *b);
}
void vDSP_vsmsa(const float* a, vDSP_Stride ia, const float* b, const float* c, float* d, vDSP_Stride id,
                vDSP_Length n) noexcept {
  unary(Map::scale_shift, a, ia, d, id, n, *b, *c);
}
void vDSP_vsmsaD(const double* a, vDSP_Stride ia, const double* b, const double* c, double* d, vDSP_Stride id,
                 vDSP_Length n) noexcept {
  unary(Map::scale_shift, a, ia, d, id, n, *b, *c);
}
void vDSP_vsq(const float* a, vDSP_Stride ia, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::square, a, ia, c, ic, n);
}
void vDSP_vsqD(const double* a, vDSP_Stride ia, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::square, a, ia, c, ic, n);
}
void vDSP_vabs(const float* a, vDSP_Stride ia, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::magnitude, a, ia, c, ic, n);
}
void vDSP_vabsD(const double* a, vDSP_Stride ia, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::magnitude, a, ia, c, ic, n);
}
void vDSP_vneg(const float* a, vDSP_Stride ia, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::negate, a, ia, c, ic, n);
}
void vDSP_vnegD(const double* a, vDSP_Stride ia, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::negate, a, ia, c, ic, n);
}
void vDSP_vclip(const float* a, vDSP_Stride ia, const float* b, const float* c, float* d, vDSP_Stride id,
                vDSP_Length n) noexcept {
  unary(Map::clip, a, ia, d, id, n, *b, *c);
}
void vDSP_vclipD(const double* a, vDSP_Stride ia, const double* b, const double* c, double* d, vDSP_Stride id,
                 vDSP_Length n) noexcept {
  unary(Map::clip, a, ia, d, id, n, *b, *c);
}
void vDSP_vthr(const float* a, vDSP_Stride ia, const float* b, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::raise, a, ia, c, ic, n, *b);
}
void vDSP_vthrD(const double* a, vDSP_Stride ia, const double* b, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::raise, a, ia, c, ic, n, *b);
}
void vDSP_vthres(const float* a, vDSP_Stride ia, const float* b, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::threshold, a, ia, c, ic, n, *b);
}
void vDSP_vthresD(const double* a, vDSP_Stride ia, const double* b, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  unary(Map::threshold, a, ia, c, ic, n, *b);
}
void vDSP_normalize(const float* a, vDSP_Stride ia, float* c, vDSP_Stride ic, float* mean, float* deviation,
                    vDSP_Length n) noexcept {
  normalize(a, ia, c, ic, mean, deviation, n);
}
void vDSP_normalizeD(const double* a, vDSP_Stride ia, double* c, vDSP_Stride ic, double* mean, double* deviation,
                     vDSP_Length n) noexcept {
  normalize(a, ia, c, ic, mean, deviation, n);
}
void vDSP_vfill(const float* a, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  fill(*a, c, ic, n);
}
void vDSP_vfillD(const double* a, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  fill(*a, c, ic, n);
}
void vDSP_vclr(float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  fill<float>(0, c, ic, n);
}
void vDSP_vclrD(double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  fill<double>(0, c, ic, n);
}
void vDSP_vramp(const float* a, const float* b, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  ramp(*a, *b, c, ic, n);
}
void vDSP_vrampD(const double* a, const double* b, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  ramp(*a, *b, c, ic, n);
}
void vDSP_sve(const float* a, vDSP_Stride ia, float* c, vDSP_Length n) noexcept {
  *c = static_cast<float>(total(Sum::values, a, ia, n));
}
void vDSP_sveD(const double* a, vDSP_Stride ia, double* c, vDSP_Length n) noexcept {
  *c = static_cast<double>(total(Sum::values, a, ia, n));
}
void vDSP_svesq(const float* a, vDSP_Stride ia, float* c, vDSP_Length n) noexcept {
  *c = static_cast<float>(total(Sum::squares, a, ia, n));
}
void vDSP_svesqD(const double* a, vDSP_Stride ia, double* c, vDSP_Length n) noexcept {
  *c = static_cast<double>(total(Sum::squares, a, ia, n));
}
void vDSP_meanv(const float* a, vDSP_Stride ia, float* c, vDSP_Length n) noexcept {
  *c = static_cast<float>(total(Sum::values, a, ia, n) / double(n));
}
void vDSP_meanvD(const double* a, vDSP_Stride ia, double* c, vDSP_Length n) noexcept {
  *c = static_cast<double>(total(Sum::values, a, ia, n) / double(n));
}
void vDSP_measqv(const float* a, vDSP_Stride ia, float* c, vDSP_Length n) noexcept {
  *c = static_cast<float>(total(Sum::squares, a, ia, n) / double(n));
}
void vDSP_measqvD(const double* a, vDSP_Stride ia, double* c, vDSP_Length n) noexcept {
  *c = static_cast<double>(total(Sum::squares, a, ia, n) / double(n));
}
void vDSP_rmsqv(const float* a, vDSP_Stride ia, float* c, vDSP_Length n) noexcept {
  *c = static_cast<float>(std::sqrt(total(Sum::squares, a, ia, n) / double(n)));
}
void vDSP_rmsqvD(const double* a, vDSP_Stride ia, double* c, vDSP_Length n) noexcept {
  *c = static_cast<double>(std::sqrt(total(Sum::squares, a, ia, n) / double(n)));
}
void vDSP_dotpr(const float* a, vDSP_Stride ia, const float* b, vDSP_Stride ib, float* c, vDSP_Length n) noexcept {
  *c = static_cast<float>(total(Sum::products, a, ia, b, ib, n));
}
void vDSP_dotprD(const double* a, vDSP_Stride ia, const double* b, vDSP_Stride ib, double* c, vDSP_Length n) noexcept {
  *c = static_cast<double>(total(Sum::products, a, ia, b, ib, n));
}
void vDSP_distancesq(const float* a, vDSP_Stride ia, const float* b, vDSP_Stride ib, float* c, vDSP_Length n) noexcept {
  *c = static_cast<float>(total(Sum::squared_differences, a, ia, b, ib, n));
}
void vDSP_distancesqD(const double* a, vDSP_Stride ia, const double* b, vDSP_Stride ib, double* c,
                      vDSP_Length n) noexcept {
  *c = static_cast<double>(total(Sum::squared_differences, a, ia, b, ib, n));
}
}  // extern "C"
