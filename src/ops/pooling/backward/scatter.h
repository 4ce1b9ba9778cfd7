// Tiles of the large image for what is written by position: gradients by index, UnMax.
#pragma once

#include <algorithm>
#include <cstdint>

#include "src/ops/pooling/common/kernels.h"

namespace bnns {

// A rectangle of pixels in f32 on the stack, rows of x.size().
struct ScatterTile {
  static constexpr int64_t kFloats = 4096;  // 16 KiB

  Span x, y;
  int64_t width;  // of the plane
  float* data;

  float* row(int64_t pixel_y) const { return data + (pixel_y - y.begin) * x.size(); }
  // The pixel at a position of the plane, or NULL if it is elsewhere (or -1).
  float* find(int64_t position) const {
    if (x.size() == width) {  // whole rows: one comparison
      const int64_t at = position - y.begin * width;
      return at >= 0 && at < y.size() * width && position >= 0 ? data + at : nullptr;
    }
    if (position < 0) return nullptr;
    const int64_t px = position % width, py = position / width;
    return px >= x.begin && px < x.end && py >= y.begin && py < y.end ? row(py) + (px - x.begin) : nullptr;
  }

  // Calls f for the tiles of the given rows of a plane.
  template <class F>
  static void for_each(int64_t width, Span rows, float* data, F&& f) {
    const int64_t columns = std::min(width, kFloats), height = kFloats / columns;
    for (int64_t y = rows.begin; y < rows.end; y += height) {
      for (int64_t x = 0; x < width; x += columns) {
        f(ScatterTile{{x, std::min(width, x + columns)}, {y, std::min(rows.end, y + height)}, width, data});
      }
    }
  }
};

// The windows that can reach a tile: those whose pixels it has. By index a window may reach any column, or any pixel.
enum class Where { window, rows, anywhere };
struct WindowsNear {
  Span x, y;
  WindowsNear(const PoolingGeometry& g, const ScatterTile& tile, Where where) : x{0, g.x.out}, y{0, g.y.out} {
    if (where == Where::window) x = {g.x.windows(tile.x.begin).begin, g.x.windows(tile.x.end - 1).end};
    if (where != Where::anywhere) y = {g.y.windows(tile.y.begin).begin, g.y.windows(tile.y.end - 1).end};
  }
};
inline Where index_range(bool in_rows) {
  return in_rows ? Where::rows : Where::anywhere;
}

// Eight sums side by side, in double: fast enough, and better than f32 over a whole batch.
inline double sum_of(const float* values, int64_t n) {
  double lane[8] = {};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (int k = 0; k < 8; ++k) lane[k] += static_cast<double>(values[i + k]);
  }
  for (; i < n; ++i) lane[i % 8] += static_cast<double>(values[i]);
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

double pooling_unmax_bias_gradient(const PoolingBackward& call, int64_t samples, int64_t channel) noexcept;

}  // namespace bnns
