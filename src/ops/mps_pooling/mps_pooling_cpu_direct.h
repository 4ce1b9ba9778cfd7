// Pooling of whole planes in 2x2 stride 2, 3x3 stride 2 and 3x3 stride 1 windows with AVX-512, in one pass: the plan
// that mps_pooling_cpu_direct_simd.cc makes and runs.
//
// Texels stay as they lie in the image, 4 of them to a vector: a neighbour is 4 floats on, stride 2 picks every second
// quarter of a register. Along a row of windows everything from taps to results happens in registers, a block of 4
// windows at a time; the same loop brings in the source rows of the next row of windows, so that memory and arithmetic
// work side by side.
#pragma once

#include "src/core/parallel.h"
#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps {

struct DirectSide {
  int64_t first = 0, size = 0, windows = 0;  // the first tap of window 0 (0 or -1); pixels of the source; windows
  int64_t zero_pad = 0;
};

struct DirectPlan {
  PoolKind kind = PoolKind::max;
  PoolEdge edge = PoolEdge::zero;
  bool backward = false, stream = false;
  int kernel = 2, stride = 2;
  DirectSide x, y;
  int64_t blocks = 0;                                        // of 4 windows in a row
  int64_t staged = 0;                                        // vectors of a source row that windows read
  int64_t source_row = 0, gradient_row = 0, target_row = 0;  // elements from row to row

  // Scratch, in floats. Source rows lie between kFront and kBack floats that read as what is outside.
  static constexpr int64_t kFront = 16, kBack = 96, kRows = 8, kBest = 4;
  int64_t row_floats() const { return kFront + (x.size + 3) / 4 * 16 + kBack; }
  int64_t block_floats() const { return 16 * blocks; }
  // kRows source rows and one outside; of kBest of them the maxima and where; two rows to come; K rows of divisors.
  size_t scratch_bytes() const {
    return sizeof(float) * static_cast<size_t>((kRows + 1) * row_floats() + (2 * kBest + 2 + kernel) * block_floats());
  }
};

// Whether this machine's instruction set has the kernels.
bool has_direct() noexcept;
// Runs some planes (image by image, slice by slice) in scratch_bytes() of scratch, aligned to 64 bytes.
void direct_planes(const DirectPlan& plan, const PoolBackward& e, Range planes, void* scratch) noexcept;

}  // namespace bnns::mps
