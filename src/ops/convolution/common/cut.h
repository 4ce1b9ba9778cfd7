// How the maps cut their work: target pixels into rectangles, depth (channel, tap) into ranges. Both follow from the
// shape alone.
#pragma once

#include <cstddef>

#include "src/core/checked.h"
#include "src/ops/convolution/common/source.h"

namespace bnns {

// Floats of the slab of one block: 768 KB. Fewer channels at a time where rows are long, fewer pixels where one channel
// is more than that.
inline constexpr size_t kSlabFloats = 192 * 1024;

// All pixels of a batch, in rectangles of the same size (the last of each kind may be smaller).
struct PixelBlocks {
  size_t batch = 0, height = 0, length = 0;  // what is cut
  size_t samples = 1, rows = 1, width = 1;   // of one block

  size_t count() const { return div_up(batch, samples) * div_up(height, rows) * div_up(length, width); }
  size_t pixels() const { return samples * rows * width; }
  PixelBlock at(size_t index) const;
};

// Whole samples where planes are small, whole rows where they are not too long, else pieces of a row: about `wanted`
// pixels, whose slab of one channel takes at most slab_limit floats. Pieces of a row are whole `unit`s. fill_units:
// up to a quarter more pixels, as many rows as fill whole units best.
PixelBlocks make_pixel_blocks(const PatchAxis& y, const PatchAxis& x, size_t batch, size_t wanted, size_t unit,
                              bool fill_units, size_t slab_limit = kSlabFloats);

// Channels [c0, c1) with taps [t0, t1) each.
struct ChannelTaps {
  size_t c0 = 0, c1 = 0, t0 = 0, t1 = 0;
  size_t channels() const { return c1 - c0; }
  size_t taps() const { return t1 - t0; }
  size_t size() const { return channels() * taps(); }
};

// All (channel, tap) in even ranges of at most `limit`: whole channels, or parts of one channel's taps.
struct ChannelTapBlocks {
  size_t channels = 0, taps = 0;          // what is cut
  size_t channel_step = 1, tap_step = 1;  // of one block

  ChannelTapBlocks() = default;
  ChannelTapBlocks(const PatchAxis& y, const PatchAxis& x, size_t all_channels, size_t limit, const PixelBlocks& pixels,
                   size_t slab_limit = kSlabFloats);
  size_t count() const { return div_up(channels, channel_step) * div_up(taps, tap_step); }
  size_t largest() const { return channel_step * tap_step; }
  ChannelTaps at(size_t index) const;
};

// Parts that the rows and columns of every block of a weight gradient are cut into, where blocks and slices are too few
// for more than two threads: no sum depends on it. `most` are the parts that there can be. `packing` is what packing
// the operands costs, in tenths of multiplying them: cut rows pack the columns anew.
struct BlockParts {
  size_t rows = 1, columns = 1;
};
BlockParts parts_for_threads(size_t tasks, size_t threads, BlockParts most, size_t packing);

// The same done: blocks of fewer channels with all of their taps, and of fewer columns, whole panels of them.
void cut_for_threads(size_t tasks, size_t threads, size_t packing, size_t panel, ChannelTapBlocks* rows,
                     size_t* columns);

// Slices of the sum over pixels in a weight gradient: where blocks of dW are few, so that there are about kWeightTasks
// tasks. All slices together take at most 2 MB; each is worth slice_work multiply-adds.
inline constexpr size_t kWeightTasks = 16;
size_t weight_slices(size_t blocks, size_t pieces, size_t block_floats, size_t work, size_t slice_work);

}  // namespace bnns
