// Sums and extremes of dense vectors.
//
// A sum of floats takes blocks of kSumBlock elements in four f32 vectors each, and adds the blocks in double: nearly as
// exact as double throughout, at the speed of f32. Blocks begin at multiples of kSumBlock, so that a vector with
// strides, which is copied block by block, gives the same bits as a dense one. An instruction set has its own number of
// lanes and so its own order within a block.

#include <algorithm>
#include <limits>

#include "src/veclib/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/veclib/reduce_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using veclib::Extreme;
using veclib::kSumBlock;
using veclib::Sum;

// f(sum, p) adds the term of the vector that p loads. Lanes beyond n load as zeros, and `tail` leaves their term out.
template <class T, class F>
HWY_INLINE double SumBlocks(size_t n, F f) {
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  double total = 0;
  for (size_t begin = 0; begin < n; begin += kSumBlock) {
    const size_t end = std::min(n, begin + kSumBlock);
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    size_t i = begin;
    const auto whole = [&](const T* p, size_t k) HWY_ATTR { return hn::LoadU(d, p + i + k * N); };
    for (; i + 4 * N <= end; i += 4 * N) {
      s0 = f(s0, whole, 0), s1 = f(s1, whole, 1), s2 = f(s2, whole, 2), s3 = f(s3, whole, 3);
    }
    for (; i + N <= end; i += N) s0 = f(s0, whole, 0);
    if (i < end) {
      const auto partial = [&](const T* p, size_t) HWY_ATTR { return LoadPartial(d, p + i, end - i); };
      s1 = hn::IfThenElse(hn::FirstN(d, end - i), f(s1, partial, 0), s1);
    }
    total += double(hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)))));
  }
  return total;
}

template <class T>
double SumVectors(Sum what, const T* a, const T* b, T s, size_t n) {
  const hn::ScalableTag<T> d;
  switch (what) {
    case Sum::values:
      return SumBlocks<T>(n, [&](auto sum, auto v, size_t k) HWY_ATTR { return hn::Add(sum, v(a, k)); });
    case Sum::squares:
      return SumBlocks<T>(n, [&](auto sum, auto v, size_t k) HWY_ATTR {
        const auto x = v(a, k);
        return hn::MulAdd(x, x, sum);
      });
    case Sum::products:
      return SumBlocks<T>(n, [&](auto sum, auto v, size_t k) HWY_ATTR { return hn::MulAdd(v(a, k), v(b, k), sum); });
    case Sum::squared_differences:
      return SumBlocks<T>(n, [&](auto sum, auto v, size_t k) HWY_ATTR {
        const auto x = hn::Sub(v(a, k), v(b, k));
        return hn::MulAdd(x, x, sum);
      });
    case Sum::squared_deviations: {
      const auto mean = hn::Set(d, s);
      return SumBlocks<T>(n, [&](auto sum, auto v, size_t k) HWY_ATTR {
        const auto x = hn::Sub(v(a, k), mean);
        return hn::MulAdd(x, x, sum);
      });
    }
  }
  return 0;
}

// The largest f(v), f one of v, -v, |v|. Comparisons with NaN are false, so NaN never wins.
template <class T, class F>
HWY_INLINE T Largest(const T* a, size_t n, T least, F f) {
  const hn::ScalableTag<T> d;
  const size_t N = hn::Lanes(d);
  auto m0 = hn::Set(d, least), m1 = m0, m2 = m0, m3 = m0;
  const auto larger = [&](auto m, auto v) HWY_ATTR { return hn::IfThenElse(hn::Gt(v, m), v, m); };
  size_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
    m0 = larger(m0, f(hn::LoadU(d, a + i))), m1 = larger(m1, f(hn::LoadU(d, a + i + N)));
    m2 = larger(m2, f(hn::LoadU(d, a + i + 2 * N))), m3 = larger(m3, f(hn::LoadU(d, a + i + 3 * N)));
  }
  for (; i + N <= n; i += N) m0 = larger(m0, f(hn::LoadU(d, a + i)));
  if (i < n) m1 = hn::IfThenElse(hn::FirstN(d, n - i), larger(m1, f(LoadPartial(d, a + i, n - i))), m1);
  return hn::GetLane(hn::MaxOfLanes(d, larger(larger(m0, m1), larger(m2, m3))));
}

template <class T>
T ExtremeOf(Extreme what, const T* a, size_t n) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  if (what == Extreme::largest) return Largest(a, n, -kInfinity, [](auto v) HWY_ATTR { return v; });
  if (what == Extreme::smallest) return -Largest(a, n, -kInfinity, [](auto v) HWY_ATTR { return hn::Neg(v); });
  return Largest(a, n, T(0), [](auto v) HWY_ATTR { return hn::Abs(v); });
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns::veclib {

double sum(Sum what, const float* a, const float* b, float s, size_t n) noexcept {
  return BNNS_DISPATCH(SumVectors<float>)(what, a, b, s, n);
}
double sum(Sum what, const double* a, const double* b, double s, size_t n) noexcept {
  return BNNS_DISPATCH(SumVectors<double>)(what, a, b, s, n);
}
float extreme(Extreme what, const float* a, size_t n) noexcept {
  return BNNS_DISPATCH(ExtremeOf<float>)(what, a, n);
}
double extreme(Extreme what, const double* a, size_t n) noexcept {
  return BNNS_DISPATCH(ExtremeOf<double>)(what, a, n);
}

}  // namespace bnns::veclib
#endif
