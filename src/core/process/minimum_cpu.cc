// Everything else is compiled for x86-64-v2, and its first SSE4 instruction ends a process on an older CPU with SIGILL
// and not a word. This file is compiled for plain x86-64 and runs before all other constructors of the library. There
// is nothing to fall back to, and no entry point could refuse without running such code itself, so it does what the
// dynamic loader does with a library that it cannot use: one line and exit status 127. No atexit handler and no buffer
// of the program is touched: none has run yet.
#include "src/core/process/minimum_cpu.h"

#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bnns {

bool has_minimum(CpuFeatures features) noexcept {
  constexpr unsigned kBasic = 1u << 0 | 1u << 9 | 1u << 13 | 1u << 19 | 1u << 20 | 1u << 23, kExtended = 1u << 0;
  return (features.basic & kBasic) == kBasic && (features.extended & kExtended) == kExtended;
}

void require_minimum(CpuFeatures features) noexcept {
  if (has_minimum(features)) return;
  static constexpr char kLine[] =
      "OpenBNNS needs a CPU with SSE4.2 and POPCNT (x86-64-v2: Intel since 2008, AMD since 2011); this one lacks "
      "them\n";
  if (write(STDERR_FILENO, kLine, sizeof kLine - 1) < 0) _exit(127);  // the status says as much
  _exit(127);
}

namespace {

#if defined(__x86_64__)
[[gnu::constructor(101)]] void check_at_load() noexcept {
  CpuFeatures features;
  unsigned eax, ebx, edx;
  __get_cpuid(1, &eax, &ebx, &features.basic, &edx);
  __get_cpuid(0x80000001, &eax, &ebx, &features.extended, &edx);
  require_minimum(features);
}
#endif

}  // namespace
}  // namespace bnns
