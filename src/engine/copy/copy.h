// Copies between tensors, whatever their layouts, strides and types; what copy, transpose, permute, tile, shuffle and
// others are made of.
//
// A copy is a list of axes, each with an extent and a stride on either side. Axes are ordered by the destination's
// memory, and neighbours that are dense on both sides are merged, so most copies end up with one or two axes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/tensor/tensor.h"

namespace bnns {

inline constexpr size_t kMaxCopyAxes = 2 * kMaxRank + 1;  // repeating splits every axis in two; a batch adds one

struct CopyAxis {
  size_t extent = 1;
  ptrdiff_t from = 0, to = 0;  // strides in elements; `to` is positive once in a problem, `from` may be negative;
                               // `from` is 0 for what is repeated
  bool operator==(const CopyAxis&) const = default;
};

enum class CopyKind : uint8_t {
  bytes,     // same type and meaning: elements are moved as they are
  integers,  // whole-byte integers with the same scale and bias: exact, saturating
  values,    // through f32, by the rules of the types
};

struct CopyProblem {
  Tensor from, to;
  CopyKind kind = CopyKind::bytes;
  size_t rank = 0;  // axes after merging, fastest of the destination first; at least 1
  CopyAxis axes[kMaxCopyAxes];
  size_t from_offset = 0, to_offset = 0;  // of the element with all coordinates 0, in elements
  bool accumulate = false;                // of kind values: added to what is there

  std::string text(const char* name) const;  // "copy f32 3x4 to f16 3x4"
};

// Sets the axes of a problem whose tensors and kind are set: any order and strides of any sign; offsets are those of
// the element with all coordinates 0. Extents of 1 are dropped, neighbours merged, the destination is walked forwards.
void set_copy_axes(CopyProblem* problem, const CopyAxis* axes, size_t n, ptrdiff_t from_offset = 0,
                   ptrdiff_t to_offset = 0);

// Elements are read and written once; the bytes of from and to must be apart. data of both tensors is what is walked.
void copy_tensor(const CopyProblem& problem, size_t n_threads);

// ---- kernels ----------------------------------------------------------------------------------------------------

// A dense stretch with non-temporal stores.
void copy_streaming(const void* from, void* to, size_t bytes) noexcept;

// to[i + j to_stride] = from[i from_stride + j] for i < rows, j < columns: rows of the source become columns.
// stream: whole lines by non-temporal stores; hwy::FlushStream() makes them visible to other threads.
void transpose_tile(const uint8_t* from, ptrdiff_t from_stride, uint8_t* to, ptrdiff_t to_stride, size_t rows,
                    size_t columns, bool stream = false) noexcept;
void transpose_tile(const uint16_t* from, ptrdiff_t from_stride, uint16_t* to, ptrdiff_t to_stride, size_t rows,
                    size_t columns, bool stream = false) noexcept;
void transpose_tile(const uint32_t* from, ptrdiff_t from_stride, uint32_t* to, ptrdiff_t to_stride, size_t rows,
                    size_t columns, bool stream = false) noexcept;
void transpose_tile(const uint64_t* from, ptrdiff_t from_stride, uint64_t* to, ptrdiff_t to_stride, size_t rows,
                    size_t columns, bool stream = false) noexcept;

}  // namespace bnns
