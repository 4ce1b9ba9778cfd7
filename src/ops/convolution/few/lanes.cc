// Maps down with target channels as lanes: broadcast pixels times vectors of weights.

#include "src/ops/convolution/few/lanes.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/gemm/pack.h"
#include "src/ops/convolution/common/kernels.h"
#include "src/ops/convolution/common/weights.h"

namespace bnns {
namespace {

constexpr size_t kMostWeights = 16 * 1024;  // floats of a group, padded: 64 KB
constexpr size_t kLeastDepth = 64;          // multiply-adds that repay the transposition
constexpr size_t kStreamBytes = 4u << 20;   // targets from here on leave by non-temporal stores
constexpr size_t kShortRow = 16;            // pixels; longer rows without a stride fill vectors well enough
constexpr size_t kTasks = 4;                // wanted per thread
constexpr size_t kMostBlocks = 8;           // of a task
constexpr size_t kPanel = 32;               // small channels whose weights stay in L1

// [channel][tap][s] of `rows` small channels from `first` on.
void pack_lanes(const PatchAxis& y, const PatchAxis& x, const WeightView& w, size_t group, size_t first, size_t rows,
                size_t channels, size_t width, float* to) {
  const size_t taps = y.taps * x.taps, depth = channels * taps;
  const float* base = w.data + static_cast<ptrdiff_t>(group) * w.group + static_cast<ptrdiff_t>(first) * w.small +
                      static_cast<ptrdiff_t>(y.kernel_first) * w.y + static_cast<ptrdiff_t>(x.kernel_first) * w.x;
  if (rows < width) std::fill_n(to, depth * width, 0.0f);
  if (w.x == 1 && w.y == static_cast<ptrdiff_t>(x.taps) && w.large == static_cast<ptrdiff_t>(taps)) {
    pack_strided(strided_lens(base, FloatType::f32, w.small, 1), {0, rows}, {0, depth}, {to, width, depth * width});
    return;
  }
  for (size_t k = 0; k < depth; ++k, to += width) {
    const size_t t = k % taps;
    const float* from = base + static_cast<ptrdiff_t>(k / taps) * w.large + static_cast<ptrdiff_t>(t / x.taps) * w.y +
                        static_cast<ptrdiff_t>(t % x.taps) * w.x;
    for (size_t s = 0; s < rows; ++s) to[s] = from[static_cast<ptrdiff_t>(s) * w.small];
  }
}

// Leaves about half of the rows, or of the pixels of one row, and returns how many of them remain.
size_t take_half(LaneWindows* w) {
  constexpr size_t kTile = 14;
  const size_t all = w->rows > 1 ? w->rows : w->pixels;
  const size_t some = w->rows > 1 ? div_up(all, 2) : std::min(all, round_up(div_up(all, 2), kTile));
  (w->rows > 1 ? w->rows : w->pixels) = some;
  return all - some;
}

}  // namespace

PatchAxis lanes_columns(const PatchAxis& x) {
  PatchAxis all = x;
  all.pixels = (x.pixels - 1) * static_cast<size_t>(x.step) + 1;
  all.step = 1;
  return all;
}

size_t lanes_rows(const PatchAxis& y, const PatchAxis& x, size_t width) {
  return std::clamp<size_t>(kLanesRowFloats / (x.pixels * width), 1, y.pixels);
}

LaneWindows lane_windows(const Slab& s, const PatchAxis& y, const PatchAxis& x, size_t channels, size_t rows) {
  LaneWindows w;
  w.x = s.data + s.tap_offset(0);
  w.channels = channels, w.taps_y = y.taps, w.taps_x = x.taps;
  w.channel_stride = s.channel_stride, w.tap_row = s.tap_row, w.row_stride = s.target_row_stride;
  w.rows = rows, w.pixels = x.pixels, w.step = static_cast<size_t>(x.step);
  return w;
}

bool accepts_few_lanes(const PatchMap& p) {
  const ConvolutionMap& map = p.map;
  const PatchAxis &y = p.y, &x = p.x;
  if (p.up || p.target.sink) return false;
  const size_t width = round_up(map.small_channels, kLanesUnit), depth = map.large_channels * y.taps * x.taps;
  if (x.step != 2 && (x.step != 1 || x.pixels > kShortRow)) return false;
  return width <= kLanesMost && 8 * (width - map.small_channels) <= width && x.tap == 1 && x.taps > 1 &&
         depth >= kLeastDepth && depth * width <= kMostWeights && x.pixels * width <= 4 * kLanesRowFloats;
}

namespace {

// Sums of a panel of channels for some rows, [pixel][channel].
struct FinishedRows {
  const float* sums = nullptr;
  size_t n = 0, u0 = 0, u1 = 0, first = 0, channels = 0;  // first: channel
};

// Where they go, kLanesUnit channels at a time; planes has space for the rows of so many.
class LanesTarget {
 public:
  LanesTarget(const ImageTarget& target, const PatchAxis& y, const PatchAxis& x, size_t panel, bool large)
      : target_(target), width_(x.pixels), panel_(panel), dense_(target.in_place(y, x)), stream_(dense_ && large) {}
  bool stream() const { return stream_; }

  void put(const FinishedRows& f, size_t c0, size_t c1, float* planes) const {
    const size_t count = (f.u1 - f.u0) * width_;
    for (size_t c = c0; c < std::min(c1, f.channels); c += kLanesUnit) {
      const size_t some = std::min(kLanesUnit, f.channels - c);
      lanes_transpose(f.sums + c, panel_, count, some, planes, count);
      for (size_t r = 0; r < some; ++r) put_channel(f, f.first + c + r, planes + r * count, count);
    }
  }

 private:
  void put_channel(const FinishedRows& f, size_t channel, float* values, size_t count) const {
    finish_values(target_, channel, values, count);
    if (!dense_) {
      for (size_t u = f.u0; u < f.u1; ++u, values += width_) store_run(target_, f.n, channel, u, 0, 1, values, width_);
      return;
    }
    float* to = target_.at(f.n, channel, f.u0);
    if (stream_) {
      stream_values(values, count, to);
    } else {
      std::memcpy(to, values, count * sizeof(float));
    }
  }

  const ImageTarget& target_;
  size_t width_, panel_;
  bool dense_, stream_;
};

}  // namespace

// A task is some blocks, a few rows of a sample each; how many follows from the number of tasks that the threads want,
// which no sum depends on. The sums of a panel leave while those of the next one are made, half of them at a time:
// non-temporal stores take as long as a good part of the sums, but nobody waits for them.
void run_few_lanes(const PatchMap& p, CallScratch& scratch) {
  const ConvolutionMap& map = p.map;
  const PatchAxis &y = p.y, &x = p.x, columns = lanes_columns(x);
  const ImageSource& source = p.source;
  const WeightView w = f32_weights(p.weights);
  const size_t batch = p.batch;
  const size_t rows = map.small_channels, channels = map.large_channels, width = round_up(rows, kLanesUnit);
  const size_t panel = width % kPanel == 0 ? kPanel : width;
  const size_t depth = channels * y.taps * x.taps, images = batch * map.groups;
  const size_t threads = threads_for(p.threads, images * y.pixels, images * rows * depth * y.pixels * x.pixels / 2);
  const size_t wanted = threads == 1 ? 1 : std::min(y.pixels, div_up(kTasks * threads, images));
  const size_t block = std::min(lanes_rows(y, x, width), div_up(y.pixels, wanted)), blocks = div_up(y.pixels, block);
  const size_t together = std::clamp<size_t>(images * blocks / (2 * kTasks * threads), 1, kMostBlocks);
  const size_t most = block * x.pixels;
  const LanesTarget out(p.target, y, x, panel, images * rows * y.pixels * x.pixels * sizeof(float) >= kStreamBytes);

  const size_t slab = round_up(slab_floats(y, columns, {0, 1, 0, block, 0, columns.pixels}, channels), 16);
  const size_t staged = round_up(most * panel, 16), own = slab + 2 * staged + most * kLanesUnit;
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, own, map.groups * depth * width));
  if (scratch.measuring()) return;
  float* const packed = buffer.as<float>();
  for (size_t g = 0; g < map.groups; ++g) {
    for (size_t r = 0; r < width; r += panel) {
      pack_lanes(y, x, w, g, r, std::min(panel, rows - r), channels, panel, packed + (g * width + r) * depth);
    }
  }
  parallel_for(div_up(images * blocks, together), threads, [&](size_t task, size_t worker) {
    float* const slab_buffer = packed + map.groups * depth * width + worker * own;
    float *const sums = slab_buffer + slab, *const planes = sums + 2 * staged;
    const size_t half = round_up(panel / 2, kLanesUnit);
    FinishedRows last;
    size_t turn = 0;
    for (size_t b = task * together; b < std::min(images * blocks, (task + 1) * together); ++b) {
      const size_t u0 = b % blocks * block, u1 = std::min(y.pixels, u0 + block);
      const size_t group = b / blocks % map.groups, n = b / blocks / map.groups;
      const Slab s =
          make_slab(source, y, columns, {n, n + 1, u0, u1, 0, columns.pixels}, group * channels, channels, slab_buffer);
      const LaneWindows windows = lane_windows(s, y, x, channels, u1 - u0);
      for (size_t r = 0; r < rows; r += panel) {
        float* const to = sums + turn++ % 2 * staged;
        const float* weights = packed + (group * width + r) * depth;
        LaneWindows part = windows;
        const size_t rest = take_half(&part);
        lanes_sums(part, weights, panel, to);
        out.put(last, 0, half, planes);
        if (rest) {
          const size_t done = part.rows * part.pixels;
          part.x += windows.rows > 1 ? static_cast<ptrdiff_t>(part.rows) * part.row_stride
                                     : static_cast<ptrdiff_t>(part.pixels * part.step);
          (windows.rows > 1 ? part.rows : part.pixels) = rest;
          lanes_sums(part, weights, panel, to + done * panel);
        }
        out.put(last, half, panel, planes);
        last = {to, n, u0, u1, group * rows + r, std::min(panel, rows - r)};
      }
    }
    out.put(last, 0, panel, planes);
    if (out.stream()) stream_end();
  });
}

}  // namespace bnns
