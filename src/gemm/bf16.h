// Products of two bf16 operands on instructions that multiply pairs: AVX-512 BF16 (vdpbf16ps) and AMX (tdpbf16ps).
//
// Both add a[2p] b[2p] + a[2p+1] b[2p+1] to an f32 sum, and keep the pair (2p, 2p+1) of a row in 32 bits. A product of
// depth k is therefore a product of depth ceil(k / 2) whose "floats" are pairs: the driver cuts, packs and slices pairs
// exactly as it does floats. An odd last element is paired with zero in both operands.
//
// Rounding: vdpbf16ps makes two fused multiply-adds, to nearest even; tdpbf16ps adds the pairs of 16 in sequence. Both
// take subnormal operands for zero and flush subnormal sums to zero, so the bound of a sum of k terms is
//   2 eps k sum|a b| + k 2^-126 (max|a| + max|b| + 1).
#pragma once

#include <cstddef>

#include "src/core/isa.h"
#include "src/gemm/kernels.h"
#include "src/gemm/pack.h"

namespace bnns {

// Whether products of two bf16 operands run on pairs with this instruction set.
inline bool has_pair_kernels(Isa isa) {
  return isa >= Isa::avx512_bf16;
}

// The tile kernel on pairs. GemmBlock's depth, strides and floats are pairs here. A is a_depth_contiguous always, B is
// in packed panels always (b_stride = columns, no b_tail; b_copy only from b_rows), and both are padded with zero pairs
// up to a multiple of PairKernels::depth_unit, which `depth` does not count. For has_pair_kernels(isa) only.
struct PairKernels {
  TileKernels tile;
  size_t depth_unit = 1;
  bool copies = false;     // one full panel of B may come as b_rows
  size_t depth_block = 0;  // pairs, at most, where they are not turned
  size_t group = 0;        // panels of B that are packed together inside a task
};
PairKernels pair_kernels(Isa isa) noexcept;

inline size_t pairs_of(size_t depth) {
  return (depth + 1) / 2;
}

// Between rows of a packed tile of A, in pairs: an odd number of cache lines, so that the rows of a tile do not push
// each other out of the first cache.
inline size_t pair_row_stride(size_t pairs) {
  return (pairs + 15) / 16 * 16 + ((pairs + 15) / 16 % 2 == 0 ? 16 : 0);
}

// Pairs [pairs.begin, pairs.end) of rows of a plain bf16 matrix of `depth` columns, zeros up to a multiple of `unit`
// pairs behind them.
struct PairSource {
  const Lens& lens;
  Range rows, pairs;
  size_t depth = 0, unit = 1;
};
// panel(g)[r * row_stride + p], g = groups of out.tile rows: the form of A. Rows beyond the last are not written.
void pack_pair_rows(const PairSource& source, const PackedBlock& out, size_t row_stride) noexcept;
// panel(g)[p * out.tile + r]: the form of B. out.tile is 32; rows beyond the last are written with anything.
void pack_pair_panels(const PairSource& source, const PackedBlock& out) noexcept;

// to[j * to_stride + i] = or += the sum over slices, in order, of data[i * stride + j], rounded once.
struct TransposedSums {
  const float* data = nullptr;
  size_t stride = 0, rows = 0, columns = 0;
  size_t slices = 1, slice_stride = 0;
};
void store_transposed(const TransposedSums& sums, bool accumulate, uint16_t* to, size_t to_stride) noexcept;
void store_transposed(const TransposedSums& sums, bool accumulate, float* to, size_t to_stride) noexcept;

// A product whose B is read where it lies, in steps of at most 16 words of depth. Step s takes words p < pairs of
//   A: a[i * a_tile_stride + (s * 32 + r) * 16 + p]      row r of tile i, 32 rows a tile
//   B: b[at + offsets[s] + p * b_stride + j]             column j of the line that begins at `at`
// and c[(32 i + r) * c_stride + to + j] = or += the sum over steps. Lines: `samples` times `lines` of `columns` each,
// at and to growing by the strides named so. Rows and columns are computed 16 at a time: all three are long enough for
// that, and what stands there is arbitrary.
struct PairSteps {
  size_t rows = 0, steps = 0, pairs = 16;
  const float *a = nullptr, *b = nullptr;
  const float* next_a = nullptr;  // the first tile of the next call, or none
  size_t a_tile_stride = 0, b_stride = 0;
  const ptrdiff_t* offsets = nullptr;
  size_t samples = 1, lines = 1, columns = 0;
  size_t sample_b = 0, sample_c = 0, line_b = 0, line_c = 0;
  float* c = nullptr;
  size_t c_stride = 0;
  bool accumulate = false;
  Ahead ahead;
};
using PairStepsKernel = void (*)(const PairSteps&);
// Null where an instruction set has none: AMX only.
PairStepsKernel pair_steps_kernel(Isa isa) noexcept;

// The kernels behind pair_kernels.
namespace detail {
void pair_block_avx512(const GemmBlock& g);
void pair_block_amx(const GemmBlock& g);
void pair_steps_amx(const PairSteps& g);
}  // namespace detail

}  // namespace bnns
