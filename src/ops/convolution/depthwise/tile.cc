// Depthwise maps of 3x3 windows: bands of planes, their kernels and their stores.

#include "src/ops/convolution/depthwise/tile.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "src/core/checked.h"
#include "src/ops/convolution/common/kernels.h"
#include "src/ops/convolution/common/weights.h"
#include "src/ops/convolution/depthwise/window.h"

namespace bnns {
namespace {

constexpr size_t kTaskFloats = 16 * 1024;        // planes smaller than this share a task
constexpr size_t kStreamTaskFloats = 64 * 1024;  // where its end waits for non-temporal stores
constexpr size_t kPlanes = 64;                   // of a group
constexpr size_t kStreamBytes = 4u << 20;        // targets from here on leave by non-temporal stores
constexpr size_t kPieceFloats = 768;             // of such a target, about: 3 KB

// Ordinary stores read every line of a target that is not in the cache first. Where targets are larger than their
// sources that is most of the traffic: there they are made piece by piece in L1, a few rows (whole blocks of the
// kernels) or a few planes, and leave it as whole lines. (Where both are of one size, the stores wait more than that
// saves: 1.5 times as long on an Emerald Rapids, the same on a Zen 4.)
struct Pieces {
  size_t rows = 0, planes = 1;
  Pieces(size_t height, size_t width, bool dense_planes) {
    rows = std::min(height, round_up(div_up(kPieceFloats, width), 14));
    if (rows < height || !dense_planes) return;
    const size_t plane = height * width, whole_lines = 16 / std::gcd<size_t>(16, plane);
    planes = std::max<size_t>(1, std::min(round_up(kPieceFloats / plane, whole_lines), kPlanes));
  }
  size_t floats(size_t height, size_t width) const {
    return round_up((planes > 1 ? planes * height : rows) * width, 16) + 16;
  }
};

// Runs f(sample, channels, worker) for groups of at most kPlanes planes of a sample, small planes together.
template <class F>
void for_each_group(size_t batch, size_t channels, size_t plane_floats, size_t task_floats, size_t threads, F&& f) {
  const size_t most = std::min(kPlanes, std::max<size_t>(1, batch * channels / 32));
  const size_t some = std::clamp<size_t>(task_floats / plane_floats, 1, most), groups = div_up(channels, some);
  parallel_for(batch * groups, threads, [&](size_t task, size_t worker) {
    const size_t c0 = task % groups * some;
    f(task / groups, Range{c0, std::min(channels, c0 + some)}, worker);
  });
}

// The nine weights of some channels, in the order of the kernel's taps: where they lie, or gathered in buffer. Offsets
// come from the axes.
const float* tap_weights(const WeightView& w, Range channels, const ptrdiff_t (&offset)[9], float* buffer) {
  bool dense = w.group == 9;
  for (ptrdiff_t k = 0; k < 9; ++k) dense &= offset[k] == k;
  if (dense) return w.data + 9 * channels.begin;
  float* to = buffer;
  for (size_t c = channels.begin; c < channels.end; ++c) {
    const float* from = w.data + static_cast<ptrdiff_t>(c) * w.group;
    for (const ptrdiff_t k : offset) *to++ = from[k];
  }
  return buffer;
}

// What the maps have in common: for every band of a group of planes, source rows, kernel, finish. The kernel takes
// (source, plane stride, row stride, planes, rows, out). rows(u0, u1) names the source rows that target rows read.
struct BandPlan {
  size_t height = 0, width = 0, band = 0;                 // of the target
  size_t source_height = 0, source_width = 0, reach = 0;  // reach: source rows of a band, at most
  ptrdiff_t weight[9] = {};                               // offsets of the taps
};
template <class Rows, class Kernel>
void run_bands(const BandPlan& plan, const PatchMap& p, const WeightView& w, CallScratch& scratch, Rows&& rows_of,
               Kernel&& kernel) {
  const ConvolutionMap& map = p.map;
  const ImageSource& source = p.source;
  const ImageTarget& target = p.target;
  const size_t batch = p.batch;
  const BandTarget out(target, plan.width);
  const bool together = out.direct() && source.plain() && plan.band >= plan.height;
  const size_t source_buffer =
      source.plain() ? 0 : round_up((std::min(plan.source_height, plan.reach) + 2) * plan.source_width, 16);
  const bool stream = together && !target.sink && target.activation.is_identity() &&
                      plan.height * plan.width >= 2 * plan.source_height * plan.source_width &&
                      batch * map.groups * plan.height * plan.width * sizeof(float) >= kStreamBytes;
  const Pieces pieces(plan.height, plan.width, target.tensor->stride[2] == plan.height * plan.width);
  const size_t zeros_floats = round_up(plan.source_width, 16);
  const size_t floats = source_buffer + (stream ? pieces.floats(plan.height, plan.width) : out.buffer(plan.band));
  const size_t threads = threads_for_planes(p.threads, map, batch);
  CallScratch::Lease buffer(scratch, scratch_bytes(threads, floats, zeros_floats));
  if (scratch.measuring()) return;
  const float* zeros = std::fill_n(buffer.as<float>(), zeros_floats, 0.0f) - zeros_floats;
  for_each_group(
      batch, map.groups, plan.height * plan.width, stream ? kStreamTaskFloats : kTaskFloats, threads,
      [&](size_t n, const Range& channels, size_t worker) {
        float* own = buffer.as<float>() + zeros_floats + worker * floats;
        float weight_buffer[9 * kPlanes];
        const float* weight = tap_weights(w, channels, plan.weight, weight_buffer);
        if (stream) {
          const auto stride = static_cast<ptrdiff_t>(source.tensor->stride[1]);
          for (size_t c = channels.begin; c < channels.end; c += pieces.planes) {
            const size_t planes = std::min(pieces.planes, channels.end - c);
            for (size_t u0 = 0; u0 < plan.height; u0 += pieces.rows) {
              const size_t u1 = std::min(plan.height, u0 + pieces.rows);
              float* to = out.at(n, c, u0, nullptr);
              float* piece = own + reinterpret_cast<uintptr_t>(to) % 64 / sizeof(float);  // lines as in the target
              kernel(source.plain_at(n, c, 0), stride, zeros, planes, Range{u0, u1},
                     {piece - u0 * plan.width, plan.height * plan.width, plan.width, weight + 9 * (c - channels.begin),
                      target.bias ? target.bias + c : nullptr});
              stream_values(piece, ((planes - 1) * plan.height + u1 - u0) * plan.width, to);
            }
          }
          stream_end();
          return;
        }
        const size_t planes = together ? channels.size() : 1;
        for (size_t c = channels.begin; c < channels.end; c += planes) {
          DepthwiseOutput to{nullptr, target.tensor->stride[2], plan.width, weight + 9 * (c - channels.begin),
                             target.bias ? target.bias + c : nullptr};
          for (size_t u0 = 0; u0 < plan.height; u0 += plan.band) {
            const size_t u1 = std::min(plan.height, u0 + plan.band);
            const Range rows = rows_of(u0, u1);
            ptrdiff_t stride;
            const float* x = source_rows(source, n, c, rows.begin, rows.end, plan.source_width, own, &stride);
            float* values = out.at(n, c, u0, own + source_buffer);
            to.y = values - u0 * plan.width;
            kernel(x, stride, zeros, planes, Range{u0, u1}, to);
            for (size_t p = 0; p < planes; ++p) out.finish(n, c + p, u0, u1, values + p * to.plane_stride);
          }
        }
      });
}

// A map with one phase.
void run_window(const PatchMap& p, CallScratch& scratch) {
  const PatchAxis &y = p.y, &x = p.x;
  const WeightView w = f32_weights(p.weights);
  WindowAxis wy, wx;
  window_axis(y, &wy), window_axis(x, &wx);
  const auto step = static_cast<size_t>(x.step);
  BandPlan plan{y.pixels, x.pixels, band_rows(y.pixels, step * wx.used, x.pixels), y.extent, wx.used};
  plan.reach = plan.band * step + 2;
  for (ptrdiff_t k = 0; k < 9; ++k) {
    plan.weight[k] = (wy.kernel + k / 3 * wy.kernel_step) * w.y + (wx.kernel + k % 3 * wx.kernel_step) * w.x;
  }
  DepthwiseWindow window = make_window(y, wy, wx, p.source);
  window.far = planes_are_far(p.map, p.batch);
  run_bands(
      plan, p, w, scratch, [&](size_t u0, size_t u1) { return window_rows(y, wy, u0, u1); },
      [&](const float* from, ptrdiff_t stride, const float* zeros, size_t planes, Range rows,
          const DepthwiseOutput& to) {
        DepthwiseWindow some = window;
        some.x = from, some.row_stride = stride, some.zeros = zeros;
        depthwise_rows(some, planes, rows, x.pixels, to);
      });
}

// One axis of up with stride 2.
bool spread_axis(const ConvolutionAxis& a, WindowAxis (&phase)[2], size_t (&taps)[2], ptrdiff_t (&first)[2]) {
  if (a.stride != 2 || a.dilation != 1 || a.large < 2) return false;
  for (size_t p = 0; p < 2; ++p) {
    const PatchAxis axis = up_axis(a, p);
    if (axis.taps == 0) return false;
    const auto last = static_cast<ptrdiff_t>(axis.taps - 1), step = static_cast<ptrdiff_t>(axis.kernel_step);
    taps[p] = axis.taps;
    first[p] = axis.offset - last;  // tap is -1
    phase[p].kernel = static_cast<ptrdiff_t>(axis.kernel_first) + last * step;
    phase[p].kernel_step = -step;
  }
  return taps[0] + taps[1] == 3;
}

// Up with a stride of 2.
void run_spread(const PatchMap& p, CallScratch& scratch) {
  const ConvolutionMap& map = p.map;
  const WeightView w = f32_weights(p.weights);
  DepthwiseSpread spread;
  WindowAxis wy[2], wx[2];
  spread_axis(map.y, wy, spread.taps_y, spread.first_y), spread_axis(map.x, wx, spread.taps_x, spread.first_x);
  BandPlan plan{map.y.large, map.x.large, 0, map.y.small, map.x.small};
  plan.band = round_up(band_rows(plan.height, plan.source_width, plan.width), 2);
  plan.reach = plan.band / 2 + 2;
  ptrdiff_t* offset = plan.weight;
  for (size_t i = 0; i < 2; ++i) {
    for (size_t j = 0; j < spread.taps_y[i]; ++j) {
      for (size_t q = 0; q < 2; ++q) {
        for (size_t k = 0; k < spread.taps_x[q]; ++k) {
          *offset++ = (wy[i].kernel + static_cast<ptrdiff_t>(j) * wy[i].kernel_step) * w.y +
                      (wx[q].kernel + static_cast<ptrdiff_t>(k) * wx[q].kernel_step) * w.x;
        }
      }
    }
  }
  spread.plane_stride = p.source.tensor->stride[2];
  spread.height = static_cast<ptrdiff_t>(map.y.small), spread.width = static_cast<ptrdiff_t>(map.x.small);
  spread.large_width = static_cast<ptrdiff_t>(map.x.large);
  run_bands(
      plan, p, w, scratch,
      [&](size_t u0, size_t u1) {
        const auto p0 = static_cast<ptrdiff_t>(u0 / 2), p1 = static_cast<ptrdiff_t>((u1 - 1) / 2);
        return rows_inside(p0 + std::min(spread.first_y[0], spread.first_y[1]),
                           p1 + std::max(spread.first_y[0], spread.first_y[1]) + 2, map.y.small);
      },
      [&](const float* from, ptrdiff_t stride, const float* zeros, size_t planes, Range rows,
          const DepthwiseOutput& to) {
        DepthwiseSpread some = spread;
        some.x = from, some.row_stride = stride, some.zeros = zeros;
        depthwise_large_rows(some, planes, rows, to);
      });
}

}  // namespace

bool accepts_depthwise_tile(const PatchMap& p) {
  if (!is_depthwise(p.map)) return false;
  WindowAxis wy[2], wx[2];
  if (!p.is_strided()) return p.y.step == p.x.step && window_axis(p.y, wy) && window_axis(p.x, wx);
  DepthwiseSpread spread;
  return spread_axis(p.map.y, wy, spread.taps_y, spread.first_y) &&
         spread_axis(p.map.x, wx, spread.taps_x, spread.first_x);
}

void run_depthwise_tile(const PatchMap& p, CallScratch& scratch) {
  p.is_strided() ? run_spread(p, scratch) : run_window(p, scratch);
}

}  // namespace bnns
