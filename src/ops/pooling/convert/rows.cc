// Rows of pixels between memory of any type and stride and f32, and what is computed row by row from them.

#include <cstring>

#include "src/ops/pooling/common/kernels.h"
#include "src/simd/convert.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

// The part of the image that a run of windows can touch.
Span pixels_under(const PoolingAxis& axis, Span windows) {
  return {std::max<int64_t>(0, axis.start(windows.begin)),
          std::min(axis.in, axis.start(windows.end - 1) + axis.reach() + 1)};
}

}  // namespace

const float* load_pixels(const Planes& planes, const void* plane, int64_t x, int64_t y, int64_t n,
                         float* scratch) noexcept {
  const int64_t first = y * planes.row + x * planes.column, step = planes.column;
  if (planes.type == BNNSDataTypeFloat32) {
    const float* from = static_cast<const float*>(plane) + first;
    if (step == 1) return from;
    for (int64_t i = 0; i < n; ++i) scratch[i] = from[i * step];
    return scratch;
  }
  const uint16_t* from = static_cast<const uint16_t*>(plane) + first;
  const bool half = planes.type == BNNSDataTypeFloat16;
  if (step == 1) {
    half ? half_to_float(from, scratch, static_cast<size_t>(n))
         : bfloat16_to_float(from, scratch, static_cast<size_t>(n));
  } else {
    for (int64_t i = 0; i < n; ++i)
      scratch[i] = half ? half_to_float(from[i * step]) : bfloat16_to_float(from[i * step]);
  }
  return scratch;
}

void store_pixels(const Planes& planes, void* plane, int64_t x, int64_t y, int64_t n, const float* values,
                  bool accumulate) noexcept {
  const int64_t first = y * planes.row + x * planes.column, step = planes.column;
  if (planes.type == BNNSDataTypeFloat32) {
    float* to = static_cast<float*>(plane) + first;
    if (accumulate) {
      for (int64_t i = 0; i < n; ++i) to[i * step] += values[i];
    } else if (step == 1) {
      std::memcpy(to, values, static_cast<size_t>(n) * sizeof(float));
    } else {
      for (int64_t i = 0; i < n; ++i) to[i * step] = values[i];
    }
    return;
  }
  uint16_t* to = static_cast<uint16_t*>(plane) + first;
  const bool half = planes.type == BNNSDataTypeFloat16;
  if (!accumulate && step == 1) {
    half ? float_to_half(values, to, static_cast<size_t>(n)) : float_to_bfloat16(values, to, static_cast<size_t>(n));
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    uint16_t& stored = to[i * step];
    const float old = half ? half_to_float(stored) : bfloat16_to_float(stored);
    const float value = accumulate ? old + values[i] : values[i];
    stored = half ? float_to_half(value) : float_to_bfloat16(value);
  }
}

float pooling_bias(const Tensor* bias, int64_t channel) noexcept {
  return bias ? load_element(*bias, bias->data, static_cast<size_t>(channel) * bias->stride[0]) : 0;
}

// Sources that are not rows of f32 are converted to a small dense plane in `pixels`. A block whose pixels do not fit is
// halved; a single window that does not fit is folded where it lies.
void pooling_convert_and_fold(WindowsFunction windows, WindowBlock block, float* pixels) noexcept {
  const PoolingGeometry& g = *block.geometry;
  const PixelSource plane = block.source;
  const Planes x{nullptr, plane.type, plane.column, plane.row, 0, 0};
  const Span rows = block.rows, columns = block.columns;
  const Span across = pixels_under(g.x, columns), down = pixels_under(g.y, rows);
  if (across.empty() || down.empty()) return pooling_window_block(block);
  const int64_t width = across.size(), height = down.size();
  if (width <= kPixelFloats && height <= kPixelFloats / width) {
    for (int64_t y = down.begin; y < down.end; ++y) {
      load_pixels(x, plane.data, across.begin, y, width, pixels + (y - down.begin) * width);
    }
    block.source = {pixels, BNNSDataTypeFloat32, 1, width, across, down};
    return windows(block);
  }
  const auto part = [&](Span some_rows, Span some_columns) {
    WindowBlock some = block;
    const int64_t at = (some_rows.begin - rows.begin) * block.pitch + some_columns.begin - columns.begin;
    some.rows = some_rows, some.columns = some_columns;
    some.values += at;
    if (some.offsets) some.offsets += at;
    pooling_convert_and_fold(windows, some, pixels);
  };
  if (rows.size() > 1) {
    const int64_t middle = rows.begin + rows.size() / 2;
    part({rows.begin, middle}, columns);
    part({middle, rows.end}, columns);
  } else if (columns.size() > 1) {
    const int64_t middle = columns.begin + columns.size() / 2;
    part(rows, {columns.begin, middle});
    part(rows, {middle, columns.end});
  } else {
    pooling_window_block(block);
  }
}

void pooling_gradient(const PoolingBackward& call, int64_t sample, int64_t channel, int64_t x, int64_t y, int64_t n,
                      float* g, GradientScratch* scratch) noexcept {
  const size_t count = static_cast<size_t>(n);
  const bool identity = call.activation.is_identity();
  const float* upstream = load_pixels(call.dy, call.dy.at(sample, channel), x, y, n, identity ? g : scratch->upstream);
  if (identity) {
    if (upstream != g) std::memcpy(g, upstream, count * sizeof(float));
  } else if (has_derivative_from_output(call.activation)) {
    const float* values = load_pixels(call.y, call.y.at(sample, channel), x, y, n, scratch->value);
    activation_backward_from_output(call.activation, values, upstream, g, count);
  } else {  // K8: the pre-activation again, from x, by the kernel that made it
    const PoolingGeometry& geometry = call.problem.geometry;
    const void* plane = call.x.at(sample, channel);
    if (geometry.is_global()) {
      scratch->value[0] = pooling_global_value(call.problem, call.x, plane);
    } else {
      const PoolingFold fold = value_fold(call.problem.function);
      pooling_fold(pooling_windows(fold, geometry),
                   {fold,
                    &geometry,
                    whole_plane(geometry, call.x, plane),
                    {y, y + 1},
                    {x, x + n},
                    scratch->value,
                    nullptr,
                    kChunk},
                   scratch->pixels);
    }
    const float bias = pooling_bias(call.bias, channel);
    for (int64_t i = 0; call.bias && i < n; ++i) scratch->value[i] += bias;
    activation_backward_from_input(call.activation, scratch->value, upstream, g, count);
  }
}

}  // namespace bnns
