// Elementary functions of float vectors, by src/simd/math-inl.h: at most 2 ulp, 4 for the power.

#include "src/veclib/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/veclib/functions_simd.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "src/simd/dispatch.h"
#include "src/simd/loops-inl.h"
#include "src/simd/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace bnns::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using veclib::Function;

void ApplyFunction(Function what, const float* x, float* y, size_t n) {
  switch (what) {
    case Function::exp:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return Exp(d, v); });
    case Function::log:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return Log(d, v); });
    case Function::sin:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return Sin(d, v); });
    case Function::cos:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return Cos(d, v); });
    case Function::tanh:
      return Transform(x, y, n, [](auto d, auto v) HWY_ATTR { return Tanh(d, v); });
  }
}

void ApplyPower(const float* x, const float* y, float* z, size_t n) {
  Transform2(x, y, z, n, [](auto d, auto v, auto w) HWY_ATTR { return Pow(d, v, w); });
}

}  // namespace bnns::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace bnns::veclib {

void apply(Function what, const float* x, float* y, size_t n) noexcept {
  BNNS_DISPATCH(ApplyFunction)(what, x, y, n);
}
void power(const float* x, const float* y, float* z, size_t n) noexcept {
  BNNS_DISPATCH(ApplyPower)(x, y, z, n);
}

}  // namespace bnns::veclib
#endif
