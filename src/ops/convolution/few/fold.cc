// Maps to one or two target channels: sums for each column of taps, added shifted at the end.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/common/weights.h"
#include "src/ops/convolution/few/few.h"

namespace bnns {

bool accepts_few_fold(const PatchMap& p) {
  constexpr size_t kMostRows = 2;
  return p.rows <= kMostRows && p.x.taps >= 3 && p.x.taps <= kFewRows && (p.x.tap == 1 || p.x.tap == -1) &&
         accepts_few_tile(p);
}

// For each target channel and column of taps a plane: the sums over channels and rows of taps, for all columns of the
// padded source. Then the planes are folded, column kx of taps shifted by kx.
void run_few_fold(const PatchMap& p, CallScratch& scratch) {
  const PatchAxis &y = p.y, &x = p.x;
  const ImageTarget& target = p.target;
  const size_t groups = p.groups(), rows = p.rows, channels = p.channels, batch = p.batch;
  const WeightView weights = f32_weights(p.weights);
  const ptrdiff_t row_stride = p.row_stride(weights), channel_stride = p.channel_stride(weights);
  const FewSlab slab(y, x, channels, false, batch);
  const size_t row_blocks = div_up(y.pixels, slab.rows), width = x.pixels, depth = channels * y.taps * x.taps;
  const size_t threads =
      threads_for(p.threads, batch * groups * row_blocks, batch * groups * rows * depth * y.pixels * width / 2);
  const size_t a_floats = round_up(groups * rows * depth, 16), offset_floats = round_up(2 * y.taps, 16);
  const size_t slab_floats = slab.floats(channels), plane = round_up(slab.rows * slab.length, 16) + 16;
  const size_t out_floats = round_up(slab.rows * width, 16);
  const size_t own_floats = slab_floats + slab.buffer_floats(x) + x.taps * plane + out_floats;
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, own_floats, a_floats + offset_floats));
  if (scratch.measuring()) return;
  float* const a = buffer.as<float>();
  auto* const offset = reinterpret_cast<ptrdiff_t*>(a + a_floats);
  const ptrdiff_t below = y.tap < 0 ? (static_cast<ptrdiff_t>(y.taps) - 1) * -y.tap : 0;
  for (size_t j = 0; j < y.taps; ++j) {
    offset[j] = (static_cast<ptrdiff_t>(j) * y.tap + below) * static_cast<ptrdiff_t>(slab.length);
  }
  // Weights as the tiles read them: [group][row][channel][ky][kx], the taps of a row from right to left in the source.
  float* to = a;
  for (size_t r = 0; r < groups * rows; ++r) {
    const float* base =
        weights.data + static_cast<ptrdiff_t>(r / rows) * weights.group + static_cast<ptrdiff_t>(r % rows) * row_stride;
    for (size_t k = 0; k < depth; ++k) {
      const size_t c = k / x.taps / y.taps, j = k / x.taps % y.taps, i = k % x.taps;
      const size_t kx = x.kernel_first + (x.tap < 0 ? i : x.taps - 1 - i) * x.kernel_step;
      *to++ = base[static_cast<ptrdiff_t>(c) * channel_stride +
                   static_cast<ptrdiff_t>(y.kernel_first + j * y.kernel_step) * weights.y +
                   static_cast<ptrdiff_t>(kx) * weights.x];
    }
  }
  const bool direct = target.in_place(y, x);
  parallel_for(batch * groups * row_blocks, threads, [&](size_t task, size_t worker) {
    const size_t u0 = task % row_blocks * slab.rows, u1 = std::min(y.pixels, u0 + slab.rows), count = (u1 - u0) * width;
    const size_t group = task / row_blocks % groups, n = task / row_blocks / groups;
    float* const own = a + a_floats + offset_floats + worker * own_floats;
    float *const slab_buffer = own + slab_floats, *const planes = slab_buffer + slab.buffer_floats(x);
    slab.fill(p.source, y, x, n, group * channels, channels, u0, u1, own, slab_buffer);
    for (size_t r = group * rows; r < (group + 1) * rows; ++r) {
      FewTile tile;
      tile.rows = x.taps, tile.channels = channels, tile.taps = y.taps, tile.flat = (u1 - u0) * slab.length;
      tile.x = own, tile.channel_stride = slab.channel_stride, tile.offset = offset;
      tile.a = a + r * depth, tile.a_stride = y.taps * x.taps;
      tile.y = planes, tile.y_stride = plane;
      few_tile(tile);
      float* values = planes + x.taps * plane;
      if (direct) values = target.at(n, r, u0);
      FewFold fold;
      fold.copies = x.taps, fold.copy_stride = plane, fold.rows = u1 - u0, fold.row_stride = slab.length;
      fold.width = slab.length, fold.first = static_cast<ptrdiff_t>(x.taps) - 1;
      fold.x = planes, fold.to = values, fold.to_width = fold.to_stride = width;
      few_fold_rows(fold);
      finish_values(target, r, values, count);
      for (size_t u = u0; u < u1 && !direct; ++u, values += width) {
        store_run(target, n, r, y.target_first + u * y.target_step, x.target_first, x.target_step, values, width);
      }
    }
  });
}

}  // namespace bnns
