// Depthwise convolution with 3x3 windows on planes as they lie in memory: stride 1 and 2, both directions, and the
// weight gradient. Anything else takes the slabs of convolution/depthwise/rows.cc. Sources that are not plain f32,
// and targets that are not plain or are added to, pass through a dense band of rows in scratch, so that every layout
// runs the same kernels and gives the same bits.
#pragma once

#include <cstddef>

#include "src/core/call_scratch.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/common/problem.h"

namespace bnns {

// Scratch per thread: a band of source rows and one of target rows, 256 KB or a few rows each, or nothing for plain
// f32.
bool accepts_depthwise_tile(const PatchMap& p);
void run_depthwise_tile(const PatchMap& p, CallScratch& scratch);
bool accepts_depthwise_tile_dw(const WeightMap& p);
void run_depthwise_tile_dw(const WeightMap& p, CallScratch& scratch);

// ---- kernels ------------------------------------------------------------------------------------------------------

// Planes in memory, for prefetching their lines.
struct DepthwisePlanes {
  const float* first = nullptr;
  size_t plane_stride = 0, row_stride = 0;
  const float* next = nullptr;  // what will be read after them, or null: what follows them
};

// Source planes as a map with 3x3 taps sees them: tap (ky, kx) of pixel (u, v) is row step * u + ky + top, column
// step * v + kx + left; zero outside the plane.
struct DepthwiseWindow {
  const float* x = nullptr;  // row 0 of the first; rows that no pixel in work reads need not exist
  size_t plane_stride = 0;
  ptrdiff_t row_stride = 0, height = 0, width = 0;
  ptrdiff_t top = 0, left = 0;
  int step = 1;
  const float* zeros = nullptr;  // width of them
  bool far = false;              // planes come from memory, not from a cache
  const float* next = nullptr;   // as above
  DepthwisePlanes planes() const { return {x, plane_stride, static_cast<size_t>(row_stride), next}; }
  size_t samples = 1, sample_stride = 0;  // dot products: a plane of each before the next one
};

// Small planes as the large ones see them over a stride of 2: pixel 2 p + phase gathers taps_y[phase] rows from
// p + first_y[phase] on, and columns alike; the phases of an axis have one and two taps.
struct DepthwiseSpread {
  const float* x = nullptr;
  size_t plane_stride = 0;
  ptrdiff_t row_stride = 0, height = 0, width = 0;
  ptrdiff_t large_width = 0;
  size_t taps_y[2] = {}, taps_x[2] = {};
  ptrdiff_t first_y[2] = {}, first_x[2] = {};
  const float* zeros = nullptr;
};

// Target planes with their parameters.
struct DepthwiseOutput {
  float* y = nullptr;  // where row 0 of the first would be
  size_t plane_stride = 0, row_stride = 0;
  const float* weight = nullptr;  // nine for each plane, in the order of the taps; of a spread, of phase 0 first
  const float* bias = nullptr;    // one for each plane, or none
};

// y = sum over taps, in order, of weight * x, then + bias if there is one, for `planes` planes.
void depthwise_rows(const DepthwiseWindow& source, size_t planes, Range rows, size_t pixels,
                    const DepthwiseOutput& out) noexcept;
// The same for rows of large planes; rows.begin is even.
void depthwise_large_rows(const DepthwiseSpread& source, size_t planes, Range rows,
                          const DepthwiseOutput& out) noexcept;

// Sums for the nine taps of each plane, kDepthwiseLanes apart and spread over a vector's lanes (64-byte aligned):
// lanes[tap] += g(u, v) * x over all pixels.
inline constexpr size_t kDepthwiseLanes = 16;
struct DepthwiseGradient {
  const float* g = nullptr;  // where row 0 of the first plane would be
  size_t plane_stride = 0, row_stride = 0;
  float* lanes = nullptr;
  size_t sample_stride = 0;
  const float* next = nullptr;  // as above
};
void depthwise_dots(const DepthwiseWindow& source, size_t planes, Range rows, size_t pixels,
                    const DepthwiseGradient& gradient) noexcept;
// sum[tap] += the lanes, which become zero.
void depthwise_dot_sums(float* lanes, double* sum) noexcept;

}  // namespace bnns
