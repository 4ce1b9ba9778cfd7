// Depthwise convolution: as many groups as channels, so every map is one plane to one plane and there is no matrix to
// multiply. Direct kernels on slabs: a row of targets is a sum of shifted rows, a weight gradient a few dot products.
// The work is a few multiply-adds per element moved, so what counts is that each plane is read and written once.
#pragma once

#include <cstddef>

#include "src/core/call_scratch.h"
#include "src/core/checked.h"
#include "src/ops/convolution/common/problem.h"

namespace bnns {

// Scratch: one slab, at most 256 KB or one row, per thread.
bool accepts_depthwise_slab(const PatchMap& p);
void run_depthwise_slab(const PatchMap& p, CallScratch& scratch);
bool accepts_depthwise_slab_dw(const WeightMap& p);
void run_depthwise_slab_dw(const WeightMap& p, CallScratch& scratch);

// Rows that make a part for a sink, and the parts, also those of depthwise/tile.
size_t depthwise_sink_rows(size_t width);
SinkParts depthwise_parts(const PatchMap& p);

// Rows of a plane at a time, so that its slab stays in L2: whole parts. The floats of that slab.
size_t depthwise_slab_rows(const PatchAxis& y, const PatchAxis& x);
size_t depthwise_slab_floats(const PatchAxis& y, const PatchAxis& x);

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

// Weights and offsets of a phase's taps.
struct PhaseTaps {
  float* weight;
  ptrdiff_t* offset;
  static size_t floats(size_t taps) { return round_up(taps, 16) + round_up(2 * taps, 16); }
  PhaseTaps(float* buffer, size_t taps)
      : weight(buffer), offset(reinterpret_cast<ptrdiff_t*>(buffer + round_up(taps, 16))) {}

  void set_weights(const PatchAxis& y, const PatchAxis& x, const float* w, const WeightView& view) const {
    for (size_t t = 0; t < y.taps * x.taps; ++t) {
      const size_t ky = y.kernel_first + t / x.taps * y.kernel_step, kx = x.kernel_first + t % x.taps * x.kernel_step;
      weight[t] = w[static_cast<ptrdiff_t>(ky) * view.y + static_cast<ptrdiff_t>(kx) * view.x];
    }
  }
  DirectTaps of(const Slab& slab, size_t taps) const {
    for (size_t t = 0; t < taps; ++t) offset[t] = slab.tap_offset(t);
    return {slab.data, slab.target_row_stride, offset, taps};
  }
};

}  // namespace bnns
