// Which maps Winograd's algorithm takes, how their tiles are cut, and how source pixels are gathered for them.

#include <algorithm>
#include <cstring>

#include "src/ops/convolution/winograd/transposed.h"
#include "src/ops/convolution/winograd/winograd.h"

namespace bnns {
namespace {

// 3x3 with a step of 1: below so many channels on either side the transforms cost what the products save.
constexpr size_t kLeastChannels = 32;
constexpr size_t kLeastPixels = 36;  // of the batch
// Larger kernels: target channels, source channels (phases count), pairs of them, tiles of the batch, products of a
// point.
constexpr size_t kLeastRows = 16, kLeastDepth = 12, kLeastPairs = 256, kLeastTiles = 16, kLeastWork = 32 * 1024;

// From the side of the source: source channels, and target channels, phases count. Up to 24 of those the direct ways
// are good at few samples.
constexpr size_t kScatterLeastDepth = 32, kScatterMostDepth = 512, kScatterLeastColumns = 12, kScatterFewColumns = 24,
                 kScatterMostColumns = 512, kScatterLeastBatch = 8;

// `count` pixels of one row from column `begin` on, with zeros around, as f32. room has space for 2 * count.
void copy_row(const ImageSource& source, size_t n, size_t channel, size_t y, size_t begin, size_t count, float* room,
              float* to) {
  const float* values =
      source.plain() ? source.plain_at(n, channel, y) + begin : source.row(n, channel, y, begin, count, room);
  std::memcpy(to, values, count * sizeof(float));
}

// Two rows of each of four channels, of which the even and the odd columns are gathered as channels of their own.
void gather_phases(const ImageSource& source, size_t n, size_t first_channel, size_t channels,
                   const WinogradStage& window, float* stage) {
  const size_t row_floats = window.width * kWinogradGroup, length = 2 * window.width;
  float *const rows = stage + window.height * row_floats, *const room = rows + 8 * length;
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
        copy_row(source, n, first_channel + i / 2, static_cast<size_t>(y), static_cast<size_t>(begin), count, room, to);
      } else {
        std::memset(to, 0, count * sizeof(float));
      }
    }
    winograd_gather_phases(rows, length, window.width, stage + r * row_floats);
  }
}

// How many of the positions first + i * step, i < count, lie inside the source.
size_t count_inside(ptrdiff_t first, ptrdiff_t step, size_t count, size_t extent) {
  size_t inside = 0;
  for (size_t i = 0; i < count; ++i, first += step) inside += first >= 0 && first < static_cast<ptrdiff_t>(extent);
  return inside;
}

// Pixels in corners have the terms of few taps but the error of their whole tile, which must stay below four times that
// of plain sums (BC16): 3x3 3.3 times with one pixel of padding and 7.2 with two, 4x4 3.1 times with two.
bool has_mild_corners(size_t taps, const PatchAxis& y, const PatchAxis& x) {
  const auto least = [](const PatchAxis& a) {
    const ptrdiff_t last = static_cast<ptrdiff_t>(a.pixels - 1) * a.step + a.offset;
    return std::min(count_inside(a.offset, a.tap, a.taps, a.extent), count_inside(last, a.tap, a.taps, a.extent));
  };
  const size_t seen = least(y) * least(x), all = y.taps * x.taps;
  return taps == 3 ? 5 * seen >= 2 * all : 4 * seen >= all;
}

}  // namespace

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

// The same for dW, whose outer taps have the terms of few pixels: 9x9 over a stride of 2 had 5.4 times with a third.
bool has_mild_taps(const PatchAxis& y, const PatchAxis& x) {
  const auto least = [](const PatchAxis& a) {
    const ptrdiff_t last = static_cast<ptrdiff_t>(a.taps - 1) * a.tap + a.offset;
    return std::min(count_inside(a.offset, a.step, a.pixels, a.extent), count_inside(last, a.step, a.pixels, a.extent));
  };
  return 2 * least(y) * least(x) >= y.pixels * x.pixels;
}

bool is_winograd(const PatchAxis& y, const PatchAxis& x, size_t groups, size_t rows, size_t channels, size_t batch) {
  const size_t taps = winograd_taps(y, x);
  if (taps == 0 || groups != 1) return false;
  if (!has_mild_corners(taps, y, x)) return false;
  // Without FMA the error of larger kernels passes four times that of plain sums (4x4, two pixels of padding).
  if (y.taps > 3 && isa() == Isa::baseline) return false;
  const size_t tile = winograd_tile(taps), tiles = div_up(y.pixels, tile) * div_up(x.pixels, tile);
  const size_t phases = winograd_channels(y, 1);
  channels *= phases;
  // Half of the products must be saved: tiles that reach beyond the target waste them.
  const auto saves = [&](size_t pixels) { return 2 * kWinogradPoints * phases * tiles <= y.taps * x.taps * pixels; };
  const size_t pixels = y.pixels * x.pixels;
  if (taps == 3 && phases == 1) {
    return rows >= kLeastChannels && channels >= kLeastChannels && batch * pixels >= kLeastPixels && saves(pixels);
  }
  // The direct ways are good at few channels and few pixels. From the side of the source they also skip the products
  // of a larger target with the zeros around it.
  return rows >= kLeastRows && 8 * rows >= 5 * round_up(rows, kWinogradGroup) && channels >= kLeastDepth &&
         rows * channels >= kLeastPairs && batch * tiles >= kLeastTiles &&
         batch * tiles * rows * channels >= kLeastWork &&
         saves(std::min(pixels, phases == 1 ? y.extent * x.extent : pixels));
}

bool winograd_scatter_accepts(const ConvolutionMap& map, size_t batch) {
  const PatchAxis y = down_axis(map.y), x = down_axis(map.x);
  const size_t taps = winograd_taps(y, x);
  if (taps == 0 || map.groups != 1) return false;
  if (y.taps > 3 && isa() == Isa::baseline) return false;  // as in is_winograd: 8x8 over a stride of 2 has 4.05
  if (y.step == 1 &&
      is_winograd(up_axis(map.y, 0), up_axis(map.x, 0), 1, map.large_channels, map.small_channels, batch)) {
    return false;
  }
  const size_t columns = winograd_channels(y, map.large_channels), phases = winograd_channels(y, 1);
  if (map.small_channels < kScatterLeastDepth || map.small_channels > kScatterMostDepth ||
      columns < (taps == 3 ? kLeastChannels : kScatterLeastColumns) || columns > kScatterMostColumns ||
      (columns <= kScatterFewColumns && batch < kScatterLeastBatch)) {
    return false;
  }
  // Where the last pixel's taps end, before the large image's end or after it.
  const auto end_of = [](const ConvolutionAxis& a, const PatchAxis& p) {
    return static_cast<ptrdiff_t>(p.pixels - 1) * p.step + static_cast<ptrdiff_t>(p.taps) + p.offset -
           static_cast<ptrdiff_t>(a.large);
  };
  const auto covers = [&](const ConvolutionAxis& a, const PatchAxis& p) { return end_of(a, p) >= 0; };
  // Over a step of 2 an odd kernel has a tap less in its odd phases, whose last pixel, with the terms of one tap, is
  // then inside of a tile: 4.6 times the error of plain sums, in the corner 6.3 (BC16), unless padding takes it off.
  const auto is_mild = [&](const ConvolutionAxis& a, const PatchAxis& p) {
    return p.step == 1 || p.taps % 2 == 0 || end_of(a, p) >= 2;
  };
  if (!is_mild(map.y, y) || !is_mild(map.x, x)) return false;
  const size_t tile = winograd_tile(taps), tiles = div_up(y.pixels, tile) * div_up(x.pixels, tile);
  // One tile of 5x5 alone has six times their error in the middle of its pixels, which two taps of five reach.
  const size_t least = taps == 5 ? tile + 1 : tile;
  return covers(map.y, y) && covers(map.x, x) && y.pixels >= least && x.pixels >= least &&
         2 * kWinogradPoints * phases * tiles <= y.taps * x.taps * y.pixels * x.pixels;
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
  float* const row_room = stage + window.height * row_floats;
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
    const float* from = row_room;
    size_t stride = 2 * count;
    if (source.plain()) {
      from = source.plain_at(n, first_channel, y) + begin;
      stride = source.tensor->stride[2];
    } else {
      for (size_t c = 0; c < channels; ++c) {
        float* room = row_room + c * stride;
        const float* values = source.row(n, first_channel + c, y, x, count, room);
        if (values != room) std::memcpy(room, values, count * sizeof(float));
      }
    }
    std::memset(to, 0, before * kWinogradGroup * sizeof(float));
    winograd_gather(from, stride, channels, count, to + before * kWinogradGroup);
    to += (before + count) * kWinogradGroup;
    std::memset(to, 0, (window.width - before - count) * kWinogradGroup * sizeof(float));
  }
}

}  // namespace bnns
