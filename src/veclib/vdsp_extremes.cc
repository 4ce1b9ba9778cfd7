// vDSP's extremes, matrices and sorting.

#include <vecLib/cblas.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/veclib/strides.h"
#include "vecLib/vDSP.h"

namespace bnns::veclib {
namespace {

// The extreme value and, where `index` is wanted, the first element that has it: a block that raises the extreme is
// searched for it.
template <class T>
T extreme_of(Extreme what, const T* a, Stride ia, size_t n, size_t* index = nullptr) noexcept {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  T copy[kBlock];
  T best = what == Extreme::largest ? -kInfinity : what == Extreme::smallest ? kInfinity : T(0);
  if (index) *index = 0;
  for (size_t i = 0; i < n; i += kBlock) {
    const size_t count = std::min(kBlock, n - i);
    const T* block = dense(a + static_cast<Stride>(i) * ia, ia, count, copy);
    const T value = extreme(what, block, count);
    if (what == Extreme::smallest ? value < best : value > best) {
      best = value;
      if (index) *index = i + static_cast<size_t>(std::find(block, block + count, value) - block);
    }
  }
  return best;
}

void gemm(const float* a, const float* b, float* c, int m, int n, int p) noexcept {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, p, 1, a, p, b, n, 0, c, n);
}
void gemm(const double* a, const double* b, double* c, int m, int n, int p) noexcept {
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, p, 1, a, p, b, n, 0, c, n);
}

template <class T>
void multiply(const T* a, Stride ia, const T* b, Stride ib, T* c, Stride ic, size_t m, size_t n, size_t p) noexcept {
  constexpr size_t kMost = std::numeric_limits<int>::max();
  if (ia == 1 && ib == 1 && ic == 1 && m && n && p && m <= kMost && n <= kMost && p <= kMost) {
    return gemm(a, b, c, int(m), int(n), int(p));
  }
  const auto at = [](auto* x, Stride stride, size_t i) -> auto& {
    return x[static_cast<Stride>(i) * stride];
  };
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (size_t k = 0; k < p; ++k) sum += double(at(a, ia, i * p + k)) * double(at(b, ib, k * n + j));
      at(c, ic, i * n + j) = static_cast<T>(sum);
    }
  }
}

// Tiles of 16 x 16: the 16 lines that a tile reads and those that it writes stay in L1.
template <class T>
void transpose(const T* a, Stride ia, T* c, Stride ic, size_t m, size_t n) noexcept {
  constexpr size_t kTile = 16;
  for (size_t i0 = 0; i0 < m; i0 += kTile) {
    for (size_t j0 = 0; j0 < n; j0 += kTile) {
      for (size_t i = i0; i < std::min(m, i0 + kTile); ++i) {
        for (size_t j = j0; j < std::min(n, j0 + kTile); ++j) {
          c[static_cast<Stride>(i * n + j) * ic] = a[static_cast<Stride>(j * m + i) * ia];
        }
      }
    }
  }
}

// NaN last: with them anywhere else the comparison would be no order, and std::sort undefined.
template <class T>
void sort(T* c, size_t n, int order) noexcept {
  T* const end = std::partition(c, c + n, [](T x) { return !std::isnan(x); });
  if (order >= 0) return std::sort(c, end);
  std::sort(c, end, [](T a, T b) { return a > b; });
}

}  // namespace
}  // namespace bnns::veclib

using namespace bnns::veclib;

extern "C" {

void vDSP_maxv(const float* a, vDSP_Stride ia, float* c, vDSP_Length n) noexcept {
  *c = extreme_of(Extreme::largest, a, ia, n);
}
void vDSP_maxvD(const double* a, vDSP_Stride ia, double* c, vDSP_Length n) noexcept {
  *c = extreme_of(Extreme::largest, a, ia, n);
}
void vDSP_minv(const float* a, vDSP_Stride ia, float* c, vDSP_Length n) noexcept {
  *c = extreme_of(Extreme::smallest, a, ia, n);
}
void vDSP_minvD(const double* a, vDSP_Stride ia, double* c, vDSP_Length n) noexcept {
  *c = extreme_of(Extreme::smallest, a, ia, n);
}
void vDSP_maxmgv(const float* a, vDSP_Stride ia, float* c, vDSP_Length n) noexcept {
  *c = extreme_of(Extreme::magnitude, a, ia, n);
}
void vDSP_maxmgvD(const double* a, vDSP_Stride ia, double* c, vDSP_Length n) noexcept {
  *c = extreme_of(Extreme::magnitude, a, ia, n);
}
void vDSP_maxvi(const float* a, vDSP_Stride ia, float* c, vDSP_Length* i, vDSP_Length n) noexcept {
  size_t index;
  *c = extreme_of(Extreme::largest, a, ia, n, &index);
  *i = static_cast<vDSP_Length>(static_cast<Stride>(index) * ia);
}
void vDSP_maxviD(const double* a, vDSP_Stride ia, double* c, vDSP_Length* i, vDSP_Length n) noexcept {
  size_t index;
  *c = extreme_of(Extreme::largest, a, ia, n, &index);
  *i = static_cast<vDSP_Length>(static_cast<Stride>(index) * ia);
}
void vDSP_minvi(const float* a, vDSP_Stride ia, float* c, vDSP_Length* i, vDSP_Length n) noexcept {
  size_t index;
  *c = extreme_of(Extreme::smallest, a, ia, n, &index);
  *i = static_cast<vDSP_Length>(static_cast<Stride>(index) * ia);
}
void vDSP_minviD(const double* a, vDSP_Stride ia, double* c, vDSP_Length* i, vDSP_Length n) noexcept {
  size_t index;
  *c = extreme_of(Extreme::smallest, a, ia, n, &index);
  *i = static_cast<vDSP_Length>(static_cast<Stride>(index) * ia);
}
void vDSP_mmul(const float* a, vDSP_Stride ia, const float* b, vDSP_Stride ib, float* c, vDSP_Stride ic, vDSP_Length m,
               vDSP_Length n, vDSP_Length p) noexcept {
  multiply(a, ia, b, ib, c, ic, m, n, p);
}
void vDSP_mmulD(const double* a, vDSP_Stride ia, const double* b, vDSP_Stride ib, double* c, vDSP_Stride ic,
                vDSP_Length m, vDSP_Length n, vDSP_Length p) noexcept {
  multiply(a, ia, b, ib, c, ic, m, n, p);
}
void vDSP_mtrans(const float* a, vDSP_Stride ia, float* c, vDSP_Stride ic, vDSP_Length m, vDSP_Length n) noexcept {
  transpose(a, ia, c, ic, m, n);
}
void vDSP_mtransD(const double* a, vDSP_Stride ia, double* c, vDSP_Stride ic, vDSP_Length m, vDSP_Length n) noexcept {
  transpose(a, ia, c, ic, m, n);
}
void vDSP_vsort(float* c, vDSP_Length n, int order) noexcept {
  sort(c, n, order);
}
void vDSP_vsortD(double* c, vDSP_Length n, int order) noexcept {
  sort(c, n, order);
}
}  // extern "C"
