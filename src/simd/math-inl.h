// Elementary functions of float vectors, of our own writing. For a Highway tag d over float and its vector x:
//
//   Exp Exp2 Expm1                                 math_exp-inl.h
//   Log Log2 Log1p                                 math_log-inl.h
//   Sigmoid LogSigmoid Softplus Tanh Erf           math_activation-inl.h
//   NormalCdf                                      the same             in double lanes
//   Sin Cos Tan Asin Acos Atan                     math_trig-inl.h      in double lanes
//   Pow Sinh Cosh Asinh Acosh Atanh                math_power-inl.h     in double lanes
//
// All: at most 2 ulp from the exact value over every finite float on every instruction set (4 ulp for Erf, Tan, Pow
// and the inverse hyperbolics); NaN gives NaN; +-inf and +-0 give the exact limit with its sign; overflow gives inf
// and underflow subnormals. A lane's result depends on that lane alone, so bodies and tails agree to the bit; between
// instruction sets the last bit may differ (SSE4 has no FMA). math_test.cc measures and prints the errors.

#if defined(BNNS_SIMD_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BNNS_SIMD_MATH_INL_H_
#undef BNNS_SIMD_MATH_INL_H_
#else
#define BNNS_SIMD_MATH_INL_H_
#endif

#include "src/simd/math_activation-inl.h"
#include "src/simd/math_exp-inl.h"
#include "src/simd/math_log-inl.h"
#include "src/simd/math_power-inl.h"
#include "src/simd/math_trig-inl.h"

#endif  // BNNS_SIMD_MATH_INL_H_
