#include "src/ops/convolution/few/few.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/common/kernels.h"

namespace bnns {
namespace {

constexpr size_t kManyTaps = 16, kManySamples = 8, kMostRowsManyTaps = 56;  // with so many of both: more
constexpr size_t kTasks = 8, kMostBlocks = 8;  // tasks wanted per thread, blocks of one at most
constexpr size_t kSampleFlat = 768;            // of a block of several samples
constexpr size_t kSampleBlocks = 8;            // that a batch is cut into at least
constexpr size_t kStreamBytes = 4u << 20;      // targets from here on go around the caches
constexpr size_t kStreamBlock = 192;  // numbers of each row that leave at once: the stores run on under the next sums

ptrdiff_t lowest(const PatchAxis& a) {
  return a.offset + std::min<ptrdiff_t>(0, (static_cast<ptrdiff_t>(a.taps) - 1) * a.tap);
}

}  // namespace

void few_copy_source(const ImageSource& source, size_t n, size_t c, Range rows, size_t first, size_t count, float* to,
                     size_t stride, float* room) {
  if (rows.size() == 0 || count == 0) return;
  if (source.plain()) {
    few_copy_rows(source.plain_at(n, c, rows.begin) + first, source.tensor->stride[1], rows.size(), count, nullptr, to,
                  stride);
    return;
  }
  for (size_t r = rows.begin; r < rows.end; ++r, to += stride) {
    std::memcpy(to, source.row(n, c, r, first, count, room), count * sizeof(float));
  }
}

FewSlab::FewSlab(const PatchAxis& y, const PatchAxis& x, size_t channels, bool compact, size_t batch) {
  copies = compact ? x.taps : 1;
  padded = x.pixels + few_span(x);
  length = compact ? x.pixels : padded;
  // As many rows as fit, evenly.
  const size_t fit = kFewFloats / channels / copies / length, above = std::min(fit, few_span(y));
  const size_t most = std::clamp<size_t>(kFewFlat / length, 1, std::max<size_t>(1, fit - above));
  rows = div_up(y.pixels, div_up(y.pixels, most));
  source_rows = rows + few_span(y);
  if (copies > 1 && rows == y.pixels) {  // a single copy is filled sample by sample
    samples = std::min({fit / source_rows, kSampleFlat / (rows * length), batch / kSampleBlocks});
    samples = std::max<size_t>(1, samples);
    while (batch % samples != 0) --samples;
    length *= samples;
  }
  channel_stride = copies * source_rows * length;
  flat = flat_of(rows, x.pixels);
}

ptrdiff_t FewSlab::tap_offset(const PatchAxis& y, const PatchAxis& x, size_t tap) const {
  const auto row = static_cast<ptrdiff_t>(length), column = static_cast<ptrdiff_t>(tap % x.taps);
  const ptrdiff_t down = (static_cast<ptrdiff_t>(tap / x.taps) * y.tap - lowest(y) + y.offset) * row;
  if (copies > 1) return down + column * static_cast<ptrdiff_t>(source_rows) * row;
  return down + column * x.tap - lowest(x) + x.offset;
}

void FewSlab::fill(const ImageSource& source, const PatchAxis& y, const PatchAxis& x, size_t n, size_t c0,
                   size_t channels, size_t u0, size_t u1, float* to, float* room) const {
  const ptrdiff_t low = lowest(x), extent = static_cast<ptrdiff_t>(x.extent);
  const ptrdiff_t begin = std::clamp<ptrdiff_t>(low, 0, extent);
  const ptrdiff_t end = std::clamp<ptrdiff_t>(low + static_cast<ptrdiff_t>(padded), begin, extent);
  const auto lead = static_cast<size_t>(begin - low), count = static_cast<size_t>(end - begin);
  const ptrdiff_t top = lowest(y) + static_cast<ptrdiff_t>(u0), height = static_cast<ptrdiff_t>(y.extent);
  const size_t all = u1 - u0 + few_span(y);
  const ptrdiff_t first = std::clamp<ptrdiff_t>(top, 0, height);
  const ptrdiff_t last = std::clamp<ptrdiff_t>(top + static_cast<ptrdiff_t>(all), first, height);
  const auto r0 = static_cast<size_t>(first), inside = static_cast<size_t>(last - first);
  float* const rows_room = room + 2 * x.extent;
  for (size_t p = 0; p < channels * samples; ++p) {
    const size_t c = p / samples, i = p % samples;
    float* plane = copies > 1 ? rows_room : to + c * channel_stride;
    const float* rows_from = plane;
    size_t stride = padded;
    if (copies > 1 && source.plain() && inside == all && count == padded) {  // no zeros around: as it lies
      rows_from = source.plain_at(n + i, c0 + c, r0) + begin;
      stride = source.tensor->stride[1];
    } else {
      float* const middle = plane + static_cast<size_t>(first - top) * padded;
      if (source.plain() && inside > 0 && count > 0) {
        std::memset(plane, 0, static_cast<size_t>(middle - plane) * sizeof(float));
        few_pad_rows(source.plain_at(n + i, c0 + c, r0) + begin, source.tensor->stride[1], inside, lead, count, middle,
                     padded);
        float* const below = middle + inside * padded;
        std::memset(below, 0, static_cast<size_t>(plane + all * padded - below) * sizeof(float));
      } else {
        if (inside < all || count < padded) std::memset(plane, 0, all * padded * sizeof(float));
        few_copy_source(source, n + i, c0 + c, {r0, r0 + inside}, static_cast<size_t>(begin), count, middle + lead,
                        padded, room);
      }
    }
    for (size_t k = 0; k < copies && copies > 1; ++k) {
      const ptrdiff_t shift = static_cast<ptrdiff_t>(k) * x.tap - low + x.offset;
      few_copy_rows(rows_from + shift, stride, all, x.pixels, nullptr,
                    to + c * channel_stride + k * source_rows * length + i * x.pixels, length);
    }
  }
}

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

bool few_accepts(const PatchAxis& y, const PatchAxis& x, size_t rows, size_t channels, size_t batch) {
  // A patch product copies every tap, this way every column of taps; but it packs weights with more care.
  const size_t most = y.taps * x.taps >= kManyTaps && batch >= kManySamples ? kMostRowsManyTaps : kFewMostRows;
  if (rows > most || y.step != 1 || x.step != 1 || y.taps * x.taps < 2) return false;
  const size_t length = x.pixels + few_span(x);
  if (3 * few_span(x) > length || length > kFewFlat) return false;  // a third of the sums for nothing at most
  const size_t least = std::min<size_t>(y.pixels, 2 + few_span(y)) + few_span(y);
  return least <= kFewFloats / channels / length;
}

SinkParts few_sink_parts(const PatchAxis& y, const PatchAxis& x, size_t rows, size_t channels, size_t batch) {
  // Ways that hand over no blocks have bits of their own: a fused layer must not take another way than the layer alone.
  if (few_scatter_accepts(y, x, rows, channels, batch) || few_fold_accepts(x, rows)) return {};
  if (y.target_step != 1 || x.target_step != 1) return {};
  return {1, FewSlab(y, x, channels, compact_pays(y, x, rows), 1).rows * x.pixels};
}

void few_patches(const PatchAxis& y, const PatchAxis& x, size_t groups, size_t rows, size_t channels,
                 const WeightView& weights, ptrdiff_t row_stride, ptrdiff_t channel_stride, size_t batch,
                 const ImageSource& source, const ImageTarget& target, CallScratch& scratch, size_t threads) {
  if (!target.sink && few_scatter_accepts(y, x, rows, channels, batch)) {
    return few_scatter(y, x, groups, rows, channels, weights, row_stride, channel_stride, batch, source, target,
                       scratch, threads);
  }
  if (!target.sink && few_fold_accepts(x, rows)) {
    return few_fold(y, x, groups, rows, channels, weights, row_stride, channel_stride, batch, source, target, scratch,
                    threads);
  }
  const FewSlab slab(y, x, channels, compact_pays(y, x, rows), batch);
  const size_t taps = y.taps * x.taps, depth = channels * taps;
  const size_t row_blocks = div_up(y.pixels, slab.rows), blocks = row_blocks * (batch / slab.samples);
  const bool far = channels * taps * 16 > kFewNear;  // of a vector's taps
  const size_t least_tiles = div_up(rows, far ? kFewTallRows : kFewRows), width = x.pixels;
  const bool only_sink = target.sink && target.sink->instead_of_target;
  const bool direct = !only_sink && target.plain() && !target.accumulate && x.target_step == 1 && y.target_step == 1 &&
                      target.tensor->stride[1] == width;
  // Sums that lie as the target does leave the cache at once, if the target is large.
  const bool stream = direct && !target.sink && slab.length == width &&
                      batch * groups * rows * y.pixels * width * sizeof(float) >= kStreamBytes;
  // Or are made there.
  const bool in_place = direct && !stream && slab.length == width && slab.rows == y.pixels && whole_vectors(y, x);
  threads = threads_for(threads, groups * blocks * rows, batch * groups * rows * depth * y.pixels * width / 2);
  // Where blocks are few, their tiles are shared out: no sum depends on how rows are cut.
  const size_t parts = stream ? 1 : std::min(rows, div_up(threads, groups * blocks));
  const size_t tiles = std::min(rows, round_up(least_tiles, parts));
  const auto first_row = [&](size_t tile) { return rows * tile / tiles; };

  const size_t a_floats = round_up(groups * rows * depth, 16), offset_floats = round_up(2 * taps, 16);
  const size_t slab_floats = slab.floats(channels), flat_stride = round_up(slab.flat, 16) + 16;
  const size_t dense_stride = slab.rows * width;
  const size_t own_floats =
      slab_floats + slab.room_floats(x) + rows * flat_stride + (direct ? 0 : round_up(rows * dense_stride, 16));
  CallScratch::Lease room(scratch, scratch_bytes(threads, own_floats, a_floats + offset_floats));
  if (scratch.measuring()) return;
  float* const a = room.as<float>();
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

  const auto plane_of = [&](size_t n, size_t channel) {
    return static_cast<float*>(target.data) + n * target.batch_stride + channel * target.tensor->stride[2];
  };
  const auto run_block = [&](size_t block, size_t part, size_t worker) {
    const size_t tile0 = tiles * part / parts, tile1 = tiles * (part + 1) / parts;
    const size_t group = block / row_blocks % groups, n0 = block / row_blocks / groups * slab.samples;
    const size_t u0 = block % row_blocks * slab.rows, u1 = std::min(y.pixels, u0 + slab.rows);
    float* own = a + a_floats + offset_floats + worker * own_floats;
    float *slab_room = own + slab_floats, *sums = slab_room + slab.room_floats(x);
    float* staged = sums + rows * flat_stride;
    slab.fill(source, y, x, n0, group * channels, channels, u0, u1, own, slab_room);
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
                       reinterpret_cast<uintptr_t>(plane_of(n0, group * rows) + u0 * width) % 64 == 0;
    for (size_t i = tile0; i < tile1; ++i) {
      const size_t r0 = first_row(i);
      FewTile tile;
      tile.rows = first_row(i + 1) - r0, tile.channels = channels, tile.taps = taps;
      tile.flat = slab.flat_of(u1 - u0, width);
      tile.x = own, tile.channel_stride = slab.channel_stride, tile.offset = offset;
      tile.a = a + (group * rows + r0) * depth, tile.a_stride = taps * tile.rows;
      tile.y = stream ? sums : sums + r0 * flat_stride, tile.y_stride = flat_stride;
      if (in_place || lines) {
        tile.y = plane_of(n0, group * rows + r0) + u0 * width, tile.y_stride = target.tensor->stride[2];
        tile.store = lines ? FewStore::around_caches : FewStore::plain;
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
          stream_values(sums + r * flat_stride, tile.flat, plane_of(n0, channel) + u0 * width + j);
        }
      }
    }
    if (stream) return;
    for (size_t p = first_row(tile0) * slab.samples; p < first_row(tile1) * slab.samples; ++p) {
      const size_t r = p / slab.samples, i = p % slab.samples, channel = group * rows + r, n = n0 + i;
      float* to = staged + r * dense_stride;
      if (direct) to = plane_of(n, channel) + u0 * width;
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
      if (direct || only_sink) continue;
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
  // The end of a task waits for stores around the caches: few tasks then.
  const size_t together = std::clamp<size_t>(groups * blocks / (kTasks * threads), 1, kMostBlocks);
  parallel_for(div_up(groups * blocks, together), threads, [&](size_t task, size_t worker) {
    const size_t end = std::min(groups * blocks, (task + 1) * together);
    for (size_t block = task * together; block < end; ++block) run_block(block, 0, worker);
    stream_end();
  });
}

}  // namespace bnns
