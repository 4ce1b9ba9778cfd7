// The vector kernels of convolution, besides the GEMM core's tile kernel.
#pragma once

#include <cstddef>

#include "src/ops/convolution/common/source.h"

namespace bnns {

// A row of the slab: `count` source values that begin at coordinate `lead` of the row, zeros elsewhere, split into
// `step` phases of `length`: value at coordinate x goes to row[x % step * length + x / step]. Only the first `phases`
// are made.
void split_row(const float* from, size_t lead, size_t count, size_t step, size_t phases, size_t length,
               float* row) noexcept;

// to[2 i] = a[i], to[2 i + 1] = b[i].
void interleave(const float* a, const float* b, size_t count, float* to) noexcept;

// to[2 i] = or += values[i], nothing between is touched.
void store_every_second(const float* values, size_t count, bool accumulate, float* to) noexcept;

// Patches of `pixels` of the block's pixels from `first` on, for taps [t0, t1) of all `channels` of the slab, depth
// k = c * (t1 - t0) + t - t0. Reads exactly what it names.
struct PatchRange {
  const Slab* slab = nullptr;
  size_t channels = 0, t0 = 0, t1 = 0;
  size_t rows = 0, width = 0;  // of the block
  size_t first = 0, pixels = 0;
};

// out[k * panel + j]: pixels side by side, as the tile kernel reads B.
void pack_patches(const PatchRange& range, size_t panel, float* out) noexcept;

// The same with depth rows `stride` floats apart and all pixels of the block in one row: the weight gradient's A.
inline void copy_patches(const PatchRange& range, size_t stride, float* out) noexcept {
  pack_patches(range, stride, out);
}

// Sums of some slices, transposed: to[j * to_stride + i] = or += sum over slices, in order, of
// from[slice * slice_stride + i * from_stride + j], for i < rows, j < columns.
struct SlicedSums {
  const float* from = nullptr;
  size_t slices = 1, slice_stride = 0, from_stride = 0;
};
void store_transposed(const SlicedSums& sums, size_t rows, size_t columns, bool accumulate, float* to,
                      size_t to_stride) noexcept;

// to[i] = from[i], whole cache lines by non-temporal stores; before another thread may read them: stream_end.
void stream_values(const float* from, size_t n, float* to) noexcept;
void stream_end() noexcept;

// y[i] += b, or y[i] = y[i] + x[i].
void add_constant(float* y, float b, size_t n) noexcept;
void add_values(const float* x, float* y, size_t n) noexcept;
// sum of x[i], four accumulators, the order depends on n alone.
float sum_values(const float* x, size_t n) noexcept;

}  // namespace bnns
