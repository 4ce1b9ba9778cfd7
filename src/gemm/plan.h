// Inside the GEMM core: a problem brought into one form. implementations.h has what can run it.
#pragma once

#include <cstddef>

#include "src/core/checked.h"
#include "src/core/isa.h"
#include "src/gemm/gemm.h"
#include "src/gemm/kernels.h"

namespace bnns::detail {

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
  Isa isa;                   // asked for once: it may change during the call
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

// From this size on, C is written with non-temporal stores: it would not stay in the caches anyway.
inline constexpr size_t kStreamSize = size_t{1} << 20;  // elements
bool can_stream(const GemmCall& call) noexcept;

}  // namespace bnns::detail
