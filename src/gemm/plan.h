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

// Small products of plain f32 operands skip what costs more than they do: their scratch is on the stack, and the tiles
// start without a plan. Sums are the same: one block of the depth.
inline constexpr size_t kSmallWork = 8192, kSmallSide = 256, kSmallDepth = 128;  // work: multiply-adds
inline constexpr size_t kSmallFloats = kSmallDepth * 32 + 16;                    // a panel of B, or 9 vectors
inline bool is_small(const GemmCall& call) {
  const auto unit = [](const Lens& x) {
    return x.type == FloatType::f32 && (x.rows_contiguous() || x.depth_contiguous());
  };
  return call.m <= kSmallSide && call.n <= kSmallSide && call.k <= kSmallDepth &&
         call.m * call.n * call.k <= kSmallWork && unit(call.a) && unit(call.b);
}

// From this size on, C is written with non-temporal stores: it would not stay in the caches anyway.
inline constexpr size_t kStreamSize = size_t{1} << 20;  // elements
bool can_stream(const GemmCall& call) noexcept;

}  // namespace bnns::detail
