// Which instruction set runs, and how a kernel is picked.
//
// Highway compiles the body of a *_simd.cc once per target. We use its headers only and choose the target ourselves,
// so that nothing has to be linked, the choice can be capped (BNNS_MAX_ISA, BNNSExtSetMaxISA) and tests can run every
// body on one machine. At the bottom of a *_simd.cc:
//
//   #if HWY_ONCE
//   namespace bnns {
//   void scale(const float* x, float* y, size_t n) noexcept { BNNS_DISPATCH(Scale)(x, y, n); }
//   }
//   #endif
#pragma once

#include <hwy/highway.h>

#include "src/core/isa.h"

#if HWY_ARCH_X86_64
// `kernel` is its name inside bnns::HWY_NAMESPACE. One indirect call per public call, no stored pointers. _FOR: for an
// instruction set asked for earlier in the call, so that a change of it cannot mix two.
#define BNNS_DISPATCH_FOR(set, kernel) \
  ((set) >= ::bnns::Isa::avx512 ? &N_AVX3::kernel : (set) == ::bnns::Isa::avx2 ? &N_AVX2::kernel : &N_SSE4::kernel)
#else
#define BNNS_DISPATCH_FOR(set, kernel) (static_cast<void>(set), &HWY_STATIC_DISPATCH(kernel))
#endif
#define BNNS_DISPATCH(kernel) BNNS_DISPATCH_FOR(::bnns::isa(), kernel)
