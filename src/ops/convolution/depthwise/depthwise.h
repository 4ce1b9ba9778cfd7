// Depthwise convolution: as many groups as channels, so every map is one plane to one plane and there is no matrix to
// multiply. Direct kernels on slabs: a row of targets is a sum of shifted rows, a weight gradient a few dot products.
// The work is a few multiply-adds per element moved, so what counts is that each plane is read and written once.
#pragma once

#include <cstddef>

#include "src/core/call_scratch.h"
#include "src/ops/convolution/common/patch_map.h"
#include "src/ops/convolution/gemm/dw.h"
#include "src/ops/convolution/gemm/patches.h"

namespace bnns {

inline bool is_depthwise(const ConvolutionMap& map) {
  return map.groups > 1 && map.small_channels == 1 && map.large_channels == 1;
}

// The maps of convolution/common/patch_map.h for groups of one channel. Scratch: one slab, at most 256 KB or one row,
// per thread.
void depthwise_down(const ConvolutionMap& map, size_t batch, const ImageSource& source, const ImageTarget& target,
                    const WeightView& w, CallScratch& scratch, size_t threads);
void depthwise_up(const ConvolutionMap& map, size_t batch, const ImageSource& source, const ImageTarget& target,
                  const WeightView& w, CallScratch& scratch, size_t threads);
void depthwise_weights(const ConvolutionMap& map, size_t batch, const ImageSource& small, const ImageSource& large,
                       const WeightTarget& target, CallScratch& scratch, size_t threads);

// Rows that make a part for a sink, and the parts.
size_t depthwise_sink_rows(size_t width);
SinkParts depthwise_sink_parts(const PatchAxis& y, const PatchAxis& x);

// ---- kernels ------------------------------------------------------------------------------------------------------

// Taps of a slab of one channel: offsets, in the order of the kernel.
struct DirectTaps {
  const float* slab = nullptr;
  ptrdiff_t target_row_stride = 0;
  const ptrdiff_t* offset = nullptr;
  size_t taps = 0;
};

// y[r * y_stride + v] = sum over taps, in order, of weight[t] * slab[r * target_row_stride + offset[t] + v]
void direct_rows(const DirectTaps& t, const float* weight, size_t rows, size_t width, float* y,
                 size_t y_stride) noexcept;

// sum[t] += sum over rows and columns of g[r * g_stride + v] * slab[r * target_row_stride + offset[t] + v]
void direct_dots(const DirectTaps& t, const float* g, size_t g_stride, size_t rows, size_t width, double* sum) noexcept;

}  // namespace bnns
