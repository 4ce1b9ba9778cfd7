// Depthwise maps of any window: slabs, bands of planes, the phases of a stride, and the stores.

#include "src/ops/convolution/depthwise/rows.h"

#include <algorithm>
#include <numeric>

#include "src/core/checked.h"
#include "src/ops/convolution/common/kernels.h"
#include "src/ops/convolution/common/weights.h"
#include "src/ops/convolution/depthwise/window.h"

namespace bnns {
namespace {

constexpr size_t kSlabFloats = 8 * 1024;  // of a band, or of some planes: in L1
constexpr size_t kMostPlanes = 16;
constexpr size_t kSinkPixels = 1024;
constexpr size_t kTileRows = 7;  // of the kernels: bands are whole tiles

}  // namespace

// ---- slabs ----------------------------------------------------------------------------------------------------------

TapAxis::TapAxis(const PatchAxis& a) : pixels(a.pixels), taps(a.taps), extent(a.extent) {
  const auto last = static_cast<ptrdiff_t>(taps) - 1, kernel_first = static_cast<ptrdiff_t>(a.kernel_first);
  const bool down = a.tap < 0;
  step = static_cast<size_t>(a.step), tap = taps == 1 ? 1 : static_cast<size_t>(down ? -a.tap : a.tap);
  first = down ? a.offset + last * a.tap : a.offset;
  kernel_step = down ? -static_cast<ptrdiff_t>(a.kernel_step) : static_cast<ptrdiff_t>(a.kernel_step);
  kernel = down ? kernel_first - last * kernel_step : kernel_first;
}

SlabPlan::SlabPlan(const TapAxis& y_axis, const TapAxis& x_axis) : y(y_axis), x(x_axis) {
  phases = x.taps == 1 ? 1 : x.step;
  length = div_up(x.span(x.pixels), x.step);
  const size_t tile = kTileRows * (y.tap / std::gcd(y.step, y.tap));
  band = y.pixels;
  if (plane(band) > kSlabFloats && band > tile) {
    band = tile;
    while (band + tile < y.pixels && plane(band + tile) <= kSlabFloats) band += tile;
  }
  if (band == y.pixels) planes = std::clamp<size_t>(kSlabFloats / plane(band), 1, kMostPlanes);
}

size_t SlabPlan::rows(size_t target_rows) const {
  return y.span(target_rows);
}

// A plane of fewer rows than a tile is computed as a whole one.
size_t SlabPlan::floats() const {
  const size_t tile = kTileRows * (y.tap / std::gcd(y.step, y.tap));
  const size_t more = band < tile ? plane(tile) - plane(band) : 0;
  return round_up(checked_add(checked_mul(planes, plane(band), "scratch"), more + 64, "scratch"), 16);
}

size_t SlabPlan::staged_floats() const {
  return round_up(2 * std::min(y.extent, rows(band)) * x.extent, 16);
}

void SlabPlan::fill(const ImageSource& source, size_t n, size_t c, size_t count, size_t u0, size_t u1, float* slab,
                    float* staged) const {
  const auto extent = static_cast<ptrdiff_t>(x.extent), height = static_cast<ptrdiff_t>(y.extent);
  const ptrdiff_t begin = std::clamp<ptrdiff_t>(x.first, 0, extent);
  const ptrdiff_t end = std::clamp<ptrdiff_t>(x.first + static_cast<ptrdiff_t>(x.span(x.pixels)), begin, extent);
  SlabRows s;
  s.low = static_cast<ptrdiff_t>(u0 * y.step) + y.first, s.height = height;
  s.lead = static_cast<size_t>(begin - x.first), s.count = static_cast<size_t>(end - begin);
  s.rows = rows(u1 - u0), s.step = x.step, s.phases = phases, s.length = length;
  if (source.plain()) {
    s.from = source.plain_at(n, c, 0) + begin;
    s.plane_stride = source.tensor->stride[2], s.row_stride = source.tensor->stride[1];
    return depthwise_split(s, count, slab);
  }
  const Range rows = rows_inside(s.low, s.low + static_cast<ptrdiff_t>(s.rows), y.extent);
  s.row_stride = x.extent;
  for (size_t p = 0; p < count; ++p, slab += s.rows * row()) {
    if (rows.size() != 0) s.from = image_rows(source, n, c + p, rows, staged) - rows.begin * x.extent + begin;
    depthwise_split(s, 1, slab);
  }
}

DepthwiseSlab slab_of(const SlabPlan& plan, const float* data, size_t rows) {
  DepthwiseSlab s;
  s.data = data, s.plane_stride = plan.plane(rows), s.row_stride = plan.row();
  s.step = plan.y.step, s.tap = plan.y.tap, s.taps_y = plan.y.taps, s.taps_x = plan.x.taps;
  s.tap_x = plan.x.tap, s.phases = plan.phases, s.length = plan.length;
  s.rows = rows, s.pixels = plan.x.pixels;
  return s;
}

// ---- maps -----------------------------------------------------------------------------------------------------------

size_t depthwise_sink_rows(size_t width) {
  return std::max<size_t>(1, kSinkPixels / width);
}

SinkParts depthwise_parts(const PatchMap& p) {
  const PatchAxis &y = p.y, &x = p.x;
  if (y.target_step != 1 || x.target_step != 1 || x.pixels > kSinkPixels) return {};
  return {1, depthwise_sink_rows(x.pixels) * x.pixels};
}

bool accepts_depthwise_rows(const PatchMap& p) {
  return is_depthwise(p.map);
}

namespace {

DepthwiseWeights weights_of(const WeightView& w, const TapAxis& y, const TapAxis& x, size_t channel) {
  return {w.data + static_cast<ptrdiff_t>(channel) * w.group + y.kernel * w.y + x.kernel * w.x, w.group,
          y.kernel_step * w.y, x.kernel_step * w.x};
}

// Down, or up without a stride.
void run_plain(const PatchMap& p, CallScratch& scratch) {
  SlabPlan plan{TapAxis(p.y), TapAxis(p.x)};
  const size_t part = depthwise_sink_rows(p.x.pixels);
  if (p.target.sink && plan.band < p.y.pixels) plan.band = std::max(part, plan.band / part * part);
  const ImageTarget& target = p.target;
  const BandTarget out(target, plan.x.pixels);
  const size_t slab_floats = plan.floats(), staged_floats = p.source.plain() ? 0 : plan.staged_floats();
  const size_t plane_floats = plan.band * plan.x.pixels;
  const size_t floats = slab_floats + staged_floats + (out.direct() ? 0 : round_up(plan.planes * plane_floats, 16));
  const size_t groups = div_up(p.map.groups, plan.planes), threads = threads_for_planes(p.threads, p.map, p.batch);
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, floats));
  if (scratch.measuring()) return;
  const WeightView w = f32_weights(p.weights);
  parallel_for(p.batch * groups, threads, [&](size_t task, size_t worker) {
    const size_t n = task / groups, c = task % groups * plan.planes, planes = std::min(plan.planes, p.map.groups - c);
    float *slab = buffer.as<float>() + worker * floats, *staged = slab + slab_floats, *values = staged + staged_floats;
    const DepthwiseWeights weights = weights_of(w, plan.y, plan.x, c);
    for (size_t u0 = 0; u0 < p.y.pixels; u0 += plan.band) {
      const size_t u1 = std::min(p.y.pixels, u0 + plan.band);
      plan.fill(p.source, n, c, planes, u0, u1, slab, staged);
      float* to = out.direct() ? target.at(n, c, u0) : values;
      const size_t stride = out.direct() ? target.tensor->stride[2] : plane_floats;
      depthwise_sums(slab_of(plan, slab, u1 - u0), planes, weights,
                     {to, stride, plan.x.pixels, target.bias ? target.bias + c : nullptr});
      for (size_t i = 0; i < planes; ++i) out.finish(n, c + i, u0, u1, to + i * stride);
    }
  });
}

// The taps of all phases of an axis as one window: every phase reads a part of its slab.
TapAxis all_phases(const ConvolutionAxis& a, size_t phases) {
  TapAxis all;
  ptrdiff_t low = 0, high = 0;
  bool some = false;
  for (size_t k = 0; k < phases; ++k) {
    const PatchAxis axis = up_axis(a, k);
    if (axis.taps == 0) continue;
    const TapAxis t(axis);
    const ptrdiff_t last = t.first + static_cast<ptrdiff_t>((t.taps - 1) * t.tap);
    low = some ? std::min(low, t.first) : t.first, high = some ? std::max(high, last) : last;
    all.tap = std::max(all.tap, t.tap);
    some = true;
  }
  all.pixels = up_axis(a, 0).pixels, all.extent = a.small;
  all.taps = div_up(static_cast<size_t>(high - low), all.tap) + 1, all.first = low;
  return all;
}

// Up over a stride: one slab for all phases; the sums of all residues of columns, for the rows of one residue after the
// other, become whole rows of the target.
void run_phases(const PatchMap& p, CallScratch& scratch) {
  const size_t phases_y = p.phases_y(), phases_x = p.phases_x(), height = p.map.y.large, width = p.map.x.large;
  const ImageTarget& target = p.target;
  const BandTarget out(target, width);
  const SlabPlan plan(all_phases(p.map.y, phases_y), all_phases(p.map.x, phases_x));
  const size_t columns = plan.x.pixels;  // of one phase, at most
  const size_t plane_sums = plan.band * columns, phase_sums = round_up(plan.planes * plane_sums + kSumLanes, 16);
  const size_t plane_values = plan.band * phases_y * width;
  const size_t slab_floats = plan.floats(), staged_floats = p.source.plain() ? 0 : plan.staged_floats();
  const size_t floats = slab_floats + staged_floats + phases_x * phase_sums +
                        (out.direct() ? 0 : round_up(plan.planes * plane_values, 16));
  const size_t groups = div_up(p.map.groups, plan.planes), threads = threads_for_planes(p.threads, p.map, p.batch);
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, floats));
  if (scratch.measuring()) return;
  const WeightView w = f32_weights(p.weights);
  parallel_for(p.batch * groups, threads, [&](size_t task, size_t worker) {
    const size_t n = task / groups, c = task % groups * plan.planes, planes = std::min(plan.planes, p.map.groups - c);
    float *slab = buffer.as<float>() + worker * floats, *staged = slab + slab_floats, *sums = staged + staged_floats;
    float* values = sums + phases_x * phase_sums;
    const float* bias = target.bias ? target.bias + c : nullptr;
    for (size_t u0 = 0; u0 < plan.y.pixels; u0 += plan.band) {
      const size_t u1 = std::min(plan.y.pixels, u0 + plan.band);
      const size_t y0 = u0 * phases_y, y1 = std::min(height, u1 * phases_y);
      plan.fill(p.source, n, c, planes, u0, u1, slab, staged);
      float* to = out.direct() ? target.at(n, c, y0) : values;
      const size_t stride = out.direct() ? target.tensor->stride[2] : plane_values;
      for (size_t ry = 0; ry < phases_y; ++ry) {
        const PatchAxis y = up_axis(p.map.y, ry);
        const size_t rows = std::min(u1, y.pixels) - std::min(u0, y.pixels);
        for (size_t rx = 0; rx < phases_x; ++rx) {
          const PatchAxis x = up_axis(p.map.x, rx);
          float* phase = sums + rx * phase_sums;
          if (y.taps == 0 || x.taps == 0) {
            for (size_t i = 0; i < planes; ++i) {
              std::fill_n(phase + i * plane_sums, rows * columns, bias ? bias[i] : 0.0f);
            }
            continue;
          }
          const TapAxis ty(y), tx(x);
          DepthwiseSlab part = slab_of(plan, slab, u1 - u0);
          part.data +=
              static_cast<size_t>(ty.first - plan.y.first) * plan.row() + static_cast<size_t>(tx.first - plan.x.first);
          part.taps_y = ty.taps, part.taps_x = tx.taps, part.rows = rows, part.pixels = x.pixels;
          depthwise_sums(part, planes, weights_of(w, ty, tx, c), {phase, plane_sums, columns, bias});
        }
        depthwise_merge({sums, phase_sums, plane_sums, columns, phases_x}, planes, rows, width, to + ry * width, stride,
                        phases_y * width);
      }
      for (size_t i = 0; i < planes; ++i) out.finish(n, c + i, y0, y1, to + i * stride);
    }
  });
}

}  // namespace

void run_depthwise_rows(const PatchMap& p, CallScratch& scratch) {
  p.is_strided() ? run_phases(p, scratch) : run_plain(p, scratch);
}

}  // namespace bnns
