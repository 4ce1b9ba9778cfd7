// Which maps and weight gradients Winograd's algorithm takes: where it pays, and where its error stays below four times
// that of plain sums. None with BNNS_PRECISION=strict.

#include <algorithm>

#include "src/core/isa.h"
#include "src/core/process/precision.h"
#include "src/ops/convolution/winograd/dw.h"
#include "src/ops/convolution/winograd/gather.h"
#include "src/ops/convolution/winograd/transposed.h"

namespace bnns {
namespace {

// 3x3 with a step of 1: below so many channels on either side the transforms cost what the products save.
constexpr size_t kLeastChannels = 32;
constexpr size_t kLeastPixels = 36;  // of the batch
// Larger kernels: target channels, source channels (phases count), pairs of them, tiles of the batch, products of a
// point.
constexpr size_t kLeastRows = 16, kLeastDepth = 12, kLeastPairs = 256, kLeastTiles = 16, kLeastWork = 32 * 1024;

// Transposed: source channels, and target channels, phases count. Up to 24 of those the direct algorithms are good at
// few samples.
constexpr size_t kTransposedLeastDepth = 32, kTransposedMostDepth = 512, kTransposedLeastColumns = 12,
                 kTransposedFewColumns = 24, kTransposedMostColumns = 512, kTransposedLeastBatch = 8;

// dW: channels, and tiles of the batch. Below, the transforms cost what the products save.
constexpr size_t kDwLeastLarge = 12, kDwLeastSmall = 16, kDwLeastTiles = 32;

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

bool accepts_winograd_gather(const PatchMap& p) {
  const PatchAxis &y = p.y, &x = p.x;
  const size_t taps = winograd_taps(y, x), rows = p.rows, batch = p.batch;
  if (strict_precision() || taps == 0 || p.groups() != 1 || rows < kLeastRows) return false;
  if (!has_mild_corners(taps, y, x)) return false;
  // Without FMA the error of larger kernels passes four times that of plain sums (4x4, two pixels of padding).
  if (y.taps > 3 && isa() == Isa::baseline) return false;
  const size_t tile = winograd_tile(taps), tiles = div_up(y.pixels, tile) * div_up(x.pixels, tile);
  const size_t phases = winograd_channels(y, 1);
  const size_t channels = phases * p.channels;
  // Half of the products must be saved: tiles that reach beyond the target waste them.
  const auto saves = [&](size_t pixels) { return 2 * kWinogradPoints * phases * tiles <= y.taps * x.taps * pixels; };
  const size_t pixels = y.pixels * x.pixels;
  if (taps == 3 && phases == 1) {
    return rows >= kLeastChannels && channels >= kLeastChannels && batch * pixels >= kLeastPixels && saves(pixels);
  }
  // The direct algorithms are good at few channels and few pixels; few/transposed also skips the products of a larger
  // target with the zeros around it.
  return rows >= kLeastRows && 8 * rows >= 5 * round_up(rows, kWinogradGroup) && channels >= kLeastDepth &&
         rows * channels >= kLeastPairs && batch * tiles >= kLeastTiles &&
         batch * tiles * rows * channels >= kLeastWork &&
         saves(std::min(pixels, phases == 1 ? y.extent * x.extent : pixels));
}

bool accepts_winograd_transposed(const PatchMap& p) {
  const ConvolutionMap& map = p.map;
  if (strict_precision() || !p.up || p.bf16 || map.groups != 1 || map.small_channels < kTransposedLeastDepth) {
    return false;
  }
  const PatchAxis y = down_axis(map.y), x = down_axis(map.x);
  const size_t taps = winograd_taps(y, x), batch = p.batch;
  if (taps == 0) return false;
  if (y.taps > 3 && isa() == Isa::baseline) return false;  // as above: 8x8 over a stride of 2 has 4.05
  if (y.step == 1 && accepts_winograd_gather(make_patch_map(map, true, batch))) return false;
  const size_t columns = winograd_channels(y, map.large_channels), phases = winograd_channels(y, 1);
  if (map.small_channels > kTransposedMostDepth || columns < (taps == 3 ? kLeastChannels : kTransposedLeastColumns) ||
      columns > kTransposedMostColumns || (columns <= kTransposedFewColumns && batch < kTransposedLeastBatch)) {
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

bool accepts_winograd_dw(const WeightMap& p) {
  const ConvolutionMap& map = p.map;
  // Without FMA its transforms round so often that small images have more than four times the error of plain sums.
  if (strict_precision() || isa() == Isa::baseline || map.groups != 1 || map.small_channels < kDwLeastSmall) {
    return false;
  }
  const PatchAxis &y = p.y, &x = p.x;
  const size_t taps = winograd_taps(y, x), phases = winograd_channels(y, 1), pixels = y.pixels * x.pixels;
  if (taps == 0 || !has_mild_taps(y, x)) return false;
  if (taps == 3 && accepts_winograd_gather(make_patch_map(map, false, p.batch))) return true;
  if (phases * map.large_channels < kDwLeastLarge) return false;
  // Half of the products must be saved: tiles that reach beyond the small image waste them.
  const size_t tiles = div_up(y.pixels, winograd_tile(taps)) * div_up(x.pixels, winograd_tile(taps));
  return p.batch * tiles >= kDwLeastTiles && 2 * kWinogradPoints * phases * tiles <= y.taps * x.taps * pixels;
}

}  // namespace bnns
