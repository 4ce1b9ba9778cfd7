// What a patch map reads: a few rows of a few channels, as f32 rows with zeros where the source ends.
//
// The maps never look at the source's type, strides, padding or at the derivative of an activation: a block of target
// pixels gets the slab of source rows it needs, and where the source is plain and no border is touched the slab is
// the source itself. With a step of s columns the slab's rows are split into s phases, so that the pixels of one tap
// always lie side by side.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/core/checked.h"
#include "src/engine/activation/activation.h"
#include "src/ops/convolution/common/patch_map.h"
#include "src/tensor/tensor.h"

namespace bnns {

// Samples of a CHW image that can be read as f32: an input, or an upstream gradient g = dy * act'(y).
struct ImageSource {
  const Tensor* tensor = nullptr;
  const void* data = nullptr;
  size_t batch_stride = 0;

  // For g: the layer's output. Identity: unused.
  Activation activation = {};
  const Tensor* y_tensor = nullptr;
  const void* y = nullptr;
  size_t y_batch_stride = 0;

  size_t width() const { return tensor->size[0]; }
  size_t height() const { return tensor->size[1]; }
  bool plain() const {
    return tensor->type == BNNSDataTypeFloat32 && tensor->stride[0] == 1 && activation.is_identity();
  }
  const float* plain_at(size_t n, size_t c, size_t row) const {
    return static_cast<const float*>(data) + n * batch_stride + c * tensor->stride[2] + row * tensor->stride[1];
  }
  // Elements [first, first + count) of a row as f32: in place, or in buffer, which has space for 2 * count.
  const float* row(size_t n, size_t c, size_t y_row, size_t first, size_t count, float* buffer) const;
};

// A rectangle of target pixels in each of some samples. Pixel j of it: samples slowest, then rows, then columns.
struct PixelBlock {
  size_t n0 = 0, n1 = 0, u0 = 0, u1 = 0, v0 = 0, v1 = 0;
  size_t samples() const { return n1 - n0; }
  size_t rows() const { return u1 - u0; }
  size_t width() const { return v1 - v0; }
  size_t pixels() const { return samples() * rows() * width(); }
};

// Source element of (sample n0 + i, channel c0 + c, target row u0 + r, target column v0 + v, tap t) is
//   data[i * sample_stride + c * channel_stride + r * target_row_stride + v + tap_offset(t)]
struct Slab {
  const float* data = nullptr;
  size_t sample_stride = 0, channel_stride = 0, row_stride = 0;
  ptrdiff_t target_row_stride = 0;
  // tap t = jy * taps_x + jx: jy * tap_row + shift of jx
  ptrdiff_t first_tap = 0, tap_row = 0;
  ptrdiff_t tap = 0, lowest = 0, step = 1;  // of the x axis
  size_t phase_length = 0, taps_x = 1;

  ptrdiff_t tap_offset(size_t t) const {
    const ptrdiff_t at = static_cast<ptrdiff_t>(t % taps_x) * tap - lowest;
    return first_tap + static_cast<ptrdiff_t>(t / taps_x) * tap_row + at / step +
           at % step * static_cast<ptrdiff_t>(phase_length);
  }
};

// Floats that a slab of this block and so many channels takes at most, and space for one row; kTooLarge if that is
// beyond any memory.
inline constexpr size_t kTooLarge = SIZE_MAX / 64;
size_t slab_floats(const PatchAxis& y, const PatchAxis& x, const PixelBlock& block, size_t channels);

// Bytes of a call's scratch: so many floats for each thread, and some for all.
inline size_t scratch_bytes(size_t threads, size_t thread_floats, size_t shared_floats = 0) {
  const size_t floats = checked_add(shared_floats, checked_mul(threads, thread_floats, "scratch"), "scratch");
  return checked_mul(floats, sizeof(float), "scratch");
}

// Fills buffer (slab_floats of it, or nothing where the source serves as it is) and returns the slab of channels
// [c0, c0 + channels).
Slab make_slab(const ImageSource& source, const PatchAxis& y, const PatchAxis& x, const PixelBlock& block, size_t c0,
               size_t channels, float* buffer);

// Memory that will be read soon: runs of lines, prefetched some at a time between other work. The hardware does not
// foresee short runs, far from each other.
struct LinesAhead {
  const float* from = nullptr;
  size_t runs = 0, lines = 0, stride = 0;  // stride: floats from run to run
  size_t next = 0, some = 0;
};
inline void prefetch_some(LinesAhead& a) {
  for (size_t i = 0; i < a.some && a.next < a.runs * a.lines; ++i, ++a.next) {
    __builtin_prefetch(a.from + a.next / a.lines * a.stride + a.next % a.lines * 16);
  }
}

}  // namespace bnns
