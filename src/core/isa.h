// The instruction set that kernels use: the best the machine has, lowered by BNNS_MAX_ISA or set_max_isa.
#pragma once

#include <atomic>
#include <string_view>
#include <vector>

namespace bnns {

// baseline: SSE4.2 on x86-64, NEON on arm64. avx512_bf16 and amx run the kernels of avx512, except for products of two
// bf16 operands (src/gemm). Each has all that the one before it has: compare with >=.
enum class Isa : int { baseline = 0, avx2 = 1, avx512 = 2, avx512_bf16 = 3, amx = 4 };

namespace detail {
extern std::atomic<int> chosen_isa;  // -1 until first asked
int detect_isa() noexcept;
}  // namespace detail

// The set in use. A relaxed load after the first call.
inline Isa isa() noexcept {
  const int chosen = detail::chosen_isa.load(std::memory_order_relaxed);
  return static_cast<Isa>(chosen >= 0 ? chosen : detail::detect_isa());
}

Isa best_isa() noexcept;             // what the machine has, ignoring caps
void set_max_isa(Isa cap) noexcept;  // never above best_isa()
// "sse4" (or "baseline"), "avx2", "avx512", "avx512_bf16", "amx"
bool parse_isa(std::string_view name, Isa* isa) noexcept;
const char* isa_name(Isa isa) noexcept;

}  // namespace bnns
