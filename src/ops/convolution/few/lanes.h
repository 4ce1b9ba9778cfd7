// Convolution of few source channels and short sums to 16, 32, 48 or 64 channels of the small image: those are the
// lanes of the vectors, and the source is broadcast. So nothing is copied per tap, and neither strides nor short rows
// cost lanes; the small image passes once through a transposition.
//
//   down      y[p][s] = sum over (c, ky, kx), in order, of w[c][ky][kx][s] * x[c][row + ky][step p + kx]
//   weights   dw[c][ky][kx][s] += sum over pixels, in order, of g[p][s] * x[c][row + ky][step p + kx]
//
// s is padded to a multiple of 16 (`width`) and cut into panels of 32, whose weights (gradients of a row) stay in L1;
// 14 pixels (taps) times two vectors of a panel fill the registers.
#pragma once

#include <cstddef>

#include "src/core/call_scratch.h"
#include "src/ops/convolution/common/problem.h"

namespace bnns {

// The map down; not for sinks, which take the next one. Scratch: the weights once; per thread a slab of the source for
// some rows and twice the small image's rows, 32 KB each or one row.
bool accepts_few_lanes(const PatchMap& p);
void run_few_lanes(const PatchMap& p, CallScratch& scratch);
// The weight gradient. Scratch: up to 16 times dW; per thread as above.
bool accepts_few_lanes_dw(const WeightMap& p);
void run_few_lanes_dw(const WeightMap& p, CallScratch& scratch);

// ---- what both share ------------------------------------------------------------------------------------------------

inline constexpr size_t kLanesUnit = 16;  // channels of the small image: width is a multiple
inline constexpr size_t kLanesMost = 64;
inline constexpr size_t kLanesRowFloats = 8192;  // of a few rows of the small image: 32 KB

// The x axis with every source column for a pixel, so that a slab holds whole rows and not phases of them.
PatchAxis lanes_columns(const PatchAxis& x);
// Rows of the small image that make a block.
size_t lanes_rows(const PatchAxis& y, const PatchAxis& x, size_t width);

// ---- kernels --------------------------------------------------------------------------------------------------------

// Rows of windows: element (c, ky, kx) of pixel (u, v) is x[c * channel_stride + ky * tap_row + kx + u * row_stride +
// v * step].
struct LaneWindows {
  const float* x = nullptr;
  size_t channels = 0, taps_y = 0, taps_x = 0, channel_stride = 0;
  ptrdiff_t tap_row = 0, row_stride = 0;
  size_t rows = 0, pixels = 0, step = 1;  // step 1 or 2
};
// Of `rows` rows of pixels on a slab made with lanes_columns(x).
LaneWindows lane_windows(const Slab& s, const PatchAxis& y, const PatchAxis& x, size_t channels, size_t rows);

// y[(u * pixels + v) * width + s] = the sum above, w[(c * taps + t) * width + s].
void lanes_sums(const LaneWindows& windows, const float* w, size_t width, float* y) noexcept;
// dw[(c * taps + t) * width + s] += the sum above, g[(u * pixels + v) * width + s]; taps_x 3, 5 or 7. Best where g fits
// L1, and for 7 taps with a width of 32. Moves ahead.
void lanes_dots(const LaneWindows& windows, const float* g, size_t width, float* dw, LinesAhead& ahead) noexcept;
// to[s * stride + p] = from[p * width + s] for s < channels, p < pixels.
void lanes_transpose(const float* from, size_t width, size_t pixels, size_t channels, float* to,
                     size_t stride) noexcept;

}  // namespace bnns
