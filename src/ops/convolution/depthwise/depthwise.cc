#include "src/ops/convolution/depthwise/depthwise.h"

#include <algorithm>
#include <cstring>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/common/kernels.h"
#include "src/ops/convolution/depthwise/tile.h"

namespace bnns {
namespace {

constexpr size_t kPlaneFloats = 64 * 1024;  // of a slab: 256 KB
constexpr size_t kSinkPixels = 1024;

// Rows of a plane at a time, so that its slab stays in L2; whole parts.
size_t rows_at_a_time(const PatchAxis& y, const PatchAxis& x) {
  PixelBlock block;
  block.n1 = 1, block.v1 = x.pixels;
  block.u1 = y.pixels;
  if (slab_floats(y, x, block, 1) <= kPlaneFloats) return y.pixels;
  size_t rows = depthwise_sink_rows(x.pixels);
  for (block.u1 = 2 * rows; block.u1 < y.pixels && slab_floats(y, x, block, 1) <= kPlaneFloats; block.u1 += rows) {
    rows = block.u1;
  }
  return std::min(rows, y.pixels);
}

size_t slab_room(const PatchAxis& y, const PatchAxis& x) {
  PixelBlock block;
  block.n1 = 1, block.u1 = rows_at_a_time(y, x), block.v1 = x.pixels;
  return round_up(slab_floats(y, x, block, 1), 16);
}

// Weights and offsets of a phase's taps.
struct PhaseTaps {
  float* weight;
  ptrdiff_t* offset;
  static size_t floats(size_t taps) { return round_up(taps, 16) + round_up(2 * taps, 16); }
  PhaseTaps(float* room, size_t taps) : weight(room), offset(reinterpret_cast<ptrdiff_t*>(room + round_up(taps, 16))) {}

  void set_weights(const PatchAxis& y, const PatchAxis& x, const float* w, const WeightView& view) const {
    for (size_t t = 0; t < y.taps * x.taps; ++t) {
      const size_t ky = y.kernel_first + t / x.taps * y.kernel_step, kx = x.kernel_first + t % x.taps * x.kernel_step;
      weight[t] = w[static_cast<ptrdiff_t>(ky) * view.y + static_cast<ptrdiff_t>(kx) * view.x];
    }
  }
  DirectTaps of(const Slab& slab, size_t taps) const {
    for (size_t t = 0; t < taps; ++t) offset[t] = slab.tap_offset(t);
    return {slab.data, slab.target_row_stride, offset, taps};
  }
};

// One plane of one phase.
void run_plane(const PatchAxis& y, const PatchAxis& x, size_t n, size_t channel, const ImageSource& source,
               const ImageTarget& target, const float* w, const WeightView& view, float* room) {
  const size_t taps = y.taps * x.taps, step = rows_at_a_time(y, x);
  const PhaseTaps phase(room, taps);
  float* slab_memory = room + PhaseTaps::floats(taps);
  float* staged = slab_memory + slab_room(y, x);
  phase.set_weights(y, x, w, view);
  const bool only_sink = target.sink && target.sink->instead_of_target;
  const bool direct = !only_sink && target.plain() && !target.accumulate && x.target_step == 1 && y.target_step == 1 &&
                      target.tensor->stride[1] == x.pixels;
  PixelBlock block;
  block.n0 = n, block.n1 = n + 1, block.v1 = x.pixels;
  for (block.u0 = 0; block.u0 < y.pixels; block.u0 = block.u1) {
    block.u1 = std::min(y.pixels, block.u0 + step);
    const Slab slab = make_slab(source, y, x, block, channel, 1, slab_memory);
    float* out = staged;
    if (direct) {
      out = static_cast<float*>(target.data) + n * target.batch_stride + channel * target.tensor->stride[2] +
            block.u0 * x.pixels;
    }
    const size_t count = block.rows() * x.pixels;
    direct_rows(phase.of(slab, taps), phase.weight, block.rows(), x.pixels, out, x.pixels);
    finish_values(target, channel, out, count);
    if (target.sink) {
      target.sink->take(target.sink->context,
                        {n, n + 1, channel, 1, block.u0 * x.pixels, count, out, count, target.tensor->stride[2]});
    }
    if (direct || only_sink) continue;
    for (size_t u = block.u0; u < block.u1; ++u, out += x.pixels) {
      store_run(target, n, channel, y.target_first + u * y.target_step, x.target_first, x.target_step, out, x.pixels);
    }
  }
}

size_t plane_floats(const PatchAxis& y, const PatchAxis& x) {
  return PhaseTaps::floats(y.taps * x.taps) + slab_room(y, x) + round_up(rows_at_a_time(y, x) * x.pixels, 16);
}

}  // namespace

size_t depthwise_sink_rows(size_t width) {
  return std::max<size_t>(1, kSinkPixels / width);
}

SinkParts depthwise_sink_parts(const PatchAxis& y, const PatchAxis& x) {
  if (y.target_step != 1 || x.target_step != 1 || x.pixels > kSinkPixels) return {};
  return {1, depthwise_sink_rows(x.pixels) * x.pixels};
}

void depthwise_down(const ConvolutionMap& map, size_t batch, const ImageSource& source, const ImageTarget& target,
                    const WeightView& w, CallScratch& scratch, size_t threads) {
  if (depthwise_tile_down(map, batch, source, target, w, scratch, threads)) return;
  const PatchAxis y = down_axis(map.y), x = down_axis(map.x);
  const size_t tasks = batch * map.groups, floats = plane_floats(y, x);
  threads = threads_for(threads, tasks, tasks * (map.y.large * map.x.large + y.pixels * x.pixels) * sizeof(float));
  CallScratch::Lease room(scratch, scratch_bytes(threads, floats));
  if (scratch.measuring()) return;
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    const size_t c = task % map.groups;
    run_plane(y, x, task / map.groups, c, source, target, w.data + static_cast<ptrdiff_t>(c) * w.group, w,
              room.as<float>() + worker * floats);
  });
}

void depthwise_up(const ConvolutionMap& map, size_t batch, const ImageSource& source, const ImageTarget& target,
                  const WeightView& w, CallScratch& scratch, size_t threads) {
  if (depthwise_tile_up(map, batch, source, target, w, scratch, threads)) return;
  const size_t phases_y = std::min(map.y.stride, map.y.large), phases_x = std::min(map.x.stride, map.x.large);
  size_t floats = 0;
  for (size_t p = 0; p < phases_y * phases_x; ++p) {
    const PatchAxis y = up_axis(map.y, p / phases_x), x = up_axis(map.x, p % phases_x);
    if (y.taps != 0 && x.taps != 0) floats = std::max(floats, plane_floats(y, x));
  }
  const size_t tasks = batch * map.groups;
  threads =
      threads_for(threads, tasks, tasks * (map.y.large * map.x.large + map.y.small * map.x.small) * sizeof(float));
  CallScratch::Lease room(scratch, scratch_bytes(threads, floats));
  if (scratch.measuring()) return;
  for (size_t p = 0; p < phases_y * phases_x; ++p) {
    const PatchAxis y = up_axis(map.y, p / phases_x), x = up_axis(map.x, p % phases_x);
    if (y.taps == 0 || x.taps == 0) fill_without_taps(y, x, batch, map.groups, target, threads);
  }
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    const size_t c = task % map.groups;
    for (size_t p = 0; p < phases_y * phases_x; ++p) {
      const PatchAxis y = up_axis(map.y, p / phases_x), x = up_axis(map.x, p % phases_x);
      if (y.taps == 0 || x.taps == 0) continue;
      run_plane(y, x, task / map.groups, c, source, target, w.data + static_cast<ptrdiff_t>(c) * w.group, w,
                room.as<float>() + worker * floats);
    }
  });
}

// A task owns a channel and walks the batch in order.
void depthwise_weights(const ConvolutionMap& map, size_t batch, const ImageSource& small, const ImageSource& large,
                       const WeightTarget& target, CallScratch& scratch, size_t threads) {
  if (depthwise_tile_weights(map, batch, small, large, target, scratch, threads)) return;
  const PatchAxis y = down_axis(map.y), x = down_axis(map.x);
  const size_t taps = y.taps * x.taps, step = rows_at_a_time(y, x);
  const size_t sums_floats = round_up(2 * taps, 16), stage = round_up(step * x.pixels + 2 * x.pixels, 16);
  const size_t floats = sums_floats + PhaseTaps::floats(taps) + slab_room(y, x) + stage;
  threads = threads_for(threads, map.groups, batch * map.groups * map.y.large * map.x.large * sizeof(float));
  CallScratch::Lease room(scratch, scratch_bytes(threads, floats));
  if (scratch.measuring()) return;
  const bool dense = small.plain();
  parallel_for(map.groups, threads, [&](size_t c, size_t worker) {
    float* own = room.as<float>() + worker * floats;
    double* sums = reinterpret_cast<double*>(own);
    const PhaseTaps phase(own + sums_floats, taps);
    float* slab_memory = own + sums_floats + PhaseTaps::floats(taps);
    float* staged = slab_memory + slab_room(y, x);
    std::fill_n(sums, taps, 0.0);
    PixelBlock block;
    block.v1 = x.pixels;
    for (size_t n = 0; n < batch; ++n) {
      block.n0 = n, block.n1 = n + 1;
      for (block.u0 = 0; block.u0 < y.pixels; block.u0 = block.u1) {
        block.u1 = std::min(y.pixels, block.u0 + step);
        const Slab slab = make_slab(large, y, x, block, c, 1, slab_memory);
        const float* g = staged;
        size_t g_stride = x.pixels;
        if (dense) {
          g = small.plain_at(n, c, block.u0);
          g_stride = small.tensor->stride[1];
        } else {
          for (size_t u = block.u0; u < block.u1; ++u) {
            const float* row = small.row(n, c, u, 0, x.pixels, staged + step * x.pixels);
            std::memcpy(staged + (u - block.u0) * x.pixels, row, x.pixels * sizeof(float));
          }
        }
        direct_dots(phase.of(slab, taps), g, g_stride, block.rows(), x.pixels, sums);
      }
    }
    float* to = target.data + static_cast<ptrdiff_t>(c) * target.group;
    for (size_t t = 0; t < taps; ++t) {
      float& at = to[static_cast<ptrdiff_t>(t / x.taps) * target.y + static_cast<ptrdiff_t>(t % x.taps) * target.x];
      at = target.accumulate ? at + static_cast<float>(sums[t]) : static_cast<float>(sums[t]);
    }
  });
}

}  // namespace bnns
