#include <algorithm>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/convolution_few.h"
#include "src/ops/convolution/convolution_kernels.h"

namespace bnns {
namespace {

constexpr size_t kSourcePixels = 768;  // of a block of samples
constexpr size_t kBlocks = 8;          // that a batch is cut into at least
constexpr size_t kLeastDepth = 8;      // source channels that repay the additions

}  // namespace

bool few_scatter_accepts(const PatchAxis& y, const PatchAxis& x, size_t channels) {
  const size_t pixels = y.extent * x.extent;
  return y.step == 1 && x.step == 1 && y.tap == -1 && x.tap == -1 && y.target_step == 1 && x.target_step == 1 &&
         x.taps <= kFewRows && channels >= kLeastDepth && pixels <= kSourcePixels &&
         4 * y.pixels * x.pixels >= 5 * pixels;
}

// With the source planes of some samples side by side, rows of L numbers: for each target channel and column kx of taps
// a plane of their products, in which row ky of taps is ky rows further down, so that all taps are added in place;
// the columns are folded at the end, each kx further right. Target row l is row l + y.offset of the planes.
void few_scatter(const PatchAxis& y, const PatchAxis& x, size_t groups, size_t rows, size_t channels,
                 const WeightView& weights, ptrdiff_t row_stride, ptrdiff_t channel_stride, size_t batch,
                 const ImageSource& source, const ImageTarget& target, ScratchShelf& scratch, size_t threads) {
  const size_t height = y.extent, width = x.extent;
  size_t samples = std::max<size_t>(1, std::min(kSourcePixels / (height * width), batch / kBlocks));
  while (batch % samples != 0) --samples;
  const size_t length = samples * width, flat = height * length, blocks = batch / samples;
  const size_t plane_rows = height + y.taps - 1, plane = plane_rows * length;
  const size_t depth = y.taps * x.taps * channels;
  threads = threads_for(threads, groups * blocks, batch * groups * rows * depth * height * width / 2);

  const size_t a_floats = round_up(groups * rows * depth, 16);
  const size_t g_stride = round_up(flat, 16),
               g_floats = channels * g_stride + FewSlab::kSlack + round_up(2 * width, 16);
  const size_t planes_floats = round_up(x.taps * plane, 16), out_floats = round_up(y.pixels * x.pixels, 16);
  const size_t own_floats = g_floats + planes_floats + out_floats;
  ScratchShelf::Lease room(scratch, scratch_bytes(threads, own_floats, a_floats));
  float* const a = room.as<float>();
  // Weights as the tiles read them: [group][row][ky][channel][kx].
  parallel_for(groups * rows, threads_for(threads, groups * rows, groups * rows * depth), [&](size_t task, size_t) {
    const float* base = weights.data + static_cast<ptrdiff_t>(task / rows) * weights.group +
                        static_cast<ptrdiff_t>(task % rows) * row_stride;
    float* to = a + task * depth;
    for (size_t j = 0; j < y.taps; ++j) {
      const auto ky = static_cast<ptrdiff_t>(y.kernel_first + j * y.kernel_step);
      for (size_t c = 0; c < channels; ++c) {
        const float* from = base + static_cast<ptrdiff_t>(c) * channel_stride + ky * weights.y;
        for (size_t k = 0; k < x.taps; ++k) {
          *to++ = from[static_cast<ptrdiff_t>(x.kernel_first + k * x.kernel_step) * weights.x];
        }
      }
    }
  });

  // Target rows that some product reaches; the others are zero.
  const auto last = static_cast<ptrdiff_t>(y.pixels);
  const ptrdiff_t low = std::clamp<ptrdiff_t>(-y.offset, 0, last);
  const ptrdiff_t high = std::clamp<ptrdiff_t>(static_cast<ptrdiff_t>(plane_rows) - y.offset, low, last);
  const Range inside{static_cast<size_t>(low), static_cast<size_t>(high)};
  const bool direct = target.plain() && !target.accumulate && target.tensor->stride[1] == x.pixels;
  static constexpr ptrdiff_t kNoOffset = 0;
  parallel_for(groups * blocks, threads, [&](size_t task, size_t worker) {
    const size_t group = task % groups, n0 = task / groups * samples;
    float* g = a + a_floats + worker * own_floats;
    float *row_room = g + channels * g_stride + FewSlab::kSlack, *planes = g + g_floats, *out = planes + planes_floats;
    for (size_t p = 0; p < channels * samples; ++p) {
      const size_t c = p / samples, i = p % samples;
      few_copy_source(source, n0 + i, group * channels + c, {0, height}, 0, width, g + c * g_stride + i * width, length,
                      row_room);
    }
    // What this thread probably reads next.
    const float *ahead = nullptr, *ahead_end = nullptr;
    const size_t next = (task + threads) / groups * samples, next_group = (task + threads) % groups;
    if (source.plain() && next < batch) {
      ahead = source.plain_at(next, next_group * channels, 0);
      ahead_end = ahead + channels * source.tensor->stride[2];
    }
    for (size_t r = 0; r < rows; ++r) {
      const size_t channel = group * rows + r;
      std::fill_n(planes, x.taps * plane, 0.0f);
      FewTile tile;
      tile.rows = x.taps, tile.channels = channels, tile.taps = 1, tile.flat = flat, tile.add = true;
      tile.x = g, tile.channel_stride = g_stride, tile.offset = &kNoOffset;
      tile.y_stride = plane;
      tile.ahead = ahead, tile.ahead_end = ahead_end;
      for (size_t ky = 0; ky < y.taps; ++ky) {
        tile.a = a + channel * depth + ky * channels * x.taps;
        tile.y = planes + ky * length;
        few_tile(tile);
      }
      ahead = tile.ahead;
      for (size_t i = 0; i < samples; ++i) {
        FewFold fold;
        fold.copies = x.taps, fold.copy_stride = plane, fold.rows = inside.size(), fold.row_stride = length;
        fold.width = width, fold.first = x.offset;
        fold.x = planes + (static_cast<ptrdiff_t>(inside.begin) + y.offset) * static_cast<ptrdiff_t>(length) +
                 static_cast<ptrdiff_t>(i * width);
        float* values = out;
        if (direct) {
          values =
              static_cast<float*>(target.data) + (n0 + i) * target.batch_stride + channel * target.tensor->stride[2];
        }
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
