// What the implementations of Winograd's algorithm F(m x m, r x r), m + r = 7, share: which kernels it is for, how
// images are cut into tiles, and how their pixels are gathered.
#pragma once

#include <algorithm>
#include <cstddef>

#include "src/gemm/kernels.h"
#include "src/ops/convolution/common/cut.h"
#include "src/ops/convolution/common/problem.h"
#include "src/ops/convolution/winograd/kernels.h"

namespace bnns {

inline constexpr size_t kWinogradMostSamples = 64;  // of a block: a part for a sink

// r of F(m x m, r x r) where the map's shape allows it, else 0. Over a step of 2 the four phases of the source (even
// and odd rows and columns) are channels of their own, each with every other tap; where taps are odd the last is 0.
size_t winograd_taps(const PatchAxis& y, const PatchAxis& x);
inline size_t winograd_channels(const PatchAxis& y, size_t channels) {
  return y.step == 2 ? 4 * channels : channels;
}
// How many of the positions first + i * step, i < count, lie inside the source.
size_t count_inside(ptrdiff_t first, ptrdiff_t step, size_t count, size_t extent);
// Whether the error of the outer taps of dW, which have the terms of fewer pixels, stays within four times that of
// plain sums.
bool has_mild_taps(const PatchAxis& y, const PatchAxis& x);

// Tiles of all samples in blocks of about `wanted`: whole samples, or rows of tiles, or pieces of a row.
PixelBlocks make_tile_blocks(size_t taps, const PatchAxis& y, const PatchAxis& x, size_t batch, size_t wanted);

// Channels of one sum. The transforms enlarge the rounding errors of the products, which grow with the root of a sum's
// length; sums of 64, added up, keep the largest error of a layer of 512 channels within 7 times that of PyTorch.
inline constexpr size_t kWinogradSum = 64;
// The product of one point over `depth` channels, in such sums.
inline void multiply_point(const TileKernels& kernels, const GemmBlock& whole, size_t depth) {
  GemmBlock g = whole;
  for (size_t k = 0; k < depth; k += kWinogradSum) {
    g.depth = std::min(kWinogradSum, depth - k);
    g.a = whole.a + k, g.b = whole.b + k * kernels.columns;
    g.accumulate = whole.accumulate || k > 0;
    kernels.block(g);
  }
}

// An odd number of cache lines, so that the 36 points of a tile do not fall on the same sets.
inline size_t odd_lines(size_t floats) {
  return (round_up(floats, 16) / 16 | 1) * 16;
}

// A rectangle of source pixels, inside the image or not, gathered for 16 channels: pixels row by row, zeros outside.
// Step 2: channels 4 c to 4 c + 3 are the phases of channel c.
struct WinogradStage {
  ptrdiff_t top = 0, left = 0;  // in the source
  size_t height = 0, width = 0;
  size_t step = 1;
};
// Floats that it takes, with space for rows that must be converted first.
inline size_t stage_floats(size_t height, size_t width) {
  return (height + 2) * width * kWinogradGroup;
}
void gather_stage(const ImageSource& source, size_t n, size_t first_channel, size_t channels,
                  const WinogradStage& window, float* stage);

}  // namespace bnns
