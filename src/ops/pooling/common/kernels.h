// The kernels of pooling and what they are given: plain numbers, checked by the caller. Each works on a range of planes
// on one thread, allocates nothing and needs no memory but its stack (at most 120 KiB).
//
// Types of data are f32, f16 and bf16; arithmetic is f32. Strides are in elements. Kernels are chosen by the geometry
// alone, never by type or stride, so a tensor gives the same bits in every layout.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bnns/bnns.h"
#include "src/core/parallel.h"
#include "src/engine/activation/activation.h"
#include "src/ops/pooling/common/geometry.h"
#include "src/tensor/tensor.h"

namespace bnns {

enum class PoolingFunction : uint8_t { max, average, l2_norm, unmax };

// What is pooled, free of where it lies in memory.
struct PoolingProblem {
  PoolingFunction function = PoolingFunction::max;
  int64_t channels = 1;
  PoolingGeometry geometry;
};

// The planes of a batch: pixel (x, y) of channel c of sample n is element n sample + c plane + y row + x column.
struct Planes {
  void* data = nullptr;
  BNNSDataType type = BNNSDataTypeFloat32;
  int64_t column = 1, row = 0, plane = 0, sample = 0;

  bool has_f32_rows() const { return type == BNNSDataTypeFloat32 && column == 1; }
  bool is_packed(int64_t width) const { return has_f32_rows() && row == width; }  // a plane is one run of f32
  void* at(int64_t n, int64_t c) const {
    return static_cast<char*>(data) + (n * sample + c * plane) * static_cast<int64_t>(type_bytes(type));
  }
};

// Plane number `sample * channels + channel` of a call; its successors take no division.
struct PlaneNumber {
  int64_t sample, channel, channels;

  PlaneNumber(size_t plane, int64_t count)
      : sample(static_cast<int64_t>(plane) / count), channel(static_cast<int64_t>(plane) % count), channels(count) {}
  void next() {
    if (++channel == channels) channel = 0, ++sample;
  }
};

// Positions of maxima, y * width + x in the plane of the large image. data is NULL where there are none.
struct IndexPlanes {
  void* data = nullptr;
  bool wide = true;  // uint64_t, else uint32_t
  int64_t column = 1, row = 0, plane = 0, sample = 0;

  void* at(int64_t n, int64_t c) const { return static_cast<char*>(data) + (n * sample + c * plane) * (wide ? 8 : 4); }
  uint64_t load(const void* plane_data, int64_t x, int64_t y) const {
    const int64_t i = y * row + x * column;
    return wide ? static_cast<const uint64_t*>(plane_data)[i] : static_cast<const uint32_t*>(plane_data)[i];
  }
  void store(void* plane_data, int64_t x, int64_t y, uint64_t value) const {
    const int64_t i = y * row + x * column;
    if (wide)
      static_cast<uint64_t*>(plane_data)[i] = value;
    else
      static_cast<uint32_t*>(plane_data)[i] = static_cast<uint32_t>(value);
  }
};

// What is folded over the pixels of a window. An empty window has value 0.
//   max        the largest pixel, NaN if there is one
//   arg_max    the same, and which: the first in raster order (the first NaN if there is one)
//   average    row sums, summed over the rows, divided by the counted taps
//   norm       sqrt of the sum of squares: neither overflows nor underflows inside
enum class PoolingFold : uint8_t { max, arg_max, average, norm };

inline PoolingFold value_fold(PoolingFunction function) {
  switch (function) {
    case PoolingFunction::average:
      return PoolingFold::average;
    case PoolingFunction::l2_norm:
      return PoolingFold::norm;
    default:
      return PoolingFold::max;
  }
}

struct PoolingScratch;

// One forward call. Of UnMax x is the small image and y the large one.
struct PoolingForward {
  PoolingProblem problem;
  Planes x, y;
  IndexPlanes index;             // Max: written where data is given; UnMax: read
  bool index_in_rows = false;    // UnMax: every index is in a row of its own window
  const Tensor* bias = nullptr;  // one value per channel; NULL without
  Activation activation;
  bool stream = false;  // y is far larger than the caches: non-temporal stores
  PoolingScratch* scratch = nullptr;

  PoolingFold fold() const { return index.data ? PoolingFold::arg_max : value_fold(problem.function); }
};

// One backward call; dx = 0 where no window reaches.
struct PoolingBackward {
  PoolingProblem problem;
  Planes x, y, dx, dy;  // x and y have NULL data where they are not given
  IndexPlanes index;
  bool index_in_rows = false;     // every index is in a row of its own window
  bool index_in_windows = false;  // every index is in its window: IndexCheck
  const Tensor* bias = nullptr;
  Activation activation;
  bool accumulate = false;  // add to dx
  bool stream = false;
  PoolingScratch* scratch = nullptr;

  bool is_max() const { return problem.function == PoolingFunction::max; }
  bool is_average_or_norm() const {
    return problem.function == PoolingFunction::average || problem.function == PoolingFunction::l2_norm;
  }
  bool has_index() const { return index.data != nullptr; }
};

// ---- windows ----------------------------------------------------------------------------------------------------

inline constexpr int32_t kNoPixel = -1;  // offset of an empty window

// A sum of squares in this range is exact to f32 as it stands; others are summed again in double.
inline constexpr float kNormLow = 0x1p-90f, kNormHigh = 0x1p126f;

// Pixels of one plane: columns `x` and rows `y` of it, pixel (x.begin, y.begin) first.
struct PixelSource {
  const void* data = nullptr;
  BNNSDataType type = BNNSDataTypeFloat32;
  int64_t column = 1, row = 0;
  Span x, y;
};
inline PixelSource whole_plane(const PoolingGeometry& g, const Planes& x, const void* plane) {
  return {plane, x.type, x.column, x.row, {0, g.x.in}, {0, g.y.in}};
}

// A block of windows to compute: rows x columns, at most kChunk columns. Results go to values[(wy - rows.begin) * pitch
// + wx - columns.begin]; offsets (arg_max) likewise: PoolingGeometry::tap_offset of the maximum or kNoPixel. Both may
// be written up to kWindowSlack elements past the last one.
struct WindowBlock {
  PoolingFold fold = PoolingFold::max;
  const PoolingGeometry* geometry = nullptr;
  PixelSource source;
  Span rows, columns;
  float* values = nullptr;
  int32_t* offsets = nullptr;
  int64_t pitch = 0;
};
inline constexpr int64_t kWindowSlack = 16;
inline constexpr int64_t kChunk = 512;

// One window, pixel by pixel: any geometry and type. Bit-identical to the vector kernels.
void pooling_window(PoolingFold fold, const PoolingGeometry& geometry, const PixelSource& source, int64_t wx,
                    int64_t wy, float* value, int32_t* offset) noexcept;

// What folds a block: pooling/implementations.h has the table. All but pooling_window_block take rows of f32 alone.
using WindowsFunction = void (*)(const WindowBlock& block);
struct WindowsProblem {
  PoolingFold fold = PoolingFold::max;
  PoolingGeometry geometry;
};
bool accepts_row_windows(const WindowsProblem& problem) noexcept;
WindowsFunction pooling_row_windows(const WindowsProblem& problem) noexcept;
bool accepts_separable(const WindowsProblem& problem) noexcept;
WindowsFunction pooling_separable(const WindowsProblem& problem) noexcept;
void pooling_window_block(const WindowBlock& block) noexcept;  // one window after the other
WindowsFunction pooling_windows(PoolingFold fold, const PoolingGeometry& geometry) noexcept;  // the table's choice

// Folds a block of a whole plane of any type and stride; what is not rows of f32 is converted in pieces in `pixels`.
inline constexpr int64_t kPixelFloats = 4096;
void pooling_convert_and_fold(WindowsFunction windows, WindowBlock block, float* pixels) noexcept;
inline void pooling_fold(WindowsFunction windows, const WindowBlock& block, float* pixels) noexcept {
  if (block.source.type == BNNSDataTypeFloat32 && block.source.column == 1) return windows(block);
  pooling_convert_and_fold(windows, block, pixels);
}

// ---- rows of planes ---------------------------------------------------------------------------------------------

// Pixels [x, x + n) of row y as f32: a pointer into the plane, or scratch.
const float* load_pixels(const Planes& planes, const void* plane, int64_t x, int64_t y, int64_t n,
                         float* scratch) noexcept;
// Rounded to the type (nearest even); accumulate adds to what is there in f32.
void store_pixels(const Planes& planes, void* plane, int64_t x, int64_t y, int64_t n, const float* values,
                  bool accumulate) noexcept;
float pooling_bias(const Tensor* bias, int64_t channel) noexcept;  // 0 without

inline constexpr int64_t kPairColumns = 960;  // of dx: two rows fit a LineWriter

// Where backward computes g: buffers of kChunk floats.
struct GradientScratch {
  float value[kChunk + kWindowSlack], upstream[kChunk];
  int32_t offset[kChunk + kWindowSlack];
  float pixels[kPixelFloats];
};
// Memory of the thread that runs a kernel: what would be too much for the stack of a caller.
struct PoolingScratch {
  static constexpr int64_t kRowFloats = 2048, kConvertedFloats = 10240, kMostConverted = 4, kLine = 16;
  alignas(64) float converted[kConvertedFloats + kMostConverted * kLine];  // images that are not rows of f32
  alignas(64) float row[kRowFloats + 2 * kLine];                           // rows of dx that wait
  alignas(64) float tile[8192];                                            // the kernel's own
  alignas(64) GradientScratch gradient;
};
// g = dy * act' of output pixels [x, x + n), n <= kChunk, row y, plane c of sample n. Not for UnMax.
void pooling_gradient(const PoolingBackward& call, int64_t sample, int64_t channel, int64_t x, int64_t y, int64_t n,
                      float* g, GradientScratch* scratch) noexcept;

// ---- whole planes -----------------------------------------------------------------------------------------------
// `planes` counts sample * channels + channel; `rows` are rows of the written image. Beside each kernel, in its file,
// is what it accepts; pooling/implementations.cc has the order.

// UnMax: y = act(x at its indices, 0 elsewhere, + bias); the last of equal indices in raster order wins. Backward:
// dx(i) = g at index(i).
void pooling_unmax_forward(const PoolingForward& call, Range planes, Span rows) noexcept;
void pooling_unmax_backward(const PoolingBackward& call, Range planes, Span rows) noexcept;

// One window that is the whole plane.
bool accepts_global(const PoolingForward& call) noexcept;
void pooling_global_forward(const PoolingForward& call, Range planes, Span rows) noexcept;  // all rows
bool accepts_global(const PoolingBackward& call) noexcept;
void pooling_global_backward(const PoolingBackward& call, Range planes, Span rows) noexcept;
float pooling_global_value(const PoolingProblem& problem, const Planes& x, const void* plane) noexcept;

// Max, Average, L2Norm forward, in blocks of windows; with positions: maxima and their positions in one go.
bool accepts_positions(const PoolingForward& call) noexcept;
void pooling_forward_positions(const PoolingForward& call, Range planes, Span rows) noexcept;
bool accepts_row_windows(const PoolingForward& call) noexcept;
bool accepts_separable(const PoolingForward& call) noexcept;
void pooling_forward_windows(const PoolingForward& call, Range planes, Span rows) noexcept;

// dx of planes of packed f32 whose rows are one to four vectors.
bool accepts_narrow_2x2(const PoolingBackward& call) noexcept;
void pooling_backward_narrow_2x2(const PoolingBackward& call, Range planes, Span rows) noexcept;
bool accepts_narrow_3x3(const PoolingBackward& call) noexcept;
void pooling_backward_narrow_3x3(const PoolingBackward& call, Range planes, Span rows) noexcept;
bool accepts_narrow_max_3x3s2(const PoolingBackward& call) noexcept;
void pooling_backward_narrow_max_3x3s2(const PoolingBackward& call, Range planes, Span rows) noexcept;

// dx of Average and L2Norm: from registers for small windows, else gathered from rows of windows.
bool accepts_small_sums(const PoolingBackward& call) noexcept;
void pooling_backward_small_sums(const PoolingBackward& call, Range planes, Span rows) noexcept;
bool accepts_gather(const PoolingBackward& call) noexcept;
void pooling_backward_gather(const PoolingBackward& call, Range planes, Span rows) noexcept;

// dx of Max. Indices, where given, are in their windows; for max_band in rows of them.
bool accepts_max_2x2(const PoolingBackward& call) noexcept;
void pooling_backward_max_2x2(const PoolingBackward& call, Range planes, Span rows) noexcept;  // rows.begin is even
inline bool is_max_3x3(const PoolingBackward& call) noexcept {
  const PoolingGeometry& g = call.problem.geometry;
  return call.is_max() && g.x.kernel == 3 && g.x.out <= kChunk && g.x.in <= kPairColumns &&
         g.x.in * g.y.in <= INT32_MAX && (g.is_small_stride_2() || g.is_small_stride_1());
}
bool accepts_max_3x3(const PoolingBackward& call) noexcept;
void pooling_backward_max_3x3(const PoolingBackward& call, Range planes, Span rows) noexcept;
bool accepts_max_3x3_index(const PoolingBackward& call) noexcept;
void pooling_backward_max_3x3_index(const PoolingBackward& call, Range planes, Span rows) noexcept;
bool accepts_max_band(const PoolingBackward& call) noexcept;
void pooling_backward_max_band(const PoolingBackward& call, Range planes, Span rows) noexcept;

// dx of any geometry, and with indices anywhere in the plane.
void pooling_backward_scatter(const PoolingBackward& call, Range planes, Span rows) noexcept;

// Sum of g over all samples and pixels of a channel (of UnMax, too).
double pooling_bias_gradient(const PoolingBackward& call, int64_t samples, int64_t channel) noexcept;

// ---- indices ----------------------------------------------------------------------------------------------------

struct IndexCheck {
  bool in_plane = true;  // every index is a pixel of the large image
  bool in_rows = true;   // and lies in a row of its own window, which narrows down where to look for it
  bool in_windows =
      true;  // and in the window itself; looked at where PoolingGeometry::is_small_stride_2() or is_small_stride_1()
};
IndexCheck pooling_check_indices(const PoolingProblem& problem, const IndexPlanes& index, Range planes) noexcept;

}  // namespace bnns
