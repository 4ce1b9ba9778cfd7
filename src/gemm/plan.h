// Inside the GEMM core: a problem brought into one form, and the paths that can run it.
#pragma once

#include <cstddef>

#include "src/gemm/gemm.h"
#include "src/gemm/kernels.h"

namespace bnns::detail {

inline size_t divide_up(size_t a, size_t b) {
  return (a + b - 1) / b;
}
inline size_t round_up(size_t a, size_t b) {
  return divide_up(a, b) * b;
}

// C has unit column stride; a problem with transposed C arrives here with its operands exchanged.
struct GemmCall {
  size_t m, n, k;
  GemmInit init;
  const Lens &a, &b;
  float* c;
  size_t c_stride;
  const float* bias;
  const GemmEpilogue& epilogue;
  bool exchanged;  // rows and columns mean the caller's columns and rows
  size_t threads;
  uint16_t* bf16 = nullptr;  // GemmOutput's, where rows and columns are not exchanged
  size_t bf16_stride = 0;

  // Writes the part of init that precedes the sum into a block of C; true when the sum must then be added to it.
  bool prepare(Range rows, Range columns) const;
  void finish(Range rows, Range columns) const;
};

// threads_for without a call where one thread is the answer.
inline size_t threads_of(const GemmCall& call, size_t tasks, size_t work) {
  return call.threads == 1 || tasks == 1 || work < 2 * kMinThreadWork ? 1 : threads_for(call.threads, tasks, work);
}

// From this size on, C is written around the caches: it would not stay in them anyway.
inline constexpr size_t kStreamSize = size_t{1} << 20;  // elements
bool can_stream(const GemmCall& call) noexcept;

// One of m, n is tiny, or k is 1 (skinny.cc).
bool skinny_workspace_bytes(const GemmCall& call, size_t* bytes) noexcept;  // false: not for this path
bool skinny_run(const GemmCall& call, void* workspace) noexcept;            // false: not for this path, nothing done

// Everything else (tiles.cc).
size_t tiles_workspace_bytes(const GemmCall& call) noexcept;
void tiles_run(const GemmCall& call, void* workspace) noexcept;

}  // namespace bnns::detail
