// Depthwise maps of any window: a slab of each plane, its rows summed directly.

#include "src/ops/convolution/depthwise/slab.h"

#include <algorithm>

#include "src/core/checked.h"
#include "src/core/parallel.h"
#include "src/ops/convolution/common/fill.h"
#include "src/ops/convolution/common/weights.h"

namespace bnns {
namespace {

constexpr size_t kPlaneFloats = 64 * 1024;  // of a slab: 256 KB
constexpr size_t kSinkPixels = 1024;

// One plane of one phase.
void run_plane(const PatchAxis& y, const PatchAxis& x, size_t n, size_t channel, const ImageSource& source,
               const ImageTarget& target, const float* w, const WeightView& view, float* buffer) {
  const size_t taps = y.taps * x.taps, step = depthwise_slab_rows(y, x);
  const PhaseTaps phase(buffer, taps);
  float* slab_memory = buffer + PhaseTaps::floats(taps);
  float* staged = slab_memory + depthwise_slab_floats(y, x);
  phase.set_weights(y, x, w, view);
  const bool direct = target.in_place(y, x);
  PixelBlock block;
  block.n0 = n, block.n1 = n + 1, block.v1 = x.pixels;
  for (block.u0 = 0; block.u0 < y.pixels; block.u0 = block.u1) {
    block.u1 = std::min(y.pixels, block.u0 + step);
    const Slab slab = make_slab(source, y, x, block, channel, 1, slab_memory);
    float* out = direct ? target.at(n, channel, block.u0) : staged;
    const size_t count = block.rows() * x.pixels;
    direct_rows(phase.of(slab, taps), phase.weight, block.rows(), x.pixels, out, x.pixels);
    finish_values(target, channel, out, count);
    if (target.sink) {
      target.sink->take(target.sink->context,
                        {n, n + 1, channel, 1, block.u0 * x.pixels, count, out, count, target.tensor->stride[2]});
    }
    if (direct || target.only_sink()) continue;
    for (size_t u = block.u0; u < block.u1; ++u, out += x.pixels) {
      store_run(target, n, channel, y.target_first + u * y.target_step, x.target_first, x.target_step, out, x.pixels);
    }
  }
}

size_t plane_floats(const PatchAxis& y, const PatchAxis& x) {
  return PhaseTaps::floats(y.taps * x.taps) + depthwise_slab_floats(y, x) +
         round_up(depthwise_slab_rows(y, x) * x.pixels, 16);
}

}  // namespace

size_t depthwise_sink_rows(size_t width) {
  return std::max<size_t>(1, kSinkPixels / width);
}

size_t depthwise_slab_rows(const PatchAxis& y, const PatchAxis& x) {
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

size_t depthwise_slab_floats(const PatchAxis& y, const PatchAxis& x) {
  PixelBlock block;
  block.n1 = 1, block.u1 = depthwise_slab_rows(y, x), block.v1 = x.pixels;
  return round_up(slab_floats(y, x, block, 1), 16);
}

bool accepts_depthwise_slab(const PatchMap& p) {
  return is_depthwise(p.map);
}

SinkParts depthwise_parts(const PatchMap& p) {
  const PatchAxis &y = p.y, &x = p.x;
  if (y.target_step != 1 || x.target_step != 1 || x.pixels > kSinkPixels) return {};
  return {1, depthwise_sink_rows(x.pixels) * x.pixels};
}

void run_depthwise_slab(const PatchMap& p, CallScratch& scratch) {
  const ConvolutionMap& map = p.map;
  const size_t phases_x = p.up ? p.phases_x() : 1, phases = p.up ? p.phases_y() * phases_x : 1;
  const auto phase = [&](size_t k) { return p.is_strided() ? p.phase(k / phases_x, k % phases_x) : p; };
  size_t floats = 0;
  for (size_t k = 0; k < phases; ++k) {
    const PatchMap one = phase(k);
    if (one.has_taps()) floats = std::max(floats, plane_floats(one.y, one.x));
  }
  const size_t tasks = p.batch * map.groups;
  const size_t pixels = map.y.large * map.x.large + map.y.small * map.x.small;
  const size_t threads = threads_for(p.threads, tasks, tasks * pixels * sizeof(float));
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, floats));
  if (scratch.measuring()) return;
  const WeightView w = f32_weights(p.weights);
  for (size_t k = 0; k < phases; ++k) {
    const PatchMap one = phase(k);
    if (!one.has_taps()) fill_pixels(one.y, one.x, p.batch, map.groups, p.target, threads);
  }
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    const size_t c = task % map.groups;
    for (size_t k = 0; k < phases; ++k) {
      const PatchMap one = phase(k);
      if (!one.has_taps()) continue;
      run_plane(one.y, one.x, task / map.groups, c, p.source, p.target, w.data + static_cast<ptrdiff_t>(c) * w.group, w,
                buffer.as<float>() + worker * floats);
    }
  });
}

}  // namespace bnns
