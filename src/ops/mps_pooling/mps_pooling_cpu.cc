// The MPS pooling family on the CPU: images, slices and bands of rows are tasks; no two tasks write the same texel.
//
// forward    a window per target texel
// backward   for a band of target rows: first what each window that touches the band sends (the pixel that takes a
//            maximum's gradient; G / N; G / norm), once per window; then each target texel gathers from its windows, in
//            row-major order, a sum per row of windows first. Windows at the seam of two bands are computed twice.

#include <algorithm>
#include <new>
#include <vector>

#include "src/core/parallel.h"
#include "src/ops/mps_pooling/mps_pooling_pixels.h"

namespace bnns::mps {
namespace {

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Slices of 4 channels; the last may be used in part.
struct Slices {
  int64_t count;
  explicit Slices(const PoolEncode& e) : count(divide_up(e.channels, 4)) {}
  static int32_t lanes(const PoolEncode& e, int64_t slice) {
    return static_cast<int32_t>(std::min<int64_t>(4, e.channels - 4 * slice));
  }
};

Texel forward_window(const PoolForward& e, const Plane& source, int64_t y_first, int64_t x_first) {
  const AxisTaps ty(y_first, e.y, e.source.height), tx(x_first, e.x, e.source.width);
  const auto read = [&](int64_t y, int64_t x) { return source.read(y, x); };
  switch (e.kind) {
    case PoolKind::max:
      return max_window(ty, tx, e.edge, read);
    case PoolKind::average: {
      Texel sum = sum_window(ty, tx, read);
      const int64_t n =
          divisor_extent(y_first, e.y, e.source.height, e.edge) * divisor_extent(x_first, e.x, e.source.width, e.edge);
      for (float& v : sum.v) v = n == 0 ? 0.0f : v / static_cast<float>(n);
      return sum;
    }
    case PoolKind::l2_norm: {
      Texel sum = square_sum_window(ty, tx, e.edge, read);
      for (float& v : sum.v) v = std::sqrt(v);
      return sum;
    }
  }
  return {};
}

// What a window sends: of max the pixel that takes G, of the others a factor.
struct WindowBand {
  std::vector<TexelIndex> index;
  std::vector<Texel> value;  // G, G / N, or G / norm
};

void fill_window(const PoolBackward& e, const Plane& source, const Plane& gradient, int64_t wy, int64_t wx,
                 TexelIndex* index, Texel* value) {
  *value = gradient.read(e.gradient_y + wy, e.gradient_x + wx);
  const int64_t y_first = e.y.first_centre + wy * e.y.stride - e.y.before();
  const int64_t x_first = e.x.first_centre + wx * e.x.stride - e.x.before();
  if (e.kind == PoolKind::average) {
    const int64_t n =
        divisor_extent(y_first, e.y, e.source.height, e.edge) * divisor_extent(x_first, e.x, e.source.width, e.edge);
    const float share = n == 0 ? 0.0f : 1.0f / static_cast<float>(n);
    for (float& v : value->v) v *= share;
    return;
  }
  const AxisTaps ty(y_first, e.y, e.source.height), tx(x_first, e.x, e.source.width);
  const auto read = [&](int64_t y, int64_t x) { return source.read(y, x); };
  if (e.kind == PoolKind::max) {
    *index = max_window_index(ty, tx, e.edge, e.source.width, read);
    return;
  }
  const Texel sum = square_sum_window(ty, tx, e.edge, read);
  for (int l = 0; l < 4; ++l) value->v[l] = sum.v[l] == 0.0f ? 0.0f : value->v[l] / std::sqrt(sum.v[l]);
}

Texel gather(const PoolBackward& e, const Plane& source, const WindowBand& band, int64_t first_row, WindowRange rows,
             WindowRange columns, int64_t y, int64_t x) {
  Texel sum = {{0, 0, 0, 0}};
  const int64_t ey = e.y.extent(), ex = e.x.extent();
  const auto self = static_cast<int32_t>(y * e.source.width + x);
  for (int64_t wy = rows.first; wy <= rows.last; ++wy) {
    int64_t count_y = 1;
    if (e.kind != PoolKind::max) {
      count_y = taps_on(y, e.y.first_centre + wy * e.y.stride - e.y.before(), e.y, ey, e.source.height,
                        e.kind == PoolKind::average ? PoolEdge::zero : e.edge);
    }
    Texel row = {{0, 0, 0, 0}};
    for (int64_t wx = columns.first; wx <= columns.last && count_y != 0; ++wx) {
      const size_t at = static_cast<size_t>((wy - first_row) * e.gradient_width + wx);
      const Texel& value = band.value[at];
      if (e.kind == PoolKind::max) {
        const TexelIndex& index = band.index[at];
        for (int l = 0; l < 4; ++l) row.v[l] += index.v[l] == self ? value.v[l] : 0.0f;
        continue;
      }
      const int64_t count = count_y * taps_on(x, e.x.first_centre + wx * e.x.stride - e.x.before(), e.x, ex,
                                              e.source.width, e.kind == PoolKind::average ? PoolEdge::zero : e.edge);
      for (int l = 0; l < 4 && count != 0; ++l) row.v[l] += value.v[l] * static_cast<float>(count);
    }
    for (int l = 0; l < 4; ++l) sum.v[l] += row.v[l];
  }
  if (e.kind == PoolKind::l2_norm) {
    const Texel own = source.read(y, x);
    for (int l = 0; l < 4; ++l) sum.v[l] *= own.v[l];
  }
  return sum;
}

constexpr int64_t kBandRows = 16;

}  // namespace

void pool_forward_cpu(const PoolForward& e, size_t threads) noexcept {
  const Slices slices(e);
  const int64_t bands = divide_up(e.height, kBandRows);
  const auto tasks = static_cast<size_t>(e.images * slices.count * bands);
  const size_t work = tasks * static_cast<size_t>(kBandRows * e.width * e.x.kernel * e.y.kernel) * 16;
  parallel_for(tasks, threads_for(threads, tasks, work), [&](size_t task, size_t) {
    const auto t = static_cast<int64_t>(task);
    const int64_t band = t % bands, slice = t / bands % slices.count, n = t / bands / slices.count;
    const int32_t lanes = Slices::lanes(e, slice);
    const Plane source = plane_of(e.source, e.source_image + n, e.source_channel / 4 + slice, lanes);
    const Plane target = plane_of(e.target, e.target_image + n, e.target_channel / 4 + slice, lanes);
    for (int64_t i = band * kBandRows; i < std::min(e.height, (band + 1) * kBandRows); ++i) {
      const int64_t y_first = e.y.first_centre + i * e.y.stride - e.y.before();
      for (int64_t j = 0; j < e.width; ++j) {
        const int64_t x_first = e.x.first_centre + j * e.x.stride - e.x.before();
        target.write(e.target_y + i, e.target_x + j, forward_window(e, source, y_first, x_first));
      }
    }
  });
}

void pool_backward_cpu(const PoolBackward& e, size_t threads) noexcept {
  const Slices slices(e);
  const int64_t bands = divide_up(e.height, kBandRows);
  const auto tasks = static_cast<size_t>(e.images * slices.count * bands);
  const size_t work = tasks * static_cast<size_t>(kBandRows * e.width * e.x.kernel * e.y.kernel) * 16;
  const PoolEdge edge = e.kind == PoolKind::average ? PoolEdge::zero : e.edge;
  parallel_for(tasks, threads_for(threads, tasks, work), [&](size_t task, size_t) {
    const auto t = static_cast<int64_t>(task);
    const int64_t band = t % bands, slice = t / bands % slices.count, n = t / bands / slices.count;
    const int32_t lanes = Slices::lanes(e, slice);
    const Plane source = plane_of(e.source, e.source_image + n, e.source_channel / 4 + slice, lanes);
    const Plane target = plane_of(e.target, e.target_image + n, e.target_channel / 4 + slice, lanes);
    const Plane gradient = plane_of(e.gradient, e.gradient_image + n, e.gradient_channel / 4 + slice, lanes);
    const int64_t begin = band * kBandRows, end = std::min(e.height, begin + kBandRows);
    const auto rows_of = [&](int64_t i) {
      return windows_of(e.source_y + i, e.y, e.y.extent(), e.gradient_height, e.source.height, edge);
    };
    // Windows that touch the band.
    WindowRange rows{e.gradient_height, -1};
    for (int64_t i = begin; i < end; ++i) {
      if (e.source_y + i >= e.source.height) continue;
      const WindowRange r = rows_of(i);
      if (r.last < r.first) continue;
      rows.first = std::min(rows.first, r.first);
      rows.last = std::max(rows.last, r.last);
    }
    thread_local WindowBand windows;
    const auto count = static_cast<size_t>(std::max<int64_t>(0, (rows.last - rows.first + 1) * e.gradient_width));
    windows.value.resize(count);
    windows.index.resize(count);
    for (int64_t wy = rows.first; wy <= rows.last; ++wy) {
      for (int64_t wx = 0; wx < e.gradient_width; ++wx) {
        const auto at = static_cast<size_t>((wy - rows.first) * e.gradient_width + wx);
        fill_window(e, source, gradient, wy, wx, &windows.index[at], &windows.value[at]);
      }
    }
    for (int64_t i = begin; i < end; ++i) {
      const int64_t y = e.source_y + i;
      for (int64_t j = 0; j < e.width; ++j) {
        const int64_t x = e.source_x + j;
        Texel sum = {{0, 0, 0, 0}};
        if (y < e.source.height && x < e.source.width) {
          const WindowRange columns = windows_of(x, e.x, e.x.extent(), e.gradient_width, e.source.width, edge);
          sum = gather(e, source, windows, rows.first, rows_of(i), columns, y, x);
        }
        target.write(e.target_y + i, e.target_x + j, sum);
      }
    }
  });
}

}  // namespace bnns::mps
