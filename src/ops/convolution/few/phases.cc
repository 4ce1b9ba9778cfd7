// Up over a stride of 2 to few target channels: all four phases on one slab.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/common/kernels.h"
#include "src/ops/convolution/common/weights.h"
#include "src/ops/convolution/few/few.h"

namespace bnns {
namespace {

constexpr size_t kPhases = 2;       // of an axis
constexpr size_t kNearBlock = 112;  // numbers of a block in L1: a tile of 3 rows

// An axis that reads what both phases read.
PatchAxis unite(const PatchAxis& a, const PatchAxis& b) {
  const auto low = [](const PatchAxis& p) { return p.offset - static_cast<ptrdiff_t>(p.taps) + 1; };
  PatchAxis all = a;
  all.pixels = std::max(a.pixels, b.pixels);
  all.offset = std::max(a.offset, b.offset);
  all.taps = static_cast<size_t>(all.offset - std::min(low(a), low(b)) + 1);
  return all;
}

// The map with the y axis that reads what both phases read.
PatchMap united(PatchMap p, const PatchAxis (&y)[2]) {
  p.y = unite(y[0], y[1]);
  return p;
}

// Several tiles on one source: kNearBlock numbers of so many channels at a time as stay in L1, where a channel's take
// `floats`.
void run_tiles(FewTile* tiles, size_t count, size_t floats, LinesAhead ahead) {
  const size_t channels = tiles->channels, parts = div_up(channels, std::max<size_t>(1, kFewNear / floats));
  size_t flat = 0;
  for (size_t i = 0; i < count; ++i) flat = std::max(flat, tiles[i].flat);
  ahead.some = div_up(ahead.runs * ahead.lines, div_up(flat, kNearBlock) * parts * count);
  for (size_t j = 0; j < flat; j += kNearBlock) {
    for (size_t part = 0; part < parts; ++part) {
      const size_t c0 = channels * part / parts, c1 = channels * (part + 1) / parts;
      for (size_t i = 0; i < count; ++i) {
        FewTile tile = tiles[i];
        prefetch_some(ahead);
        if (j >= tile.flat) continue;
        tile.x += c0 * tile.channel_stride + j, tile.a += c0 * tile.a_stride, tile.y += j;
        tile.channels = c1 - c0, tile.flat = std::min(kNearBlock, tile.flat - j),
        tile.store = part > 0 ? FewStore::add : FewStore::plain;
        few_tile(tile);
      }
    }
  }
}

}  // namespace

bool accepts_few_phases(const PatchMap& p) {
  const ConvolutionMap& map = p.map;
  if (p.bf16 || map.y.stride != kPhases || map.x.stride != kPhases || map.y.dilation != 1 || map.x.dilation != 1 ||
      map.y.large < kPhases || map.x.large % kPhases != 0 || map.large_channels > kFewRows) {
    return false;
  }
  const PatchAxis y[] = {up_axis(map.y, 0), up_axis(map.y, 1)}, x[] = {up_axis(map.x, 0), up_axis(map.x, 1)};
  return y[0].taps && y[1].taps && x[0].taps && x[1].taps && x[0].taps + x[1].taps > 2 &&
         few_fits(united(p, y), unite(x[0], x[1]));
}

// A task fills the slab for some rows of the small image, and makes the target rows of both phases from it, all four
// sums of some pixels while these are in L1; the phases of a row are stored interleaved.
void run_few_phases(const PatchMap& problem, CallScratch& scratch) {
  const ConvolutionMap& map = problem.map;
  const ImageSource& source = problem.source;
  const ImageTarget& target = problem.target;
  const WeightView w = f32_weights(problem.weights);
  const size_t batch = problem.batch;
  const PatchAxis y[] = {up_axis(map.y, 0), up_axis(map.y, 1)}, x[] = {up_axis(map.x, 0), up_axis(map.x, 1)};
  const PatchAxis all_y = unite(y[0], y[1]), all_x = unite(x[0], x[1]);
  const size_t rows = map.large_channels, channels = map.small_channels, groups = map.groups, width = all_x.pixels;
  const FewSlab slab(all_y, all_x, channels, false, batch);
  const size_t row_blocks = div_up(all_y.pixels, slab.rows), tasks = batch * groups * row_blocks;
  const size_t all_taps = (y[0].taps + y[1].taps) * (x[0].taps + x[1].taps), depth = channels * all_taps;
  const size_t threads = threads_for(problem.threads, tasks, batch * groups * rows * depth * all_y.pixels * width / 2);

  const size_t a_floats = round_up(groups * rows * depth, 16), offset_floats = round_up(2 * all_taps, 16);
  const size_t slab_floats = slab.floats(channels), flat_stride = round_up(slab.flat, 16) + 16;
  const size_t own_floats =
      slab_floats + slab.buffer_floats(all_x) + kPhases * kPhases * rows * flat_stride + round_up(2 * width, 16);
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, own_floats, a_floats + offset_floats));
  if (scratch.measuring()) return;
  float* const a = buffer.as<float>();
  auto* const offset = reinterpret_cast<ptrdiff_t*>(a + a_floats);

  // Weights as the tiles read them: [phase][group][channel][tap][row].
  size_t first[kPhases * kPhases], taps = 0;
  for (size_t p = 0; p < kPhases * kPhases; ++p) {
    const PatchAxis &py = y[p / kPhases], &px = x[p % kPhases];
    first[p] = taps;
    const ptrdiff_t top = py.offset - all_y.offset + static_cast<ptrdiff_t>(all_y.taps) - 1;
    const ptrdiff_t left = px.offset - all_x.offset + static_cast<ptrdiff_t>(all_x.taps) - 1;
    float* to = a + groups * rows * channels * taps;
    for (size_t g = 0; g < groups; ++g) {
      for (size_t c = 0; c < channels; ++c) {
        for (size_t t = 0; t < py.taps * px.taps; ++t) {
          const size_t ky = py.kernel_first + t / px.taps * py.kernel_step;
          const size_t kx = px.kernel_first + t % px.taps * px.kernel_step;
          const float* from = w.data + static_cast<ptrdiff_t>(g) * w.group + static_cast<ptrdiff_t>(c) * w.small +
                              static_cast<ptrdiff_t>(ky) * w.y + static_cast<ptrdiff_t>(kx) * w.x;
          for (size_t r = 0; r < rows; ++r, from += w.large) *to++ = *from;
        }
      }
    }
    for (size_t t = 0; t < py.taps * px.taps; ++t, ++taps) {
      offset[taps] = (top - static_cast<ptrdiff_t>(t / px.taps)) * static_cast<ptrdiff_t>(slab.length) + left -
                     static_cast<ptrdiff_t>(t % px.taps);
    }
  }

  const bool direct = target.in_place();
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    const size_t u0 = task % row_blocks * slab.rows, u1 = std::min(all_y.pixels, u0 + slab.rows);
    const size_t group = task / row_blocks % groups, n = task / row_blocks / groups;
    float* const own = a + a_floats + offset_floats + worker * own_floats;
    float *const slab_buffer = own + slab_floats, *const sums = slab_buffer + slab.buffer_floats(all_x);
    float* const staged = sums + kPhases * kPhases * rows * flat_stride;
    slab.fill(source, all_y, all_x, n, group * channels, channels, u0, u1, own, slab_buffer);
    FewTile tile[kPhases * kPhases];
    size_t tiles = 0;
    for (size_t p = 0; p < kPhases * kPhases; ++p) {
      const size_t i = p / kPhases, j = p % kPhases, end = std::min(u1, y[i].pixels);
      if (end <= u0) continue;
      FewTile& t = tile[tiles++];
      t.rows = rows, t.channels = channels, t.x = own, t.channel_stride = slab.channel_stride;
      t.flat = slab.flat_of(end - u0, width);
      t.taps = y[i].taps * x[j].taps, t.offset = offset + first[p];
      t.a = a + (groups * first[p] + group * t.taps) * channels * rows, t.a_stride = t.taps * rows;
      t.y = sums + p * rows * flat_stride, t.y_stride = flat_stride;
    }
    LinesAhead ahead;
    const size_t next = (task + 1) / row_blocks / groups, next_group = (task + 1) / row_blocks % groups;
    if (source.plain() && next < batch) {
      // New rows of this image, or the first ones of the next.
      const bool same = u1 < all_y.pixels;
      const size_t end_u = std::min(all_y.pixels, (same ? u1 : 0) + slab.rows);
      const auto row = [&](ptrdiff_t u) {
        return static_cast<size_t>(std::clamp<ptrdiff_t>(u + all_y.offset, 0, static_cast<ptrdiff_t>(all_y.extent)));
      };
      const size_t begin = same ? row(static_cast<ptrdiff_t>(u1)) : 0, end = row(static_cast<ptrdiff_t>(end_u));
      ahead.from = source.plain_at(next, next_group * channels, begin);
      ahead.runs = channels, ahead.stride = source.tensor->stride[2];
      ahead.lines = div_up((end - begin) * source.tensor->stride[1], 16);
    }
    run_tiles(tile, tiles, all_y.taps * (kNearBlock + few_span(all_x)), ahead);
    for (size_t i = 0; i < kPhases; ++i) {
      const size_t end = std::min(u1, y[i].pixels);
      if (end <= u0) continue;
      for (size_t k = 0; k < rows * (end - u0); ++k) {
        const size_t r = k / (end - u0), u = k % (end - u0), channel = group * rows + r, l = (u0 + u) * kPhases + i;
        const float* even = sums + (i * kPhases * rows + r) * flat_stride + u * slab.length;
        float* values = staged;
        if (direct) values = target.at(n, channel, l);
        interleave(even, even + rows * flat_stride, width, values);
        finish_values(target, channel, values, kPhases * width);
        if (!direct) store_run(target, n, channel, l, 0, 1, values, kPhases * width);
      }
    }
  });
}

}  // namespace bnns
