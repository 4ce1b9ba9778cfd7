// Pooling of whole planes in 2x2 stride 2, 3x3 stride 2 and 3x3 stride 1 windows with AVX-512, in one pass: the plan
// that mps_pooling/cpu/direct.cc makes and mps_pooling/cpu/rows_*_simd.cc and small_simd.cc run.
//
// Texels come straight from the image, 4 of them to a vector of f32: a neighbour is 4 floats on, stride 2 picks every
// second quarter of a register. Along a row of windows everything from taps to results happens in registers, a block of
// windows at a time: as many as fill a cache line of an image (4 of f32, 8 of f16).
#pragma once

#include <algorithm>

#include "src/core/parallel.h"
#include "src/ops/mps_pooling/mps_pooling.h"

namespace bnns::mps {

struct DirectSide {
  int64_t first = 0, size = 0, windows = 0;  // the first tap of window 0 (0 or -1); pixels of the source; windows
  int64_t zero_pad = 0;
};

// What a kernel walks along: rows of windows; or, stride 1 and small planes, columns (f32), or a plane with a border in
// scratch (f16).
enum class DirectForm : uint8_t { rows, columns, bordered };

struct DirectPlan {
  PoolKind kind = PoolKind::max;
  PoolEdge edge = PoolEdge::zero;
  bool backward = false, stream = false;
  DirectForm form = DirectForm::rows;
  // Gradient, stride 2: rows of the target are no whole lines. The two rows that windows finish at a time come together
  // in scratch, so that all lines are written as one.
  bool paired = false;
  int kernel = 2, stride = 2;
  DirectSide x, y;
  int64_t block = 4, blocks = 0;                             // windows of a block; blocks in a row
  int64_t source_row = 0, gradient_row = 0, target_row = 0;  // elements from row to row

  // Scratch, in floats.
  int64_t row_floats() const { return (x.size + 7) / 8 * 32; }
  int64_t block_floats() const { return 4 * block * blocks; }
  static constexpr int64_t kCodes = 9, kMasks = 5;
  // A row of what is outside; two of the target; of two source rows the maxima and where; two rows to come; K rows of
  // divisors; codes of taps; masks.
  size_t row_scratch_bytes() const {
    const auto bytes =
        sizeof(float) * static_cast<size_t>(3 * row_floats() + (2 * 2 + 2 + kernel) * block_floats() + 16 * kCodes) +
        sizeof(uint16_t) * static_cast<size_t>(kMasks * block / 4 * blocks);
    return (bytes + 63) / 64 * 64;
  }
  // Small planes of f32: what windows send and where and where their divisors lie, row by row; then a plane of results.
  int64_t column_floats() const { return 32 * (y.size + 1) + (y.size + 16) / 16 * 16; }
  // Of f16: a plane with a border; what windows send, with a border, and where; where divisors lie; a plane of results.
  int64_t half_pitch() const { return (std::max(x.size, x.windows) + 4 + 7) / 8 * 8; }
  int64_t half_texel_floats() const { return 2 * half_pitch() * (y.size + 4); }
  int64_t half_window_floats() const { return 4 * half_pitch() * (y.windows + 3) + 16; }
  size_t scratch_bytes() const {
    if (form == DirectForm::rows) return row_scratch_bytes();
    const int64_t results = 4 * std::max(x.size * y.size, x.windows * y.windows) + 32;
    const int64_t halves = half_texel_floats() + 2 * half_window_floats() + y.windows + 16;
    return row_scratch_bytes() + sizeof(float) * static_cast<size_t>(std::max(column_floats(), halves) + results);
  }
};

// Runs some planes (image by image, slice by slice) in scratch_bytes() of scratch, aligned to 64 bytes.
using DirectKernel = void (*)(const DirectPlan& plan, const PoolEncode& e, Range planes, void* scratch);

// The kernel of a plan's form, window, type and kind.
DirectKernel rows_forward_kernel(const DirectPlan& plan, const PoolEncode& e) noexcept;
DirectKernel rows_backward_kernel(const DirectPlan& plan, const PoolEncode& e) noexcept;
DirectKernel small_kernel(const DirectPlan& plan, const PoolEncode& e) noexcept;

}  // namespace bnns::mps
