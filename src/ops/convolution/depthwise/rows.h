// Depthwise convolution of any window: a target row is a sum of shifted source rows, a weight gradient a few dot
// products of them. Bands of planes are copied into slabs in L1 or L2: f32, with zeros around them, the phases of a
// stride side by side. The copy is the conversion of 16-bit images too; the kernels behind it know neither borders nor
// types. (3x3 with few multiply-adds for each pixel that is copied: convolution/depthwise/tile.h.)
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/core/call_scratch.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/common/problem.h"

namespace bnns {

// Scratch per thread: the slab of one band, 32 KB or a few rows, and as many target rows where these are not plain.
bool accepts_depthwise_rows(const PatchMap& p);
void run_depthwise_rows(const PatchMap& p, CallScratch& scratch);
bool accepts_depthwise_rows_dw(const WeightMap& p);
void run_depthwise_rows_dw(const WeightMap& p, CallScratch& scratch);

// Rows that make a part for a sink, and the parts: of every depthwise map.
size_t depthwise_sink_rows(size_t width);
SinkParts depthwise_parts(const PatchMap& p);

// ---- slabs ----------------------------------------------------------------------------------------------------------

// An axis of a patch map with its taps in ascending order of coordinates: tap j of pixel p reads p * step + j * tap +
// first, and is kernel position kernel + j * kernel_step.
struct TapAxis {
  size_t pixels = 0, taps = 1, extent = 0, step = 1, tap = 1;
  ptrdiff_t first = 0, kernel = 0, kernel_step = 1;
  TapAxis() = default;
  explicit TapAxis(const PatchAxis& a);
  size_t span(size_t count) const {
    return (count - 1) * step + (taps - 1) * tap + 1;
  }  // coordinates of `count` pixels
};

// The slabs of one map: how rows and columns of a source lie in them.
struct SlabPlan {
  TapAxis y, x;
  size_t phases = 1, length = 0;  // of a row: as many phases of the step, each so long
  size_t band = 0, planes = 1;    // target rows, and planes, of one slab at most

  SlabPlan(const TapAxis& y_axis, const TapAxis& x_axis);
  size_t row() const { return phases * length; }
  size_t rows(size_t target_rows) const;  // that the kernels read for so many
  size_t plane(size_t target_rows) const { return rows(target_rows) * row(); }
  size_t floats() const;         // of a slab and what vectors read past its end
  size_t staged_floats() const;  // of a source that is not plain, before it is split

  // The slab of target rows [u0, u1) of planes [c, c + count) of a sample.
  void fill(const ImageSource& source, size_t n, size_t c, size_t count, size_t u0, size_t u1, float* slab,
            float* staged) const;
};

// ---- kernels --------------------------------------------------------------------------------------------------------

// Source planes in a slab: tap (ky, kx) of target pixel (u, v) of a plane is
//   data[plane * plane_stride + (u * step + ky * tap) * row_stride + column(kx) + v]
struct DepthwiseSlab {
  const float* data = nullptr;
  size_t plane_stride = 0, row_stride = 0;
  size_t step = 1, tap = 1;  // along y
  size_t taps_y = 0, taps_x = 0;
  size_t tap_x = 1, phases = 1, length = 0;
  size_t rows = 0, pixels = 0;  // of the target
  size_t column(size_t kx) const { return kx * tap_x % phases * length + kx * tap_x / phases; }
};
DepthwiseSlab slab_of(const SlabPlan& plan, const float* data, size_t rows);

// Weights, or their gradients, of the first plane and tap.
struct DepthwiseWeights {
  const float* data = nullptr;
  ptrdiff_t plane = 0, y = 0, x = 0;
};

// Target planes.
struct DepthwiseSums {
  float* y = nullptr;
  size_t plane_stride = 0, row_stride = 0;
  const float* bias = nullptr;  // one for each plane, or none
};

// Source rows of `planes` planes into slabs: slab row r is source row low + r, zeros where there is none.
struct SlabRows {
  const float* from = nullptr;  // row 0, column 0 of the first plane
  size_t plane_stride = 0, row_stride = 0;
  ptrdiff_t low = 0, height = 0;  // rows of the source that exist
  size_t lead = 0, count = 0;     // columns: the first that is read lies at `lead` of the slab
  size_t rows = 0, step = 1, phases = 1, length = 0;
};
void depthwise_split(const SlabRows& rows, size_t planes, float* slab) noexcept;

// y(u, v) = sum over taps of weight * slab, then + bias.
void depthwise_sums(const DepthwiseSlab& slab, size_t planes, const DepthwiseWeights& w,
                    const DepthwiseSums& out) noexcept;

// The phases of a stride, a vector past their end readable: pixel v of phase k of a row is
//   data[k * phase_stride + plane * plane_stride + row * row_stride + v]
struct DepthwisePhases {
  const float* data = nullptr;
  size_t phase_stride = 0, plane_stride = 0, row_stride = 0, count = 1;
};
// As rows of `width` pixels: pixel v of phase k goes to column v * count + k.
void depthwise_merge(const DepthwisePhases& phases, size_t planes, size_t rows, size_t width, float* to,
                     size_t to_plane_stride, size_t to_row_stride) noexcept;

// lanes[(plane * taps + tap) * kSumLanes] += sums of g(u, v) * slab, spread over a vector's lanes (64-byte aligned).
inline constexpr size_t kSumLanes = 16;
void depthwise_products(const DepthwiseSlab& slab, size_t planes, const float* g, size_t g_plane_stride,
                        size_t g_row_stride, float* lanes) noexcept;
// sum[i] += the lanes of i, which become zero.
void depthwise_fold(float* lanes, size_t count, double* sum) noexcept;

}  // namespace bnns
