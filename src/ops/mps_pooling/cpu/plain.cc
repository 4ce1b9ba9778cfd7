// The plain loops of the CPU device: every window, format and channel count. Images, slices and bands of rows are
// tasks; no two tasks write the same texel.
//
// forward    a window per target texel
// backward   for some target rows: first what each window that touches them sends (the pixel that takes a maximum's
//            gradient; G / N; G / norm), once per window; then each target texel gathers from its windows, in row-major
//            order, a sum per row of windows first. Windows at the seam of two bands are computed twice.

#include <algorithm>

#include "src/core/parallel.h"
#include "src/ops/mps_pooling/cpu/cpu.h"
#include "src/ops/mps_pooling/pixels.h"

namespace bnns::mps {
namespace {

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

// Of the last slice a part may be used.
int32_t lanes_of(const PoolEncode& e, int64_t slice) {
  return static_cast<int32_t>(std::min<int64_t>(4, e.channels - 4 * slice));
}

Texel forward_window(const PoolEncode& e, const Plane& source, int64_t y_first, int64_t x_first) {
  const AxisTaps ty(y_first, e.y, e.source.height), tx(x_first, e.x, e.source.width);
  const auto read = [&](int64_t y, int64_t x) { return source.read(y, x); };
  switch (e.kind) {
    case PoolKind::max:
      return max_window(ty, tx, e.edge, read);
    case PoolKind::average: {
      Texel sum = sum_window(ty, tx, adds_columns(e.x, e.y), read);
      const int64_t n =
          divisor_extent(y_first, e.y, e.source.height, e.edge) * divisor_extent(x_first, e.x, e.source.width, e.edge);
      for (float& v : sum.v) v = n == 0 ? 0.0f : v / static_cast<float>(n);
      return sum;
    }
    case PoolKind::l2_norm: {
      Texel sum = square_sum_window(ty, tx, e.edge, adds_columns(e.x, e.y), read);
      for (float& v : sum.v) v = std::sqrt(v);
      return sum;
    }
  }
  return {};
}

// What a window sends: of max the pixel that takes G, of the others a factor.
struct Sent {
  TexelIndex index;
  Texel value;  // G, G / N, or G / norm
};

Sent window_of(const PoolEncode& e, const Plane& source, const Plane& gradient, int64_t wy, int64_t wx) {
  Sent s{{{-1, -1, -1, -1}}, gradient.read(e.gradient_y + wy, e.gradient_x + wx)};
  const int64_t y_first = e.y.first_centre + wy * e.y.stride - e.y.before();
  const int64_t x_first = e.x.first_centre + wx * e.x.stride - e.x.before();
  if (e.kind == PoolKind::average) {
    const int64_t n =
        divisor_extent(y_first, e.y, e.source.height, e.edge) * divisor_extent(x_first, e.x, e.source.width, e.edge);
    const float share = n == 0 ? 0.0f : 1.0f / static_cast<float>(n);
    for (float& v : s.value.v) v *= share;
    return s;
  }
  const AxisTaps ty(y_first, e.y, e.source.height), tx(x_first, e.x, e.source.width);
  const auto read = [&](int64_t y, int64_t x) { return source.read(y, x); };
  if (e.kind == PoolKind::max) {
    s.index = max_window_index(ty, tx, e.edge, e.source.width, read);
    return s;
  }
  const Texel sum = square_sum_window(ty, tx, e.edge, adds_columns(e.x, e.y), read);
  for (int l = 0; l < 4; ++l) s.value.v[l] = sum.v[l] == 0.0f ? 0.0f : s.value.v[l] / std::sqrt(sum.v[l]);
  return s;
}

// Sums what sent(wy, wx) gives over the windows that reach source pixel (y, x).
template <class SentOf>
Texel gather(const PoolEncode& e, const Plane& source, WindowRange rows, WindowRange columns, int64_t y, int64_t x,
             SentOf&& sent) {
  Texel sum = {{0, 0, 0, 0}};
  const int64_t ey = e.y.extent(), ex = e.x.extent();
  const auto self = static_cast<int32_t>(y * e.source.width + x);
  const bool columns_first = adds_columns(e.x, e.y);  // a pixel that is several taps counts by columns, then by rows
  for (int64_t wy = rows.first; wy <= rows.last; ++wy) {
    int64_t count_y = 1;
    if (e.kind != PoolKind::max) {
      count_y = taps_on(y, e.y.first_centre + wy * e.y.stride - e.y.before(), e.y, ey, e.source.height,
                        e.kind == PoolKind::average ? PoolEdge::zero : e.edge);
    }
    Texel row = {{0, 0, 0, 0}};
    for (int64_t wx = columns.first; wx <= columns.last && count_y != 0; ++wx) {
      const Sent s = sent(wy, wx);
      const Texel& value = s.value;
      if (e.kind == PoolKind::max) {
        for (int l = 0; l < 4; ++l) row.v[l] += s.index.v[l] == self ? value.v[l] : 0.0f;
        continue;
      }
      const int64_t count = (columns_first ? 1 : count_y) *
                            taps_on(x, e.x.first_centre + wx * e.x.stride - e.x.before(), e.x, ex, e.source.width,
                                    e.kind == PoolKind::average ? PoolEdge::zero : e.edge);
      for (int l = 0; l < 4 && count != 0; ++l) row.v[l] += value.v[l] * static_cast<float>(count);
    }
    for (int l = 0; l < 4; ++l) sum.v[l] += columns_first ? row.v[l] * static_cast<float>(count_y) : row.v[l];
  }
  if (e.kind == PoolKind::l2_norm) {
    const Texel own = source.read(y, x);
    for (int l = 0; l < 4; ++l) sum.v[l] = sum.v[l] == 0.0f ? 0.0f : sum.v[l] * own.v[l];
  }
  return sum;
}

constexpr int64_t kBandRows = 16;

void forward_rows(const PoolEncode& e, int64_t n, int64_t slice, int64_t begin, int64_t end) {
  const int32_t lanes = lanes_of(e, slice);
  const Plane source = plane_of(e.source, e.source_image + n, e.source_channel / 4 + slice, lanes);
  const Plane target = plane_of(e.target, e.target_image + n, e.target_channel / 4 + slice, lanes);
  for (int64_t i = begin; i < end; ++i) {
    const int64_t y_first = e.y.first_centre + i * e.y.stride - e.y.before();
    for (int64_t j = 0; j < e.width; ++j) {
      const int64_t x_first = e.x.first_centre + j * e.x.stride - e.x.before();
      target.write(e.target_y + i, e.target_x + j, forward_window(e, source, y_first, x_first));
    }
  }
}

void backward_rows(const PoolEncode& e, int64_t n, int64_t slice, int64_t begin, int64_t end, void* scratch,
                   size_t bytes) {
  const int32_t lanes = lanes_of(e, slice);
  const Plane source = plane_of(e.source, e.source_image + n, e.source_channel / 4 + slice, lanes);
  const Plane target = plane_of(e.target, e.target_image + n, e.target_channel / 4 + slice, lanes);
  const Plane gradient = plane_of(e.gradient, e.gradient_image + n, e.gradient_channel / 4 + slice, lanes);
  const PoolEdge edge = e.kind == PoolKind::average ? PoolEdge::zero : e.edge;
  const auto rows_of = [&](int64_t i) {  // empty beyond the source
    if (e.source_y + i >= e.source.height) return WindowRange{0, -1};
    return windows_of(e.source_y + i, e.y, e.y.extent(), e.gradient_height, e.source.height, edge);
  };
  const auto write_rows = [&](int64_t i0, int64_t i1, auto&& sent) {
    for (int64_t i = i0; i < i1; ++i) {
      const int64_t y = e.source_y + i;
      const WindowRange rows = rows_of(i);
      for (int64_t j = 0; j < e.width; ++j) {
        const int64_t x = e.source_x + j;
        Texel sum = {{0, 0, 0, 0}};
        if (y < e.source.height && x < e.source.width) {
          const WindowRange columns = windows_of(x, e.x, e.x.extent(), e.gradient_width, e.source.width, edge);
          sum = gather(e, source, rows, columns, y, x, sent);
        }
        target.write(e.target_y + i, e.target_x + j, sum);
      }
    }
  };
  const auto fitting = static_cast<int64_t>(bytes / sizeof(Sent)) / std::max<int64_t>(1, e.gradient_width);
  Sent* band = static_cast<Sent*>(scratch);
  for (int64_t i = begin; i < end;) {
    WindowRange rows = rows_of(i);  // of rows [i, next): as many as fit
    int64_t next = i + 1;
    for (; next < end; ++next) {
      const WindowRange r = rows_of(next);
      if (r.last < r.first) continue;
      const WindowRange all =
          rows.last < rows.first ? r : WindowRange{std::min(rows.first, r.first), std::max(rows.last, r.last)};
      if (all.last - all.first + 1 > fitting) break;
      rows = all;
    }
    if (rows.last - rows.first + 1 > fitting) {
      write_rows(i, next, [&](int64_t wy, int64_t wx) { return window_of(e, source, gradient, wy, wx); });
    } else {
      Sent* to = band;
      for (int64_t wy = rows.first; wy <= rows.last; ++wy) {
        for (int64_t wx = 0; wx < e.gradient_width; ++wx) *to++ = window_of(e, source, gradient, wy, wx);
      }
      write_rows(i, next, [&](int64_t wy, int64_t wx) { return band[(wy - rows.first) * e.gradient_width + wx]; });
    }
    i = next;
  }
}

// Bytes of scratch for each thread: for as many rows of windows as a band can meet. With the clamp edge an outermost
// row can meet all.
size_t scratch_bytes(const PoolEncode& e) {
  const int64_t reach = divide_up(kBandRows + 2 * e.y.extent(), e.y.stride) + 1;
  const int64_t rows = std::min(e.gradient_height, e.edge == PoolEdge::clamp ? e.gradient_height : reach);
  constexpr int64_t kMost = int64_t{64} << 20;
  const int64_t row_bytes = std::min<int64_t>(kMost, e.gradient_width * static_cast<int64_t>(sizeof(Sent)));
  return static_cast<size_t>(
      row_bytes * std::clamp<int64_t>(rows, 1, std::max<int64_t>(1, kMost / std::max<int64_t>(1, row_bytes))));
}

}  // namespace

void plain_rows(const PoolEncode& e, int64_t n, int64_t slice, int64_t begin, int64_t end, void* scratch,
                size_t bytes) noexcept {
  e.backward ? backward_rows(e, n, slice, begin, end, scratch, bytes) : forward_rows(e, n, slice, begin, end);
}

void run_plain(const PoolEncode& e, size_t wanted) noexcept {
  const int64_t slices = divide_up(e.channels, 4), bands = divide_up(e.height, kBandRows);
  const auto tasks = static_cast<size_t>(e.images * slices * bands);
  const size_t work = tasks * static_cast<size_t>(kBandRows * e.width * e.x.kernel * e.y.kernel) * 16;
  const size_t threads = threads_for(wanted, tasks, work);
  const ThreadScratch scratch(threads, e.backward ? scratch_bytes(e) : 0);
  parallel_for(tasks, threads, [&](size_t task, size_t worker) {
    const auto t = static_cast<int64_t>(task);
    const int64_t begin = t % bands * kBandRows;
    plain_rows(e, t / bands / slices, t / bands % slices, begin, std::min(e.height, begin + kBandRows),
               scratch.of(worker), scratch.bytes());
  });
}

}  // namespace bnns::mps
