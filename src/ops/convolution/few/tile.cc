// few/tile: register tiles of target channels by pixels on the slab of a block.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/common/kernels.h"
#include "src/ops/convolution/common/weights.h"
#include "src/ops/convolution/few/few.h"

namespace bnns {
namespace {

constexpr size_t kManyTaps = 16, kManySamples = 8, kMostRowsManyTaps = 56;  // with so many of both: more
constexpr size_t kTasks = 8, kMostBlocks = 8;  // tasks wanted per thread, blocks of one at most
constexpr size_t kStreamBytes = 4u << 20;      // targets from here on leave by non-temporal stores
constexpr size_t kStreamBlock = 192;  // numbers of each row that leave at once: the stores run on under the next sums

}  // namespace

// Whether planes are whole vectors, so that compact sums may be made in the target.
static bool whole_vectors(const PatchAxis& y, const PatchAxis& x) {
  return y.pixels * x.pixels % 16 == 0;
}

// Whether the numbers between rows cost more than the copies: of the sums of a vector, span / padded, and a copy of the
// sums where they cannot be made in the target, against the copies of a vector, six multiply-adds each.
static bool compact_pays(const PatchAxis& y, const PatchAxis& x, size_t rows) {
  const size_t padded = x.pixels + few_span(x), saved = whole_vectors(y, x) ? 4 * rows * padded : 0;
  return few_span(x) * rows * y.taps * x.taps + saved > 6 * x.taps * padded;
}

bool few_fits(const PatchMap& p, const PatchAxis& x) {
  // A patch product copies every tap, this one every column of taps; but it packs weights with more care.
  const PatchAxis& y = p.y;
  const bool many = y.taps * x.taps >= kManyTaps && p.batch >= kManySamples;
  if (p.rows > (many ? kMostRowsManyTaps : kFewMostRows) || y.step != 1 || x.step != 1 || y.taps * x.taps < 2) {
    return false;
  }
  const size_t length = x.pixels + few_span(x);
  if (3 * few_span(x) > length || length > kFewFlat) return false;  // a third of the sums for nothing at most
  const size_t least = std::min<size_t>(y.pixels, 2 + few_span(y)) + few_span(y);
  return least <= kFewFloats / p.channels / length;
}

bool accepts_few_tile(const PatchMap& p) {
  return few_fits(p, p.x) && (!p.pair || few_fits(p, *p.pair));
}

SinkParts few_tile_parts(const PatchMap& p) {
  if (p.y.target_step != 1 || p.x.target_step != 1) return {};
  return {1, FewSlab(p.y, p.x, p.channels, compact_pays(p.y, p.x, p.rows), 1).rows * p.x.pixels};
}

void run_few_tile(const PatchMap& p, CallScratch& scratch) {
  const PatchAxis &y = p.y, &x = p.x;
  const ImageSource& source = p.source;
  const ImageTarget& target = p.target;
  const size_t groups = p.groups(), rows = p.rows, channels = p.channels, batch = p.batch;
  const WeightView weights = f32_weights(p.weights);
  const ptrdiff_t row_stride = p.row_stride(weights), channel_stride = p.channel_stride(weights);
  const FewSlab slab(y, x, channels, compact_pays(y, x, rows), batch);
  const size_t taps = y.taps * x.taps, depth = channels * taps;
  const size_t row_blocks = div_up(y.pixels, slab.rows), blocks = row_blocks * (batch / slab.samples);
  const bool far = channels * taps * 16 > kFewNear;  // of a vector's taps
  const size_t least_tiles = div_up(rows, far ? kFewTallRows : kFewRows), width = x.pixels;
  const bool direct = target.in_place(y, x);
  // Sums that lie as the target does leave the cache at once, if the target is large.
  const bool stream = direct && !target.sink && slab.length == width &&
                      batch * groups * rows * y.pixels * width * sizeof(float) >= kStreamBytes;
  // Or are made there.
  const bool in_place = direct && !stream && slab.length == width && slab.rows == y.pixels && whole_vectors(y, x);
  const size_t threads =
      threads_for(p.threads, groups * blocks * rows, batch * groups * rows * depth * y.pixels * width / 2);
  // Where blocks are few, their tiles are shared out: no sum depends on how rows are cut.
  const size_t parts = stream ? 1 : std::min(rows, div_up(threads, groups * blocks));
  const size_t tiles = std::min(rows, round_up(least_tiles, parts));
  const auto first_row = [&](size_t tile) { return rows * tile / tiles; };

  const size_t a_floats = round_up(groups * rows * depth, 16), offset_floats = round_up(2 * taps, 16);
  const size_t slab_floats = slab.floats(channels), flat_stride = round_up(slab.flat, 16) + 16;
  const size_t dense_stride = slab.rows * width;
  const size_t own_floats =
      slab_floats + slab.buffer_floats(x) + rows * flat_stride + (direct ? 0 : round_up(rows * dense_stride, 16));
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, own_floats, a_floats + offset_floats));
  if (scratch.measuring()) return;
  float* const a = buffer.as<float>();
  auto* const offset = reinterpret_cast<ptrdiff_t*>(a + a_floats);
  for (size_t t = 0; t < taps; ++t) offset[t] = slab.tap_offset(y, x, t);

  // Weights as the tiles read them: [group][tile][channel][tap][row of the tile].
  parallel_for(groups * tiles, threads_for(threads, groups * tiles, groups * rows * depth), [&](size_t task, size_t) {
    const size_t group = task / tiles, r0 = first_row(task % tiles), r1 = first_row(task % tiles + 1);
    float* to = a + (group * rows + r0) * depth;
    const float* base = weights.data + static_cast<ptrdiff_t>(group) * weights.group;
    for (size_t c = 0; c < channels; ++c) {
      for (size_t t = 0; t < taps; ++t) {
        const size_t ky = y.kernel_first + t / x.taps * y.kernel_step, kx = x.kernel_first + t % x.taps * x.kernel_step;
        const float* from = base + static_cast<ptrdiff_t>(r0) * row_stride +
                            static_cast<ptrdiff_t>(c) * channel_stride + static_cast<ptrdiff_t>(ky) * weights.y +
                            static_cast<ptrdiff_t>(kx) * weights.x;
        for (size_t r = r0; r < r1; ++r, from += row_stride) *to++ = *from;
      }
    }
  });

  const auto run_block = [&](size_t block, size_t part, size_t worker) {
    const size_t tile0 = tiles * part / parts, tile1 = tiles * (part + 1) / parts;
    const size_t group = block / row_blocks % groups, n0 = block / row_blocks / groups * slab.samples;
    const size_t u0 = block % row_blocks * slab.rows, u1 = std::min(y.pixels, u0 + slab.rows);
    float* own = a + a_floats + offset_floats + worker * own_floats;
    float *slab_buffer = own + slab_floats, *sums = slab_buffer + slab.buffer_floats(x);
    float* staged = sums + rows * flat_stride;
    slab.fill(source, y, x, n0, group * channels, channels, u0, u1, own, slab_buffer);
    const size_t count = (u1 - u0) * width;
    // The next block's samples.
    const float *ahead = nullptr, *ahead_end = nullptr;
    if (source.plain() && groups * row_blocks == 1 && n0 + slab.samples < batch &&
        source.batch_stride == channels * source.tensor->stride[2]) {
      ahead = source.plain_at(n0 + slab.samples, 0, 0), ahead_end = ahead + slab.samples * source.batch_stride;
    }
    const size_t ahead_lines = div_up(static_cast<size_t>(ahead_end - ahead) / 16,
                                      (tile1 - tile0) * channels * div_up(count * slab.samples, 64));
    // Whole lines of a target without an activation need no stage.
    const bool lines = stream && target.activation.is_identity() && count % 16 == 0 &&
                       target.tensor->stride[2] % 16 == 0 &&
                       reinterpret_cast<uintptr_t>(target.at(n0, group * rows, u0)) % 64 == 0;
    for (size_t i = tile0; i < tile1; ++i) {
      const size_t r0 = first_row(i);
      FewTile tile;
      tile.rows = first_row(i + 1) - r0, tile.channels = channels, tile.taps = taps;
      tile.flat = slab.flat_of(u1 - u0, width);
      tile.x = own, tile.channel_stride = slab.channel_stride, tile.offset = offset;
      tile.a = a + (group * rows + r0) * depth, tile.a_stride = taps * tile.rows;
      tile.y = stream ? sums : sums + r0 * flat_stride, tile.y_stride = flat_stride;
      if (in_place || lines) {
        tile.y = target.at(n0, group * rows + r0, u0), tile.y_stride = target.tensor->stride[2];
        tile.store = lines ? FewStore::non_temporal : FewStore::plain;
        tile.bias = target.bias ? target.bias + group * rows + r0 : nullptr;
      }
      if (!stream || lines) {
        tile.ahead = ahead, tile.ahead_end = ahead_end, tile.ahead_lines = ahead_lines;
        few_tile(tile);
        ahead = tile.ahead;
        continue;
      }
      for (size_t j = 0; j < count; j += kStreamBlock) {
        tile.x = own + j, tile.flat = std::min(kStreamBlock, count - j);
        few_tile(tile);
        for (size_t r = 0; r < tile.rows; ++r) {
          const size_t channel = group * rows + r0 + r;
          finish_values(target, channel, sums + r * flat_stride, tile.flat);
          stream_values(sums + r * flat_stride, tile.flat, target.at(n0, channel, u0, j));
        }
      }
    }
    if (stream) return;
    for (size_t k = first_row(tile0) * slab.samples; k < first_row(tile1) * slab.samples; ++k) {
      const size_t r = k / slab.samples, i = k % slab.samples, channel = group * rows + r, n = n0 + i;
      float* to = staged + r * dense_stride;
      if (direct) to = target.at(n, channel, u0);
      if (!in_place) {
        few_copy_rows(sums + r * flat_stride + i * width, slab.length, u1 - u0, width,
                      target.bias ? target.bias + channel : nullptr, to, width);
      } else if (target.bias) {
        add_constant(to, target.bias[channel], count);
      }
      if (!target.activation.is_identity()) activation_forward(target.activation, to, to, count);
      if (target.sink) {
        target.sink->take(target.sink->context, {n, n + 1, channel, 1, u0 * width, count, to, count, count});
      }
      if (direct || target.only_sink()) continue;
      for (size_t u = u0; u < u1; ++u, to += width) {
        store_run(target, n, channel, y.target_first + u * y.target_step, x.target_first, x.target_step, to, width);
      }
    }
  };
  if (!stream) {
    parallel_for(groups * blocks * parts, threads,
                 [&](size_t task, size_t worker) { run_block(task / parts, task % parts, worker); });
    return;
  }
  // The end of a task waits for its non-temporal stores: few tasks then.
  const size_t together = std::clamp<size_t>(groups * blocks / (kTasks * threads), 1, kMostBlocks);
  parallel_for(div_up(groups * blocks, together), threads, [&](size_t task, size_t worker) {
    const size_t end = std::min(groups * blocks, (task + 1) * together);
    for (size_t block = task * together; block < end; ++block) run_block(block, 0, worker);
    stream_end();
  });
}

}  // namespace bnns
