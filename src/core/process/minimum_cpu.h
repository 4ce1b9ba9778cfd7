// The check at load that the CPU has what the library is compiled for.
#pragma once

namespace bnns {

// Words of cpuid: leaf 1 ECX and leaf 0x80000001 ECX.
struct CpuFeatures {
  unsigned basic = 0, extended = 0;
};

// Whether they cover x86-64-v2: SSE3, SSSE3, SSE4.1, SSE4.2, POPCNT, CMPXCHG16B, LAHF.
bool has_minimum(CpuFeatures features) noexcept;

// Writes the line to stderr and ends the process with status 127 unless the features are enough.
void require_minimum(CpuFeatures features) noexcept;

}  // namespace bnns
