// The slab of words of a block of pixels: for each pair of channels its rows and columns of the source, with zeros
// where the source ends.

#include <algorithm>
#include <cstring>

#include "src/ops/convolution/bf16/bf16.h"
#include "src/ops/convolution/common/kernels.h"

namespace bnns {

SlabShape::SlabShape(const PatchAxis& y, const PatchAxis& x, const PixelBlock& block)
    : step(static_cast<size_t>(x.step)) {
  const auto reach = [](const PatchAxis& a, size_t first, size_t last, ptrdiff_t* low) {
    const ptrdiff_t span = (static_cast<ptrdiff_t>(a.taps) - 1) * a.tap;
    *low = static_cast<ptrdiff_t>(first) * a.step + a.offset + std::min<ptrdiff_t>(0, span);
    return static_cast<size_t>((static_cast<ptrdiff_t>(last - first) - 1) * a.step + std::max(span, -span) + 1);
  };
  rows = reach(y, block.u0, block.u1, &row_low);
  columns = reach(x, block.v0, block.v1, &column_low);
  phase_length = div_up(columns, step);
}

Slab SlabShape::slab(const PatchAxis& y, const PatchAxis& x, size_t channels) const {
  const auto lowest = [](const PatchAxis& a) {
    return std::min<ptrdiff_t>(0, (static_cast<ptrdiff_t>(a.taps) - 1) * a.tap);
  };
  const auto row = static_cast<ptrdiff_t>(row_stride());
  Slab s;
  s.taps_x = x.taps, s.tap = x.tap, s.lowest = lowest(x), s.step = x.step, s.phase_length = phase_length;
  s.row_stride = row_stride();
  s.channel_stride = rows * s.row_stride;
  s.sample_stride = channels * s.channel_stride;
  s.target_row_stride = y.step * row;
  s.tap_row = y.tap * row;
  s.first_tap = -lowest(y) * row;
  return s;
}

Ahead source_ahead(const ImageSource& source, const PixelBlock& block, const PatchAxis& y, const PatchAxis& x,
                   size_t first, size_t channels) {
  const Tensor& t = *source.tensor;
  const SlabShape shape(y, x, block);
  const auto last = static_cast<ptrdiff_t>(y.extent) - 1;
  const auto row = static_cast<size_t>(std::clamp<ptrdiff_t>(shape.row_low, 0, last));
  const size_t rows = std::min(shape.rows, y.extent - row), bytes = sizeof(uint16_t);
  const uint16_t* from = bf16_at(source, block.n0, first, row);
  if (block.samples() > 1) {
    return {from, static_cast<ptrdiff_t>(source.batch_stride * bytes), block.samples(), channels * t.stride[2] * bytes};
  }
  return {from, static_cast<ptrdiff_t>(t.stride[2] * bytes), channels, rows * t.stride[1] * bytes};
}

void fill_word_slab(const ImageSource& source, const PatchAxis& y, const PatchAxis& x, const PixelBlock& block,
                    const ChannelPairs& channels, const Slab& slab, bool clear, float* buffer) {
  const SlabShape shape(y, x, block);
  const Tensor& t = *source.tensor;
  const auto inside = [](ptrdiff_t low, size_t count, size_t extent, size_t* first) {
    const ptrdiff_t begin = std::clamp<ptrdiff_t>(low, 0, static_cast<ptrdiff_t>(extent));
    const ptrdiff_t end =
        std::clamp<ptrdiff_t>(low + static_cast<ptrdiff_t>(count), begin, static_cast<ptrdiff_t>(extent));
    *first = static_cast<size_t>(begin);
    return static_cast<size_t>(end - begin);
  };
  size_t row0, column0;
  const size_t rows = inside(shape.row_low, shape.rows, y.extent, &row0);
  const size_t columns = inside(shape.column_low, shape.columns, x.extent, &column0);
  const auto top = static_cast<size_t>(static_cast<ptrdiff_t>(row0) - shape.row_low);
  const auto lead = static_cast<size_t>(static_cast<ptrdiff_t>(column0) - shape.column_low);
  const bool border = rows < shape.rows || columns < slab.row_stride;
  if (clear && border) std::memset(buffer, 0, block.samples() * slab.sample_stride * sizeof(float));
  float* const row_buffer = buffer + block.samples() * slab.sample_stride;
  for (size_t n = 0; n < block.samples() && rows && columns; ++n) {
    for (size_t c = channels.begin; c < channels.end; ++c) {
      const uint16_t* a = bf16_at(source, block.n0 + n, channels.first + 2 * c, row0) + column0;
      const uint16_t* b = 2 * c + 1 < channels.count ? a + t.stride[2] : nullptr;
      float* to = buffer + n * slab.sample_stride + (c - channels.begin) * slab.channel_stride + top * slab.row_stride;
      if (x.step == 1) {
        interleave_rows(a, b, static_cast<ptrdiff_t>(t.stride[1]), rows, columns, to + lead, slab.row_stride);
        continue;
      }
      for (size_t r = 0; r < rows; ++r, a += t.stride[1], to += slab.row_stride) {
        interleave_rows(a, b, 0, 1, columns, row_buffer, 0);
        split_row(row_buffer, lead, columns, shape.step, shape.step, shape.phase_length, to);
        if (b) b += t.stride[1];
      }
    }
  }
}

}  // namespace bnns
