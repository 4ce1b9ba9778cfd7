// Images that are not rows of f32, on their way through the kernels of f32: in pieces that stay in L1.
//
// A piece is some small planes, or a band of rows of a large one. What it reads is converted to buffers of the thread,
// the kernel runs on these as if they were the tensor (it is given the call with other pointers and strides, the same
// numbers of planes and rows), and what it wrote is rounded to the tensor's type. So every kernel serves every type and
// layout, and the arithmetic is the same.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/ops/pooling/common/kernels.h"

namespace bnns {

// Planes at a time, or rows of the written image of one plane; 0 planes: a useful piece does not fit.
struct ConvertPieces {
  int64_t planes = 0, rows = 0;
};

// A call as a kernel sees it: images that need it are packed f32. Its data may not be used: it is there to choose a
// kernel by.
template <class Call>
struct ConvertedCall {
  Call seen;
  ConvertPieces pieces;
  bool in_pieces() const { return pieces.planes > 0; }
};
// bands: the kernel takes some rows of a plane.
ConvertedCall<PoolingForward> pooling_pieces(const PoolingForward& call, bool bands) noexcept;
ConvertedCall<PoolingBackward> pooling_pieces(const PoolingBackward& call, bool bands) noexcept;

// Runs a kernel on pieces of a call.
template <class Call>
using PoolingKernel = void (*)(const Call& call, Range planes, Span rows) noexcept;
void pooling_in_pieces(const PoolingForward& call, ConvertPieces pieces, Range planes, Span rows,
                       PoolingKernel<PoolingForward> kernel) noexcept;
void pooling_in_pieces(const PoolingBackward& call, ConvertPieces pieces, Range planes, Span rows,
                       PoolingKernel<PoolingBackward> kernel) noexcept;

// n pixels of 16-bit floats that follow each other, from row y of a plane on. stream: whole lines by non-temporal
// stores; then pooling_finish_runs() must follow.
void pooling_load_run(const Planes& planes, const void* plane, int64_t y, int64_t n, float* to) noexcept;
void pooling_store_run(const Planes& planes, void* plane, int64_t y, int64_t n, const float* from,
                       bool stream) noexcept;
void pooling_finish_runs() noexcept;

}  // namespace bnns
