// Up without a stride, transposed: rows of products of the source, added where they belong.

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/common/kernels.h"
#include "src/ops/convolution/common/weights.h"
#include "src/ops/convolution/few/few.h"

namespace bnns {
namespace {

constexpr size_t kSourcePixels = 1024;      // of a plane
constexpr size_t kBlockFloats = 28 * 1024;  // of a block of samples: 112 KB
constexpr size_t kBlocks = 4;               // that a batch is cut into at least
constexpr size_t kLeastDepth = 8;           // source channels that repay the additions
constexpr size_t kAddCost = 4;              // of a sum that is added to a plane, in channels
constexpr size_t kTasks = 2;                // wanted per thread; each copies its source, so few share one

// Half vectors that tiles of so many numbers cost; a tile is one.
size_t tile_cost(size_t numbers) {
  constexpr size_t kLanes = 16, kVectors = 5;
  const size_t vectors = div_up(numbers, kLanes);
  return 2 * vectors + div_up(vectors, kVectors);
}

// Samples side by side that cost least: rows of whole vectors, enough of them for large tiles. A divisor of the batch.
size_t samples_of_block(size_t height, size_t width, size_t channels, size_t batch) {
  const size_t most = std::max<size_t>(1, std::min(kBlockFloats / (height * width * channels), batch / kBlocks));
  size_t best = 1, best_cost = tile_cost(width) * batch;
  for (size_t n = 2; n <= most; ++n) {
    const size_t cost = tile_cost(n * width) * (batch / n);
    if (batch % n == 0 && cost < best_cost) best = n, best_cost = cost;
  }
  return best;
}

// Whether samples side by side are better taken row by row than whole.
bool rows_pay(size_t height, size_t length, size_t channels) {
  return height * tile_cost(length) * channels <= tile_cost(height * length) * (channels + kAddCost);
}

}  // namespace

bool accepts_few_transposed(const PatchMap& p) {
  const PatchAxis &y = p.y, &x = p.x;
  const size_t channels = p.channels, pixels = y.extent * x.extent;
  if (y.step != 1 || x.step != 1 || y.tap != -1 || x.tap != -1 || y.target_step != 1 || x.target_step != 1 ||
      x.taps > kFewRows || pixels > kSourcePixels) {
    return false;
  }
  if (!accepts_few_tile(p)) return false;
  if (channels >= kLeastDepth && 4 * y.pixels * x.pixels >= 5 * pixels) return true;
  const size_t samples = samples_of_block(y.extent, x.extent, channels, p.batch);
  return accepts_few_fold(p) && rows_pay(y.extent, samples * x.extent, channels);
}

// With the source planes of some samples side by side, rows of L numbers: for each target channel and column kx of taps
// a plane whose row l is the sum of the source rows that target row l meets, those alone; the columns are folded at the
// end, each kx further right. Where rows are short for vectors, a plane is instead added up from all source rows at
// once, ky rows further down for row ky of taps.
void run_few_transposed(const PatchMap& map, CallScratch& scratch) {
  const PatchAxis &y = map.y, &x = map.x;
  const ImageSource& source = map.source;
  const ImageTarget& target = map.target;
  const size_t groups = map.groups(), rows = map.rows, channels = map.channels, batch = map.batch;
  const WeightView weights = f32_weights(map.weights);
  const ptrdiff_t row_stride = map.row_stride(weights), channel_stride = map.channel_stride(weights);
  const size_t height = y.extent, width = x.extent;
  const size_t samples = samples_of_block(height, width, channels, batch);
  const size_t length = samples * width, flat = height * length, blocks = batch / samples;
  const size_t depth = y.taps * x.taps * channels;
  const bool by_rows = rows_pay(height, length, channels);
  // Two target channels together, where the source rows of one target row pass L1.
  const size_t together = by_rows && 2 * x.taps <= kFewTallRows && y.taps * length * channels > kFewNear ? 2 : 1;
  const size_t jobs = div_up(rows, together);
  const size_t threads =
      threads_for(map.threads, groups * blocks * jobs, batch * groups * rows * depth * height * width / 2);
  const size_t parts = threads == 1 ? 1 : std::min({jobs, 2 * threads, div_up(kTasks * threads, groups * blocks)});

  // Target rows that some product reaches; the others are zero.
  const auto last = static_cast<ptrdiff_t>(y.pixels);
  const ptrdiff_t low = std::clamp<ptrdiff_t>(-y.offset, 0, last);
  const ptrdiff_t high = std::clamp<ptrdiff_t>(static_cast<ptrdiff_t>(height + y.taps - 1) - y.offset, low, last);
  const Range inside{static_cast<size_t>(low), static_cast<size_t>(high)};

  // Row 0 of a plane meets this source row with its first tap.
  const size_t first = by_rows ? static_cast<size_t>(low + y.offset) : 0;
  const size_t plane = (by_rows ? inside.size() : height + y.taps - 1) * length + 16;
  const size_t a_floats = round_up(groups * rows * depth, 16), offset_floats = round_up(2 * y.taps, 16);
  const size_t g_stride = round_up(flat, 16),
               g_floats = channels * g_stride + FewSlab::kSlack + round_up(2 * width, 16);
  const size_t planes_floats = round_up(together * x.taps * plane, 16), out_floats = round_up(y.pixels * x.pixels, 16);
  const size_t own_floats = g_floats + planes_floats + out_floats;
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, own_floats, a_floats + offset_floats));
  if (scratch.measuring()) return;
  float* const a = buffer.as<float>();
  auto* const offset = reinterpret_cast<ptrdiff_t*>(a + a_floats);
  for (size_t j = 0; j < y.taps; ++j) offset[j] = -static_cast<ptrdiff_t>(j * length);
  // Weights as the tiles read them: [group][job][channel][ky][target channel][kx].
  const bool runs =
      weights.x == 1 && weights.y == static_cast<ptrdiff_t>(x.taps) && y.kernel_step == 1 && x.kernel_step == 1;
  const auto pack_job = [&](size_t group, size_t job) {
    const size_t r0 = job * together, r1 = std::min(rows, r0 + together);
    const float* base = weights.data + static_cast<ptrdiff_t>(group) * weights.group;
    float* to = a + (group * rows + r0) * depth;
    if (together == 1 && runs) {
      const float* from = base + static_cast<ptrdiff_t>(r0) * row_stride +
                          static_cast<ptrdiff_t>(y.kernel_first) * weights.y +
                          static_cast<ptrdiff_t>(x.kernel_first) * weights.x;
      for (size_t c = 0; c < channels; ++c, from += channel_stride) to = std::copy_n(from, y.taps * x.taps, to);
      return;
    }
    for (size_t c = 0; c < channels; ++c) {
      for (size_t j = 0; j < y.taps; ++j) {
        const auto ky = static_cast<ptrdiff_t>(y.kernel_first + j * y.kernel_step);
        for (size_t r = r0; r < r1; ++r) {
          const float* from = base + static_cast<ptrdiff_t>(r) * row_stride +
                              static_cast<ptrdiff_t>(c) * channel_stride + ky * weights.y;
          for (size_t k = 0; k < x.taps; ++k) {
            *to++ = from[static_cast<ptrdiff_t>(x.kernel_first + k * x.kernel_step) * weights.x];
          }
        }
      }
    }
  };
  // Each is packed by the one task that reads it, or by all threads first.
  if (blocks > 1) {
    parallel_for(groups * jobs, threads_for(threads, groups * jobs, groups * rows * depth),
                 [&](size_t task, size_t) { pack_job(task / jobs, task % jobs); });
  }

  const bool direct = target.in_place(y, x);
  parallel_for(groups * blocks * parts, threads, [&](size_t task, size_t worker) {
    const size_t group = task / parts % groups, n0 = task / parts / groups * samples;
    float* g = a + a_floats + offset_floats + worker * own_floats;
    float *row_buffer = g + channels * g_stride + FewSlab::kSlack, *planes = g + g_floats,
          *out = planes + planes_floats;
    for (size_t p = 0; p < channels * samples; ++p) {
      const size_t c = p / samples, i = p % samples;
      few_copy_source(source, n0 + i, group * channels + c, {0, height}, 0, width, g + c * g_stride + i * width, length,
                      row_buffer);
    }
    FewTile tile;
    tile.channels = channels, tile.flat = length;
    tile.channel_stride = g_stride, tile.y_stride = plane;
    const size_t job0 = jobs * (task % parts) / parts, job1 = jobs * (task % parts + 1) / parts;
    // What this thread probably reads next.
    const size_t next = (task + 1) / parts / groups * samples, next_group = (task + 1) / parts % groups;
    if (source.plain() && next < batch) {
      const bool dense = groups == 1 && source.batch_stride == channels * source.tensor->stride[2];
      const size_t count = dense ? (samples - 1) * source.batch_stride : 0;
      tile.ahead = source.plain_at(next, next_group * channels, 0);
      tile.ahead_end = tile.ahead + count + channels * source.tensor->stride[2];
      tile.ahead_lines =
          div_up(static_cast<size_t>(tile.ahead_end - tile.ahead) / 16, (job1 - job0) * inside.size() * channels);
    }
    for (size_t job = job0; job < job1; ++job) {
      const size_t r0 = job * together, r1 = std::min(rows, r0 + together);
      if (blocks == 1) pack_job(group, job);
      tile.rows = (r1 - r0) * x.taps, tile.a_stride = y.taps * tile.rows;
      for (size_t l = inside.begin; l < inside.end && by_rows; ++l) {
        // Taps j of the rows at, at - 1, ... that exist.
        const auto at = static_cast<size_t>(static_cast<ptrdiff_t>(l) + y.offset);
        const size_t j0 = at < height ? 0 : at - height + 1, j1 = std::min(y.taps, at + 1);
        tile.x = g + at * length, tile.offset = offset + j0, tile.taps = j1 - j0;
        tile.a = a + (group * rows + r0) * depth + j0 * tile.rows;
        tile.y = planes + (at - first) * length;
        few_tile(tile);
      }
      if (!by_rows) std::fill_n(planes, x.taps * plane, 0.0f);
      for (size_t j = 0; j < y.taps && !by_rows; ++j) {
        tile.x = g, tile.offset = offset, tile.taps = 1, tile.store = FewStore::add, tile.flat = flat;
        tile.a = a + (group * rows + r0) * depth + j * tile.rows;
        tile.y = planes + j * length;
        few_tile(tile);
      }
      for (size_t p = 0; p < (r1 - r0) * samples; ++p) {
        const size_t r = r0 + p / samples, i = p % samples, channel = group * rows + r;
        FewFold fold;
        fold.copies = x.taps, fold.copy_stride = plane, fold.rows = inside.size(), fold.row_stride = length;
        fold.width = width, fold.first = x.offset;
        fold.x =
            planes + (r - r0) * x.taps * plane + (static_cast<size_t>(low + y.offset) - first) * length + i * width;
        float* values = out;
        if (direct) values = target.at(n0 + i, channel, 0);
        fold.to = values + inside.begin * x.pixels, fold.to_width = x.pixels, fold.to_stride = x.pixels;
        std::fill_n(values, inside.begin * x.pixels, 0.0f);
        few_fold_rows(fold);
        std::fill_n(values + inside.end * x.pixels, (y.pixels - inside.end) * x.pixels, 0.0f);
        finish_values(target, channel, values, y.pixels * x.pixels);
        for (size_t l = 0; l < y.pixels && !direct; ++l) {
          store_run(target, n0 + i, channel, l, 0, 1, values + l * x.pixels, x.pixels);
        }
      }
    }
  });
}

}  // namespace bnns
