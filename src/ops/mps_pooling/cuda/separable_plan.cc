// Plans the separable kernels (mps_pooling/cuda/separable.h): which encodes they take, and how the clip is cut. Host
// code: it compiles without nvcc.

#include <algorithm>
#include <initializer_list>

#include "src/ops/mps_pooling/cuda/cuda.h"
#include "src/ops/mps_pooling/cuda/separable_axis.h"

namespace bnns::mps {
namespace {

constexpr int64_t kLimit = 1 << 15;           // of coordinates, so that Divisor divides exactly
constexpr int64_t kMostPlane = 1 << 27;       // texels
constexpr uint32_t kWantedShared = 56 << 10;  // four blocks on a multiprocessor
constexpr uint32_t kMostShared = 224 << 10;
constexpr int64_t kWantedBlocks = 1056;  // eight for each multiprocessor

bool make_axis(const PoolAxis& a, const ImageView& source, bool is_x, int64_t windows, int64_t first_source,
               int64_t target, int64_t count, int64_t gradient, SeparableAxis* out) {
  const int64_t size = is_x ? source.width : source.height, first = a.first_centre - a.before();
  for (const int64_t v : {size, windows, first_source, target, count, gradient, a.zero_pad, a.stride, a.extent(),
                          first + (windows - 1) * a.stride + a.extent()}) {
    if (v > kLimit) return false;
  }
  if (first < -kLimit || a.kernel > kSeparableMostSide) return false;
  const auto narrow = [](int64_t v) { return static_cast<int32_t>(v); };
  *out = {};
  out->first = narrow(first), out->stride = narrow(a.stride), out->dilation = narrow(a.dilation);
  out->kernel = narrow(a.kernel), out->extent = narrow(a.extent()), out->size = narrow(size);
  out->windows = narrow(windows), out->source = narrow(first_source), out->target = narrow(target);
  out->count = narrow(count), out->gradient = narrow(gradient), out->zero_pad = narrow(a.zero_pad);
  out->by_stride = Divisor::of(out->stride);
  return true;
}

void cut(SeparableAxis& a, int32_t tile) {
  a.tiles = (a.count + tile - 1) / tile;
  a.tile = (a.count + a.tiles - 1) / a.tiles;
  a.tiles = (a.count + a.tile - 1) / a.tile;
}

struct Reach {
  int32_t windows, pixels;
};
// Most windows that meet a tile of the axis, and most source pixels that these read.
Reach reach_of(const SeparableAxis& a, bool backward, bool clamp) {
  Reach most_of{1, 1};
  for (int32_t k = 0; k < a.tiles; ++k) {
    const int32_t begin = a.source + k * a.tile;
    int32_t end = std::min(begin + a.tile, a.source + a.count);
    Windows w{begin, end - 1};
    if (backward) {
      end = std::min(end, a.size);
      if (begin >= end) continue;
      w = {windows_on(begin, a, clamp).first, windows_on(end - 1, a, clamp).last};
    }
    if (w.last < w.first) continue;
    const int32_t left = into(a.first + a.stride * w.first, a);
    const int32_t right = into(a.first + a.stride * w.last + a.extent - 1, a);
    most_of = {std::max(most_of.windows, w.last - w.first + 1), std::max(most_of.pixels, right - left + 1)};
  }
  return most_of;
}

// Lays out shared memory.
void lay_out(Separable& e, PoolKind kind, bool backward) {
  const auto planes = static_cast<uint32_t>(e.planes_per_block);
  const uint32_t rows = planes * static_cast<uint32_t>(e.groups * kSeparableRows);
  const uint32_t ring = planes * static_cast<uint32_t>(e.ring), columns = static_cast<uint32_t>(e.columns);
  const uint32_t windows = static_cast<uint32_t>(e.windows);
  const bool routes = backward && kind == PoolKind::max;
  uint32_t at = backward && kind == PoolKind::average ? 0 : rows * columns * 16;
  e.sent_at = at, at += backward ? rows * windows * 16 : 0;
  e.parts_at = at, at += backward ? ring * static_cast<uint32_t>(e.x.tile) * 16 : 0;
  e.taps_at = at, at += routes ? ring * columns * 4 : 0;
  e.routes_at = at, at += routes ? rows * windows * 4 : 0;
  e.shared = at;
}

}  // namespace

PoolEncode without_choice(const PoolEncode& encode) noexcept {
  const auto beyond = [](const PoolAxis& a, int64_t windows, int64_t size) {
    return a.first_centre < 0 || a.first_centre + (windows - 1) * a.stride >= size;
  };
  PoolEncode e = encode;
  if (!e.backward || e.kind != PoolKind::max || e.x.kernel != 1 || e.y.kernel != 1) return e;
  if (e.edge == PoolEdge::clamp &&
      (beyond(e.x, e.gradient_width, e.source.width) || beyond(e.y, e.gradient_height, e.source.height))) {
    return e;
  }
  e.kind = PoolKind::average, e.edge = PoolEdge::zero, e.x.dilation = e.y.dilation = 1;
  return e;
}

bool plan_separable(const PoolEncode& b, Separable* plan) noexcept {
  const bool backward = b.backward;
  Separable e{};
  const bool fits =
      backward
          ? make_axis(b.x, b.source, true, b.gradient_width, b.source_x, b.target_x, b.width, b.gradient_x, &e.x) &&
                make_axis(b.y, b.source, false, b.gradient_height, b.source_y, b.target_y, b.height, b.gradient_y, &e.y)
          : make_axis(b.x, b.source, true, b.width, 0, b.target_x, b.width, 0, &e.x) &&
                make_axis(b.y, b.source, false, b.height, 0, b.target_y, b.height, 0, &e.y);
  const bool sums = b.kind != PoolKind::max && !(backward && b.kind == PoolKind::average);
  if (sums && !adds_columns(b.x, b.y)) return false;
  // Few taps that no two windows share: a thread reads them as fast.
  if (!backward && b.x.kernel <= b.x.stride && b.y.kernel <= b.y.stride && b.x.kernel * b.y.kernel <= 16) return false;
  if (!fits || (b.kind != PoolKind::max && (b.x.dilation != 1 || b.y.dilation != 1))) return false;
  for (const ImageView* v : {&b.source, &b.target, &b.gradient}) {
    if (v->width * v->height > kMostPlane) return false;
  }
  e.clamp = b.edge == PoolEdge::clamp;
  const bool edges = e.clamp && b.kind != PoolKind::average;
  e.slices = static_cast<int32_t>((b.channels + 3) / 4);
  e.planes = b.images * e.slices;
  // Strips whose source columns have numbers of a byte.
  int32_t width = std::min(e.x.count, kSeparableMostSide);
  for (;; width = (width + 1) / 2) {
    cut(e.x, width);
    const Reach x = reach_of(e.x, backward, edges);
    e.columns = x.pixels, e.windows = x.windows;
    const bool narrow = e.columns <= kSeparableMostSide;
    e.threads = e.columns > 128 ? 256 : 128;
    e.groups = e.threads / 128;
    int32_t reach = (e.y.extent - 1) / e.y.stride + 1;
    for (const int32_t y : {0, e.y.size - 1}) {
      const Windows w = windows_on(y, e.y, edges);
      reach = std::max(reach, w.last - w.first + 1);
    }
    const int32_t rows = e.groups * kSeparableRows;
    e.ring = std::min(reach + rows, std::max(e.y.windows, rows));
    e.planes_per_block = 1;
    lay_out(e, b.kind, backward);
    if (narrow && e.shared <= kMostShared) break;
    if (width == 1) return false;
  }
  // Planes share a block where that leaves fewer of its threads idle.
  const auto busy = [&](int32_t planes) {
    const int32_t columns = planes * e.columns, rounds = (columns + e.threads - 1) / e.threads;
    return 100 * columns / (rounds * e.threads);
  };
  int32_t best = 1;
  for (int32_t planes = 2; planes <= std::min<int64_t>(32, e.planes) && planes * e.columns <= 2 * e.threads; ++planes) {
    e.planes_per_block = planes;
    lay_out(e, b.kind, backward);
    if (e.shared > kWantedShared) break;
    if (busy(planes) > busy(best) + 3) best = planes;
  }
  e.planes_per_block = best;
  lay_out(e, b.kind, backward);
  const int64_t groups = (e.planes + e.planes_per_block - 1) / e.planes_per_block;
  const int64_t wanted = (kWantedBlocks + groups * e.x.tiles - 1) / (groups * e.x.tiles);
  const int64_t least_rows = backward ? std::max(32, 2 * e.y.extent) : 16;
  cut(e.y, static_cast<int32_t>(
               std::min<int64_t>(e.y.count, std::max<int64_t>(least_rows, (e.y.count + wanted - 1) / wanted))));
  e.blocks = groups * e.x.tiles * e.y.tiles;
  if (e.blocks >= int64_t{1} << 31) return false;
  *plan = e;
  return true;
}

bool cuda::accepts_separable(const PoolEncode& e) noexcept {
  Separable plan;
  return plan_separable(without_choice(e), &plan);
}

}  // namespace bnns::mps
