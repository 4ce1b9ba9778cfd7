// vDSP's changes of type: floating point to integers and back.

#include <cmath>
#include <limits>

#include "src/veclib/strides.h"
#include "vecLib/vDSP.h"

namespace bnns::veclib {
namespace {

enum class Rounding { towards_zero, nearest };

// The nearest value that Integer has; 0 for NaN. Limits are compared in double, which holds all of 32 bits.
template <Rounding rounding, class Integer, class T>
Integer to_integer(T x) noexcept {
  const double value = rounding == Rounding::nearest ? std::rint(double(x)) : std::trunc(double(x));
  constexpr double kLow = std::numeric_limits<Integer>::min(), kHigh = std::numeric_limits<Integer>::max();
  const double limited = value < kLow ? kLow : value > kHigh ? kHigh : value;
  return limited == limited ? static_cast<Integer>(limited) : Integer(0);
}

template <Rounding rounding, class T, class Integer>
void to_integers(const T* a, Stride ia, Integer* c, Stride ic, size_t n) noexcept {
  if (ia == 1 && ic == 1) {  // strides that the compiler knows
    for (size_t i = 0; i < n; ++i) c[i] = to_integer<rounding, Integer>(a[i]);
    return;
  }
  for (Stride i = 0; i < static_cast<Stride>(n); ++i) c[i * ic] = to_integer<rounding, Integer>(a[i * ia]);
}

template <class From, class To>
void convert(const From* a, Stride ia, To* c, Stride ic, size_t n) noexcept {
  if (ia == 1 && ic == 1) {
    for (size_t i = 0; i < n; ++i) c[i] = static_cast<To>(a[i]);
    return;
  }
  for (Stride i = 0; i < static_cast<Stride>(n); ++i) c[i * ic] = static_cast<To>(a[i * ia]);
}

}  // namespace
}  // namespace bnns::veclib

using namespace bnns::veclib;

extern "C" {

void vDSP_vfix8(const float* a, vDSP_Stride ia, char* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::towards_zero>(a, ia, c, ic, n);
}
void vDSP_vfix8D(const double* a, vDSP_Stride ia, char* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::towards_zero>(a, ia, c, ic, n);
}
void vDSP_vfix16(const float* a, vDSP_Stride ia, short* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::towards_zero>(a, ia, c, ic, n);
}
void vDSP_vfix16D(const double* a, vDSP_Stride ia, short* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::towards_zero>(a, ia, c, ic, n);
}
void vDSP_vfix32(const float* a, vDSP_Stride ia, int* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::towards_zero>(a, ia, c, ic, n);
}
void vDSP_vfix32D(const double* a, vDSP_Stride ia, int* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::towards_zero>(a, ia, c, ic, n);
}
void vDSP_vfixu8(const float* a, vDSP_Stride ia, unsigned char* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::towards_zero>(a, ia, c, ic, n);
}
void vDSP_vfixu8D(const double* a, vDSP_Stride ia, unsigned char* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::towards_zero>(a, ia, c, ic, n);
}
void vDSP_vfixu16(const float* a, vDSP_Stride ia, unsigned short* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::towards_zero>(a, ia, c, ic, n);
}
void vDSP_vfixu16D(const double* a, vDSP_Stride ia, unsigned short* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::towards_zero>(a, ia, c, ic, n);
}
void vDSP_vfixu32(const float* a, vDSP_Stride ia, unsigned int* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::towards_zero>(a, ia, c, ic, n);
}
void vDSP_vfixu32D(const double* a, vDSP_Stride ia, unsigned int* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::towards_zero>(a, ia, c, ic, n);
}
void vDSP_vfixr8(const float* a, vDSP_Stride ia, char* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::nearest>(a, ia, c, ic, n);
}
void vDSP_vfixr8D(const double* a, vDSP_Stride ia, char* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::nearest>(a, ia, c, ic, n);
}
void vDSP_vfixr16(const float* a, vDSP_Stride ia, short* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::nearest>(a, ia, c, ic, n);
}
void vDSP_vfixr16D(const double* a, vDSP_Stride ia, short* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::nearest>(a, ia, c, ic, n);
}
void vDSP_vfixr32(const float* a, vDSP_Stride ia, int* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::nearest>(a, ia, c, ic, n);
}
void vDSP_vfixr32D(const double* a, vDSP_Stride ia, int* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::nearest>(a, ia, c, ic, n);
}
void vDSP_vfixru8(const float* a, vDSP_Stride ia, unsigned char* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::nearest>(a, ia, c, ic, n);
}
void vDSP_vfixru8D(const double* a, vDSP_Stride ia, unsigned char* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::nearest>(a, ia, c, ic, n);
}
void vDSP_vfixru16(const float* a, vDSP_Stride ia, unsigned short* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::nearest>(a, ia, c, ic, n);
}
void vDSP_vfixru16D(const double* a, vDSP_Stride ia, unsigned short* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::nearest>(a, ia, c, ic, n);
}
void vDSP_vfixru32(const float* a, vDSP_Stride ia, unsigned int* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::nearest>(a, ia, c, ic, n);
}
void vDSP_vfixru32D(const double* a, vDSP_Stride ia, unsigned int* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  to_integers<Rounding::nearest>(a, ia, c, ic, n);
}
void vDSP_vflt8(const char* a, vDSP_Stride ia, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
void vDSP_vflt8D(const char* a, vDSP_Stride ia, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
void vDSP_vflt16(const short* a, vDSP_Stride ia, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
void vDSP_vflt16D(const short* a, vDSP_Stride ia, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
void vDSP_vflt32(const int* a, vDSP_Stride ia, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
void vDSP_vflt32D(const int* a, vDSP_Stride ia, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
void vDSP_vfltu8(const unsigned char* a, vDSP_Stride ia, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
void vDSP_vfltu8D(const unsigned char* a, vDSP_Stride ia, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
void vDSP_vfltu16(const unsigned short* a, vDSP_Stride ia, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
void vDSP_vfltu16D(const unsigned short* a, vDSP_Stride ia, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
void vDSP_vfltu32(const unsigned int* a, vDSP_Stride ia, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
void vDSP_vfltu32D(const unsigned int* a, vDSP_Stride ia, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
void vDSP_vspdp(const float* a, vDSP_Stride ia, double* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
void vDSP_vdpsp(const double* a, vDSP_Stride ia, float* c, vDSP_Stride ic, vDSP_Length n) noexcept {
  convert(a, ia, c, ic, n);
}
}  // extern "C"
