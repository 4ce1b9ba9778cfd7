// Convolution with few target channels: direct sums instead of a matrix product. The product repays the packing of its
// patches by the number of target channels; with 1 to 24 of them it does not, and its tiles are not full either.
//
// A block is some rows of a sample's targets. Its source rows are copied once into a slab with zeros around, and the
// block is computed flat: pixel (u, v) has number u * S + v, where S is the length of a slab row, so that a tap is one
// offset for all pixels and vectors run on across rows. The S - width numbers between rows are computed for nothing.
#pragma once

#include <cstddef>
#include <cstdlib>

#include "src/core/call_scratch.h"
#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/common/problem.h"

namespace bnns {

// The patch map, scratch 1.5 MB per thread at most, and the weights once.
bool accepts_few_tile(const PatchMap& p);
void run_few_tile(const PatchMap& p, CallScratch& scratch);
SinkParts few_tile_parts(const PatchMap& p);
// Whether a map fits the slab and pays, with the x axis given instead of its own. Follows from the shape alone.
bool few_fits(const PatchMap& p, const PatchAxis& x);

// The transposed form, where the source is much smaller than the target (a kernel without padding, backward): every
// tap's product with the source plane is added where it belongs, and no sum meets the zeros around.
bool accepts_few_transposed(const PatchMap& p);
void run_few_transposed(const PatchMap& p, CallScratch& scratch);
// The same for one or two target channels: a load of the source then serves all taps of a row instead of one or two
// channels.
bool accepts_few_fold(const PatchMap& p);
void run_few_fold(const PatchMap& p, CallScratch& scratch);
// The map up over strides of 2 with few channels of the large image: all phases on one slab.
bool accepts_few_phases(const PatchMap& p);
void run_few_phases(const PatchMap& p, CallScratch& scratch);

// The weight gradient, with few channels of the small image.
bool accepts_few_dw(const WeightMap& p);
void run_few_dw(const WeightMap& p, CallScratch& scratch);

// ---- the slab, for all -------------------------------------------------------------------------------------------

inline constexpr size_t kFewMostRows = 24;       // target channels of a group
inline constexpr size_t kFewFloats = 96 * 1024;  // of a slab: 384 KB
inline constexpr size_t kFewFlat = 4096;         // numbers of a block, about

// Coordinates that the taps of one pixel span, less one.
inline size_t few_span(const PatchAxis& a) {
  return (a.taps - 1) * static_cast<size_t>(std::abs(a.tap));
}

// Compact: every column of taps has a copy of its own, whose rows are as long as those of the target, so that no number
// is computed for nothing. It costs a copy of the source per column of taps. Small planes of several samples then lie
// side by side in a row, so that vectors are full.
struct FewSlab {
  size_t length = 0;                 // S
  size_t samples = 1;                // of a block; a divisor of the batch
  size_t rows = 0, source_rows = 0;  // of a block: of the target, of the source
  size_t copies = 1;                 // columns of taps, or 1
  size_t padded = 0;                 // length of a source row with zeros around
  size_t channel_stride = 0;
  size_t flat = 0;  // numbers of a block

  FewSlab(const PatchAxis& y, const PatchAxis& x, size_t channels, bool compact, size_t batch);
  // Floats of the slab and of the buffer beside it.
  size_t floats(size_t channels) const { return round_up(channels * channel_stride + kSlack, 16); }
  size_t buffer_floats(const PatchAxis& x) const {
    return round_up(2 * x.extent + (copies > 1 ? source_rows * padded : 0), 16);
  }
  size_t flat_of(size_t target_rows, size_t width) const { return (target_rows - 1) * length + samples * width; }
  ptrdiff_t tap_offset(const PatchAxis& y, const PatchAxis& x, size_t tap) const;
  // Source rows of target rows [u0, u1) of samples from n on and channels [c0, c0 + channels).
  void fill(const ImageSource& source, const PatchAxis& y, const PatchAxis& x, size_t n, size_t c0, size_t channels,
            size_t u0, size_t u1, float* to, float* buffer) const;

  static constexpr size_t kSlack = 256;  // floats that vectors may touch beyond the last row
};

// The same columns of some rows of a plane, stride floats apart. buffer has space for 2 * count.
void few_copy_source(const ImageSource& source, size_t n, size_t c, Range rows, size_t first, size_t count, float* to,
                     size_t stride, float* buffer);

// ---- kernels ------------------------------------------------------------------------------------------------------

inline constexpr size_t kFewRows = 8;         // of a tile, by three vectors or more
inline constexpr size_t kFewTallRows = 13;    // of one by two: for sources beyond L1, which are read less often then
inline constexpr size_t kFewNear = 6 * 1024;  // floats of a source that stay in L1: 24 KB

// y[r * y_stride + j] = sum over channels and taps, in order, of a[c * a_stride + t * rows + r] * x[c * channel_stride
// + offset[t] + j] for j < flat, rounded up to a multiple of 16.
enum class FewStore : unsigned char {
  plain,
  add,           // y += the sum, for j < flat only
  non_temporal,  // y and y_stride are whole lines, flat a multiple of 16; then stream_end()
};
struct FewTile {
  size_t rows = 0, channels = 0, taps = 0, flat = 0;
  const float* x = nullptr;
  size_t channel_stride = 0;
  const ptrdiff_t* offset = nullptr;
  const float* a = nullptr;
  size_t a_stride = 0;
  float* y = nullptr;
  size_t y_stride = 0;
  FewStore store = FewStore::plain;
  const float* bias = nullptr;  // of each row, or none; only with non_temporal
  // Memory that will be read soon: prefetched some lines at a time.
  const float *ahead = nullptr, *ahead_end = nullptr;
  size_t ahead_lines = 1;
};
void few_tile(FewTile& tile) noexcept;  // moves ahead

// Prefetches the next lines of what a tile or dots will read soon.
template <class T>
inline void prefetch_ahead(T& t) {
  for (size_t i = 0; i < t.ahead_lines && t.ahead < t.ahead_end; ++i, t.ahead += 16) __builtin_prefetch(t.ahead);
}

// to[u * to_stride + v] = from[u * from_stride + v] (+ *bias)
void few_copy_rows(const float* from, size_t from_stride, size_t rows, size_t width, const float* bias, float* to,
                   size_t to_stride) noexcept;

// to[u * width + v] = from[u * from_stride + v - lead] where that is one of `count`, else 0; v < width.
void few_pad_rows(const float* from, size_t from_stride, size_t rows, size_t lead, size_t count, float* to,
                  size_t width) noexcept;

// to[u * to_stride + v] = sum over k < copies, in order, of x[k * copy_stride + u * row_stride + w], w = v + first - k,
// where that lies in [0, width). At most kFewRows copies.
struct FewFold {
  size_t copies = 0, copy_stride = 0, rows = 0, row_stride = 0, width = 0;
  ptrdiff_t first = 0;
  const float* x = nullptr;
  float* to = nullptr;
  size_t to_width = 0, to_stride = 0;
};
void few_fold_rows(const FewFold& fold) noexcept;

// lanes[(s * columns + i) * 16 + lane] += g[s * g_stride + j] * x[offset[i] + j], lane = j modulo the vector; s < rows,
// i < columns, j < flat.
struct FewDots {
  size_t rows = 0, columns = 0, flat = 0;
  const float* g = nullptr;
  size_t g_stride = 0;
  const float* x = nullptr;
  const ptrdiff_t* offset = nullptr;
  float* lanes = nullptr;
  const float *ahead = nullptr, *ahead_end = nullptr;  // as above
  size_t ahead_lines = 1;
};
void few_dots(FewDots& dots) noexcept;
// sum[i] = sum of the 16 lanes of each of n, a multiple of 4.
void few_lane_sums(const float* lanes, size_t n, float* sum) noexcept;

}  // namespace bnns
