// Source rows as f32, and the slabs made of them.

#include "src/ops/convolution/common/source.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "src/core/checked.h"
#include "src/ops/convolution/common/kernels.h"
#include "src/simd/convert.h"
#include "src/tensor/elements.h"

namespace bnns {
namespace {

// Coordinates [low, high) that the taps of pixels [first, last) of an axis name, inside the source or not.
struct Reach {
  ptrdiff_t low, high;
  Reach(const PatchAxis& a, size_t first, size_t last) {
    const ptrdiff_t span = (static_cast<ptrdiff_t>(a.taps) - 1) * a.tap;
    low = static_cast<ptrdiff_t>(first) * a.step + a.offset + std::min<ptrdiff_t>(0, span);
    high = (static_cast<ptrdiff_t>(last) - 1) * a.step + a.offset + std::max<ptrdiff_t>(0, span) + 1;
  }
  size_t size() const { return static_cast<size_t>(high - low); }
  bool inside(size_t extent) const { return low >= 0 && high <= static_cast<ptrdiff_t>(extent); }
};

ptrdiff_t lowest_tap(const PatchAxis& a) {
  return std::min<ptrdiff_t>(0, (static_cast<ptrdiff_t>(a.taps) - 1) * a.tap);
}

// Phases of x are contiguous runs of a slab row: run f holds coordinates low + f, low + f + step, ...
size_t phase_length(const PatchAxis& x, const PixelBlock& block) {
  return div_up(Reach(x, block.v0, block.v1).size(), static_cast<size_t>(x.step));
}

// Whether any tap reads source row `at` rows above the reach's low end (every row is, with step and dilation 1).
bool row_is_read(const PatchAxis& y, size_t at, size_t pixels) {
  const ptrdiff_t low = lowest_tap(y);
  for (size_t j = 0; j < y.taps; ++j) {
    const ptrdiff_t from = static_cast<ptrdiff_t>(at) - (static_cast<ptrdiff_t>(j) * y.tap - low);
    if (from >= 0 && from % y.step == 0 && from / y.step < static_cast<ptrdiff_t>(pixels)) return true;
  }
  return false;
}

const float* read_typed(const Tensor& t, const void* base, size_t offset, size_t count, float* buffer) {
  const void* at = element_at(base, t.type, offset);
  if (t.stride[0] == 1) {
    if (t.type == BNNSDataTypeFloat32) return static_cast<const float*>(at);
    if (t.type == BNNSDataTypeFloat16) return half_to_float(static_cast<const uint16_t*>(at), buffer, count), buffer;
    if (t.type == BNNSDataTypeBFloat16)
      return bfloat16_to_float(static_cast<const uint16_t*>(at), buffer, count), buffer;
  }
  for (size_t i = 0; i < count; ++i) buffer[i] = load_element(t, base, offset + i * t.stride[0]);
  return buffer;
}

}  // namespace

const float* ImageSource::row(size_t n, size_t c, size_t y_row, size_t first, size_t count, float* buffer) const {
  const Tensor& t = *tensor;
  const size_t offset = n * batch_stride + c * t.stride[2] + y_row * t.stride[1] + first * t.stride[0];
  const float* values = read_typed(t, data, offset, count, buffer);
  if (activation.is_identity()) return values;
  const Tensor& o = *y_tensor;
  const size_t y_offset = n * y_batch_stride + c * o.stride[2] + y_row * o.stride[1] + first * o.stride[0];
  const float* outputs = read_typed(o, y, y_offset, count, buffer + count);
  activation_backward_from_output(activation, outputs, values, buffer, count);
  return buffer;
}

size_t slab_floats(const PatchAxis& y, const PatchAxis& x, const PixelBlock& block, size_t channels) {
  const size_t rows = Reach(y, block.u0, block.u1).size();
  size_t floats = phase_length(x, block);
  for (const size_t factor : {static_cast<size_t>(x.step), rows, channels, block.samples()}) {
    if (__builtin_mul_overflow(floats, factor, &floats) || floats > kTooLarge) return kTooLarge;
  }
  return std::min(kTooLarge, round_up(floats + 2 * x.extent, 16) + 16);
}

Slab make_slab(const ImageSource& source, const PatchAxis& y, const PatchAxis& x, const PixelBlock& block, size_t c0,
               size_t channels, float* buffer) {
  const Reach rows(y, block.u0, block.u1), columns(x, block.v0, block.v1);
  Slab slab;
  slab.taps_x = x.taps;
  slab.tap = x.tap, slab.lowest = lowest_tap(x), slab.step = x.step;
  const bool in_place = source.plain() && x.step == 1 && rows.inside(y.extent) && columns.inside(x.extent);
  if (in_place) {
    slab.data = source.plain_at(block.n0, c0, static_cast<size_t>(rows.low)) + columns.low;
    slab.sample_stride = source.batch_stride;
    slab.channel_stride = source.tensor->stride[2];
    slab.row_stride = source.tensor->stride[1];
  } else {
    slab.phase_length = phase_length(x, block);
    slab.row_stride = slab.phase_length * static_cast<size_t>(x.step);
    slab.channel_stride = rows.size() * slab.row_stride;
    slab.sample_stride = channels * slab.channel_stride;
    slab.data = buffer;
    float* const row_buffer = buffer + block.samples() * slab.sample_stride;
    // The part of a row that lies inside the source.
    const ptrdiff_t begin = std::clamp<ptrdiff_t>(columns.low, 0, static_cast<ptrdiff_t>(x.extent));
    const ptrdiff_t end = std::clamp<ptrdiff_t>(columns.high, begin, static_cast<ptrdiff_t>(x.extent));
    const auto count = static_cast<size_t>(end - begin);
    // A single tap reads one phase, the first.
    const size_t phases = x.taps == 1 ? 1 : static_cast<size_t>(x.step);
    const bool gaps = y.step != 1 || std::abs(y.tap) != 1;
    // Channel by channel: the rows of a plane follow each other in memory, which the hardware fetches ahead.
    for (size_t n = block.n0; n < block.n1; ++n) {
      for (size_t c = 0; c < channels; ++c) {
        float* to = buffer + (n - block.n0) * slab.sample_stride + c * slab.channel_stride;
        for (size_t r = 0; r < rows.size(); ++r, to += slab.row_stride) {
          if (gaps && !row_is_read(y, r, block.rows())) continue;
          const ptrdiff_t source_row = rows.low + static_cast<ptrdiff_t>(r);
          if (source_row < 0 || source_row >= static_cast<ptrdiff_t>(y.extent) || count == 0) {
            std::memset(to, 0, phases * slab.phase_length * sizeof(float));
            continue;
          }
          const float* from =
              source.row(n, c0 + c, static_cast<size_t>(source_row), static_cast<size_t>(begin), count, row_buffer);
          if (from != row_buffer && c + 1 < channels) {
            const float* next = from + source.tensor->stride[2];
            for (size_t i = 0; i < count; i += 16) __builtin_prefetch(next + i);
          }
          split_row(from, static_cast<size_t>(begin - columns.low), count, static_cast<size_t>(x.step), phases,
                    slab.phase_length, to);
        }
      }
    }
  }
  const ptrdiff_t row = static_cast<ptrdiff_t>(slab.row_stride);
  slab.target_row_stride = y.step * row;
  slab.tap_row = y.tap * row;
  slab.first_tap = -lowest_tap(y) * row;
  return slab;
}

}  // namespace bnns
