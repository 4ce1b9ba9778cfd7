// Gradients of geometries that the gathering kernel does not take (strides above 2, dilated columns with a stride, very
// large kernels) and of indices that point outside their windows.
//
// dx is made in tiles that fit on the stack. Every window that may reach a tile adds to it, in raster order; a window
// on a tile's edge is looked at once per tile, so tiles depend on nothing but their windows and any thread may do them.

#include "src/ops/pooling/backward/scatter.h"

#include <algorithm>
#include <cstring>

#include "src/ops/pooling/common/kernels.h"

namespace bnns {
namespace {

// What the windows of one row, [first, first + n), hand down: where (Max) and how much.
struct HandedDown {
  float amount[kChunk + kWindowSlack];
  int64_t position[kChunk];  // in the plane, or -1
};

struct ScatterScratch {
  float tile[ScatterTile::kFloats];
  HandedDown down;
  GradientScratch& gradient;
  explicit ScatterScratch(const PoolingBackward& call) : gradient(call.scratch->gradient) {}
};

void hand_down(const PoolingBackward& call, int64_t sample, int64_t channel, int64_t first, int64_t wy, int64_t n,
               ScatterScratch* scratch) {
  const PoolingGeometry& g = call.problem.geometry;
  HandedDown& down = scratch->down;
  pooling_gradient(call, sample, channel, first, wy, n, down.amount, &scratch->gradient);
  if (call.problem.function == PoolingFunction::average) {
    const float rows = static_cast<float>(g.y.count(wy));
    for (int64_t i = 0; i < n; ++i) {
      const float count = static_cast<float>(g.x.count(first + i)) * rows;
      down.amount[i] = count == 0 ? 0 : down.amount[i] / count;
    }
    return;
  }
  if (call.problem.function == PoolingFunction::l2_norm) {
    float* norm = scratch->gradient.value;
    pooling_fold(pooling_windows(PoolingFold::norm, g),
                 {PoolingFold::norm,
                  &g,
                  whole_plane(g, call.x, call.x.at(sample, channel)),
                  {wy, wy + 1},
                  {first, first + n},
                  norm,
                  nullptr,
                  kChunk},
                 scratch->gradient.pixels);
    for (int64_t i = 0; i < n; ++i) down.amount[i] = norm[i] == 0 ? 0 : down.amount[i] / norm[i];
    return;
  }
  if (call.index.data) {
    const void* index = call.index.at(sample, channel);
    const bool empty_row = g.y.taps(wy).empty();
    for (int64_t i = 0; i < n; ++i) {
      const bool empty = empty_row || g.x.taps(first + i).empty();
      down.position[i] = empty ? -1 : static_cast<int64_t>(call.index.load(index, first + i, wy));
    }
    return;
  }
  pooling_fold(pooling_windows(PoolingFold::arg_max, g),
               {PoolingFold::arg_max,
                &g,
                whole_plane(g, call.x, call.x.at(sample, channel)),
                {wy, wy + 1},
                {first, first + n},
                scratch->gradient.value,
                scratch->gradient.offset,
                kChunk},
               scratch->gradient.pixels);
  for (int64_t i = 0; i < n; ++i) {
    const int32_t offset = scratch->gradient.offset[i];
    down.position[i] = offset == kNoPixel ? -1 : g.origin(first + i, wy) + offset;
  }
}

// Adds to every pixel of the tile that the window covers.
void add_to_window(const PoolingGeometry& g, int64_t wx, int64_t wy, float amount, const ScatterTile& tile) {
  const Span tx = g.x.taps_within(wx, tile.x), ty = g.y.taps_within(wy, tile.y);
  for (int64_t t = ty.begin; t < ty.end; ++t) {
    float* row = tile.row(g.y.start(wy) + t * g.y.dilation) - tile.x.begin + g.x.start(wx);
    for (int64_t s = tx.begin; s < tx.end; ++s) row[s * g.x.dilation] += amount;
  }
}

void scatter_tile(const PoolingBackward& call, int64_t sample, int64_t channel, const ScatterTile& tile,
                  ScatterScratch* scratch) {
  const PoolingGeometry& g = call.problem.geometry;
  const bool is_max = call.problem.function == PoolingFunction::max;
  std::fill(tile.data, tile.data + tile.x.size() * tile.y.size(), 0.0f);
  const bool by_index = is_max && call.index.data;
  const WindowsNear near(g, tile, by_index ? index_range(call.index_in_rows) : Where::window);
  for (int64_t wy = near.y.begin; wy < near.y.end; ++wy) {
    for (int64_t first = near.x.begin; first < near.x.end; first += kChunk) {
      const int64_t n = std::min(kChunk, near.x.end - first);
      hand_down(call, sample, channel, first, wy, n, scratch);
      for (int64_t i = 0; i < n; ++i) {
        if (!is_max) {
          add_to_window(g, first + i, wy, scratch->down.amount[i], tile);
        } else if (float* pixel = tile.find(scratch->down.position[i])) {
          *pixel += scratch->down.amount[i];
        }
      }
    }
  }
}

}  // namespace

void pooling_backward_scatter(const PoolingBackward& call, Range planes, Span rows) noexcept {
  const PoolingGeometry& g = call.problem.geometry;
  ScatterScratch scratch(call);
  PlaneNumber at(planes.begin, call.problem.channels);
  for (size_t p = planes.begin; p < planes.end; ++p, at.next()) {
    const int64_t sample = at.sample, channel = at.channel;
    void* dx = call.dx.at(sample, channel);
    ScatterTile::for_each(g.x.in, rows, scratch.tile, [&](const ScatterTile& tile) {
      scatter_tile(call, sample, channel, tile, &scratch);
      for (int64_t y = tile.y.begin; y < tile.y.end; ++y) {
        float* row = tile.row(y);
        if (call.problem.function == PoolingFunction::l2_norm) {
          float* pixels = scratch.gradient.pixels;  // free here
          static_assert(ScatterTile::kFloats <= kPixelFloats);
          const float* x = load_pixels(call.x, call.x.at(sample, channel), tile.x.begin, y, tile.x.size(), pixels);
          for (int64_t i = 0; i < tile.x.size(); ++i) row[i] = row[i] == 0 ? 0 : x[i] * row[i];
        }
        store_pixels(call.dx, dx, tile.x.begin, y, tile.x.size(), row, call.accumulate);
      }
    });
  }
}

double pooling_bias_gradient(const PoolingBackward& call, int64_t samples, int64_t channel) noexcept {
  const PoolingGeometry& g = call.problem.geometry;
  if (call.problem.function == PoolingFunction::unmax) return pooling_unmax_bias_gradient(call, samples, channel);
  GradientScratch scratch;
  float values[kChunk];
  double sum = 0;
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t y = 0; y < g.y.out; ++y) {
      for (int64_t x = 0; x < g.x.out; x += kChunk) {
        const int64_t m = std::min(kChunk, g.x.out - x);
        pooling_gradient(call, n, channel, x, y, m, values, &scratch);
        sum += sum_of(values, m);
      }
    }
  }
  return sum;
}

}  // namespace bnns
