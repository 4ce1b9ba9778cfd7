// C[m,n] = init + A[m,k] * B[k,n], summed in f32: the product under fully connected, convolution, matmul, attention
// and LSTM. README.md says what runs when.
//
// Guarantees
//   - The same bits for any number of threads: blocks and the split of k depend on the shape and instruction set only.
//   - overwrite never reads C, so NaN or garbage in it cannot leak.
//   - Nothing outside the elements of A, B and C is read or written.
//   - No allocation, no lock; a small problem runs on the caller alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/core/parallel.h"
#include "src/gemm/pack.h"

namespace bnns {

enum class GemmInit : uint8_t {
  overwrite,     // C = A B
  accumulate,    // C += A B
  bias_rows,     // C[i,j] = bias[i] + A B
  bias_columns,  // C[i,j] = bias[j] + A B
};

struct GemmProblem {
  size_t m = 0, n = 0, k = 0;  // any may be 0; with k = 0 the result is init alone
  GemmInit init = GemmInit::overwrite;
};

// Element (i, j) of C is data[i * row_stride + j * column_stride]. One of the strides must be 1 (or its extent <= 1).
struct GemmOutput {
  float* data = nullptr;
  size_t row_stride = 0, column_stride = 1;
  // Where the caller's epilogue will only round C to bf16, and nothing is added to C: its destination, element (i, j)
  // at bf16[i * bf16_row_stride + j]. gemm may then store there itself, leave data alone and not call the epilogue.
  uint16_t* bf16 = nullptr;
  size_t bf16_row_stride = 0;
};

// Called once for every finished block of C (all of k summed, init included), on the thread that finished it, while the
// block is in its cache; the blocks cover C exactly once. For activations and for conversion to f16 or bf16.
struct GemmEpilogue {
  void (*run)(void* context, Range rows, Range columns) = nullptr;
  void* context = nullptr;
};

// Bytes of workspace that gemm needs with up to `threads` threads; 0 for small plain problems. Of the lenses only the
// types, strides and pack are looked at, so it can be asked before data pointers are known.
// threads must be the resolved number (not 0), the same that gemm is given.
size_t gemm_workspace_bytes(const GemmProblem& problem, const Lens& a, const Lens& b, const GemmOutput& c,
                            size_t threads) noexcept;

// Whether a product is so small that gemm needs no workspace and no threads for it: plain f32 operands with a unit
// stride each, at most 8192 multiply-adds.
bool gemm_is_small(const GemmProblem& problem, const Lens& a, const Lens& b, const GemmOutput& c) noexcept;

// The name of the algorithm that gemm takes now (implementations.h). Of lenses and output it looks at types and
// strides.
const char* gemm_implementation(const GemmProblem& problem, const Lens& a, const Lens& b, const GemmOutput& c) noexcept;

// Computes C. bias has m or n elements (bias_rows, bias_columns), else unused. workspace is 64-byte aligned and has
// gemm_workspace_bytes(...) bytes, or is null when that is 0. A, B and bias must not overlap C or the workspace.
void gemm(const GemmProblem& problem, const Lens& a, const Lens& b, const GemmOutput& c, const float* bias,
          const GemmEpilogue& epilogue, void* workspace, size_t threads) noexcept;

}  // namespace bnns
