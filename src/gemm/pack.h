// Operands of the GEMM core, seen through a lens, and how they are packed.
//
// An operand is a matrix of rows x depth: for A a row is a row of C, for B a row is a column of C; depth is the index
// that is summed over. The core never asks where an element lives: it asks the lens for a block, in the order the
// micro-kernel reads it. A convolution gives a lens that cuts patches straight out of NCHW; a plain matrix gives its
// strides and the core packs it, or reads it in place when that is cheaper.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/core/parallel.h"

namespace bnns {

// i8, u8: whole numbers as they are stored; a scale is the caller's business.
enum class FloatType : uint8_t { f32, f16, bf16, i8, u8 };
inline size_t bytes_of(FloatType type) {
  return type == FloatType::f32 ? 4 : type >= FloatType::i8 ? 1 : 2;
}

// What a packer writes: groups of `tile` rows, each group a panel
//   panel(g) = data + g * panel_stride,  panel(g)[k * tile + r] = element(rows.begin + g * tile + r, depth.begin + k)
// in f32. What stands for rows beyond rows.end (in the last group) is never looked at. panel_stride >= depth.size() *
// tile + 16: a packer may leave anything in the up to 15 floats that follow a panel, so that it can store whole
// vectors.
struct PackedBlock {
  float* data = nullptr;
  size_t tile = 0;
  size_t panel_stride = 0;
};

struct Lens {
  // Plain matrix (pack == nullptr): element (r, k) is data[r * row_stride + k * depth_stride], strides in elements.
  const void* data = nullptr;
  FloatType type = FloatType::f32;
  ptrdiff_t row_stride = 0, depth_stride = 0;

  // Anything else: a function that packs any block of it. It runs on several threads at once.
  void (*pack)(const void* context, Range rows, Range depth, const PackedBlock& out) = nullptr;
  const void* context = nullptr;

  bool strided() const { return pack == nullptr; }
  bool rows_contiguous() const { return strided() && row_stride == 1; }
  bool depth_contiguous() const { return strided() && depth_stride == 1; }
};

// A plain matrix. Either stride may be 0 (the same element again) or negative.
inline Lens strided_lens(const void* data, FloatType type, ptrdiff_t row_stride, ptrdiff_t depth_stride) {
  return {data, type, row_stride, depth_stride, nullptr, nullptr};
}

// Packs a block of a plain matrix. Vectorised when either stride is 1. Reads exactly the elements named.
void pack_strided(const Lens& lens, Range rows, Range depth, const PackedBlock& out) noexcept;

inline void pack(const Lens& lens, Range rows, Range depth, const PackedBlock& out) {
  lens.strided() ? pack_strided(lens, rows, depth, out) : lens.pack(lens.context, rows, depth, out);
}

}  // namespace bnns
