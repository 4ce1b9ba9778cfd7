#include "src/ops/convolution/convolution_few.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"

namespace bnns {
namespace {

constexpr size_t kMostRows = 24;          // target channels of a group
constexpr size_t kFewFloats = 96 * 1024;  // of a slab: 384 KB
constexpr size_t kFlat = 4096;            // numbers of a block, about
constexpr size_t kSampleFlat = 768;       // of a block of several samples
constexpr size_t kSampleBlocks = 8;       // that a batch is cut into at least
constexpr size_t kLaneSums = 4096;        // elements of dW, a vector each: 256 KB
constexpr size_t kSlices = 16;            // wanted of dW
constexpr size_t kSliceWork = 1 << 20;    // multiply-adds that are worth one

ptrdiff_t lowest(const PatchAxis& a) {
  return a.offset + std::min<ptrdiff_t>(0, (static_cast<ptrdiff_t>(a.taps) - 1) * a.tap);
}
// Coordinates that the taps of one pixel span, less one.
size_t span(const PatchAxis& a) {
  return (a.taps - 1) * static_cast<size_t>(std::abs(a.tap));
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
  padded = x.pixels + span(x);
  length = compact ? x.pixels : padded;
  // As many rows as fit, evenly.
  const size_t fit = kFewFloats / channels / copies / length, above = std::min(fit, span(y));
  const size_t most = std::clamp<size_t>(kFlat / length, 1, std::max<size_t>(1, fit - above));
  rows = div_up(y.pixels, div_up(y.pixels, most));
  source_rows = rows + span(y);
  if (compact && rows == y.pixels) {
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
  const size_t all = u1 - u0 + span(y);
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
      if (inside < all || count < padded) std::memset(plane, 0, all * padded * sizeof(float));
      few_copy_source(source, n + i, c0 + c, {r0, r0 + inside}, static_cast<size_t>(begin), count,
                      plane + static_cast<size_t>(first - top) * padded + lead, padded, room);
    }
    for (size_t k = 0; k < copies && copies > 1; ++k) {
      const ptrdiff_t shift = static_cast<ptrdiff_t>(k) * x.tap - low + x.offset;
      few_copy_rows(rows_from + shift, stride, all, x.pixels, nullptr,
                    to + c * channel_stride + k * source_rows * length + i * x.pixels, length);
    }
  }
}

// Whether the numbers between rows cost more than the copies: of the sums of a vector, span / padded against the copy
// of a vector, some three multiply-adds, for every rows * y.taps of them.
static bool compact_pays(const PatchAxis& y, const PatchAxis& x, size_t rows) {
  return span(x) * rows * y.taps > 6 * (x.pixels + span(x));
}

bool few_accepts(const PatchAxis& y, const PatchAxis& x, size_t rows, size_t channels) {
  if (rows > kMostRows || y.step != 1 || x.step != 1 || y.taps * x.taps < 2) return false;
  const size_t length = x.pixels + span(x);
  if (3 * span(x) > length || length > kFlat) return false;  // a third of the sums for nothing at most
  const size_t least = std::min<size_t>(y.pixels, 2 + span(y)) + span(y);
  return least <= kFewFloats / channels / length;
}

SinkParts few_sink_parts(const PatchAxis& y, const PatchAxis& x, size_t rows, size_t channels) {
  if (y.target_step != 1 || x.target_step != 1) return {};
  return {1, FewSlab(y, x, channels, compact_pays(y, x, rows), 1).rows * x.pixels};
}

void few_patches(const PatchAxis& y, const PatchAxis& x, size_t groups, size_t rows, size_t channels,
                 const WeightView& weights, ptrdiff_t row_stride, ptrdiff_t channel_stride, size_t batch,
                 const ImageSource& source, const ImageTarget& target, ScratchShelf& scratch, size_t threads) {
  if (!target.sink && few_scatter_accepts(y, x, channels)) {
    return few_scatter(y, x, groups, rows, channels, weights, row_stride, channel_stride, batch, source, target,
                       scratch, threads);
  }
  const FewSlab slab(y, x, channels, compact_pays(y, x, rows), batch);
  const size_t taps = y.taps * x.taps, depth = channels * taps;
  const size_t row_blocks = div_up(y.pixels, slab.rows), blocks = row_blocks * (batch / slab.samples);
  const size_t tiles = div_up(rows, kFewRows), tile_rows = div_up(rows, tiles), width = x.pixels;
  const bool only_sink = target.sink && target.sink->instead_of_target;
  const bool direct = !only_sink && target.plain() && !target.accumulate && x.target_step == 1 && y.target_step == 1 &&
                      target.tensor->stride[1] == width;
  threads = threads_for(threads, groups * blocks, batch * groups * rows * depth * y.pixels * width / 2);

  const size_t a_floats = round_up(groups * rows * depth, 16), offset_floats = round_up(2 * taps, 16);
  const size_t slab_floats = slab.floats(channels), flat_stride = round_up(slab.flat, 16) + 128 + 16;
  const size_t dense_stride = slab.rows * width;
  const size_t own_floats =
      slab_floats + slab.room_floats(x) + rows * flat_stride + (direct ? 0 : round_up(rows * dense_stride, 16));
  ScratchShelf::Lease room(scratch, scratch_bytes(threads, own_floats, a_floats + offset_floats));
  float* const a = room.as<float>();
  auto* const offset = reinterpret_cast<ptrdiff_t*>(a + a_floats);
  for (size_t t = 0; t < taps; ++t) offset[t] = slab.tap_offset(y, x, t);

  // Weights as the tiles read them: [group][tile][channel][tap][row of the tile].
  parallel_for(groups * tiles, threads_for(threads, groups * tiles, groups * rows * depth), [&](size_t task, size_t) {
    const size_t group = task / tiles, r0 = task % tiles * tile_rows, r1 = std::min(rows, r0 + tile_rows);
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

  parallel_for(groups * blocks, threads, [&](size_t task, size_t worker) {
    const size_t group = task / row_blocks % groups, n0 = task / row_blocks / groups * slab.samples;
    const size_t u0 = task % row_blocks * slab.rows, u1 = std::min(y.pixels, u0 + slab.rows);
    float* own = a + a_floats + offset_floats + worker * own_floats;
    float *slab_room = own + slab_floats, *sums = slab_room + slab.room_floats(x);
    float* staged = sums + rows * flat_stride;
    slab.fill(source, y, x, n0, group * channels, channels, u0, u1, own, slab_room);
    FewTile tile;
    tile.channels = channels, tile.taps = taps;
    tile.flat = slab.flat_of(u1 - u0, width);
    tile.x = own, tile.channel_stride = slab.channel_stride, tile.offset = offset;
    tile.y_stride = flat_stride;
    for (size_t r0 = 0; r0 < rows; r0 += tile_rows) {
      tile.rows = std::min(tile_rows, rows - r0);
      tile.a = a + (group * rows + r0) * depth;
      tile.y = sums + r0 * flat_stride;
      few_tile(tile);
    }
    const size_t count = (u1 - u0) * width;
    for (size_t p = 0; p < rows * slab.samples; ++p) {
      const size_t r = p / slab.samples, i = p % slab.samples, channel = group * rows + r, n = n0 + i;
      float* to = staged + r * dense_stride;
      if (direct) {
        to = static_cast<float*>(target.data) + n * target.batch_stride + channel * target.tensor->stride[2] +
             u0 * width;
      }
      few_copy_rows(sums + r * flat_stride + i * width, slab.length, u1 - u0, width,
                    target.bias ? target.bias + channel : nullptr, to, width);
      if (!target.activation.is_identity()) activation_forward(target.activation, to, to, count);
      if (target.sink) {
        target.sink->take(target.sink->context, {n, n + 1, channel, 1, u0 * width, count, to, count, count});
      }
      if (direct || only_sink) continue;
      for (size_t u = u0; u < u1; ++u, to += width) {
        store_run(target, n, channel, y.target_first + u * y.target_step, x.target_first, x.target_step, to, width);
      }
    }
  });
}

bool few_accepts_weights(const ConvolutionMap& map) {
  const PatchAxis y = down_axis(map.y), x = down_axis(map.x);
  const size_t columns = map.large_channels * y.taps * x.taps;
  return map.small_channels <= kMostRows && map.small_channels * columns <= kLaneSums && y.step == 1 && x.step == 1 &&
         y.taps * x.taps >= 2 && x.pixels <= kFlat &&
         std::min<size_t>(y.pixels, 2 + span(y)) + span(y) <= kFewFloats / map.large_channels / x.taps / x.pixels;
}

// A task takes a slice of all blocks (samples and rows of them) for one group. Slices follow from the shape and are
// added in order.
void few_weights(const ConvolutionMap& map, size_t batch, const ImageSource& small, const ImageSource& large,
                 const WeightTarget& target, ScratchShelf& scratch, size_t threads) {
  const PatchAxis y = down_axis(map.y), x = down_axis(map.x);
  const size_t rows = map.small_channels, channels = map.large_channels, taps = y.taps * x.taps;
  const size_t columns = channels * taps, sums = round_up(rows * columns, 4), width = x.pixels;
  const FewSlab slab(y, x, channels, true, batch);
  const size_t row_blocks = div_up(y.pixels, slab.rows), blocks = batch / slab.samples * row_blocks;
  const size_t work = map.groups * sums * y.pixels * width * batch;
  const size_t slices = std::clamp<size_t>(std::min(kSlices / map.groups, work / kSliceWork), 1, blocks);
  threads = threads_for(threads, map.groups * slices, work / 2);

  const bool dense = slab.samples == 1 && small.plain() && small.tensor->stride[1] == width;
  const size_t offset_floats = round_up(2 * columns, 16), slice_floats = round_up(map.groups * slices * sums, 16);
  const size_t g_stride = round_up(slab.flat, 16), slab_floats = slab.floats(channels);
  const size_t g_floats = dense ? 0 : rows * g_stride + round_up(2 * width, 16);
  const size_t own_floats = 16 * sums + slab_floats + slab.room_floats(x) + g_floats;
  ScratchShelf::Lease room(scratch, scratch_bytes(threads, own_floats, offset_floats + slice_floats));
  auto* const offset = room.as<ptrdiff_t>();
  float* const sliced = room.as<float>() + offset_floats;
  for (size_t i = 0; i < columns; ++i) {
    offset[i] = static_cast<ptrdiff_t>(i / taps * slab.channel_stride) + slab.tap_offset(y, x, i % taps);
  }
  parallel_for(map.groups * slices, threads, [&](size_t task, size_t worker) {
    const size_t group = task / slices, slice = task % slices;
    float* lanes = sliced + slice_floats + worker * own_floats;
    float *source = lanes + 16 * sums, *slab_room = source + slab_floats, *staged = slab_room + slab.room_floats(x);
    std::fill_n(lanes, 16 * sums, 0.0f);
    FewDots dots;
    dots.rows = rows, dots.columns = columns, dots.x = source, dots.offset = offset, dots.lanes = lanes;
    for (size_t b = slice * blocks / slices; b < (slice + 1) * blocks / slices; ++b) {
      const size_t n = b / row_blocks * slab.samples, u0 = b % row_blocks * slab.rows,
                   u1 = std::min(y.pixels, u0 + slab.rows);
      slab.fill(large, y, x, n, group * channels, channels, u0, u1, source, slab_room);
      dots.flat = slab.flat_of(u1 - u0, width);
      if (dense) {
        dots.g = small.plain_at(n, group * rows, u0), dots.g_stride = small.tensor->stride[2];
      } else {
        for (size_t p = 0; p < rows * slab.samples; ++p) {
          const size_t s = p / slab.samples, i = p % slab.samples;
          few_copy_source(small, n + i, group * rows + s, {u0, u1}, 0, width, staged + s * g_stride + i * width,
                          slab.length, staged + rows * g_stride);
        }
        dots.g = staged, dots.g_stride = g_stride;
      }
      few_dots(dots);
    }
    few_lane_sums(lanes, sums, sliced + task * sums);
  });
  parallel_for(
      map.groups * rows, threads_for(threads, map.groups * rows, map.groups * sums * slices), [&](size_t task, size_t) {
        const size_t group = task / rows, s = task % rows;
        const float* from = sliced + group * slices * sums + s * columns;
        float* to =
            target.data + static_cast<ptrdiff_t>(group) * target.group + static_cast<ptrdiff_t>(s) * target.small;
        for (size_t l = 0; l < channels; ++l, to += target.large) {
          float* row = to;
          for (size_t ky = 0; ky < y.taps; ++ky, row += target.y) {
            for (size_t kx = 0; kx < x.taps; ++kx, ++from) {
              float sum = *from;
              for (size_t k = 1; k < slices; ++k) sum += from[k * sums];
              float& at = row[static_cast<ptrdiff_t>(kx) * target.x];
              at = target.accumulate ? at + sum : sum;
            }
          }
        }
      });
}

}  // namespace bnns
