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

struct PoolingRoom;

// One forward call. Of UnMax x is the small image and y the large one.
struct PoolingForward {
  PoolingProblem problem;
  Planes x, y;
  IndexPlanes index;             // Max: written where data is given; UnMax: read
  bool index_in_rows = false;    // UnMax: every index is in a row of its own window
  const Tensor* bias = nullptr;  // one value per channel; NULL without
  Activation activation;
  bool stream = false;  // y is far larger than the caches: write around them
  PoolingRoom* room = nullptr;
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
  PoolingRoom* room = nullptr;
};

// ---- windows ----------------------------------------------------------------------------------------------------

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
  const PoolingGeometry* geometry = nullptr;
  PixelSource source;
  Span rows, columns;
  float* values = nullptr;
  int32_t* offsets = nullptr;
  int64_t pitch = 0;
};
inline constexpr int64_t kWindowSlack = 16;
inline constexpr int64_t kChunk = 512;

// One window, pixel by pixel: any geometry and type. Gives the bits of the vector kernels.
void pooling_window(PoolingFold fold, const PoolingGeometry& geometry, const PixelSource& source, int64_t wx,
                    int64_t wy, float* value, int32_t* offset) noexcept;

// The whole block, by vector kernels where the geometry and the source allow them.
void pooling_windows(PoolingFold fold, const WindowBlock& block) noexcept;

// The same from a plane of any type and stride, converted in pieces in `room`.
inline constexpr int64_t kStageFloats = 4096;
void pooling_windows_of(PoolingFold fold, const PoolingGeometry& geometry, const Planes& x, const void* plane,
                        Span rows, Span columns, float* values, int32_t* offsets, int64_t pitch, float* room) noexcept;

// ---- rows of planes ---------------------------------------------------------------------------------------------

// Pixels [x, x + n) of row y as f32: a pointer into the plane, or room.
const float* load_pixels(const Planes& planes, const void* plane, int64_t x, int64_t y, int64_t n,
                         float* room) noexcept;
// Rounded to the type (nearest even); accumulate adds to what is there in f32.
void store_pixels(const Planes& planes, void* plane, int64_t x, int64_t y, int64_t n, const float* values,
                  bool accumulate) noexcept;
float pooling_bias(const Tensor* bias, int64_t channel) noexcept;  // 0 without

// Where backward computes g: rooms of kChunk floats.
struct GradientRoom {
  float value[kChunk + kWindowSlack], upstream[kChunk];
  int32_t offset[kChunk + kWindowSlack];
  float stage[kStageFloats];
};
// Memory of the thread that runs a kernel: what would be too much for the stack of a caller.
struct PoolingRoom {
  static constexpr int64_t kRowFloats = 2048, kStagedFloats = 10240, kMostStaged = 4, kLine = 16;
  alignas(64) float staged[kStagedFloats + kMostStaged * kLine];  // images that are not rows of f32
  alignas(64) float row[kRowFloats + 2 * kLine];                  // rows of dx that wait
  alignas(64) float tile[8192];                                   // the kernel's own
  alignas(64) GradientRoom gradient;
};
// g = dy * act' of output pixels [x, x + n), n <= kChunk, row y, plane c of sample n. Not for UnMax.
void pooling_gradient(const PoolingBackward& call, int64_t sample, int64_t channel, int64_t x, int64_t y, int64_t n,
                      float* g, GradientRoom* room) noexcept;

// ---- whole planes -----------------------------------------------------------------------------------------------
// `planes` counts sample * channels + channel; `rows` are rows of the written image.

// Max, Average, L2Norm.
void pooling_forward(const PoolingForward& call, Range planes, Span rows) noexcept;
// dx of Average and L2Norm, gathered: strides up to 2.
bool pooling_backward_gathers(const PoolingGeometry& geometry) noexcept;
void pooling_backward_gather(const PoolingBackward& call, Range planes, Span rows) noexcept;
// The same where PoolingGeometry::halves() or neighbours(), of plain f32: to the same bits.
bool pooling_backward_doubles(const PoolingBackward& call) noexcept;
void pooling_backward_double(const PoolingBackward& call, Range planes, Span rows) noexcept;
inline constexpr int64_t kPairColumns = 960;  // of dx: two rows fit a RowWriter
// dx of Max, Average and L2Norm of narrow planes of plain f32: 2 x 2 with stride 2, or 3 x 3 with stride 1; of Max also
// 3 x 3 with stride 2. To the bits of the others.
bool pooling_backward_is_narrow(const PoolingBackward& call) noexcept;
void pooling_backward_narrow_pairs(const PoolingBackward& call, Range planes, Span rows) noexcept;
void pooling_backward_narrow_neighbours(const PoolingBackward& call, Range planes, Span rows) noexcept;
void pooling_backward_narrow_halves(const PoolingBackward& call, Range planes, Span rows) noexcept;  // Max
// dx of Max over 3 x 3 windows where halves() or neighbours(), by pixels and by indices that are in their windows.
bool pooling_backward_routes(const PoolingGeometry& geometry) noexcept;
void pooling_backward_route(const PoolingBackward& call, Range planes, Span rows) noexcept;
void pooling_backward_route_index(const PoolingBackward& call, Range planes, Span rows) noexcept;
// dx of Max, in bands of rows: windows that reach over few enough pixels. Indices, where given, are in rows of
// their windows.
bool pooling_backward_bands(const PoolingGeometry& geometry) noexcept;
void pooling_backward_band(const PoolingBackward& call, Range planes, Span rows) noexcept;
// dx of Max over 2 x 2 windows that tile the image; rows.begin is even. Indices, where given, are in their windows.
bool pooling_backward_pairs(const PoolingGeometry& geometry) noexcept;
void pooling_backward_pair(const PoolingBackward& call, Range planes, Span rows) noexcept;
// dx of any geometry, and with indices anywhere in the plane.
void pooling_backward_scatter(const PoolingBackward& call, Range planes, Span rows) noexcept;
// One window that is the whole plane.
float pooling_global_value(const PoolingProblem& problem, const Planes& x, const void* plane) noexcept;
void pooling_forward_global(const PoolingForward& call, Range planes, Span rows) noexcept;  // all rows
void pooling_backward_global(const PoolingBackward& call, Range planes, Span rows) noexcept;
// UnMax: y = act(x at its indices, 0 elsewhere, + bias); the last of equal indices in raster order wins. Backward:
// dx(i) = g at index(i).
void pooling_unmax_forward(const PoolingForward& call, Range planes, Span rows) noexcept;
void pooling_unmax_backward(const PoolingBackward& call, Range planes, Span rows) noexcept;
// Sum of g over all samples and pixels of a channel (of UnMax, too).
double pooling_bias_gradient(const PoolingBackward& call, int64_t samples, int64_t channel) noexcept;

// ---- indices ----------------------------------------------------------------------------------------------------

struct IndexCheck {
  bool in_plane = true;    // every index is a pixel of the large image
  bool in_rows = true;     // and lies in a row of its own window, which narrows down where to look for it
  bool in_windows = true;  // and in the window itself; looked at where PoolingGeometry::halves() or neighbours()
};
IndexCheck pooling_check_indices(const PoolingProblem& problem, const IndexPlanes& index, Range planes) noexcept;

}  // namespace bnns
