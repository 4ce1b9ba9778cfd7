// Prefetches that compilers do not make by themselves.
#pragma once

namespace bnns {

// A line that will be written: it comes in a state in which the store need not ask the other cores again. (Compilers
// make a read of __builtin_prefetch(line, 1) unless told that the CPU knows prefetchw, which all of ours do: one that
// does not takes it for a nop.)
inline void prefetch_to_write(const float* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*line));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace bnns
