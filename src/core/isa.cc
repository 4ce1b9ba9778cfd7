#include "src/core/isa.h"

#include <algorithm>
#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bnns {

namespace detail {

std::atomic<int> chosen_isa{-1};

int detect_isa() noexcept {
  Isa choice = best_isa();
  if (const char* text = std::getenv("BNNS_MAX_ISA")) {
    Isa cap;
    if (parse_isa(text, &cap)) choice = std::min(choice, cap);
  }
  chosen_isa.store(static_cast<int>(choice), std::memory_order_relaxed);
  return static_cast<int>(choice);
}

}  // namespace detail

namespace {

Isa ask_machine() noexcept {
#if defined(__x86_64__)
  // The features Highway's AVX3 and AVX2 targets compile for; __builtin_cpu_supports also asks the OS (xgetbv).
  // clang 14 does not know "f16c" there, so that bit (leaf 1, ECX 29) is read directly.
  unsigned eax, ebx, ecx = 0, edx;
  const bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx >> 29 & 1);
  const bool avx2 = f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512cd");
  return avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::baseline;
#else
  return Isa::baseline;
#endif
}

std::atomic<int> machine_isa{-1};

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
  else
    return false;
  return true;
}

const char* isa_name(Isa isa) noexcept {
  switch (isa) {
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
