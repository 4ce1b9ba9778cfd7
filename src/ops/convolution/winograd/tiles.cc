// How Winograd's algorithm cuts its tiles, and how source pixels are gathered for them.

#include <algorithm>
#include <cstring>

#include "src/ops/convolution/winograd/winograd.h"

namespace bnns {
namespace {

// `count` pixels of one row from column `begin` on, with zeros around, as f32. buffer has space for 2 * count.
void copy_row(const ImageSource& source, size_t n, size_t channel, size_t y, size_t begin, size_t count, float* buffer,
              float* to) {
  const float* values =
      source.plain() ? source.plain_at(n, channel, y) + begin : source.row(n, channel, y, begin, count, buffer);
  std::memcpy(to, values, count * sizeof(float));
}

// Two rows of each of four channels, of which the even and the odd columns are gathered as channels of their own.
void gather_phases(const ImageSource& source, size_t n, size_t first_channel, size_t channels,
                   const WinogradStage& window, float* stage) {
  const size_t row_floats = window.width * kWinogradGroup, length = 2 * window.width;
  float *const rows = stage + window.height * row_floats, *const buffer = rows + 8 * length;
  const auto height = static_cast<ptrdiff_t>(source.height()), width = static_cast<ptrdiff_t>(source.width());
  const ptrdiff_t begin = std::clamp<ptrdiff_t>(window.left, 0, width);
  const ptrdiff_t end = std::clamp<ptrdiff_t>(window.left + static_cast<ptrdiff_t>(length), begin, width);
  const auto count = static_cast<size_t>(end - begin);
  const size_t before =
      count == 0 ? 0 : static_cast<size_t>(begin - window.left);  // none: the image ends before, or begins after
  std::memset(rows, 0, 8 * length * sizeof(float));
  for (size_t r = 0; r < window.height; ++r) {
    for (size_t i = 0; i < 2 * channels; ++i) {
      const ptrdiff_t y = window.top + static_cast<ptrdiff_t>(2 * r + i % 2);
      float* to = rows + i * length + before;
      if (y >= 0 && y < height) {
        copy_row(source, n, first_channel + i / 2, static_cast<size_t>(y), static_cast<size_t>(begin), count, buffer,
                 to);
      } else {
        std::memset(to, 0, count * sizeof(float));
      }
    }
    winograd_gather_phases(rows, length, window.width, stage + r * row_floats);
  }
}

}  // namespace

size_t count_inside(ptrdiff_t first, ptrdiff_t step, size_t count, size_t extent) {
  size_t inside = 0;
  for (size_t i = 0; i < count; ++i, first += step) inside += first >= 0 && first < static_cast<ptrdiff_t>(extent);
  return inside;
}

size_t winograd_taps(const PatchAxis& y, const PatchAxis& x) {
  const auto taps = [](const PatchAxis& a) -> size_t {
    if (a.target_step != 1 || a.kernel_step != 1) return 0;
    if (a.step == 1) return a.tap == 1 || a.tap == -1 ? a.taps : 0;
    // Not 5x5 and 6x6, r = 3: at the borders they had seven times the error of plain sums.
    return a.step == 2 && a.tap == 1 && a.taps > 6 ? div_up(a.taps, 2) : 0;
  };
  const size_t r = taps(y);
  return y.step == x.step && taps(x) == r && r >= 3 && r <= 5 ? r : 0;
}

// dW's outer taps have the terms of few pixels but the error of whole tiles (accepts_winograd_gather says the same of
// corners): 9x9 over a stride of 2 had 5.4 times with a third.
bool has_mild_taps(const PatchAxis& y, const PatchAxis& x) {
  const auto least = [](const PatchAxis& a) {
    const ptrdiff_t last = static_cast<ptrdiff_t>(a.taps - 1) * a.tap + a.offset;
    return std::min(count_inside(a.offset, a.step, a.pixels, a.extent), count_inside(last, a.step, a.pixels, a.extent));
  };
  return 2 * least(y) * least(x) >= y.pixels * x.pixels;
}

PixelBlocks make_tile_blocks(size_t taps, const PatchAxis& y, const PatchAxis& x, size_t batch, size_t wanted) {
  const size_t height = div_up(y.pixels, winograd_tile(taps)), length = div_up(x.pixels, winograd_tile(taps));
  PixelBlocks b{batch, height, length, 1, height, length};
  if (2 * b.height * b.length <= wanted) {
    b.samples = std::min({batch, wanted / (b.height * b.length), kWinogradMostSamples});
  } else if (b.length <= wanted) {
    b.rows = div_up(b.height, div_up(b.height, std::max<size_t>(1, wanted / b.length)));
  } else {
    b.rows = 1;
    b.width = div_up(b.length, div_up(b.length, wanted));
  }
  return b;
}

void gather_stage(const ImageSource& source, size_t n, size_t first_channel, size_t channels,
                  const WinogradStage& window, float* stage) {
  if (window.step == 2) return gather_phases(source, n, first_channel / 4, channels / 4, window, stage);
  const size_t row_floats = window.width * kWinogradGroup;
  float* const row_buffer = stage + window.height * row_floats;
  const auto height = static_cast<ptrdiff_t>(source.height()), width = static_cast<ptrdiff_t>(source.width());
  const ptrdiff_t begin = std::clamp<ptrdiff_t>(window.left, 0, width);
  const ptrdiff_t end = std::clamp<ptrdiff_t>(window.left + static_cast<ptrdiff_t>(window.width), begin, width);
  const auto before = static_cast<size_t>(begin - window.left), count = static_cast<size_t>(end - begin);
  for (size_t r = 0; r < window.height; ++r) {
    float* to = stage + r * row_floats;
    const ptrdiff_t row = window.top + static_cast<ptrdiff_t>(r);
    if (row < 0 || row >= height || count == 0) {
      std::memset(to, 0, row_floats * sizeof(float));
      continue;
    }
    const size_t y = static_cast<size_t>(row), x = static_cast<size_t>(begin);
    const float* from = row_buffer;
    size_t stride = 2 * count;
    if (source.plain()) {
      from = source.plain_at(n, first_channel, y) + begin;
      stride = source.tensor->stride[2];
    } else {
      for (size_t c = 0; c < channels; ++c) {
        float* buffer = row_buffer + c * stride;
        const float* values = source.row(n, first_channel + c, y, x, count, buffer);
        if (values != buffer) std::memcpy(buffer, values, count * sizeof(float));
      }
    }
    std::memset(to, 0, before * kWinogradGroup * sizeof(float));
    winograd_gather(from, stride, channels, count, to + before * kWinogradGroup);
    to += (before + count) * kWinogradGroup;
    std::memset(to, 0, (window.width - before - count) * kWinogradGroup * sizeof(float));
  }
}

}  // namespace bnns
