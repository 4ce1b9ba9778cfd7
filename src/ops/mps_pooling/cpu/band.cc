// Plans the band kernels (mps_pooling/cpu/band.h): which encodes they take, and how the work is cut.

#include "src/ops/mps_pooling/cpu/band.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "src/core/parallel.h"
#include "src/ops/mps_pooling/cpu/cpu.h"
#include "src/ops/mps_pooling/window.h"

namespace bnns::mps {
namespace {

constexpr int64_t kLimit = int64_t{1} << 30;
constexpr int64_t kMostSlots = 1 << 15;
// Slots of a row, about (twice as many where a slot is one column): enough that loops are long beside their ends, few
// enough that a group's arrays stay in L1 and L2 and the next group is near enough to be prefetched in time.
constexpr int64_t kGroupSlots = 64;
// Target texels of a band, about: its first windows are computed twice, and threads need several bands each.
constexpr int64_t kBandTexels = 8192;

bool make_side(const PoolAxis& a, int64_t size, int64_t windows, int64_t window_at, int64_t source, int64_t at,
               int64_t count, BandSide* out) {
  const int64_t first = a.first_centre - a.before();
  for (const int64_t v : {size, windows, window_at, source, at, count, a.zero_pad}) {
    if (v < 0 || v > kLimit) return false;
  }
  // Every window meets the image.
  if (a.dilation != 1 || windows < 1 || first <= -a.kernel || first > kLimit ||
      first + (windows - 1) * a.stride >= size) {
    return false;
  }
  *out = {first, size, windows, window_at, source, at, count, a.zero_pad};
  return true;
}

bool usable(const ImageView& v, PixelType type) {
  return v.type == type && v.lanes == 4 && reinterpret_cast<uintptr_t>(v.data) % bytes_of(type) == 0;
}

// Whole cache lines of the target, where its rows are made of them: results then go there straight from registers.
void align_slots(const PoolEncode& e, BandPlan* p) {
  constexpr int64_t kLine = 64;
  const auto texel = static_cast<int64_t>(4 * bytes_of(p->type));
  if (p->stride != 2 || reinterpret_cast<uintptr_t>(e.target.data) % kLine != 0 ||
      e.target.width * texel % kLine != 0) {
    return;
  }
  const int64_t shift = p->x.at + p->x.first - p->x.source;  // target column of window 0's first column
  p->phase = static_cast<int>(((shift % 2) + 2) % 2);
  if (p->phase == 1 && p->kernel == 2) p->phase = 0;
  const int64_t per_line = kLine / texel, column = shift + 2 * p->low - p->phase;
  const int64_t over = ((column % per_line) + per_line) % per_line;
  p->aligned = over % 2 == 0;
  if (p->aligned) p->low -= over / 2;
}

bool make_plan(const PoolEncode& e, BandPlan* p) {
  const bool backward = e.backward;
  const int64_t k = e.x.kernel, s = e.x.stride;
  if (e.y.kernel != k || e.y.stride != s || !((k == 2 && s == 2) || (k == 3 && (s == 1 || s == 2)))) return false;
  const PixelType type = e.target.type;
  if (type != PixelType::f32 && type != PixelType::f16) return false;
  if (e.channels % 4 != 0 || !usable(e.target, type)) return false;
  if ((e.reads_source() && !usable(e.source, type)) || (backward && !usable(e.gradient, type))) return false;
  const bool fits = backward ? make_side(e.x, e.source.width, e.gradient_width, e.gradient_x, e.source_x, e.target_x,
                                         e.width, &p->x) &&
                                   make_side(e.y, e.source.height, e.gradient_height, e.gradient_y, e.source_y,
                                             e.target_y, e.height, &p->y)
                             : make_side(e.x, e.source.width, e.width, e.target_x, 0, 0, 0, &p->x) &&
                                   make_side(e.y, e.source.height, e.height, e.target_y, 0, 0, 0, &p->y);
  if (!fits) return false;
  p->kind = e.kind, p->edge = e.edge, p->type = type, p->backward = backward;
  p->kernel = static_cast<int>(k), p->stride = static_cast<int>(s), p->reach = static_cast<int>((k - 1) / s);
  // Clamped pixels that count more than once: the plain loops.
  if (e.kind == PoolKind::l2_norm && e.edge == PoolEdge::clamp) {
    for (const BandSide* side : {&p->x, &p->y}) {
      if (overhangs(*p, *side, 0) || overhangs(*p, *side, side->windows - 1)) return false;
    }
  }
  if (backward) {
    const int64_t begin = floor_div(p->x.source - p->x.first, s);
    p->low = begin - p->reach;
    align_slots(e, p);
    p->slots = floor_div(p->x.source + p->x.count - 1 - p->x.first, s) - p->low + 1 + p->phase;
  } else {
    p->slots = p->x.windows;
  }
  p->pitch = std::max(p->slots, std::min(p->slots, p->x.windows - p->low) + p->reach);  // to the last window's last tap
  if (p->pitch > kMostSlots) return false;
  p->column_begin = std::clamp<int64_t>(p->x.first + s * p->low, 0, p->x.size);
  p->column_end = std::clamp<int64_t>(p->x.first + s * (p->low + p->pitch), p->column_begin, p->x.size);
  p->planes = e.images * (e.channels / 4);
  p->group = std::clamp<int64_t>((s == 1 ? 2 : 1) * kGroupSlots / p->pitch, 1, std::max<int64_t>(1, p->planes));
  p->bands = std::clamp<int64_t>(e.height * e.width * p->group / kBandTexels, 1, e.height);
  p->band_rows = (e.height + p->bands - 1) / p->bands;
  p->band_rows += p->band_rows % 2;  // both rows of a window in one band
  p->bands = (e.height + p->band_rows - 1) / p->band_rows;
  p->stream = target_bytes(e) >= kStreamBytes;
  return true;
}

}  // namespace

int64_t divisor_rows(const BandPlan& p, int64_t v) noexcept {
  PoolAxis a;
  a.kernel = p.kernel, a.zero_pad = p.y.zero_pad;
  return divisor_extent(p.y.first + v * p.stride, a, p.y.size, p.edge);
}

void fill_columns(const BandPlan& p, int64_t rows, float* to) noexcept {
  PoolAxis a;
  a.kernel = p.kernel, a.zero_pad = p.x.zero_pad;
  for (int64_t i = 0; i < p.pitch; ++i) {
    const int64_t w = p.low + i;
    const bool real = w >= 0 && w < p.x.windows;
    float value = real ? 1 : 0;
    if (p.kind == PoolKind::max) {
      const bool zero = !real || (p.edge == PoolEdge::zero && overhangs(p, p.x, w));
      value = zero ? 0 : -std::numeric_limits<float>::infinity();
    } else if (p.kind == PoolKind::average) {
      const auto n =
          !real ? 1.0f : static_cast<float>(rows * divisor_extent(p.x.first + w * p.stride, a, p.x.size, p.edge));
      value = p.backward ? 1.0f / n : n;
    }
    for (int l = 0; l < 4; ++l) to[4 * i + l] = value;
  }
  for (int64_t g = 1; g < p.group; ++g) {
    std::memcpy(to + 4 * g * p.pitch, to, static_cast<size_t>(4 * p.pitch) * sizeof(float));
  }
}

BandPlane plane_at(const BandPlan& p, const PoolEncode& e, int64_t plane) noexcept {
  const int64_t slices = e.channels / 4, n = plane / slices, slice = plane % slices;
  const size_t texel = 4 * bytes_of(p.type);
  const auto begin = [&](const ImageView& v, int64_t image, int64_t channel) {
    return static_cast<char*>(v.data) +
           static_cast<size_t>(((image + n) * v.slices + channel / 4 + slice) * v.height * v.width) * texel;
  };
  return {e.reads_source() ? begin(e.source, e.source_image, e.source_channel) : nullptr,
          p.backward ? begin(e.gradient, e.gradient_image, e.gradient_channel) : nullptr,
          begin(e.target, e.target_image, e.target_channel)};
}

bool accepts_band(const PoolEncode& e) noexcept {
  BandPlan plan;
  return make_plan(e, &plan);
}

void run_band(const PoolEncode& e, size_t wanted) noexcept {
  BandPlan plan;
  make_plan(e, &plan);
  const auto tasks = static_cast<size_t>(plan.tasks());
  const size_t threads = threads_for(wanted, tasks, 3 * target_bytes(e));
  const size_t bytes = plan.scratch_bytes();
  const ThreadScratch scratch(threads, bytes);
  if (!scratch) return run_plain(e, wanted);
  for (size_t i = 0; i < threads; ++i) *static_cast<bool*>(scratch.of(i)) = false;  // not prepared yet
  parallel_for(tasks, threads, [&](size_t i, size_t worker) {
    char* memory = static_cast<char*>(scratch.of(worker));
    bool* ready = reinterpret_cast<bool*>(memory);
    if (!*ready) band_prepare(plan, memory + 64), *ready = true;
    const auto task = static_cast<int64_t>(i);
    if (band_task(plan, e, task, memory + 64)) return;
    const int64_t first = task / plan.bands * plan.group, begin = task % plan.bands * plan.band_rows;
    const int64_t end = std::min(e.height, begin + plan.band_rows), slices = e.channels / 4;
    for (int64_t p = first; p < std::min(plan.planes, first + plan.group); ++p) {
      plain_rows(e, p / slices, p % slices, begin, end, memory + 64, bytes - 64);
    }
    if (e.backward) *ready = false;  // the plain loops had its scratch
  });
}

}  // namespace bnns::mps
