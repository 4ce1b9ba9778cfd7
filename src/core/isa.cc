#include "src/core/isa.h"

#include <algorithm>
#include <cstdlib>

#include "src/core/log.h"
#include "src/core/process/minimum_cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace bnns {

namespace detail {

std::atomic<int> chosen_isa{-1};

int detect_isa() noexcept {
  const char* text = std::getenv("BNNS_MAX_ISA");
  Isa cap = best_isa();
  const bool understood = !text || parse_isa(text, &cap);
  const Isa choice = std::min(best_isa(), cap);
  chosen_isa.store(static_cast<int>(choice), std::memory_order_relaxed);
  if (!understood) log_ignored_setting("BNNS_MAX_ISA", text, "sse4, avx2, avx512, avx512_bf16 or amx");
  return static_cast<int>(choice);
}

}  // namespace detail

namespace {

#if defined(__x86_64__)
// The tile registers exist, and the kernel lets this process use them: it must be asked once (their 8 KB are part of
// every context switch from then on). Leaf 0x1D, which describes the tiles, is left alone: some hypervisors hide it.
bool may_use_amx(unsigned leaf7_edx) noexcept {
  constexpr unsigned kBf16 = 1u << 22, kTile = 1u << 24;
  if ((leaf7_edx & kBf16) == 0 || (leaf7_edx & kTile) == 0) return false;
#if defined(__linux__)
  // The tile configuration and data are states 17 and 18 of XCR0.
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr unsigned kTileStates = 3u << 17;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return (low & kTileStates) == kTileStates && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}
#endif

Isa ask_machine() noexcept {
#if defined(__x86_64__)
  // The features Highway's AVX3 and AVX2 targets compile for; __builtin_cpu_supports also asks the OS (xgetbv).
  // clang 14 does not know "f16c" there, so that bit (leaf 1, ECX 29) is read directly.
  unsigned eax = 0, ebx, ecx = 0, edx;
  const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx >> 29 & 1);
  const bool avx2 = f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  if (!avx512) return avx2 ? Isa::avx2 : Isa::baseline;
  unsigned leaf7_edx = 0, leaf7_1_eax = 0;
  __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &leaf7_edx);
  if (eax >= 1) __get_cpuid_count(7, 1, &leaf7_1_eax, &ebx, &ecx, &edx);
  if ((leaf7_1_eax >> 5 & 1) == 0) return Isa::avx512;
  if (may_use_amx(leaf7_edx)) return Isa::amx;
  // Without AMX, pairs pay on AMD only: a core of Zen 4 runs 228 GFLOP/s of vdpbf16ps beside 114 of f32 FMA, one of
  // Emerald Rapids 88 beside 175.
  __get_cpuid(0, &eax, &ebx, &ecx, &edx);
  constexpr unsigned kIntel = 0x756e6547;  // "Genu"
  return ebx == kIntel ? Isa::avx512 : Isa::avx512_bf16;
#else
  return Isa::baseline;
#endif
}

std::atomic<int> machine_isa{-1};

// The check at load: a static library takes in an object only for a name that another one needs.
[[gnu::used]] constexpr auto kCheckAtLoad = &require_minimum;

}  // namespace

// Asked once: cpuid traps in a virtual machine and takes microseconds there.
Isa best_isa() noexcept {
  int isa = machine_isa.load(std::memory_order_relaxed);
  if (isa < 0) {
    isa = static_cast<int>(ask_machine());
    machine_isa.store(isa, std::memory_order_relaxed);
  }
  return static_cast<Isa>(isa);
}

void set_max_isa(Isa cap) noexcept {
  detail::chosen_isa.store(static_cast<int>(std::min(cap, best_isa())), std::memory_order_relaxed);
}

bool parse_isa(std::string_view name, Isa* isa) noexcept {
  if (name == "sse4" || name == "baseline")
    *isa = Isa::baseline;
  else if (name == "avx2")
    *isa = Isa::avx2;
  else if (name == "avx512")
    *isa = Isa::avx512;
  else if (name == "avx512_bf16")
    *isa = Isa::avx512_bf16;
  else if (name == "amx")
    *isa = Isa::amx;
  else
    return false;
  return true;
}

const char* isa_name(Isa isa) noexcept {
  switch (isa) {
    case Isa::amx:
      return "amx";
    case Isa::avx512_bf16:
      return "avx512_bf16";
    case Isa::avx512:
      return "avx512";
    case Isa::avx2:
      return "avx2";
    default:
      break;
  }
#if defined(__x86_64__)
  return "sse4";
#else
  return "baseline";
#endif
}

}  // namespace bnns
