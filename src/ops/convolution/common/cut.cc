// How target pixels are cut into rectangles and depth into ranges.

#include "src/ops/convolution/common/cut.h"

#include <algorithm>
#include <cstdint>

namespace bnns {

PixelBlock PixelBlocks::at(size_t index) const {
  PixelBlock b;
  const size_t across = div_up(length, width), down = div_up(height, rows);
  b.v0 = index % across * width;
  b.v1 = std::min(length, b.v0 + width);
  b.u0 = index / across % down * rows;
  b.u1 = std::min(height, b.u0 + rows);
  b.n0 = index / (across * down) * samples;
  b.n1 = std::min(batch, b.n0 + samples);
  return b;
}

PixelBlocks make_pixel_blocks(const PatchAxis& y, const PatchAxis& x, size_t batch, size_t wanted, size_t unit,
                              bool fill_units, size_t slab_limit) {
  PixelBlocks b{batch, y.pixels, x.pixels, 1, y.pixels, x.pixels};
  if (2 * y.pixels <= wanted / x.pixels) {
    b.samples = std::clamp<size_t>(wanted / (y.pixels * x.pixels), 1, std::max<size_t>(1, batch));
  } else if (x.pixels <= wanted && fill_units) {
    size_t best = 1;
    double best_share = 0;
    const size_t most = std::min(y.pixels, std::max<size_t>(1, wanted * 5 / 4 / x.pixels));
    for (size_t rows = std::max<size_t>(1, wanted / 2 / x.pixels); rows <= most; ++rows) {
      const size_t pixels = rows * x.pixels;
      const double share = static_cast<double>(pixels) / static_cast<double>(round_up(pixels, unit));
      if (share >= best_share - 0.01) best = rows, best_share = std::max(share, best_share);
    }
    b.rows = best;
  } else if (x.pixels <= wanted) {
    b.rows = div_up(y.pixels, div_up(y.pixels, wanted / x.pixels));
  } else {
    b.rows = 1;
    b.width = round_up(div_up(x.pixels, div_up(x.pixels, wanted)), unit);
  }
  while (slab_floats(y, x, b.at(0), 1) > slab_limit) {
    if (b.samples > 1) {
      b.samples = div_up(b.samples, 2);
    } else if (b.rows > 1) {
      b.rows = div_up(b.rows, 2);
    } else if (b.width > unit) {
      b.width = round_up(div_up(b.width, 2), unit);
    } else {
      break;  // one piece of one row: as large as it is
    }
  }
  return b;
}

ChannelTapBlocks::ChannelTapBlocks(const PatchAxis& y, const PatchAxis& x, size_t all_channels, size_t limit,
                                   const PixelBlocks& pixels, size_t slab_limit)
    : channels(all_channels), taps(y.taps * x.taps) {
  if (taps > limit) {
    tap_step = div_up(taps, div_up(taps, limit));
    return;
  }
  tap_step = taps;
  channel_step = std::min(channels, limit / taps);
  while (channel_step > 1 && slab_floats(y, x, pixels.at(0), channel_step) > slab_limit) --channel_step;
  channel_step = div_up(channels, div_up(channels, channel_step));
}

ChannelTaps ChannelTapBlocks::at(size_t index) const {
  const size_t parts = div_up(taps, tap_step), c = index / parts * channel_step, t = index % parts * tap_step;
  return {c, std::min(channels, c + channel_step), t, std::min(taps, t + tap_step)};
}

BlockParts parts_for_threads(size_t tasks, size_t threads, BlockParts most, size_t packing) {
  BlockParts best;
  if (threads <= 2) return best;
  constexpr size_t kMost = 8, kUnit = 1000;  // parts; the time of a block's products
  size_t least = SIZE_MAX;
  for (size_t rows = 1; rows <= std::clamp<size_t>(most.rows, 1, kMost); ++rows) {
    for (size_t columns = 1; columns <= std::clamp<size_t>(most.columns, 1, kMost); ++columns) {
      const size_t task = kUnit / (rows * columns) + packing * kUnit / 10 / rows + packing * kUnit / 10 / columns;
      const size_t time = div_up(tasks * rows * columns, threads) * task;
      if (time < least) least = time, best = {rows, columns};
    }
  }
  return best;
}

void cut_for_threads(size_t tasks, size_t threads, size_t packing, size_t panel, ChannelTapBlocks* rows,
                     size_t* columns) {
  constexpr size_t kLeast = 64;  // rows and columns of a block
  const size_t most = rows->tap_step == rows->taps ? std::min(rows->channel_step, rows->largest() / kLeast) : 1;
  const BlockParts parts = parts_for_threads(tasks, threads, {most, *columns / kLeast}, packing);
  const size_t channels = div_up(rows->channel_step, parts.rows);
  rows->channel_step = div_up(rows->channels, div_up(rows->channels, channels));
  if (parts.columns > 1) *columns = round_up(div_up(*columns, parts.columns), panel);
}

size_t weight_slices(size_t blocks, size_t pieces, size_t block_floats, size_t work, size_t slice_work) {
  constexpr size_t kSliceBytes = 2 << 20;
  if (2 * blocks > kWeightTasks) return 1;
  const size_t most = kSliceBytes / (blocks * block_floats * sizeof(float));
  return std::max<size_t>(1, std::min({kWeightTasks / blocks, pieces, most, work / slice_work}));
}

}  // namespace bnns
